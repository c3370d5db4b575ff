package gateway

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/jsonrpc"
)

// A wire is everything a client was sent, frame by frame.
type wire struct {
	jsonrpc.Stream
	mu     sync.Mutex
	frames [][]byte
}

func (w *wire) ReadFrame() (jsonrpc.Frame, error) {
	f, err := w.Stream.ReadFrame()
	if err == nil {
		w.mu.Lock()
		w.frames = append(w.frames, bytes.Clone(f.Data))
		w.mu.Unlock()
	}
	return f, err
}

// wired connects a client whose frames are kept.
func (r *rig) wired(version int, change ...func(*acp.Client)) (*client, *wire) {
	r.t.Helper()
	theirs, ours := jsonrpc.Pipe()
	w := &wire{Stream: ours}
	var served sync.WaitGroup
	served.Go(func() { _ = r.g.Serve(context.Background(), acp.Over(theirs)) })
	c := &client{seen: new(seen)}
	cfg := &acp.Client{MinVersion: version, MaxVersion: version, Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
		if text := describe(u); text != "" {
			c.seen.add(text)
		}
	}}
	for _, f := range change {
		f(cfg)
	}
	var err error
	if c.conn, err = cfg.Connect(r.t.Context(), acp.Over(w)); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = c.conn.Close()
		served.Wait()
	})
	return c, w
}

// An update is what a client was sent of a session: the update, and the position.
type sentUpdate struct {
	Update   string
	Position string
}

// updates returns the updates that were sent after the first n frames.
func (w *wire) updates(t *testing.T, n int) (all []sentUpdate) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.frames[n:] {
		var u struct {
			Method string
			Params struct {
				Update json.RawMessage
				Meta   map[string]json.RawMessage `json:"_meta"`
			}
		}
		if err := json.Unmarshal(f, &u); err != nil {
			t.Fatal(err)
		}
		if u.Method == "session/update" {
			all = append(all, sentUpdate{string(u.Params.Update), string(u.Params.Meta[metaKey])})
		}
	}
	return all
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.frames)
}

// TestPositions: each update has a position, and a client that resumes there gets exactly what follows, once and in
// order: with what the other client was sent while it happened.
func TestPositions(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, talking(nil))
		r.max = agent
		author := r.connect(3 - version)
		s := author.new(t)
		live, wire := r.wired(version)
		live.load(t, s.ID())
		from := wire.count()
		blocks := []acp.ContentBlock{acp.Text("first"), acp.Text("second"), acp.Text("third")}
		if _, err := s.Prompt(t.Context(), blocks...).Wait(); err != nil {
			t.Fatal(err)
		}
		say(t, s, "one two")
		if _, err := s.SetTitle(t.Context(), "the end"); err != nil {
			t.Fatal(err)
		}
		live.seen.until(t, "title: the end")
		all := wire.updates(t, from)
		if len(all) < 7 {
			t.Fatalf("%d updates", len(all))
		}
		for i, u := range all {
			if u.Position == "" {
				t.Fatalf("no position with %s", u.Update)
			}
			c, wire := r.wired(version)
			if _, err := c.conn.Resume(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project", Meta: json.RawMessage(`{"` + metaKey + `":` + u.Position + `}`)}); err != nil {
				t.Fatal(err)
			}
			var got []sentUpdate
			for len(got) < len(all)-1-i && t.Context().Err() == nil {
				got = nil
				for _, u := range wire.updates(t, 0) {
					if u.Position != "" { // and not what a client is sent as it comes
						got = append(got, u)
					}
				}
				runtime.Gosched()
			}
			if diff := cmp.Diff(all[i+1:], got, cmp.Transformer("none", func(s []sentUpdate) string { return fmt.Sprintln(s) })); diff != "" {
				t.Fatalf("after %d, %s:\n%s", i, u.Position, diff)
			}
			_ = c.conn.Close()
		}
	})
}

// TestPositionsReplayed: the history has positions, too, and what happens after it continues them.
func TestPositionsReplayed(t *testing.T) {
	for version := 1; version <= 2; version++ {
		r := newRig(t, talking(nil))
		c := r.connect(1)
		s := c.new(t)
		say(t, s, "one two")
		d, wire := r.wired(version)
		d.load(t, s.ID())
		say(t, s, "three")
		d.seen.until(t, "agent: three")
		last := uint64(0)
		for _, u := range wire.updates(t, 0) {
			var p struct {
				Cursor uint64
				Part   int
			}
			if u.Position == "" {
				continue
			}
			if err := json.Unmarshal([]byte(u.Position), &p); err != nil || p.Cursor < last || p.Part == 0 && p.Cursor == 0 {
				t.Errorf("%s after %d: %v", u.Position, last, err)
			}
			last = p.Cursor
		}
		head, err := r.log.Head(t.Context(), string(s.ID()))
		if err != nil || last < head.Seq-2 {
			t.Errorf("the last position is %d of %d, %v", last, head.Seq, err)
		}
	}
}

// TestBadPositions: what is no position is refused. With one that has a mark, and is not in the session, a client is sent all of it.
func TestBadPositions(t *testing.T) {
	r := newRig(t, talking(nil))
	c, wire := r.wired(2)
	s, other := c.new(t), c.new(t)
	say(t, s, "one")
	say(t, other, "two")
	all := wire.updates(t, 0)
	foreign := all[len(all)-1].Position
	if !strings.Contains(foreign, "mark") {
		t.Fatal(foreign)
	}
	resume := func(c *client, position string) error {
		_, err := c.conn.Resume(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project", Meta: json.RawMessage(`{"` + metaKey + `":` + position + `}`)})
		return err
	}
	for name, position := range map[string]string{
		"after the end": `{"cursor":1000}`,
		"negative part": `{"cursor":1,"part":-1}`,
		"negative":      `{"cursor":-1}`,
		"text":          `{"cursor":"x"}`,
	} {
		bad := (*jsonrpc.Error)(nil)
		if err := resume(r.connect(1), position); !errors.As(err, &bad) || bad.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, position := range map[string]string{"of another session": foreign, "lost": `{"cursor":1000,"mark":"00000000"}`} {
		d := r.connect(2)
		if err := resume(d, position); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := "notice: This session is shown from its beginning.|user: one|agent: one|end: end_turn"
		if got := strings.Join(d.seen.take(), "|"); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestPositionAtEnd: the position that a client has once it was sent everything is one that it can resume from, also if the session
// was described anew since its last record.
func TestPositionAtEnd(t *testing.T) {
	r := newRig(t, talking(nil))
	c := r.connect(2)
	s := c.new(t)
	for _, text := range []string{"", "one"} {
		if text != "" {
			say(t, s, text)
			if err := r.g.session(string(s.ID())).update(t.Context(), func(info *engine.Session) { info.Title = "T" }); err != nil {
				t.Fatal(err)
			}
		}
		d := r.connect(2)
		var answer struct {
			Position struct {
				Cursor uint64 `json:"cursor"`
			} `json:"github.com/goacp/acp"`
		}
		if err := json.Unmarshal(d.load(t, s.ID()).Meta(), &answer); err != nil {
			t.Fatal(err)
		}
		head, err := r.log.Head(t.Context(), string(s.ID()))
		if err != nil || answer.Position.Cursor != head.Seq {
			t.Errorf("the answer has %d, the end is %d, %v", answer.Position.Cursor, head.Seq, err)
		}
		e := r.connect(2)
		meta := fmt.Appendf(nil, `{%q:{"cursor":%d,"mark":%q}}`, metaKey, head.Seq, hex.EncodeToString(head.Hash[:maxMark/2]))
		if _, err := e.conn.Resume(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project", Meta: meta}); err != nil {
			t.Errorf("%d: %v", head.Seq, err)
		}
		if got := e.seen.take(); len(got) > 0 && got[0] != "title: T" { // which comes anyway
			t.Errorf("%d: sent %q", head.Seq, got)
		}
	}
}

// TestEndBeforeNext: the end of a client's own turn comes before what follows it in the log.
func TestEndBeforeNext(t *testing.T) {
	rounds := 100
	if !long.All() {
		rounds = 10
	}
	for version := 1; version <= 2; version++ {
		r := newRig(t, talking(nil))
		c, wire := r.wired(version)
		s := c.new(t)
		o := r.connect(3-version).load(t, s.ID())
		for i := range rounds {
			from := wire.count()
			mine := s.Prompt(t.Context(), acp.Text(fmt.Sprintf("mine%d", i)))
			theirs := o.Prompt(t.Context(), acp.Text(fmt.Sprintf("theirs%d", i)))
			for _, reply := range []*acp.Reply{mine, theirs} {
				if _, err := reply.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			c.seen.until(t, fmt.Sprintf("agent: theirs%d", i))
			wire.mu.Lock()
			said, ended, next := -1, -1, -1
			for n, f := range wire.frames[from:] {
				switch {
				case bytes.Contains(f, []byte(fmt.Sprintf(`"text":"mine%d"`, i))) && bytes.Contains(f, []byte("agent_message_chunk")):
					said = n
				case said >= 0 && ended < 0 && (bytes.Contains(f, []byte(`"stopReason"`)) || bytes.Contains(f, []byte(`"idle"`))):
					ended = n
				case next < 0 && bytes.Contains(f, []byte(fmt.Sprintf(`"text":"theirs%d"`, i))):
					next = n
				}
			}
			wire.mu.Unlock()
			if said < 0 || ended < 0 || next > said && next < ended {
				t.Fatalf("version %d, round %d: said %d, ended %d, next %d:\n%s", version, i, said, ended, next, bytes.Join(wire.frames[from:], []byte("\n")))
			}
		}
	}
}
