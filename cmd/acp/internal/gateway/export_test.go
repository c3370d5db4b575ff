package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/trace"
)

// TestExport: a session is written as a recording that has every prompt, everything that was said, in order and with
// the times of the log, and each end.
func TestExport(t *testing.T) {
	r := newRig(t, talking(nil))
	c := r.connect(1, func(c *acp.Client) {
		c.RequestPermission = func(_ context.Context, p *acp.PermissionRequest) (acp.PermissionDecision, error) {
			return acp.SelectPermission(p.Options[0].OptionID), nil
		}
	})
	s := c.new(t)
	say(t, s, "one two")
	say(t, s, "ask")
	var out bytes.Buffer
	if err := Export(t.Context(), r.log, string(s.ID()), "acp test", &out); err != nil {
		t.Fatal(err)
	}
	got := happened(t, &out)
	want := []string{
		">initialize", ">session/new",
		">session/prompt", "user_message", "state_update running", "agent_message_chunk one", "agent_message_chunk two", "state_update idle end_turn",
		">session/prompt", "user_message", "state_update running", "notice The agent asks: Really?", "notice The answer is allow_once, by local.",
		"agent_message_chunk allow_oncetrue", "state_update idle end_turn",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var again bytes.Buffer
	if err := ExportHistory(t.Context(), s.ID(), "/project", "acp test", &again, func(p *HistoryRequest) (*HistoryAnswer, error) {
		if p.Limit != maxHistory {
			t.Errorf("a page of %d", p.Limit)
		}
		p.Limit = 3
		return HistoryMethod.Call(t.Context(), r.connect(2).conn.Conn(), p)
	}); err != nil {
		t.Fatal(err)
	}
	want[12] = "notice The answer is Allow, by local." // as people see it
	if diff := cmp.Diff(want, happened(t, &again)); diff != "" {
		t.Error(diff)
	}
	if err := Export(t.Context(), r.log, "nowhere", "", io.Discard); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a session that is not there: %v", err)
	}
}

// happened returns what a recording has, whose times must not go back.
func happened(t *testing.T, out io.Reader) (got []string) {
	t.Helper()
	in, err := trace.NewReader(out)
	if err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	for {
		rec, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if int64(rec.At) < last {
			t.Errorf("%v is before %v", rec.At, last)
		}
		last = int64(rec.At)
		var f struct {
			Method string
			Params struct {
				Update struct {
					SessionUpdate, State, StopReason, Title string

					Content json.RawMessage
				}
			}
		}
		if err := json.Unmarshal(rec.Data, &f); err != nil {
			t.Fatal(err)
		}
		switch {
		case f.Method == "session/update":
			u := f.Params.Update
			var content struct{ Text string }
			_ = json.Unmarshal(u.Content, &content) // of a message it is a list
			got = append(got, strings.Join(slices.DeleteFunc([]string{u.SessionUpdate, u.State, u.StopReason, u.Title, content.Text}, func(s string) bool { return s == "" }), " "))
		case f.Method != "":
			got = append(got, string(rec.Dir)+f.Method)
		}
	}
	return got
}

// TestExportCompacted: a session that is compacted while it is exported page by page is exported once and whole, wherever
// a page has ended.
func TestExportCompacted(t *testing.T) {
	r := newRig(t, talking(nil))
	c := r.connect(1)
	s := c.new(t)
	say(t, s, "one two three four")
	say(t, s, "five six")
	n := len(logOf(t, r, s.ID()))
	ids := []acp.SessionID{s.ID()}
	for range n {
		s := c.new(t)
		say(t, s, "one two three four")
		say(t, s, "five six")
		ids = append(ids, s.ID())
	}
	_ = c.conn.Close()
	r.close()
	r.open()
	c = r.connect(2)
	var out bytes.Buffer
	if err := Export(t.Context(), r.log, string(ids[0]), "", &out); err != nil {
		t.Fatal(err)
	}
	want := merged(happened(t, &out))
	again := 0
	for i, id := range ids {
		out.Reset()
		pages := 0
		err := ExportHistory(t.Context(), id, "/project", "", &out, func(p *HistoryRequest) (*HistoryAnswer, error) {
			switch pages++; pages {
			case 1:
				p.Limit = i + 1
			case 2:
				if _, err := r.g.alone(t.Context(), string(id), func(ctx context.Context, own *engine.Owned) error {
					info, err := r.log.Session(ctx, string(id))
					if err != nil {
						return err
					}
					return r.g.compact(ctx, &info, own, 0)
				}); err != nil {
					t.Fatal(err)
				}
			}
			if pages > 2 && *p.After == 0 {
				again++
			}
			return HistoryMethod.Call(t.Context(), c.conn.Conn(), p)
		})
		if err != nil {
			t.Errorf("after %d records: %v", i+1, err)
			continue
		}
		if diff := cmp.Diff(want, merged(happened(t, &out))); diff != "" {
			t.Errorf("after %d records: %s", i+1, diff)
		}
	}
	if again < 4 {
		t.Errorf("a page ended %d times inside of what was compacted", again)
	}
}

// merged is what has happened, with pieces of one message together.
func merged(all []string) (out []string) {
	for _, what := range all {
		piece, ok := strings.CutPrefix(what, "agent_message_chunk ")
		if n := len(out); ok && n > 0 && strings.HasPrefix(out[n-1], "agent_message_chunk ") {
			out[n-1] += piece
			continue
		}
		out = append(out, what)
	}
	return out
}

// TestPiecesRemoved: what a message was merged with is removed from it if it is there, of that message.
func TestPiecesRemoved(t *testing.T) {
	chunk := func(cursor uint64, message, text string) *PastUpdate {
		raw, err := piece{message: acp.MessageID(message), text: text}.update()
		if err != nil {
			t.Fatal(err)
		}
		return &PastUpdate{Kind: PastUpdated, Cursor: cursor, Update: raw}
	}
	thought, err := piece{message: "m", text: "abcd", thought: true}.update()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		said  []*PastUpdate
		next  *PastUpdate
		after uint64
		want  string
		fails bool
	}{
		{"nothing was merged", []*PastUpdate{chunk(1, "m", "a")}, chunk(2, "m", "b"), 1, "b", false},
		{"some", []*PastUpdate{chunk(1, "m", "a"), chunk(2, "m", "b"), chunk(3, "m", "c")}, chunk(4, "m", "bcd"), 1, "d", false},
		{"another message came between", []*PastUpdate{chunk(1, "m", "a"), chunk(2, "n", "b")}, chunk(3, "n", "bc"), 0, "c", false},
		{"large ones", []*PastUpdate{chunk(1, "m", "a"), chunk(2, "m", strings.Repeat("b", maxMerged)), chunk(3, "m", "c")}, chunk(4, "m", "cd"), 2, "d", false},
		{"another text", []*PastUpdate{chunk(1, "m", "a")}, chunk(2, "m", "bc"), 0, "", true},
		{"another message", []*PastUpdate{chunk(1, "m", "a")}, chunk(2, "n", "ab"), 0, "", true},
		{"a thought", []*PastUpdate{chunk(1, "m", "a")}, &PastUpdate{Kind: PastUpdated, Cursor: 2, Update: thought}, 0, "", true},
		{"no message", []*PastUpdate{chunk(1, "m", "a")}, &PastUpdate{Kind: PastEnd, Cursor: 2}, 0, "", true},
	} {
		var ps pieces
		for _, u := range tt.said {
			ps.add(u)
		}
		raw, err := ps.remove(tt.next, tt.after)
		if tt.fails {
			if err == nil {
				t.Errorf("%s: %s", tt.name, raw)
			}
			continue
		}
		if got, ok := pieceOf(&PastUpdate{Kind: PastUpdated, Update: raw}); err != nil || !ok || got.text != tt.want {
			t.Errorf("%s: %s, %v", tt.name, raw, err)
		}
	}
}
