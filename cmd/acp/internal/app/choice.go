package app

import (
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// choices are what the user wants the options of sessions to be.
type choices struct {
	mode    string
	options []string // ID=VALUE
	made    bool     // the command opens sessions for the user

	mu sync.Mutex
	of map[string]*backend.Choices // by the agent's name
}

// ChoiceFlags adds the flags --mode and --option of commands that open sessions for the user. They call [App.Choose], too.
func (a *App) ChoiceFlags(f *pflag.FlagSet) {
	f.StringVar(&a.choices.mode, "mode", "", "have the session begin in `MODE`")
	f.StringArrayVarP(&a.choices.options, "option", "o", nil, "have an option of the session begin with a value: `ID=VALUE` (repeatable)")
}

// Choose has the sessions that [App.Open] opens begin as the flags say. For agents other than the built-in one, --model sets
// the agent's own option for the model. Choose fails if a flag is wrong.
func (a *App) Choose() error {
	for _, option := range a.choices.options {
		if id, _, ok := strings.Cut(option, "="); !ok || id == "" {
			return exitcode.Errorf(exitcode.Usage, "--option %q is not ID=VALUE", option)
		}
	}
	a.choices.made = true
	return nil
}

// chosenModel returns the value of --model as agents other than the built-in one may have it, or "".
func (a *App) chosenModel() string {
	model, _ := a.Flags["model.use"].(string)
	if !a.choices.made || strings.HasPrefix(model, "script:") || strings.HasPrefix(model, "cassette:") {
		return ""
	}
	return model
}

// choicesFor returns how the sessions of an agent begin: the model and the mode first, which other options may depend on.
func (a *App) choicesFor(agent roster.Agent) *backend.Choices {
	if !a.choices.made {
		return nil
	}
	a.choices.mu.Lock()
	defer a.choices.mu.Unlock()
	if known := a.choices.of[agent.Name]; known != nil {
		return known
	}
	var all []backend.Choice
	if model := a.chosenModel(); model != "" && !agent.Builtin {
		all = append(all, backend.Choice{Flag: "--model " + model, Category: acpv2.SessionConfigOptionCategoryModel, Value: model})
	}
	if mode := a.choices.mode; mode != "" {
		all = append(all, backend.Choice{Flag: "--mode " + mode, Category: acpv2.SessionConfigOptionCategoryMode, Value: mode})
	}
	for _, option := range a.choices.options {
		id, value, _ := strings.Cut(option, "=")
		all = append(all, backend.Choice{Flag: "--option " + option, ID: acpv2.SessionConfigID(id), Value: value})
	}
	if a.choices.of == nil {
		a.choices.of = make(map[string]*backend.Choices)
	}
	known := &backend.Choices{All: all}
	a.choices.of[agent.Name] = known
	return known
}
