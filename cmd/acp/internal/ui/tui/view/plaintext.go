package view

import (
	"encoding/json"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/transcript"
)

// A plainWriter collects the text of an entry.
type plainWriter struct {
	strings.Builder
	t   *Transcript
	all bool // also what is shown only while the entry is unfolded
}

// put writes texts that say something, each on lines of its own.
func (w *plainWriter) put(texts ...string) {
	for _, s := range texts {
		if s != "" {
			w.WriteString(s)
			if !strings.HasSuffix(s, "\n") {
				w.WriteByte('\n')
			}
		}
	}
}

func (w *plainWriter) blocks(list []acpv2.ContentBlock) {
	for _, c := range list {
		w.put(plainBlock(w.t.th, c))
	}
}

func (w *plainWriter) raw(list ...json.RawMessage) {
	for _, r := range list {
		if w.all && len(r) > 0 {
			w.put(indentJSON(r))
		}
	}
}

// plainEntry returns the text of an entry; with all of it also what is only shown unfolded.
func (t *Transcript) plainEntry(e transcript.Entry, all bool) string {
	w := &plainWriter{t: t, all: all}
	switch e := e.(type) {
	case *transcript.Message:
		if c := e.Content(); len(c) == 1 {
			if text, ok := c[0].(*acpv2.TextContent); ok {
				return text.Text
			}
		}
		w.blocks(e.Content())
	case *transcript.ToolCall:
		w.tool(e)
	case *transcript.Plan:
		w.plan(e)
	case *transcript.Terminal:
		w.put(e.Command, e.PlainHead(), e.Plain())
	case *transcript.Notice:
		w.put(e.Title, e.Description)
	case *transcript.Compaction:
		w.put("Context condensed", e.Error)
		w.blocks(e.Summary())
	case *transcript.Subagent:
		w.put(e.Title, e.Description)
	case *transcript.SessionMessage:
		w.blocks(e.Content())
	case *transcript.Permission:
		w.put(e.Title, e.Description)
		if s, ok := e.Subject.(*acpv2.CommandPermissionSubject); ok {
			w.put(s.Command)
		}
		if o, ok := e.Selected(); ok {
			w.put(o.Name)
		}
	case *transcript.TurnEnd:
		w.put(history.EndingLine(e))
	case *transcript.Unknown:
		w.put(e.Type)
		w.raw(e.Raw)
	}
	return w.String()
}

func (w *plainWriter) tool(e *transcript.ToolCall) {
	w.put(w.t.toolTitle(e))
	if w.all {
		w.put(e.Name)
		for _, p := range w.t.locations(e, "") {
			w.put(p.text)
		}
	}
	for _, c := range e.Content {
		switch c := c.(type) {
		case *acpv2.Content:
			w.put(plainBlock(w.t.th, c.Content))
		case *acpv2.Diff:
			if c.Patch != nil {
				w.put(c.Patch.Text)
			}
			if w.all || c.Patch == nil {
				for _, f := range diffFiles(&acpv2.Diff{Changes: c.Changes}) {
					w.put(f.path, f.what)
				}
			}
		case *acpv2.Terminal:
			if term := w.t.snap.Terminal(c.TerminalID); term != nil {
				w.put(term.Command, term.Plain())
			}
		case *acpv2.SessionReference:
			w.put(childTitle(w.t.snap, c.SessionID))
		}
	}
	w.raw(e.RawInput, e.RawOutput)
}

func (w *plainWriter) plan(e *transcript.Plan) {
	switch c := e.Content.(type) {
	case *acpv2.PlanItems:
		for _, s := range c.Entries {
			box := "[ ] "
			switch s.Status {
			case acpv2.PlanEntryStatusCompleted:
				box = "[x] "
			case acpv2.PlanEntryStatusInProgress:
				box = "[>] "
			case acpv2.PlanEntryStatusCancelled:
				box = "[-] "
			}
			w.put(box + s.Content)
		}
	case *acpv2.PlanMarkdown:
		w.put(c.Content)
	case *acpv2.PlanFile:
		w.put(c.URI)
	}
}

func plainBlock(th *Theme, c acpv2.ContentBlock) string {
	switch c := c.(type) {
	case *acpv2.TextContent:
		return c.Text
	case *acpv2.EmbeddedResource:
		if r, ok := c.Resource.(*acpv2.TextResourceContents); ok {
			return blockLabel(th, c).plain() + "\n" + r.Text
		}
	}
	return blockLabel(th, c).plain()
}
