package relay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
)

// arrived looks at a message of the far side and returns what the near side gets, or nil.
func (s *steady) arrived(data []byte) []byte {
	var m message
	if json.Unmarshal(data, &m) != nil {
		return data
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case m.Method == "session/update":
		if bytes.Contains(m.Params, []byte(ownmeta.Key)) {
			params := objectOf(m.Params)
			s.at(text(params["sessionId"]), params["_meta"])
			if state := objectOf(params["update"]); text(state["sessionUpdate"]) == "state_update" && text(state["state"]) == "idle" {
				s.isOver(text(params["sessionId"]))
			}
		}
	case m.Method == "" && len(m.ID) > 0:
		s.isAnswered(&m)
	case m.Method == "$/cancel_request":
		return s.withdrawn(&m, data)
	case len(m.ID) > 0:
		return s.isAsked(&m, data)
	}
	return data
}

// at remembers the position of a session. The caller holds s.mu.
func (s *steady) at(id string, meta json.RawMessage) {
	position := positionOf(meta)
	if position == nil {
		return
	}
	s.gateway = true
	if x := s.sessions[id]; x != nil {
		x.position = position
	}
}

// answered forgets a request of the near side that has an answer, and returns it, or nil. The caller holds s.mu.
func (s *steady) answered(id string) *waiting {
	w := s.pending[id]
	if w != nil {
		delete(s.pending, id)
		s.size -= len(w.data)
	}
	return w
}

// isAnswered is called with the answer to a request of the near side. The caller holds s.mu.
func (s *steady) isAnswered(m *message) {
	w := s.answered(string(m.ID))
	if w == nil {
		return
	}
	result := objectOf(m.Result)
	switch w.method {
	case "initialize":
		var said struct{ Gateway bool }
		s.gateway = ownmeta.Read(result["_meta"], &said) && said.Gateway || s.gateway
	case "session/new", "session/fork":
		var sent message
		if json.Unmarshal(w.data, &sent) == nil && len(m.Error) == 0 {
			w.session = text(result["sessionId"])
			s.begin(w.session, objectOf(sent.Params))
		}
	case "session/prompt":
		if len(m.Error) > 0 || len(result["stopReason"]) > 0 {
			s.isOver(w.session)
		}
	case "session/close", "session/delete":
		if len(m.Error) == 0 {
			delete(s.sessions, w.session)
		}
	case "session/load", "session/resume":
		if len(m.Error) > 0 {
			delete(s.sessions, w.session)
		}
	}
	s.at(w.session, result["_meta"])
}

// isAsked is called with a request of the agent's. The caller holds s.mu.
func (s *steady) isAsked(m *message, data []byte) []byte {
	params := objectOf(m.Params)
	delete(params, "_meta")
	about := marshal(params) // with its members sorted
	for _, a := range s.asks {
		if a.far != nil || a.method != m.Method || !bytes.Equal(a.about, about) {
			continue
		}
		a.far = bytes.Clone(m.ID)
		if a.answer != nil {
			s.drop(a)
			answer := objectOf(a.answer)
			stream := s.stream
			line := (&message{ID: a.far, Result: answer["result"], Error: answer["error"]}).line()
			go func() { _ = stream.WriteFrame(line) }() // that it fails is noticed by the reader
			return nil
		}
		s.byFar[string(a.far)] = a
		return nil // the near side has it
	}
	a := &steadyAsk{near: bytes.Clone(m.ID), far: bytes.Clone(m.ID), method: m.Method, about: about}
	if s.generation > 0 { // ids begin anew with each connection
		a.near = marshal(fmt.Sprintf("acp-%d-%s", s.generation, m.ID))
		data = (&message{ID: a.near, Method: m.Method, Params: m.Params}).line()
	}
	if len(s.asks) < MaxAsked {
		s.asks[string(a.near)], s.byFar[string(a.far)] = a, a
	}
	return data
}

// withdrawn is called when the agent withdraws a request. The caller holds s.mu.
func (s *steady) withdrawn(m *message, data []byte) []byte {
	params := objectOf(m.Params)
	a := s.byFar[string(params["requestId"])]
	if a == nil {
		return data
	}
	params["requestId"] = a.near
	return (&message{Method: m.Method, Params: marshal(params)}).line()
}

// isState reports whether a message says in which state the session is that a request with params is about.
func isState(m *message, params json.RawMessage) bool {
	if m.Method != "session/update" {
		return false
	}
	said := objectOf(m.Params)
	return bytes.Equal(said["sessionId"], objectOf(params)["sessionId"]) && text(objectOf(said["update"])["sessionUpdate"]) == "state_update"
}
