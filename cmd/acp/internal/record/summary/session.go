package summary

import (
	"container/list"
	"slices"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/record/frame"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/trace"
	"github.com/goacp/acp/transcript"
)

// sessions keeps conversations; the one that changed least recently comes first.
type sessions struct {
	byID    map[string]*list.Element // of *session
	recent  list.List
	opened  int64
	changes int64 // of all
	wanted  func(id string) bool
}

// Prefer makes the follower keep sessions that are wanted rather than others, whichever changed last.
func (f *Follower) Prefer(wanted func(id string) bool) { f.sessions.wanted = wanted }

// Opened returns how many sessions occurred. One that occurs again when it is not kept any more counts once more.
func (f *Follower) Opened() int64 { return f.sessions.opened }

// dropOne forgets the session that changed least recently, of those that are not wanted if there is one.
func (s *sessions) dropOne() {
	least := s.recent.Front()
	for e := least; s.wanted != nil && e != nil; e = e.Next() {
		if !s.wanted(e.Value.(*session).id) {
			least = e
			break
		}
	}
	delete(s.byID, s.recent.Remove(least).(*session).id)
}

type session struct {
	id           string
	number       int64 // in the order of first sight
	conversation *transcript.Conversation
	changes      int64
}

// A Session is one that frames were about.
type Session struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Changes int64  `json:"changes"` // grows whenever its conversation changes
}

// Sessions returns the sessions whose conversations are kept, in the order in which they first
// occurred.
func (f *Follower) Sessions() []Session {
	byNumber := map[int64]*session{}
	numbers := make([]int64, 0, f.sessions.recent.Len())
	for e := f.sessions.recent.Front(); e != nil; e = e.Next() {
		s := e.Value.(*session)
		byNumber[s.number] = s
		numbers = append(numbers, s.number)
	}
	slices.Sort(numbers)
	out := make([]Session, 0, len(numbers))
	for _, n := range numbers {
		s := byNumber[n]
		out = append(out, Session{ID: s.id, Title: cut(s.conversation.Snapshot().Session().Title), Changes: s.changes})
	}
	return out
}

// Changes returns a number that grows whenever what Sessions returns changes.
func (f *Follower) Changes() int64 { return f.sessions.changes }

// Transcript returns the conversation of a session and the number of its changes, or nil if it is
// not kept. Any goroutine may read it.
func (f *Follower) Transcript(id string) (*transcript.Snapshot, int64) {
	e, ok := f.sessions.byID[id]
	if !ok {
		return nil, 0
	}
	s := e.Value.(*session)
	return s.conversation.Snapshot(), s.changes
}

// get returns the session with an id, and makes it if there is none.
func (s *sessions) get(id string) *session {
	if e, ok := s.byID[id]; ok {
		s.recent.MoveToBack(e)
		return e.Value.(*session)
	}
	if s.byID == nil {
		s.byID = map[string]*list.Element{}
	}
	if s.recent.Len() >= MaxSessions {
		s.dropOne()
	}
	s.opened++
	s.changes++
	n := &session{id: id, number: s.opened, conversation: newConversation()}
	s.byID[id] = s.recent.PushBack(n)
	return n
}

// touch records that a conversation has changed.
func (f *Follower) touch(s *session) {
	s.changes++
	f.sessions.changes++
}

func newConversation() *transcript.Conversation {
	return transcript.New(transcript.Config{TotalBytes: MaxConversation})
}

// fold applies a request or notification to the conversation of its session. It returns the number
// of the entry of a question, and none for anything else.
func (f *Follower) fold(dir trace.Direction, e *frame.Envelope, id string) (entry uint64) {
	if len(id) > maxName {
		return none
	}
	entry = none
	s := f.sessions.get(id)
	switch {
	case dir == trace.ToClient && e.Method == "session/update":
		f.update(s, e.Params)
	case dir == trace.ToClient && e.Method == "session/request_permission" && e.ID != nil:
		entry = f.asked(s, e.Params)
	case dir == trace.ToAgent && e.Method == "session/load" && f.version != 2:
		// The history follows from its beginning.
		s.conversation = newConversation()
		f.touch(s)
	case dir == trace.ToAgent && e.Method == "session/prompt" && f.version != 2:
		var p acpv1.PromptRequest
		if p.UnmarshalJSON(e.Params) == nil {
			s.conversation.PromptedV1(p.Prompt)
			f.touch(s)
		}
	}
	return entry
}

// none is the number of no entry.
const none = ^uint64(0)

// update applies an update to the conversation of its session.
func (f *Follower) update(s *session, params []byte) {
	if f.version == 2 {
		var n acpv2.UpdateSessionNotification
		if n.UnmarshalJSON(params) == nil {
			s.conversation.Apply(n.Update)
			f.touch(s)
		}
		return
	}
	var n acpv1.SessionNotification
	if n.UnmarshalJSON(params) == nil {
		s.conversation.ApplyV1(n.Update)
		f.touch(s)
	}
}

// asked adds a permission request to the conversation, and returns the number of its entry, or
// none.
func (f *Follower) asked(s *session, params []byte) uint64 {
	var req acpv2.RequestPermissionRequest
	if f.version == 2 {
		if req.UnmarshalJSON(params) != nil {
			return none
		}
	} else {
		var v1 acpv1.RequestPermissionRequest
		if v1.UnmarshalJSON(params) != nil {
			return none
		}
		req = translate.PermissionFromV1(v1)
	}
	entry, _ := s.conversation.Asked(&req)
	f.touch(s)
	return entry
}

// answered applies the answer to a request.
func (f *Follower) answered(req *request, result []byte, it *Item) {
	switch req.method {
	case "initialize", "proxy/initialize", "_proxy/initialize":
		f.version = version(result)
		return
	case "session/new", "session/fork":
		if id := frame.Member(result, "sessionId"); id != "" && len(id) <= maxName {
			it.Session = id
		}
	}
	if it.Session == "" || len(it.Session) > maxName {
		return
	}
	s := f.sessions.get(it.Session)
	switch req.method {
	case "session/new", "session/fork", "session/load", "session/resume":
		f.opened(s, result)
	case "session/prompt":
		var res acpv1.PromptResponse
		if f.version != 2 && res.UnmarshalJSON(result) == nil {
			s.conversation.EndedV1(&res)
			f.touch(s)
		}
	case "session/request_permission":
		f.decided(s, req.entry, result)
	}
}

// opened applies the settings in the answer that opens a session.
func (f *Follower) opened(s *session, result []byte) {
	if f.version == 2 {
		var res acpv2.NewSessionResponse // a resumed session answers with the same settings
		res.UnmarshalJSON(result)
		if len(res.ConfigOptions) > 0 {
			s.conversation.Apply(&acpv2.ConfigOptionUpdate{ConfigOptions: res.ConfigOptions})
		}
		if len(res.AvailableCommands) > 0 {
			s.conversation.Apply(&acpv2.AvailableCommandsUpdate{AvailableCommands: res.AvailableCommands})
		}
		f.touch(s)
		return
	}
	var res acpv1.LoadSessionResponse
	if res.UnmarshalJSON(result) == nil && (res.Modes != nil || len(res.ConfigOptions) > 0 || res.Unknown != nil) {
		s.conversation.OpenedV1(res.Modes, res.ConfigOptions, res.Unknown)
		f.touch(s)
	}
}

// decided applies the answer to a permission request.
func (f *Follower) decided(s *session, entry uint64, result []byte) {
	if entry == none {
		return
	}
	var outcome acpv2.RequestPermissionOutcome
	if f.version == 2 {
		var res acpv2.RequestPermissionResponse
		if res.UnmarshalJSON(result) != nil {
			return
		}
		outcome = res.Outcome
	} else {
		var res acpv1.RequestPermissionResponse
		if res.UnmarshalJSON(result) != nil {
			return
		}
		outcome = translate.PermissionOutcomeFromV1(res.Outcome)
	}
	if outcome != nil {
		s.conversation.Answered(entry, outcome)
		f.touch(s)
	}
}

// version returns the version that an agent answers with, or 0.
func version(result []byte) int {
	switch raw(result, "protocolVersion") {
	case "1":
		return 1
	case "2":
		return 2
	}
	return 0
}
