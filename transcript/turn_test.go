package transcript

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv2"
)

// TestTurnEnded: the turns of what comes before the end of the last one that runs are over, here, in
// what goes on from here and in what is read again.
func TestTurnEnded(t *testing.T) {
	c := New(Config{})
	call := func(id string) uint64 {
		return c.Apply(&acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(id)}).Seq
	}
	first := call("a")
	if c.Snapshot().TurnOver(first) {
		t.Error("it is over before any end")
	}
	c.TurnEnded(&TurnEnd{By: EndedByUser, StopReason: acpv2.StopReasonCancelled, Others: 1})
	if c.Snapshot().TurnOver(first) {
		t.Error("it is over while another turn runs")
	}
	ch := c.TurnEnded(&TurnEnd{By: EndedByCrash, Said: "words", Error: "cause"})
	if ch.Op != OpCreated || ch.Kind != KindTurnEnd {
		t.Errorf("change %+v", ch)
	}
	last := call("b")
	var read Snapshot
	if err := read.UnmarshalJSON([]byte(jsonOf(t, c.Snapshot()))); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Snapshot{"snapshot": c.Snapshot(), "continued": c.Snapshot().Continue(Config{}).Snapshot(), "read": &read} {
		if !s.TurnOver(first) || s.TurnOver(last) {
			t.Errorf("%s: over: %v, %v", name, s.TurnOver(first), s.TurnOver(last))
		}
		end, ok := s.Entry(ch.Seq).(*TurnEnd)
		if !ok || end.By != EndedByCrash || end.Said != "words" || end.Error != "cause" || end.IsClean() {
			t.Errorf("%s: end %+v", name, end)
		}
	}
	long := strings.Repeat("x", 1<<20)
	cut := c.TurnEnded(&TurnEnd{Said: long, Error: long, By: EndedBy(long), StopReason: acpv2.StopReason(long)}).Seq
	end := c.Snapshot().Entry(cut).(*TurnEnd)
	if n := len(end.Said) + len(end.Error) + len(end.By) + len(end.StopReason); n > 2*shortBytes+2*idBytes || end.Dropped() == 0 {
		t.Errorf("%d bytes are kept, %d are not", n, end.Dropped())
	}
	for _, tt := range []struct {
		end   TurnEnd
		clean bool
	}{
		{TurnEnd{}, true},
		{TurnEnd{StopReason: acpv2.StopReasonEndTurn, By: EndedByAgent}, true},
		{TurnEnd{StopReason: acpv2.StopReasonMaxTokens, By: EndedByAgent}, false},
		{TurnEnd{StopReason: acpv2.StopReasonEndTurn, By: EndedByUser}, false},
		{TurnEnd{StopReason: acpv2.StopReasonEndTurn, Error: "x"}, false},
	} {
		if tt.end.IsClean() != tt.clean {
			t.Errorf("%+v: clean %v", tt.end, !tt.clean)
		}
	}
}

// TestHead: of long output the beginning and the end are kept, and how much is between them.
func TestHead(t *testing.T) {
	const limit = 4 << 10
	cfg := Config{TotalBytes: 1 << 20, TerminalBytes: limit}
	var all strings.Builder
	c := New(cfg)
	for i := 0; all.Len() < 10*limit; i++ {
		piece := strings.Repeat(string(rune('a'+i%26)), 99) + "\n"
		all.WriteString(piece)
		c.Apply(&acpv2.TerminalOutputChunk{TerminalID: "x", Data: base64.StdEncoding.EncodeToString([]byte(piece))})
		term := c.Snapshot().Terminal("x")
		if got := uint64(len(term.Head())) + term.Gap() + uint64(len(term.Raw())); got != uint64(all.Len()) {
			t.Fatalf("%d bytes of %d are accounted for", got, all.Len())
		}
		if all.Len() <= limit && term.Head() != "" {
			t.Fatal("there is a beginning besides the whole")
		}
	}
	term := c.Snapshot().Terminal("x")
	if len(term.Head()) != limit/headPart || !strings.HasPrefix(all.String(), term.Head()) || !strings.HasSuffix(all.String(), term.Raw()) {
		t.Errorf("head of %d bytes, tail of %d", len(term.Head()), len(term.Raw()))
	}
	if term.PlainHead() != term.Head() {
		t.Error("the text of the beginning is another")
	}
	var read Snapshot
	if err := read.UnmarshalJSON([]byte(jsonOf(t, c.Snapshot()))); err != nil {
		t.Fatal(err)
	}
	if again := read.Terminal("x"); again.Head() != term.Head() || again.Gap() != term.Gap() {
		t.Error("it is read otherwise")
	}
	// All in one, and within lower bounds later.
	one := New(Config{})
	one.Apply(&acpv2.TerminalOutputChunk{TerminalID: "x", Data: base64.StdEncoding.EncodeToString([]byte(all.String()))})
	lower := one.Snapshot().Continue(cfg)
	lower.Apply(&acpv2.TerminalOutputChunk{TerminalID: "x", Data: base64.StdEncoding.EncodeToString([]byte("end"))})
	if x := lower.Snapshot().Terminal("x"); !strings.HasPrefix(all.String(), x.Head()) || len(x.Head()) != limit/headPart || !strings.HasSuffix(x.Raw(), "end") {
		t.Errorf("head of %d bytes", len(x.Head()))
	}
	c.Apply(&acpv2.TerminalUpdate{TerminalID: "x", Output: acpv2.Set(acpv2.TerminalOutput{Data: base64.StdEncoding.EncodeToString([]byte("new"))})})
	if x := c.Snapshot().Terminal("x"); x.Head() != "" || x.Gap() != 0 || x.Raw() != "new" {
		t.Errorf("%q, %d, %q after it was replaced", x.Head(), x.Gap(), x.Raw())
	}
}

func TestOutputAt(t *testing.T) {
	c := New(Config{})
	for _, tt := range []struct {
		at        uint64
		data      string
		op        Op
		head, raw string
		gap       uint64
	}{
		{0, "0123", OpCreated, "", "0123", 0},
		{4, "45", OpAppended, "", "012345", 0},
		{100, "xy", OpUpdated, "012345", "xy", 94},
		{102, "z", OpAppended, "012345", "xyz", 94},
		{50, "middle", OpUpdated, "012345", "middle", 44},
		{3, "34567", OpUpdated, "012", "34567", 0},
	} {
		ch := c.OutputAt("x", tt.at, []byte(tt.data))
		term := c.Snapshot().Terminal("x")
		if ch.Op != tt.op || term.Head() != tt.head || term.Raw() != tt.raw || term.Gap() != tt.gap {
			t.Errorf("at %d: %q, head %q, raw %q, gap %d", tt.at, ch.Op, term.Head(), term.Raw(), term.Gap())
		}
	}
}
