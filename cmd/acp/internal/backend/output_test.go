//go:build unix

package backend

import (
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/transcript"
)

// A recorded is what is written of what a session is told.
type recorded struct {
	o     outputs
	bytes int
	list  []store.Event
}

func (r *recorded) tell(u acp.SessionUpdate) {
	r.add(&item{update: u, event: updateEvent(u)})
}

func (r *recorded) add(it *item) {
	events := r.o.events(nil, it)
	for _, e := range events {
		r.bytes += len(e.Data)
	}
	r.list = append(r.list, events...)
}

func (r *recorded) memory() (n int) {
	for _, x := range r.o.terminals {
		n += cap(x.tail)
	}
	for _, x := range r.o.calls {
		n += x.inMemory()
	}
	return n
}

// conversation is what is read of the record.
func (r *recorded) conversation(t *testing.T) *transcript.Snapshot {
	t.Helper()
	kept := openStore(t, filepath.Join(t.TempDir(), "kept"))
	written := make(chan struct{}, 1)
	rec := kept.Record(store.Session{Key: store.Key{Agent: "a", ID: "s"}}, store.RecordOptions{Trouble: func(_ string, err error) {
		if err == nil {
			select {
			case written <- struct{}{}:
			default:
			}
		}
	}})
	rec.Append(r.list...)
	for err := rec.Sync(t.Context()); err != nil; err = rec.Sync(t.Context()) { // a busy machine may take longer than Close waits
		select {
		case <-written:
		case <-t.Context().Done():
			t.Fatal(err)
		}
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	snap, _, err := kept.Snapshot(t.Context(), rec.Conversation(), store.Bounds())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func outputChunk(id, text string) acp.SessionUpdate {
	return &acp.TerminalOutputChunk{TerminalID: acp.TerminalID(id), Data: base64.StdEncoding.EncodeToString([]byte(text))}
}

func exited(id string) acp.SessionUpdate {
	return &acp.TerminalUpdate{TerminalID: acp.TerminalID(id), ExitStatus: acp.Set(acp.TerminalExitStatus{})}
}

// few are the usual bounds, divided by 16.
var few = outputBounds{
	head: usual.head / 16, tail: usual.tail / 16, piece: usual.piece / 16, more: usual.more / 16, last: usual.last / 16,
	content: usual.content / 16, held: usual.held / 16,
}

// numbered is output in which each place is known.
func numbered(from, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%015d\n", from+i)
	}
	return b.String()
}

// TestOutputBound: of a command that prints for long the first and the last part are kept and the gap is
// known, whatever ends it; at each moment a part that is not older than a quarter of the output.
func TestOutputBound(t *testing.T) {
	bound := (few.head + few.more) * 4 / 3 * 11 / 10 // base64, and what is around it
	const lines = 2 << 6
	const total = 24 << 16
	for name, end := range map[string]func(r *recorded){
		"exit": func(r *recorded) { r.tell(exited("x")) },
		"turn": func(r *recorded) {
			e := &transcript.TurnEnd{}
			r.add(&item{turn: e, event: turnEvent(e)})
		},
		"close": func(r *recorded) { r.list = r.o.flush(r.list) },
		"kill":  func(*recorded) {},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorded{o: outputs{bounds: &few}}
			n := 0
			for n*16 < total {
				r.tell(outputChunk("x", numbered(n, lines)))
				n += lines
				if m := r.memory(); m > 4*few.tail {
					t.Fatalf("%d bytes are in memory", m)
				}
			}
			end(&r)
			if r.bytes > bound {
				t.Errorf("%d bytes are written, more than %d", r.bytes, bound)
			}
			term := r.conversation(t).Terminal("x")
			if !strings.HasPrefix(numbered(0, total/16), term.Head()) || len(term.Head()) < few.head-lines*16 {
				t.Errorf("the beginning has %d bytes", len(term.Head()))
			}
			all := uint64(len(term.Head())) + term.Gap() + uint64(len(term.Raw()))
			if name == "kill" {
				if all < uint64(total-total/pieceShare) {
					t.Errorf("the end is that of %d bytes of %d", all, total)
				}
			} else if all != uint64(total) || len(term.Raw()) < few.tail {
				t.Errorf("%d bytes of %d are accounted for, %d of the end", all, total, len(term.Raw()))
			}
			first := int(all) - len(term.Raw())
			if want := numbered(first/16, 1); !strings.HasPrefix(term.Raw()[(16-first%16)%16:], numbered((first+15)/16, 1)) {
				t.Errorf("the end begins with %q, want %q", term.Raw()[:16], want)
			}
		})
	}
}

// TestOutputOnDisk: a command that prints for long does not fill the disk.
func TestOutputOnDisk(t *testing.T) {
	const total = 24 << 20
	cfg := config(t, 2, &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		for range total / (32 << 10) {
			if err := turn.Session().Send(outputChunk("x", strings.Repeat("y\n", 16<<10))); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, turn.Session().Send(exited("x"))
	}})
	dir := filepath.Join(t.TempDir(), "kept")
	cfg.Store = openStore(t, dir)
	h := open(t, cfg)
	s, err := h.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(t.Context(), acp.Text("go")); err != nil {
		t.Fatal(err)
	}
	snap, _, err := cfg.Store.Snapshot(t.Context(), s.journal.conversationID(), store.Bounds())
	if err != nil {
		t.Fatal(err)
	}
	for name, snap := range map[string]*transcript.Snapshot{"shown": s.Snapshot(), "kept": snap} {
		term := snap.Terminal("x")
		if got := uint64(len(term.Head())) + term.Gap() + uint64(len(term.Raw())); got != total || term.Gap() == 0 {
			t.Errorf("%s: %d bytes of %d, gap %d", name, got, total, term.Gap())
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		size += info.Size()
		return err
	})
	if limit := int64(2 * (usual.head + usual.more)); err != nil || size > limit {
		t.Errorf("%d bytes are on the disk, more than %d; %v", size, limit, err)
	}
}

// TestShortOutput: what is within the bound is written as it comes.
func TestShortOutput(t *testing.T) {
	var r recorded
	for i := range 100 {
		r.tell(outputChunk("x", numbered(i, 1)))
	}
	if term := r.conversation(t).Terminal("x"); term.Raw() != numbered(0, 100) || term.Head() != "" || term.Gap() != 0 {
		t.Errorf("%d bytes, gap %d", len(term.Raw()), term.Gap())
	}
	// A little more than the bound leaves no gap.
	var more recorded
	n := (usual.head + usual.tail/2) / 16
	for i := 0; i < n; i += 1 << 10 {
		more.tell(outputChunk("x", numbered(i, 1<<10)))
	}
	more.tell(exited("x"))
	if term := more.conversation(t).Terminal("x"); term.Head()+term.Raw() != numbered(0, n) || term.Gap() > 0 {
		t.Errorf("%d bytes of %d, gap %d", len(term.Raw()), n*16, term.Gap())
	}
}

// TestManyOutputs: many commands that print for long at the same time need little memory.
func TestManyOutputs(t *testing.T) {
	long.Test(t)
	var r recorded
	piece := numbered(0, 4<<10)
	for i := range 40 {
		for range 30 {
			r.tell(outputChunk(fmt.Sprint(i), piece))
		}
		if m := r.memory(); m > maxTails*3*usual.tail {
			t.Fatalf("%d bytes are in memory", m)
		}
	}
	r.list = r.o.flush(r.list)
	snap := r.conversation(t)
	for i := range 40 {
		term := snap.Terminal(acp.TerminalID(fmt.Sprint(i)))
		if got := uint64(len(term.Head())) + term.Gap() + uint64(len(term.Raw())); got != uint64(30*len(piece)) {
			t.Fatalf("%d: %d bytes are accounted for", i, got)
		}
	}
}

// TestReplacedOutput: output that an agent tells anew each time, as a whole, is bounded, too.
func TestReplacedOutput(t *testing.T) {
	r := recorded{o: outputs{bounds: &few}}
	text := ""
	for i := range 300 {
		text += numbered(i<<6, 1<<6)
		r.tell(&acp.TerminalUpdate{TerminalID: "x", Output: acp.Set(acp.TerminalOutput{Data: base64.StdEncoding.EncodeToString([]byte(text))})})
	}
	r.tell(exited("x"))
	if limit := 2 * (few.head + few.more); r.bytes > limit {
		t.Errorf("%d bytes are written, more than %d", r.bytes, limit)
	}
	if term := r.conversation(t).Terminal("x"); !strings.HasSuffix(text, term.Raw()) || len(term.Raw()) < few.tail/2 {
		t.Errorf("the end has %d bytes", len(term.Raw()))
	}
}

// TestContentBound: the content of a tool call is bounded, whether it grows by pieces or is replaced.
func TestContentBound(t *testing.T) {
	text := func(n int) acp.ToolCallContent { return &acpv2.Content{Content: acp.Text(numbered(n<<6, 1<<6))} }
	whole := func(n int) string { return numbered(0, (n+1)<<6) }
	const times = 1000
	for name, tell := range map[string]func(r *recorded, n int){
		"pieces": func(r *recorded, n int) { r.tell(&acpv2.ToolCallContentChunk{ToolCallID: "c", Content: text(n)}) },
		"replaced": func(r *recorded, n int) {
			if n%20 == 19 {
				r.tell(&acp.ToolCallUpdate{ToolCallID: "c", Title: acp.Set("work"), Content: acp.Set([]acp.ToolCallContent{&acpv2.Content{Content: acp.Text(whole(n))}})})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorded{o: outputs{bounds: &few}}
			for n := range times {
				tell(&r, n)
				if m := r.memory(); m > few.head+2*few.tail {
					t.Fatalf("%d bytes are in memory", m)
				}
			}
			r.tell(&acp.ToolCallUpdate{ToolCallID: "c", Status: acp.Set(acp.ToolCallStatusCompleted)})
			if limit := few.content + 2*few.head + 2*few.tail; r.bytes > limit {
				t.Errorf("%d bytes are written, more than %d", r.bytes, limit)
			}
			c := r.conversation(t).ToolCall("c")
			var all strings.Builder
			for _, x := range c.Content {
				all.WriteString(x.(*acpv2.Content).Content.(*acp.TextContent).Text)
			}
			got := all.String()
			if !strings.HasPrefix(got, numbered(0, 1<<6)) || !strings.HasSuffix(got, numbered(times<<6-100, 100)) || !strings.Contains(got, "bytes were not kept …]") {
				t.Errorf("%d bytes, %.40q … %q", len(got), got, got[len(got)-40:])
			}
			if !c.Ended() {
				t.Error("it has not ended")
			}
		})
	}
}

// TestEmptyOutput: output without a byte in it, behind a turn that has ended, holds nothing up.
func TestEmptyOutput(t *testing.T) {
	for _, data := range []string{"", "!!!!"} {
		var r recorded
		for i := range 80 {
			r.tell(outputChunk("x", numbered(i<<10, 1<<10)))
		}
		r.endTurn()
		r.tell(&acp.TerminalOutputChunk{TerminalID: "x", Data: data})
		if n := len(r.o.tails); n != 0 {
			t.Errorf("%q: %d outputs are held", data, n)
		}
		r.endTurn() // which would go on for ever
	}
}
