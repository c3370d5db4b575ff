package backend

import (
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/grant"
)

// Bounds of what is remembered of the tool calls of a session. A text that is longer than its bound
// is not remembered at all, since a part of it would mean something else.
const (
	maxActs      = 256         // the latest ones
	maxActInput  = 64 << 10    // bytes of what a tool was given, and of a command
	maxActText   = 4 << 10     // bytes of any other text: an id, a title, a path
	maxActParts  = 256         // locations, changes and terminals of one
	maxTerminals = 4 * maxActs // that the agent has reported
	maxActsBytes = 4 << 20     // of all calls together, and of all terminals: the latest stay
)

// An act is a tool call of the agent in the words of rules.
type act struct {
	call      acp.ToolCallUpdate // each field as it was reported last
	terminals []acp.TerminalID
	consent   consent
	over      bool // it is not checked any more
	refused   bool // it was regarded as something that this program has refused to do
	size      int  // about how many bytes it takes

	ran  [2]string // the command and the directory that the grants are for
	runs []string
}

// A consent says what has become of the permission for a call.
type consent uint8

const (
	consentUnasked consent = iota // it was not asked for through this program
	consentDenied                 // it was, and has not been given
	consentGiven
)

// acts are the latest tool calls of a session, and the terminals in which the agent reports that it
// runs something. The zero value has none. The session's mutex guards it.
type acts struct {
	byID  map[acp.ToolCallID]*act
	order []acp.ToolCallID // oldest first
	size  int              // of all of them

	terminals    map[acp.TerminalID]*agentTerminal
	opened       []acp.TerminalID // oldest first
	terminalSize int              // of all of them
}

// An agentTerminal is one of the agent's own terminals.
type agentTerminal struct {
	command, cwd string
	ran          bool // it has printed something or ended
	act          acp.ToolCallID
	over         bool // it is not checked any more
	size         int  // about how many bytes it takes
}

// of returns the act of a tool call, and makes it if there is none. It returns nil if the id is too
// long.
func (a *acts) of(id acp.ToolCallID) *act {
	if x := a.byID[id]; x != nil {
		return x
	}
	if len(id) > maxActText {
		return nil
	}
	if a.byID == nil {
		a.byID = map[acp.ToolCallID]*act{}
	}
	if len(a.order) >= maxActs {
		a.dropCall()
	}
	id = acp.ToolCallID(strings.Clone(string(id)))
	x := &act{call: acp.ToolCallUpdate{ToolCallID: id}}
	a.byID[id], a.order = x, append(a.order, id)
	return x
}

// dropCall forgets the oldest act.
func (a *acts) dropCall() {
	id := a.order[0]
	a.size -= a.byID[id].size
	delete(a.byID, id)
	a.order = a.order[1:]
}

// dropTerminal forgets the oldest terminal.
func (a *acts) dropTerminal() {
	id := a.opened[0]
	a.terminalSize -= a.terminals[id].size
	delete(a.terminals, id)
	a.opened = a.opened[1:]
}

// weigh updates the size of an act, and forgets the oldest acts if there is too much.
func (a *acts) weigh(x *act) {
	a.size -= x.size
	x.size = x.bytes()
	for a.size += x.size; a.size > maxActsBytes && len(a.order) > 1; {
		a.dropCall()
	}
}

// weighTerminal does the same with a terminal.
func (a *acts) weighTerminal(id acp.TerminalID, t *agentTerminal) {
	a.terminalSize -= t.size
	t.size = len(id) + len(t.command) + len(t.cwd) + len(t.act)
	for a.terminalSize += t.size; a.terminalSize > maxActsBytes && len(a.opened) > 1; {
		a.dropTerminal()
	}
}

// terminal returns one of the agent's terminals, and makes it if there is none. It returns nil if
// the id is too long.
func (a *acts) terminal(id acp.TerminalID) *agentTerminal {
	if t := a.terminals[id]; t != nil {
		return t
	}
	if len(id) > maxActText {
		return nil
	}
	if a.terminals == nil {
		a.terminals = map[acp.TerminalID]*agentTerminal{}
	}
	if len(a.opened) >= maxTerminals {
		a.dropTerminal()
	}
	id = acp.TerminalID(strings.Clone(string(id)))
	t := new(agentTerminal)
	a.terminals[id], a.opened = t, append(a.opened, id)
	return t
}

// see applies an update. It returns the act that the update says something new about, or nil, and
// whether that shows that the act was done.
func (a *acts) see(u acp.SessionUpdate) (x *act, done bool) {
	switch u := u.(type) {
	case *acp.ToolCallUpdate:
		if x = a.of(u.ToolCallID); x == nil {
			return nil, false
		}
		x.take(u)
		a.weigh(x)
		a.link(x)
		status, _ := u.Status.Get()
		done = status == acp.ToolCallStatusCompleted ||
			x.consent == consentUnasked && x.call.Status.Or("") == acp.ToolCallStatusInProgress &&
				len(u.RawOutput) > 0 && string(u.RawOutput) != "null"
	case *acp.ToolCallContentChunk:
		if x = a.of(u.ToolCallID); x == nil {
			return nil, false
		}
		x.content([]acp.ToolCallContent{u.Content})
		a.weigh(x)
		a.link(x)
	case *acp.TerminalUpdate:
		t := a.terminal(u.TerminalID)
		if t == nil {
			return nil, false
		}
		u.Command.Apply(&t.command)
		u.Cwd.Apply(&t.cwd)
		t.command, t.cwd = within(t.command, maxActInput), within(t.cwd, maxActText)
		a.weighTerminal(u.TerminalID, t)
		_, ended := u.ExitStatus.Get()
		output, _ := u.Output.Get()
		return a.ran(u.TerminalID, t, ended || output.Data != "")
	case *acpv2.TerminalOutputChunk:
		if t := a.terminals[u.TerminalID]; t != nil {
			return a.ran(u.TerminalID, t, !t.ran)
		}
		return nil, false
	default:
		return nil, false
	}
	return x, done || a.hasRun(x)
}

// ran records that a terminal shows that its command runs.
func (a *acts) ran(id acp.TerminalID, t *agentTerminal, ran bool) (*act, bool) {
	if !ran {
		return nil, false
	}
	t.ran = true
	return a.byID[t.act], true
}

// link records which terminals belong to an act.
func (a *acts) link(x *act) {
	for _, id := range x.terminals {
		t := a.terminal(id)
		t.act = x.call.ToolCallID
		a.weighTerminal(id, t)
	}
}

// hasRun reports whether a command runs, or has run, in a terminal of an act.
func (a *acts) hasRun(x *act) bool {
	return slices.ContainsFunc(x.terminals, func(id acp.TerminalID) bool { t := a.terminals[id]; return t != nil && t.ran })
}

// within returns a text, or "" if it is longer than n bytes. It copies the text, so that keeping it
// does not keep the message alive.
func within(text string, n int) string {
	if len(text) > n {
		return ""
	}
	return strings.Clone(text)
}

// take applies an update of a tool call.
func (x *act) take(u *acp.ToolCallUpdate) {
	set(&x.call.Name, u.Name)
	set(&x.call.Title, u.Title)
	set(&x.call.Kind, u.Kind)
	set(&x.call.Status, u.Status)
	if !u.Locations.IsZero() {
		var list []acp.ToolCallLocation
		for _, l := range u.Locations.Or(nil) {
			if p := within(l.Path, maxActText); p != "" && len(list) < maxActParts {
				list = append(list, acp.ToolCallLocation{Path: p})
			}
		}
		x.call.Locations = acp.Set(list)
	}
	switch n := len(u.RawInput); {
	case n > maxActInput:
		x.call.RawInput = nil
	case n > 0:
		x.call.RawInput = slices.Clone(u.RawInput)
	}
	if !u.Content.IsZero() {
		x.call.Content, x.terminals = acp.Set[[]acp.ToolCallContent](nil), nil
		x.content(u.Content.Or(nil))
	}
}

func set[T ~string](to *acpv2.Patch[T], from acpv2.Patch[T]) {
	if v, ok := from.Get(); ok {
		from = acp.Set(T(within(string(v), maxActText)))
	}
	if !from.IsZero() {
		*to = from
	}
}

// content applies what a tool call shows: which files are changed, and the terminals.
func (x *act) content(list []acp.ToolCallContent) {
	has := x.call.Content.Or(nil)
	for _, c := range list {
		switch c := c.(type) {
		case *acp.Diff:
			d := new(acp.Diff)
			for _, p := range changed(c) {
				if p = within(p, maxActText); p != "" && len(d.Changes) < maxActParts {
					d.Changes = append(d.Changes, acp.DiffChange{Operation: &acpv2.DiffModify{Path: p}})
				}
			}
			if len(has) < maxActParts {
				has = append(has, d)
			}
		case *acp.TerminalContent:
			if id := within(string(c.TerminalID), maxActText); id != "" && len(x.terminals) < maxActParts {
				x.terminals = append(x.terminals, acp.TerminalID(id))
			}
		}
	}
	x.call.Content = acp.Set(has)
}

// changed returns the files that a change is about.
func changed(d *acp.Diff) []string {
	call := acp.ToolCallUpdate{Kind: acp.Set(acp.ToolKindEdit), Content: acp.Set([]acp.ToolCallContent{d})}
	return acphost.RequestOf(&acp.PermissionRequest{Subject: &acp.ToolCallPermissionSubject{ToolCall: call}}).Paths
}

// bytes returns about how many bytes an act takes.
func (x *act) bytes() int {
	const each = 64 // of the structures that hold a path or a terminal
	n := 2*len(x.call.ToolCallID) + len(x.call.Name.Or("")) + len(x.call.Kind.Or("")) + len(x.call.Status.Or(""))
	n += 2 * (len(x.call.Title.Or("")) + len(x.call.RawInput)) // with the command that is found in them
	for _, l := range x.call.Locations.Or(nil) {
		n += each + len(l.Path)
	}
	for _, c := range x.call.Content.Or(nil) {
		if d, ok := c.(*acp.Diff); ok {
			n += each
			for _, c := range d.Changes {
				m, _ := c.Operation.(*acpv2.DiffModify)
				n += each + len(m.Path)
			}
		}
	}
	for _, id := range x.terminals {
		n += each + len(id)
	}
	return n
}

func (x *act) ended() bool {
	switch x.call.Status.Or("") {
	case acp.ToolCallStatusCompleted, acp.ToolCallStatusFailed, acp.ToolCallStatusCancelled:
		return true
	}
	return false
}

// requests returns an act in the words of rules: the tool call, and what runs in its terminals.
func (a *acts) requests(s *Session, x *act) []acphost.Request {
	subject := &acp.ToolCallPermissionSubject{ToolCall: x.call}
	list := []acphost.Request{acphost.RequestIn(string(s.id), s.cwd, &acp.PermissionRequest{Title: x.title(), Subject: subject})}
	for _, id := range x.terminals {
		if t := a.terminals[id]; t != nil && !t.over && strings.TrimSpace(t.command) != "" {
			r := list[0]
			r.Kind, r.Command, r.CommandUnknown = string(acp.ToolKindExecute), t.command, false
			if t.cwd != "" {
				r.Cwd = t.cwd
			}
			list = append(list, r)
		}
	}
	return list
}

func (x *act) title() string {
	if t := x.call.Title.Or(""); t != "" {
		return t
	}
	return x.call.Name.Or("")
}

// alone returns what has run in a terminal that belongs to no tool call, once the command has
// ended: until then the agent may still say which call it belongs to.
func (a *acts) alone(s *Session, u acp.SessionUpdate) (r acphost.Request, ok bool) {
	update, _ := u.(*acp.TerminalUpdate)
	if update == nil {
		return r, false
	}
	_, ended := update.ExitStatus.Get()
	t := a.terminals[update.TerminalID]
	if !ended || t == nil || t.over || t.act != "" || strings.TrimSpace(t.command) == "" {
		return r, false
	}
	t.over = true
	r = acphost.Request{Session: string(s.id), Title: t.command, Kind: string(acp.ToolKindExecute), Command: t.command, Cwd: s.cwd}
	if t.cwd != "" {
		r.Cwd = t.cwd
	}
	return r, true
}

// callFor returns the tool call of the agent's that an errand belongs to, or "", and whether that
// shows what the errand would show. A call that was asked about is not returned.
func (s *Session) callFor(e errand) (id acp.ToolCallID, shows bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Backward(s.acts.order) {
		x := s.acts.byID[id]
		if x.consent != consentUnasked || x.ended() {
			continue
		}
		r := s.acts.requests(s, x)[0]
		if slices.Contains(x.grants(s.host.policy, r), e.what) {
			return id, len(x.call.Content.Or(nil)) > 0
		}
	}
	return "", false
}

// grants is [grant.ActsOf] of an act. A command is parsed once.
func (x *act) grants(p *acphost.Policy, r acphost.Request) []string {
	command, _ := r.Shows()
	if command == "" {
		return grant.ActsOf(p, r)
	}
	if ran := [2]string{command, r.Cwd}; x.ran != ran {
		x.ran, x.runs = ran, grant.ActsOf(p, r)
	}
	return x.runs
}
