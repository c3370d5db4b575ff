package acp

import (
	"context"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// sessionOptions are the options of an [AgentSession], whose mu guards them.
type sessionOptions struct {
	list  []SessionConfigOption
	times uint64                       // how often they were replaced
	due   bool                         // they are about to be sent again
	of    func() []SessionConfigOption // of a session behind a bridge, those of the agent itself; nil otherwise
}

// setOption changes an option of a session and returns all options as they are then. The client ends up with the options in
// force, also if others are set before it is answered.
func (c *AgentConn) setOption(ctx context.Context, id SessionID, option SessionConfigID, v SessionConfigOptionValue) (*AgentSession, []SessionConfigOption, error) {
	s, ok := c.Session(id)
	if !ok {
		return nil, nil, SessionNotFound(id)
	}
	s.flush() // who changes it knows it, and hears of the change before the answer
	s.mu.Lock()
	err := checkOption(s.options.list, option, v)
	s.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	if a := c.agent.Load(); a.SetOption != nil {
		if err := c.guard("SetOption", func() error { return a.SetOption(ctx, s, option, v) }); err != nil {
			return nil, nil, err
		}
	}
	s.mu.Lock()
	switch {
	case s.options.of != nil:
		s.replaceOptions(s.options.of())
	case checkOption(s.options.list, option, v) == nil: // the hook may have set other options meanwhile
		s.replaceOptions(withOption(s.options.list, option, v))
	}
	options, times := s.options.list, s.options.times
	s.mu.Unlock()
	s.optionsAfter(ctx, times)
	return s, options, nil
}

// replaceOptions stores options. The caller holds s.mu.
func (s *AgentSession) replaceOptions(options []SessionConfigOption) {
	s.options.list = options
	s.options.times++
}

// optionsAfter sends the options behind the answer to a request if they are not those any more that were in force after
// so many changes: the answer is overtaken otherwise by that to a later request, or by an update, and the client would keep
// what it has. One goroutine of a session at most waits to do so.
func (s *AgentSession) optionsAfter(ctx context.Context, times uint64) {
	req := jsonrpc.RequestFrom(ctx)
	if req == nil || req.ID.IsZero() {
		return // middleware has called the handler by itself
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	over := req.Continue(cancel)
	req.AfterAnswer(func() {
		s.mu.Lock()
		again := s.options.times != times && !s.options.due
		s.options.due = s.options.due || again
		s.mu.Unlock()
		if !again {
			cancel(nil)
			over()
			return
		}
		go func() {
			defer over()
			defer cancel(nil)
			if s.acquire(ctx) != nil {
				return // nobody is left who could be sent them
			}
			defer s.releaseSending()
			s.mu.Lock()
			s.options.due = false
			s.mu.Unlock()
			s.toV1.ForgetMode() // the answer has set it, too
			_ = s.sendOptions(ctx)
		}()
	})
}

// sendOptionsNow waits for the right to send, and sends the options.
func (s *AgentSession) sendOptionsNow(ctx context.Context) error {
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.releaseSending()
	return s.sendOptions(ctx)
}

// sendOptions sends the options, and again those that were set meanwhile: the answer to whoever has set them may have gone
// out before. The caller has the right to send.
func (s *AgentSession) sendOptions(ctx context.Context) error {
	for {
		s.mu.Lock()
		options, times := s.options.list, s.options.times
		s.mu.Unlock()
		if err := s.send(ctx, &ConfigOptionUpdate{ConfigOptions: options}); err != nil {
			return err
		}
		s.mu.Lock()
		sent := s.options.times == times
		s.mu.Unlock()
		if sent {
			return nil
		}
	}
}

// checkOption refuses an option that does not exist, and a value that it cannot
// have.
func checkOption(options []SessionConfigOption, id SessionConfigID, v SessionConfigOptionValue) error {
	o := findOption(options, id)
	if o == nil {
		return invalidParams("configId", "no such option")
	}
	switch v := v.(type) {
	case *SessionConfigOptionValueID:
		if sel, ok := o.Kind.(*SessionConfigSelect); ok && hasChoice(sel.Options, v.Value) {
			return nil
		}
	case *SessionConfigOptionValueBoolean:
		if _, ok := o.Kind.(*SessionConfigBoolean); ok {
			return nil
		}
	}
	return invalidParams("value", "not a value of this option")
}

func hasChoice(options SessionConfigSelectOptions, v SessionConfigValueID) bool {
	switch list := options.(type) {
	case SessionConfigSelectOptionList:
		for _, o := range list {
			if o.Value == v {
				return true
			}
		}
	case acpv2.SessionConfigSelectGroupList:
		for _, g := range list {
			if hasChoice(SessionConfigSelectOptionList(g.Options), v) {
				return true
			}
		}
	}
	return false
}

// withOption returns a copy of options with one value changed.
func withOption(options []SessionConfigOption, id SessionConfigID, v SessionConfigOptionValue) []SessionConfigOption {
	out := make([]SessionConfigOption, len(options))
	copy(out, options)
	o := findOption(out, id)
	switch k := o.Kind.(type) {
	case *SessionConfigSelect:
		changed := *k
		changed.CurrentValue = v.(*SessionConfigOptionValueID).Value
		o.Kind = &changed
	case *SessionConfigBoolean:
		changed := *k
		changed.CurrentValue = v.(*SessionConfigOptionValueBoolean).Value
		o.Kind = &changed
	}
	return out
}
