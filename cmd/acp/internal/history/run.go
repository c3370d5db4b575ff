package history

import (
	"slices"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// A Verdict says what an update in a running turn is: see [Run.Take].
type Verdict uint8

// The verdicts.
const (
	Live Verdict = iota // it is not history, and neither is what was held before it
	Held                // it may be history: the next updates decide
	Told                // it is history, and so is what was held before it
)

// A Run follows history that an agent replays late, while a turn runs. Nothing in an update
// distinguishes history from a live answer, so a Run compares it with what was kept.
//
// Only the user's words prove anything: an agent repeats what the user said in an earlier turn as
// history or not at all. Such a message begins the run. What the agent says after it is held as
// long as it equals what the kept conversation has at that place, and is history once the run comes
// to the next message of the user. The first update that does not continue the run is live,
// together with what is held and everything after it. An answer that equals a kept one is therefore
// never lost; the price is that the answer at the end of a history that is replayed in a turn is
// shown again.
//
// The zero value regards everything as live. A Run is not safe for concurrent use.
type Run struct {
	turns   []keptTurn
	at      int                   // the turn that is being replayed; -1 before the first
	started bool                  // the agent has replayed something
	follows bool                  // the latest update is a part of the turn at
	over    bool                  // everything from here on is live
	user    userWords             // of the user's message that is being replayed
	turn    turnMatch             // what was replayed of the turn at, after the user's words
	since   []acpv2.SessionUpdate // the same, to compare it with another turn that begins alike
}

// A keptTurn is a message of the user and what follows it.
type keptTurn struct {
	user    string // without white space and without what agents add
	entries []transcript.Entry
}

// A userWords is a message of the user that is replayed, perhaps in pieces.
type userWords struct {
	open    bool // the next piece continues it
	partial bool // it is the beginning of the user's words, or blank
	id      acpv2.MessageID
	text    string
	before  int // the turn that was replayed before it
}

// NewRun returns a Run along a kept conversation. It begins where the history ends that the agent
// has replayed already, which may be empty.
func NewRun(kept, told *transcript.Snapshot) *Run {
	r := &Run{at: -1}
	for e := range kept.Entries() {
		if m, ok := e.(*transcript.Message); ok && m.Role == transcript.RoleUser {
			r.turns = append(r.turns, keptTurn{user: words(m.Text())})
		} else if n := len(r.turns); n > 0 {
			r.turns[n-1].entries = append(r.turns[n-1].entries, e)
		}
	}
	for e := range told.Entries() {
		if m, ok := e.(*transcript.Message); ok && m.Role == transcript.RoleUser {
			if k, whole := r.find(m.Text(), r.at); whole {
				r.begin(k)
			}
		} else if u := e.Update(); u != nil && r.follows {
			r.fits(u) // anything else was added as news
		}
	}
	return r
}

// Take returns the verdict on the next update. The caller must hold back an update that is [Held],
// drop it with the first verdict [Told], and show it before anything else with the first verdict
// [Live]; see also [Run.Release]. asked are the texts of the prompts of the turns that run, which
// an agent may repeat.
func (r *Run) Take(u acpv2.SessionUpdate, asked []string) Verdict {
	if r.over || len(r.turns) == 0 {
		return Live
	}
	switch u := u.(type) {
	case *acpv2.UserMessageChunk:
		text := Text([]acpv2.ContentBlock{u.Content})
		if r.user.open && r.user.id == u.MessageID {
			// If agents name no messages, two in a row look like one.
			return r.say(u.MessageID, r.user.text+text, text, asked)
		}
		return r.say(u.MessageID, text, "", asked)
	case *acpv2.UserMessage:
		blocks, _ := u.Content.Get()
		return r.say(u.MessageID, Text(blocks), "", asked)
	}
	partial := r.user.partial
	r.user = userWords{}
	switch {
	case !r.follows && !partial:
		return Live
	case !partial && r.fits(u):
		return Held
	}
	r.over = r.started
	r.follows = false
	return Live
}

// Release is called when what is held was shown although there was no verdict. The run continues
// with the next kept message of the user.
func (r *Run) Release() {
	r.follows, r.since, r.user = false, nil, userWords{}
}

// begin is called when the agent has replayed the user's words of a turn.
func (r *Run) begin(k int) {
	r.at, r.started, r.follows = k, true, true
	r.turn, r.since = newTurnMatch(r.turns[k].entries), nil
}

// say applies words of the user, or the last piece of them, which may be a message of its own.
func (r *Run) say(id acpv2.MessageID, all, piece string, asked []string) Verdict {
	before := r.at
	if r.user.open && r.user.id == id {
		before = r.user.before
	}
	k, whole := r.find(all, before)
	if k < 0 && letters(piece, 1) > 0 {
		all, before = piece, r.at
		k, whole = r.find(all, before)
	}
	r.user = userWords{open: true, id: id, text: all, before: before, partial: !whole}
	switch {
	case k < 0 && letters(all, 1) > 0:
		r.over = r.started
		r.follows, r.user = false, userWords{}
		return Live
	case !whole:
		return Held
	}
	r.begin(k)
	if slices.ContainsFunc(asked, func(prompt string) bool { return Begins(all, prompt) }) {
		return Held // history, or an echo
	}
	return Told
}

// find returns the turn that begins with words of the user, the next one after before if there are
// several, or -1. If whole is false the words are only the beginning of what the user said.
func (r *Run) find(said string, before int) (k int, whole bool) {
	told := words(said)
	if told == "" {
		return -1, false
	}
	part, within := -1, -1
	for i := range r.turns {
		k := (before + 1 + i) % len(r.turns)
		kept := r.turns[k].user
		switch {
		case kept == told:
			return k, true
		case part < 0 && strings.HasPrefix(kept, told):
			part = k
		case within < 0 && letters(kept, minFar) == minFar && strings.Contains(told, kept):
			within = k
		}
	}
	if within >= 0 {
		return within, true
	}
	return part, false
}

// words returns what the user said, in a form that can be compared.
func words(said string) string {
	if w := squeeze(unwrap(said)); w != "" {
		return w
	}
	return squeeze(said)
}

// fits reports whether an update is what was kept next in the turn, or else in a later turn that
// begins with the same words.
func (r *Run) fits(u acpv2.SessionUpdate) bool {
	if r.turn.take(u) {
		r.since = append(r.since, u)
		return true
	}
	since := append(r.since, u)
	tries := 0
	for k := r.at + 1; k < len(r.turns) && tries < maxNear; k++ {
		if r.turns[k].user != r.turns[r.at].user {
			continue
		}
		tries++
		m := newTurnMatch(r.turns[k].entries)
		if !slices.ContainsFunc(since, func(u acpv2.SessionUpdate) bool { return !m.take(u) }) {
			r.at, r.turn, r.since = k, m, since
			return true
		}
	}
	// What does not fit may have been applied in part.
	r.turn = newTurnMatch(r.turns[r.at].entries)
	for _, u := range r.since {
		r.turn.take(u)
	}
	return false
}

// A turnMatch compares what is replayed of a turn with what was kept of it. Messages are replayed
// in order, tool calls in any order; either may be left out.
type turnMatch struct {
	said, thought stream
	calls         []*transcript.ToolCall
	others        map[string]bool // what is neither a message nor a tool call
	used          []bool          // of calls
	told          map[string]bool // ids of calls and terminals that fit
}

// newTurnMatch returns a comparison with one kept turn.
func newTurnMatch(entries []transcript.Entry) turnMatch {
	m := turnMatch{others: map[string]bool{}, told: map[string]bool{}}
	for _, e := range entries {
		switch e := e.(type) {
		case *transcript.Message:
			s := &m.said
			if e.Role == transcript.RoleThought {
				s = &m.thought
			}
			if text := squeeze(e.Text()); text != "" {
				s.kept = append(s.kept, text)
			}
		case *transcript.ToolCall:
			m.calls = append(m.calls, e)
		default:
			m.others[whole(e)] = true
		}
	}
	m.used = make([]bool, len(m.calls))
	return m
}

// take reports whether an update fits. After one that does not the turnMatch must not be used.
func (m *turnMatch) take(u acpv2.SessionUpdate) bool {
	piece := func(s *stream, id acpv2.MessageID, b acpv2.ContentBlock) bool {
		t, ok := b.(*acpv2.TextContent)
		return ok && s.take(id, squeeze(t.Text), false)
	}
	message := func(s *stream, id acpv2.MessageID, content acpv2.Patch[[]acpv2.ContentBlock]) bool {
		blocks, ok := content.Get()
		return !ok || s.take(id, squeeze(Text(blocks)), true)
	}
	switch u := u.(type) {
	case *acpv2.AgentMessageChunk:
		return piece(&m.said, u.MessageID, u.Content)
	case *acpv2.AgentThoughtChunk:
		return piece(&m.thought, u.MessageID, u.Content)
	case *acpv2.AgentMessage:
		return message(&m.said, u.MessageID, u.Content)
	case *acpv2.AgentThought:
		return message(&m.thought, u.MessageID, u.Content)
	case *acpv2.ToolCallContentChunk:
		return m.told["call "+string(u.ToolCallID)]
	case *acpv2.TerminalOutputChunk:
		return m.told["terminal "+string(u.TerminalID)]
	case *acpv2.ToolCallUpdate:
		return m.takeCall(u)
	}
	e := entryOf(u)
	if e == nil {
		return true // it says nothing
	}
	id := "terminal " + e.EntryID()
	_, isTerminal := e.(*transcript.Terminal)
	if isTerminal && m.told[id] {
		return true
	}
	fits := m.others[whole(e)]
	if fits && isTerminal {
		m.told[id] = true
	}
	return fits
}

// takeCall applies an update of a tool call, which may come in any order.
func (m *turnMatch) takeCall(u *acpv2.ToolCallUpdate) bool {
	id := "call " + string(u.ToolCallID)
	if m.told[id] {
		return true
	}
	call, ok := entryOf(u).(*transcript.ToolCall)
	if !ok {
		return false
	}
	use := func(fits func(*transcript.ToolCall) bool) bool {
		for i, kept := range m.calls {
			if !m.used[i] && fits(kept) {
				m.used[i], m.told[id] = true, true
				return true
			}
		}
		return false
	}
	for _, key := range []func(transcript.Entry) string{does, input, title, touches} {
		if k := key(call); k != "" && use(func(kept *transcript.ToolCall) bool { return key(kept) == k }) {
			return true
		}
	}
	return use(func(kept *transcript.ToolCall) bool {
		return kept.ID == call.ID && (similar(kept, call) || len(kept.ID) >= longID)
	})
}

// entryOf returns the entry that an update makes on its own, or nil if it makes none.
func entryOf(u acpv2.SessionUpdate) transcript.Entry {
	c := transcript.New(transcript.Config{})
	c.Apply(u)
	for e := range c.Snapshot().Entries() {
		return e
	}
	return nil
}

// A stream compares messages with those that were kept, as they are replayed piece by piece. All
// texts are without white space.
type stream struct {
	kept  []string
	next  int    // the kept message after the one that is being replayed
	rest  string // of that one
	begun bool   // a message was replayed, of which:
	id    acpv2.MessageID
	first int    // the kept message that it begins with
	told  []byte // its text
}

// take applies a piece of a message, or all of it.
func (s *stream) take(id acpv2.MessageID, text string, all bool) bool {
	same := s.begun && s.id == id
	switch {
	case text == "":
		return true
	case same && all:
		s.told = append(s.told[:0], text...)
		return s.seek(s.first)
	case same:
		s.told = append(s.told, text...)
		return s.eat(text) || s.seek(s.first+1)
	}
	s.begun, s.id, s.first = true, id, max(s.next-1, 0)
	s.told = append(s.told[:0], text...)
	return s.rest != "" && s.eat(text) || s.seek(s.next)
}

// eat continues with the kept message that is being replayed, and those after it.
func (s *stream) eat(text string) bool {
	rest, next := s.rest, s.next
	for {
		n := min(len(rest), len(text))
		if rest[:n] != text[:n] {
			return false
		}
		rest, text = rest[n:], text[n:]
		if text == "" {
			s.rest, s.next = rest, next
			return true
		}
		if next == len(s.kept) {
			return false
		}
		rest = s.kept[next]
		next++
	}
}

// seek looks for the message from a place on.
func (s *stream) seek(from int) bool {
	for k := from; k < min(len(s.kept), from+maxNear); k++ {
		was := *s
		s.first, s.next, s.rest = k, k, ""
		if s.eat(string(s.told)) {
			return true
		}
		*s = was
	}
	return false
}
