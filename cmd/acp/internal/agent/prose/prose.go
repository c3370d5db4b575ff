// Package prose writes what the built-in agent and its tools say: sentences and pieces of
// Markdown that hold what others wrote. What it returns is bounded, and text that it puts
// between quotes of Markdown cannot leave them. Its functions may be called from any
// goroutine.
package prose

import (
	"fmt"
	"strings"
	"unicode"
)

// OneLine makes one line of a text, of limit characters at most and without characters
// that cannot be seen.
func OneLine(text string, limit int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsGraphic(r)
	}), " ")
	if r := []rune(text); len(r) > limit {
		text = string(r[:limit-1]) + "…"
	}
	return text
}

// Error returns the text of an error as it is shown: one line of at most 500 characters.
func Error(err error) string { return OneLine(err.Error(), 500) }

// Inline puts one line of text between backquotes that it cannot leave.
func Inline(text string) string {
	text = OneLine(text, 300)
	if !strings.Contains(text, "`") {
		return "`" + text + "`"
	}
	fence := "``"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + " " + text + " " + fence
}

// Code puts text into a block of code that it cannot leave.
func Code(language, text string) string {
	run, longest := 0, 2
	for i := range len(text) {
		if run++; text[i] != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return fence + language + "\n" + text + fence
}

// Sentence makes the text of an error the beginning of a sentence, without its full stop.
// A text that begins with a name stays as it is.
func Sentence(text string) string {
	text = strings.TrimSuffix(text, ".")
	if text == "" {
		return text
	}
	if first, _, _ := strings.Cut(text, " "); strings.ContainsAny(first, "./:\\_") {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// Count writes a number of things.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Size writes a number of bytes.
func Size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// Lines counts the lines of a text; the last one may be unfinished.
func Lines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// Head returns the first lines of a text, and whether more follows. A first line that is
// longer than bytes is cut.
func Head(text string, lines, bytes int) (head string, more bool) {
	end, n := 0, 0
	for l := range strings.Lines(text) {
		if n == lines || end+len(l) > bytes {
			if n == 0 {
				return strings.ToValidUTF8(text[:bytes], ""), true
			}
			return text[:end], true
		}
		end += len(l)
		n++
	}
	return text, false
}
