package acp

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/goacp/acp/jsonrpc"
)

func TestTurnCommand(t *testing.T) {
	cases := []struct {
		blocks     []ContentBlock
		name, rest string
		ok         bool
	}{
		{nil, "", "", false},
		{[]ContentBlock{Text("plain")}, "", "", false},
		{[]ContentBlock{Text("/")}, "", "", false},
		{[]ContentBlock{Text("/add  buy milk ")}, "add", "buy milk", true},
		{[]ContentBlock{Text(" /list"), &ResourceLink{URI: "file:///x"}}, "list", "", true},
		{[]ContentBlock{&ResourceLink{URI: "file:///x"}, Text("/list")}, "", "", false},
	}
	for _, c := range cases {
		name, rest, ok := (&Turn{blocks: c.blocks}).Command()
		if name != c.name || rest != c.rest || ok != c.ok {
			t.Errorf("%v: %q, %q, %v", c.blocks, name, rest, ok)
		}
	}
}

// TestWrongChoice: an option whose value is none of its values is refused, by
// name, and so is a value a client asks for; the error says why.
func TestWrongChoice(t *testing.T) {
	a := echoAgent()
	a.NewSession = func(_ context.Context, s *AgentSession) error {
		if err := s.SetOptions(ChoiceOption("mode", "Mode", SessionConfigOptionCategoryMode, "c", "a", "b")); err == nil || !strings.Contains(err.Error(), "mode") {
			return errors.New("not refused")
		}
		s.Value = "mine"
		return s.SetOptions(ChoiceOption("mode", "Mode", SessionConfigOptionCategoryMode, "a", "a", "b"), SwitchOption("web", "Web", true))
	}
	r := dialVersion(t, a, 2)
	id := r.session()
	s, _ := r.agent.Session(SessionID(id))
	if s.Value != "mine" || s.Option("mode") != "a" || !s.OptionOn("web") {
		t.Errorf("value %v, options %+v", s.Value, s.Options())
	}
	_, err := r.call("session/set_config_option", `{"sessionId":"`+id+`","configId":"mode","type":"id","value":"z"}`)
	if !errors.Is(err, jsonrpc.ErrInvalidParams) || !strings.Contains(err.Error(), "params.value: not a value of this option") {
		t.Errorf("error %v", err)
	}
	if err := s.ChangeOption("mode", &SessionConfigOptionValueID{Value: "b"}); err != nil || s.Option("mode") != "b" {
		t.Errorf("%v, %s", err, s.Option("mode"))
	}
	if err := s.ChangeOption("mode", &SessionConfigOptionValueID{Value: "z"}); err == nil {
		t.Error("no error")
	}
}
