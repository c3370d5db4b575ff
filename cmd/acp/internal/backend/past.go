package backend

import (
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/ids"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

const (
	// settleAfter is how long late history is gathered before it is compared; it is doubled if that
	// happens often.
	settleAfter = 50 * time.Millisecond
	// oftenMerged is what counts as often.
	oftenMerged = 16
	// maxSettle bounds it.
	maxSettle = 3 * time.Second
)

// A past is the history that an agent replays while a session is continued. It is compared with
// what was kept, and only what is new is added: see package history. Agents replay before they
// answer the request, after that, or even after the next prompt; in the last case late
// distinguishes it from live updates.
//
// It is used with the session's order held.
type past struct {
	kept    *transcript.Snapshot
	told    *transcript.Conversation
	session *transcript.Session          // of told, as it was applied
	sent    map[uint64][sha256.Size]byte // checksums of what was added for the entries of told
	headed  bool                         // a notice was put above them
	pending bool                         // something was not compared yet
	opening bool                         // nothing is compared before settle: nothing may stay if opening fails
	called  map[acp.ToolCallID]bool      // tool calls that occurred since
	merges  int
	timer   *time.Timer
	late    late
}

func newPast(kept *transcript.Snapshot) *past {
	return &past{kept: kept, told: transcript.New(store.Bounds()), session: new(transcript.Session), sent: map[uint64][sha256.Size]byte{}, called: map[acp.ToolCallID]bool{}}
}

// tells applies an update of the agent's if it is history, and reports whether it was. The caller
// holds order.
func (s *Session) tells(u *acp.Update) bool {
	p := s.past
	if _, ok := u.Update.(*acpv2.CursorUpdate); ok && u.Replayed {
		s.put(u.Update) // what it is beside has the id that the history has
		return true
	}
	if u.Replayed {
		if p == nil {
			p = newPast(new(transcript.Snapshot))
			s.past = p
		}
		p.told.Apply(u.Update)
		if end := s.endOfOthers(u.Update); end != nil {
			p.told.TurnEnded(end)
		}
		p.pending = true
		return true
	}
	if p == nil || p.kept.Len() == 0 || !isSaid(u.Update) {
		return false
	}
	if u.Synthetic {
		s.release() // another prompt
		return false
	}
	if s.prompts() > 0 {
		return s.follows(u)
	}
	p.told.Apply(u.Update)
	if !p.pending {
		p.pending = true
		wait := settleAfter << min(p.merges/oftenMerged, 8)
		p.timer = time.AfterFunc(min(wait, maxSettle), func() {
			s.order.Lock()
			defer s.order.Unlock()
			if s.past == p && !p.opening {
				s.merge()
			}
		})
	}
	return true
}

// prompts returns how many turns run.
func (s *Session) prompts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns
}

// merge adds what is new in the history that the agent has replayed. The caller holds order.
func (s *Session) merge() {
	p := s.past
	if p == nil || !p.pending {
		return
	}
	p.pending = false
	p.merges++
	told := p.told.Snapshot()
	// What was kept is shown above; news with nothing above them need no explanation.
	asHistory := p.kept.Len() > 0
	for _, piece := range history.News(p.kept, told) {
		if end, ok := piece.Entry.(*transcript.TurnEnd); ok && !asHistory && p.sent[end.Seq()] == ([sha256.Size]byte{}) {
			p.sent[end.Seq()] = [sha256.Size]byte{1}
			s.putEnd(end)
		}
		u := piece.Update(asHistory)
		if u == nil {
			continue
		}
		u = s.ids.update(u)
		data, err := u.AppendJSON(nil)
		seq := piece.Entry.Seq()
		sum := sha256.Sum256(data)
		if err != nil || p.sent[seq] == sum {
			continue
		}
		p.sent[seq] = sum
		if c, ok := u.(*acp.ToolCallUpdate); ok {
			p.called[c.ToolCallID] = true
		}
		if asHistory && !p.headed {
			p.headed = true
			s.put(history.Heading())
		}
		s.put(u)
	}
	s.mergeSession(told.Session())
}

// mergeSession applies what is known of the session as a whole, except the title if the session has
// one.
func (s *Session) mergeSession(now *transcript.Session) {
	p := s.past
	if now == p.session {
		return
	}
	was := p.session
	p.session = now
	if now.ConfigOptions != nil && !sameList(now.ConfigOptions, was.ConfigOptions) {
		s.put(now.Update(transcript.FieldConfigOptions))
	}
	if now.Commands != nil && !sameList(now.Commands, was.Commands) {
		s.put(now.Update(transcript.FieldCommands))
	}
	s.mu.Lock()
	title := ""
	if s.title == "" && now.Title != "" {
		s.title = now.Title
		title = now.Title
	}
	s.mu.Unlock()
	if title != "" || now.Meta != nil {
		info := &acp.SessionInfoUpdate{Meta: now.Meta}
		if title != "" {
			info.Title = acp.Set(title)
		}
		s.put(info)
	}
	if u := now.Usage; u != nil && u != was.Usage {
		s.put(now.Update(transcript.FieldUsage))
	}
}

// endChildren ends the history of the sessions of subagents that work for a session: once the user
// has sent a prompt there, what they send is live.
func (s *Session) endChildren() {
	for _, child := range s.subagents() {
		child.endPast()
	}
}

// subagents returns the sessions of subagents that work for a session.
func (s *Session) subagents() []*Session {
	s.host.mu.Lock()
	all := slices.Collect(maps.Values(s.host.sessions))
	s.host.mu.Unlock()
	return slices.DeleteFunc(all, func(other *Session) bool { return other == s || !other.worksFor(s) })
}

// maxDepth bounds how deep sessions of subagents are looked for.
const maxDepth = 64

// worksFor reports whether the session is one of a subagent of top, or of a subagent of such.
func (s *Session) worksFor(top *Session) bool {
	for range maxDepth {
		if s.isOpened() {
			return false
		}
		s.mu.Lock()
		parent := s.parent
		s.mu.Unlock()
		if s = parent; s == nil || s == top {
			return s != nil
		}
	}
	return false
}

// wasPrompted reports whether the user has sent a prompt since the agent was started.
func (s *Session) wasPrompted() bool {
	s.order.Lock()
	defer s.order.Unlock()
	return s.prompted
}

// endPast adds what is new, and treats what follows as live. It is called at the end of the first
// turn, and of the session.
func (s *Session) endPast() {
	s.order.Lock()
	defer s.order.Unlock()
	s.merge()
	s.dropPast()
}

// dropPast forgets what was replayed, and shows what is held back. The caller holds order.
func (s *Session) dropPast() {
	p := s.past
	if p == nil {
		return
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	s.showHeld()
	s.past = nil
}

// settle adds what is new in what was replayed so far, and shows what is held back.
func (s *Session) settle() {
	s.order.Lock()
	defer s.order.Unlock()
	if s.past != nil {
		s.past.opening = false
		s.merge()
		s.release()
	}
}

// isSaid reports whether an update is part of what is said in a session, not of what is known of it
// as a whole.
func isSaid(u acp.SessionUpdate) bool { return said(&item{update: u}) }

// callNamed returns an update with the names of its tool calls: see [ids.Calls]. The caller holds order.
func (s *Session) callNamed(u acp.SessionUpdate) acp.SessionUpdate {
	var name string
	switch v := u.(type) {
	case *acp.ToolCallUpdate:
		name = s.calls.Take(v, s.turn())
	case *acpv2.ToolCallContentChunk:
		name = s.calls.Name(string(v.ToolCallID))
	default:
		return u
	}
	return ids.Rename(u, func(in ids.Space, id string) string {
		if in == ids.Call {
			return name
		}
		return id
	})
}

// turn returns the number of the turn that has begun last, which is that of the session for which a subagent works.
func (s *Session) turn() uint64 {
	for range maxDepth {
		s.mu.Lock()
		n, parent := s.begun, s.parent
		s.mu.Unlock()
		if parent == nil || n > 0 {
			return n
		}
		s = parent
	}
	return 0
}

// own returns an update with its ids replaced, whose calls are named. If it continues an entry of an earlier life of the
// agent, that entry stays as it is, and what is known of it precedes the update: otherwise the new
// entry would have no title.
func (s *Session) own(u acp.SessionUpdate) (before, own acp.SessionUpdate) {
	x := s.ids
	if x == nil {
		return nil, u
	}
	switch v := u.(type) {
	case *acp.AgentMessageChunk: // the most frequent by far
	case *acp.ToolCallUpdate:
		if _, named := v.Title.Get(); !named {
			before = s.earlierCall(v.ToolCallID)
		}
	case *acpv2.ToolCallContentChunk:
		before = s.earlierCall(v.ToolCallID)
	case *acp.TerminalUpdate:
		if _, named := v.Command.Get(); !named {
			before = s.earlierTerminal(v.TerminalID)
		}
	case *acp.TerminalOutputChunk:
		before = s.earlierTerminal(v.TerminalID)
	}
	if before != nil {
		before = x.update(before)
	}
	if c, ok := u.(*acpv2.CursorUpdate); ok {
		return nil, ids.Rename(c, x.now)
	}
	own = x.update(u)
	if c, ok := own.(*acp.ToolCallUpdate); ok && s.past != nil {
		s.past.called[c.ToolCallID] = true
	}
	return before, own
}

// earlierCall returns what is known of a tool call that was kept or replayed, if nothing was said
// of it since.
func (s *Session) earlierCall(id acp.ToolCallID) acp.SessionUpdate {
	own := acp.ToolCallID(s.ids.peek(ids.Call, string(id)))
	if p := s.past; p != nil && !p.called[own] {
		if c := p.told.Snapshot().ToolCall(id); c != nil {
			return c.Update()
		}
	}
	if s.ids.isNew(ids.Call, string(id)) {
		if c := s.Snapshot().ToolCall(id); c != nil {
			return c.Update()
		}
	}
	return nil
}

func (s *Session) earlierTerminal(id acp.TerminalID) acp.SessionUpdate {
	if s.ids.isNew(ids.Terminal, string(id)) {
		if t := s.Snapshot().Terminal(id); t != nil && t.Command != "" {
			return &acp.TerminalUpdate{TerminalID: id, Command: acp.Set(t.Command), Cwd: acp.Set(t.Cwd)}
		}
	}
	return nil
}

// forgetPast is called for a session that the agent does not know: it has no history to replay.
func (s *Session) forgetPast() {
	s.order.Lock()
	defer s.order.Unlock()
	s.dropPast()
}

// wasTold reports whether the agent has replayed history of a session that was not in the store.
func (s *Session) wasTold() bool {
	s.order.Lock()
	defer s.order.Unlock()
	return s.past != nil && s.past.kept.Len() == 0 && s.past.merges == 0 && s.Snapshot().Len() == 0
}

// ownRequest returns a request for permission with its ids replaced. Late history precedes the
// request; what follows it is live.
func (s *Session) ownRequest(req *acp.PermissionRequest, r acphost.Request) (*acp.PermissionRequest, acphost.Request) {
	s.order.Lock()
	defer s.order.Unlock()
	if s.past != nil {
		s.merge()
		s.endLate()
	}
	subject, _ := req.Subject.(*acp.ToolCallPermissionSubject)
	if subject != nil {
		s.calls.Take(&subject.ToolCall, s.turn())
	}
	of := func(in ids.Space, id string) string {
		if in == ids.Call {
			id = s.calls.Name(id)
		}
		if s.ids != nil {
			id = s.ids.id(in, id)
		}
		return id
	}
	own := *req
	own.Subject = ids.RenameSubject(req.Subject, of)
	if req.ToolCall != nil {
		own.ToolCall = new(ids.RenameCall(*req.ToolCall, of))
	}
	v2 := *req.V2
	v2.Subject = ids.RenameSubject(v2.Subject, of)
	own.V2 = &v2
	if r.ToolCallID != "" {
		r.ToolCallID = of(ids.Call, r.ToolCallID)
	}
	return &own, r
}
