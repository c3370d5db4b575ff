package acp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
)

// TestLogLines holds what a line of the log looks like.
func TestLogLines(t *testing.T) {
	long := strings.Repeat("x", maxLogged)
	for _, tt := range []struct {
		name  string
		sent  bool
		frame string
		want  string
	}{
		{"sent", true, `{"id":1}`, `-> {"id":1}`},
		{"received", false, `{"id":1}`, `<- {"id":1}`},
		{"lines", false, "{\n\t\"id\":1}\r", `<- {\n\t"id":1}\r`},
		{"escapes", false, "\x1b[31mred\x7f\u009b\u202e", `<- \x1b[31mred\x7f\u009b\u202e`},
		{"unicode", false, "für 日本 🎉", "<- für 日本 🎉"},
		{"not UTF-8", false, "a\xff\xc3", `<- a\xff\xc3`},
		{"empty", false, "", "<- "},
		{"longest", true, long, "-> " + long},
		{"too long", true, long + "y", "-> " + long + "… (16385 bytes)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			l := &wireLog{w: &out}
			l.frame(tt.sent, []byte(tt.frame))
			text, ok := strings.CutSuffix(out.String(), "\n")
			at, line, found := strings.Cut(text, " ")
			if _, err := time.Parse(logTime, at); err != nil || !ok || !found {
				t.Error(err, ok, found)
			}
			if d := cmp.Diff(tt.want, line); d != "" {
				t.Error(d)
			}
		})
	}
}

// shaky is a writer that fails or panics each time but keeps what it was given.
// Its calls must not overlap.
type shaky struct {
	mu     sync.Mutex
	panics bool
	out    bytes.Buffer
	t      *testing.T
}

func (s *shaky) Write(p []byte) (int, error) {
	if !s.mu.TryLock() {
		s.t.Error("two writes at once")
		return 0, nil
	}
	defer s.mu.Unlock()
	if n := bytes.Count(p, []byte("\n")); n != 1 || !bytes.HasSuffix(p, []byte("\n")) {
		s.t.Errorf("%d lines in one write", n)
	}
	s.out.Write(p)
	if s.panics {
		panic("disk")
	}
	return 0, errors.New("disk full")
}

// TestLogTransport holds that a log has every frame of both directions, in order,
// for several connections at once, and that a writer that fails or panics, and the
// limit of frames, change nothing for them.
func TestLogTransport(t *testing.T) {
	for name, panics := range map[string]bool{"fails": false, "panics": true} {
		t.Run(name, func(t *testing.T) {
			w := &shaky{panics: panics, t: t}
			agent := &Agent{Prompt: func(_ context.Context, turn *Turn) (StopReason, error) {
				for range 50 {
					if err := turn.Say("word "); err != nil {
						return "", err
					}
				}
				return StopEndTurn, nil
			}}
			client := &Client{Engine: jsonrpc.Settings{MaxFrame: 1 << 20}, Logger: logtest.New(t)}
			log := LogTransport(&pipes{agent: agent, t: t}, w) // one for all: each opens another stream
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					conn, err := client.Connect(t.Context(), log)
					if err != nil {
						t.Error(err)
						return
					}
					defer conn.Close()
					s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := s.Prompt(t.Context(), Text("go")).Wait(); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			text := w.out.String()
			for what, n := range map[string]int{
				`(?m)^\S+ -> .*"method":"initialize"`:                3,
				`(?m)^\S+ -> .*"method":"session/prompt"`:            3,
				`(?m)^\S+ <- .*"agent_message_chunk".*"text":"word `: 150,
				`(?m)^\S+ <- .*"id":\d+,"result"`:                    9,
			} {
				if got := len(regexp.MustCompile(what).FindAllString(text, -1)); got != n {
					t.Errorf("%d lines match %s, want %d", got, what, n)
				}
			}
		})
	}
}

// pipes is a transport that can be opened again: each time by pipes of the system
// to another connection of an agent.
type pipes struct {
	agent *Agent
	t     *testing.T
}

func (p *pipes) Open(context.Context) (jsonrpc.Stream, error) {
	fromAgent, toClient := io.Pipe()
	fromClient, toAgent := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.agent.Serve(context.Background(), Over(jsonrpc.NewLineStream(fromClient, toClient)))
	}()
	p.t.Cleanup(func() { <-ended })
	return jsonrpc.NewLineStream(fromAgent, toAgent), nil
}

// TestWrapAgain holds that a wrapped transport is opened again when the agent turns
// out to speak the other version only.
func TestWrapAgain(t *testing.T) {
	agent := &Agent{MaxVersion: 1, Prompt: func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil }}
	opened := 0
	tr := WrapTransport(&pipes{agent: agent, t: t}, func(s jsonrpc.Stream) jsonrpc.Stream {
		opened++
		return naive{Stream: s}
	})
	conn, err := new(Client).Connect(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	if conn.Version() != 1 || opened != 2 {
		t.Errorf("version %d, opened %d times", conn.Version(), opened)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	closed := new(closes)
	none := WrapTransport(Over(closed), func(jsonrpc.Stream) jsonrpc.Stream { return nil })
	if _, err := new(Client).Connect(t.Context(), none); err == nil || !closed.done {
		t.Error(err, closed.done)
	}
	if _, err := new(Client).Connect(t.Context(), WrapTransport(nil, wrapNaive)); err == nil {
		t.Error("no error")
	}
}

type closes struct {
	jsonrpc.Stream
	done bool
}

func (c *closes) Close() error { c.done = true; return nil }
