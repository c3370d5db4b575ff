package host

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// Bounds of what is kept of the output of one command, and of the content of one tool call, in bytes.
const (
	// headBytes is the beginning, which is written as it comes, and tailBytes the end, which is written
	// when the command or the turn has ended.
	headBytes = 1 << 20
	tailBytes = 1 << 20
	// pieceBytes is how much of the end is written meanwhile, each time that a quarter of the output
	// was not: that is what kill -9 can cost.
	pieceBytes = 64 << 10
	pieceShare = 4
	// moreBytes bounds everything that is written after the beginning.
	moreBytes = 8 << 20
	// contentBytes is how much of the content of a tool call is written as it comes: each time that an
	// agent replaces it, it is written as a whole.
	contentBytes = 4 << 20
	// maxFlushes bounds how often the content of a tool call is written after that.
	maxFlushes = 4
	// maxTails bounds the commands, and the tool calls, of which the end is in memory.
	maxTails = 16
	// maxCounted bounds those of which it is known how much was written.
	maxCounted = 65536
)

// An outputs bounds what is written of the output of commands and of the content of tool calls: of each
// the first and the last part, however much there is. The writer of a journal has one. What is shown is not
// changed by it.
type outputs struct {
	terminals map[acp.TerminalID]*output
	calls     map[acp.ToolCallID]*content
	tails     []acp.TerminalID // that are in memory, the one that was longest silent first
}

// An output is what was written of the output of a command.
type output struct {
	total   int // bytes that came
	written int // the place up to which they were written
	run     int // the place from which they were written without a gap
	more    int // bytes that were written after the beginning
	tail    []byte
}

// events returns what is to be written for an item in the place of its event.
func (o *outputs) events(events []store.Event, it *item) []store.Event {
	switch u := it.update.(type) {
	case *acp.TerminalOutputChunk:
		return o.chunk(events, u, it.event)
	case *acp.TerminalUpdate:
		return o.terminal(events, u, it.event)
	case *acp.ToolCallUpdate:
		return o.call(events, u, it.event)
	case *acpv2.ToolCallContentChunk:
		return o.callChunk(events, u, it.event)
	}
	if it.turn != nil && it.turn.Others == 0 {
		events = o.flush(events)
	}
	return append(events, it.event)
}

func (o *outputs) output(id acp.TerminalID) *output {
	x := o.terminals[id]
	if x == nil {
		if o.terminals == nil || len(o.terminals) >= maxCounted {
			o.terminals, o.tails = map[acp.TerminalID]*output{}, nil
		}
		x = new(output)
		o.terminals[id] = x
	}
	return x
}

func (o *outputs) chunk(events []store.Event, u *acp.TerminalOutputChunk, e store.Event) []store.Event {
	x := o.output(u.TerminalID)
	n := base64.StdEncoding.DecodedLen(len(u.Data))
	if x.tail == nil && x.written == x.total && x.total+n <= headBytes {
		data, _ := base64.StdEncoding.DecodeString(u.Data) // of malformed data what is before the fault
		x.total += len(data)
		x.written = x.total
		return append(events, e)
	}
	data, _ := base64.StdEncoding.DecodeString(u.Data)
	events = o.keep(events, u.TerminalID, x, data)
	x.total += len(data)
	if missing := x.total - x.written; missing >= max(pieceBytes, x.total/pieceShare) && x.more+pieceBytes <= moreBytes-tailBytes {
		at := max(x.written, x.total-pieceBytes)
		if x.more+missing <= 2*tailBytes && missing <= len(x.tail) {
			at = x.written // without a gap while it is little
		}
		events = x.write(events, u.TerminalID, at)
	}
	return events
}

// keep adds output to the end that is in memory.
func (o *outputs) keep(events []store.Event, id acp.TerminalID, x *output, data []byte) []store.Event {
	if x.tail == nil || o.tails[len(o.tails)-1] != id {
		o.tails = slices.DeleteFunc(o.tails, func(t acp.TerminalID) bool { return t == id })
		if len(o.tails) == maxTails {
			first := o.tails[0]
			events = o.end(events, first)
		}
		o.tails = append(o.tails, id)
	}
	if over := len(data) - tailBytes; over > 0 {
		data = data[over:]
	}
	if len(x.tail)+len(data) > 2*tailBytes {
		keep := tailBytes - len(data)
		x.tail = append(x.tail[:0], x.tail[len(x.tail)-keep:]...)
	}
	x.tail = append(x.tail, data...)
	return events
}

// write writes the output from a place on.
func (x *output) write(events []store.Event, id acp.TerminalID, at int) []store.Event {
	data := x.tail[len(x.tail)-(x.total-at):]
	raw, err := json.Marshal(store.Output{TerminalID: string(id), At: uint64(at), Data: data})
	if err != nil {
		return events
	}
	if at != x.written {
		x.run = at
	}
	x.written = x.total
	x.more += len(data)
	return append(events, store.Event{Time: time.Now(), Kind: store.EventOutput, Data: raw})
}

// end writes the end of an output, and lets it go.
func (o *outputs) end(events []store.Event, id acp.TerminalID) []store.Event {
	x := o.terminals[id]
	if x == nil || x.tail == nil {
		return events
	}
	o.tails = slices.DeleteFunc(o.tails, func(t acp.TerminalID) bool { return t == id })
	from := x.total - min(len(x.tail), tailBytes)
	at := from
	if x.run <= from || x.run == 0 { // what was written last is a part of the end
		at = max(from, x.written)
	}
	if x.written < x.total && x.more+x.total-at <= moreBytes {
		events = x.write(events, id, at)
	}
	x.tail = nil
	return events
}

// terminal bounds what an update of a terminal replaces the output with, and ends it with the command.
func (o *outputs) terminal(events []store.Event, u *acp.TerminalUpdate, e store.Event) []store.Event {
	if out, ok := u.Output.Get(); ok {
		x := o.output(u.TerminalID)
		data, _ := base64.StdEncoding.DecodeString(out.Data)
		more := x.more
		o.tails = slices.DeleteFunc(o.tails, func(t acp.TerminalID) bool { return t == u.TerminalID })
		*x = output{total: len(data), written: len(data), more: more + len(data)}
		if len(data) > headBytes+tailBytes || x.more > moreBytes-tailBytes {
			short := *u
			short.Output = acp.Set(acp.TerminalOutput{Data: base64.StdEncoding.EncodeToString(data[:min(len(data), headBytes)])})
			x.written, x.more = min(len(data), headBytes), more+min(len(data), headBytes)
			if more > moreBytes-headBytes-2*tailBytes { // the beginning was written often enough
				short.Output, x.written, x.more = acp.Patch[acp.TerminalOutput]{}, 0, more
			}
			e = updateEvent(&short)
			events = o.keep(events, u.TerminalID, x, data)
		}
	}
	events = append(events, e)
	if _, ended := u.ExitStatus.Get(); ended {
		events = o.end(events, u.TerminalID)
	}
	return events
}

// flush writes the ends of everything, since it may be the last moment.
func (o *outputs) flush(events []store.Event) []store.Event {
	for len(o.tails) > 0 {
		events = o.end(events, o.tails[0])
	}
	for _, id := range slices.Sorted(maps.Keys(o.calls)) {
		events = o.endCall(events, id)
	}
	return events
}

// A content is what was written of the content of a tool call.
type content struct {
	written int // bytes
	flushes int
	held    *acp.ToolCallUpdate   // content that was not written, in place of what was
	chunks  []acp.ToolCallContent // the last of those that were not written
	size    int                   // of them
	lost    int                   // bytes of those before
}

func (o *outputs) content(id acp.ToolCallID) *content {
	x := o.calls[id]
	if x == nil {
		if o.calls == nil || len(o.calls) >= maxCounted {
			o.calls = map[acp.ToolCallID]*content{}
		}
		x = new(content)
		o.calls[id] = x
	}
	return x
}

// call bounds how often the content of a tool call is written as a whole.
func (o *outputs) call(events []store.Event, u *acp.ToolCallUpdate, e store.Event) []store.Event {
	if !u.Content.IsZero() || len(u.RawOutput) > 0 {
		x := o.content(u.ToolCallID)
		x.chunks, x.size, x.lost = nil, 0, 0
		if x.written += len(e.Data); x.written > contentBytes {
			short := *u
			short.Content, short.RawOutput = acp.Patch[[]acp.ToolCallContent]{}, nil
			e = updateEvent(&short)
			x.held = &acp.ToolCallUpdate{ToolCallID: u.ToolCallID, Content: u.Content, RawOutput: u.RawOutput}
		} else {
			x.held = nil
		}
	}
	events = append(events, e)
	switch status, _ := u.Status.Get(); status {
	case acp.ToolCallStatusCompleted, acp.ToolCallStatusFailed, acpv2.ToolCallStatusCancelled:
		events = o.endCall(events, u.ToolCallID)
	}
	return events
}

func (o *outputs) callChunk(events []store.Event, u *acpv2.ToolCallContentChunk, e store.Event) []store.Event {
	x := o.content(u.ToolCallID)
	if x.written += len(e.Data); x.written <= contentBytes {
		return append(events, e)
	}
	x.chunks, x.size = append(x.chunks, u.Content), x.size+len(e.Data)
	for x.size > tailBytes && len(x.chunks) > 0 {
		n := contentSize(x.chunks[0])
		x.chunks, x.size, x.lost = x.chunks[1:], x.size-n-(len(e.Data)-contentSize(u.Content)), x.lost+n
	}
	return events
}

func contentSize(c acp.ToolCallContent) int {
	b, _ := c.AppendJSON(nil)
	return len(b)
}

// endCall writes the content of a tool call that was not written.
func (o *outputs) endCall(events []store.Event, id acp.ToolCallID) []store.Event {
	x := o.calls[id]
	if x == nil || x.held == nil && len(x.chunks) == 0 && x.lost == 0 {
		return events
	}
	if x.flushes++; x.flushes <= maxFlushes {
		if x.held != nil {
			if list, ok := x.held.Content.Get(); ok {
				x.held.Content = acp.Set(firstAndLast(list))
			}
			if len(x.held.RawOutput) > headBytes {
				x.held.RawOutput = nil
			}
			events = append(events, updateEvent(x.held))
		}
		if x.lost > 0 {
			events = append(events, updateEvent(&acpv2.ToolCallContentChunk{ToolCallID: id, Content: gap(x.lost)}))
		}
		for _, c := range x.chunks {
			events = append(events, updateEvent(&acpv2.ToolCallContentChunk{ToolCallID: id, Content: c}))
		}
	}
	x.held, x.chunks, x.size, x.lost = nil, nil, 0, 0
	return events
}

// gap stands for content that was not kept.
func gap(n int) acp.ToolCallContent {
	return &acpv2.Content{Content: acp.Text(fmt.Sprintf("[… %d bytes were not kept …]", n))}
}

// firstAndLast returns the first and the last part of a content, and says how much is between them.
func firstAndLast(list []acp.ToolCallContent) []acp.ToolCallContent {
	var out, end []acp.ToolCallContent
	head, tail, lost := headBytes, tailBytes, 0
	for i, c := range list {
		text, n := "", contentSize(c)
		if x, ok := c.(*acpv2.Content); ok {
			if t, ok := x.Content.(*acp.TextContent); ok {
				text = t.Text
			}
		}
		switch {
		case n <= head:
			out = append(out, c)
			head -= n
			continue
		case text != "" && head > 0:
			out = append(out, &acpv2.Content{Content: acp.Text(cutText(text, head, false))})
		}
		for j := len(list) - 1; j > i; j-- {
			n := contentSize(list[j])
			if n > tail {
				break
			}
			end, tail = append(end, list[j]), tail-n
		}
		for _, c := range list[i : len(list)-len(end)] {
			lost += contentSize(c)
		}
		if text != "" && len(end) == len(list)-i-1 && tail > 0 {
			last := cutText(text, min(tail, len(text)-len(cutText(text, head, false))), true)
			lost = len(text) - len(last) - len(cutText(text, head, false))
			end = append(end, &acpv2.Content{Content: acp.Text(last)})
		}
		slices.Reverse(end)
		if lost > 0 {
			out = append(out, gap(lost))
		}
		return append(out, end...)
	}
	return out
}

// cutText returns the first n bytes of a text, or the last ones, in whole characters.
func cutText(s string, n int, last bool) string {
	n = max(min(n, len(s)), 0)
	if last {
		return string([]rune(s[len(s)-n:])[min(1, n):]) // a character may have been cut
	}
	for n > 0 && n < len(s) && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
