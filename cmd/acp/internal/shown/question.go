package shown

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/transcript"
)

// RunThis is the title of a question about a command, where that of the agent says no more.
const RunThis = "Run this command?"

// A Question is what users must see before they answer a request for permission: the whole command with its directory,
// or else the changes, or else the whole input of the tool. In all texts that is written out which nobody sees: see
// [safetext.Visible].
type Question struct {
	Title       string
	Theirs      bool // Title is what the agent says
	Description string
	Command     string // "" if there is none
	Certain     bool   // Command is what would run; without a command, nothing would
	Cwd         string // of the command
	Paths       []string
	Texts       []string // from the content of the tool call
	Patches     []string // likewise
	Input       []Value
}

// A Value is a part of the input of a tool.
type Value struct {
	Name string // as in edits[0].path; "" for an input that has no parts
	Text string // of one line or several
}

// Ask returns what users must see of a request.
func Ask(req acphost.Request) Question {
	command, certain := req.Shows()
	q := Question{Command: visibleCommand(command), Certain: certain}
	said := []string{command} // what is shown is not shown again
	again := func(s string) bool {
		if slices.ContainsFunc(said, func(t string) bool { return Same(s, t, req.Cwd) }) {
			return true
		}
		said = append(said, s)
		return false
	}
	if q.Title, q.Theirs = Asks(req.Title, again(req.Title)); req.Of == nil {
		q.Theirs = false // acp itself asks
	}
	if strings.TrimSpace(req.Description) != "" && !again(req.Description) {
		q.Description = safetext.VisibleCode(strings.TrimSpace(req.Description))
	}
	if command != "" {
		q.Cwd = safetext.VisibleLine(req.Cwd, whole)
	}
	for _, p := range req.Paths {
		if p == "" { // nobody knows it
			continue
		}
		q.Paths = append(q.Paths, safetext.VisibleLine(p, whole))
		said = append(said, p)
	}
	if req.Of != nil && req.Of.ToolCall != nil {
		content, _ := req.Of.ToolCall.Content.Get()
		for _, c := range content {
			switch c := c.(type) {
			case *acpv2.Content:
				if text, ok := c.Content.(*acpv2.TextContent); ok && strings.TrimSpace(text.Text) != "" && !again(text.Text) && !says(text.Text, command) {
					q.Texts = append(q.Texts, safetext.VisibleCode(strings.Trim(text.Text, "\n")))
				}
			case *acpv2.Diff:
				if c.Patch != nil {
					q.Patches = append(q.Patches, safetext.VisibleCode(strings.TrimRight(c.Patch.Text, "\n")))
				}
			}
		}
	}
	if NeedsInput(command, certain, len(q.Patches) > 0) {
		q.Input = Input(req.RawInput, req.Cwd, said...)
	}
	return q
}

// whole is the cells of a line that is shown in full.
const whole = 1 << 20

// NeedsInput reports whether a question must show the input of its tool: nothing else says for certain what it would do.
func NeedsInput(command string, certain, changes bool) bool {
	return !certain || command == "" && !changes
}

// Asks returns the title of a question, and whether it is the agent's. again says that it is shown elsewhere.
func Asks(title string, again bool) (text string, theirs bool) {
	switch strings.TrimSpace(title) {
	case "":
		return "The agent asks for permission", false
	case RunThis:
		return RunThis, false
	}
	if again {
		return RunThis, false
	}
	return safetext.VisibleLine(strings.TrimSpace(title), whole), true
}

// says reports whether a text is what acp's own agents say of a command in version 1.
func says(text, command string) bool {
	return command != "" && strings.Contains(squeeze(text), "$ "+squeeze(command)) && strings.HasPrefix(text, RunThis)
}

// visibleCommand returns a command as it is shown. Line feeds at its end mean nothing to a shell.
func visibleCommand(command string) string {
	return safetext.Visible(strings.TrimRight(command, "\n"))
}

// VisibleCall returns a copy of a tool call with everything written out that nobody sees.
func VisibleCall(c *transcript.ToolCall) *transcript.ToolCall {
	v := *c
	v.Title, v.Name = safetext.Visible(strings.TrimSpace(c.Title)), safetext.Visible(c.Name)
	v.Locations = slices.Clone(c.Locations)
	for i := range v.Locations {
		v.Locations[i].Path = safetext.VisibleLine(v.Locations[i].Path, whole)
	}
	v.Content = nil
	for _, content := range c.Content {
		v.Content = append(v.Content, visibleContent(content))
	}
	return &v
}

func visibleContent(content acp.ToolCallContent) acp.ToolCallContent {
	switch c := content.(type) {
	case *acpv2.Content:
		if text, ok := c.Content.(*acpv2.TextContent); ok {
			v, t := *c, *text
			t.Text = safetext.VisibleCode(text.Text)
			v.Content = &t
			return &v
		}
	case *acpv2.Diff:
		v := *c
		if c.Patch != nil {
			p := *c.Patch
			p.Text = visiblePatch(p.Text)
			v.Patch = &p
		}
		v.Changes = slices.Clone(c.Changes)
		for i := range v.Changes {
			v.Changes[i].Operation = visibleOperation(v.Changes[i].Operation)
		}
		return &v
	}
	return content
}

// visiblePatch is [safetext.VisibleCode] but for the carriage returns at the ends of lines, which say what changes.
func visiblePatch(text string) string {
	var b strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		end := ""
		if body, ok := strings.CutSuffix(line, "\r\n"); ok {
			line, end = body, "\r\n"
		}
		b.WriteString(safetext.VisibleCode(line) + end)
	}
	return b.String()
}

func visibleOperation(op acpv2.DiffOperation) acpv2.DiffOperation {
	line := func(s string) string { return safetext.VisibleLine(s, whole) }
	switch o := op.(type) {
	case *acpv2.DiffAdd:
		v := *o
		v.Path = line(v.Path)
		return &v
	case *acpv2.DiffDelete:
		v := *o
		v.Path = line(v.Path)
		return &v
	case *acpv2.DiffModify:
		v := *o
		v.Path = line(v.Path)
		return &v
	case *acpv2.DiffMove:
		v := *o
		v.Path, v.OldPath = line(v.Path), line(v.OldPath)
		return &v
	case *acpv2.DiffCopy:
		v := *o
		v.Path, v.OldPath = line(v.Path), line(v.OldPath)
		return &v
	}
	return op
}

// maxDepth bounds the parts of parts of an input that are shown by themselves. What is deeper is shown as JSON.
const maxDepth = 8

// Input returns the input of a tool as values that can be read: texts are shown with their lines. It leaves out texts
// that are said elsewhere, and nothing else.
func Input(raw json.RawMessage, cwd string, said ...string) []Value {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var out []Value
	var add func(name string, raw json.RawMessage, depth int)
	add = func(name string, raw json.RawMessage, depth int) {
		dec := json.NewDecoder(bytes.NewReader(raw))
		first, err := dec.Token()
		delim, _ := first.(json.Delim)
		switch {
		case err != nil, delim != 0 && depth == maxDepth, delim != 0 && !dec.More(), delim == '[' && !bytes.ContainsAny(raw[1:], `[{\`):
			out = append(out, Value{name, safetext.VisibleCode(string(raw))})
		case delim == 0:
			text, ok := first.(string)
			if !ok {
				text = string(raw)
			} else if text != "" && slices.ContainsFunc(said, func(s string) bool { return text == s || s == strings.TrimSuffix(cwd, "/")+"/"+text }) {
				return
			}
			out = append(out, Value{name, safetext.VisibleCode(text)})
		default:
			for i := 0; dec.More(); i++ {
				part := fmt.Sprintf("%s[%d]", name, i)
				if delim == '{' {
					key, _ := dec.Token()
					part = safetext.VisibleLine(fmt.Sprint(key), whole)
					if name != "" {
						part = name + "." + part
					}
				}
				var value json.RawMessage
				if dec.Decode(&value) != nil {
					out = append(out, Value{name, safetext.VisibleCode(string(raw))})
					return
				}
				add(part, value, depth+1)
			}
		}
	}
	add("", raw, 0)
	return out
}

// Lines returns a value as lines: its name and its text, which stands below the name if it has several lines.
func (v Value) Lines() []string {
	text := strings.TrimRight(v.Text, "\n")
	name := v.Name
	if name == "" {
		name = "input"
	}
	if !strings.Contains(text, "\n") {
		return []string{name + ": " + text}
	}
	out := []string{name + ":"}
	for line := range strings.SplitSeq(text, "\n") {
		out = append(out, "  "+line)
	}
	return out
}
