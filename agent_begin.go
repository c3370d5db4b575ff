package acp

import (
	"context"
	"slices"
	"strconv"

	"github.com/goacp/acp/acpv2"
)

// An OptionsQuery asks what a session would begin with. Experimental.
type OptionsQuery = acpv2.SessionOptionsRequest

// An OptionsPreview says what a session would begin with: its options, and those of
// its commands that are known. What counts is what the session then has. Experimental.
type OptionsPreview = acpv2.SessionOptionsResponse

// An InitialOption is a value that an option of a session is to begin with.
// Experimental.
type InitialOption = acpv2.InitialSessionConfigOption

// previewOptions answers session/options.
func (c *AgentConn) previewOptions(ctx context.Context, q *OptionsQuery) (p *OptionsPreview, err error) {
	a := c.agent.Load()
	if a.SessionOptions == nil {
		return nil, notFound(ctx)
	}
	if err := (&sessionRequest{cwd: q.Cwd, directories: q.AdditionalDirectories}).check(a, c.Version()); err != nil {
		return nil, err
	}
	err = c.guard("SessionOptions", func() error {
		p, err = a.SessionOptions(ctx, c, q)
		return err
	})
	if err == nil && p == nil {
		p = new(OptionsPreview)
	}
	return p, err
}

// checkInitial refuses a kind of value that nobody knows. Anything else that does not
// fit is ignored.
func (o *sessionRequest) checkInitial(a *Agent) error {
	if a.SessionOptions == nil {
		return nil // not advertised: whatever it is, it is an unknown member
	}
	for i, v := range o.options {
		if u, ok := v.Value.(*acpv2.UnknownSessionConfigOptionValue); ok {
			return invalidParams("configOptions["+strconv.Itoa(i)+"].type", "unknown type "+strconv.Quote(u.Type))
		}
	}
	return nil
}

// begin sets the options that the client wants the session to begin with. What an
// option cannot have is ignored, also if the hook refuses it: the answer has the values
// that are in force. Behind a bridge the agent itself knows of them.
func (s *AgentSession) begin(ctx context.Context, options []InitialOption) {
	a := s.c.agent.Load()
	if a.SessionOptions == nil {
		return
	}
	for _, o := range options {
		s.mu.Lock()
		ok := s.options.of == nil && checkOption(s.options.list, o.ConfigID, o.Value) == nil &&
			!hasValue(s.options.list, o.ConfigID, o.Value)
		s.mu.Unlock()
		if !ok {
			continue
		}
		if a.SetOption != nil && s.c.guard("SetOption", func() error { return a.SetOption(ctx, s, o.ConfigID, o.Value) }) != nil {
			continue
		}
		s.mu.Lock()
		if checkOption(s.options.list, o.ConfigID, o.Value) == nil { // the hook may have set other options meanwhile
			s.replaceOptions(withOption(s.options.list, o.ConfigID, o.Value))
		}
		s.mu.Unlock()
	}
}

// hasValue reports whether an option has a value.
func hasValue(options []SessionConfigOption, id SessionConfigID, v SessionConfigOptionValue) bool {
	o := findOption(options, id)
	if o == nil {
		return false
	}
	switch k := o.Kind.(type) {
	case *SessionConfigSelect:
		x, ok := v.(*SessionConfigOptionValueID)
		return ok && x.Value == k.CurrentValue
	case *SessionConfigBoolean:
		x, ok := v.(*SessionConfigOptionValueBoolean)
		return ok && x.Value == k.CurrentValue
	}
	return false
}

// maxReplayedChildren bounds for how many subagents a replay reports its end.
const maxReplayedChildren = 4096

// A replayEnd is what a session remembers of a replay, to say that it is over. The
// session's gate guards it.
type replayEnd struct {
	said     bool
	children []SessionID // announced by the replay
}

// see notes what is sent while a history is.
func (r *replayEnd) see(u SessionUpdate) {
	switch u := u.(type) {
	case *acpv2.ReplayComplete:
		r.said = true
	case *SubagentUpdate:
		if len(r.children) < maxReplayedChildren && !slices.Contains(r.children, u.SessionID) {
			r.children = append(r.children, u.SessionID)
		}
	}
}

// endReplay says that all of the history has been sent, of the session and of the
// subagents that it has announced. from is the session through which that was. The
// caller has not the right to send.
func (s *AgentSession) endReplay(ctx context.Context, from *AgentSession) error {
	if err := from.acquire(ctx); err != nil {
		return err
	}
	end := from.history.end
	from.history.end = replayEnd{}
	from.releaseSending()
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.releaseSending()
	proto := s.c.peer.Load().proto
	for _, child := range end.children {
		if err := proto.replayed(ctx, child); err != nil {
			return err
		}
	}
	if end.said {
		return nil
	}
	return proto.replayed(ctx, s.id)
}
