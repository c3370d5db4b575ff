package history

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// This file has the keys by which entries are compared.

// whole returns all that an entry says, except what differs between replays: ids, white space, and
// elements that agents put around the words of the user.
func whole(e transcript.Entry) string {
	switch e := e.(type) {
	case *transcript.Message:
		text := e.Text()
		if e.Role == transcript.RoleUser {
			text = unwrap(text)
		}
		if text = squeeze(text); text == "" {
			for _, b := range e.Content() {
				if j, err := b.AppendJSON(nil); err == nil {
					text += string(j)
				}
			}
			if text == "" {
				return ""
			}
		}
		return "message " + string(e.Role) + " " + text
	case *transcript.ToolCall:
		k := does(e)
		if k != "" && e.Ended() {
			k += " ended"
		}
		return k
	case *transcript.Plan:
		return "plan " + planText(e.Content)
	case *transcript.Terminal:
		if e.Command == "" {
			return ""
		}
		return "terminal " + squeeze(e.Command)
	case *transcript.Notice:
		return "notice " + string(e.Severity) + " " + squeeze(e.Title) + " " + squeeze(e.Description)
	case *transcript.Compaction:
		text := string(e.Status) + " " + squeeze(e.Error)
		for _, b := range e.Summary() {
			if t, ok := b.(*acpv2.TextContent); ok {
				text += squeeze(t.Text)
			}
		}
		return "compaction " + text
	case *transcript.Subagent:
		return "subagent " + squeeze(e.Title) + " " + squeeze(e.Description)
	case *transcript.SessionMessage:
		return "session message " + squeeze(e.Text())
	case *transcript.Unknown:
		return "unknown " + string(e.Raw)
	}
	return ""
}

// does returns what a tool call does and to which files.
func does(e transcript.Entry) string {
	c, ok := e.(*transcript.ToolCall)
	if !ok || c.Title == "" && len(c.Locations) == 0 {
		return ""
	}
	return "call " + string(c.Kind) + " " + squeeze(c.Title) + " " + paths(c)
}

// input returns the input of a tool, if it is long enough to tell calls apart.
func input(e transcript.Entry) string {
	c, ok := e.(*transcript.ToolCall)
	if !ok || len(c.RawInput) <= len(`{"x":1}`) {
		return ""
	}
	return "input " + squeeze(string(c.RawInput))
}

// title is the title of a tool call.
func title(e transcript.Entry) string {
	c, ok := e.(*transcript.ToolCall)
	if !ok || c.Title == "" {
		return ""
	}
	return "title " + squeeze(strings.ReplaceAll(c.Title, "`", ""))
}

// touches returns the kind of a tool call and its files.
func touches(e transcript.Entry) string {
	c, ok := e.(*transcript.ToolCall)
	if !ok || len(c.Locations) == 0 {
		return ""
	}
	return "paths " + string(c.Kind) + " " + paths(c)
}

func paths(c *transcript.ToolCall) string {
	var all []string
	for _, l := range c.Locations {
		all = append(all, l.Path)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func planText(p acpv2.PlanUpdateContent) string {
	switch p := p.(type) {
	case *acpv2.PlanItems:
		var b strings.Builder
		for _, e := range p.Entries {
			b.WriteString(squeeze(e.Content) + "\n")
		}
		return b.String()
	case *acpv2.PlanMarkdown:
		return squeeze(p.Content)
	case *acpv2.PlanFile:
		return p.URI
	case *acpv2.UnknownPlanUpdateContent:
		return string(p.Raw)
	}
	return ""
}

// squeeze removes white space.
func squeeze(s string) string {
	if strings.IndexFunc(s, unicode.IsSpace) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// letters counts the characters without white space, up to enough.
func letters(s string, enough int) (n int) {
	for _, r := range s {
		if !unicode.IsSpace(r) {
			if n++; n == enough {
				break
			}
		}
	}
	return n
}

// after returns what follows prefix in text, if text begins so. White space is ignored.
func after(text, prefix string) (rest string, ok bool) {
	for {
		prefix = strings.TrimLeftFunc(prefix, unicode.IsSpace)
		if prefix == "" {
			return text, true
		}
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" {
			return "", false
		}
		// A run of what is equal is passed at once.
		n := 0
		for n < len(text) && n < len(prefix) && text[n] == prefix[n] && text[n] < utf8.RuneSelf && text[n] > ' ' {
			n++
		}
		if n > 0 {
			text, prefix = text[n:], prefix[n:]
			continue
		}
		a, size := utf8.DecodeRuneInString(text)
		b, other := utf8.DecodeRuneInString(prefix)
		if a != b || size != other || text[:size] != prefix[:other] {
			return "", false
		}
		text, prefix = text[size:], prefix[other:]
	}
}

// opening is the beginning of an element that an agent has put around or after words of the user.
var opening = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<([a-z][a-z0-9]*(?:[-_][a-z0-9]+)+)(?: [^<>]*)?>`) })

// maxElements bounds the elements that are removed from a text.
const maxElements = 256

// unwrap removes from a text of the user the elements that agents add: those whose name has several
// words, as system-reminder has. If nothing else is left, it returns what is in the first of them.
func unwrap(text string) string {
	if !strings.Contains(text, "</") {
		return text
	}
	var out strings.Builder
	inside, rest := "", text
	for range maxElements {
		m := opening().FindStringSubmatchIndex(rest)
		if m == nil {
			break
		}
		closing := "</" + rest[m[2]:m[3]] + ">"
		end := strings.Index(rest[m[1]:], closing)
		if end < 0 {
			out.WriteString(rest[:m[1]])
			rest = rest[m[1]:]
			continue
		}
		if body := rest[m[1] : m[1]+end]; inside == "" {
			inside = body
		}
		out.WriteString(rest[:m[0]])
		rest = rest[m[1]+end+len(closing):]
	}
	out.WriteString(rest)
	if s := out.String(); letters(s, 1) > 0 || inside == "" {
		return s
	}
	return inside
}
