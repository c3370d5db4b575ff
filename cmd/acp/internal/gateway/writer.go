package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// maxUnwritten bounds what of a session waits to be kept, in bytes. At the bound the agent waits.
const maxUnwritten = 1 << 20

// A writer appends the records of a session, in the order in which they come. What cannot be written is tried again by the log.
type writer struct {
	own  *engine.Owned
	ctx  context.Context // until the session is given up, or a gateway that closes has waited long enough
	fail func(error)     // called once, with why nothing more can be written
	// state takes the records that are kept, before those who wait for them.
	state *state
	// stated is called with the state that the session has from now on, before those who wait for the record; nil for nobody.
	stated func(state string)
	// observe is called before records are appended; what it returns is called with the outcome. It may be nil.
	observe func([]engine.Record) func(error)

	mu    sync.Mutex
	bytes int
	err   error
	room  notice // that something was kept
	asked records.Questions
}

// entryCost is what a record counts beyond its data.
const entryCost = 128

func newWriter(ctx context.Context, own *engine.Owned, state *state, asked records.Questions, fail func(error)) *writer {
	w := &writer{own: own, ctx: ctx, fail: fail, state: state, asked: asked}
	context.AfterFunc(ctx, func() { w.end(context.Cause(ctx)) })
	return w
}

// put adds a record. It waits while too much waits to be kept. done, unless it is nil, is called once the record is kept, or
// will not be.
func (w *writer) put(ctx context.Context, kind engine.Kind, data []byte, done func(seq uint64, err error)) error {
	return w.add(ctx, "", done, engine.Record{Kind: kind, Data: data})
}

// add is put for records that follow one another, which are kept together unless they are too large for that. The session has a state then, unless it is "".
func (w *writer) add(ctx context.Context, state string, done func(seq uint64, err error), records ...engine.Record) error {
	size := 0
	for _, r := range records {
		size += len(r.Data) + entryCost
	}
	ended := func(error) {}
	if w.observe != nil {
		ended = w.observe(records)
	}
	if err := w.append(ctx, records, size, func(all []engine.Record, err error) {
		seq := w.kept(all, err)
		w.mu.Lock()
		w.bytes -= size
		w.room.give()
		w.mu.Unlock()
		ended(err)
		if err == nil && state != "" && w.stated != nil {
			w.stated(state)
		}
		if done != nil {
			done(seq, err)
		}
		if err != nil {
			w.end(err)
		}
	}); err != nil {
		ended(err)
		return err
	}
	return nil
}

// kept is called with records that are kept, unless err says why they are not. It returns the number of the last one.
func (w *writer) kept(all []engine.Record, err error) (seq uint64) {
	if err != nil {
		return 0
	}
	for i := range all {
		w.state.apply(&all[i])
		seq = all[i].Seq
	}
	return seq
}

// decides returns records without decisions on questions that have one: the first one counts. The caller holds w.mu.
func (w *writer) decides(all []engine.Record) []engine.Record {
	if !slices.ContainsFunc(all, func(r engine.Record) bool { return r.Kind == kindAsk || r.Kind == kindAnswer }) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(r engine.Record) bool { return !w.asked.Apply(&r) })
}

// open reports whether a question has no decision.
func (w *writer) open(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked.Has(id)
}

// withdrawn returns the decisions on questions that are open and that nobody deals with: nobody will answer them.
func (w *writer) withdrawn(dealtWith func(id string) bool) (all []engine.Record) {
	w.mu.Lock()
	asked := slices.Clone(w.asked)
	w.mu.Unlock()
	asked = slices.DeleteFunc(asked, func(a records.Asked) bool { return dealtWith(a.ID) })
	for _, a := range asked[:min(len(asked), maxQuestions)] {
		r := records.Decided{ID: a.ID, Outcome: records.Cancelled, Title: clip(a.Title)}
		all = append(all, engine.Record{Kind: kindAnswer, Data: encode(r)})
	}
	return all
}

// append waits for room and appends records.
func (w *writer) append(ctx context.Context, records []engine.Record, size int, kept func([]engine.Record, error)) error {
	w.mu.Lock()
	for w.err == nil && w.bytes > 0 && w.bytes+size > maxUnwritten {
		room := w.room.wait()
		w.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		w.mu.Lock()
	}
	// With the lock, so that nothing of the agent's comes between. If one of several is not kept, the last one is not either.
	err := w.err
	if records = w.decides(records); len(records) == 0 && err == nil {
		w.bytes += size
		w.mu.Unlock()
		kept(nil, nil)
		return nil
	}
	for left := size; err == nil && len(records) > 1 && left > engine.MaxData; records = records[1:] {
		left -= len(records[0].Data) + entryCost
		err = w.own.Add(records[:1], func(all []engine.Record, err error) { w.kept(all, err) })
	}
	if err == nil {
		err = w.own.Add(records, kept)
	}
	if err == nil {
		w.bytes += size
	}
	w.mu.Unlock()
	if err != nil {
		w.end(err)
	}
	return err
}

// commit adds a record and waits until it is kept.
func (w *writer) commit(ctx context.Context, kind engine.Kind, data []byte) (uint64, error) {
	return w.commitAll(ctx, engine.Record{Kind: kind, Data: data})
}

// commitAll is commit for records that follow one another, and returns the number of the last one: see add.
func (w *writer) commitAll(ctx context.Context, records ...engine.Record) (uint64, error) {
	return w.commitState(ctx, "", records...)
}

// commitState is commitAll for records with which the session has another state.
func (w *writer) commitState(ctx context.Context, state string, records ...engine.Record) (uint64, error) {
	type outcome struct {
		seq uint64
		err error
	}
	done := make(chan outcome, 1)
	if err := w.add(ctx, state, func(seq uint64, err error) { done <- outcome{seq, err} }, records...); err != nil {
		return 0, err
	}
	select {
	case o := <-done:
		return o.seq, o.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-w.ctx.Done():
		return 0, context.Cause(w.ctx)
	}
}

// end makes everything fail that comes later.
func (w *writer) end(err error) {
	w.mu.Lock()
	first := w.err == nil
	if first {
		w.err = err
	}
	w.room.give()
	w.mu.Unlock()
	if first {
		w.fail(err)
	}
}

// tooLarge returns why something of a client is refused that no record has room for.
func tooLarge(what string, bytes int) error {
	return &jsonrpc.Failure{Message: fmt.Sprintf("a %s of %d bytes is too large to keep", what, bytes), Reason: "too_large"}
}

// unkept returns why a prompt is refused, or has no end in the log, as clients see it.
func unkept(err error) error {
	switch {
	case errors.Is(err, engine.ErrFull):
		return &jsonrpc.Failure{Message: "there is no room to keep the prompt: the disk is full", Reason: "full", RetryAfter: 10 * time.Second}
	case errors.Is(err, engine.ErrNotFound):
		return errDeleted
	}
	return err
}
