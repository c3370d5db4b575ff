package gateway

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// A cutting database calls a function after each claim. If cut is set, it refuses what the first owner appends after the
// end of a turn.
type cutting struct {
	engine.Database
	claimed func()
	claims  atomic.Int32
	ended   atomic.Bool
	cut     bool
}

func (c *cutting) Claim(ctx context.Context, session, node string, token int64) (engine.State, error) {
	st, err := c.Database.Claim(ctx, session, node, token)
	if err == nil {
		c.claims.Add(1)
		c.claimed()
	}
	return st, err
}

func (c *cutting) Append(ctx context.Context, batches []engine.Batch) ([]bool, error) {
	if c.cut && c.ended.Load() && c.claims.Load() == 1 {
		return nil, engine.ErrInvalid
	}
	for _, b := range batches {
		if slices.ContainsFunc(b.Records, func(r engine.Record) bool { return r.Kind == kindEnd }) {
			c.ended.Store(true)
		}
	}
	return c.Database.Append(ctx, batches)
}

// TestClaimCut: a claim continues when the client that has caused it leaves; and whatever ends a claim, the session says
// once that its turn was interrupted, which nobody has cancelled.
func TestClaimCut(t *testing.T) {
	for _, test := range []struct {
		name   string
		leaves bool // the client, once the session is claimed
		cut    bool // the log takes nothing after the end of the turn
	}{{name: "the client leaves", leaves: true}, {name: "the log is cut", cut: true}} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			a := newMember(t, dir, "a", talking(nil))
			c := a.connect(2)
			s := c.new(t)
			s.Prompt(t.Context(), acp.Text("wait"))
			c.seen.until(t, "agent: waiting")
			id := string(s.ID())

			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			d := &cutting{cut: test.cut, claimed: func() {
				if test.leaves {
					leave()
				}
			}}
			b := joinedMember(t, dir, "b", logOver(t, dir, leaseOfTests, &d.Database, d), talking(nil))
			a.die()
			a.dead = true
			a.lapse()
			_, _ = b.g.come(ctx, id) // which may fail
			if _, err := b.g.own(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if n := d.claims.Load(); test.leaves && n != 1 {
				t.Errorf("%d claims", n)
			}
			var got []string
			if err := b.log.Read(t.Context(), id, 0, func(r engine.Record) error {
				if r.Kind == kindEnd || r.Kind == kindNotice && strings.Contains(string(r.Data), "The turn was interrupted.") {
					got = append(got, string(r.Kind))
				}
				if r.Kind == kindEnd && !strings.Contains(string(r.Data), `"error":"the turn was interrupted`) {
					t.Errorf("the turn has ended as %s", r.Data)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{string(kindEnd), string(kindNotice)}, got); diff != "" {
				t.Error(diff)
			}
			if info, err := b.log.Session(t.Context(), id); err != nil || info.State != records.StateFailed {
				t.Errorf("state %q, %v", info.State, err)
			}
		})
	}
}
