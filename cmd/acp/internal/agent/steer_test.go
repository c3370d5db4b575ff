package agent

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
)

const twoEdits = `
when Change
use edit {"path":"main.go","edits":[{"old":"\"one\"","new":"1"}]}
use edit {"path":"main.go","edits":[{"old":"\"two\"","new":"2"}]}
---
when skipped
say I stop.
---
when Well
say Well.
`

// steered sends a prompt while the first permission is asked for, when it can go no further.
func steered(k *talk, rank, text string) (ended <-chan error) {
	done := make(chan error, 1)
	answer := k.answer
	first := true
	k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision {
		if first {
			first = false
			go func() {
				req := &acpv2.PromptRequest{Prompt: []acp.ContentBlock{acp.Text(text)}, Meta: ownmeta.Of(ownmeta.Rank{Rank: rank})}
				res, err := k.session.PromptRequest(k.t.Context(), req).Wait()
				if err == nil && res.StopReason != acp.StopEndTurn {
					err = fmt.Errorf("ended by %s", res.StopReason)
				}
				done <- err
			}()
			synctest.Wait()
		}
		return answer(r)
	}
	return done
}

// TestSteer: what the user says while a tool runs is delivered after it, in both versions; what had not begun is
// skipped, with the user's words; they are there when the session is loaded again.
func TestSteer(t *testing.T) {
	for _, v := range []int{1, 2} {
		t.Run(fmt.Sprint("v", v), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, with := scripted(t, twoEdits)
				k := start(t, v, with)
				ended := steered(k, "", "Leave two alone.")
				contains(t, k.tell("Change it."), "I stop.")
				if err := <-ended; err != nil {
					t.Error(err)
				}
				contains(t, k.read("main.go"), "println(1)", `println("two")`)
				if len(w.requests) != 2 || len(k.asked) != 1 {
					t.Errorf("%d requests, asked %q", len(w.requests), k.asked)
				}
				contains(t, w.last(), "failed: skipped: the user said “Leave two alone.” in the meantime; see below", "\nLeave two alone.\n")
				strict(t, w.requests[1].Messages)
				id := k.session.ID()
				if err := k.session.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				k.connect()
				k.taken()
				var err error
				if k.session, err = k.conn.Load(t.Context(), id, acp.SessionConfig{Cwd: k.cwd}); err != nil {
					t.Fatal(err)
				}
				contains(t, k.taken(), "Leave two alone.")
				contains(t, k.tell("Well?"), "Well.")
				strict(t, w.requests[2].Messages)
			})
		})
	}
}

// TestSteerLater: a command that arrives while a turn runs is carried out after it, and what somebody says who may do less
// than the sender of its prompt is a turn of its own; what a turn does not take, since it fails, is the next prompt.
func TestSteerLater(t *testing.T) {
	undisturbed := strings.Replace(twoEdits, "when skipped\nsay I stop.", "when Changed\nsay Done.", 1)
	for _, tt := range []struct{ name, script, rank, say, want string }{
		{"command", undisturbed, "", "/mode auto", "auto"},
		{"rank", undisturbed, forPrompters, "Well?", "Well."},
		{"failure", "when Change\nwait 1m\nfail auth no key\n---\nwhen Well\nsay no\n---\nwhen Well\nsay I hear you.", "", "Well?", "I hear you."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, with := scripted(t, tt.script)
				k := start(t, 2, with)
				var ended <-chan error
				got := ""
				if tt.name != "failure" {
					ended = steered(k, tt.rank, tt.say)
					got = k.tell("Change it.")
					contains(t, got, "Done.")
				} else {
					reply := k.session.Prompt(t.Context(), acp.Text("Change it."))
					synctest.Wait()
					done := make(chan error, 1)
					go func() { _, err := k.session.Prompt(t.Context(), acp.Text(tt.say)).Wait(); done <- err }()
					if _, err := reply.Wait(); err == nil {
						t.Error("the turn did not fail")
					}
					ended = done
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
				contains(t, got+k.taken(), tt.want)
				for _, r := range w.requests {
					for _, m := range r.Messages {
						lacks(t, messageText(m), "/mode auto")
					}
				}
			})
		})
	}
}
