package tool

import (
	"fmt"
	"strings"

	"github.com/goacp/acp"
)

// Bounds of the output of commands.
const (
	// MaxOutput is what is kept of the output of a command, from its end, in bytes.
	MaxOutput = 4 << 20
	// maxKept bounds what a session keeps of commands that have ended, in bytes.
	maxKept = 16 << 20
	// outputHead and outputTail are what a language model is shown at once of the beginning
	// and the end of an output, in bytes: most of what matters is at the end, and all of it
	// can be read.
	outputHead = 4 << 10
	outputTail = 16 << 10
)

// outputText returns what a state shows, in plain text that ends with a line end.
func outputText(state *acp.TerminalState) string {
	if state == nil {
		return ""
	}
	return ended(onScreen(state.Output))
}

// ended is a text with the end of its last line.
func ended(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// lost says that the beginning of an output is not kept.
func lost(state *acp.TerminalState) string {
	if state == nil || !state.Truncated {
		return ""
	}
	return fmt.Sprintf("[the beginning is lost: the last %d bytes are kept]\n", len(state.Output))
}

// shownWhole reports whether all of an output is shown at once.
func shownWhole(text string) bool { return len(text) <= outputHead+outputTail }

// cutOutput returns the beginning and the end of an output, with a line between them that
// says what is left out, and where it can be read: in the job id. Before the text there are
// lines of it that were shown already.
func cutOutput(text string, before int, id string) string {
	if shownWhole(text) {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	head := partOf(text, 1, 0, 0, outputHead)
	total := head.total
	var tail []string
	size, rest := 0, text
	for line := total; line > head.last; line-- {
		i := strings.LastIndexByte(rest[:len(rest)-1], '\n') + 1
		shown := cutLine(rest[i:], before+line)
		if size += len(shown); size > outputTail {
			break
		}
		tail, rest = append(tail, shown), rest[:i]
	}
	var b strings.Builder
	if before == 0 {
		b.WriteString(head.text)
	} else {
		head = part{}
	}
	last := total - len(tail)
	if head.last < last {
		fmt.Fprintf(&b, "[lines %d-%d of %d are left out here; read job:%s with from: %d shows them]\n",
			before+head.last+1, before+last, before+total, id, before+head.last+1)
	}
	for i := len(tail) - 1; i >= 0; i-- {
		b.WriteString(tail[i])
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// printed returns what a command has printed, for a language model. What does not fit is kept
// as a job, for reading.
func (c *call) printed(line string, state *acp.TerminalState) string {
	all := outputText(state)
	if shownWhole(all) {
		return lost(state) + strings.ToValidUTF8(all, "\uFFFD")
	}
	return lost(state) + cutOutput(all, 0, c.env.Jobs().keep(line, state).id)
}
