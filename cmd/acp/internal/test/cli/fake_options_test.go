package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// optionsMode makes agent one with options, that answers a prompt with the requests which were about them. The words of arg
// say how: "none" does not know session/options, "no-code" takes the mode code from nobody, "kept" can bring sessions back, "auto" begins
// in the mode auto.
func optionsMode(agent *acp.Agent, arg string) {
	var mu sync.Mutex
	var log []string
	choice := func(id acp.SessionConfigID, category acp.SessionConfigOptionCategory, values ...acp.SessionConfigValueID) acp.SessionConfigOption {
		var list acp.SessionConfigSelectOptionList
		for _, v := range values {
			list = append(list, acp.SessionConfigSelectOption{Value: v, Name: string(v)})
		}
		return acp.SessionConfigOption{ConfigID: id, Name: string(id), Category: category,
			Kind: &acp.SessionConfigSelect{CurrentValue: values[0], Options: list}}
	}
	options := []acp.SessionConfigOption{
		choice("llm", acp.SessionConfigOptionCategoryModel, "fast", "smart"),
		choice("manner", acp.SessionConfigOptionCategoryMode, "ask", "code"),
		{ConfigID: "web", Name: "Web search", Kind: &acp.SessionConfigBoolean{}},
	}
	if strings.Contains(arg, "auto") {
		options[1] = choice("manner", acp.SessionConfigOptionCategoryMode, "auto", "default")
	}
	if !strings.Contains(arg, "none") {
		agent.SessionOptions = func(context.Context, *acp.AgentConn, *acp.OptionsQuery) (*acp.OptionsPreview, error) {
			return &acp.OptionsPreview{ConfigOptions: options}, nil
		}
	}
	agent.NewSession = func(_ context.Context, s *acp.AgentSession) error { return s.SetOptions(options...) }
	if strings.Contains(arg, "kept") {
		agent.ResumeSession = func(_ context.Context, s *acp.AgentSession, _ bool) error { return s.SetOptions(options...) }
	}
	agent.SetOption = func(_ context.Context, _ *acp.AgentSession, _ acp.SessionConfigID, v acp.SessionConfigOptionValue) error {
		if id, ok := v.(*acpv2.SessionConfigOptionValueID); ok && id.Value == "code" && strings.Contains(arg, "no-code") {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "no code today")
		}
		return nil
	}
	agent.Engine.Incoming = []jsonrpc.Middleware{func(next jsonrpc.Handler) jsonrpc.Handler {
		return func(ctx context.Context, r *jsonrpc.Request) (any, error) {
			raw, _ := json.Marshal(r.Params)
			var p struct {
				ConfigOptions json.RawMessage `json:"configOptions"`
				ConfigID      string          `json:"configId"`
				ModeID        string          `json:"modeId"`
				Value         any             `json:"value"`
			}
			_ = json.Unmarshal(raw, &p)
			line := r.Method
			switch {
			case strings.Contains(r.Method, "set_"):
				line += fmt.Sprint(" ", p.ConfigID+p.ModeID, "=", p.Value)
			case p.ConfigOptions != nil:
				line += " " + string(p.ConfigOptions)
			}
			mu.Lock()
			log = append(log, line)
			mu.Unlock()
			return next(ctx, r)
		}
	}}
	agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		mu.Lock()
		defer mu.Unlock()
		said := strings.Join(log, "\n") + "\n"
		for _, o := range t.Session().Options() {
			switch k := o.Kind.(type) {
			case *acp.SessionConfigSelect:
				said += fmt.Sprintf("%s is %s\n", o.ConfigID, k.CurrentValue)
			case *acp.SessionConfigBoolean:
				said += fmt.Sprintf("%s is %t\n", o.ConfigID, k.CurrentValue)
			}
		}
		return acp.StopEndTurn, t.Say(said)
	}
}
