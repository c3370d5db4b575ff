// Package skills turns what users type as /name into blocks that invoke skills, and back.
package skills

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goacp/acp/acpv2"
)

// Refer returns content in which a text that begins with /name invokes the skill of that
// name, if has reports that there is one. With inline, skills are invoked wherever they
// stand as a word of a text; otherwise only the first one of the first block is, since an
// agent takes one, before everything else. Content without any is returned as it is, and
// blocks is never changed.
func Refer(blocks []acpv2.ContentBlock, has func(name string) bool, inline bool) []acpv2.ContentBlock {
	var out []acpv2.ContentBlock
	found := false
	for i, b := range blocks {
		text, ok := b.(*acpv2.TextContent)
		if !ok || i > 0 && !inline {
			out = append(out, b)
			continue
		}
		parts := split(text.Text, has, inline)
		if len(parts) == 1 && parts[0].name == "" {
			out = append(out, b)
			continue
		}
		found = true
		for _, p := range parts {
			if p.name != "" {
				out = append(out, &acpv2.SkillReference{Name: p.name})
			} else {
				out = append(out, &acpv2.TextContent{Text: p.text, Annotations: text.Annotations})
			}
		}
	}
	if !found {
		return blocks
	}
	return out
}

// Typed returns what a user types to invoke a skill.
func Typed(name string) string { return "/" + name }

// Uses reports whether content invokes a skill, where an agent takes skills anywhere.
func Uses(content []acpv2.ContentBlock, name string) bool {
	with := Refer(content, func(is string) bool { return is == name }, true)
	return len(content) > 0 && &with[0] != &content[0]
}

// A part is a piece of a text, or the name of a skill.
type part struct{ text, name string }

// split returns the parts of a text. What separates a skill from what follows it is not part
// of either.
func split(text string, has func(string) bool, inline bool) (parts []part) {
	begin := 0
	for i := 0; i < len(text); {
		if text[i] != '/' || i > 0 && (!inline || !endsInSpace(text[:i])) {
			if !inline {
				break
			}
			i++
			continue
		}
		name := text[i+1:]
		if end := strings.IndexFunc(name, unicode.IsSpace); end >= 0 {
			name = name[:end]
		}
		next := i + 1 + len(name)
		if name == "" || !has(name) {
			i = next
			continue
		}
		if i > begin {
			parts = append(parts, part{text: text[begin:i]})
		}
		parts = append(parts, part{name: name})
		begin = len(text) - len(strings.TrimLeftFunc(text[next:], unicode.IsSpace))
		i = begin
	}
	if begin < len(text) || len(parts) == 0 {
		parts = append(parts, part{text: text[begin:]})
	}
	return parts
}

func endsInSpace(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return unicode.IsSpace(r)
}

// Plain returns content in which skills are the text that a user would type. Content without
// any is returned as it is, and blocks is never changed.
func Plain(blocks []acpv2.ContentBlock) []acpv2.ContentBlock {
	var out []acpv2.ContentBlock
	typed := ""
	found := false
	for _, b := range blocks {
		switch b := b.(type) {
		case *acpv2.SkillReference:
			found = true
			typed += Typed(b.Name) + " "
			continue
		case *acpv2.TextContent:
			if typed != "" {
				text := *b
				text.Text = typed + b.Text
				out, typed = append(out, &text), ""
				continue
			}
		}
		if typed != "" {
			out, typed = append(out, &acpv2.TextContent{Text: strings.TrimRight(typed, " ")}), ""
		}
		out = append(out, b)
	}
	if typed != "" {
		out = append(out, &acpv2.TextContent{Text: strings.TrimRight(typed, " ")})
	}
	if !found {
		return blocks
	}
	return out
}

// PlainUpdate returns an update in whose message of the user skills are text, or u itself.
func PlainUpdate(u acpv2.SessionUpdate) acpv2.SessionUpdate {
	switch v := u.(type) {
	case *acpv2.UserMessage:
		content, ok := v.Content.Get()
		if !ok {
			return u
		}
		plain := Plain(content)
		if len(content) == 0 || &plain[0] == &content[0] {
			return u
		}
		next := *v
		next.Content = acpv2.Set(plain)
		return &next
	case *acpv2.UserMessageChunk:
		if ref, ok := v.Content.(*acpv2.SkillReference); ok {
			next := *v
			next.Content = &acpv2.TextContent{Text: Typed(ref.Name) + " "}
			return &next
		}
	}
	return u
}
