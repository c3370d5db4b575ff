package translate

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/plaintext"
	"github.com/goacp/acp/internal/wire"
)

// This file reports terminals of the agent to clients of version 1 that declare that they
// show them: in the metadata of the tool call that shows a terminal. Such clients create a
// terminal when they read terminal_info in the announcement of a tool call, and read the rest
// in its updates.

// TerminalReports returns whether the metadata of a client's capabilities declares that the client
// shows terminals that tool calls report, and whether it tells pieces of output from all of it.
func TerminalReports(capabilities json.RawMessage) (shown, pieces bool) {
	is := func(name string) bool {
		v, _ := take(capabilities, name)
		return string(v) == "true"
	}
	pieces = is(metaTerminalDelta)
	return pieces || is(metaTerminalOutput), pieces
}

// ClientExtensions returns the metadata of the capabilities of a client of version 1: that it shows such
// terminals, and that it shows the user the command of a way to log in. It is nil for neither.
func ClientExtensions(terminals, login bool) json.RawMessage {
	var meta json.RawMessage
	yes := json.RawMessage("true")
	if login {
		meta = put(meta, "terminal-auth", yes)
	}
	if terminals {
		meta = put(put(meta, metaTerminalDelta, yes), metaTerminalOutput, yes)
	}
	return meta
}

// reporting returns what the client declares.
func (t *ToV1) reporting() (shown, pieces bool) {
	if len(t.Caps.Meta) == 0 {
		return false, false
	}
	return TerminalReports(t.Caps.Meta)
}

// adopt has the announcement of a tool call report the first terminal that it shows, and returns
// that; "" if there is none to report. An announcement has place for one.
func (t *ToV1) adopt(u *acpv2.ToolCallUpdate) acpv2.TerminalID {
	if shown, _ := t.reporting(); !shown {
		return ""
	}
	for _, c := range u.Content.Or(nil) {
		c, ok := c.(*acpv2.Terminal)
		if !ok {
			continue
		}
		if v := t.terminal(c.TerminalID); !v.client && v.in == "" && len(v.calls) == 0 {
			v.in = u.ToolCallID
			return c.TerminalID
		}
	}
	return ""
}

// announced appends the announcement of a tool call with the terminal that it reports, and what is
// known of that.
func (t *ToV1) announced(dst []acpv1.SessionUpdate, call *acpv1.ToolCall, id acpv2.TerminalID) []acpv1.SessionUpdate {
	if id == "" {
		return append(dst, call)
	}
	v := t.terminal(id)
	info := wire.AppendString([]byte(`{"terminal_id":`), string(id))
	if v.cwd != "" {
		info = wire.AppendString(append(info, `,"cwd":`...), v.cwd)
	}
	call.Meta = put(without(call.Meta, metaTerminalInfo), metaTerminalInfo, append(info, '}'))
	dst = append(dst, call)
	if len(v.output) > 0 {
		dst = t.reportMore(dst, id, v, v.output)
	}
	return t.reportExit(dst, id, v)
}

// reportMore reports output that was added.
func (t *ToV1) reportMore(dst []acpv1.SessionUpdate, id acpv2.TerminalID, v *terminal, p []byte) []acpv1.SessionUpdate {
	p = append(v.cut, p...)
	n := len(p) - plaintext.Unfinished(p)
	v.cut = bytes.Clone(p[n:])
	if n == 0 {
		return dst
	}
	name := metaTerminalOutput
	if _, pieces := t.reporting(); pieces {
		name = metaTerminalDelta
	}
	return append(dst, report(id, v, name, p[:n]))
}

// reportAll reports output that replaces what was known. A client that knows pieces only gets what is new.
func (t *ToV1) reportAll(dst []acpv1.SessionUpdate, id acpv2.TerminalID, v *terminal, before []byte) []acpv1.SessionUpdate {
	v.cut = nil
	if more, ok := bytes.CutPrefix(v.output, before); ok {
		if len(more) == 0 {
			return dst
		}
		n := plaintext.Unfinished(before)
		return t.reportMore(dst, id, v, v.output[len(before)-n:])
	}
	if _, pieces := t.reporting(); !pieces {
		return t.reportMore(dst, id, v, v.output)
	}
	n := len(v.output) - plaintext.Unfinished(v.output)
	v.cut = bytes.Clone(v.output[n:])
	return append(dst, report(id, v, metaTerminalOutput, v.output[:n]))
}

// reportExit reports how the command ended.
func (t *ToV1) reportExit(dst []acpv1.SessionUpdate, id acpv2.TerminalID, v *terminal) []acpv1.SessionUpdate {
	if v.exit == nil {
		return dst // version 1 cannot say that it runs again
	}
	exit := wire.AppendString([]byte(`{"terminal_id":`), string(id))
	exit = append(exit, `,"exit_code":`...)
	if v.exit.ExitCode != nil {
		exit = wire.AppendInt(exit, *v.exit.ExitCode)
	} else {
		exit = append(exit, "null"...)
	}
	exit = append(exit, `,"signal":`...)
	if v.exit.Signal != "" {
		exit = wire.AppendString(exit, v.exit.Signal)
	} else {
		exit = append(exit, "null"...)
	}
	return append(dst, &acpv1.ToolCallUpdate{ToolCallID: acpv1.ToolCallID(v.in), Meta: put(nil, metaTerminalExit, append(exit, '}'))})
}

// report is an update of a tool call that reports output.
func report(id acpv2.TerminalID, v *terminal, name string, p []byte) *acpv1.ToolCallUpdate {
	out := wire.AppendString([]byte(`{"terminal_id":`), string(id))
	out = wire.AppendString(append(out, `,"data":`...), strings.ToValidUTF8(string(p), "\uFFFD"))
	return &acpv1.ToolCallUpdate{ToolCallID: acpv1.ToolCallID(v.in), Meta: put(nil, name, append(out, '}'))}
}
