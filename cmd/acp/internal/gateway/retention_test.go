package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// log reads the whole log of a session.
func logOf(t *testing.T, r *rig, id acp.SessionID) (all []engine.Record) {
	t.Helper()
	err := r.log.Read(t.Context(), string(id), 0, func(rec engine.Record) error {
		all = append(all, rec)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRetainRaw: what is old is kept in fewer records, which say the same, in a chain that is whole; a session that is
// used is left alone; a client with a position that is gone is shown everything, and a notice says so; the session continues.
func TestRetainRaw(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, talking(nil))
		r.max = agent
		c := r.connect(version)
		s := c.new(t)
		id := s.ID()
		say(t, s, "one two three four")
		say(t, s, "five six")
		later := time.Now().Add(48 * time.Hour)
		retain := func() {
			t.Helper()
			for range 3 { // until there is nothing more to do
				if _, err := r.g.retainOnce(t.Context(), "", later); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.g.cfg.Retention = Retention{Raw: 24 * time.Hour}
		before := logOf(t, r, id)
		middle := slices.IndexFunc(before, func(r engine.Record) bool { return r.Kind == kindUpdate }) + 2 // in the first answer
		retain()
		if got := logOf(t, r, id); len(got) != len(before) {
			t.Errorf("a session that is used has %d records, had %d", len(got), len(before))
		}
		_ = c.conn.Close()
		r.close()
		r.open()
		r.g.cfg.Retention = Retention{Raw: 24 * time.Hour}
		retain()
		after := logOf(t, r, id)
		if len(after) >= len(before) {
			t.Errorf("%d records, had %d", len(after), len(before))
		}
		for _, rec := range after {
			var u records.Update
			if rec.Kind == kindUpdate && (json.Unmarshal(rec.Data, &u) != nil || u.Stamp != records.Stamp{}) {
				t.Errorf("record %d has what the agent has sent: %s", rec.Seq, rec.Data)
			}
		}
		if err := r.log.Verify(t.Context(), string(id)); err != nil {
			t.Error(err)
		}
		n := len(after)
		if retain(); len(logOf(t, r, id)) != n {
			t.Error("it was compacted again")
		}

		c = r.connect(version)
		s = c.load(t, id)
		want := "user: one two three four|agent: onetwothreefour|user: five six|agent: fivesix"
		if got := joined(c.seen.take()); got != want {
			t.Errorf("loaded %q", got)
		}
		stale := r.connect(2)
		meta := encode(map[string]any{metaKey: map[string]any{"cursor": middle}})
		if _, err := stale.conn.Resume(t.Context(), id, acp.SessionConfig{Cwd: "/project", Meta: meta}); err != nil {
			t.Fatal(err)
		}
		if got := joined(stale.seen.take()); got != "notice: This session is shown from its beginning.|"+want {
			t.Errorf("with a position that is gone: %q", got)
		}
		say(t, s, "seven")
		c.seen.until(t, "agent: seven")
		stale.seen.until(t, "agent: seven")
	})
}

// joined is what was seen, with pieces of one message together.
func joined(seen []string) string {
	var out []string
	for _, text := range seen {
		if strings.HasPrefix(text, "end: ") {
			continue
		}
		if n := len(out); n > 0 && strings.HasPrefix(text, "agent: ") && strings.HasPrefix(out[n-1], "agent: ") {
			out[n-1] += strings.TrimPrefix(text, "agent: ")
			continue
		}
		out = append(out, text)
	}
	return strings.Join(out, "|")
}

// TestRetainSessions: a session that nobody has used for long is deleted; one that is used, or newer, is not.
func TestRetainSessions(t *testing.T) {
	r := newRig(t, talking(nil))
	c := r.connect(2)
	old := c.new(t)
	say(t, old, "one")
	_ = c.conn.Close()
	r.close()
	r.open()
	c = r.connect(2)
	used := c.new(t)
	r.g.cfg.Retention = Retention{Sessions: 24 * time.Hour}
	for _, test := range []struct {
		after time.Duration
		want  bool
	}{{23 * time.Hour, true}, {25 * time.Hour, false}} {
		if _, err := r.g.retainOnce(t.Context(), "", time.Now().Add(test.after)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.log.Session(t.Context(), string(old.ID())); errors.Is(err, engine.ErrNotFound) == test.want {
			t.Errorf("after %v: %v", test.after, err)
		}
	}
	if _, err := r.log.Session(t.Context(), string(used.ID())); err != nil {
		t.Errorf("the session that is used: %v", err)
	}
}

// TestRetainWaits: who opens a session that is being compacted gets it afterwards.
func TestRetainWaits(t *testing.T) {
	r := newRig(t, talking(nil))
	c := r.connect(2)
	id := c.new(t).ID()
	_ = c.conn.Close()
	r.close()
	r.open()
	c = r.connect(2)
	opened := make(chan error, 1)
	called, err := r.g.alone(t.Context(), string(id), func(context.Context, *engine.Owned) error {
		go func() {
			_, err := c.conn.Load(t.Context(), id, acp.SessionConfig{Cwd: "/project"})
			opened <- err
		}()
		return nil
	})
	if err != nil || !called {
		t.Fatal(called, err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
	if called, err := r.g.alone(t.Context(), string(id), nil); called || err != nil {
		t.Errorf("a session that is open: %v, %v", called, err)
	}
}

// TestFolder holds what is replaced by what.
func TestFolder(t *testing.T) {
	chunk := func(id, text string) engine.Record {
		u := &acp.AgentMessageChunk{MessageID: acp.MessageID(id), Content: acp.Text(text)}
		raw, err := json.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		return engine.Record{Kind: kindUpdate, Data: encode(records.Update{Update: raw})}
	}
	var f folder
	for i, r := range []engine.Record{
		{Kind: kindStart, Data: []byte("{}")}, {Kind: kindSent, Data: []byte("{}")}, // 1, 2: nothing
		{Kind: kindPrompt}, chunk("a", "x"), chunk("a", "y"), // 4 and 5 are one
		chunk("b", "z"), // 6 stays
		{Kind: kindEnd}, {Kind: kindMark},
	} {
		r.Seq = uint64(i + 1)
		if err := f.add(r); err != nil {
			t.Fatal(err)
		}
	}
	f.close()
	var got []string
	for _, g := range f.gaps {
		got = append(got, strings.TrimSpace(string(rune('0'+g.From))+string(rune('0'+g.To))+" "+string(g.Left.Kind)))
	}
	if want := []string{"12", "45 update", "88"}; !slices.Equal(got, want) || f.replaced != 4 {
		t.Errorf("%q, %d replaced", got, f.replaced)
	}
}

// TestFoldSubagents: what a subagent says is merged as what the session's agent says, and with nothing of another one.
func TestFoldSubagents(t *testing.T) {
	var f folder
	for i, r := range []struct {
		child acp.SessionID
		text  string
	}{{"s.a", "one "}, {"s.a", "two "}, {"s.b", "three"}, {"", "four "}, {"", "five"}, {"s.a", "six"}, {"s.a", " seven"}} {
		kind := kindUpdate
		if r.child != "" {
			kind = kindChild
		}
		u := encode(&acp.AgentMessageChunk{MessageID: "m", Content: acp.Text(r.text)})
		if err := f.add(engine.Record{Seq: uint64(i + 1), Kind: kind, Data: encode(records.Update{Update: u, Child: r.child})}); err != nil {
			t.Fatal(err)
		}
	}
	f.close()
	var got []string
	for _, g := range f.gaps {
		child, u, err := records.DecodeChild(g.Left.Data)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d-%d %s %s: %s", g.From, g.To, g.Left.Kind, child, u.(*acp.AgentMessageChunk).Content.(*acp.TextContent).Text))
	}
	want := []string{"1-2 child s.a: one two ", "4-5 update : four five", "6-7 child s.a: six seven"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if f.replaced != 3 {
		t.Errorf("%d records are not there any more", f.replaced)
	}
}

// TestRetainSubagents: a session with subagents says the same when it is compacted, in fewer records.
func TestRetainSubagents(t *testing.T) {
	r := newRig(t, delegating())
	lines := new(seen)
	c := r.connect(2, families(lines))
	s := c.new(t)
	say(t, s, "one of many words that are two")
	want := lines.untilBoth(t)
	before := logOf(t, r, s.ID())
	_ = c.conn.Close()
	r.close()
	r.open()
	r.g.cfg.Retention = Retention{Raw: 24 * time.Hour}
	for range 3 {
		if _, err := r.g.retainOnce(t.Context(), "", time.Now().Add(48*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if after := logOf(t, r, s.ID()); len(after) >= len(before) {
		t.Errorf("%d records, had %d", len(after), len(before))
	}
	loaded := new(seen)
	r.connect(2, families(loaded)).load(t, s.ID())
	text := func(lines []string) string {
		return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "subagent: ") }), "|")
	}
	wantOwn, wantIts := apart(want)
	own, its := apart(loaded.untilAll(t, "after", "two "))
	if text(own) != text(wantOwn) {
		t.Errorf("%q, had %q", own, wantOwn)
	}
	squeeze := strings.NewReplacer("|", "", string(s.ID())+".sub of "+string(s.ID())+": agent: ", "")
	if squeeze.Replace(text(its)) != squeeze.Replace(text(wantIts)) {
		t.Errorf("%q, had %q", its, wantIts)
	}
}
