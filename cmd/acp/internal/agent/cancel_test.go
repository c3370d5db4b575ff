package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp"
)

// TestCancel cancels each command that can take long, when it is at work.
func TestCancel(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	for _, test := range []struct {
		name, prompt string
		change       func(*talk)
		when         func(*acp.Update) bool
	}{
		{"run", "/run echo started; sleep 60", nil, shows("started")},
		{"slow", "/demo slow", nil, shows("until you cancel")},
		{"flood", "/demo flood 1000000", nil, shows("update 50 of")},
		{"lent", "/run echo started; sleep 60", lent, func(u *acp.Update) bool {
			c, ok := u.Update.(*acp.ToolCallUpdate)
			if !ok {
				return false
			}
			_, terminal := c.Content.Get()
			return terminal
		}},
		{"search", "/search x", func(k *talk) {
			for i := range 200 {
				k.write(fmt.Sprintf("many/%d.txt", i), strings.Repeat("y\n", 1000))
			}
		}, func(u *acp.Update) bool { _, ok := u.Update.(*acp.ToolCallUpdate); return ok }},
	} {
		t.Run(test.name, func(t *testing.T) {
			versions(t, func(t *testing.T, v int) {
				if test.name == "lent" && v == 2 {
					t.Skip("version 2 clients lend nothing")
				}
				change := []func(*talk){}
				if test.change != nil {
					change = append(change, test.change)
				}
				k := start(t, v, change...)
				reply := k.session.Prompt(t.Context(), acp.Text(test.prompt))
				cancelled := false
				for u, err := range reply.Updates() {
					if err != nil {
						t.Fatal(err)
					}
					if !cancelled && test.when(u) {
						cancelled = true
						if err := k.session.Cancel(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
				}
				res, err := reply.Wait()
				if err != nil || !cancelled {
					t.Fatalf("cancelled: %t, %v", cancelled, err)
				}
				if res.StopReason != acp.StopCancelled && test.name != "search" { // which may have been done
					t.Errorf("ended by %s", res.StopReason)
				}
				contains(t, k.tell("/usage"), "Prompts in this session: 2")
			})
		})
	}
}

// TestCancelQuestion cancels while the user is asked.
func TestCancelQuestion(t *testing.T) {
	for _, prompt := range []string{"/run touch a.txt", "/write a.txt x", "/demo", "/read /"} {
		t.Run(prompt, func(t *testing.T) {
			versions(t, func(t *testing.T, v int) {
				k := start(t, v)
				asked := make(chan struct{}, 1)
				k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision {
					asked <- struct{}{}
					<-t.Context().Done()
					return r.Allow()
				}
				reply := k.session.Prompt(t.Context(), acp.Text(prompt))
				<-asked
				if err := k.session.Cancel(t.Context()); err != nil {
					t.Fatal(err)
				}
				res, err := reply.Wait()
				if err != nil || res.StopReason != acp.StopCancelled {
					t.Fatalf("%+v, %v", res, err)
				}
				if _, err := os.Stat(filepath.Join(k.cwd, "a.txt")); err == nil {
					t.Error("the file was written")
				}
				lacks(t, k.taken(), "Not done")
			})
		})
	}
}

func shows(text string) func(*acp.Update) bool {
	var seen strings.Builder
	return func(u *acp.Update) bool {
		switch v := u.Update.(type) {
		case *acp.TerminalOutputChunk:
			data, _ := v.Bytes()
			seen.Write(data)
		case *acp.ToolCallUpdate:
			for _, c := range v.Content.Or(nil) {
				if b, ok := c.(*acp.BlockContent); ok && !strings.Contains(blockText(b.Content), "$ ") {
					seen.WriteString(blockText(b.Content))
				} else if ok && strings.Count(blockText(b.Content), text) > 1 {
					seen.WriteString(text)
				}
			}
		default:
			seen.WriteString(u.Text())
		}
		return strings.Contains(seen.String(), text)
	}
}

// TestCancelOne cancels a command without its turn, which version 2 can.
func TestCancelOne(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	k := start(t, 2)
	reply := k.session.Prompt(t.Context(), acp.Text("/run echo started; sleep 60"))
	var id acp.ToolCallID
	when := shows("started")
	for u, err := range reply.Updates() {
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := u.Update.(*acp.ToolCallUpdate); ok && id == "" {
			id = c.ToolCallID
		}
		if when != nil && when(u) {
			when = nil
			if err := k.session.CancelToolCall(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
	res, err := reply.Wait()
	if err != nil || res.StopReason != acp.StopEndTurn {
		t.Fatalf("%+v, %v", res, err)
	}
	contains(t, k.taken(), "The command was cancelled", "cancelled")
}

// TestNoSurvivor ends a connection while a command runs, and looks for it.
func TestNoSurvivor(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	versions(t, func(t *testing.T, v int) {
		k := start(t, v)
		pid := filepath.Join(k.cwd, "pid")
		reply := k.session.Prompt(t.Context(), acp.Text("/run sleep 60 & echo $! > pid; wait"))
		wait(t, func() bool { data, err := os.ReadFile(pid); return err == nil && strings.HasSuffix(string(data), "\n") })
		if err := k.conn.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := reply.Wait(); err == nil {
			t.Error("the turn ended well")
		}
		name := strings.TrimSpace(k.read("pid"))
		wait(t, func() bool { return !alive(name) })
	})
}

// wait waits for something that a process does.
func wait(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}
