package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// queued waits until so many prompts of a session run or wait.
func queued(s *session, want int) {
	for n := 0; n < want; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		n = len(s.queue)
		s.mu.Unlock()
	}
}

// finishes waits until no turn runs: clients learn a little before that one has ended.
func (r *rig) finishes(id acp.SessionID) {
	s := r.g.session(string(id))
	for n := 1; n > 0; runtime.Gosched() {
		s.mu.Lock()
		n = len(s.queue)
		s.mu.Unlock()
	}
}

// TestQueuedDeleted: prompts of a session that another node deletes are answered, those that wait, too.
func TestQueuedDeleted(t *testing.T) {
	dir := t.TempDir()
	goOn := make(chan struct{})
	a := newMember(t, dir, "a", talking(goOn))
	b := newMember(t, dir, "b", talking(nil))
	c, d := a.connect(1), a.connect(1)
	s := c.new(t)
	other := d.load(t, s.ID())
	running := s.Prompt(t.Context(), acp.Text("wait one"))
	c.seen.until(t, "agent: waiting")
	waiting := other.Prompt(t.Context(), acp.Text("two"))
	queued(a.g.session(string(s.ID())), 2)
	if _, err := b.log.Delete(t.Context(), string(s.ID())); err != nil { // as if it could not reach the owner
		t.Fatal(err)
	}
	close(goOn)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, reply := range map[string]*acp.Reply{"running": running, "waiting": waiting} {
		ended := make(chan error, 1)
		go func() {
			_, err := reply.Wait()
			ended <- err
		}()
		select {
		case err := <-ended:
			if f := (*acp.Failure)(nil); !errors.As(err, &f) || f.Reason != "deleted" {
				t.Errorf("%s: %v", name, err)
			}
		case <-ctx.Done():
			t.Errorf("%s is never answered", name)
		}
	}
}

// TestNamedCloses: a prompt with a name that waits when its gateway ends keeps no receipt.
func TestNamedCloses(t *testing.T) {
	dir := t.TempDir()
	a := newMember(t, dir, "a", talking(nil))
	b := newMember(t, dir, "b", talking(nil))
	c := a.connect(1)
	d := b.connect(1)
	s := c.new(t)
	s.Prompt(t.Context(), acp.Text("wait one"))
	c.seen.until(t, "agent: waiting")
	theirs := d.load(t, s.ID())
	waiting := theirs.PromptRequest(t.Context(), &acpv2.PromptRequest{
		Prompt: []acp.ContentBlock{acp.Text("two")}, Meta: encode(map[string]any{metaKey: map[string]any{"operationId": "two"}}),
	})
	queued(a.g.session(string(s.ID())), 2)
	if err := a.g.Close(); err != nil {
		t.Error(err)
	}
	if res, err := waiting.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
		t.Errorf("%v, %v", res, err)
	}
}

// A tampering database returns the records of prompts not as they were written, once it is on.
type tampering struct {
	engine.Database
	on atomic.Bool
}

func (d *tampering) Records(ctx context.Context, key int64, from uint64, n, size int) ([]engine.Record, error) {
	records, err := d.Database.Records(ctx, key, from, n, size)
	if d.on.Load() {
		for i := range records {
			records[i].Data = bytes.Replace(records[i].Data, []byte("wait one"), []byte("wait 0ne"), 1)
		}
	}
	return records, err
}

// TestQueuedDamaged: a session that is found to be damaged while its clients follow it goes on, with the prompts that run and
// wait, and all clients learn of it, once.
func TestQueuedDamaged(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			dir := t.TempDir()
			d, goOn := new(tampering), make(chan struct{})
			a := joinedMember(t, dir, "a", logOver(t, dir, leaseOfTests, &d.Database, d), talking(goOn))
			c, e := a.connect(version), a.connect(1)
			s := c.new(t)
			other := e.load(t, s.ID())
			running := s.Prompt(t.Context(), acp.Text("wait one"))
			c.seen.until(t, "agent: waiting")
			waiting := other.Prompt(t.Context(), acp.Text("two"))
			queued(a.g.session(string(s.ID())), 2)
			d.on.Store(true)
			a.log.Missed(string(s.ID())) // so that they read
			close(goOn)
			for name, reply := range map[string]*acp.Reply{"running": running, "waiting": waiting} {
				if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
					t.Errorf("%s: %v, %v", name, res, err)
				}
			}
			say(t, s, "three")
			f := a.connect(version)
			say(t, f.load(t, s.ID()), "four")
			notices := 0
			for _, text := range f.seen.take() {
				if strings.Contains(text, damagedTitle) {
					notices++
				}
			}
			if notices != 1 {
				t.Errorf("%d notices: %q", notices, f.seen.take())
			}
		})
	}
}
