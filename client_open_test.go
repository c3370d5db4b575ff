package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// TestClientEarlyUpdates holds that updates of a session whose session/new is
// not answered yet, a quirk of real agents, are neither lost nor late, and are
// bounded.
func TestClientEarlyUpdates(t *testing.T) {
	tests := []struct {
		name   string
		early  int
		queued bool // not handled yet when the answer arrives
		text   string
		expect int // of the early ones
	}{
		{"one", 1, false, "e", 1},
		{"one, queued", 1, true, "e", 1},
		{"some, queued", 50, true, "e", 50},
		{"many", clientEarlyUpdates + 10, false, "e", clientEarlyUpdates},
		{"large", 5, false, strings.Repeat("e", clientEarlyBytes/4), 3},
	}
	for version := 1; version <= 2; version++ {
		for _, how := range []string{"session/new", "session/fork"} {
			for _, tt := range tests {
				t.Run(fmt.Sprintf("v%d/%s/%s", version, how, tt.name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var told clientTold
						conn, a := clientLink(t, Client{Update: told.hook}, version, clientAll(version))
						a.say("of nobody") // nothing is being opened
						synctest.Wait()
						open := conn.NewSession
						if how == "session/fork" {
							open = func(ctx context.Context, cfg SessionConfig) (*ClientSession, error) { return conn.Fork(ctx, "x", cfg) }
						}
						get := later(func() (*ClientSession, error) { return open(t.Context(), SessionConfig{Cwd: clientRoot}) })
						f := a.next(how)
						for range tt.early {
							a.say(tt.text)
						}
						if !tt.queued {
							synctest.Wait()
						}
						a.answer(f, `{"sessionId":"s","configOptions":[],"_meta":{"k":1}}`)
						a.say("behind")
						s, err := get()
						if err != nil {
							t.Fatal(err)
						}
						list := told.take()
						if n := len(list); n != tt.expect+1 || list[n-1] != "say behind" {
							t.Errorf("%d updates", n)
						}
						if again, ok := conn.Session("s"); !ok || again != s || string(s.Meta()) != `{"k":1}` || s.Cwd() != clientRoot {
							t.Error("not open")
						}
						// The places of responses are still right.
						r := s.Prompt(t.Context(), Text("hi"))
						f = a.next("session/prompt")
						a.say("x")
						a.answer(f, `{"messageId":"u","stopReason":"end_turn"}`)
						if version == 2 {
							a.state("idle", `"stopReason":"end_turn"`)
						}
						if got, err := r.collect(); err != nil || !slices.Contains(got, "say x") {
							t.Error(got, err)
						}
					})
				})
			}
		}
	}
}

// TestClientEarlyRequest holds that a question about a session that is being
// opened waits until it is known.
func TestClientEarlyRequest(t *testing.T) {
	for version := 1; version <= 2; version++ {
		synctest.Test(t, func(t *testing.T) {
			conn, a := clientLink(t, Client{}, version, clientAll(version))
			get := later(func() (*ClientSession, error) { return conn.NewSession(t.Context(), SessionConfig{Cwd: clientRoot}) })
			f := a.next("session/new")
			a.request(1, "session/request_permission", permissionParams(version, clientAllowOption))
			a.request(2, "session/request_permission", strings.Replace(permissionParams(version, clientAllowOption), `"s"`, `"x"`, 1))
			a.silent()
			a.answer(f, `{"sessionId":"s"}`)
			if _, err := get(); err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for range 2 {
				x := a.next("")
				got[string(x.ID)] = x.Error == nil
			}
			want(t, "answers", got, map[string]bool{"1": true, "2": false})
		})
	}
}

// TestClientOpenFails holds that a session that could not be opened leaves
// nothing, also when the caller does not wait for it.
func TestClientOpenFails(t *testing.T) {
	for version := 1; version <= 2; version++ {
		synctest.Test(t, func(t *testing.T) {
			conn, a := clientLink(t, Client{}, version, clientAll(version))
			get := later(func() (*ClientSession, error) { return conn.NewSession(t.Context(), SessionConfig{Cwd: clientRoot}) })
			a.refuse(a.next("session/new"), -32000, `{"why":1}`)
			if _, err := get(); !errors.Is(err, jsonrpc.ErrAuthRequired) {
				t.Error(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			get = later(func() (*ClientSession, error) { return conn.Resume(ctx, "s", SessionConfig{Cwd: clientRoot}) })
			f := a.next("session/resume")
			cancel()
			if _, err := get(); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			a.next("$/cancel_request")
			a.answer(f, `{}`)
			synctest.Wait()
			if n := len(conn.OpenSessions()); n != 0 || conn.opening != 0 || conn.early != nil {
				t.Errorf("%d sessions, %d being opened", n, conn.opening)
			}
			// An id that the agent has used before is a new session.
			one := a.session(conn)
			two := a.session(conn)
			if one == two || !errors.Is(one.Cancel(t.Context()), ErrSessionClosed) || two.Cancel(t.Context()) != nil {
				t.Error("two sessions with one id")
			}
		})
	}
}

// TestClientLoad holds that history and the present are told apart (S89, S91).
func TestClientLoad(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told clientTold
				conn, a := clientLink(t, Client{Update: told.hook}, version, clientAll(version))
				get := later(func() (*ClientSession, error) { return conn.Load(t.Context(), "s", SessionConfig{Cwd: clientRoot}) })
				f := a.next(map[int]string{1: "session/load", 2: "session/resume"}[version])
				if version == 2 && !strings.Contains(string(f.Params), `"replayFrom":{"type":"start"}`) {
					t.Errorf("%s", f.Params)
				}
				a.say("old")
				expect := []string{"replayed say old"}
				if version == 2 { // the end of a turn in the history is not the state after it
					a.state("idle", `"stopReason":"end_turn"`)
					a.say("older")
					a.state("running", "")
					a.say("now")
					expect = append(expect, "replayed idle end_turn", "replayed say older", "running", "say now")
				}
				a.answer(f, `{"configOptions":[]}`)
				a.say("after")
				s, err := get()
				if err != nil || s.ID() != "s" {
					t.Fatal(err)
				}
				want(t, "updates", told.take(), append(expect, "say after"))

				// Opening again what is open gives the same session, and does
				// not close it when that fails.
				get = later(func() (*ClientSession, error) { return conn.Resume(t.Context(), "s", SessionConfig{Cwd: "/other"}) })
				f = a.next("session/resume")
				if strings.Contains(string(f.Params), "replayFrom") {
					t.Errorf("%s", f.Params)
				}
				a.say("live")
				a.answer(f, `{}`)
				if again, err := get(); err != nil || again != s || s.Cwd() != "/other" {
					t.Error(err)
				}
				get = later(func() (*ClientSession, error) { return conn.Load(t.Context(), "s", SessionConfig{Cwd: clientRoot}) })
				a.refuse(a.next(map[int]string{1: "session/load", 2: "session/resume"}[version]), -32603, "null")
				if _, err := get(); err == nil {
					t.Error("no error")
				}
				a.say("still")
				want(t, "updates", told.take(), []string{"say live", "say still"})
			})
		})
	}
}

// TestClientRestore holds which way Restore takes, and that it says so.
func TestClientRestore(t *testing.T) {
	const ok, missing, broken = `"result":{"sessionId":"n"}`, `"error":{"code":-32002,"message":"no"}`, `"error":{"code":-32603,"message":"no"}`
	const unknown = `"error":{"code":-32602,"message":"Invalid params: Unknown sessionId: s"}`
	const load, resume = `{"loadSession":true}`, `{"sessionCapabilities":{"resume":{}}}`
	const loadAndResume = `{"loadSession":true,"sessionCapabilities":{"resume":{}}}`
	tests := []struct {
		version int
		caps    string
		id      SessionID
		replay  bool
		answers []string
		calls   string
		how     Restored
	}{
		{1, loadAndResume, "s", false, []string{ok}, "session/resume", RestoredResumed},
		{1, loadAndResume, "s", true, []string{ok}, "session/load", RestoredLoaded},
		{1, load, "s", false, []string{ok}, "session/load", RestoredLoaded},
		{1, resume, "s", true, []string{ok}, "session/resume", RestoredResumed},
		{1, "{}", "s", true, []string{ok}, "session/new", RestoredNew},
		{1, loadAndResume, "", true, []string{ok}, "session/new", RestoredNew},
		{1, loadAndResume, "s", true, []string{missing, ok}, "session/load session/new", RestoredNew},
		{1, load, "s", true, []string{missing, ok}, "session/load session/new", RestoredNew},
		{1, load, "s", true, []string{unknown, ok}, "session/load session/new", RestoredNew},
		{2, `{"session":{}}`, "s", false, []string{unknown, ok}, "session/resume session/new", RestoredNew},
		{1, load, "s", true, []string{broken}, "session/load", 0},
		{1, "{}", "s", true, []string{broken}, "session/new", 0},
		{2, `{"session":{}}`, "s", false, []string{ok}, "session/resume", RestoredResumed},
		{2, `{"session":{}}`, "s", true, []string{ok}, "session/resume", RestoredLoaded},
		{2, `{"session":{}}`, "s", true, []string{missing, ok}, "session/resume session/new", RestoredNew},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, a := clientLink(t, Client{}, tt.version, tt.caps)
				type result struct {
					s   *ClientSession
					how Restored
				}
				get := later(func() (result, error) {
					s, how, err := conn.Restore(t.Context(), tt.id, SessionConfig{Cwd: clientRoot, Replay: tt.replay})
					return result{s, how}, err
				})
				calls := strings.Fields(tt.calls)
				for i, call := range calls {
					f := a.next(call)
					a.send(`{"jsonrpc":"2.0","id":%s,%s}`, f.ID, tt.answers[i])
				}
				r, err := get()
				if r.how != tt.how || (err == nil) != (tt.how != 0) || (r.s == nil) != (tt.how == 0) {
					t.Error(r.how, err)
				}
				if r.how == RestoredNew && r.s.ID() != "n" {
					t.Error(r.s.ID())
				}
				a.silent()
			})
		})
	}
	if s := fmt.Sprint(RestoredNew, RestoredResumed, RestoredLoaded, Restored(0)); s != "new resumed loaded not restored" {
		t.Error(s)
	}
}

// TestClientSessions holds that lists are told page by page and end.
func TestClientSessions(t *testing.T) {
	tests := []struct {
		name  string
		pages []string // results
		take  int      // how many are wanted; 0 for all
		got   string
		err   string
	}{
		{"empty", []string{`{"sessions":[]}`}, 0, "", ""},
		{"pages", []string{`{"sessions":[{"sessionId":"a","cwd":"/"},{"sessionId":"b","cwd":"/"}],"nextCursor":"1"}`, `{"sessions":[],"nextCursor":"2"}`,
			`{"sessions":[{"sessionId":"c","cwd":"/"}]}`}, 0, "a b c", ""},
		{"enough", []string{`{"sessions":[{"sessionId":"a","cwd":"/"},{"sessionId":"b","cwd":"/"}],"nextCursor":"1"}`}, 1, "a", ""},
		{"in circles", []string{`{"sessions":[],"nextCursor":"1"}`, `{"sessions":[],"nextCursor":"2"}`, `{"sessions":[],"nextCursor":"1"}`}, 0, "", "repeats itself"},
	}
	for version := 1; version <= 2; version++ {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("v%d/%s", version, tt.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					conn, a := clientLink(t, Client{}, version, clientAll(version))
					get := later(func() (list []string, err error) {
						for info, err := range conn.ListSessions(t.Context(), ListOptions{Cwd: "/", Archived: SessionArchiveFilterInclude}) {
							if err != nil {
								return list, err
							}
							if list = append(list, string(info.SessionID)); len(list) == tt.take {
								break
							}
						}
						return list, nil
					})
					for i, page := range tt.pages {
						f := a.next("session/list")
						var p struct{ Cursor, Cwd, Archived string }
						if err := json.Unmarshal(f.Params, &p); err != nil || (p.Cursor == "") != (i == 0) || p.Cwd != "/" || p.Archived != "include" {
							t.Errorf("%s", f.Params)
						}
						a.answer(f, page)
					}
					got, err := get()
					if strings.Join(got, " ") != tt.got || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
						t.Error(got, err)
					}
					a.silent()
				})
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := jsonrpc.Pipe()
		mux, pages := new(jsonrpc.Mux), 0
		rawInitialize.Handle(mux, func(context.Context, *json.RawMessage) (*json.RawMessage, error) {
			return new(json.RawMessage(clientHelloResult(2, `{"session":{}}`))), nil
		})
		acpv2.MethodSessionList.Handle(mux, func(context.Context, *acpv2.ListSessionsRequest) (*acpv2.ListSessionsResponse, error) {
			pages++ // a list without an end
			return &acpv2.ListSessionsResponse{NextCursor: new(acpv2.SessionListCursor(fmt.Sprint(pages)))}, nil
		})
		agent := jsonrpc.NewConn(ours, jsonrpc.Config{Mux: mux})
		defer agent.Close()
		conn, err := new(Client).Connect(t.Context(), Over(theirs))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, err := range conn.ListSessions(t.Context(), ListOptions{}) {
			if err == nil || !strings.Contains(err.Error(), "does not end") {
				t.Error(err)
			}
		}
		for _, o := range []ListOptions{{Cwd: "x"}, {Archived: SessionArchiveFilterOnly}} {
			for _, err := range conn.ListSessions(t.Context(), o) {
				if err == nil {
					t.Errorf("%+v was sent", o)
				}
			}
		}
	})
}

// TestClientEndSession holds that closing, deleting and archiving end the
// client's side, with everything that was told before, and that a session the
// agent does not know is gone (S31, S43).
func TestClientEndSession(t *testing.T) {
	ends := map[string]func(context.Context, *ClientSession) error{
		"session/close":   func(ctx context.Context, s *ClientSession) error { return s.Close(ctx) },
		"session/delete":  func(ctx context.Context, s *ClientSession) error { return s.Delete(ctx) },
		"session/archive": func(ctx context.Context, s *ClientSession) error { return s.Conn().Archive(ctx, s.ID()) },
	}
	var told clientTold
	for method, end := range ends {
		for _, answer := range []string{`"result":{}`, `"error":{"code":-32002,"message":"no"}`, `"error":{"code":-32603,"message":"no"}`} {
			t.Run(method+answer, func(t *testing.T) {
				both(t, Client{Update: told.hook}, func(t *testing.T, s *ClientSession, a *clientScript) {
					told.take()
					r := s.Prompt(t.Context(), Text("hi"))
					a.next("session/prompt")
					ended := laterErr(func() error { return end(t.Context(), s) })
					f := a.next(method)
					a.say("last")
					a.send(`{"jsonrpc":"2.0","id":%s,%s}`, f.ID, answer)
					a.say("nobody hears")
					err := ended()
					success := strings.Contains(answer, "result") || strings.Contains(answer, "-32002") && method != "session/archive"
					if (err == nil) != success {
						t.Fatal(err)
					}
					if !success {
						if err := s.Cancel(t.Context()); err != nil {
							t.Error(err)
						}
						return
					}
					if _, err := r.Wait(); !errors.Is(err, ErrSessionClosed) {
						t.Error(err)
					}
					list := told.take()
					if list[len(list)-1] != "say last" && !slices.Contains(list, "say last") || slices.Contains(list, "say nobody hears") {
						t.Error(list)
					}
					if _, ok := s.conn.Session("s"); ok {
						t.Error("still there")
					}
					if s.conn.Version() == 1 {
						a.next("$/cancel_request") // the prompt, which nobody waits for
					}
					for name, err := range map[string]error{
						"cancel": s.Cancel(t.Context()),
						"option": s.SetOption(t.Context(), "x", nil),
						"tool":   s.CancelToolCall(t.Context(), "x"),
						"term":   s.CancelTerminal(t.Context(), "x"),
					} {
						if !errors.Is(err, ErrSessionClosed) {
							t.Error(name, err)
						}
					}
				})
			})
		}
	}
}

// TestClientOptions holds how options, modes and models are changed, in either
// version and on agents that follow drafts.
func TestClientOptions(t *testing.T) {
	const option = `{"id":"model","configId":"model","name":"Model","category":"model","type":"select","currentValue":%q,"options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}`
	const modes = `"modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}`
	const models = `"models":{"currentModelId":"a","availableModels":[{"modelId":"a","name":"A"},{"modelId":"b","name":"B"}]}`
	values := func(s *ClientSession) string {
		var list []string
		for _, o := range s.Options() {
			v := "?"
			switch k := o.Kind.(type) {
			case *SessionConfigSelect:
				v = string(k.CurrentValue)
			case *SessionConfigBoolean:
				v = fmt.Sprint(k.CurrentValue)
			}
			list = append(list, string(o.ConfigID)+"="+v)
		}
		return strings.Join(list, " ")
	}
	tests := []struct {
		name, opened   string
		versions       []int
		before         string
		mode           string // the request SetMode sends
		afterMode      string
		model          string
		modelAnswer    string
		afterEverthing string
	}{
		{"options", fmt.Sprintf(`"configOptions":[`+option+`]`, "a"), []int{1, 2}, "model=a", "", "model=a",
			`session/set_config_option {"sessionId":"s","configId":"model",`, fmt.Sprintf(`{"configOptions":[`+option+`]}`, "b"), "model=b"},
		{"modes", modes + fmt.Sprintf(`,"configOptions":[`+option+`]`, "a"), []int{1}, "model=a mode=ask",
			`session/set_mode {"sessionId":"s","modeId":"code"}`, "model=a mode=code",
			`session/set_config_option`, fmt.Sprintf(`{"configOptions":[`+option+`]}`, "b"), "model=b mode=code"},
		{"models of drafts", modes + "," + models, []int{1}, "mode=ask model=a",
			`session/set_mode {"sessionId":"s","modeId":"code"}`, "mode=code model=a",
			`session/set_model {"sessionId":"s","modelId":"b"}`, `{}`, "mode=code model=b"},
		{"nothing", `"_meta":{}`, []int{1, 2}, "", "", "", "", "", ""},
	}
	for _, tt := range tests {
		for _, version := range tt.versions {
			t.Run(fmt.Sprintf("%s/v%d", tt.name, version), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					conn, a := clientLink(t, Client{}, version, clientAll(version))
					get := later(func() (*ClientSession, error) { return conn.NewSession(t.Context(), SessionConfig{Cwd: clientRoot}) })
					a.answer(a.next("session/new"), `{"sessionId":"s",`+tt.opened+`}`)
					s, err := get()
					if err != nil {
						t.Fatal(err)
					}
					want(t, "before", values(s), tt.before)
					change := func(f func(context.Context, SessionConfigValueID) error, value SessionConfigValueID, request, answer, after string) {
						t.Helper()
						done := laterErr(func() error { return f(t.Context(), value) })
						if request == "" {
							if err := done(); !errors.Is(err, errors.ErrUnsupported) {
								t.Error(err)
							}
							a.silent()
							return
						}
						method, params, _ := strings.Cut(request, " ")
						r := a.next(method)
						if !strings.HasPrefix(string(r.Params), params) {
							t.Errorf("%s, want %s", r.Params, params)
						}
						a.answer(r, answer)
						if err := done(); err != nil {
							t.Error(err)
						}
						want(t, "after", values(s), after)
					}
					change(s.SetMode, "code", tt.mode, "{}", tt.afterMode)
					change(s.SetModel, "b", tt.model, tt.modelAnswer, tt.afterEverthing)
					if tt.mode != "" {
						a.update("current_mode_update", `"currentModeId":"ask"`)
						synctest.Wait()
						want(t, "told", values(s), strings.Replace(tt.afterEverthing, "mode=code", "mode=ask", 1))
						if err := s.SetOption(t.Context(), "mode", &SessionConfigOptionValueBoolean{}); err == nil {
							t.Error("a mode that is a boolean")
						}
					}
					if err := s.SetOption(t.Context(), "other", &SessionConfigOptionValueBoolean{}); !errors.Is(err, errors.ErrUnsupported) {
						t.Error(err)
					}
				})
			})
		}
	}
}
