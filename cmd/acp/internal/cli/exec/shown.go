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

// A Show says what of a turn is written to standard output; "" is ShowText.
type Show string

// What can be shown.
const (
	ShowText  Show = "text"  // what the agent says
	ShowTools Show = "tools" // what its tool calls show: text, changes, the output of commands
	ShowAll   Show = "all"   // both, and what it thinks, in their order
)

// shows lists the values of --show.
var shows = []string{string(ShowText), string(ShowTools), string(ShowAll)}

// String returns the value as the flag takes it.
func (s *Show) String() string { return string(*s) }

// Type names the form of the flag.
func (*Show) Type() string { return "WHAT" }

// Set reads a value of the flag.
func (s *Show) Set(text string) error {
	for _, known := range shows {
		if text == known {
			*s = Show(text)
			return nil
		}
	}
	return exitcode.Errorf(exitcode.Usage, "it is one of %s", strings.Join(shows, ", "))
}

func (s Show) text() bool  { return s != ShowTools }
func (s Show) tools() bool { return s == ShowTools || s == ShowAll }

// work writes what tool calls show: the output of commands as it comes, everything else once the call
// has ended.
func (r *report) work(e transcript.Entry) {
	switch e := e.(type) {
	case *transcript.Terminal:
		r.output(e)
	case *transcript.ToolCall:
		if e.Ended() && !r.ended[e.Seq()] {
			r.ended[e.Seq()] = true
			r.result(e)
		}
	}
}

// output writes what is new of the output of a command.
func (r *report) output(t *transcript.Terminal) {
	raw := t.Raw()
	from, end := r.read[t.Seq()], int(t.Skipped)+len(raw)
	if end <= from {
		return
	}
	if from < int(t.Skipped) {
		r.gaps, from = r.gaps+int(t.Skipped)-from, int(t.Skipped)
	}
	r.read[t.Seq()] = end
	r.piece(t.Seq(), raw[from-int(t.Skipped):])
}

// result writes what a call has shown besides the output of commands.
func (r *report) result(e *transcript.ToolCall) {
	for i := range e.Content {
		switch c := e.Content[i].(type) {
		case *acpv2.Content:
			r.item(e.Seq(), blockText(c.Content))
		case *acpv2.Diff:
			if c.Patch != nil {
				r.item(e.Seq(), c.Patch.Text)
			}
		}
	}
	if len(e.Content) == 0 && len(e.RawOutput) > 0 {
		r.item(e.Seq(), export.OutputText(e.RawOutput))
	}
	if e.Dropped() > 0 {
		r.lost = true
	}
}

// item writes something as lines of its own.
func (r *report) item(seq uint64, text string) {
	if text == "" {
		return
	}
	r.fail(r.out.EndLine())
	r.piece(seq, text)
	r.fail(r.out.EndLine())
}

// piece writes a piece of an entry, on a line of its own unless it goes on with the same one.
func (r *report) piece(seq uint64, text string) {
	if r.begun && r.at != seq {
		r.fail(r.out.EndLine())
	}
	r.at, r.begun = seq, true
	r.fail(r.out.Write(text))
}

// blockText is a block as text.
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

// unfenced returns what is in a block of code, if that is all there is.
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
