//go:build unix

package acp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acptest"
)

// TestExecCancelled: a command whose turn is cancelled gets SIGTERM and a grace,
// wherever it runs; what it has printed is returned, its tool call ends as
// cancelled, and nothing is left of it.
func TestExecCancelled(t *testing.T) {
	const (
		polite   = `trap 'echo bye; exit 3' TERM; echo started; touch "$MARK"; while :; do sleep 0.02; done`
		stubborn = `trap '' TERM; sleep 1000 & echo started $!; touch "$MARK"; while :; do sleep 0.02; done`
	)
	for _, where := range []struct {
		version int
		lent    bool
	}{{1, false}, {1, true}, {2, false}} {
		for name, script := range map[string]string{"polite": polite, "stubborn": stubborn} {
			t.Run(fmt.Sprintf("v%d lent %v %s", where.version, where.lent, name), func(t *testing.T) {
				t.Parallel() // the stubborn ones take their time
				mark := filepath.Join(t.TempDir(), "mark")
				type result struct {
					state *acp.TerminalState
					err   error
					tool  acp.ToolCallStatus
				}
				done := make(chan result, 1)
				agent := &acp.Agent{CancelGrace: time.Hour, Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
					call := turn.ToolCall(acp.ToolCall{Title: "Run it"})
					state, err := call.Exec(acp.Exec{
						Command: "sh", Args: []string{"-c", script}, Env: []acp.EnvVariable{{Name: "MARK", Value: mark}},
					})
					if err == nil {
						return acp.StopEndTurn, call.Complete()
					}
					_ = call.Fail(err)
					done <- result{state, err, call.Status()}
					return acp.StopEndTurn, nil
				}}
				client := &acp.Client{MaxVersion: where.version}
				var told statuses
				client.Update = told.update
				if where.lent {
					client.Terminals = func(*acp.ClientConn) acp.TerminalHost {
						host := acphost.Local(filepath.Dir(mark))
						if name == "polite" {
							host.Grace = time.Hour // however slow the machine is
						}
						return host
					}
				}
				conn, _ := acptest.Pair(t, agent, client)
				s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: filepath.Dir(mark)})
				if err != nil {
					t.Fatal(err)
				}
				reply := s.Prompt(t.Context(), acp.Text("go"))
				for !exists(mark) || where.lent && !told.terminal() {
					if len(done) > 0 {
						t.Fatalf("it did not start: %v", (<-done).err)
					}
					runtime.Gosched()
				}
				if err := s.Cancel(t.Context()); err != nil {
					t.Fatal(err)
				}
				if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopCancelled {
					t.Errorf("the turn: %v, %v", res, err)
				}
				r := <-done
				if !errors.Is(r.err, acp.ErrCancelled) {
					t.Errorf("Exec: %v", r.err)
				}
				if r.state == nil || r.state.Exit == nil {
					t.Fatalf("Exec: no state beside the error: %+v", r.state)
				}
				if name == "polite" {
					if out := unnoticed(r.state.Output); out != "started\nbye\n" {
						t.Errorf("output %q", out)
					}
					if c := r.state.Exit.ExitCode; c == nil || *c != 3 {
						t.Errorf("exit %+v: the trap did not run", r.state.Exit)
					}
				} else {
					if r.state.Exit.Signal != "SIGKILL" {
						t.Errorf("exit %+v", r.state.Exit)
					}
					pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(r.state.Output, "started ")))
					if err != nil {
						t.Fatalf("output %q", r.state.Output)
					}
					for syscall.Kill(pid, 0) == nil { // until it is reaped
						runtime.Gosched()
					}
				}
				want := []string{"in_progress", "cancelled"}
				if where.version == 1 {
					want[1] = "failed"
				}
				if r.tool != acp.ToolCallStatusCancelled || told.String() != strings.Join(want, " ") {
					t.Errorf("the tool call is %s, the client saw %s", r.tool, &told)
				}
				if strings.Contains(told.text(), "cancelled by the client") {
					t.Errorf("the tool call shows %q", told.text())
				}
			})
		}
	}
}

// unnoticed is output without what some shells say about their children.
func unnoticed(output string) string { return strings.ReplaceAll(output, "Terminated\n", "") }

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// statuses are what a client was told of tool calls.
type statuses struct {
	mu   sync.Mutex
	list []string
	said strings.Builder

	shown bool
}

// terminal reports whether a call has shown one.
func (l *statuses) terminal() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown
}

func (l *statuses) update(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := u.Update.(*acp.ToolCallContentChunk); ok {
		l.shown = true
	}
	call, ok := u.Update.(*acp.ToolCallUpdate)
	if !ok {
		return
	}
	if status, ok := call.Status.Get(); ok {
		l.list = append(l.list, string(status))
	}
	content, _ := call.Content.Get()
	for _, c := range content {
		if _, ok := c.(*acp.TerminalContent); ok {
			l.shown = true
		}
		if b, ok := c.(*acp.BlockContent); ok {
			if text, ok := b.Content.(*acp.TextContent); ok {
				l.said.WriteString(text.Text)
			}
		}
	}
}

func (l *statuses) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.list, " ")
}

func (l *statuses) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said.String()
}

// TestTerminalCancelled: a client of version 2 that cancels one command has it
// ended in the same way, and one that cancels one tool call sees it cancelled.
func TestTerminalCancelled(t *testing.T) {
	for _, what := range []string{"terminal", "tool call"} {
		t.Run(what, func(t *testing.T) {
			const script = `trap 'echo bye; exit 3' TERM; echo started; while :; do sleep 0.02; done`
			ended := make(chan string, 1)
			agent := &acp.Agent{Prompt: func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
				own, cancel := context.WithCancel(ctx)
				defer cancel()
				call := turn.WithContext(own).ToolCall(acp.ToolCall{Title: "Run it", Cancel: cancel})
				state, err := call.Exec(acp.Exec{Command: "sh", Args: []string{"-c", script}})
				if err != nil {
					_ = call.Fail(err)
				} else {
					_ = call.Complete()
				}
				ended <- fmt.Sprintf("%q %d %s", unnoticed(state.Output), *state.Exit.ExitCode, call.Status())
				return acp.StopEndTurn, nil
			}}
			terminals, calls := make(chan acp.TerminalID, 1), make(chan acp.ToolCallID, 1)
			client := &acp.Client{Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
				switch u := u.Update.(type) {
				case *acp.TerminalOutputChunk: // it has begun
					select {
					case terminals <- u.TerminalID:
					default:
					}
				case *acp.ToolCallUpdate:
					select {
					case calls <- u.ToolCallID:
					default:
					}
				}
			}}
			conn, _ := acptest.Pair(t, agent, client)
			s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			reply := s.Prompt(t.Context(), acp.Text("go"))
			terminal, call := <-terminals, <-calls
			want := `"started\nbye\n" 3 completed`
			if what == "terminal" {
				err = s.CancelTerminal(t.Context(), terminal)
			} else {
				want = `"started\nbye\n" 3 cancelled`
				err = s.CancelToolCall(t.Context(), call)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := <-ended; got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
				t.Errorf("the turn: %v, %v", res, err)
			}
		})
	}
}
