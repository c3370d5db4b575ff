package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// An opened is what the gateway says in the answer to a client that comes to a session.
type opened struct {
	Cursor uint64
	From   *uint64
}

// opens has a client come to a session without the library, and returns what it is sent before the answer.
func (c *client) opens(t *testing.T, w *wire, id acp.SessionID, meta string) (before []sentUpdate, said opened, err error) {
	t.Helper()
	n := w.count()
	var res struct {
		Meta map[string]opened `json:"_meta"`
	}
	params := json.RawMessage(fmt.Sprintf(`{"sessionId":%q,"cwd":"/project","mcpServers":[],"_meta":{%q:%s}}`, id, metaKey, meta))
	if err := c.conn.Conn().Call(t.Context(), "session/resume", params, &res); err != nil {
		return nil, said, err
	}
	answer := 0
	w.mu.Lock()
	for i, f := range w.frames[n:] {
		if bytes.Contains(f, []byte(`"result"`)) {
			answer = i
		}
	}
	w.mu.Unlock()
	for i, u := range w.updates(t, n) {
		if i < answer {
			before = append(before, u)
		}
	}
	return before, res.Meta[metaKey], nil
}

// texts returns the texts of updates that have a position.
func texts(all []sentUpdate) (found []string) {
	for _, u := range all {
		var v struct{ Content json.RawMessage }
		if u.Position == "" || json.Unmarshal([]byte(u.Update), &v) != nil {
			continue
		}
		for i, text := range strings.Split(string(v.Content), `"text":"`) {
			if i > 0 {
				text, _, _ = strings.Cut(text, `"`)
				found = append(found, text)
			}
		}
	}
	return found
}

// long makes a session with a long log: messages of some pieces each, behind the record that describes it.
func (r *rig) long(t *testing.T, id string, messages, pieces int) {
	t.Helper()
	if _, err := r.log.Create(t.Context(), engine.Session{ID: id, Agent: "test", Cwd: "/project", Owner: "local", State: records.StateIdle}); err != nil {
		t.Fatal(err)
	}
	own, err := r.log.Claim(t.Context(), id, r.lease)
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		var all []engine.Record
		for j := range pieces {
			u, err := json.Marshal(&acp.AgentMessageChunk{MessageID: acp.MessageID(fmt.Sprint("m", i)), Content: acp.Text(fmt.Sprintf("%d.%d", i, j))})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, engine.Record{Kind: kindUpdate, Data: encode(records.Update{Update: u})})
		}
		if _, err := own.Append(t.Context(), all...); err != nil {
			t.Fatal(err)
		}
	}
	if err := own.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestTail: a client is sent the last records of a history only, from where a message begins, before the answer, which
// says after which record that is; and then what happens.
func TestTail(t *testing.T) {
	for version := 1; version <= 2; version++ {
		r := newRig(t, talking(nil))
		r.long(t, "s_long", 100, 10)
		author := r.connect(2)
		for _, test := range []struct {
			meta        string
			from, last  uint64
			first, then string
			refused     bool
		}{
			{meta: `{"tail":20}`, from: 981, last: 1001, first: "98.0"},
			{meta: `{"tail":5}`, from: 991, last: 1001, first: "99.0"},
			{meta: `{"tail":0}`, from: 1001, last: 1001},
			{meta: `{"tail":5000}`, from: 0, last: 1001, first: "0.0"},
			{meta: `{"tail":30,"cursor":996}`, from: 996, last: 996, then: "99.5"},
			{meta: `{"tail":30,"cursor":12}`, from: 971, last: 1001, first: "97.0"},
			{meta: `{"tail":30,"cursor":995,"mark":"00000000"}`, from: 971, last: 1001, first: "97.0"}, // it is of another log
			{meta: `{"tail":30,"cursor":1002,"mark":"00000000"}`, from: 971, last: 1001, first: "97.0"},
			{meta: `{"tail":30,"cursor":1002}`, refused: true},
			{meta: `{"tail":-1}`, refused: true},
			{meta: `{"tail":5001}`, refused: true},
			{meta: `{"tail":"x"}`, refused: true},
		} {
			c, w := r.wired(version)
			before, said, err := c.opens(t, w, "s_long", test.meta)
			if bad, _ := errors.AsType[*jsonrpc.Error](err); test.refused {
				if bad == nil || bad.Code != jsonrpc.CodeInvalidParams {
					t.Errorf("%s: %v", test.meta, err)
				}
				continue
			}
			if err != nil || said.From == nil || *said.From != test.from || said.Cursor != test.last {
				t.Errorf("version %d, %s: %+v, %v, want %d and %d", version, test.meta, said, err, test.from, test.last)
				continue
			}
			got := texts(before)
			if want := int(test.last - max(test.from, 1)); len(got) != want || test.first != "" && got[0] != test.first {
				t.Errorf("version %d, %s: %d texts, want %d, %q", version, test.meta, len(got), want, got[:min(len(got), 3)])
			}
			if test.then != "" {
				c.await(t, w, `"`+test.then+`"`)
			}
			_ = c.conn.Close()
		}
		// What follows comes, and a turn that runs is said to run.
		c, w := r.wired(version)
		if _, _, err := c.opens(t, w, "s_long", `{"tail":1}`); err != nil {
			t.Fatal(err)
		}
		s := author.load(t, "s_long")
		reply := s.Prompt(t.Context(), acp.Text("one wait"))
		c.await(t, w, "waiting")
		d, dw := r.wired(version)
		if _, _, err := d.opens(t, dw, "s_long", `{"tail":1}`); err != nil {
			t.Fatal(err)
		}
		if version == 2 {
			d.await(t, dw, `"state":"running"`)
		}
		if err := s.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := reply.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// await waits until a client was sent a text.
func (c *client) await(t *testing.T, w *wire, text string) {
	t.Helper()
	for {
		w.mu.Lock()
		for _, f := range w.frames {
			if bytes.Contains(f, []byte(text)) {
				w.mu.Unlock()
				return
			}
		}
		w.mu.Unlock()
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("%q did not come", text)
		}
	}
}

// TestTailState: who is sent the end only has the plans and the usage of before, as they are, and also on another node.
func TestTailState(t *testing.T) {
	items := func(id, text string) *acp.PlanUpdate {
		return &acp.PlanUpdate{Plan: &acpv2.PlanItems{PlanID: acp.PlanID(id), Entries: []acp.PlanEntry{{Content: text, Priority: "high", Status: "pending"}}}}
	}
	agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		for _, u := range []acp.SessionUpdate{
			items("a", "old"), items("gone", "gone"), items("b", "other"), &acp.UsageUpdate{Used: 1, Size: 100, Cost: acpv2.Set(acp.Cost{Amount: 3, Currency: "EUR"})},
			items("a", "new"), &acp.PlanRemoved{PlanID: "gone"}, &acp.UsageUpdate{Used: 42, Size: 100},
		} {
			if err := turn.Send(u); err != nil {
				return "", err
			}
		}
		for i := range 50 {
			if err := turn.Say(fmt.Sprint("word", i)); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, nil
	}}
	dir := t.TempDir()
	a, b := newMember(t, dir, "a", agent), newMember(t, dir, "b", agent)
	a.agent.MinVersion, b.agent.MinVersion = 2, 2
	s := a.connect(2).new(t)
	say(t, s, "go")
	for _, node := range []*member{a, b} {
		for range 2 { // the second one from what is remembered
			c, w := node.wired(2)
			before, said, err := c.opens(t, w, s.ID(), `{"tail":10}`)
			if err != nil || said.From == nil || *said.From == 0 {
				t.Fatal(said, err)
			}
			var state []string
			for _, u := range before {
				if u.Position == "" && (strings.Contains(u.Update, "plan_") || strings.Contains(u.Update, "usage_")) {
					state = append(state, u.Update)
				}
			}
			all := strings.Join(state, "\n")
			if len(state) != 3 || strings.Contains(all, "old") || strings.Contains(all, "gone") || !strings.Contains(all, "new") ||
				!strings.Contains(all, "other") || !strings.Contains(all, `"used":42`) || !strings.Contains(all, "EUR") {
				t.Errorf("node %s: %s", node.name, all)
			}
			say(t, s, "again")
			_ = c.conn.Close()
		}
	}
}

// TestBackdropBounds: what is remembered of plans and of sessions is bounded.
func TestBackdropBounds(t *testing.T) {
	var d backdrop
	for i := range 3 * maxPlans {
		d.plan(&acp.PlanUpdate{Plan: &acpv2.PlanMarkdown{PlanID: acp.PlanID(fmt.Sprint(i)), Content: "x"}})
	}
	if len(d.plans) != maxPlans || d.plans[maxPlans-1].id != "23" {
		t.Errorf("%d plans", len(d.plans))
	}
	d.plan(&acp.PlanUpdate{Plan: &acpv2.PlanMarkdown{PlanID: "large", Content: strings.Repeat("x", maxPlanBytes-200)}})
	if len(d.plans) > 3 || d.plans[len(d.plans)-1].id != "large" {
		t.Errorf("%d plans beside a large one", len(d.plans))
	}
	d.plan(&acp.PlanUpdate{Plan: &acpv2.PlanMarkdown{PlanID: "large", Content: strings.Repeat("x", maxPlanBytes)}})
	if len(d.plans) > 2 {
		t.Errorf("%d plans after one that is too large", len(d.plans))
	}
	var b backdrops
	for i := range 2 * maxBackdrops {
		b.put(&flight{id: fmt.Sprint(i)}, d)
	}
	if len(b.by) != maxBackdrops || len(b.ring) != maxBackdrops {
		t.Errorf("%d backdrops", len(b.by))
	}
	stale := &flight{id: "deleted"}
	stale.stale.Store(true)
	b.put(stale, d)
	b.drop(b.ring[0])
	if len(b.by) != maxBackdrops-1 || len(b.ring) != maxBackdrops-1 {
		t.Errorf("%d backdrops after one was dropped", len(b.by))
	}
	b.get(b.ring[5])
	for id, r := range b.by {
		if id != b.ring[5] {
			r.at = r.at.Add(-backdropFor)
		}
	}
	b.expire()
	if len(b.by) != 1 || len(b.ring) != 1 {
		t.Errorf("%d backdrops after a while", len(b.by))
	}
}

// TestBackdropOlder: a backdrop that was asked for later, but is of an earlier record, replaces none; one is made at a time.
func TestBackdropOlder(t *testing.T) {
	r := newRig(t, talking(nil))
	r.long(t, "s_long", 10, 10)
	for _, test := range []struct{ last, kept uint64 }{{50, 50}, {20, 50}, {50, 50}, {70, 70}, {30, 70}, {100, 100}} {
		d, err := r.g.backdrop(t.Context(), "s_long", test.last)
		if kept := r.g.backdrops.get("s_long").upTo; err != nil || d.upTo != test.last || kept != test.kept {
			t.Errorf("up to %d, want %d; %d is kept, want %d; %v", d.upTo, test.last, kept, test.kept, err)
		}
	}
	making, err := r.g.backdrops.making.begin(t.Context(), "s_long")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	leaves := errors.New("the client leaves")
	cancel(leaves)
	if _, err := r.g.backdrop(ctx, "s_long", 100); !errors.Is(err, leaves) {
		t.Errorf("two are made at a time: %v", err)
	}
	making.end()
	// As if the log had lost its end.
	making, err = r.g.backdrops.making.begin(t.Context(), "s_long")
	if err != nil {
		t.Fatal(err)
	}
	r.g.backdrops.put(making, backdrop{upTo: 1000})
	making.end()
	if d, err := r.g.backdrop(t.Context(), "s_long", 100); err != nil || d.upTo != 100 || r.g.backdrops.get("s_long").upTo != 100 {
		t.Errorf("up to %d, %v", d.upTo, err)
	}
}

// TestTailCompacted: the end of a session that was compacted is sent from a position that is there.
func TestTailCompacted(t *testing.T) {
	r := newRig(t, talking(nil))
	r.long(t, "s_long", 20, 10)
	r.g.cfg.Retention = Retention{Raw: 24 * time.Hour}
	for range 3 {
		if _, err := r.g.retainOnce(t.Context(), "", time.Now().Add(48*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for _, meta := range []string{`{"tail":15}`, `{"tail":15,"cursor":5}`, `{"tail":198,"cursor":5}`} {
		c, w := r.wired(2)
		before, said, err := c.opens(t, w, "s_long", meta)
		if err != nil || said.From == nil || *said.From%10 != 1 {
			t.Errorf("%s: %+v, %v", meta, said, err)
			continue
		}
		got := strings.Join(texts(before), "")
		if !strings.HasSuffix(got, "19.9") || !strings.HasPrefix(got, fmt.Sprintf("%d.0", *said.From/10)) { // record 1 describes the session
			t.Errorf("%s: after %d %q", meta, *said.From, got)
		}
		_ = c.conn.Close()
	}
}

// TestRunsFar: whether a turn runs is found however far its beginning is away.
func TestRunsFar(t *testing.T) {
	r := newRig(t, talking(nil))
	r.long(t, "s_long", 100, 20)
	own, err := r.log.Claim(t.Context(), "s_long", r.lease)
	if err != nil {
		t.Fatal(err)
	}
	add := func(kind engine.Kind, n int) {
		t.Helper()
		for range n {
			if _, err := own.Append(t.Context(), engine.Record{Kind: kind, Data: encode(records.End{})}); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(kindPrompt, 1)
	add(kindMark, 1200)
	add(kindEnd, 1)
	got := map[uint64]bool{}
	for _, seq := range []uint64{0, 1, 2000, 2001, 2002, 2003, 3202, 3203} {
		prompt, err := r.g.turnAt(t.Context(), "s_long", seq)
		got[seq] = prompt > 0
		if err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(map[uint64]bool{0: false, 1: false, 2000: false, 2001: false, 2002: true, 2003: true, 3202: true, 3203: false}, got); diff != "" {
		t.Error(diff)
	}
	if err := own.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
