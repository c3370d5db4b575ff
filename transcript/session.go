package transcript

import (
	"encoding/json"

	"github.com/goacp/acp/acpv2"
)

// A Session is the state of a session as a whole, as far as it is known. Like an
// [Entry] it never changes. The zero value means that nothing was reported, which
// counts as idle.
type Session struct {
	core          core
	State         State
	Usage         *Usage                      // nil until it is reported
	ConfigOptions []acpv2.SessionConfigOption // nil until they are reported
	Commands      []acpv2.AvailableCommand    // nil until they are reported
	Title         string
	UpdatedAt     string // RFC 3339
	Meta          json.RawMessage
}

// Dropped returns how much of the session's state was dropped at the bounds of the
// [Config], in bytes as they count them.
func (s *Session) Dropped() int64 { return s.core.dropped }

// Update returns the update that sets a field to its current value. It returns nil for
// a state and a usage that were never reported. Updates of the other fields are never
// nil; an empty value was cleared or was never reported.
func (s *Session) Update(f Field) acpv2.SessionUpdate {
	switch f {
	case FieldState:
		if s.State.update != nil {
			return s.State.update
		}
	case FieldUsage:
		if s.Usage != nil {
			return s.Usage.update()
		}
	case FieldConfigOptions:
		return &acpv2.ConfigOptionUpdate{ConfigOptions: s.ConfigOptions}
	case FieldCommands:
		return &acpv2.AvailableCommandsUpdate{AvailableCommands: s.Commands}
	case FieldInfo:
		return &acpv2.SessionInfoUpdate{Title: setText(s.Title), UpdatedAt: setText(s.UpdatedAt), Meta: s.Meta}
	}
	return nil
}

// knows reports whether a field was reported and has not been cleared since.
func (s *Session) knows(f Field) bool {
	switch f {
	case FieldConfigOptions:
		return s.ConfigOptions != nil
	case FieldCommands:
		return s.Commands != nil
	case FieldInfo:
		return s.Title != "" || s.UpdatedAt != "" || s.Meta != nil
	}
	return s.Update(f) != nil
}

// A Usage says how full the context is and what the session has cost.
type Usage struct {
	Used uint64          // tokens in the context
	Size uint64          // tokens that the context can hold
	Cost *acpv2.Cost     // of the session so far; nil if not reported
	Meta json.RawMessage // what an update leaves out of it stays
}

// A Foreground says what a session is doing about its current task. Values other than
// the constants occur; they mean busy.
type Foreground string

// The foreground states that the protocol knows.
const (
	ForegroundIdle           Foreground = "idle"
	ForegroundRunning        Foreground = "running"
	ForegroundRequiresAction Foreground = "requires_action"
	ForegroundUnknown        Foreground = "unknown" // the agent cannot tell
)

// A State says what a session is doing. The zero value means that nothing was
// reported.
type State struct {
	Foreground Foreground
	StopReason acpv2.StopReason // why the last work ended, while idle; empty if not reported
	Error      *acpv2.Error     // the error that ended it; nil if not reported
	Tokens     *acpv2.Usage     // the tokens it used; nil if not reported

	// Background lists what runs in the background. It is nil if that was not
	// reported, and empty if nothing does.
	Background []acpv2.BackgroundWork

	update acpv2.StateUpdate
}

// Idle reports whether nothing is being done in the foreground. That is the case before
// anything was reported. A state that this package does not know is not idle.
func (s *State) Idle() bool { return s.Foreground == "" || s.Foreground == ForegroundIdle }

// Update returns the update that reports this state, or nil if nothing was reported.
func (s *State) Update() acpv2.StateUpdate { return s.update }

func stateOf(u acpv2.StateUpdate) State {
	s := State{update: u}
	switch u := u.(type) {
	case *acpv2.IdleStateUpdate:
		s.Foreground, s.Background = ForegroundIdle, u.Background
		s.StopReason, s.Error, s.Tokens = u.StopReason, u.Error, u.Usage
	case *acpv2.RunningStateUpdate:
		s.Foreground, s.Background = ForegroundRunning, u.Background
	case *acpv2.RequiresActionStateUpdate:
		s.Foreground, s.Background = ForegroundRequiresAction, u.Background
	case *acpv2.StateUnknownUpdate:
		s.Foreground, s.Background = ForegroundUnknown, u.Background
	case *acpv2.UnknownStateUpdate:
		s.Foreground = Foreground(u.Type)
	}
	return s
}

// after completes an idle state with what the one before reported about the end of the
// work: reporting idle again is not another end (S88).
func (s State) after(old State) State {
	idle, ok := s.update.(*acpv2.IdleStateUpdate)
	if !ok || s.StopReason != "" {
		return s
	}
	u := *idle
	u.StopReason, u.Error = old.StopReason, old.Error
	if u.Usage == nil {
		u.Usage = old.Tokens
	}
	return stateOf(&u)
}

// brief returns what is kept of a state that is too big.
func (s State) brief() State {
	switch s.Foreground {
	case ForegroundIdle:
		return stateOf(&acpv2.IdleStateUpdate{StopReason: s.StopReason})
	case ForegroundRunning:
		return stateOf(&acpv2.RunningStateUpdate{})
	case ForegroundRequiresAction:
		return stateOf(&acpv2.RequiresActionStateUpdate{})
	case ForegroundUnknown:
		return stateOf(&acpv2.StateUnknownUpdate{})
	}
	return stateOf(&acpv2.UnknownStateUpdate{Type: string(s.Foreground), Raw: taggedOnly("state", string(s.Foreground))})
}

// The parts of a session in its sizes.
const (
	sessionState    = partContent
	sessionOptions  = partLocations
	sessionCommands = partInput
	sessionUsage    = partOutput
)

// session returns the session for modification.
func (c *Conversation) session() *Session {
	if c.sess.core.gen != c.gen {
		s := *c.sess
		s.core.gen = c.gen
		c.sess = &s
	}
	return c.sess
}

func (c *Conversation) applyState(u acpv2.StateUpdate) Change {
	s := c.session()
	s.State = c.keepState(&s.core, sessionState, stateOf(u).after(s.State))
	if _, idle := u.(*acpv2.IdleStateUpdate); idle {
		c.turns++
	}
	return Change{Op: OpSession, Field: FieldState}
}

// keepState counts a state and shortens it if there is no room.
func (c *Conversation) keepState(e *core, part int, s State) State {
	if n := c.size(s.update); n > c.room(e, part) {
		c.dropped(e, n)
		if s = s.brief(); len(s.Foreground)+len(s.StopReason) > idBytes {
			s = stateOf(&acpv2.StateUnknownUpdate{}) // which is not idle either
		}
	}
	c.charge(e, part, c.size(s.update))
	return s
}

func (c *Conversation) applyUsage(u *acpv2.UsageUpdate) Change {
	s := c.session()
	n := Usage{Used: u.Used, Size: u.Size, Meta: notNull(u.Meta)}
	if s.Usage != nil {
		n.Cost, n.Meta = s.Usage.Cost, patchMeta(s.Usage.Meta, u.Meta)
	}
	switch cost, set := u.Cost.Get(); {
	case set:
		n.Cost = &cost
	case u.Cost.IsClear():
		n.Cost = nil
	}
	if size := c.size(n.update()); size > c.room(&s.core, sessionUsage) {
		c.dropped(&s.core, size)
		n.Cost, n.Meta = nil, nil
	}
	s.Usage = &n
	c.charge(&s.core, sessionUsage, c.size(n.update()))
	return Change{Op: OpSession, Field: FieldUsage}
}

func (u *Usage) update() *acpv2.UsageUpdate {
	x := &acpv2.UsageUpdate{Used: u.Used, Size: u.Size, Meta: u.Meta}
	if u.Cost != nil {
		x.Cost = acpv2.Set(*u.Cost)
	}
	return x
}

func (c *Conversation) applyInfo(u *acpv2.SessionInfoUpdate) Change {
	s := c.session()
	patchShort(c, &s.core, u.Title, &s.Title)
	patchShort(c, &s.core, u.UpdatedAt, &s.UpdatedAt)
	c.applyMeta(&s.core, &s.Meta, u.Meta)
	return Change{Op: OpSession, Field: FieldInfo}
}

func (c *Conversation) applyOptions(u *acpv2.ConfigOptionUpdate) Change {
	s := c.session()
	s.ConfigOptions = fit(c, &s.core, sessionOptions, u.ConfigOptions,
		func(o *acpv2.SessionConfigOption) int { return c.size(o) })
	c.v1.updates.SetOptions(s.ConfigOptions)
	return Change{Op: OpSession, Field: FieldConfigOptions}
}

func (c *Conversation) applyCommands(u *acpv2.AvailableCommandsUpdate) Change {
	s := c.session()
	s.Commands = fit(c, &s.core, sessionCommands, u.AvailableCommands,
		func(a *acpv2.AvailableCommand) int { return c.size(*a) })
	return Change{Op: OpSession, Field: FieldCommands}
}
