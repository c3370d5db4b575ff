package acp

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// TestClientTwoLoads holds that a session that is opened twice at once lives as
// long as one of the two succeeds.
func TestClientTwoLoads(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second bool // which succeed
	}{{"the second", false, true}, {"the first", true, false}, {"neither", false, false}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, a := clientLink(t, Client{}, 1, clientAllV1)
				load := func() (func() (*ClientSession, error), clientFrame) {
					get := later(func() (*ClientSession, error) { return conn.Load(t.Context(), "s", SessionConfig{Cwd: clientRoot}) })
					return get, a.next("session/load")
				}
				get1, f1 := load()
				get2, f2 := load()
				for _, step := range []struct {
					f   clientFrame
					get func() (*ClientSession, error)
					ok  bool
				}{{f1, get1, tt.first}, {f2, get2, tt.second}} {
					if step.ok {
						a.answer(step.f, "{}")
					} else {
						a.refuse(step.f, -32603, "null")
					}
					if s, err := step.get(); (err == nil) != step.ok || s != nil && s.usable() != nil {
						t.Errorf("%v, want success %v", err, step.ok)
					}
				}
				if _, ok := conn.Session("s"); ok != (tt.first || tt.second) {
					t.Errorf("the session is known: %v", ok)
				}
			})
		})
	}
}

// TestClientCloseNotOffered holds that a session of an agent of version 1 that
// cannot be told is closed all the same.
func TestClientCloseNotOffered(t *testing.T) {
	terminals := new(clientTerminals1)
	synctest.Test(t, func(t *testing.T) {
		conn, a := clientLink(t, Client{Terminals: lend(terminals)}, 1, "{}")
		s := a.session(conn)
		a.request(1, "terminal/create", `{"sessionId":"s","command":"ls"}`)
		a.response()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		a.silent()
		if _, ok := conn.Session("s"); ok || len(terminals.released) != 1 {
			t.Errorf("known: %v; released %v", ok, terminals.released)
		}
		s = a.session(conn)
		r := s.Prompt(t.Context(), Text("hi"))
		a.next("session/prompt")
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		a.next("session/cancel")
		if _, err := r.Wait(); !errors.Is(err, ErrSessionClosed) {
			t.Error(err)
		}
		if err := conn.CloseSession(t.Context(), "elsewhere"); !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
	})
}

// TestClientTitleOrder holds that a title that is told behind the answer to
// SetTitle stays.
func TestClientTitleOrder(t *testing.T) {
	for range 20 {
		both(t, Client{}, func(t *testing.T, s *ClientSession, a *clientScript) {
			get := later(func() (string, error) { return s.SetTitle(t.Context(), "old") })
			a.answer(a.next("session/set_title"), `{"title":"old"}`)
			a.update("session_info_update", `"title":"new"`)
			if got, err := get(); got != "old" || err != nil {
				t.Error(got, err)
			}
			synctest.Wait()
			if got := s.Title(); got != "new" {
				t.Errorf("title %q", got)
			}
		})
	}
}

// TestClientNewWaitsForUs holds that an agent may ask about a session before it
// has told its id, and that the two sides do not wait for each other for ever.
func TestClientNewWaitsForUs(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			conn, a := clientLink(t, Client{Files: clientFiles1{}}, 1, clientAllV1)
			get := later(func() (*ClientSession, error) {
				return conn.NewSession(t.Context(), SessionConfig{Cwd: clientRoot})
			})
			f := a.next("session/new")
			a.request(7, "fs/read_text_file", `{"sessionId":"s","path":"/w/f"}`)
			a.silent()
			want := `{"content":"text of /w/f"}`
			if answers {
				a.answer(f, `{"sessionId":"s"}`)
			} else {
				time.Sleep(clientUnknownWait)
				want = `-32002 {"sessionId":"s"}`
			}
			if got := a.response(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if !answers {
				a.answer(f, `{"sessionId":"s"}`)
			}
			if _, err := get(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUpdateText holds what text updates add, however the agent tells it.
func TestUpdateText(t *testing.T) {
	whole := func(id, content string) func(*clientScript) {
		return func(a *clientScript) { a.update("agent_message", `"messageId":"`+id+`"`+content) }
	}
	text := func(s string) string { return `,"content":[{"type":"text","text":"` + s + `"}]` }
	steps := []struct {
		name string
		tell func(*clientScript)
		want string
	}{
		{"a new message", whole("a", text("one")), "one"},
		{"that is longer now", whole("a", text("one two")), " two"},
		{"the same", whole("a", text("one two")), ""},
		{"no content", whole("a", `,"_meta":{}`), ""},
		{"shorter", whole("a", text("one")), ""},
		{"cleared", whole("a", `,"content":null`), ""},
		{"begun anew", whole("a", text("x")), "x"},
		{"a piece", func(a *clientScript) { a.say("ab") }, "ab"},
		{"another piece", func(a *clientScript) { a.say("c") }, "c"},
		{"all pieces", whole("m", text("abcd")), "d"},
		{"parts", whole("m", `,"content":[{"type":"text","text":"abcd"},{"type":"image","data":"","mimeType":"x"},{"type":"text","text":"e"}]`), "e"},
		{"in the middle of a letter", whole("m", text("abcdé")), ""},
		{"a thought", func(a *clientScript) { a.update("agent_thought", `"messageId":"t"`+text("hm")) }, ""},
	}
	var got []string
	c := Client{Update: func(_ context.Context, _ *ClientSession, u *Update) { got = append(got, u.Text()) }}
	single(t, c, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
		for _, step := range steps {
			got = nil
			step.tell(a)
			synctest.Wait()
			if len(got) != 1 || got[0] != step.want {
				t.Errorf("%s: %q, want %q", step.name, got, step.want)
			}
		}
		for i := range 3 * maxSaid {
			whole(string(rune('A'+i)), text("x"))(a)
		}
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.said) != maxSaid {
			t.Errorf("%d messages remembered", len(s.said))
		}
	})
}

// TestClientNoise holds that an agent that talks to a terminal can be recognised.
func TestClientNoise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := jsonrpc.Pipe()
		var told []jsonrpc.EventKind
		c := &Client{Engine: jsonrpc.Settings{Diagnose: func(e jsonrpc.Event) { told = append(told, e.Kind) }}}
		get := later(func() (*ClientConn, error) { return c.Connect(t.Context(), Over(clientLines{theirs})) })
		a := newClientScript(t, ours)
		a.next("initialize")
		a.send("Welcome! Type help.")
		a.send("> ")
		synctest.Wait()
		_ = ours.Close()
		_, err := get()
		const want = `it wrote a line that is not a message: "Welcome! Type help."`
		if err == nil || !errors.Is(err, jsonrpc.ErrClosed) || strings.Count(err.Error(), want) != 1 {
			t.Errorf("%v, want %s", err, want)
		}
		if len(told) != 2 || told[0] != jsonrpc.EventNoise {
			t.Errorf("told %v", told)
		}
	})
}

// TestClientExited holds that Connect tells of a program that has nothing to say.
func TestClientExited(t *testing.T) {
	for _, program := range []string{"true", "false"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Skip(err)
		}
		_, err = new(Client).Connect(t.Context(), Command(path))
		const zero = "the agent exited with status 0 before it answered"
		if !errors.Is(err, jsonrpc.ErrClosed) || strings.Contains(err.Error(), zero) != (program == "true") {
			t.Errorf("%s: %v", program, err)
		}
	}
}

// clientLines is a stream of lines.
type clientLines struct{ jsonrpc.Stream }

func (s clientLines) ReadFrame() (jsonrpc.Frame, error) {
	f, err := s.Stream.ReadFrame()
	f.Line = true
	return f, err
}
