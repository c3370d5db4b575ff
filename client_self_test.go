package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestClientAwaitsItself holds that an Update hook that waits for a turn of its own
// session learns at once that it cannot, and that a goroutine it starts may.
func TestClientAwaitsItself(t *testing.T) {
	wait := func(r *Reply) error { _, err := r.Wait(); return err }
	read := func(r *Reply) (err error) {
		for _, err = range r.Updates() {
		}
		return err
	}
	for name, tt := range map[string]struct {
		wait  func(*Reply) error
		apart bool // in a goroutine, while the hook goes on for a moment
	}{
		"Wait": {wait, false}, "Updates": {read, false}, "Wait in a goroutine": {wait, true}, "Updates in a goroutine": {read, true},
	} {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprintf("%s, v%d", name, version), func(t *testing.T) {
				var told func(ctx context.Context, s *ClientSession)
				c := Client{Update: func(ctx context.Context, s *ClientSession, u *Update) {
					if m, ok := u.Update.(*AgentMessageChunk); ok && strings.Contains(fmt.Sprint(m.Content), "go on") {
						told(ctx, s)
					}
				}}
				single(t, c, version, func(t *testing.T, s *ClientSession, a *clientScript) {
					done := make(chan error, 1)
					told = func(ctx context.Context, s *ClientSession) {
						r := s.Prompt(ctx, Text("more"))
						if !tt.apart {
							done <- tt.wait(r)
							return
						}
						go func() { done <- tt.wait(r) }()
						time.Sleep(selfWait / 2)
					}
					a.say("go on")
					turn := a.turn(version)
					start := time.Now()
					if tt.apart || version == 1 {
						time.Sleep(selfWait / 2)
						turn.takeUp().end("end_turn")
						if err := <-done; err != nil {
							t.Error(err)
						}
						return
					}
					if err := <-done; !errors.Is(err, errAwaitsItself) {
						t.Error(err)
					}
					if d := time.Since(start); d > selfWait {
						t.Errorf("after %v", d)
					}
					synctest.Wait()
					turn.takeUp().end("end_turn")
				})
			})
		}
	}
}
