package translate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/wire"
)

// Agents of version 1 report the commands they run themselves in the metadata of tool
// calls, to clients that declare [TerminalOutputMeta]: see [FromV1.Append].
const (
	metaTerminalInfo   = "terminal_info"
	metaTerminalOutput = "terminal_output"
	metaTerminalDelta  = "terminal_output_delta"
	metaTerminalExit   = "terminal_exit"
)

// maxReported bounds the tool calls of which a [FromV1] knows which terminal they show.
const maxReported = 256

// A reported is what is known of the terminal that a tool call shows or reports.
type reported struct {
	id      acpv2.TerminalID // "" if the call was announced without one
	command string           // as it was passed on
	silent  bool             // the call shows it, and nothing is reported of it: it may be the client's
	added   bool             // to the content of the call, which did not show it
	exited  bool
}

// A terminalReport is one of the members of the metadata.
type terminalReport struct {
	id     acpv2.TerminalID
	cwd    string
	data   string
	exit   acpv2.TerminalExitStatus
	filled bool // there is data, even if that is ""
}

// terminalReports are those of a tool call; nil for what is not there.
type terminalReports struct{ info, output, delta, exit *terminalReport }

// id returns the terminal that the reports are about; "" if there are none.
func (r *terminalReports) id() acpv2.TerminalID {
	for _, m := range []*terminalReport{r.info, r.output, r.delta, r.exit} {
		if m != nil {
			return m.id
		}
	}
	return ""
}

// toolCall appends an update of a tool call; whole if it announces the call.
func (f *FromV1) toolCall(dst []acpv2.SessionUpdate, u *acpv2.ToolCallUpdate, whole bool) []acpv2.SessionUpdate {
	var r terminalReports
	if bytes.Contains(u.Meta, []byte(`"terminal_`)) {
		r, u.Meta = reportsOf(u.Meta)
	}
	known := f.reported.get(u.ToolCallID)
	id := r.id()
	if id == "" && (known == nil || known.silent || known.id == "") {
		if shown := terminalIn(u); shown != "" || whole {
			if known == nil {
				known, _ = f.reported.add(u.ToolCallID, maxReported)
			}
			*known = reported{id: shown, silent: shown != ""}
		}
		return append(dst, u)
	}
	first := id != "" && (known == nil || known.id != id)
	again := whole && known != nil && !known.silent && known.id == id
	add := first && (whole || known != nil && known.id == "") && !showsTerminal(u, id)
	if known == nil {
		known, _ = f.reported.add(u.ToolCallID, maxReported)
	}
	if first || again {
		*known = reported{id: id}
	}
	known.silent = false
	dst = f.terminal(dst, u, known, &r, again)
	if known.added && !u.Content.IsZero() && !showsTerminal(u, known.id) {
		u.Content = acpv2.Set(append(u.Content.Or(nil), &acpv2.Terminal{TerminalID: known.id}))
	}
	if whole || id == "" || says(u) {
		dst = append(dst, u)
	}
	if add {
		known.added = true
		dst = append(dst, &acpv2.ToolCallContentChunk{ToolCallID: u.ToolCallID, Content: &acpv2.Terminal{TerminalID: id}})
	}
	if known.added && !known.exited && ended(u) {
		known.exited = true
		dst = append(dst, &acpv2.TerminalUpdate{TerminalID: known.id, ExitStatus: acpv2.Set(exitOf(u.RawOutput))})
	}
	return dst
}

// terminal appends what the reports of an update mean. again says that they are those of a
// tool call that begins anew, as in a history.
func (f *FromV1) terminal(dst []acpv2.SessionUpdate, u *acpv2.ToolCallUpdate, known *reported, r *terminalReports, again bool) []acpv2.SessionUpdate {
	t := &acpv2.TerminalUpdate{TerminalID: known.id}
	if again {
		t.Output, t.ExitStatus = acpv2.Clear[acpv2.TerminalOutput](), acpv2.Clear[acpv2.TerminalExitStatus]()
	}
	if c := commandOf(u.RawInput); c != "" && c != known.command {
		known.command, t.Command = c, acpv2.Set(c)
	}
	if r.info != nil && absolute(r.info.cwd) {
		t.Cwd = acpv2.Set(r.info.cwd)
	}
	delta := r.delta
	if r.output != nil && !f.OutputAppends {
		t.Output = acpv2.Set(acpv2.TerminalOutput{Data: encoded(r.output.data)})
	} else if r.output != nil {
		delta = r.output
	}
	if r.info != nil || !t.Command.IsZero() || !t.Output.IsZero() {
		dst = append(dst, t)
	}
	if delta != nil {
		dst = append(dst, &acpv2.TerminalOutputChunk{TerminalID: known.id, Data: encoded(delta.data)})
	}
	if r.exit != nil {
		known.exited = true
		dst = append(dst, &acpv2.TerminalUpdate{TerminalID: known.id, ExitStatus: acpv2.Set(r.exit.exit)})
	}
	return dst
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// reportsOf takes the reports of a terminal out of metadata. What it does not
// understand, or is about another terminal than the first, stays.
func reportsOf(meta json.RawMessage) (r terminalReports, rest json.RawMessage) {
	var d wire.Decoder
	d.Reset(meta, false)
	var taken []string
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		name := string(k)
		var at **terminalReport
		switch name {
		case metaTerminalInfo:
			at = &r.info
		case metaTerminalOutput:
			at = &r.output
		case metaTerminalDelta:
			at = &r.delta
		case metaTerminalExit:
			at = &r.exit
		}
		m := reportOf(d.Raw())
		data := at == &r.output || at == &r.delta
		if at == nil || m == nil || data && !m.filled || r.id() != "" && r.id() != m.id {
			continue
		}
		*at = m
		taken = append(taken, name)
	}
	if d.Finish() != nil || taken == nil {
		return terminalReports{}, meta
	}
	return r, without(meta, taken...)
}

// reportOf reads one report; nil if it names no terminal.
func reportOf(raw []byte) *terminalReport {
	m := new(terminalReport)
	var d wire.Decoder
	d.Reset(raw, false)
	if d.Peek() != '{' {
		return nil
	}
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		name := string(k)
		text := d.Peek() == '"'
		switch {
		case text && name == "terminal_id":
			m.id = acpv2.TerminalID(d.Str())
		case text && name == "cwd":
			m.cwd = d.Str()
		case text && name == "data":
			m.data, m.filled = d.Str(), true
		case text && name == "signal":
			m.exit.Signal = d.Str()
		case name == "exit_code":
			m.exit.ExitCode = codeOf(d.Raw())
		default:
			d.Skip()
		}
	}
	if d.Finish() != nil || m.id == "" {
		return nil
	}
	return m
}

// codeOf reads an exit code; nil if it is not an integer.
func codeOf(raw []byte) *int64 {
	var n int64
	if len(raw) == 0 || raw[0] == 'n' || json.Unmarshal(raw, &n) != nil {
		return nil
	}
	return &n
}

// exitOf returns how a command has ended whose terminal reports no end: as the output
// of its tool call says.
func exitOf(rawOutput json.RawMessage) acpv2.TerminalExitStatus {
	code, _ := take(rawOutput, "exit_code")
	return acpv2.TerminalExitStatus{ExitCode: codeOf(code)}
}

// commandOf returns the command in the input of a tool call, or "".
func commandOf(rawInput json.RawMessage) (command string) {
	raw, _ := take(rawInput, "command")
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &command) != nil {
		return ""
	}
	return command
}

// absolute reports whether a path is one, on any system.
func absolute(path string) bool {
	drive := len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
	return drive || strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\\`)
}

// terminalIn returns the first terminal that the content of an update shows, or "".
func terminalIn(u *acpv2.ToolCallUpdate) acpv2.TerminalID {
	for _, c := range u.Content.Or(nil) {
		if t, ok := c.(*acpv2.Terminal); ok {
			return t.TerminalID
		}
	}
	return ""
}

// showsTerminal reports whether an update sets content that shows a terminal.
func showsTerminal(u *acpv2.ToolCallUpdate, id acpv2.TerminalID) bool {
	return slices.ContainsFunc(u.Content.Or(nil), func(c acpv2.ToolCallContent) bool {
		t, ok := c.(*acpv2.Terminal)
		return ok && t.TerminalID == id
	})
}

// ended reports whether an update ends a tool call.
func ended(u *acpv2.ToolCallUpdate) bool {
	s := u.Status.Or("")
	return s == acpv2.ToolCallStatusCompleted || s == acpv2.ToolCallStatusFailed
}

// says reports whether an update says anything about a tool call.
func says(u *acpv2.ToolCallUpdate) bool {
	return !(u.Title.IsZero() && u.Name.IsZero() && u.Kind.IsZero() && u.Status.IsZero() && u.Content.IsZero() &&
		u.Locations.IsZero() && u.RawInput == nil && u.RawOutput == nil && !hasMembers(u.Meta, u.Unknown))
}
