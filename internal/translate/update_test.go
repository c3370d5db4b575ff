package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/patch"
	"github.com/goacp/acp/internal/sample"
	"github.com/google/go-cmp/cmp"
)

// checked1 encodes updates of version 1 and decodes them again.
func checked1(t testing.TB, list []acpv1.SessionUpdate, in []byte) []string {
	t.Helper()
	var out []string
	for _, u := range list {
		raw, err := u.AppendJSON(nil)
		if err != nil {
			t.Fatalf("not encoded: %v\n%s", err, in)
		}
		if _, err := acpv1.UnmarshalSessionUpdate(raw); err != nil {
			t.Fatalf("not decoded: %v\n%s\n%s", err, in, raw)
		}
		out = append(out, string(raw))
	}
	return out
}

// checked2 is checked1 for version 2.
func checked2(t testing.TB, list []acpv2.SessionUpdate, in []byte) []string {
	t.Helper()
	var out []string
	for _, u := range list {
		raw, err := u.AppendJSON(nil)
		if err != nil {
			t.Fatalf("not encoded: %v\n%s", err, in)
		}
		if _, err := acpv2.UnmarshalSessionUpdate(raw); err != nil {
			t.Fatalf("not decoded: %v\n%s\n%s", err, in, raw)
		}
		out = append(out, string(raw))
	}
	return out
}

// kept1 says whether an update of version 1 survives the way through version 2.
func kept1(u acpv1.SessionUpdate) bool {
	switch u := u.(type) {
	case *acpv1.AgentMessageChunk:
		return u.MessageID != "" && contentFits(u.Content)
	case *acpv1.AgentThoughtChunk:
		return u.MessageID != "" && contentFits(u.Content)
	case *acpv1.PromptSuggestionsUpdate:
		return suggestionsFit(*u) && suggestionsKept(SuggestionsFromV1(*u))
	case *acpv1.CursorUpdate:
		return placed(new(CursorFromV1(*u)))
	case *acpv1.UserMessageChunk:
		return u.MessageID != "" && contentFits(u.Content)
	case *acpv1.ToolCall, *acpv1.ToolCallUpdate, *acpv1.CurrentModeUpdate, *acpv1.ConfigOptionUpdate:
		return false // these depend on what came before
	case *acpv1.PlanUpdate:
		return planFits(*u)
	case *acpv1.CompactionUpdate:
		return summaryFits(*u)
	case *acpv1.CompactionSummaryChunk:
		return contentFits(u.Content)
	case *acpv1.SessionMessage:
		return messageFits(*u)
	case *acpv1.SessionMessageChunk:
		return contentFits(u.Content)
	case *acpv1.PlanRemoved:
		return acpv2.PlanID(u.PlanID) != PlanID
	}
	return true
}

// TestUpdates takes random updates of every kind of either version to the other
// and back. What comes out is valid on each side, and what the other version
// can express is the same when back.
func TestUpdates(t *testing.T) {
	kinds := map[string]int{}
	s1, s2 := load(t, "v1"), load(t, "v2")
	rng := rand.New(rand.NewPCG(7, 8))
	for range 20 * *perNoun {
		in := s1.Valid(rng, "SessionUpdate")
		u, err := acpv1.UnmarshalSessionUpdate(in)
		if err != nil {
			t.Fatal(err)
		}
		want, err := u.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		var f FromV1
		to := ToV1{Caps: everything}
		list := f.Update(u)
		checked2(t, list, in)
		var back []acpv1.SessionUpdate
		for _, v := range list {
			back = to.Append(back, v)
		}
		got := checked1(t, back, in)
		kinds["1"+fmt.Sprintf("%T", u)]++
		if kept1(u) && (len(got) != 1 || got[0] != string(want)) {
			t.Fatalf("lost something\n here %s\n back %s", want, got)
		}
		if after, _ := u.AppendJSON(nil); !bytes.Equal(after, want) {
			t.Fatalf("changed its argument\n%s\n%s", want, after)
		}
	}
	for range 20 * *perNoun {
		in := s2.Valid(rng, "SessionUpdate")
		u, err := acpv2.UnmarshalSessionUpdate(in)
		if err != nil {
			t.Fatal(err)
		}
		to := ToV1{Caps: everything}
		if rng.IntN(2) == 0 {
			to.Caps = acpv1.ClientCapabilities{}
		}
		var f FromV1
		list := to.Update(u)
		checked1(t, list, in)
		for _, v := range list {
			checked2(t, f.Update(v), in)
		}
		kinds["2"+fmt.Sprintf("%T", u)]++
	}
	// The union of version 1 is closed; five states of version 2 share a tag.
	for version, n := range map[string]int{"1": len(acpv1.Updates()), "2": len(acpv2.Updates()) + 1 + 4} {
		got := 0
		for k := range kinds {
			if strings.HasPrefix(k, version) {
				got++
			}
		}
		if got != n {
			t.Errorf("version %s: %d kinds of updates, want %d: %v", version, got, n, kinds)
		}
	}
}

// TestToolCalls: an announcement and an update of a tool call mean the same
// after both ways. Edits come back as far as their patches go.
func TestToolCalls(t *testing.T) {
	s := load(t, "v1")
	rng := rand.New(rand.NewPCG(9, 9))
	same := 0
	for range 4 * *perNoun {
		in := s.Valid(rng, "ToolCall")
		var c acpv1.ToolCall
		if err := c.UnmarshalJSON(in); err != nil {
			t.Fatal(err)
		}
		var f FromV1
		var to ToV1
		for _, b := range c.Content {
			if term, ok := b.(*acpv1.Terminal); ok {
				to.ClientTerminal(acpv2.TerminalID(term.TerminalID))
			}
		}
		got := to.Update(f.Update(&c)[0])
		back, ok := got[0].(*acpv1.ToolCall)
		if !ok || len(got) != 1 {
			t.Fatalf("%T %v", got[0], got)
		}
		// What an announcement says by its silence is said aloud.
		want := c
		if want.Kind == "" {
			want.Kind = acpv1.ToolKindOther
		}
		if want.Status == "" {
			want.Status = acpv1.ToolCallStatusPending
		}
		if want.Title == "" {
			want.Title = want.Name
		}
		if want.Title == "" {
			want.Title = string(want.ToolCallID)
		}
		if len(want.Content) == 0 {
			want.Content, back.Content = nil, nil
		}
		if want.Locations == nil {
			want.Locations = []acpv1.ToolCallLocation{}
		}
		exact := acpv1.ToolCallStatus(want.Status).Known() && all(locationFits)(want.Locations)
		for _, b := range want.Content {
			switch b := b.(type) {
			case *acpv1.Diff:
				exact = exact && b.OldText == nil && !strings.ContainsAny(b.NewText, "\x00") && b.Path != "" && b.Path != "/"
			case *acpv1.SessionReference:
				exact = false // never sent to clients of version 1
			case *acpv1.Content:
				exact = exact && contentFits(b.Content)
			}
		}
		if !exact {
			continue
		}
		same++
		a, b := spelled(t, []acpv1.SessionUpdate{&want}), spelled(t, []acpv1.SessionUpdate{back})
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("%s\n%s", diff, in)
		}
	}
	if same < *perNoun/4 {
		t.Errorf("only %d compared", same)
	}
}

// TestSmallEdit: an edit of a file that fits its patch whole comes back with
// its texts, one of a bigger file with the lines around, and any with the
// texts that were told.
func TestSmallEdit(t *testing.T) {
	long := strings.Repeat("line\n", 50)
	tests := []struct{ name, old, new, wantOld, wantNew string }{
		{"small", "a\nb\n", "a\nc\n", "a\nb\n", "a\nc\n"},
		{"same", "a\n", "a\n", "", ""},
		{"big", long + "x\n" + long, long + "y\n" + long, "line\nline\nline\nx\nline\nline\nline\n", "line\nline\nline\ny\nline\nline\nline\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := DiffFromV1(&acpv1.Diff{Path: "/f", OldText: &tt.old, NewText: tt.new})
			got := ToolContentToV1([]acpv2.ToolCallContent{d})[0].(*acpv1.Diff)
			if *got.OldText != tt.wantOld || got.NewText != tt.wantNew || got.Path != "/f" {
				t.Errorf("%q %q", *got.OldText, got.NewText)
			}
			var to ToV1
			to.Texts(d, []patch.File{{OldPath: "/f", NewPath: "/f", Old: tt.old, New: tt.new}})
			to.Texts(d, nil) // what was told first holds
			u := &acpv2.ToolCallUpdate{ToolCallID: "c", Content: acpv2.Set([]acpv2.ToolCallContent{d})}
			for range 2 {
				var content []acpv1.ToolCallContent
				switch v := to.Update(u)[0].(type) {
				case *acpv1.ToolCall:
					content = v.Content
				case *acpv1.ToolCallUpdate:
					content = v.Content.Or(nil)
				}
				if got := content[0].(*acpv1.Diff); *got.OldText != tt.old || got.NewText != tt.new {
					t.Errorf("told: %q %q", *got.OldText, got.NewText)
				}
			}
		})
	}
	if got := DiffFromV1(&acpv1.Diff{NewText: "x"}); got.Patch != nil {
		t.Errorf("a file without a path has the patch %+v", got.Patch)
	}
	if got := ToolContentToV1(nil); got != nil {
		t.Errorf("nil became %v", got)
	}
}

func TestPermission(t *testing.T) {
	const options = `"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"x","name":"X","kind":"_x"}]`
	const kept = `"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]`
	tests := []struct{ name, in, want string }{
		{"tool call", `{"sessionId":"s","title":"T","description":"D","subject":{"type":"tool_call","toolCall":{"toolCallId":"c","status":"pending","content":` + showing("x") + `,"capabilities":{}}},` + options + `,"_meta":{"k":1}}`,
			`{"sessionId":"s","toolCall":{"toolCallId":"c","status":"pending","title":"T","content":` + showing("x", "D") + `},` + kept + `,"_meta":{"k":1}}`},
		{"tool call with a title", `{"sessionId":"s","title":"T","subject":{"type":"tool_call","toolCall":{"toolCallId":"c","title":"C"}},` + options + `}`,
			`{"sessionId":"s","toolCall":{"toolCallId":"c","title":"C","content":` + showing("T") + `},` + kept + `}`},
		{"announced tool call", `{"sessionId":"s","title":"T","subject":{"type":"tool_call","toolCall":{"toolCallId":"known"}},` + options + `}`,
			`{"sessionId":"s","toolCall":{"toolCallId":"known","content":` + showing("T") + `},` + kept + `}`},
		{"announced as", `{"sessionId":"s","title":"T","subject":{"type":"tool_call","toolCall":{"toolCallId":"named"}},` + options + `}`,
			`{"sessionId":"s","toolCall":{"toolCallId":"named"},` + kept + `}`},
		{"command of one that is known", `{"sessionId":"s","title":"Run this command?","subject":{"type":"command","command":"ls","cwd":"/d","toolCallId":"named"},` + options + `}`,
			`{"sessionId":"s","toolCall":{"toolCallId":"named","kind":"execute","status":"pending","title":"ls","content":` + showing("seen", `Run this command?\n\n$ ls\nin /d`) + `,"rawInput":{"command":"ls","cwd":"/d"}},` + kept + `}`},
		{"command", `{"sessionId":"s","title":"Run?","subject":{"type":"command","command":"rm <x>","cwd":"/d","terminalId":"t"},` + options + `}`,
			`{"sessionId":"s","toolCall":{"toolCallId":"v2-1","kind":"execute","status":"pending","title":"rm <x>","content":` + showing(`Run?\n\n$ rm <x>\nin /d`) + `,"rawInput":{"command":"rm \u003cx\u003e","cwd":"/d"}},` + kept + `}`},
		{"command of a tool call", `{"sessionId":"s","title":"Run?","subject":{"type":"command","command":"ls","cwd":"/d","toolCallId":"c"},` + options + `}`,
			`{"sessionId":"s","toolCall":{"toolCallId":"c","kind":"execute","status":"pending","title":"ls","content":` + showing(`Run?\n\n$ ls\nin /d`) + `,"rawInput":{"command":"ls","cwd":"/d"}},` + kept + `}`},
		{"something else", `{"sessionId":"s","title":"T","subject":{"type":"_x"},` + options + `}`, `{"sessionId":"s","toolCall":{"toolCallId":"v2-1","title":"T"},` + kept + `}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var to ToV1
			to.Update(&acpv2.ToolCallUpdate{ToolCallID: "known"})
			to.Update(&acpv2.ToolCallUpdate{ToolCallID: "named", Title: acpv2.Set("T"), Content: acpv2.Set([]acpv2.ToolCallContent{&acpv2.Content{Content: &acpv2.TextContent{Text: "seen"}}})})
			var r acpv2.RequestPermissionRequest
			if err := r.UnmarshalJSON([]byte(tt.in)); err != nil {
				t.Fatal(err)
			}
			v, err := to.Permission(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := v.AppendJSON(nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
			var again acpv1.RequestPermissionRequest
			if err := again.UnmarshalJSON(got); err != nil {
				t.Error(err)
			}
		})
	}
	var to ToV1
	_, err := to.Permission(acpv2.RequestPermissionRequest{Options: []acpv2.PermissionOption{{OptionID: "x", Kind: "_x"}}}, nil)
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v", err)
	}
	// The tool call of a request is announced by its first update all the same.
	r := acpv2.RequestPermissionRequest{Options: []acpv2.PermissionOption{{OptionID: "y", Kind: acpv2.PermissionOptionKindAllowOnce}},
		Subject: &acpv2.ToolCallPermissionSubject{ToolCall: acpv2.ToolCallUpdate{ToolCallID: "c"}}}
	if _, err := to.Permission(r, nil); err != nil {
		t.Fatal(err)
	}
	if _, ok := to.Update(&acpv2.ToolCallUpdate{ToolCallID: "c"})[0].(*acpv1.ToolCall); !ok {
		t.Error("not announced")
	}
}

// TestPermissionFromV1 takes random requests of version 1 to version 2.
func TestPermissionFromV1(t *testing.T) {
	tests := []struct{ name, call, title string }{
		{"title", `{"toolCallId":"c","title":"T","name":"N"}`, "T"},
		{"name", `{"toolCallId":"c","title":"","name":"N"}`, "N"},
		{"id", `{"toolCallId":"c","title":null}`, "c"},
	}
	for _, tt := range tests {
		var r acpv1.RequestPermissionRequest
		if err := r.UnmarshalJSON([]byte(`{"sessionId":"s","toolCall":` + tt.call + `,"options":[]}`)); err != nil {
			t.Fatal(err)
		}
		if got := PermissionFromV1(r); got.Title != tt.title || got.SessionID != "s" {
			t.Errorf("%s: %q", tt.name, got.Title)
		}
	}
	s := load(t, "v1")
	rng := rand.New(rand.NewPCG(1, 9))
	for range *perNoun {
		in := s.Valid(rng, "RequestPermissionRequest")
		var r acpv1.RequestPermissionRequest
		if err := r.UnmarshalJSON(in); err != nil {
			t.Fatal(err)
		}
		v := PermissionFromV1(r)
		if len(v.Options) == 0 {
			continue // version 2 refuses to send that, S74
		}
		raw, err := v.AppendJSON(nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, in)
		}
		if err := v.UnmarshalJSON(raw); err != nil {
			t.Fatalf("%v\n%s\n%s", err, in, raw)
		}
		var to ToV1
		back, err := to.Permission(v, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, in)
		}
		if raw, err = back.AppendJSON(nil); err != nil {
			t.Fatalf("%v\n%s", err, in)
		}
		if err := back.UnmarshalJSON(raw); err != nil {
			t.Fatalf("%v\n%s\n%s", err, in, raw)
		}
	}
}

// TestAllocs: a piece of text costs little on either way.
func TestAllocs(t *testing.T) {
	var f FromV1
	var to ToV1
	u1 := v1Update(t, v1Text)
	dst2 := make([]acpv2.SessionUpdate, 0, 1)
	f.Append(dst2, u1)
	if n := testing.AllocsPerRun(100, func() { f.Append(dst2, u1) }); n > 3 {
		t.Errorf("from version 1: %v allocations", n)
	}
	u2 := v2Update(t, v2Chunk("agent_message_chunk", "m"))
	dst1 := make([]acpv1.SessionUpdate, 0, 1)
	to.Append(dst1, u2)
	if n := testing.AllocsPerRun(100, func() { to.Append(dst1, u2) }); n > 3 {
		t.Errorf("to version 1: %v allocations", n)
	}
}

// seeds are random updates of a version, good and broken.
func seeds(f *testing.F, s *sample.Schema) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 60 {
		a := s.Valid(rng, "SessionUpdate")
		b := s.Valid(rng, "SessionUpdate")
		f.Add(a, b, s.Mutate(rng, "SessionUpdate", b), uint8(rng.IntN(8)))
	}
}

func caps(bits uint8) (c acpv1.ClientCapabilities) {
	if bits&1 != 0 {
		c.Plan = &acpv1.PlanCapabilities{}
	}
	if bits&2 != 0 {
		c.Session = everything.Session
	}
	if bits&4 != 0 {
		c.Subagents = &acpv1.SubagentCapabilities{}
	}
	if bits&16 != 0 {
		c.Meta = json.RawMessage(`{"terminal_output":true}`)
	}
	if bits&32 != 0 {
		c.Meta = json.RawMessage(`{"terminal_output":true,"terminal_output_delta":true}`)
	}
	return c
}

// FuzzFromV1 takes three updates of version 1 through version 2 and back:
// nothing panics, and whatever comes out is valid on its side.
func FuzzFromV1(f *testing.F) {
	seeds(f, load(f, "v1"))
	for _, report := range reportSeeds {
		f.Add([]byte(report[0]), []byte(report[1]), []byte(report[2]), uint8(48))
	}
	f.Fuzz(func(t *testing.T, a, b, c []byte, bits uint8) {
		var from FromV1
		to := ToV1{Caps: caps(bits)}
		for _, in := range [][]byte{a, b, c} {
			u, err := acpv1.UnmarshalSessionUpdate(in)
			if err != nil {
				continue
			}
			for i, raw := range checked2(t, from.Update(u), in) {
				v, _ := acpv2.UnmarshalSessionUpdate([]byte(raw))
				checked1(t, to.Update(v), in)
				if bits&8 != 0 && i == 0 {
					from.Boundary()
				}
			}
		}
	})
}

// FuzzToV1 is FuzzFromV1 the other way round.
func FuzzToV1(f *testing.F) {
	seeds(f, load(f, "v2"))
	f.Fuzz(func(t *testing.T, a, b, c []byte, bits uint8) {
		var from FromV1
		to := ToV1{Caps: caps(bits)}
		for _, in := range [][]byte{a, b, c} {
			u, err := acpv2.UnmarshalSessionUpdate(in)
			if err != nil {
				continue
			}
			if term, ok := u.(*acpv2.TerminalUpdate); ok && bits&8 != 0 {
				to.ClientTerminal(term.TerminalID)
			}
			for _, raw := range checked1(t, to.Update(u), in) {
				v, _ := acpv1.UnmarshalSessionUpdate([]byte(raw))
				checked2(t, from.Update(v), in)
			}
		}
	})
}
