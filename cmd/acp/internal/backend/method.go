package backend

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// A MethodKind says what a login requires.
type MethodKind string

// The kinds of ways to log in.
const (
	MethodAgent    MethodKind = "agent"    // the agent does it when asked, perhaps with a browser
	MethodTerminal MethodKind = "terminal" // the user runs a program in a terminal
	MethodEnv      MethodKind = "env_var"  // variables must be in the agent's environment
	MethodOther    MethodKind = "other"    // not known to this program
)

// A Method is a way to log in, in one form for all kinds and versions.
type Method struct {
	ID          acp.AuthMethodID
	Kind        MethodKind
	Name        string
	Description string
	Vars        []EnvVar // that must be set, of MethodEnv
	Link        string   // where to get their values, or ""

	// Run is the command that a terminal login of MethodTerminal runs, if it is not the
	// agent's own program; or nil. What is shown of it is [Method.Command].
	Run *Login
}

// A Login is a command that logs in, as an agent describes it in the metadata of a method.
// It is run only if the user chooses the method.
type Login struct {
	Command string
	Args    []string
	Env     map[string]string
}

// Command returns the command line that the user's terminal runs, for people, or "". It begins with the
// variables that are set, since some of them, such as PATH, say what runs. It is whole.
func (d Method) Command() string {
	if d.Run == nil {
		return ""
	}
	return d.Run.line()
}

// line returns the command line of a login as it is shown.
func (l *Login) line() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(l.Env)) {
		words = append(words, name+"="+l.Env[name])
	}
	words = append(append(words, l.Command), l.Args...)
	return safetext.VisibleLine(roster.Join(words), math.MaxInt)
}

// maxLogin bounds the command line of a login as it is shown, in bytes. A longer one cannot be shown
// whole, so it is not run.
const maxLogin = 1000

// loginOf reads terminal-auth in the metadata of a method, as agents of version 1 give it to
// clients that declare it; nil if there is none that can be shown.
func loginOf(meta json.RawMessage) *Login {
	var m struct {
		Auth json.RawMessage `json:"terminal-auth"`
	}
	if json.Unmarshal(meta, &m) != nil || len(m.Auth) == 0 {
		return nil
	}
	run := new(Login)
	if json.Unmarshal(m.Auth, run) != nil || run.Command == "" {
		return nil
	}
	size := len(run.Command)
	for _, s := range run.Args {
		size += len(s) + len(" ")
	}
	for k, v := range run.Env {
		size += len(k) + len(v)
		if k == "" || strings.ContainsAny(k, "=\x00") {
			return nil
		}
	}
	if size > maxLogin || len(run.line()) > maxLogin {
		return nil
	}
	return run
}

// An EnvVar is a variable that a login needs.
type EnvVar struct {
	Name     string `json:"name"`
	Label    string `json:"label"`
	Secret   *bool  `json:"secret"`
	Optional bool   `json:"optional"`
}

// Describe reads a login method of either version. One without an id can only be shown.
func Describe(m acp.AuthMethod) Method {
	switch m := m.(type) {
	case *acp.AuthMethodAgent:
		d := Method{ID: m.MethodID, Kind: MethodAgent, Name: m.Name, Description: m.Description}
		if d.Run = loginOf(m.Meta); d.Run != nil {
			d.Kind = MethodTerminal
		}
		return d
	case *acp.AuthMethodTerminal:
		return Method{ID: m.MethodID, Kind: MethodTerminal, Name: m.Name, Description: m.Description}
	case *acpv2.UnknownAuthMethod:
		var raw struct {
			ID          acp.AuthMethodID `json:"methodId"`
			Name        string           `json:"name"`
			Description string           `json:"description"`
			Vars        []EnvVar         `json:"vars"`
			VarName     string           `json:"varName"`
			Link        string           `json:"link"`
		}
		if json.Unmarshal(m.Raw, &raw) != nil {
			return Method{Kind: MethodOther, Name: m.Type}
		}
		d := Method{ID: raw.ID, Kind: MethodOther, Name: raw.Name, Description: raw.Description, Link: raw.Link}
		if m.Type == string(MethodEnv) {
			d.Kind, d.Vars = MethodEnv, raw.Vars
			if raw.VarName != "" && len(d.Vars) == 0 {
				d.Vars = []EnvVar{{Name: raw.VarName}}
			}
		}
		return d
	}
	return Method{Kind: MethodOther}
}

// label names a login method for people.
func (d Method) label() string {
	name := safetext.Line(d.Name, 60)
	id := safetext.Line(string(d.ID), 60)
	switch {
	case id == "":
		return name
	case name == "" || name == id:
		return id
	}
	return fmt.Sprintf("%s (%s)", id, name)
}
