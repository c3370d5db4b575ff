package backend

import (
	"slices"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/ids"
	"github.com/goacp/acp/cmd/acp/internal/title"
)

const (
	// holdFor bounds how long an update in the first turn is held back until it is clear whether it
	// is history. It is too short to be noticed.
	holdFor = 50 * time.Millisecond
	// maxHeld and maxHeldBytes bound what is held back.
	maxHeld      = 4096
	maxHeldBytes = 4 << 20
)

// A late handles history that an agent may replay in the first turn after a load: see
// [history.Run]. It is used with the session's order held.
type late struct {
	run   *history.Run // nil before the first update of the turn
	held  []*acp.Update
	bytes int
	timer *time.Timer // shows what is held; nil if nothing is
}

// follows accepts an update in the first turn if it is history, or holds it back while it may be.
// It reports whether it did either; otherwise the update is live.
func (s *Session) follows(u *acp.Update) bool {
	l := &s.past.late
	if l.run == nil {
		l.run = history.NewRun(s.past.kept, s.past.told.Snapshot())
	}
	if s.isEcho(u) {
		s.release()
		return false
	}
	switch l.run.Take(u.Update, s.sent) {
	case history.Told:
		l.drop()
		return true
	case history.Live:
		s.showHeld()
		return false
	}
	l.held = append(l.held, u)
	l.bytes += sizeOf(u.Update)
	if len(l.held) >= maxHeld || l.bytes >= maxHeldBytes {
		s.release()
		return true
	}
	if l.timer == nil {
		var t *time.Timer
		t = time.AfterFunc(holdFor, func() {
			s.order.Lock()
			defer s.order.Unlock()
			if p := s.past; p != nil && p.late.timer == t {
				s.release()
			}
		})
		l.timer = t
	}
	return true
}

// isEcho reports whether an update is the message of a prompt, which an agent of version 2 sends
// for each.
func (s *Session) isEcho(u *acp.Update) bool {
	if u.V2 == nil {
		return false
	}
	var id acp.MessageID
	var content []acp.ContentBlock
	switch u := u.Update.(type) {
	case *acp.UserMessage:
		id = u.MessageID
		content, _ = u.Content.Get()
	case *acp.UserMessageChunk:
		id, content = u.MessageID, []acp.ContentBlock{u.Content}
	default:
		return false
	}
	if id == "" {
		return false
	}
	if slices.Contains(s.echoes, id) {
		return true
	}
	for i, prompt := range s.sent {
		if s.echoes[i] == "" && history.Begins(history.Text(content), prompt) {
			s.echoes[i] = id
			return true
		}
	}
	return false
}

// sizeOf returns about how many bytes an update that is held back takes.
func sizeOf(u acp.SessionUpdate) int {
	size := textSize(u)
	if size < 0 {
		data, err := u.AppendJSON(nil)
		if err != nil {
			return entryBytes
		}
		size = len(data)
	}
	return size + entryBytes
}

// endLate makes what is held back, and all that follows, live.
func (s *Session) endLate() {
	s.showHeld()
	s.past.late.run = new(history.Run)
}

// release shows what is held back without waiting longer. The history may continue.
func (s *Session) release() {
	if l := &s.past.late; len(l.held) > 0 {
		l.run.Release()
		s.showHeld()
	}
}

// showHeld shows what is held back, in order.
func (s *Session) showHeld() {
	held := s.past.late.drop()
	for _, u := range held {
		s.live(u)
	}
}

// drop returns what was held back, and forgets it.
func (l *late) drop() (held []*acp.Update) {
	if l.timer != nil {
		l.timer.Stop()
	}
	held = l.held
	l.held, l.bytes, l.timer = nil, 0, nil
	return held
}

// live records an update that is not history.
func (s *Session) live(u *acp.Update) {
	if !s.heard.Load() && says(u.Update) {
		s.heard.Store(true)
	}
	said := s.callNamed(u.Update)
	s.mu.Lock()
	switch v := u.Update.(type) {
	case *acp.UserMessage:
		s.take(v.MessageID)
	case *acp.UserMessageChunk:
		s.take(v.MessageID)
	case *acp.ConfigOptionUpdate:
		s.told = v.ConfigOptions
	case *acp.SessionInfoUpdate:
		if s.named { // the user's choice stands
			rest := *v
			rest.Title = acp.Patch[string]{}
			said = &rest
		} else {
			v.Title.Apply(&s.title)
		}
	}
	sent := *u
	sent.Update = said
	prefix := s.pieces.take(&sent)
	if _, ok := u.Update.(*acp.UserMessage); ok && u.Synthetic && s.again {
		s.again = false
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	if prefix != "" {
		said = ids.Rename(said, func(_ ids.Space, id string) string { return prefix + id })
	}
	before, own := s.own(said)
	if before != nil {
		s.put(before)
	}
	s.put(own)
	if end := s.endOfOthers(u.Update); end != nil {
		s.putEnd(end)
	}
	s.observe(u.Update)
}

// beginTurn is called before a prompt. What was sent until then is history; what follows is history
// only if it continues that: see [history.Run]. It returns how many turns run, including this one.
func (s *Session) beginTurn(content []acp.ContentBlock) (running int) {
	s.order.Lock()
	defer s.order.Unlock()
	s.merge()
	s.prompted = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
	s.begun++
	if s.turns == 1 {
		s.sent, s.echoes = nil, nil
		clear(s.taken)
	}
	s.expects(content)
	s.asked = title.Better(s.asked, title.Of(content))
	return s.turns
}

// expects notes that a message of the user is sent, which an agent of version 2 confirms. The caller holds the order.
func (s *Session) expects(content []acp.ContentBlock) {
	if len(s.sent) < maxTaken {
		s.sent, s.echoes = append(s.sent, history.Text(content)), append(s.echoes, "")
	}
}

// maxTaken bounds the messages of the user that are known to have been taken while turns run.
const maxTaken = 4096

// take is called with the id of a message of the user: the agent has taken a prompt. The caller holds mu.
func (s *Session) take(id acp.MessageID) {
	if s.taken == nil {
		s.taken = map[acp.MessageID]bool{}
	}
	if len(s.taken) < maxTaken {
		s.taken[id] = true
	}
	if s.awaited[id] != nil {
		close(s.awaited[id])
		delete(s.awaited, id)
	}
}

// messageWithin bounds the wait for the message of a prompt of version 1, which this side makes.
const messageWithin = 5 * time.Second

// untaken reports whether a prompt was cancelled before the agent took it, which the agent says nowhere. id is that
// of its message; "" if the prompt was not sent, or if an agent of version 2 has not answered it. At the bound of what
// is known it counts as taken, since it may have been. It is called while the turn counts: what was taken is forgotten
// when the next one begins.
func (s *Session) untaken(id acp.MessageID) bool {
	s.mu.Lock()
	taken := s.taken[id] || len(s.taken) == maxTaken
	if id == "" || taken || s.client.Conn().Version() != 1 {
		s.mu.Unlock()
		return !taken
	}
	// The prompt was sent, so its message comes: the reply of a prompt whose ctx is done does not wait for that.
	shown := s.awaited[id]
	if shown == nil {
		if s.awaited == nil {
			s.awaited = map[acp.MessageID]chan struct{}{}
		}
		shown = make(chan struct{})
		s.awaited[id] = shown
	}
	s.mu.Unlock()
	select {
	case <-shown:
		return false
	case <-time.After(messageWithin):
	case <-s.host.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.awaited, id)
	return !s.taken[id]
}

// keepUntaken keeps the words of a prompt that nobody has taken.
func (s *Session) keepUntaken(prompt []acp.ContentBlock) {
	s.order.Lock()
	defer s.order.Unlock()
	s.put(history.Untaken(prompt))
}
