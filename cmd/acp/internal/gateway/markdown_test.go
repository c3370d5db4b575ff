package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

// A render makes a text of a conversation.
type render struct {
	*records.Fold
	write func(io.Writer, *transcript.Snapshot) error
}

func (r render) Write(w io.Writer) error { return r.write(w, r.Conversation.Snapshot()) }

// rendering is a [Config.Markdown] that writes with a function.
func rendering(write func(io.Writer, *transcript.Snapshot) error) func(string) Rendering {
	return func(string) Rendering { return render{records.NewFold(transcript.Config{}), write} }
}

// TestExportPieces: a session is exported in pieces that are bounded, and of one text, although the session continues.
func TestExportPieces(t *testing.T) {
	r := newRig(t, talking(nil))
	c := r.connect(2)
	s := c.new(t)
	say(t, s, "one two")
	ask := func(p ExportRequest) (*ExportAnswer, error) {
		p.SessionID = s.ID()
		return ExportMethod.Call(t.Context(), c.conn.Conn(), &p)
	}
	if _, err := ask(ExportRequest{}); code(err) != jsonrpc.CodeMethodNotFound {
		t.Errorf("without a writer: %v", err)
	}
	rendered := 0
	r.g.cfg.Markdown = rendering(func(w io.Writer, said *transcript.Snapshot) error {
		rendered++
		entries := 0
		for range said.Entries() {
			entries++
		}
		_, err := fmt.Fprintf(w, "test: %d entries\n%s", entries, strings.Repeat("ä", maxPiece))
		return err
	})
	first, err := ask(ExportRequest{})
	if err != nil || !strings.HasPrefix(first.Text, "test: 3 entries\n") || len(first.Text) > maxPiece || first.Next == 0 {
		t.Fatal(first, err)
	}
	all := first.Text
	for next := first; next.Next > 0; {
		say(t, s, "more")
		if next, err = ask(ExportRequest{Offset: next.Next, Cursor: &next.Cursor}); err != nil {
			t.Fatal(err)
		}
		all += next.Text
		if !utf8.ValidString(next.Text) || next.Size != first.Size {
			t.Errorf("a piece of %d bytes", len(next.Text))
		}
	}
	if len(all) != first.Size || rendered != 1 {
		t.Errorf("%d bytes of %d, rendered %d times", len(all), first.Size, rendered)
	}
	for _, p := range []ExportRequest{{Offset: -1}, {Offset: 1 << 30}, {Offset: len("test: 3 entries\n") + 1, Cursor: &first.Cursor}, {Cursor: new(uint64(1000))}} {
		if _, err := ask(p); code(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("%+v: %v", p, err)
		}
	}
	r.g.cfg.Markdown = rendering(func(w io.Writer, _ *transcript.Snapshot) error {
		_, err := w.Write(make([]byte, maxExport+1))
		return err
	})
	say(t, s, "again")
	if _, err := ask(ExportRequest{}); err == nil {
		t.Error("a text that is too large is sent")
	} else if f, _ := errors.AsType[*acp.Failure](err); f == nil || f.Reason != "too_large" {
		t.Error(err)
	}
}

// TestExports: what is remembered is returned although other texts are being made, a text is made once for all who ask,
// so many are made at a time, and what is known of a session that is too large is used for a while.
func TestExports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e exports
		var mu sync.Mutex
		made := make(map[string]int)
		text := func(id string, cursor uint64, until <-chan struct{}, err error) error {
			_, failed := e.of(t.Context(), id, cursor, func() ([]byte, error) {
				mu.Lock()
				made[id]++
				mu.Unlock()
				<-until
				return []byte(id), err
			})
			return failed
		}
		now, later := make(chan struct{}), make(chan struct{})
		close(now)
		for _, id := range []string{"a", "b", "c"} {
			if err := text(id, 1, now, nil); err != nil {
				t.Error(err)
			}
		}
		var asking sync.WaitGroup
		for range 3 {
			for i := range 2 * maxRendering {
				asking.Go(func() {
					if err := text(fmt.Sprint("slow ", i), 1, later, nil); err != nil {
						t.Error(err)
					}
				})
			}
		}
		synctest.Wait()
		if n := len(made) - 3; n != maxRendering {
			t.Errorf("%d texts are being made, want %d", n, maxRendering)
		}
		for range 3 {
			for _, id := range []string{"a", "b", "c"} {
				if err := text(id, 1, nil, nil); err != nil { // else it is made, which never ends
					t.Error(err)
				}
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		leaves := errors.New("the client leaves")
		cancel(leaves)
		for _, id := range []string{"slow 0", "another"} {
			if _, err := e.of(ctx, id, 1, nil); !errors.Is(err, leaves) {
				t.Error(err)
			}
		}
		close(later)
		asking.Wait()
		for id, n := range made {
			if n != 1 {
				t.Errorf("%q was made %d times", id, n)
			}
		}

		for cursor := range uint64(5) {
			if err := text("large", 7+cursor, now, errTooLarge); !errors.Is(err, errTooLarge) {
				t.Error(err)
			}
		}
		if made["large"] != 1 {
			t.Errorf("a text that is too large was made %d times", made["large"])
		}
		if err := text("large", 3, now, nil); err != nil { // which may be smaller
			t.Error(err)
		}
		time.Sleep(largeFor)
		if err := text("large", 12, now, errTooLarge); !errors.Is(err, errTooLarge) || made["large"] != 3 {
			t.Errorf("%v, made %d times", err, made["large"])
		}

		e.expire()
		if err := text("a", 1, nil, nil); err != nil {
			t.Error(err)
		}
		time.Sleep(exportFor - time.Second)
		if err := text("b", 1, nil, nil); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		e.expire()
		if len(e.all) != 1 || e.all[0].id != "b" || e.size != 1 {
			t.Errorf("%d texts of %d bytes are remembered after a while", len(e.all), e.size)
		}
	})
}

// TestExportsBounds: the texts that are remembered are bounded in number and size, and nothing of a session is remembered
// that was deleted, also while it was being made.
func TestExportsBounds(t *testing.T) {
	var e exports
	put := func(id string, text []byte, meanwhile func()) {
		t.Helper()
		if _, err := e.of(t.Context(), id, 1, func() ([]byte, error) { meanwhile(); return text, nil }); err != nil {
			t.Error(err)
		}
	}
	nothing := func() {}
	for i := range 2 * maxExports {
		put(fmt.Sprint(i), []byte("x"), nothing)
	}
	if len(e.all) != maxExports || e.size != maxExports {
		t.Errorf("%d texts of %d bytes are remembered", len(e.all), e.size)
	}
	large := make([]byte, maxExport)
	for i := range 2 * maxExportsBytes / maxExport {
		put(fmt.Sprint("large ", i), large, nothing)
	}
	if len(e.all) != maxExportsBytes/maxExport || e.size != maxExportsBytes {
		t.Errorf("%d texts of %d bytes are remembered", len(e.all), e.size)
	}
	e.drop(e.all[0].id)
	put("deleted", []byte("x"), func() { e.drop("deleted") })
	if len(e.all) != maxExportsBytes/maxExport-1 || e.size != maxExportsBytes-maxExport {
		t.Errorf("%d texts of %d bytes are remembered after two sessions were deleted", len(e.all), e.size)
	}
	var l limited
	if n, err := io.WriteString(&l, strings.Repeat("x", maxExport+1)); !errors.Is(err, errTooLarge) || n != 0 {
		t.Errorf("%d bytes were written, %v", n, err)
	}
}

// TestExportEnds: a text says of a turn that was cancelled, or has failed, that it was.
func TestExportEnds(t *testing.T) {
	r := newRig(t, &acp.Agent{Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		if t.Text() == "fail" {
			return "", errors.New("on purpose")
		}
		if t.Text() == "wait" {
			_ = t.Say("waiting")
			<-ctx.Done()
		}
		return acp.StopEndTurn, nil
	}})
	r.g.cfg.Markdown = rendering(func(w io.Writer, said *transcript.Snapshot) error {
		for e := range said.Entries() {
			if end, ok := e.(*transcript.TurnEnd); ok {
				fmt.Fprintf(w, "%s %t\n", end.StopReason, end.Error != "")
			}
		}
		return nil
	})
	c := r.connect(2)
	s := c.new(t)
	say(t, s, "well")
	ctx, cancel := context.WithCancel(t.Context())
	reply := s.Prompt(ctx, acp.Text("wait"))
	c.seen.until(t, "agent: waiting")
	cancel()
	_, _ = reply.Wait()
	if _, err := s.Prompt(t.Context(), acp.Text("fail")).Wait(); err == nil {
		t.Error("it has not failed")
	}
	text, err := ExportMethod.Call(t.Context(), c.conn.Conn(), &ExportRequest{SessionID: s.ID()})
	if err != nil || text.Text != "end_turn false\ncancelled false\nerror true\n" {
		t.Errorf("%+v, %v", text, err)
	}
}

// TestExportSubagents: a text has what the agent said, without what its subagents said in conversations of their own.
func TestExportSubagents(t *testing.T) {
	r := newRig(t, delegating())
	r.g.cfg.Markdown = rendering(func(w io.Writer, said *transcript.Snapshot) error {
		for e := range said.Entries() {
			if m, ok := e.(*transcript.Message); ok {
				fmt.Fprintf(w, "%s|", m.Text())
			}
		}
		return nil
	})
	c := r.connect(2)
	s := c.new(t)
	say(t, s, "one two")
	text, err := ExportMethod.Call(t.Context(), c.conn.Conn(), &ExportRequest{SessionID: s.ID()})
	if err != nil || text.Text != "one two|before after|" {
		t.Errorf("%+v, %v", text, err)
	}
}
