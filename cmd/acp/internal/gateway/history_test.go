package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// past asks for a part of a history.
func (c *client) past(t *testing.T, p HistoryRequest) *HistoryAnswer {
	t.Helper()
	res, err := HistoryMethod.Call(t.Context(), c.conn.Conn(), &p)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// pages reads a whole history, in pages of some records, from its end or from its beginning.
func (c *client) pages(t *testing.T, id acp.SessionID, limit int, forwards bool) (all []PastUpdate) {
	t.Helper()
	p := HistoryRequest{SessionID: id, Limit: limit}
	if forwards {
		p.After = new(uint64)
	}
	for {
		res := c.past(t, p)
		switch {
		case forwards:
			all = append(all, res.Updates...)
			if res.Last {
				return all
			}
			p.After = &res.To
		default:
			all = append(res.Updates, all...)
			if res.First {
				return all
			}
			p.Before = &res.From
		}
	}
}

// TestHistory: pages of a history, in either direction and of any size, are what a client is sent that loads the session,
// on any node; with who has sent a prompt, when, and how turns have ended.
func TestHistory(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		dir := t.TempDir()
		a := newMember(t, dir, "a", talking(nil))
		b := newMember(t, dir, "b", talking(nil))
		a.max = agent
		author := a.connect(2, asking(func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
			return req.Allow(), nil
		}))
		s := author.new(t)
		for i := range 5 {
			say(t, s, fmt.Sprintf("one%d two%d three%d", i, i, i))
		}
		say(t, s, "ask")
		for _, node := range []*member{a, b} {
			c, w := node.wired(version)
			n := w.count()
			c.load(t, s.ID())
			var want []string
			for _, u := range w.updates(t, n) {
				if u.Position != "" && !strings.Contains(u.Update, "state_update") && !strings.Contains(u.Update, "replay_complete") {
					want = append(want, u.Update)
				}
			}
			for _, limit := range []int{1, 3, 7, 2000} {
				for _, forwards := range []bool{false, true} {
					var got []string
					counts := map[PastKind]int{}
					last := uint64(0)
					for _, u := range c.pages(t, s.ID(), limit, forwards) {
						counts[u.Kind]++
						if u.Kind == PastPrompt && u.Author != "local" || u.Time.IsZero() || len(u.Mark) != maxMark || u.Cursor < last {
							t.Errorf("%+v", u)
						}
						last = u.Cursor
						switch u.Kind {
						case PastEnd:
							if u.StopReason != acp.StopEndTurn || version == 2 && !strings.Contains(string(u.Update), "idle") {
								t.Errorf("%+v", u)
							}
						case PastDecided:
							if u.Decided.Title != "Really?" || u.Decided.By != "local" {
								t.Errorf("%+v", u)
							}
							if u.Update != nil {
								got = append(got, string(u.Update))
							}
						default:
							got = append(got, string(u.Update))
						}
					}
					if limit < 2000 && version == 1 {
						continue // where a page begins, what version 1 is sent of a tool call may be more
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("node %s, %d records, forwards %t:\n%s", node.name, limit, forwards, diff)
					}
					if counts[PastEnd] != 6 || counts[PastDecided] != 1 || counts[PastPrompt] != 6 {
						t.Errorf("%v", counts)
					}
				}
			}
			_ = c.conn.Close()
		}
	})
}

// TestHistoryBounds: what cannot be asked for is refused, and an answer has so many bytes at most.
func TestHistoryBounds(t *testing.T) {
	r := newRig(t, talking(nil))
	r.long(t, "s_long", 20, 10)
	c := r.connect(2)
	for _, p := range []HistoryRequest{
		{Limit: -1}, {Limit: 2001}, {Before: new(uint64(202))}, {After: new(uint64(202))}, {Before: new(uint64), After: new(uint64)},
	} {
		p.SessionID = "s_long"
		_, err := HistoryMethod.Call(t.Context(), c.conn.Conn(), &p)
		if bad, _ := errors.AsType[*jsonrpc.Error](err); bad == nil || bad.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%+v: %v", p, err)
		}
	}
	res := c.past(t, HistoryRequest{SessionID: "s_long", Before: new(uint64(50)), Limit: 10})
	if res.From != 40 || res.To != 50 || res.First || res.Last || len(res.Updates) != 10 || res.Updates[0].Cursor != 41 {
		t.Errorf("%+v", res)
	}
	res = c.past(t, HistoryRequest{SessionID: "s_long", After: new(uint64(201))})
	if res.From != 201 || res.To != 201 || !res.Last || res.Updates == nil || len(res.Updates) != 0 {
		t.Errorf("%+v", res)
	}
	own, err := r.log.Claim(t.Context(), "s_long", r.lease)
	if err != nil {
		t.Fatal(err)
	}
	for i, mib := range []int{1, 1, 1, 1, 1, 5} { // 202 to 207
		u, err := json.Marshal(&acp.AgentMessageChunk{MessageID: acp.MessageID(fmt.Sprint("l", i)), Content: acp.Text(strings.Repeat("x", mib<<20))})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := own.Append(t.Context(), engine.Record{Kind: kindUpdate, Data: encode(records.Update{Update: u})}); err != nil {
			t.Fatal(err)
		}
	}
	if err := own.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		p        HistoryRequest
		from, to uint64
	}{
		{HistoryRequest{}, 206, 207},
		{HistoryRequest{Before: new(uint64(206))}, 203, 206},
		{HistoryRequest{Before: new(uint64(203)), Limit: 2000}, 0, 203},
		{HistoryRequest{After: new(uint64(201))}, 201, 204},
		{HistoryRequest{After: new(uint64(206))}, 206, 207},
		{HistoryRequest{After: new(uint64(10)), Limit: 2000}, 10, 204},
	} {
		test.p.SessionID = "s_long"
		if res := c.past(t, test.p); res.From != test.from || res.To != test.to || len(res.Updates) != int(test.to-max(test.from, 1)) {
			t.Errorf("%+v: %d to %d, want %d to %d", test.p, res.From, res.To, test.from, test.to)
		}
	}
}

// TestHistoryCompacted: what was compacted is in a history as it is kept, and a position inside of that is refused.
func TestHistoryCompacted(t *testing.T) {
	r := newRig(t, talking(nil))
	r.long(t, "s_long", 20, 10)
	r.g.cfg.Retention = Retention{Raw: 24 * time.Hour}
	for range 3 {
		if _, err := r.g.retainOnce(t.Context(), "", time.Now().Add(48*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	c := r.connect(2)
	for _, limit := range []int{1, 15, 2000} {
		if n := len(c.pages(t, "s_long", limit, false)); n != 20 {
			t.Errorf("%d messages in pages of %d records", n, limit)
		}
	}
	for _, p := range []HistoryRequest{{Before: new(uint64(55))}, {After: new(uint64(55))}} {
		p.SessionID = "s_long"
		if _, err := HistoryMethod.Call(t.Context(), c.conn.Conn(), &p); reason(err) != "compacted" {
			t.Errorf("%+v: %v", p, err)
		}
	}
}
