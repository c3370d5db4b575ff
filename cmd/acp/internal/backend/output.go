package backend

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// An outputBounds bounds, in bytes, what is kept of the output of one command, and of the content
// of one tool call.
type outputBounds struct {
	// head is the length of the beginning, which is written as it comes; tail that of the end,
	// which is written when the command or the turn has ended.
	head, tail int
	// piece is how much of the end is written meanwhile, each time that a quarter of the output is
	// not written: that much can be lost by kill -9.
	piece int
	// more bounds everything that is written after the beginning. Beyond it only the last bytes are
	// written when the command or a turn has ended, and up to maxLast times when the end must leave
	// memory before.
	more, last int
	// content is how much of the content of a tool call is written as it comes: whenever an agent
	// replaces it, all of it is written. held bounds the content of all tool calls in memory.
	content, held int
}

// usual are the bounds outside of tests.
var usual = outputBounds{head: 1 << 20, tail: 1 << 20, piece: 64 << 10, more: 8 << 20, last: 4 << 10, content: 4 << 20, held: 32 << 20}

const (
	pieceShare = 4
	maxLast    = 16
	// maxFlushes bounds how often the content of a tool call is written beyond its bound.
	maxFlushes = 4
	// maxTails bounds the commands whose end is in memory: 32 MiB together.
	maxTails = 16
	// maxCounted bounds the commands of which it is known how much was written. Beyond it their
	// counts begin again, first those of commands that have ended: the log has room for as much
	// output of them once more.
	maxCounted = 65536
)

// An outputs bounds what is written of the output of commands and of the content of tool calls: the
// first and the last part of each, however much there is. It reports what was left out, at the
// latest when the turn or the session ends. The writer of a journal has one. It does not change
// what is shown.
type outputs struct {
	bounds    *outputBounds // nil means the usual ones
	terminals map[acp.TerminalID]*output
	calls     map[acp.ToolCallID]*content
	tails     []acp.TerminalID            // in memory, the one that was silent longest first
	untold    map[acp.TerminalID]struct{} // whose end is missing, and not in memory
	holding   []acp.ToolCallID            // with content in memory, the one that was silent longest first
	held      int                         // bytes of that content
}

// output returns what is known of the output of a command, and begins a count if there is none.
type output struct {
	total   int // bytes that came
	written int // the place up to which they were written
	run     int // the place from which on they were written without a gap
	more    int // bytes that were written after the beginning
	last    int // how often part of the end was written beyond the bound to make room
	ended   bool
	tail    []byte
}

// events returns what is written for an item in place of its event.
func (o *outputs) events(events []store.Event, it *item) []store.Event {
	events = o.room(events)
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

func (o *outputs) limits() *outputBounds {
	if o.bounds != nil {
		return o.bounds
	}
	return &usual
}

// output returns what is known of the output of a command, and makes room for a new one.
func (o *outputs) output(id acp.TerminalID) *output {
	x := o.terminals[id]
	if x == nil {
		if o.terminals == nil {
			o.terminals = map[acp.TerminalID]*output{}
		}
		x = new(output)
		o.terminals[id] = x
	}
	return x
}

// room forgets what was written of commands and calls that have ended, or of all of them, if there
// are too many.
func (o *outputs) room(events []store.Event) []store.Event {
	if len(o.terminals) < maxCounted && len(o.calls) < maxCounted {
		return events
	}
	events = o.flush(events)
	maps.DeleteFunc(o.terminals, func(_ acp.TerminalID, x *output) bool { return x.ended })
	maps.DeleteFunc(o.calls, func(_ acp.ToolCallID, x *content) bool { return x.ended })
	if len(o.terminals) >= maxCounted {
		clear(o.terminals)
	}
	if len(o.calls) >= maxCounted {
		clear(o.calls)
	}
	return events
}

// chunk returns what is written of a piece of output.
func (o *outputs) chunk(events []store.Event, u *acp.TerminalOutputChunk, e store.Event) []store.Event {
	b := o.limits()
	x := o.output(u.TerminalID)
	n := base64.StdEncoding.DecodedLen(len(u.Data))
	if x.tail == nil && x.written == x.total && x.total+n <= b.head {
		data, _ := base64.StdEncoding.DecodeString(u.Data) // of malformed data, what precedes the fault
		x.total += len(data)
		x.written = x.total
		return append(events, e)
	}
	data, _ := base64.StdEncoding.DecodeString(u.Data)
	events = o.keep(events, u.TerminalID, x, data)
	x.total += len(data)
	if missing := x.total - x.written; missing >= max(b.piece, x.total/pieceShare) && x.more+b.piece <= b.more-b.tail {
		at := max(x.written, x.total-b.piece)
		if x.more+missing <= 2*b.tail && missing <= len(x.tail) {
			at = x.written // without a gap while there is little
		}
		events = x.write(events, u.TerminalID, at)
	}
	return events
}

// keep adds output to the end in memory.
func (o *outputs) keep(events []store.Event, id acp.TerminalID, x *output, data []byte) []store.Event {
	b := o.limits()
	if len(data) == 0 {
		return events
	}
	if x.tail == nil || o.tails[len(o.tails)-1] != id {
		o.tails = slices.DeleteFunc(o.tails, func(t acp.TerminalID) bool { return t == id })
		if len(o.tails) == maxTails {
			events = o.end(events, o.tails[0], false)
		}
		o.tails = append(o.tails, id)
	}
	if over := len(data) - b.tail; over > 0 {
		data = data[over:]
	}
	if len(x.tail)+len(data) > 2*b.tail {
		keep := b.tail - len(data)
		x.tail = append(x.tail[:0], x.tail[len(x.tail)-keep:]...)
	}
	x.tail = append(x.tail, data...)
	return events
}

// write writes the output from a place on.
func (x *output) write(events []store.Event, id acp.TerminalID, at int) []store.Event {
	data := x.tail[len(x.tail)-(x.total-at):]
	raw, err := json.Marshal(records.Output{TerminalID: string(id), At: uint64(at), Data: data})
	if err != nil {
		return events
	}
	if at != x.written {
		x.run = at
	}
	x.written = x.total
	x.more += len(data)
	return append(events, store.Event{At: time.Now(), Kind: journal.KindOutput, Data: raw})
}

// end writes the end of an output and removes it from memory: as much as the bound allows, and a
// little in any case if it is the end of the command or the turn.
func (o *outputs) end(events []store.Event, id acp.TerminalID, over bool) []store.Event {
	b := o.limits()
	o.tails = slices.DeleteFunc(o.tails, func(t acp.TerminalID) bool { return t == id })
	x := o.terminals[id]
	if x == nil {
		return events
	}
	n := min(len(x.tail), b.tail, max(b.more-x.more, 0))
	if n < b.last && (over || x.last < maxLast) {
		n = min(len(x.tail), b.last)
		if !over {
			x.last++
		}
	}
	from := x.total - n
	at := from
	if x.run <= from || x.run == 0 { // what was written last is part of the end
		at = max(from, x.written)
	}
	if x.written < x.total && (n > 0 || over) {
		events = x.write(events, id, at)
	}
	x.tail = nil
	delete(o.untold, id)
	if x.written < x.total {
		if o.untold == nil {
			o.untold = map[acp.TerminalID]struct{}{}
		}
		o.untold[id] = struct{}{}
	}
	return events
}

// terminal bounds the output that an update of a terminal sets, and ends the output with the
// command.
func (o *outputs) terminal(events []store.Event, u *acp.TerminalUpdate, e store.Event) []store.Event {
	b := o.limits()
	if out, ok := u.Output.Get(); ok {
		x := o.output(u.TerminalID)
		data, _ := base64.StdEncoding.DecodeString(out.Data)
		more := x.more
		o.tails = slices.DeleteFunc(o.tails, func(t acp.TerminalID) bool { return t == u.TerminalID })
		*x = output{total: len(data), written: len(data), more: more + len(data)}
		if len(data) > b.head+b.tail || x.more > b.more-b.tail {
			short := *u
			short.Output = acp.Set(acp.TerminalOutput{Data: base64.StdEncoding.EncodeToString(data[:min(len(data), b.head)])})
			x.written, x.more = min(len(data), b.head), more+min(len(data), b.head)
			if more > b.more-b.head-2*b.tail { // the beginning was written often enough
				short.Output, x.written, x.more = acp.Patch[acp.TerminalOutput]{}, 0, more
			}
			e = updateEvent(&short)
			events = o.keep(events, u.TerminalID, x, data)
		}
	}
	events = append(events, e)
	if _, ended := u.ExitStatus.Get(); ended {
		events = o.end(events, u.TerminalID, true)
		if x := o.terminals[u.TerminalID]; x != nil {
			x.ended = true
		}
	}
	return events
}

// flush writes the ends of everything, since there may be no later moment.
func (o *outputs) flush(events []store.Event) []store.Event {
	for len(o.tails) > 0 {
		events = o.end(events, o.tails[0], true)
	}
	for _, id := range slices.Sorted(maps.Keys(o.untold)) {
		events = o.end(events, id, true)
	}
	for _, id := range slices.Sorted(maps.Keys(o.calls)) {
		events = o.endCall(events, id, true)
	}
	return events
}

// content returns what is known of the content of a tool call, and begins a count if there is none.
type content struct {
	written int // bytes
	flushes int
	ended   bool
	held    *acp.ToolCallUpdate   // content that was not written, and replaces what was
	heldLen int                   // bytes of it
	chunks  []acp.ToolCallContent // the last of those that were not written
	size    int                   // bytes of them
	lost    int                   // bytes of those before
	raw     int                   // bytes of the raw output that is too long to be held
}

// content returns what is known of the content of a tool call.
func (o *outputs) content(id acp.ToolCallID) *content {
	x := o.calls[id]
	if x == nil {
		if o.calls == nil {
			o.calls = map[acp.ToolCallID]*content{}
		}
		x = new(content)
		o.calls[id] = x
	}
	return x
}

// inMemory returns how many bytes of the content are in memory.
func (x *content) inMemory() int { return x.heldLen + x.size }

// hold counts what is in memory of a call after a change, and writes that of others if there is too
// much.
func (o *outputs) hold(events []store.Event, id acp.ToolCallID, x *content, before int) []store.Event {
	o.held += x.inMemory() - before
	if n := len(o.holding) - 1; n < 0 || o.holding[n] != id {
		o.holding = append(slices.DeleteFunc(o.holding, func(c acp.ToolCallID) bool { return c == id }), id)
	}
	for o.held > o.limits().held && len(o.holding) > 1 {
		events = o.endCall(events, o.holding[0], false)
	}
	return events
}

// call bounds how often all of the content of a tool call is written.
func (o *outputs) call(events []store.Event, u *acp.ToolCallUpdate, e store.Event) []store.Event {
	if !u.Content.IsZero() || len(u.RawOutput) > 0 {
		x := o.content(u.ToolCallID)
		before := x.inMemory()
		x.chunks, x.size, x.lost = nil, 0, 0
		x.held, x.heldLen, x.raw = nil, 0, 0
		if x.written += len(e.Data); x.written > o.limits().content {
			short := *u
			short.Content, short.RawOutput = acp.Patch[[]acp.ToolCallContent]{}, nil
			x.replace(u, o.limits())
			e = updateEvent(&short)
			events = o.hold(events, u.ToolCallID, x, before)
		} else {
			o.held -= before
			o.letGo(u.ToolCallID)
		}
	}
	events = append(events, e)
	switch status, _ := u.Status.Get(); status {
	case acp.ToolCallStatusCompleted, acp.ToolCallStatusFailed, acpv2.ToolCallStatusCancelled:
		events = o.endCall(events, u.ToolCallID, true)
		if x := o.calls[u.ToolCallID]; x != nil {
			x.ended = true
		}
	}
	return events
}

// replace holds the first and the last part of content that replaces all earlier content.
func (x *content) replace(u *acp.ToolCallUpdate, b *outputBounds) {
	x.held = &acp.ToolCallUpdate{ToolCallID: u.ToolCallID, Content: u.Content, RawOutput: u.RawOutput}
	if len(u.RawOutput) > b.head {
		x.held.RawOutput, x.raw = nil, len(u.RawOutput)
	}
	if list, ok := u.Content.Get(); ok {
		list = firstAndLast(list, b)
		x.held.Content = acp.Set(list)
		for _, c := range list {
			x.heldLen += contentSize(c)
		}
	}
	x.heldLen += len(x.held.RawOutput)
}

// callChunk bounds the pieces of content that are written of a tool call: beyond the bound the last
// ones are held.
func (o *outputs) callChunk(events []store.Event, u *acpv2.ToolCallContentChunk, e store.Event) []store.Event {
	b := o.limits()
	x := o.content(u.ToolCallID)
	if x.written += len(e.Data); x.written <= b.content {
		return append(events, e)
	}
	before := x.inMemory()
	x.chunks, x.size = append(x.chunks, u.Content), x.size+len(e.Data)
	for x.size > b.tail && len(x.chunks) > 0 {
		n := contentSize(x.chunks[0])
		x.chunks, x.size, x.lost = x.chunks[1:], x.size-n-(len(e.Data)-contentSize(u.Content)), x.lost+n
	}
	return o.hold(events, u.ToolCallID, x, before)
}

func contentSize(c acp.ToolCallContent) int {
	b, _ := c.AppendJSON(nil)
	return len(b)
}

// letGo removes a call from those with content in memory.
func (o *outputs) letGo(id acp.ToolCallID) {
	o.holding = slices.DeleteFunc(o.holding, func(c acp.ToolCallID) bool { return c == id })
}

// endCall writes the content of a tool call that was not written, and removes it from memory. If it
// was written often enough, it counts as lost, which is reported when the call or the turn ends.
func (o *outputs) endCall(events []store.Event, id acp.ToolCallID, over bool) []store.Event {
	x := o.calls[id]
	if x == nil || x.held == nil && len(x.chunks) == 0 && x.lost == 0 && x.raw == 0 {
		return events
	}
	chunk := func(c acp.ToolCallContent) {
		events = append(events, updateEvent(&acpv2.ToolCallContentChunk{ToolCallID: id, Content: c}))
	}
	write := x.inMemory() > 0 && x.flushes < maxFlushes
	if write {
		x.flushes++
	} else {
		x.lost += x.inMemory()
	}
	if write && x.held != nil {
		events = append(events, updateEvent(x.held))
	}
	if write || over {
		if lost := x.lost + x.raw; lost > 0 {
			chunk(gap(lost))
		}
		x.lost, x.raw = 0, 0
	}
	if write {
		for _, c := range x.chunks {
			chunk(c)
		}
	}
	o.held -= x.inMemory()
	o.letGo(id)
	x.held, x.heldLen, x.chunks, x.size = nil, 0, nil, 0
	return events
}

// gap stands for content that was not kept.
func gap(n int) acp.ToolCallContent {
	return &acpv2.Content{Content: acp.Text(fmt.Sprintf("[… %d bytes were not kept …]", n))}
}

// firstAndLast returns the first and the last part of a content, and says how much is between them.
func firstAndLast(list []acp.ToolCallContent, b *outputBounds) []acp.ToolCallContent {
	var out, end []acp.ToolCallContent
	head, tail, lost := b.head, b.tail, 0
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

// cutText returns the first n bytes of a text, or the last ones if last is set, in whole
// characters.
func cutText(s string, n int, last bool) string {
	n = max(min(n, len(s)), 0)
	if last {
		s = s[len(s)-n:]
		for i := range min(utf8.UTFMax, len(s)) {
			if utf8.RuneStart(s[i]) {
				return s[i:]
			}
		}
		return s
	}
	for n > 0 && n < len(s) && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
