package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
)

// TestClientState holds what a session knows of itself.
func TestClientState(t *testing.T) {
	single(t, Client{}, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
		if _, ok := s.State().(*IdleStateUpdate); !ok || s.Usage() != nil || s.Title() != "" || s.Background() != nil {
			t.Error("a new session is idle")
		}
		a.update("available_commands_update", `"availableCommands":[{"type":"command","name":"plan","description":"d"}]`)
		a.update("config_option_update", `"configOptions":[{"configId":"web","name":"W","type":"boolean","currentValue":true}]`)
		a.update("session_info_update", `"title":"T"`)
		a.update("usage_update", `"used":1,"size":2,"cost":{"amount":1,"currency":"EUR"}`)
		a.update("usage_update", `"used":3,"size":4`)
		a.state("running", `"background":[{"type":"tool_call","toolCallId":"x"}]`)
		synctest.Wait()
		if len(s.Commands()) != 1 || len(s.Options()) != 1 || s.Title() != "T" || len(s.Background()) != 1 {
			t.Error(s.Commands(), s.Options(), s.Title(), s.Background())
		}
		if c, ok := s.Command("plan"); !ok || c.Description != "d" || !s.OptionOn("web") || s.Option("web") != "" || s.Mode() != "" || s.Model() != "" {
			t.Error(c, s.OptionOn("web"), s.Option("web"), s.Mode(), s.Model())
		}
		if c, ok := s.Command("other"); ok || c != nil || s.OptionOn("other") || s.Option("other") != "" {
			t.Error(c, s.OptionOn("other"), s.Option("other"))
		}
		if u := s.Usage(); u.Used != 3 || u.Cost.Or(Cost{}).Currency != "EUR" {
			t.Error(u)
		}
		if _, ok := s.State().(*RunningStateUpdate); !ok {
			t.Error(s.State())
		}
		a.update("session_info_update", `"title":null`)
		a.update("config_option_update", `"configOptions":[
			{"configId":"m","name":"M","category":"mode","type":"select","currentValue":"ask","options":[{"value":"ask","name":"A"},{"value":"do","name":"D"}]},
			{"configId":"l","name":"L","category":"model","type":"select","currentValue":"big","options":[{"value":"big","name":"B"}]}]`)
		a.state("requires_action", "")
		a.state("idle", `"background":[]`)
		synctest.Wait()
		if s.Title() != "" || len(s.Background()) != 0 {
			t.Error(s.Title(), s.Background())
		}
		if s.Mode() != "ask" || s.Model() != "big" || s.Option("m") != "ask" || s.OptionOn("m") || s.OptionOn("web") {
			t.Error(s.Mode(), s.Model(), s.Option("m"))
		}
	})
}

// TestClientCancellable holds that only what says so can be cancelled, for as
// long as it does (S90).
func TestClientCancellable(t *testing.T) {
	entities := []struct {
		kind, id, method string
		cancel           func(context.Context, *ClientSession) error
	}{
		{"tool_call_update", "toolCallId", "tool_call/cancel", func(ctx context.Context, s *ClientSession) error { return s.CancelToolCall(ctx, "x") }},
		{"terminal_update", "terminalId", "terminal/cancel", func(ctx context.Context, s *ClientSession) error { return s.CancelTerminal(ctx, "x") }},
	}
	steps := []struct {
		capabilities string
		can          bool
	}{
		{``, false},
		{`,"capabilities":{"cancel":{}}`, true},
		{``, true},
		{`,"capabilities":{}`, false},
		{`,"capabilities":{"cancel":{}}`, true},
		{`,"capabilities":null`, false},
	}
	for _, e := range entities {
		single(t, Client{}, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
			for i, step := range steps {
				a.update(e.kind, fmt.Sprintf(`%q:"x"%s`, e.id, step.capabilities))
				synctest.Wait()
				done := laterErr(func() error { return e.cancel(t.Context(), s) })
				if step.can {
					f := a.next(e.method)
					want(t, "params", string(f.Params), fmt.Sprintf(`{"sessionId":"s",%q:"x"}`, e.id))
					a.answer(f, "{}")
				}
				if err := done(); (err == nil) != step.can || err != nil && !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("%s, step %d: %v", e.kind, i, err)
				}
			}
			a.silent()
		})
	}
	var c clientCancellable
	for i := range maxCancellable + 5 {
		c.set(fmt.Sprint(i), true)
	}
	if c.has("4") || !c.has("5") || len(c.ids) != maxCancellable || len(c.order) != maxCancellable {
		t.Errorf("%d are kept", len(c.ids))
	}
	c.set("5", false)
	c.set("nothing", false)
	if c.has("5") || len(c.order) != maxCancellable-1 {
		t.Error("not forgotten")
	}
}

// FuzzClientStateChange holds that old state updates do no harm, and are never
// lost.
func FuzzClientStateChange(f *testing.F) {
	f.Add([]byte(`{"sessionUpdate":"state_change","state":"idle","stop_reason":"end_turn"}`))
	f.Add([]byte(`{"sessionUpdate":"state_change","state":5}`))
	f.Add([]byte(`{"sessionUpdate":"state_change","state":"idle","stopReason":"a","stop_reason":"b"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		old := &acpv2.UnknownSessionUpdate{Type: "state_change", Raw: data}
		switch u := clientStateChange(old).(type) {
		case *acpv2.UnknownSessionUpdate:
			if u != old {
				t.Error("another unknown update")
			}
		case StateUpdate:
		default:
			t.Errorf("%T", u)
		}
	})
}

func TestClientStateChange(t *testing.T) {
	got := clientStateChange(&acpv2.UnknownSessionUpdate{Raw: json.RawMessage(`{"state":"idle","stop_reason":"refusal","stopReason":"end_turn"}`)})
	if diff := cmp.Diff(&IdleStateUpdate{StopReason: StopEndTurn}, got); diff != "" {
		t.Error(diff)
	}
}
