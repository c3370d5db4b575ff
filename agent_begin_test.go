package acp

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
)

// choosing is an agent with a model, whose SetOption refuses one of the values, and a
// switch. It takes initial values if ahead is set.
func choosing(ahead bool) *Agent {
	options := func() []SessionConfigOption {
		return []SessionConfigOption{
			{ConfigID: "model", Name: "Model", Kind: &SessionConfigSelect{CurrentValue: "small",
				Options: SessionConfigSelectOptionList{{Value: "small", Name: "S"}, {Value: "large", Name: "L"}, {Value: "forbidden", Name: "F"}}}},
			{ConfigID: "fast", Name: "Fast", Category: acpv2.SessionConfigOptionCategorySpeed, Kind: &SessionConfigBoolean{}},
		}
	}
	a := echoAgent()
	a.NewSession = func(_ context.Context, s *AgentSession) error { return s.SetOptions(options()...) }
	a.SetOption = func(_ context.Context, _ *AgentSession, _ SessionConfigID, v SessionConfigOptionValue) error {
		if x, ok := v.(*SessionConfigOptionValueID); ok && x.Value == "forbidden" {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "not for you")
		}
		return nil
	}
	if ahead {
		a.SessionOptions = func(_ context.Context, _ *AgentConn, q *OptionsQuery) (*OptionsPreview, error) {
			if q.SessionID != "" {
				return nil, SessionNotFound(q.SessionID)
			}
			return &OptionsPreview{ConfigOptions: options()}, nil
		}
	}
	return a
}

// inForce spells the values of options.
func inForce(options []SessionConfigOption) string {
	var out []string
	for _, o := range options {
		switch k := o.Kind.(type) {
		case *SessionConfigSelect:
			out = append(out, string(o.ConfigID)+"="+string(k.CurrentValue))
		case *SessionConfigBoolean:
			out = append(out, string(o.ConfigID)+"="+map[bool]string{true: "on", false: "off"}[k.CurrentValue])
		}
	}
	return strings.Join(out, " ")
}

func idValue(id SessionConfigID, v SessionConfigValueID) InitialOption {
	return InitialOption{ConfigID: id, Value: &SessionConfigOptionValueID{Value: v}}
}

// TestSessionOptions: the agent says what a session would begin with and opens none, and
// the client asks only an agent that has advertised that.
func TestSessionOptions(t *testing.T) {
	for _, agent := range []int{1, 2} {
		for _, through := range []int{0, 1, 2} { // the client's version at a bridge; 0 is none
			a := choosing(true)
			a.MinVersion, a.MaxVersion = agent, agent
			c := beginClient(t, a, through)
			p, err := c.SessionOptions(t.Context(), OptionsQuery{Cwd: "/"})
			if err != nil || inForce(p.ConfigOptions) != "model=small fast=off" {
				t.Fatalf("version %d, bridge %d: %+v, %v", agent, through, p, err)
			}
			if _, err := c.SessionOptions(t.Context(), OptionsQuery{Cwd: "/", SessionID: "no"}); !IsSessionNotFound(err) {
				t.Errorf("version %d, bridge %d: a session that is not there: %v", agent, through, err)
			}
			if _, err := c.SessionOptions(t.Context(), OptionsQuery{Cwd: "rel"}); err == nil {
				t.Error("a relative directory is accepted")
			}
			if n := len(c.OpenSessions()); n != 0 {
				t.Errorf("%d sessions are open", n)
			}
			a = choosing(false)
			a.MinVersion, a.MaxVersion = agent, agent
			if _, err := beginClient(t, a, through).SessionOptions(t.Context(), OptionsQuery{}); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("version %d, bridge %d: not advertised, but: %v", agent, through, err)
			}
		}
	}
}

// beginClient connects to an agent, through a bridge for clients of a version if that is
// not 0.
func beginClient(t *testing.T, a *Agent, bridge int) *ClientConn {
	t.Helper()
	if bridge != 0 {
		return bridged(t, a, a.MaxVersion, &Client{}, bridge)
	}
	c, err := (&Client{Logger: logtest.New(t)}).Connect(t.Context(), InProcess(logged(t, a)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestInitialOptions: options begin with the values that were asked for. The client sets
// the others afterwards, and reports with the reason which of them it cannot set.
func TestInitialOptions(t *testing.T) {
	for _, agent := range []int{1, 2} {
		for _, ahead := range []bool{true, false} {
			for _, through := range []int{0, 1, 2} {
				a := choosing(ahead)
				a.MinVersion, a.MaxVersion = agent, agent
				c := beginClient(t, a, through)
				s, err := c.NewSession(t.Context(), SessionConfig{Cwd: "/", Options: []InitialOption{
					idValue("model", "large"), {ConfigID: "fast", Value: &SessionConfigOptionValueBoolean{Value: true}},
					idValue("model", "forbidden"), idValue("model", "none"), idValue("other", "x"),
				}})
				if err != nil {
					t.Fatal(err)
				}
				if got := inForce(s.Options()); got != "model=large fast=on" {
					t.Errorf("version %d, ahead %t, bridge %d: %s", agent, ahead, through, got)
				}
				var left []string
				for _, o := range s.RejectedOptions() {
					left = append(left, string(o.ConfigID))
					if o.Err == nil {
						t.Errorf("%s: no reason", o.ConfigID)
					}
				}
				if diff := cmp.Diff([]string{"model", "model", "other"}, left); diff != "" {
					t.Error(diff)
				}
			}
		}
	}
}

// TestInitialOptionsRaw: on the wire of the agent, values that do not fit are ignored, a
// kind of value that nobody knows is refused in version 2, and without the capability all
// of it is.
func TestInitialOptionsRaw(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		r := dialVersion(t, choosing(true), v)
		res := string(r.must("session/new", `{"cwd":"/","mcpServers":[],"configOptions":[{"configId":"model","type":"id","value":"large"},`+
			`{"configId":"model","type":"boolean","value":true},{"configId":"zzz","type":"id","value":"x"},7]}`))
		if !strings.Contains(res, `"currentValue":"large"`) {
			t.Error(res)
		}
		if v == 1 && strings.Contains(res, `"boolean"`) {
			t.Errorf("a switch for a client that does not know them: %s", res)
		}
		if v == 2 {
			_, err := r.call("session/new", `{"cwd":"/","configOptions":[{"configId":"model","type":"_new","value":1}]}`)
			if code(err) != jsonrpc.CodeInvalidParams {
				t.Errorf("an unknown kind of value: %v", err)
			}
		}
		preview := string(r.must("session/options", `{"cwd":"/"}`))
		if !strings.Contains(preview, `"currentValue":"small"`) || v == 1 && strings.Contains(preview, `"boolean"`) {
			t.Error(preview)
		}
		if _, err := r.call("session/options", `{"cwd":"rel"}`); code(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("a relative directory: %v", err)
		}
		r = dialVersion(t, choosing(false), v)
		res = string(r.must("session/new", `{"cwd":"/","mcpServers":[],"configOptions":[{"configId":"model","type":"id","value":"large"}]}`))
		if !strings.Contains(res, `"currentValue":"small"`) {
			t.Errorf("not advertised, but taken: %s", res)
		}
	})
}

// TestReplayComplete: a resume that asks for the history is sent its end exactly once,
// before the answer, also if there is none; one that does not ask, or fails, is not.
func TestReplayComplete(t *testing.T) {
	saved := func(updates ...SessionUpdate) func(ctx context.Context, s *AgentSession, replay bool) error {
		return func(_ context.Context, s *AgentSession, replay bool) error {
			for _, u := range updates {
				if err := s.Send(u); err != nil {
					return err
				}
			}
			if s.ID() == "broken" {
				return errors.New("the disk is full")
			}
			return nil
		}
	}
	said := &AgentMessageChunk{MessageID: "m", Content: Text("x")}
	for _, x := range []struct {
		name, id string
		replay   bool
		resume   func(ctx context.Context, s *AgentSession, replay bool) error
		want     []string
	}{
		{"history", "a", true, saved(said), []string{"agent_message_chunk x", "replay_complete", "idle"}},
		{"no history", "a", true, saved(), []string{"replay_complete", "idle"}},
		{"not asked for", "a", false, saved(), []string{"idle"}},
		{"failed", "broken", true, saved(said), []string{"agent_message_chunk x"}},
		{"said by the agent", "a", true, saved(said, new(acpv2.ReplayComplete)), []string{"agent_message_chunk x", "replay_complete", "idle"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			a := echoAgent()
			a.ResumeSession = x.resume
			r := dialVersion(t, a, 2)
			params := `{"sessionId":"` + x.id + `","cwd":"/"}`
			if x.replay {
				params = `{"sessionId":"` + x.id + `","cwd":"/","replayFrom":{"type":"start"}}`
			}
			_, err := r.call("session/resume", params)
			if (err != nil) != (x.id == "broken") {
				t.Fatal(err)
			}
			if diff := cmp.Diff(x.want, r.updates()); diff != "" {
				t.Error(diff)
			}
			if x.id != "broken" { // it is open now
				before := len(r.updates())
				r.must("session/resume", params)
				n := 0
				for _, u := range r.updates()[before:] {
					if u == "replay_complete" {
						n++
					}
				}
				if n != map[bool]int{true: 1}[x.replay] {
					t.Errorf("again: %q", r.updates()[before:])
				}
			}
		})
	}
	t.Run("subagent", func(t *testing.T) {
		a := echoAgent()
		a.ResumeSession = saved(&SubagentUpdate{SessionID: "child"}, said)
		r := dialVersion(t, a, 2)
		r.must("session/resume", `{"sessionId":"a","cwd":"/","replayFrom":{"type":"start"}}`)
		want := []string{"subagent_update", "agent_message_chunk x", "replay_complete", "replay_complete", "idle"}
		if diff := cmp.Diff(want, r.updates()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestReplayCompleteBridge: a client of version 2 is sent the end of the history of any
// agent exactly once; what comes before it, and nothing after it, is history.
func TestReplayCompleteBridge(t *testing.T) {
	for _, agent := range []int{1, 2} {
		a := echoAgent()
		a.MinVersion, a.MaxVersion = agent, agent
		a.ResumeSession = func(_ context.Context, s *AgentSession, _ bool) error {
			return s.Send(&AgentMessageChunk{MessageID: "m", Content: Text("x")})
		}
		var got []string
		c := bridged(t, a, agent, &Client{Update: func(_ context.Context, _ *ClientSession, u *Update) {
			got = append(got, u.Kind()+map[bool]string{true: " replayed"}[u.Replayed])
		}}, 2)
		if _, err := c.Load(t.Context(), "s", SessionConfig{Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
		want := []string{"agent_message_chunk replayed", "replay_complete", "state_update"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("agent of version %d: %s", agent, diff)
		}
		_ = c.Close()
	}
}

// TestReplayTruncated: the client distinguishes a history that breaks off from a complete
// one, and from a session that does not exist.
func TestReplayTruncated(t *testing.T) {
	for _, x := range []struct {
		name      string
		send, end bool
		err       error
		truncated bool
	}{
		{"breaks off", true, false, errors.New("no"), true},
		{"complete", true, true, errors.New("no"), false},
		{"nothing came", false, false, errors.New("no"), false},
		{"works", true, false, nil, false},
	} {
		a := echoAgent()
		a.MinVersion, a.MaxVersion = 2, 2
		a.ResumeSession = func(_ context.Context, s *AgentSession, _ bool) error {
			if x.send {
				_ = s.Send(&AgentMessageChunk{MessageID: "m", Content: Text("x")})
			}
			if x.end {
				_ = s.Send(new(acpv2.ReplayComplete))
			}
			return x.err
		}
		c := beginClient(t, a, 0)
		_, err := c.Load(t.Context(), "s", SessionConfig{Cwd: "/"})
		if (err == nil) != (x.err == nil) || errors.Is(err, ErrTruncated) != x.truncated {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}
