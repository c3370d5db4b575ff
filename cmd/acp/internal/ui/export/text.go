package export

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

// writeMarkdown writes messages as they are, below headings that name the speaker. The content of
// tool calls is in code fences, which are longer than any fence in that content.
func writeMarkdown(out io.Writer, s store.Session, t *transcript.Snapshot) error {
	w := bufio.NewWriter(out)
	title, facts := heading(s, t)
	fmt.Fprintf(w, "# %s\n\n", escape(title))
	for _, f := range facts {
		fmt.Fprintf(w, "- %s: %s\n", f[0], code(f[1]))
	}
	if len(facts) > 0 {
		w.WriteString("\n")
	}
	for _, it := range items(t) {
		markdownItem(w, it)
	}
	return w.Flush()
}

// markdownItem writes an entry as Markdown.
func markdownItem(w *bufio.Writer, it item) {
	switch it.Kind {
	case itemUser, itemAgent, itemPlan:
		fmt.Fprintf(w, "## %s", it.Title)
		if it.Status != "" {
			fmt.Fprintf(w, " (%s)", escape(it.Status))
		}
	case itemThought:
		w.WriteString("> **Thought**")
	default:
		w.WriteString("**")
		if it.Mark != "" {
			w.WriteString(it.Mark + " ")
		}
		w.WriteString(escape(it.Title) + "**")
		if it.Status != "" {
			w.WriteString(" — " + escape(it.Status))
		}
	}
	w.WriteString("\n\n")
	for _, n := range it.Notes {
		fmt.Fprintf(w, "- %s\n", code(n))
	}
	if len(it.Notes) > 0 {
		w.WriteString("\n")
	}
	for _, b := range it.Blocks {
		text := markdownBlock(b, it.Kind == itemTool)
		if it.Kind == itemThought {
			text = "> " + strings.ReplaceAll(text, "\n", "\n> ")
		}
		w.WriteString(text + "\n\n")
	}
	if it.Loss > 0 {
		fmt.Fprintf(w, "*%d bytes of this were not stored.*\n\n", it.Loss)
	}
}

// markdownBlock writes a block of content as Markdown that its text cannot leave.
func markdownBlock(b block, quoted bool) string {
	switch b.Kind {
	case blockMarkdown:
		if quoted {
			return fence(b.Text, "")
		}
		return strings.TrimRight(b.Text, "\n")
	case blockCode, blockDiff:
		return fence(b.Text, b.Lang)
	case blockTerminal:
		return fence(b.Text, "console")
	case blockSteps:
		var lines []string
		for _, s := range b.Steps {
			box := "[ ]"
			if s.Status == "completed" {
				box = "[x]"
			}
			text := "- " + box + " " + escape(s.Text)
			if s.Status != "completed" && s.Status != "pending" {
				text += " (" + escape(strings.ReplaceAll(s.Status, "_", " ")) + ")"
			}
			lines = append(lines, text)
		}
		return strings.Join(lines, "\n")
	case blockImage:
		return "[image " + escape(b.Text) + "]"
	}
	if b.URL != "" && b.URL != b.Text {
		return escape(b.Text) + " (" + code(b.URL) + ")"
	}
	return code(b.Text)
}

// escape escapes the characters of a one-line text that have a meaning in Markdown.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\\`*_{}[]<>#|!&~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// ticks returns the longest run of back quotes in s.
func ticks(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// code returns a one-line text as a code span.
func code(s string) string {
	n := strings.Repeat("`", ticks(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return n + s + n
}

// fence returns a text as a fenced code block.
func fence(s, lang string) string {
	n := strings.Repeat("`", max(3, ticks(s)+1))
	return n + lang + "\n" + strings.TrimRight(s, "\n") + "\n" + n
}

// writeText writes a conversation for a terminal: messages at the left margin, everything else
// indented.
func writeText(out io.Writer, s store.Session, t *transcript.Snapshot) error {
	w := bufio.NewWriter(out)
	title, facts := heading(s, t)
	w.WriteString(title + "\n")
	for _, f := range facts {
		fmt.Fprintf(w, "  %-12s %s\n", f[0], f[1])
	}
	for _, it := range items(t) {
		w.WriteString("\n")
		head := it.Title
		if it.Mark != "" {
			head = it.Mark + " " + head
		}
		if it.Status != "" {
			head += " (" + it.Status + ")"
		}
		indent := "    "
		switch it.Kind {
		case itemUser:
			head = "── " + head + " ──"
			indent = ""
		case itemAgent:
			head = "── " + head + " ──"
			indent = ""
		default:
			head = "  " + head
		}
		w.WriteString(head + "\n")
		for _, n := range it.Notes {
			fmt.Fprintf(w, "    %s\n", n)
		}
		for _, b := range it.Blocks {
			writeIndented(w, textBlock(b), indent)
		}
		if it.Loss > 0 {
			fmt.Fprintf(w, "%s(%d bytes of this were not stored)\n", indent, it.Loss)
		}
	}
	return w.Flush()
}

// textBlock writes a block of content as plain text.
func textBlock(b block) string {
	switch b.Kind {
	case blockSteps:
		var lines []string
		for _, s := range b.Steps {
			lines = append(lines, s.Mark+" "+s.Text)
		}
		return strings.Join(lines, "\n")
	case blockImage:
		return "[image " + b.Text + "]"
	case blockLink:
		if b.URL != "" && b.URL != b.Text {
			return b.Text + " <" + b.URL + ">"
		}
	}
	return b.Text
}

func writeIndented(w *bufio.Writer, text, indent string) {
	for l := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if l != "" {
			w.WriteString(indent)
		}
		w.WriteString(l + "\n")
	}
}
