package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// optionAgent has a mode, a model and a switch.
func optionAgent() *Agent {
	a := echoAgent()
	a.NewSession = func(_ context.Context, s *AgentSession) error {
		sel := func(id, category, value string, values ...string) SessionConfigOption {
			list := SessionConfigSelectOptionList{}
			for _, v := range values {
				list = append(list, SessionConfigSelectOption{Value: SessionConfigValueID(v), Name: v})
			}
			return SessionConfigOption{
				ConfigID: SessionConfigID(id), Name: id, Category: SessionConfigOptionCategory(category),
				Kind: &SessionConfigSelect{CurrentValue: SessionConfigValueID(value), Options: list},
			}
		}
		_ = s.SetOptions(
			sel("mode", "mode", "ask", "ask", "code"), sel("model", "model", "fast", "fast", "smart"),
			SessionConfigOption{ConfigID: "web", Name: "web", Kind: &SessionConfigBoolean{}},
		)
		_ = s.SetCommands(SlashCommand{Name: "plan", Description: "make a plan"})
		return s.Say("welcome") // held until the client knows the session
	}
	return a
}

// TestOpen: what the answer to session/new tells, and what follows it.
func TestOpen(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		r := dialVersion(t, optionAgent(), v)
		var res map[string]any
		if err := json.Unmarshal(r.must("session/new", `{"cwd":"/","mcpServers":[]}`), &res); err != nil {
			t.Fatal(err)
		}
		r.await(func() bool { return slices.Contains(r.updates(), "agent_message_chunk welcome") })
		options, _ := res["configOptions"].([]any)
		if v == 1 {
			if !lookup(res, "modes.currentModeId") || len(options) != 2 {
				t.Errorf("modes %v, %d options: a boolean one was not asked for", res["modes"], len(options))
			}
			if diff := cmp.Diff([]string{"available_commands_update", "agent_message_chunk welcome"}, r.updates()); diff != "" {
				t.Errorf("updates (-want +got):\n%s", diff)
			}
		} else if len(options) != 3 || !lookup(res, "availableCommands") {
			t.Errorf("result %v", res)
		}
	})
}

// TestOptions: options change by whatever name the client knows them.
func TestOptions(t *testing.T) {
	var asked []string
	a := optionAgent()
	a.SetOption = func(_ context.Context, _ *AgentSession, id SessionConfigID, v SessionConfigOptionValue) error {
		asked = append(asked, string(id))
		if id, ok := v.(*SessionConfigOptionValueID); ok && id.Value == "code" && len(asked) == 1 {
			return errors.New("not now")
		}
		return nil
	}
	cases := map[int][][3]string{
		1: {
			{"session/set_mode", `"modeId":"code"`, "-32603"},
			{"session/set_mode", `"modeId":"code"`, "mode=code"},
			{"session/set_mode", `"modeId":"nope"`, "-32602"},
			{"session/set_model", `"modelId":"smart"`, "model=smart"},
			{"session/set_config_option", `"configId":"mode","value":"ask"`, "mode=ask"},
			{"session/set_config_option", `"configId":"web","type":"boolean","value":true`, "web=true"},
			{"session/set_config_option", `"configId":"web","value":"x"`, "-32602"},
		},
		2: {
			{"session/set_config_option", `"configId":"mode","type":"id","value":"code"`, "-32603"},
			{"session/set_config_option", `"configId":"mode","type":"id","value":"code"`, "mode=code"},
			{"session/set_config_option", `"configId":"model","type":"id","value":"nope"`, "-32602"},
			{"session/set_config_option", `"configId":"model","type":"_x","value":"fast"`, "-32602"},
			{"session/set_config_option", `"configId":"web","type":"boolean","value":true`, "web=true"},
			{"session/set_config_option", `"configId":"none","type":"id","value":"x"`, "-32602"},
			{"session/set_mode", `"modeId":"code"`, "-32601"},
		},
	}
	versions(t, func(t *testing.T, v int) {
		asked = nil
		r := dialVersion(t, a, v)
		id := r.session()
		s, _ := r.agent.Session(SessionID(id))
		for _, c := range cases[v] {
			_, err := r.call(c[0], `{"sessionId":"`+id+`",`+c[1]+`}`)
			if strings.HasPrefix(c[2], "-") {
				if fmt.Sprint(code(err)) != c[2] {
					t.Errorf("%s %s: %v, want %s", c[0], c[1], err, c[2])
				}
				continue
			}
			name, want, _ := strings.Cut(c[2], "=")
			got := string(s.Option(SessionConfigID(name)))
			if name == "web" {
				got = fmt.Sprint(s.OptionOn("web"))
			}
			if err != nil || got != want {
				t.Errorf("%s %s: %v, %s is %q", c[0], c[1], err, name, got)
			}
		}
		if v == 1 && !slices.Contains(r.updates(), "current_mode_update code") {
			t.Errorf("the mode was not told: %q", r.updates())
		}
	})
	a.NoLegacy = true
	r := dialVersion(t, a, 1)
	if _, err := r.call("session/set_model", `{"sessionId":"`+r.session()+`","modelId":"smart"}`); code(err) != jsonrpc.CodeMethodNotFound {
		t.Errorf("without legacy methods: %v", err)
	}
}

// TestResumeHook: loading and resuming by one hook, with its history before the
// answer (S89, S91), and new ids that do not meet the old ones.
func TestResumeHook(t *testing.T) {
	a := echoAgent()
	a.ResumeSession = func(_ context.Context, s *AgentSession, replay bool) error {
		if s.ID() != "saved" {
			return SessionNotFound(s.ID())
		}
		if replay {
			_ = s.User(Text("question"))
			_ = s.Say("answer")
		}
		s.SetAnswerMeta(json.RawMessage(`{"m":1}`))
		return s.SetCommands(SlashCommand{Name: "c", Description: "d"})
	}
	versions(t, func(t *testing.T, v int) {
		r := dialVersion(t, a, v)
		load, resume := "session/load", "session/resume"
		params := `{"sessionId":"saved","cwd":"/","mcpServers":[]}`
		replay := params
		want := []string{"user_message_chunk question", "agent_message_chunk answer"}
		if v == 2 {
			replay = `{"sessionId":"saved","cwd":"/","replayFrom":{"type":"start"}}`
			load = "session/resume"
			want = []string{"user_message question", "agent_message_chunk answer", "replay_complete", "idle"}
		}
		if res := r.must(load, replay); !strings.Contains(string(res), `"_meta":{"m":1}`) {
			t.Errorf("result %s", res)
		}
		conversation := func(from int) []string {
			return slices.DeleteFunc(r.updates()[from:], func(u string) bool { return u == "available_commands_update" })
		}
		if diff := cmp.Diff(want, conversation(0)); diff != "" {
			t.Errorf("updates before the answer (-want +got):\n%s", diff)
		}
		if v == 2 { // the name it had
			r.must("session/load", params)
			if got := conversation(0); len(got) != 8 {
				t.Errorf("session/load: %q", got)
			}
		}
		before := len(r.updates())
		res := r.must(resume, params)
		if got := conversation(before); len(got) != v-1 {
			t.Errorf("resumed with %q", got)
		}
		if told := slices.Contains(r.updates(), "available_commands_update"); !told && !strings.Contains(string(res), `"availableCommands":[{`) {
			t.Error("nobody told the commands")
		}
		if _, err := r.call(resume, `{"sessionId":"other","cwd":"/"}`); code(err) != jsonrpc.CodeResourceNotFound {
			t.Errorf("unknown session: %v", err)
		}
		if _, ok := r.agent.Session("other"); ok {
			t.Error("a session that does not exist is open")
		}
		s, _ := r.agent.Session("saved")
		if id := s.nextMessage(); id == "msg_1" || !strings.HasPrefix(string(id), "msg_") {
			t.Errorf("new message id %s", id)
		}
		if stop, err := r.turn("saved", "more"); stop != "end_turn" || err != nil {
			t.Errorf("turn: %q, %v", stop, err)
		}
	})
}

// TestBuiltInSessions: an agent with nothing but a Prompt hook has the baseline
// of version 2: its sessions can be listed, resumed with their history, closed.
func TestBuiltInSessions(t *testing.T) {
	r := dialVersion(t, &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
		t.Think("a")
		t.Think("b")
		_ = t.Notice(NoticeSeverityInfo, "not history", "")
		_ = t.ToolCall(ToolCall{Title: "Tool"}).Complete()
		t.Say("one ")
		t.Say("piece")
		return StopEndTurn, nil
	}}, 2)
	s := r.session()
	if _, err := r.turn(s, "hi"); err != nil {
		t.Fatal(err)
	}
	before := len(r.updates())
	r.must("session/resume", `{"sessionId":"`+s+`","cwd":"/tmp","replayFrom":{"type":"start"}}`)
	want := []string{
		"user_message hi", "agent_thought ab", "tool_call_update call_1 Tool in_progress", "tool_call_update call_1 completed",
		"agent_message one piece", "replay_complete", "idle",
	}
	if diff := cmp.Diff(want, r.updates()[before:]); diff != "" {
		t.Errorf("replay (-want +got):\n%s", diff)
	}
	before = len(r.updates())
	r.must("session/resume", `{"sessionId":"`+s+`","cwd":"/tmp"}`)
	if diff := cmp.Diff([]string{"idle"}, r.updates()[before:]); diff != "" {
		t.Errorf("resume (-want +got):\n%s", diff)
	}
	for _, q := range []struct{ params, want string }{
		{`{}`, s}, {`{"cwd":"/tmp"}`, s}, {`{"cwd":"/else"}`, `"sessions":[]`},
	} {
		if got := r.must("session/list", q.params); !strings.Contains(string(got), q.want) {
			t.Errorf("list %s: %s", q.params, got)
		}
	}
	r.must("session/close", `{"sessionId":"`+s+`"}`)
	r.must("session/close", `{"sessionId":"`+s+`"}`) // S43
	if _, err := r.call("session/prompt", promptParams(s, "x")); code(err) != jsonrpc.CodeResourceNotFound {
		t.Errorf("prompt to a closed session: %v", err)
	}
	if _, err := r.call("session/resume", `{"sessionId":"`+s+`","cwd":"/"}`); code(err) != jsonrpc.CodeResourceNotFound {
		t.Errorf("resume of a closed session: %v", err)
	}
}

// TestHistoryBound: the oldest is forgotten first, and memory stays bounded.
func TestHistoryBound(t *testing.T) {
	var h history
	for i := range 3 * historyUpdates {
		h.add(&UserMessage{MessageID: MessageID(fmt.Sprint(i)), Content: Set([]ContentBlock{Text("x")})})
	}
	if n := len(h.items); n > historyUpdates || n < historyUpdates/4 || h.bytes > historyBytes {
		t.Errorf("%d updates, %d bytes", n, h.bytes)
	}
	all := h.all()
	if last := all[len(all)-1].(*UserMessage).MessageID; last != MessageID(fmt.Sprint(3*historyUpdates-1)) {
		t.Errorf("last is %s", last)
	}
	for range 3 * historyBytes / 1000 {
		h.addText(agentMessage, "m", strings.Repeat("y", 1000))
	}
	if h.bytes > 3*historyBytes || len(h.items) > 3 {
		t.Errorf("%d items, %d bytes of text", len(h.items), h.bytes)
	}
}

// TestCloseCancels: closing ends the turn first, as cancelled, and tells so
// before its answer (S43).
func TestCloseCancels(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		started, closed := make(chan struct{}), make(chan SessionID, 1)
		r := dialVersion(t, &Agent{
			Prompt: func(ctx context.Context, _ *Turn) (StopReason, error) {
				close(started)
				<-ctx.Done()
				return StopEndTurn, nil
			},
			CloseSession: func(_ context.Context, s *AgentSession) error { closed <- s.ID(); return nil },
		}, v)
		s := r.session()
		session, _ := r.agent.Session(SessionID(s))
		done := make(chan string, 1)
		go func() {
			res, _ := r.call("session/prompt", promptParams(s, "go"))
			done <- string(res)
		}()
		<-started
		r.must("session/close", `{"sessionId":"`+s+`"}`)
		if v == 2 {
			if got := r.updates(); got[len(got)-1] != "idle cancelled" {
				t.Errorf("updates %q", got)
			}
		}
		if got := <-done; v == 1 && !strings.Contains(got, "cancelled") {
			t.Errorf("prompt: %s", got)
		}
		if id := <-closed; string(id) != s {
			t.Errorf("closed %s", id)
		}
		<-session.Context().Done()
		if err := session.Say("late"); !errors.Is(err, ErrSessionClosed) {
			t.Errorf("a closed session sends: %v", err)
		}
	})
}

// TestListCursor: a cursor that nobody can have handed out does not reach a hook that returns everything at once. One of
// another connection does reach a hook that has pages.
func TestListCursor(t *testing.T) {
	for v := 1; v <= 2; v++ {
		for _, pages := range []bool{false, true} {
			var asked []string
			agent := &Agent{
				Prompt: func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil },
				ListSessions: func(_ context.Context, _ *AgentConn, q *SessionQuery) (*SessionPage, error) {
					page := &SessionPage{Sessions: []SessionInfo{{SessionID: "a", Cwd: "/"}}}
					switch {
					case q.Cursor != nil:
						asked = append(asked, string(*q.Cursor))
					case pages:
						page.NextCursor = new(acpv2.SessionListCursor("more"))
					}
					return page, nil
				},
			}
			conn, _ := linkedOnly(t, agent, v)
			list := func(params string) error {
				return conn.Conn().Call(t.Context(), "session/list", json.RawMessage(params), nil)
			}
			err := list(`{"cursor":"elsewhere"}`)
			var said *jsonrpc.Error
			if refused := errors.As(err, &said) && said.Code == jsonrpc.CodeInvalidParams; refused == pages || !refused && err != nil {
				t.Errorf("version %d, pages %v: %v", v, pages, err)
			}
			if err := list(`{}`); err != nil {
				t.Error(err)
			}
			if want := map[bool]int{true: 1}[pages]; len(asked) != want {
				t.Errorf("version %d, pages %v: the hook was asked for %q", v, pages, asked)
			}
		}
	}
}

// TestSessionHooks: delete closes first, archive likewise, titles are trimmed.
func TestSessionHooks(t *testing.T) {
	var log []string
	a := echoAgent()
	a.CloseSession = func(context.Context, *AgentSession) error { log = append(log, "close"); return nil }
	a.DeleteSession = func(_ context.Context, _ *AgentConn, id SessionID) error { log = append(log, "delete"); return nil }
	a.ArchiveSession = func(_ context.Context, _ *AgentConn, _ SessionID, on bool) error {
		log = append(log, fmt.Sprint("archive ", on))
		return nil
	}
	a.SessionStatus = func(_ context.Context, _ *AgentConn, id SessionID) (SessionStatus, error) {
		if id == "saved" {
			return SessionStatusSaved, nil
		}
		return "", SessionNotFound(id)
	}
	a.SetTitle = func(_ context.Context, _ *AgentConn, _ SessionID, title string) (string, error) {
		return title + "!", nil
	}
	a.ForkSession = func(_ context.Context, s *AgentSession, from SessionID) error {
		s.SetID(from + "-fork")
		return nil
	}
	versions(t, func(t *testing.T, v int) {
		log = nil
		r := dialVersion(t, a, v)
		one, two := r.session(), r.session()
		r.must("session/delete", `{"sessionId":"`+one+`"}`)
		r.must("session/archive", `{"sessionId":"`+two+`"}`)
		r.must("session/unarchive", `{"sessionId":"`+two+`"}`)
		if diff := cmp.Diff([]string{"close", "delete", "close", "archive true", "archive false"}, log); diff != "" {
			t.Errorf("hooks (-want +got):\n%s", diff)
		}
		three := r.session()
		for _, c := range []struct{ method, params, want string }{
			{"session/status", `{"sessionId":"` + three + `"}`, `"status":"open"`},
			{"session/status", `{"sessionId":"saved"}`, `"status":"saved"`},
			{"session/set_title", `{"sessionId":"` + three + `","title":"  T "}`, `"title":"T!"`},
			{"session/fork", `{"sessionId":"` + three + `","cwd":"/"}`, three + "-fork"},
		} {
			if got := r.must(c.method, c.params); !strings.Contains(string(got), c.want) {
				t.Errorf("%s: %s, want %s", c.method, got, c.want)
			}
		}
		if _, err := r.call("session/set_title", `{"sessionId":"`+three+`","title":"  "}`); code(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("a blank title: %v", err)
		}
		if _, err := r.call("session/fork", `{"sessionId":"`+three+`","cwd":"/"}`); code(err) != jsonrpc.CodeInternalError {
			t.Errorf("an id that is in use: %v", err)
		}
	})
}
