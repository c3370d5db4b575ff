package gateway

import (
	"context"

	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

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
	if before, err := s.begun(t); before != nil || err != nil {
		return before, s.unavailable(ctx, err)
	}
	return t, s.enqueue(t)
}

// begun returns the turn of a prompt that was sent before under the same name, or nil.
func (s *session) begun(t *turn) (*turn, error) {
	raw, err := records.RawPrompt(t.content)
	if err != nil {
		return nil, err
	}
	running := s.turnOf(t.by, t.operation)
	op, known := s.state.operation(operationKey{t.by, t.operation})
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

// finish keeps that a prompt with a name was cancelled before it began: otherwise the log would not have it.
func (s *session) finish(t *turn, end turnEnd) turnEnd {
	if t.operation == "" || t.begun > 0 || end.err != nil || s.given() {
		return end
	}
	raw, err := records.RawPrompt(t.content)
	if err == nil {
		end.seq, err = s.log.commit(s.ctx, kindDropped, encode(droppedRecord{string(t.id), t.by, t.operation, promptSum(raw)}))
	}
	if err != nil {
		s.logger().Warn("gateway: what became of a prompt cannot be kept", "error", err)
	}
	return end
}
