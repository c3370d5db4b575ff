//go:build unix

package backend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/transcript"
)

// endTurn ends a turn.
func (r *recorded) endTurn() {
	e := &transcript.TurnEnd{}
	r.add(&item{turn: e, event: turnEvent(e)})
}

// accounted returns how many bytes of the output of a command are known of, shown or not.
func accounted(t *testing.T, snap *transcript.Snapshot, id string) int {
	t.Helper()
	term := snap.Terminal(acp.TerminalID(id))
	if term == nil {
		t.Fatalf("there is no terminal %s", id)
	}
	return len(term.Head()) + int(term.Gap()) + len(term.Raw())
}

func content1K(n int) acp.ToolCallContent {
	return &acpv2.Content{Content: acp.Text(numbered(n<<6, 1<<6))}
}

// TestEndsAfterBound: a command that goes on for many turns beyond the bound of its output costs a little more
// with each turn, and how much was left out is known.
func TestEndsAfterBound(t *testing.T) {
	bound := (few.head + few.more) * 4 / 3 * 11 / 10
	const turns = 40
	r := recorded{o: outputs{bounds: &few}}
	total := 0
	for turn := range turns {
		for range 3 {
			piece := numbered(total/16, 2<<10)
			r.tell(outputChunk("x", piece))
			total += len(piece)
		}
		r.endTurn()
		if turn%10 != 9 {
			continue
		}
		if got := accounted(t, r.conversation(t), "x"); got != total {
			t.Fatalf("after a turn %d bytes of %d are accounted for", got, total)
		}
	}
	r.tell(exited("x"))
	if got := accounted(t, r.conversation(t), "x"); got != total {
		t.Errorf("%d bytes of %d are accounted for", got, total)
	}
	if limit := bound + turns*few.last*2; r.bytes > limit {
		t.Errorf("%d bytes are written, more than %d", r.bytes, limit)
	}
	if raw := r.conversation(t).Terminal("x").Raw(); !strings.HasSuffix(numbered(0, total/16), raw) || raw == "" {
		t.Errorf("the end has %d bytes", len(raw))
	}
}

// TestAlternatingOutputs: of more commands than there is memory for, which print in turns, each stays within
// its bound, and how much was left out is known.
func TestAlternatingOutputs(t *testing.T) {
	const commands, rounds = maxTails + 2, 60
	bound := (few.head + few.more + 2*maxLast*few.last) * 4 / 3 * 11 / 10
	r := recorded{o: outputs{bounds: &few}}
	piece := numbered(0, 1<<10)
	for range rounds {
		for i := range commands {
			r.tell(outputChunk(fmt.Sprint(i), piece))
		}
		if m := r.memory(); m > maxTails*3*few.tail {
			t.Fatalf("%d bytes are in memory", m)
		}
	}
	r.endTurn()
	if r.bytes > commands*bound {
		t.Errorf("%d bytes are written for each, more than %d", r.bytes/commands, bound)
	}
	snap := r.conversation(t)
	for i := range commands {
		if got := accounted(t, snap, fmt.Sprint(i)); got != rounds*len(piece) {
			t.Errorf("%d: %d bytes of %d are accounted for", i, got, rounds*len(piece))
		}
	}
}

// TestHeldTogether: what is in memory of the content of all tool calls is bounded together, and none of it
// is lost without a word.
func TestHeldTogether(t *testing.T) {
	const calls = 60
	more := 2 * few.tail >> 10
	r := recorded{o: outputs{bounds: &few}}
	tell := func(id string, kib, from int) {
		var text strings.Builder
		for i := range kib {
			text.WriteString(numbered((from+i)<<6, 1<<6))
		}
		r.tell(&acpv2.ToolCallContentChunk{ToolCallID: acp.ToolCallID(id), Content: &acpv2.Content{Content: acp.Text(text.String())}})
	}
	for i := range calls {
		id := fmt.Sprint("c", i)
		tell(id, few.content>>10*7/8, 0)        // is written
		for from := 0; from < more; from += 4 { // twice as much as is held
			tell(id, 4, 1<<20+from)
		}
		r.tell(&acp.ToolCallUpdate{ToolCallID: acp.ToolCallID("raw" + id), RawOutput: []byte(`"` + strings.Repeat("x", few.content+1) + `"`)})
		if m := r.memory(); m > few.held+2*few.tail {
			t.Fatalf("%d bytes are in memory", m)
		}
	}
	if r.o.held > few.held || r.o.held == 0 {
		t.Errorf("%d bytes are counted", r.o.held)
	}
	r.endTurn()
	if r.o.held != 0 || len(r.o.holding) != 0 || r.memory() != 0 {
		t.Errorf("%d bytes of %d calls are counted in the end, %d are in memory", r.o.held, len(r.o.holding), r.memory())
	}
	snap := r.conversation(t)
	for i := range calls {
		for _, id := range []string{fmt.Sprint("c", i), fmt.Sprint("rawc", i)} {
			var all strings.Builder
			for _, x := range snap.ToolCall(acp.ToolCallID(id)).Content {
				all.WriteString(x.(*acpv2.Content).Content.(*acp.TextContent).Text)
			}
			got := all.String()
			if !strings.Contains(got, "bytes were not kept …]") {
				t.Errorf("%s: nothing says that something was not kept: %d bytes", id, len(got))
			}
			if last := numbered((1<<20+more)<<6-100, 100); id[0] == 'c' && !strings.HasSuffix(got, last) {
				t.Errorf("%s: %d bytes end with %q", id, len(got), got[max(len(got)-40, 0):])
			}
		}
	}
}

// TestOftenHeld: content of a tool call that had to be written too often is left out, which is told once.
func TestOftenHeld(t *testing.T) {
	var r recorded
	big := &acpv2.Content{Content: acp.Text(numbered(0, usual.content/16+1))}
	for n := range 3 * maxFlushes {
		r.tell(&acp.ToolCallUpdate{ToolCallID: "c", Content: acp.Set([]acp.ToolCallContent{big})})
		before := len(r.list)
		r.endTurn()
		if wrote := len(r.list) > before+1; !wrote {
			t.Errorf("turn %d: nothing is written of it", n)
		}
	}
	if limit := maxFlushes*(usual.head+usual.tail) + usual.content; r.bytes > limit {
		t.Errorf("%d bytes are written, more than %d", r.bytes, limit)
	}
}

// TestManyCounted: more commands and tool calls than are counted do not have the ends of those before
// forgotten.
func TestManyCounted(t *testing.T) {
	long.Test(t)
	var r recorded
	piece := numbered(0, 96<<10) // the beginning, and more
	r.tell(outputChunk("first", piece))
	r.tell(outputChunk("first", piece))
	r.tell(&acp.ToolCallUpdate{ToolCallID: "first", Content: acp.Set([]acp.ToolCallContent{
		&acpv2.Content{Content: acp.Text(numbered(0, usual.content/16+1))}})})
	for i := range maxCounted + 10 {
		id := fmt.Sprint(i)
		r.list = append(r.list, written(r.o.events(nil, &item{update: outputChunk(id, "x")}))...)
		r.list = append(r.list, written(r.o.events(nil, &item{update: &acpv2.ToolCallContentChunk{ToolCallID: acp.ToolCallID(id), Content: content1K(0)}}))...)
	}
	if n := max(len(r.o.terminals), len(r.o.calls)); n > maxCounted {
		t.Errorf("%d are counted", n)
	}
	r.endTurn()
	snap := r.conversation(t)
	if got := accounted(t, snap, "first"); got != 2*len(piece) {
		t.Errorf("%d bytes of %d are accounted for", got, 2*len(piece))
	}
	var text string
	for _, x := range snap.ToolCall("first").Content {
		text += x.(*acpv2.Content).Content.(*acp.TextContent).Text
	}
	if !strings.HasSuffix(text, numbered(usual.content/16-9, 10)) {
		t.Errorf("the content has %d bytes", len(text))
	}
}

// written returns what is written besides the events of items that have none.
func written(events []store.Event) (list []store.Event) {
	for _, e := range events {
		if e.Kind != "" {
			list = append(list, e)
		}
	}
	return list
}
