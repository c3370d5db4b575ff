package host

import (
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
)

// Bounds of what is remembered of the tool calls of a session.
const (
	maxActs      = 256         // the latest ones
	maxActInput  = 64 << 10    // bytes of what a tool was given
	maxActParts  = 256         // locations, changes and terminals of one
	maxTerminals = 4 * maxActs // that the agent has told of
)

// An act is a tool call of the agent as rules see it.
type act struct {
	call      acp.ToolCallUpdate // each member as it was told last
	terminals []acp.TerminalID
	asked     bool // permission was asked for through this program
	allowed   bool // and given
	over      bool // it is not looked at any more
}

// acts are the tool calls of a session, the latest of them, and the terminals in which the agent says
// that it runs something. The zero value has none. It is guarded by the mutex of the session.
type acts struct {
	byID  map[acp.ToolCallID]*act
	order []acp.ToolCallID // oldest first

	terminals map[acp.TerminalID]*agentTerminal
	opened    []acp.TerminalID // oldest first
}

// An agentTerminal is a terminal of the agent's own.
type agentTerminal struct {
	command, cwd string
	ran          bool // it has printed something or ended
	act          acp.ToolCallID
}

// of returns the act of a tool call, which it makes if there is none.
func (a *acts) of(id acp.ToolCallID) *act {
	if x := a.byID[id]; x != nil {
		return x
	}
	if a.byID == nil {
		a.byID = map[acp.ToolCallID]*act{}
	}
	if len(a.order) >= maxActs {
		delete(a.byID, a.order[0])
		a.order = a.order[1:]
	}
	x := &act{call: acp.ToolCallUpdate{ToolCallID: id}}
	a.byID[id], a.order = x, append(a.order, id)
	return x
}

// terminal returns a terminal of the agent's, which it makes if there is none.
func (a *acts) terminal(id acp.TerminalID) *agentTerminal {
	if t := a.terminals[id]; t != nil {
		return t
	}
	if a.terminals == nil {
		a.terminals = map[acp.TerminalID]*agentTerminal{}
	}
	if len(a.opened) >= maxTerminals {
		delete(a.terminals, a.opened[0])
		a.opened = a.opened[1:]
	}
	t := new(agentTerminal)
	a.terminals[id], a.opened = t, append(a.opened, id)
	return t
}

// see takes an update into account. It returns the act that has news which can change what is known of
// it, or nil, and whether they show that it was done.
func (a *acts) see(u acp.SessionUpdate) (x *act, done bool) {
	switch u := u.(type) {
	case *acp.ToolCallUpdate:
		x = a.of(u.ToolCallID)
		x.take(u)
		a.link(x)
		status, _ := u.Status.Get()
		done = status == acp.ToolCallStatusCompleted ||
			!x.asked && x.call.Status.Or("") == acp.ToolCallStatusInProgress && len(u.RawOutput) > 0 && string(u.RawOutput) != "null"
	case *acp.ToolCallContentChunk:
		x = a.of(u.ToolCallID)
		x.content([]acp.ToolCallContent{u.Content})
		a.link(x)
	case *acp.TerminalUpdate:
		t := a.terminal(u.TerminalID)
		u.Command.Apply(&t.command)
		u.Cwd.Apply(&t.cwd)
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

// ran notes that a terminal has shown that its command runs.
func (a *acts) ran(id acp.TerminalID, t *agentTerminal, ran bool) (*act, bool) {
	if !ran {
		return nil, false
	}
	t.ran = true
	return a.byID[t.act], true
}

// link notes which terminals belong to an act.
func (a *acts) link(x *act) {
	for _, id := range x.terminals {
		a.terminal(id).act = x.call.ToolCallID
	}
}

// hasRun reports whether a command runs, or has run, in a terminal of an act.
func (a *acts) hasRun(x *act) bool {
	return slices.ContainsFunc(x.terminals, func(id acp.TerminalID) bool { t := a.terminals[id]; return t != nil && t.ran })
}

// take takes what an update says of a tool call.
func (x *act) take(u *acp.ToolCallUpdate) {
	set(&x.call.Name, u.Name)
	set(&x.call.Title, u.Title)
	set(&x.call.Kind, u.Kind)
	set(&x.call.Status, u.Status)
	if !u.Locations.IsZero() {
		list := u.Locations.Or(nil)
		x.call.Locations = acp.Set(slices.Clone(list[:min(len(list), maxActParts)]))
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

func set[T any](to *acpv2.Patch[T], from acpv2.Patch[T]) {
	if !from.IsZero() {
		*to = from
	}
}

// content takes what is shown of a tool call: which files are changed, and the terminals.
func (x *act) content(list []acp.ToolCallContent) {
	has := x.call.Content.Or(nil)
	for _, c := range list {
		switch c := c.(type) {
		case *acp.Diff:
			if len(has) < maxActParts && len(c.Changes) <= maxActParts {
				has = append(has, &acp.Diff{Changes: c.Changes})
			}
		case *acp.TerminalContent:
			if len(x.terminals) < maxActParts {
				x.terminals = append(x.terminals, c.TerminalID)
			}
		}
	}
	x.call.Content = acp.Set(has)
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
		if t := a.terminals[id]; t != nil && strings.TrimSpace(t.command) != "" {
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

// callFor returns the tool call of the agent's that an errand belongs to, and whether it shows what the
// errand would show; "" if there is none. A call that was asked about is not asked about again.
func (s *Session) callFor(e errand) (id acp.ToolCallID, shows bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Backward(s.acts.order) {
		x := s.acts.byID[id]
		if x.asked || x.ended() {
			continue
		}
		r := s.acts.requests(s, x)[0]
		if slices.Contains(grants(r), e.what) {
			return id, len(x.call.Content.Or(nil)) > 0
		}
	}
	return "", false
}
