package transcript

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/goacp/acp/acpv2"
)

// A Terminal is a command of the agent and its output.
type Terminal struct {
	core
	ID           acpv2.TerminalID
	Command      string // for people
	Cwd          string
	Size         *acpv2.TerminalSize         // nil if not known
	ExitStatus   *acpv2.TerminalExitStatus   // nil while the command runs, as far as is known
	Capabilities *acpv2.TerminalCapabilities // replaced as a whole; nil allows nothing
	Meta         json.RawMessage

	// Skipped is the number of bytes of output before those that Raw returns. Head
	// has the first of them.
	Skipped uint64

	head string // the beginning of the output, if raw does not have it
	raw  string // the end of the output
	done string // finished lines of its text
	line string // the line being written

	scr *screen // the writer's
	out tail    // the writer's
}

// Raw returns the bytes of the output, or the last ones: see [Config].
func (t *Terminal) Raw() string { return t.raw }

// Head returns the first bytes of the output, if Raw does not have everything: see
// [Config].
func (t *Terminal) Head() string { return t.head[:min(uint64(len(t.head)), t.Skipped)] }

// PlainHead returns the text of Head, as [Terminal.Plain] does for Raw.
func (t *Terminal) PlainHead() string {
	head := t.Head()
	if head == "" {
		return ""
	}
	s := new(screen)
	s.feed([]byte(head), len(head))
	return s.done.view() + string(s.line)
}

// Gap returns the number of bytes of output between Head and Raw, which are not kept.
func (t *Terminal) Gap() uint64 { return t.Skipped - uint64(len(t.Head())) }

// Plain returns the text of the output without control sequences, or its end: see
// [Config]. Within a line, carriage returns, backspaces, movements and erasures have
// their effect, so that the last state of a progress bar remains. Movements to other
// lines are ignored. A line of more than 4096 characters can be overwritten only after
// the last multiple of that. The text contains no control characters except line breaks
// and tabs. Plain makes a copy.
func (t *Terminal) Plain() string { return t.done + t.line }

// Exited reports whether the command has ended.
func (t *Terminal) Exited() bool { return t.ExitStatus != nil }

// Cancellable reports whether the client may cancel the command.
func (t *Terminal) Cancellable() bool {
	return !t.Exited() && t.Capabilities != nil && t.Capabilities.Cancel != nil
}

// EntryKind implements [Entry].
func (*Terminal) EntryKind() EntryKind { return KindTerminal }

// EntryID implements [Entry].
func (t *Terminal) EntryID() string { return string(t.ID) }

// Update implements [Entry].
func (t *Terminal) Update() acpv2.SessionUpdate {
	u := &acpv2.TerminalUpdate{TerminalID: t.ID, Command: setText(t.Command), Cwd: setText(t.Cwd), Meta: t.Meta}
	if t.raw != "" {
		u.Output = acpv2.Set(acpv2.TerminalOutput{Data: base64.StdEncoding.EncodeToString([]byte(t.raw))})
	}
	if t.ExitStatus != nil {
		u.ExitStatus = acpv2.Set(*t.ExitStatus)
	}
	if t.Size != nil {
		u.Size = acpv2.Set(*t.Size)
	}
	if t.Capabilities != nil {
		u.Capabilities = acpv2.Set(*t.Capabilities)
	}
	return u
}

func (t *Terminal) key() key                     { return key{spaceTerminal, string(t.ID)} }
func (t *Terminal) edited(c *Conversation) Entry { return edit(c, t) }
func (t *Terminal) strip() {
	t.Skipped += uint64(len(t.raw))
	t.head, t.raw, t.done, t.line, t.out = "", "", "", "", tail{}
	if t.scr != nil { // what follows is parsed as if nothing had been lost
		t.scr.done, t.scr.line, t.scr.col = tail{}, t.scr.line[:0], 0
	}
	t.Meta = nil
}

func (c *Conversation) terminal(id acpv2.TerminalID) (*Terminal, Op) {
	return upsert(c, key{spaceTerminal, string(id)}, func() *Terminal {
		return &Terminal{ID: acpv2.TerminalID(strings.Clone(string(id)))}
	})
}

func (c *Conversation) applyTerminal(u *acpv2.TerminalUpdate) Change {
	t, op := c.terminal(u.TerminalID)
	if t == nil {
		return Change{}
	}
	patchShort(c, &t.core, u.Command, &t.Command)
	patchShort(c, &t.core, u.Cwd, &t.Cwd)
	patchCapabilities(c, &t.core, u.Capabilities, &t.Capabilities)
	patchSmall(c, &t.core, partInput, u.ExitStatus, &t.ExitStatus, func(x acpv2.TerminalExitStatus) acpv2.TerminalExitStatus {
		return acpv2.TerminalExitStatus{ExitCode: x.ExitCode, Signal: cut(x.Signal, idBytes)}
	})
	patchSmall(c, &t.core, partLocations, u.Size, &t.Size, func(x acpv2.TerminalSize) acpv2.TerminalSize {
		return acpv2.TerminalSize{Cols: x.Cols, Rows: x.Rows}
	})
	if !u.Output.IsZero() {
		t.Skipped, t.head, t.raw, t.done, t.line = 0, "", "", "", ""
		t.out, t.scr = tail{}, &screen{owner: c}
		c.output(t, u.Output.Or(acpv2.TerminalOutput{}).Data)
	}
	c.applyMeta(&t.core, &t.Meta, u.Meta)
	return changed(t, op)
}

// patchSmall replaces an object. If it is too big, which only unknown members can make
// it, an empty object is kept, because its presence has a meaning.
func patchSmall[T any, P interface {
	*T
	codec
}](c *Conversation, e *core, part int, p acpv2.Patch[T], v *P, bare func(T) T) {
	if p.IsZero() {
		return
	}
	*v = nil
	n := 0
	if next, set := p.Get(); set {
		*v = &next
		if n = c.size(*v); n > min(c.room(e, part), shortBytes) {
			small := bare(next)
			*v = &small
			c.dropped(e, n-c.size(*v))
			n = c.size(*v)
		}
	}
	c.charge(e, part, n)
}

func (c *Conversation) applyOutput(u *acpv2.TerminalOutputChunk) Change {
	t, op := c.terminal(u.TerminalID)
	if t == nil {
		return Change{}
	}
	c.output(t, u.Data)
	return appended(t, op)
}

// OutputAt adds output of a terminal that begins at the byte at of the whole output. If
// the output known so far ends there, OutputAt appends to it, as an
// [acpv2.TerminalOutputChunk] does. Otherwise only the beginning of what is known stays,
// and Raw begins with output.
func (c *Conversation) OutputAt(id acpv2.TerminalID, at uint64, output []byte) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	loss := c.loss.Bytes
	t, op := c.terminal(id)
	if t == nil {
		return Change{}
	}
	ch := appended(t, op)
	if at != t.Skipped+uint64(len(t.raw)) {
		t.keepHead(c, nil)
		t.head = cut(t.head, int(min(at, uint64(len(t.head)))))
		t.Skipped, t.raw, t.done, t.line = at, "", "", ""
		t.out, t.scr = tail{}, &screen{owner: c}
		ch = changed(t, op)
	}
	c.write(t, output)
	if c.enforce() || c.loss.Bytes != loss {
		ch.Trimmed = true
	}
	return ch
}

// keepHead saves the beginning of the output, of which more follows, before output is lost.
func (t *Terminal) keepHead(c *Conversation, more []byte) {
	if t.head != "" || t.Skipped > 0 {
		return
	}
	limit := c.cfg.TerminalBytes / headPart
	t.head = strings.Clone(t.raw[:min(len(t.raw), limit)])
	if n := min(limit-len(t.head), len(more)); n > 0 {
		t.head += string(more[:n])
	}
	t.head = cut(t.head, limit)
}

// headPart is the ratio of what is kept of the end of an output to what is kept of its
// beginning.
const headPart = 4

// output appends data that is in base64, up to its first fault.
func (c *Conversation) output(t *Terminal, data string) {
	n := base64.StdEncoding.DecodedLen(len(data))
	buf := c.scratch[:0]
	if cap(buf) < n {
		buf = make([]byte, 0, n)
	}
	n, _ = base64.StdEncoding.Decode(buf[:n], []byte(data))
	buf = buf[:n]
	if cap(buf) <= scratchKeep {
		c.scratch = buf[:0]
	}
	c.write(t, buf)
}

func (c *Conversation) write(t *Terminal, buf []byte) {
	limit := c.cfg.TerminalBytes
	if len(t.raw)+len(buf) > limit {
		t.keepHead(c, buf)
	}
	if t.scr == nil || t.scr.owner != c {
		t.scr = t.rebuild(c)
		t.out = tail{}
		t.Skipped += uint64(t.out.write([]byte(t.raw), limit))
	}
	t.Skipped += uint64(t.out.write(buf, limit))
	t.scr.feed(buf, limit)
	t.raw, t.done, t.line = t.out.view(), t.scr.done.view(), string(t.scr.line)
	t.charge(c)
}

func (t *Terminal) charge(c *Conversation) {
	c.charge(&t.core, partTerminal, len(t.head)+len(t.raw)+len(t.done)+4*len(t.line)+itemCost)
}

// rebuild makes a screen for output that another conversation has received. The end of
// the output determines the state of the parser; the text is known.
func (t *Terminal) rebuild(c *Conversation) *screen {
	s := &screen{owner: c}
	limit := c.cfg.TerminalBytes
	s.feed([]byte(t.raw), limit)
	text := t.Plain()
	if line := string(s.line); strings.HasSuffix(text, line) {
		text = text[:len(text)-len(line)]
	} else {
		at := strings.LastIndexByte(text, '\n') + 1
		s.line = []rune(text[at:])
		if len(s.line) >= lineCells {
			s.line = s.line[:0]
			at = len(text)
		}
		text, s.col = text[:at], len(s.line)
	}
	s.done = tail{}
	s.done.write([]byte(text), limit)
	return s
}

// restoreText takes over the text that was saved with the output.
func (t *Terminal) restoreText(text string) {
	text = printable(text)
	at := strings.LastIndexByte(text, '\n') + 1
	t.done, t.line, t.scr = text[:at], text[at:], nil
}
