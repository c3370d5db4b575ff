package ids

import (
	"strconv"
	"strings"

	"github.com/goacp/acp"
)

// Bounds of [Calls].
const (
	// MaxCalls is how many tool calls are remembered: the latest ones. One that begins again when it was forgotten is taken
	// for the one before.
	MaxCalls = 4096
	// MaxID bounds the ids that are remembered, in bytes: longer ones stay as they are.
	MaxID = 1 << 10
)

// Calls names the tool calls of one life of an agent. Some agents begin anew to count them in each turn: a call that ended
// in an earlier turn and begins again is another one. Its name is its id with the number of its turn, id~turn. All names
// begin with a prefix. It must not be used by several goroutines at a time.
type Calls struct {
	prefix string
	calls  map[string]*call
	order  []string // the oldest first
}

// A call is what is known of the latest call with an id.
type call struct {
	name string
	over bool   // it has ended
	turn uint64 // in which it has
}

// NewCalls returns the names of a life of which nothing was said yet.
func NewCalls(prefix string) *Calls { return &Calls{prefix: prefix, calls: map[string]*call{}} }

// Name returns the name of the call that an id means now.
func (c *Calls) Name(id string) string {
	if known := c.calls[id]; known != nil {
		return known.name
	}
	return c.prefix + id
}

// Take takes what is said of a call in a turn, and returns its name. Turns have numbers that only grow.
func (c *Calls) Take(u *acp.ToolCallUpdate, turn uint64) (name string) {
	id := string(u.ToolCallID)
	known := c.calls[id]
	switch {
	case known == nil:
		if known = c.add(id, c.prefix+id); known == nil {
			return c.prefix + id
		}
	case known.over && known.turn < turn && begins(u):
		known.name, known.over = c.prefix+id+"~"+strconv.FormatUint(turn, 10), false
	}
	known.take(u, turn)
	return known.name
}

// Kept is called with what was said of a call in a turn as it was kept, under the name that Take has returned for it on
// another connection to the same agent.
func (c *Calls) Kept(u *acp.ToolCallUpdate, turn uint64) {
	name := string(u.ToolCallID)
	id, ok := strings.CutPrefix(name, c.prefix)
	if !ok {
		return
	}
	if i := strings.LastIndexByte(id, '~'); i > 0 {
		if began, err := strconv.ParseUint(id[i+1:], 10, 64); err == nil && c.calls[id[:i]] != nil && (began == turn || c.calls[id[:i]].name == name) {
			id = id[:i]
		}
	}
	known := c.calls[id]
	if known == nil {
		known = c.add(id, name)
	}
	if known != nil {
		known.name = strings.Clone(name)
		known.take(u, turn)
	}
}

// add makes room for a call and returns it, or nil if its id is too long.
func (c *Calls) add(id, name string) *call {
	if len(id) > MaxID {
		return nil
	}
	if len(c.order) == MaxCalls {
		delete(c.calls, c.order[0])
		c.order = append(c.order[:0], c.order[1:]...)
	}
	id = strings.Clone(id)
	known := &call{name: strings.Clone(name)}
	c.calls[id], c.order = known, append(c.order, id)
	return known
}

// IsOver reports whether a tool call with a status has ended.
func IsOver(s acp.ToolCallStatus) bool {
	return s == acp.ToolCallStatusCompleted || s == acp.ToolCallStatusFailed || s == acp.ToolCallStatusCancelled
}

// begins reports whether an update can be the first one of a call.
func begins(u *acp.ToolCallUpdate) bool {
	status, _ := u.Status.Get()
	_, titled := u.Title.Get()
	return titled || status == acp.ToolCallStatusPending
}

func (c *call) take(u *acp.ToolCallUpdate, turn uint64) {
	status, ok := u.Status.Get()
	if !ok {
		return
	}
	over := IsOver(status)
	if over && !c.over {
		c.turn = turn
	}
	c.over = over
}
