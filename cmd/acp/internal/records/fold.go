package records

import (
	"encoding/json"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/transcript"
)

// A Fold makes the conversation of the records of a session. What subagents have said is not part of it, unless it was
// kept as a conversation of its own.
type Fold struct {
	Conversation *transcript.Conversation

	cfg   transcript.Config
	asked map[string]question // without an answer, by their IDs
}

// A question is a request for permission in a conversation.
type question struct {
	entry uint64
	req   *acpv2.RequestPermissionRequest
}

// NewFold returns a Fold of a conversation that is empty.
func NewFold(cfg transcript.Config) *Fold {
	return &Fold{cfg: cfg, Conversation: transcript.New(cfg), asked: map[string]question{}}
}

// Apply adds a record to the conversation. One of the wrong form changes nothing.
func (f *Fold) Apply(r *journal.Record) {
	c := f.Conversation
	switch r.Kind {
	case journal.KindPrompt:
		if p, err := DecodePrompt(r.Data); err == nil {
			c.Apply(p.Message(""))
		}
	case journal.KindUpdate:
		if u, err := DecodeUpdate(r.Data); err == nil {
			c.Apply(u)
		}
	case journal.KindNotice:
		var n Notice
		if json.Unmarshal(r.Data, &n) == nil {
			c.Apply(n.Update())
		}
	case journal.KindAsked:
		var a Asked
		if json.Unmarshal(r.Data, &a) != nil {
			return
		}
		if req := a.Permission(); req != nil {
			entry, _ := c.Asked(req)
			f.asked[a.ID] = question{entry, req}
		}
	case journal.KindDecided:
		var d Decided
		if json.Unmarshal(r.Data, &d) == nil {
			f.decided(r, &d)
		}
	case journal.KindEnd:
		var e End
		if json.Unmarshal(r.Data, &e) == nil {
			e.Apply(c)
		}
	case journal.KindOutput:
		var o Output
		if json.Unmarshal(r.Data, &o) == nil {
			o.Apply(c)
		}
	case journal.KindReset:
		*f = *NewFold(f.cfg)
	}
}

// decided adds the decision on a question: to the question, if the conversation has that, or else to the tool call.
func (f *Fold) decided(r *journal.Record, d *Decided) {
	if q, ok := f.asked[d.ID]; ok {
		f.Conversation.Answered(q.entry, d.permission(q.req))
		delete(f.asked, d.ID)
		return
	}
	if u := d.Update(r); u != nil && d.Child == "" {
		f.Conversation.Apply(u)
	}
}

// Apply adds output to a conversation.
func (o *Output) Apply(c *transcript.Conversation) {
	if o.TerminalID != "" {
		c.OutputAt(acpv2.TerminalID(o.TerminalID), o.At, o.Data)
	}
}

// Turn returns how the turn has ended.
func (e *End) Turn() *transcript.TurnEnd {
	if end := history.EndOf(e.Update()); end != nil {
		return end
	}
	return new(transcript.TurnEnd)
}

// Apply applies the end of the turn to a conversation, which is idle afterwards unless other turns run. It returns what
// changed. Several processes that find the same turn interrupted may each have recorded that: the first record counts.
func (e *End) Apply(c *transcript.Conversation) (changes []transcript.Change) {
	end := e.Turn()
	if isInterrupted(end) && endsInterrupted(c.Snapshot()) {
		return nil
	}
	// An agent that has ended cannot say that it is idle.
	if state := c.Snapshot().Session().State; end.Others == 0 && !state.Idle() {
		changes = append(changes, c.Apply(&acpv2.IdleStateUpdate{StopReason: end.StopReason, Background: state.Background}))
	}
	return append(changes, c.TurnEnded(end))
}

// isInterrupted reports whether all that is known of the end is that the program was killed.
func isInterrupted(end *transcript.TurnEnd) bool {
	return end.By == transcript.EndedByClient && end.StopReason == "" && end.Said == "" && end.Error == "" && end.Others == 0
}

// endsInterrupted reports whether a conversation ends with an interrupted turn.
func endsInterrupted(s *transcript.Snapshot) bool {
	for e := range s.Backward() {
		end, ok := e.(*transcript.TurnEnd)
		return ok && isInterrupted(end)
	}
	return false
}
