package told

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: (-want +got)\n%s", what, d)
	}
}

func text(s string) *acpv2.TextContent { return &acpv2.TextContent{Text: s} }

func describe(c *acpv2.ToolCallUpdate) string {
	if c == nil {
		return "none"
	}
	all := fmt.Sprintf("%s %q %q %s %s %s", c.ToolCallID, c.Name.Or(""), c.Title.Or(""), c.Kind.Or(""), c.Status.Or(""), c.RawInput)
	for _, l := range c.Locations.Or(nil) {
		all += " @" + l.Path
	}
	for _, item := range c.Content.Or(nil) {
		switch item := item.(type) {
		case *acpv2.Content:
			all += " text"
		case *acpv2.Diff:
			all += fmt.Sprintf(" diff %d %v", len(item.Changes), item.Patch != nil)
		}
	}
	return all
}

// TestBounds holds the bounds of what is remembered.
func TestBounds(t *testing.T) {
	large := strings.Repeat("x", maxKnownContent+1)
	input := func(n int) []byte { return fmt.Appendf(nil, "%q", strings.Repeat("x", n-2)) }
	tell := func(k *Calls, u *acpv2.ToolCallUpdate) {
		k.See(&acpv2.UpdateSessionNotification{Update: u})
		if k.bytes > maxKnownCallBytes || len(k.calls) > maxKnownCalls || len(k.order) != len(k.calls) {
			t.Fatalf("%d bytes, %d calls, %d in order", k.bytes, len(k.calls), len(k.order))
		}
	}
	sum := func(k *Calls) (n int) {
		for _, c := range k.calls {
			if c.size() > 2*maxKnownCall {
				t.Errorf("a call of %d bytes", c.size())
			}
			n += c.head + c.content
		}
		return n
	}

	var k Calls
	for i := range maxKnownCalls + 10 {
		tell(&k, &acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(fmt.Sprint(i)), Kind: acpv2.Set(acpv2.ToolKindRead)})
		tell(&k, &acpv2.ToolCallUpdate{ToolCallID: "0", Status: acpv2.Set(acpv2.ToolCallStatusInProgress)})
	}
	want(t, "used again and again", describe(k.Known("0")), `0 "" "" read in_progress `)
	want(t, "the oldest", describe(k.Known("1")), "none")
	want(t, "the latest", describe(k.Known(acpv2.ToolCallID(fmt.Sprint(maxKnownCalls+9)))), fmt.Sprintf(`%d "" "" read  `, maxKnownCalls+9))

	k = Calls{}
	for i := range 40 {
		tell(&k, &acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(fmt.Sprint(i)), RawInput: input(maxKnownCall / 2)})
	}
	want(t, "bytes", k.bytes, sum(&k))
	want(t, "forgotten for size", describe(k.Known("0")), "none")

	k = Calls{}
	diff := &acpv2.Diff{Changes: []acpv2.DiffChange{{Operation: &acpv2.DiffAdd{Path: "/a"}}}, Patch: &acpv2.DiffPatch{Format: "git_patch", Text: large}}
	tell(&k, &acpv2.ToolCallUpdate{ToolCallID: "c", Kind: acpv2.Set(acpv2.ToolKindEdit), Title: acpv2.Set("T"), Content: acpv2.Set([]acpv2.ToolCallContent{
		&acpv2.Content{Content: text("short")}, &acpv2.Content{Content: text(large)}, &acpv2.Content{Content: &acpv2.ImageContent{}}, diff,
	})})
	want(t, "content", describe(k.Known("c")), `c "" "T" edit   text diff 1 false`)
	want(t, "the diff itself", diff.Patch != nil, true)
	for range 100 {
		k.See(&acpv2.UpdateSessionNotification{Update: &acpv2.ToolCallContentChunk{ToolCallID: "c", Content: &acpv2.Content{Content: text(large[1:])}}})
	}
	want(t, "bytes with chunks", k.bytes, sum(&k))
	tell(&k, &acpv2.ToolCallUpdate{ToolCallID: "c", RawInput: input(maxKnownCall / 2)})
	if got := k.Known("c"); got.RawInput == nil || len(got.Content.Or(nil)) != 0 {
		t.Errorf("content goes before input: %.200s", describe(got))
	}
	huge := strings.Repeat("x", maxKnownCall)
	tell(&k, &acpv2.ToolCallUpdate{ToolCallID: "c", RawInput: input(maxKnownCall), Title: acpv2.Set(huge), Locations: acpv2.Set([]acpv2.ToolCallLocation{{Path: huge}})})
	want(t, "all too large", describe(k.Known("c")), `c "" "" edit  `)
	tell(&k, &acpv2.ToolCallUpdate{ToolCallID: "c", Kind: acpv2.Set(acpv2.ToolKind(huge))})
	want(t, "a kind that is too large", describe(k.Known("c")), `c "" ""   `)
	tell(&k, &acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(strings.Repeat("x", 2*maxKnownCallBytes))})
	want(t, "an id that is too large", k.bytes, 0)

	// What is kept is a copy, since a message keeps all of its memory alive.
	k = Calls{}
	words, raw, path := text("text"), []byte(`"in"`), []acpv2.ToolCallLocation{{Path: "/a"}}
	tell(&k, &acpv2.ToolCallUpdate{ToolCallID: "c", RawInput: raw, Locations: acpv2.Set(path), Content: acpv2.Set([]acpv2.ToolCallContent{&acpv2.Content{Content: words}})})
	words.Text, raw[1], path[0].Path = "other", 'x', "/b"
	got := k.Known("c")
	want(t, "a copy", describe(got), `c "" ""   "in" @/a text`)
	want(t, "a copy of the text", got.Content.Or(nil)[0].(*acpv2.Content).Content.(*acpv2.TextContent).Text, "text")

	// Of version 1 large edits are kept without their text, too.
	k = Calls{}
	k.See(&acpv1.SessionNotification{Update: &acpv1.ToolCall{ToolCallID: "c", Title: "T", Content: []acpv1.ToolCallContent{
		&acpv1.Diff{Path: "/a", NewText: "n"}, &acpv1.Diff{Path: "/b", NewText: large, OldText: new("o")},
	}}})
	want(t, "edits", describe(k.Known("c")), `c "" "T" other pending  diff 1 true diff 1 false`)
	if list := k.Known("c").Content.Or(nil); list[1].(*acpv2.Diff).Changes[0].Operation.(*acpv2.DiffModify).Path != "/b" {
		t.Error("the path is lost")
	}
	k.See(&acpv1.SessionNotification{Update: &acpv1.ToolCallUpdate{ToolCallID: "c", Content: acpv1.Set([]acpv1.ToolCallContent{})}})
	want(t, "cleared", describe(k.Known("c")), `c "" "T" other pending `)
}
