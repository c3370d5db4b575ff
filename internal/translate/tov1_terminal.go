package translate

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/plaintext"
)

// A terminal is what is known of a terminal of the agent's, which version 1
// cannot show: it becomes text in the tool calls that show it, or is reported in their
// metadata to a client that declares that.
type terminal struct {
	in      acpv2.ToolCallID // the tool call that reports it, or ""
	cut     []byte           // the beginning of a character, which is reported with its rest
	client  bool             // the client's own
	lent    acpv2.TerminalID // what the client calls it then
	command string
	cwd     string
	output  []byte // the end of it, up to twice maxOutput
	dropped bool   // output is not all
	exit    *acpv2.TerminalExitStatus
	calls   []acpv2.ToolCallID
}

// ClientTerminal says that a terminal was created by the client, which can show
// it. It must be said before a tool call shows the terminal.
func (t *ToV1) ClientTerminal(id acpv2.TerminalID) { t.LentTerminal(id, id) }

// LentTerminal is ClientTerminal for a terminal that the client knows by another id.
func (t *ToV1) LentTerminal(id, client acpv2.TerminalID) {
	v := t.terminal(id)
	v.client, v.lent = true, client
}

// ofClient returns what the client calls a terminal, and whether it is the client's.
func (t *ToV1) ofClient(id acpv2.TerminalID) (acpv2.TerminalID, bool) {
	if v := t.terminals.get(id); v != nil && v.client {
		return v.lent, true
	}
	return id, t.allTerminals
}

// terminal returns what is known of a terminal, which may be nothing yet.
func (t *ToV1) terminal(id acpv2.TerminalID) *terminal {
	v := t.terminals.get(id)
	if v == nil {
		v, _ = t.terminals.add(id, maxTerminals)
	}
	return v
}

func (t *ToV1) terminalUpdate(dst []acpv1.SessionUpdate, u *acpv2.TerminalUpdate) []acpv1.SessionUpdate {
	v := t.terminal(u.TerminalID)
	u.Command.Apply(&v.command)
	u.Cwd.Apply(&v.cwd)
	replaced := !u.Output.IsZero()
	before := v.output
	if replaced {
		before = slices.Clone(before)
		v.reset()
		v.write(bytesOf(u.Output.Or(acpv2.TerminalOutput{}).Data))
	}
	if e, ok := u.ExitStatus.Get(); ok {
		v.exit = &e
	} else if u.ExitStatus.IsClear() {
		v.exit = nil
	}
	if v.in != "" {
		if replaced {
			dst = t.reportAll(dst, u.TerminalID, v, before)
		}
		if !u.ExitStatus.IsZero() {
			dst = t.reportExit(dst, u.TerminalID, v)
		}
		return dst
	}
	if u.Command.IsZero() && u.Output.IsZero() && u.ExitStatus.IsZero() {
		return dst
	}
	return t.show(dst, u.TerminalID, v)
}

func (t *ToV1) terminalOutput(dst []acpv1.SessionUpdate, u *acpv2.TerminalOutputChunk) []acpv1.SessionUpdate {
	v := t.terminal(u.TerminalID)
	p := bytesOf(u.Data)
	v.write(p)
	if v.in != "" {
		return t.reportMore(dst, u.TerminalID, v, p)
	}
	return t.show(dst, u.TerminalID, v)
}

// show sends the content of the tool calls that show a terminal.
func (t *ToV1) show(dst []acpv1.SessionUpdate, id acpv2.TerminalID, v *terminal) []acpv1.SessionUpdate {
	if v.client {
		return dst
	}
	v.calls = slices.DeleteFunc(v.calls, func(callID acpv2.ToolCallID) bool {
		c := t.calls.get(callID)
		if c == nil || !slices.ContainsFunc(c.parts, func(p part) bool { return p.terminal == id }) {
			return true
		}
		dst = append(dst, &acpv1.ToolCallUpdate{ToolCallID: acpv1.ToolCallID(callID), Content: acpv1.Set(t.render(c.parts))})
		return false
	})
	return dst
}

// shownBy notes that a tool call shows the terminal; of too many the first is
// no longer kept up to date.
func (v *terminal) shownBy(id acpv2.ToolCallID) {
	if slices.Contains(v.calls, id) {
		return
	}
	if len(v.calls) == maxShown {
		v.calls = slices.Delete(v.calls, 0, 1)
	}
	v.calls = append(v.calls, id)
}

func (v *terminal) reset() { v.output, v.dropped = v.output[:0], false }

// bytesOf decodes output, which is base64; what is malformed from some point on is
// left out from there.
func bytesOf(data string) []byte {
	p, _ := base64.RawStdEncoding.DecodeString(strings.TrimRight(data, "="))
	return p
}

// write adds output.
func (v *terminal) write(p []byte) {
	if len(p) > maxOutput {
		p = p[len(p)-maxOutput:]
		v.output, v.dropped = v.output[:0], true
	}
	if len(v.output)+len(p) > 2*maxOutput {
		n := copy(v.output, v.output[len(v.output)-maxOutput:])
		v.output, v.dropped = v.output[:n], true
	}
	v.output = append(v.output, p...)
}

// text shows the terminal as a block of text: the command, the end of the
// output with its escape sequences, and how it ended if not well.
func (v *terminal) text() string {
	out, dropped := v.output, v.dropped
	if len(out) > maxOutput {
		out, dropped = out[len(out)-maxOutput:], true
	}
	if dropped {
		for len(out) > 0 && !utf8.RuneStart(out[0]) {
			out = out[1:]
		}
	}
	out = out[:len(out)-plaintext.Unfinished(out)]
	body := strings.ToValidUTF8(string(out), "\uFFFD")
	fence := "```"
	for strings.Contains(body, fence) || strings.Contains(v.command, fence) {
		fence += "`"
	}
	var b strings.Builder
	b.WriteString(fence + "console\n")
	if v.command != "" {
		b.WriteString("$ " + v.command + "\n")
	}
	if dropped {
		b.WriteString("…\n")
	}
	b.WriteString(body)
	if body != "" && !strings.HasSuffix(body, "\n") {
		b.WriteByte('\n')
	}
	if e := v.exit; e != nil {
		switch {
		case e.Signal != "":
			fmt.Fprintf(&b, "[signal %s]\n", e.Signal)
		case e.ExitCode != nil && *e.ExitCode != 0:
			fmt.Fprintf(&b, "[exit code %d]\n", *e.ExitCode)
		}
	}
	b.WriteString(fence)
	return b.String()
}
