package skills

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
)

func text(s string) acpv2.ContentBlock  { return acpv2.Text(s) }
func skill(s string) acpv2.ContentBlock { return &acpv2.SkillReference{Name: s} }

// TestRefer: a text that begins with the name of a skill invokes it, and, where that is possible, any word that is one does. What
// is made of it is what was typed.
func TestRefer(t *testing.T) {
	image := &acpv2.ImageContent{Data: "AA==", MIMEType: "image/png"}
	type blocks = []acpv2.ContentBlock
	for _, x := range []struct {
		given, first, inline blocks
	}{
		{blocks{text("/review this")}, blocks{skill("review"), text("this")}, nil},
		{blocks{text("/review")}, blocks{skill("review")}, nil},
		{blocks{text("/review"), image, text("/test it")}, blocks{skill("review"), image, text("/test it")}, blocks{skill("review"), image, skill("test"), text("it")}},
		{blocks{text("/reviewer this")}, nil, nil},
		{blocks{text("/")}, nil, nil},
		{blocks{text("")}, nil, nil},
		{blocks{}, nil, nil},
		{blocks{text("see /review")}, blocks{text("see /review")}, blocks{text("see "), skill("review")}},
		{blocks{text("in /etc/review a/review /test /review x")}, blocks{text("in /etc/review a/review /test /review x")},
			blocks{text("in /etc/review a/review "), skill("test"), skill("review"), text("x")}},
		{blocks{text("/test /review x")}, blocks{skill("test"), text("/review x")}, blocks{skill("test"), skill("review"), text("x")}},
		{blocks{image, text("/test")}, blocks{image, text("/test")}, blocks{image, skill("test")}},
	} {
		if x.first == nil {
			x.first = x.given
		}
		if x.inline == nil {
			x.inline = x.first
		}
		has := func(name string) bool { return name == "review" || name == "test" }
		for inline, want := range map[bool]blocks{false: x.first, true: x.inline} {
			got := Refer(x.given, has, inline)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("inline %t: %s", inline, diff)
			}
			if diff := cmp.Diff(Plain(x.given), Plain(got), cmp.Transformer("joined", joined)); diff != "" {
				t.Errorf("inline %t, back: %s", inline, diff)
			}
		}
	}
}

// joined joins texts that follow one another.
func joined(blocks []acpv2.ContentBlock) (all []any) {
	for _, b := range blocks {
		if t, ok := b.(*acpv2.TextContent); ok {
			if n := len(all) - 1; n >= 0 {
				if was, ok := all[n].(string); ok {
					all[n] = was + t.Text
					continue
				}
			}
			all = append(all, t.Text)
			continue
		}
		all = append(all, b)
	}
	return all
}

// TestPlainUpdate: in messages of the user skills are what was typed; everything else stays itself.
func TestPlainUpdate(t *testing.T) {
	for _, x := range []struct{ given, want acpv2.SessionUpdate }{
		{&acpv2.UserMessage{Content: acpv2.Set([]acpv2.ContentBlock{skill("a"), text("b")})}, &acpv2.UserMessage{Content: acpv2.Set([]acpv2.ContentBlock{text("/a b")})}},
		{&acpv2.UserMessageChunk{Content: skill("a")}, &acpv2.UserMessageChunk{Content: text("/a ")}},
		{&acpv2.UserMessage{Content: acpv2.Set([]acpv2.ContentBlock{text("b")})}, nil},
		{&acpv2.UserMessage{Content: acpv2.Set([]acpv2.ContentBlock{})}, nil},
		{&acpv2.UserMessage{}, nil},
		{&acpv2.AgentMessageChunk{Content: skill("a")}, nil},
	} {
		got := PlainUpdate(x.given)
		if x.want == nil && got != x.given {
			t.Errorf("%v is another update", x.given)
		} else if x.want != nil {
			a, _ := got.AppendJSON(nil)
			b, _ := x.want.AppendJSON(nil)
			if string(a) != string(b) {
				t.Errorf("%s, want %s", a, b)
			}
		}
	}
}
