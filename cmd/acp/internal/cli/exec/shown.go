package exec

import (
	"fmt"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/ui/export"
	"github.com/goacp/acp/transcript"
)

// A Show selects what of a turn is written to standard output. "" means ShowText.
type Show string

// The values of a Show.
const (
	ShowText  Show = "text"  // the agent's messages
	ShowTools Show = "tools" // the results of its tool calls: text, changes, the output of commands
	ShowAll   Show = "all"   // both, and its thoughts, in their order
)

// shows lists the values of --show.
var shows = []string{string(ShowText), string(ShowTools), string(ShowAll)}

// String returns the value in the form that the flag accepts.
func (s *Show) String() string { return string(*s) }

// Type returns the placeholder for the flag's value in help texts.
func (*Show) Type() string { return "WHAT" }

// Set parses a value of the flag.
func (s *Show) Set(text string) error {
	for _, known := range shows {
		if text == known {
			*s = Show(text)
			return nil
		}
	}
	return exitcode.Errorf(exitcode.Usage, "the value must be one of %s", strings.Join(shows, ", "))
}

func (s Show) text() bool  { return s != ShowTools }
func (s Show) tools() bool { return s == ShowTools || s == ShowAll }

// writeToolOutput writes the results of tool calls: the output of commands as it arrives,
// everything else when the call has ended, because until then it may still be replaced.
func (r *report) writeToolOutput(e transcript.Entry) {
	switch e := e.(type) {
	case *transcript.Terminal:
		r.writeOutput(e)
	case *transcript.ToolCall:
		if e.Ended() && !r.ended[e.Seq()] {
			r.ended[e.Seq()] = true
			r.writeResult(e)
		}
	}
}

// writeOutput writes the new part of a command's output. Only the end of it is retained between two
// batches; gaps counts the bytes that were dropped before they could be written.
func (r *report) writeOutput(t *transcript.Terminal) {
	raw := t.Raw()
	from, end := r.read[t.Seq()], int(t.Skipped)+len(raw)
	if end <= from {
		return
	}
	if from < int(t.Skipped) {
		r.gaps, from = r.gaps+int(t.Skipped)-from, int(t.Skipped)
	}
	r.read[t.Seq()] = end
	r.writePiece(t.Seq(), raw[from-int(t.Skipped):])
}

// writeResult writes the content of a tool call, except for the output of commands. A call without
// any content is represented by its raw output.
func (r *report) writeResult(e *transcript.ToolCall) {
	for i := range e.Content {
		switch c := e.Content[i].(type) {
		case *acpv2.Content:
			r.writeItem(e.Seq(), blockText(c.Content))
		case *acpv2.Diff:
			if c.Patch != nil {
				r.writeItem(e.Seq(), c.Patch.Text)
			}
		}
	}
	if len(e.Content) == 0 && len(e.RawOutput) > 0 {
		r.writeItem(e.Seq(), export.OutputText(e.RawOutput))
	}
	if e.Dropped() > 0 {
		r.lost = true
	}
}

// writeItem writes text on lines of its own.
func (r *report) writeItem(seq uint64, text string) {
	if text == "" {
		return
	}
	r.fail(r.out.EndLine())
	r.writePiece(seq, text)
	r.fail(r.out.EndLine())
}

// writePiece writes a piece of an entry. It begins a new line unless it continues the entry that
// was written last.
func (r *report) writePiece(seq uint64, text string) {
	if r.begun && r.at != seq {
		r.fail(r.out.EndLine())
	}
	r.at, r.begun = seq, true
	r.fail(r.out.Write(text))
}

// blockText returns a content block as text.
func blockText(b acp.ContentBlock) string {
	switch b := b.(type) {
	case *acpv2.TextContent:
		return unfenced(b.Text)
	case *acpv2.ResourceLink:
		return b.URI
	case *acpv2.EmbeddedResource:
		switch c := b.Resource.(type) {
		case *acpv2.TextResourceContents:
			return c.Text
		case *acpv2.BlobResourceContents:
			return c.URI
		}
	case *acpv2.ImageContent:
		return fmt.Sprintf("(a picture, %s)", b.MIMEType)
	case *acpv2.AudioContent:
		return fmt.Sprintf("(a sound, %s)", b.MIMEType)
	}
	return ""
}

// unfenced returns the content of a fenced code block if text consists of nothing else. Agents
// fence the results of tools for display; a script wants what is inside.
func unfenced(text string) string {
	trimmed := strings.Trim(text, "\n")
	n := len(trimmed) - len(strings.TrimLeft(trimmed, "`"))
	if n < 3 {
		return text
	}
	fence := trimmed[:n]
	info, body, ok := strings.Cut(trimmed[n:], "\n")
	if !ok || strings.Contains(info, "`") {
		return text
	}
	if body == fence {
		return ""
	}
	inside, ok := strings.CutSuffix(body, "\n"+fence)
	if !ok || strings.HasPrefix(inside, fence) || strings.Contains(inside, "\n"+fence) {
		return text
	}
	return inside + "\n"
}
