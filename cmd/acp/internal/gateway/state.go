package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// maxOperations bounds the prompts with a name of which a session knows what became: the last ones.
const maxOperations = 1024

// A state is what the log says of a session. It is made of the records in their order, of those before the session
// was claimed and of those that are kept since; nothing else changes it. The zero value is a session without records.
// The methods may be called from any goroutine.
type state struct {
	mu     sync.Mutex
	prompt records.Prompt // whose turn has not ended; without what it says
	ended  string         // the state that the last turn has left; "" if there was none
	by     map[operationKey]*operation
	order  []operationKey
	runs   map[acp.MessageID]operationKey // those that have not ended
}

// An operationKey is the name that a principal's client has given to a prompt, so that it runs once however often it
// is sent.
type operationKey struct{ by, name string }

// An operation is a prompt with a name.
type operation struct {
	id  acp.MessageID
	sum string   // of what it says
	end *turnEnd // nil while its turn has not ended
}

// apply takes the next record. One of the wrong form says nothing.
func (s *state) apply(r *engine.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Kind {
	case kindPrompt:
		p, err := records.DecodePrompt(r.Data)
		if err != nil {
			return
		}
		s.prompt = records.Prompt{ID: p.ID, By: p.By}
		if p.Operation != "" {
			s.note(operationKey{p.By, p.Operation}, &operation{id: acp.MessageID(p.ID), sum: promptSum(p.Raw)})
		}
	case kindDropped:
		var d droppedRecord
		if json.Unmarshal(r.Data, &d) == nil {
			s.note(operationKey{d.By, d.Operation}, &operation{id: acp.MessageID(d.ID), sum: d.Sum, end: &turnEnd{stop: acp.StopCancelled, refused: true, seq: r.Seq}})
		}
	case kindEnd:
		end, err := records.DecodeEnd(r.Data)
		if err != nil {
			return
		}
		s.prompt, s.ended = records.Prompt{}, end.State()
		id := acp.MessageID(end.Prompt)
		if key, ok := s.runs[id]; ok {
			outcome := outcomeOfEnd(&end, r.Seq)
			s.by[key].end = &outcome
			delete(s.runs, id)
		}
	}
}

// note notes what has become of a prompt with a name. The caller holds mu.
func (s *state) note(key operationKey, op *operation) {
	if s.by == nil {
		s.by, s.runs = map[operationKey]*operation{}, map[acp.MessageID]operationKey{}
	}
	was := s.by[key]
	if was == nil {
		s.order = append(s.order, key)
	} else {
		delete(s.runs, was.id)
	}
	if s.by[key] = op; op.end == nil {
		s.runs[op.id] = key
	}
	for len(s.order) > maxOperations {
		delete(s.runs, s.by[s.order[0]].id)
		delete(s.by, s.order[0])
		s.order = s.order[1:]
	}
}

// operation returns a copy of what is known of a prompt with a name.
func (s *state) operation(key operationKey) (operation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := s.by[key]
	if op == nil {
		return operation{}, false
	}
	return *op, true
}

// promptSum returns a hash of what a prompt says, by which a name that is used for another one is noticed.
func promptSum(raw json.RawMessage) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// setState keeps the state of the session.
func (s *session) setState(ctx context.Context, state string) error {
	err := s.update(ctx, func(info *engine.Session) { info.State = state })
	if err == nil {
		s.mu.Lock()
		s.info.State = state
		s.mu.Unlock()
	}
	return err
}

// stated is called when a record has set the state of the session.
func (s *session) stated(state string) {
	s.mu.Lock()
	s.info.State, s.info.Updated = state, time.Now()
	s.mu.Unlock()
	s.g.changed(s.id)
}
