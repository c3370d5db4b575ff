package acp

import (
	"encoding/json"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/cursors"
)

// clientState is what updates have said about a session as a whole.
type clientState struct {
	options    []SessionConfigOption
	commands   []AvailableCommand
	title      string
	state      StateUpdate
	background []BackgroundWork
	usage      *UsageUpdate
	suggested  []acpv2.PromptSuggestion
	cursors    cursors.List
	toolCalls  clientCancellable
	terminals  clientCancellable
}

// apply records an update. Nothing that an update holds is changed.
func (s *clientState) apply(u SessionUpdate) {
	switch u := u.(type) {
	case *ConfigOptionUpdate:
		s.options = u.ConfigOptions
	case *AvailableCommandsUpdate:
		s.commands = u.AvailableCommands
	case *acpv2.PromptSuggestionsUpdate:
		s.suggested = u.Suggestions
	case *acpv2.CursorUpdate:
		s.cursors.Apply(u)
	case *SessionInfoUpdate:
		u.Title.Apply(&s.title)
	case *UsageUpdate:
		next := *u
		if next.Cost.IsZero() && s.usage != nil {
			next.Cost = s.usage.Cost // unchanged (S78)
		}
		s.usage = &next
	case *ToolCallUpdate:
		if !u.Capabilities.IsZero() {
			caps := u.Capabilities.Or(acpv2.ToolCallCapabilities{})
			s.toolCalls.set(string(u.ToolCallID), caps.Cancel != nil)
		}
	case *TerminalUpdate:
		if !u.Capabilities.IsZero() {
			caps := u.Capabilities.Or(acpv2.TerminalCapabilities{})
			s.terminals.set(string(u.TerminalID), caps.Cancel != nil)
		}
	case StateUpdate:
		s.state = u
		var background []BackgroundWork
		switch u := u.(type) {
		case *IdleStateUpdate:
			background = u.Background
		case *RunningStateUpdate:
			background = u.Background
		case *RequiresActionStateUpdate:
			background = u.Background
		case *acpv2.StateUnknownUpdate:
			background = u.Background
		}
		if background != nil { // a full snapshot each time it is there
			s.background = background
		}
	}
}

// clientCancellable are the ids of what can be cancelled now (S90). Beyond
// maxCancellable the oldest are dropped.
type clientCancellable struct {
	ids   map[string]bool
	order []string
}

const maxCancellable = 1024

func (c *clientCancellable) has(id string) bool { return c.ids[id] }

func (c *clientCancellable) set(id string, ok bool) {
	switch {
	case !ok:
		if c.ids[id] {
			delete(c.ids, id)
			for i := range c.order {
				if c.order[i] == id {
					c.order = append(c.order[:i], c.order[i+1:]...)
					break
				}
			}
		}
	case !c.ids[id]:
		if c.ids == nil {
			c.ids = map[string]bool{}
		}
		if len(c.order) >= maxCancellable {
			delete(c.ids, c.order[0])
			c.order = append(c.order[:0], c.order[1:]...)
		}
		c.ids[id] = true
		c.order = append(c.order, id)
	}
}

// clientStateChange reads the state update of agents that follow a draft of
// version 2, which had another name for it and spelled the stop reason
// differently. What it does not understand is returned unchanged.
func clientStateChange(old *acpv2.UnknownSessionUpdate) SessionUpdate {
	var members map[string]json.RawMessage
	if json.Unmarshal(old.Raw, &members) != nil {
		return old
	}
	members["sessionUpdate"] = json.RawMessage(`"state_update"`)
	if reason, ok := members["stop_reason"]; ok {
		delete(members, "stop_reason")
		if _, both := members["stopReason"]; !both {
			members["stopReason"] = reason
		}
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return old
	}
	u, err := acpv2.UnmarshalSessionUpdate(raw)
	if err != nil {
		return old
	}
	return u
}
