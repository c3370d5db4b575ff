package acptest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/internal/pattern"
	"github.com/goacp/acp/jsonrpc"
)

func jsonLine(s string) bool { return json.Valid([]byte(s)) && !strings.ContainsAny(s, "\r\n") }

// under is the stream of a peer under test that is moved by hand.
type under struct {
	t *testing.T
	s jsonrpc.Stream
}

func (u under) write(frame string) {
	u.t.Helper()
	if err := u.s.WriteFrame([]byte(frame)); err != nil {
		u.t.Error(err)
	}
}

func (u under) read() string {
	u.t.Helper()
	f, err := u.s.ReadFrame()
	if err != nil {
		u.t.Error(err)
	}
	return string(f.Data)
}

func (u under) expect(want string) {
	u.t.Helper()
	if got := u.read(); got != want {
		u.t.Errorf("received %s, want %s", got, want)
	}
}

// run plays a script against f, in a bubble, and returns how it ended.
func run(t *testing.T, play func(context.Context, jsonrpc.Stream, string) error, script string, f func(u under)) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, b := jsonrpc.Pipe()
		over := make(chan error, 1)
		go func() { over <- play(t.Context(), a, script) }()
		f(under{t, b})
		_ = b.Close()
		err = <-over
	})
	return err
}

func TestPlay(t *testing.T) {
	err := run(t, PlayAgent, `
		-> {"id":$id,"method":"ping","params":{"n":$n,...}}
		<- {"id":$id,"result":{"pong":$n}}
		-> {"method":"note"}
		!sleep 10ms
		!raw <noise>
		...
		-> {"method":"last"}
	`, func(u under) {
		u.write(`{"jsonrpc":"2.0","id":"7","method":"ping","params":{"x":1,"n":[1.50]}}`)
		u.expect(`{"jsonrpc":"2.0","id":"7","result":{"pong":[1.50]}}`)
		start := time.Now()
		u.write(`{"jsonrpc":"2.0","method":"note"}`)
		u.expect(`<noise>`)
		if d := time.Since(start); d != 10*time.Millisecond {
			t.Errorf("slept %v", d)
		}
		u.write(`{"jsonrpc":"2.0","method":"other"}`)
		u.write(`not even JSON`)
		u.write(`{"jsonrpc":"2.0","method":"last"}`)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPlayErrors(t *testing.T) {
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, tc := range []struct {
		name, script, send string
		line               int
		reason, got        string
		is                 error
	}{
		{"mismatch", "# first\n-> {\"method\":\"pong\",...}", ping, 2, `method is "ping", expected "pong"`, ping, nil},
		{"no JSON", "-> {...}", "{oops", 1, "a frame that is not JSON", "{oops", nil},
		{"no version", "-> {...}", `{"method":"x"}`, 1, `jsonrpc is something else, expected "2.0"`, `{"method":"x"}`, nil},
		{"closed", "-> {...}\n-> {...}", ping, 2, "the peer closed the stream where a frame is expected", "", io.EOF},
		{"closed while skipping", "...\n-> {\"method\":\"pong\"}", ping, 2, "the peer closed the stream where a frame is expected", ping, io.EOF},
		{"too much", "-> {...}", ping + "\n" + ping, 2, "a frame behind the end of the script", ping, nil},
		{"not closed", "!eof", ping, 1, "a frame where the peer has to close the stream", ping, nil},
		{"not reopened", "-> {...}\n!reopen\n-> {...}", ping, 2, "the transport was not opened again", "", nil},
		{"not initialize", "!initialize 1", ping, 1, "something else than a request initialize", ping, nil},
		{"no version asked", "!initialize 1", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, 1, "initialize without a protocolVersion", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, nil},
		{"a session too many", "!session a\n!session b", `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`, 2, "the peer closed the stream where a request session/new is expected", "", io.EOF},
		{"syntax", "-> {", "", 1, "line 1: end where the name of a member is expected", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := run(t, PlayAgent, tc.script, func(u under) {
				for _, l := range strings.Split(tc.send, "\n") {
					if l != "" {
						u.write(l)
					}
				}
				if strings.HasPrefix(tc.script, "!session") {
					u.read()
				}
			})
			bad, ok := errors.AsType[*ScriptError](err)
			if !ok {
				t.Fatalf("error %v", err)
			}
			if bad.Line != tc.line || bad.Reason != tc.reason || bad.Got != tc.got {
				t.Errorf("line %d: %q\ngot %q", bad.Line, bad.Reason, bad.Got)
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("%v is not %v", err, tc.is)
			}
		})
	}
}

func TestPlayErrorText(t *testing.T) {
	err := run(t, PlayAgent, "\n-> {\"id\":$id,\"method\":\"a\"}", func(u under) {
		u.write(`{"jsonrpc":"2.0","id":1,"method":"b"}`)
	})
	want := `script line 2: method is "b", expected "a"
	script: -> {"id":$id,"method":"a"}
	got:    {"jsonrpc":"2.0","id":1,"method":"b"}`
	if err == nil || err.Error() != want {
		t.Errorf("error\n%v\nwant\n%v", err, want)
	}
	long := &ScriptError{Line: 1, Reason: "r", Got: pattern.Short(strings.Repeat("x", 4000))}
	if n := len(long.Error()); n > 2100 {
		t.Errorf("an error of %d bytes", n)
	}
}

// A peer that does nothing is waited for in virtual time.
func TestPlayTimeouts(t *testing.T) {
	for _, tc := range []struct{ script, reason string }{
		{"-> {...}", "nothing came within 10s where a frame is expected"},
		{"!timeout 3h\n-> {...}", "nothing came within 3h0m0s where a frame is expected"},
		{"!eof", "nothing came within 10s where the peer has to close the stream"},
		{"!initialize 2", "nothing came within 10s where a request initialize is expected"},
		{strings.Repeat("!raw x\n", 65), "the peer did not take this within 10s"},
	} {
		err := run(t, PlayAgent, tc.script, func(under) { time.Sleep(24 * time.Hour) })
		if bad, ok := errors.AsType[*ScriptError](err); !ok || bad.Reason != tc.reason {
			t.Errorf("%q: %v", tc.script, err)
		}
	}
}

func TestPlayContext(t *testing.T) {
	cause := errors.New("enough")
	for _, tc := range []struct {
		script string
		want   bool // an error
	}{
		{"-> {...}", true},
		{"!sleep 1h", true},
		{strings.Repeat("!raw x\n", 65), true},
		{"!eof", true},
		{"# nothing", false},
		{"!stall", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b := jsonrpc.Pipe()
			defer b.Close()
			ctx, cancel := context.WithCancelCause(t.Context())
			over := make(chan error, 1)
			go func() { over <- PlayAgent(ctx, a, tc.script) }()
			synctest.Wait()
			select {
			case err := <-over:
				t.Fatalf("%q ended early: %v", tc.script, err)
			default:
			}
			cancel(cause)
			err := <-over
			if tc.want != errors.Is(err, cause) || !tc.want && err != nil {
				t.Errorf("%.20q: %v", tc.script, err)
			}
		})
	}
}

func TestPlayEnds(t *testing.T) {
	for _, script := range []string{"!close", "!raw x\n!close", "!stall"} {
		synctest.Test(t, func(t *testing.T) {
			a, b := jsonrpc.Pipe()
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() { over <- PlayAgent(ctx, a, script) }()
			synctest.Wait()
			if script == "!stall" {
				for range 64 { // the pipe takes so many, the script none
					if err := b.WriteFrame([]byte("x")); err != nil {
						t.Fatal(err)
					}
				}
				cancel()
			} else if strings.HasPrefix(script, "!raw") {
				under{t, b}.expect("x")
			}
			if err := <-over; err != nil {
				t.Error(err)
			}
			if _, err := b.ReadFrame(); err != io.EOF {
				t.Errorf("the peer reads %v", err)
			}
			cancel()
		})
	}
	err := run(t, PlayAgent, "-> {...}\n!eof", func(u under) { u.write(`{"jsonrpc":"2.0"}`) })
	if err != nil {
		t.Error(err)
	}
	err = run(t, PlayAgent, "...\n!eof", func(u under) { u.write("x"); u.write("y") })
	if err != nil {
		t.Error(err)
	}
	err = run(t, PlayAgent, "...", func(u under) { u.write("x"); u.write("y") })
	if err != nil {
		t.Error(err)
	}
}

func TestPlayHandshake(t *testing.T) {
	t.Run("agent", func(t *testing.T) {
		err := run(t, PlayAgent, `
			!initialize 1 {"agentCapabilities":{"loadSession":true},"_meta":{}}
			!session s1 {"modes":null}
			<- {"method":"x","params":$s1}
		`, func(u under) {
			const answer = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"scripted","version":"0"},"agentCapabilities":{"loadSession":true},"_meta":{}}}`
			u.write(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2}}`)
			u.expect(answer)
			u.write(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`) // S49
			u.expect(answer)
			u.write(`{"jsonrpc":"2.0","id":"n","method":"session/new","params":{}}`)
			u.expect(`{"jsonrpc":"2.0","id":"n","result":{"sessionId":"s1","modes":null}}`)
			u.expect(`{"jsonrpc":"2.0","method":"x","params":"s1"}`)
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("agent goes on", func(t *testing.T) {
		err := run(t, PlayAgent, "!initialize 2\n-> {\"method\":\"x\"}", func(u under) {
			u.write(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":3}}`)
			u.expect(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"scripted","version":"0"},"capabilities":{}}}`)
			u.write(`{"jsonrpc":"2.0","method":"x"}`)
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("client", func(t *testing.T) {
		err := run(t, PlayClient, `!initialize 2
			!session s {"cwd":"/x"}
			<- {"method":"x","params":$s}`, func(u under) {
			u.expect(`{"jsonrpc":"2.0","id":"line 1","method":"initialize","params":{"protocolVersion":2,"info":{"name":"scripted","version":"0"},"capabilities":{}}}`)
			u.write(`{"jsonrpc":"2.0","method":"hello"}`)
			u.write(`{"jsonrpc":"2.0","id":"line 1","result":{"protocolVersion":2}}`)
			u.expect(`{"jsonrpc":"2.0","id":"line 2","method":"session/new","params":{"mcpServers":[],"cwd":"/x"}}`)
			u.write(`{"jsonrpc":"2.0","id":"line 2","result":{"sessionId":"sess"}}`)
			u.expect(`{"jsonrpc":"2.0","method":"x","params":"sess"}`)
		})
		if err != nil {
			t.Error(err)
		}
	})
	for _, tc := range []struct{ script, answer, reason string }{
		{"!initialize 1", `{"jsonrpc":"2.0","id":"line 1","result":{"protocolVersion":2}}`, "the agent does not speak version 1"},
		{"!initialize 1", `{"jsonrpc":"2.0","id":"line 1","error":{"code":1,"message":"no"}}`, "initialize failed"},
		{"!initialize 1", `{"jsonrpc":"2.0","id":1,"result":{}}`, "something else than the answer to initialize"},
		{"!session a", `{"jsonrpc":"2.0","id":"line 1","result":{}}`, "an answer without a sessionId"},
	} {
		err := run(t, PlayClient, tc.script, func(u under) {
			u.read()
			u.write(tc.answer)
		})
		if bad, ok := errors.AsType[*ScriptError](err); !ok || bad.Reason != tc.reason || bad.Got != tc.answer {
			t.Errorf("%s: %v", tc.answer, err)
		}
	}
}
