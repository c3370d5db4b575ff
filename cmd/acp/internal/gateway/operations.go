package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// maxOperations bounds the prompts with a name of which a session knows what became: the last ones.
const maxOperations = 1024

// An operationKey is the name that a principal's client has given to a prompt, so that it runs once however often it is sent.
type operationKey struct{ by, name string }

// An operation is a prompt with a name.
type operation struct {
	id  acp.MessageID
	sum string   // of what it says
	end *turnEnd // nil while its turn has not ended, as far as is known
}

// operations are what a session knows of its prompts with names, from the log. The zero value is ready for use. Its methods
// may be called from any goroutine.
type operations struct {
	mu     sync.Mutex
	loaded bool
	by     map[operationKey]*operation
	order  []operationKey
	ids    map[acp.MessageID]operationKey // of those that have not ended
	early  map[acp.MessageID]turnEnd      // of an adopted turn, which ends before the log is read
}

// begins notes a prompt, which may have ended already without having been in the log.
func (o *operations) begins(key operationKey, op *operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begin(key, op)
}

// begin is begins for callers that hold mu.
func (o *operations) begin(key operationKey, op *operation) {
	if o.by == nil {
		o.by, o.ids = map[operationKey]*operation{}, map[acp.MessageID]operationKey{}
	}
	if o.by[key] == nil {
		o.order = append(o.order, key)
	}
	if o.by[key] = op; op.end == nil {
		o.ids[op.id] = key
	} else {
		delete(o.ids, op.id)
	}
	for len(o.order) > maxOperations {
		if old := o.by[o.order[0]]; old != nil {
			delete(o.ids, old.id)
		}
		delete(o.by, o.order[0])
		o.order = o.order[1:]
	}
}

// ends notes what became of a prompt.
func (o *operations) ends(id acp.MessageID, end turnEnd) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.end(id, end) && !o.loaded {
		o.early = map[acp.MessageID]turnEnd{id: end}
	}
}

// end is ends for callers that hold mu. It reports false for a prompt that is not known, or has ended.
func (o *operations) end(id acp.MessageID, end turnEnd) bool {
	key, ok := o.ids[id]
	if ok {
		o.by[key].end = &end
		delete(o.ids, id)
	}
	return ok
}

// find returns a copy of what is known of a prompt.
func (o *operations) find(key operationKey) (operation, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	op := o.by[key]
	if op == nil {
		return operation{}, false
	}
	return *op, true
}

// read takes a record of the log.
func (o *operations) read(r *engine.Record) error {
	switch r.Kind {
	case kindPrompt:
		p, err := records.DecodePrompt(r.Data)
		if err == nil && p.Operation != "" {
			o.begin(operationKey{p.By, p.Operation}, &operation{id: acp.MessageID(p.ID), sum: promptSum(p.Raw)})
		}
		return err
	case kindDropped:
		var d droppedRecord
		err := json.Unmarshal(r.Data, &d)
		if err == nil {
			o.begin(operationKey{d.By, d.Operation}, &operation{id: acp.MessageID(d.ID), sum: d.Sum, end: &turnEnd{stop: acp.StopCancelled, refused: true, seq: r.Seq}})
		}
		return err
	case kindEnd:
		end, err := records.DecodeEnd(r.Data)
		if err == nil {
			o.end(acp.MessageID(end.Prompt), outcomeOfEnd(&end, r.Seq))
		}
		return err
	}
	return nil
}

// loadOperations reads the log, once. What was noted meanwhile is newer.
func (s *session) loadOperations(ctx context.Context) error {
	o := &s.operations
	o.mu.Lock()
	loaded := o.loaded
	o.mu.Unlock()
	if loaded {
		return nil
	}
	var was operations
	if err := s.g.cfg.Log.Fold(ctx, s.id, 0, func(r engine.Record) error { return was.read(&r) }); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := operations{by: o.by, order: o.order}
	o.by, o.order, o.ids, o.loaded = was.by, was.order, was.ids, true
	for _, key := range now.order {
		o.begin(key, now.by[key])
	}
	for id, end := range o.early {
		o.end(id, end)
	}
	o.early = nil
	return nil
}

// promptSum returns a hash of what a prompt says, by which a name that is used for another one is noticed.
func promptSum(raw json.RawMessage) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// submit implements place.
func (s *session) submit(ctx context.Context, t *turn) (*turn, error) {
	if t.operation == "" {
		return t, s.enqueue(t)
	}
	select { // one by one: of two that are the same the second one must find the first in the queue
	case s.submitting <- struct{}{}:
		defer func() { <-s.submitting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := s.room(); err != nil {
		return nil, err
	}
	if before, err := s.begun(ctx, t); before != nil || err != nil {
		return before, s.unavailable(ctx, err)
	}
	return t, s.enqueue(t)
}

// begun returns the turn of a prompt that was sent before under the same name, or nil.
func (s *session) begun(ctx context.Context, t *turn) (*turn, error) {
	raw, err := records.RawPrompt(t.content)
	if err == nil {
		err = s.loadOperations(ctx)
	}
	if err != nil {
		return nil, err
	}
	running := s.turnOf(t.by, t.operation)
	op, known := s.operations.find(operationKey{t.by, t.operation})
	if running != nil && !known { // it waits
		of, err := records.RawPrompt(running.content)
		if err != nil {
			return nil, err
		}
		op.sum = promptSum(of)
	}
	switch {
	case running == nil && !known:
		return nil, nil
	case op.sum != promptSum(raw):
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the operation %q was another prompt", t.operation)
	case running != nil:
		return running, nil
	case op.end == nil:
		return nil, outcomeUnknown()
	}
	ended := &turn{id: op.id, done: make(chan struct{}), cancel: func(error) {}}
	ended.settle(*op.end)
	return ended, nil
}

// turnOf returns the turn of an operation that has not ended.
func (s *session) turnOf(by, operation string) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.queue {
		if t.by == by && t.operation == operation {
			return t
		}
	}
	return nil
}

// finish keeps what became of a prompt with a name. One that was cancelled before it began is not in the log otherwise.
func (s *session) finish(t *turn, end turnEnd) {
	if t.operation == "" || s.given() || errors.Is(end.err, errGone) {
		return
	}
	if t.begun > 0 {
		s.operations.ends(t.id, end)
		return
	}
	raw, err := records.RawPrompt(t.content)
	if err != nil {
		return
	}
	op := &operation{id: t.id, sum: promptSum(raw), end: &end}
	if end.err == nil {
		seq, err := s.log.commit(s.ctx, kindDropped, encode(droppedRecord{string(t.id), t.by, t.operation, op.sum}))
		if err != nil {
			s.logger().Warn("gateway: what became of a prompt cannot be kept", "error", err)
		}
		op.end.seq = seq
	}
	s.operations.begins(operationKey{t.by, t.operation}, op)
}
