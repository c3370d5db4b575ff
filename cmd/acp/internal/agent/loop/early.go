package loop

import (
	"bytes"
	"context"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// An early is what is known of the tools of an answer before it is complete: their inputs
// are passed on while they are written, and those that only read begin once their input is
// complete, unless one that changes something comes before them. Only the goroutine of the
// turn uses it, but for result.
type early struct {
	r       *run
	ctx     context.Context
	cancel  context.CancelFunc
	names   map[string]string // of the tools that were drafted, by id
	ids     map[string]string // of the conversation, by that of the answer
	begun   map[string]*begun
	running sync.WaitGroup
	slots   chan struct{} // MaxParallel
	wishes  int
	changes bool // a tool that changes something was asked for
}

// A begun tool runs, or has run, since before its answer was complete.
type begun struct {
	use  *model.ToolUse
	done chan struct{}
	res  *model.ToolResult // once done is closed
}

func (r *run) newEarly(ctx context.Context) *early {
	e := &early{
		r: r, names: map[string]string{}, ids: map[string]string{}, begun: map[string]*begun{},
		slots: make(chan struct{}, MaxParallel),
	}
	e.ctx, e.cancel = context.WithCancel(ctx)
	return e
}

// drop ends what began with the last answer and was not asked for in the end, and drops
// its drafts.
func (r *run) drop() {
	if r.early == nil {
		return
	}
	r.early.cancel()
	r.early.running.Wait()
	r.early = nil
	r.Host.Drop()
}

// id returns the id in the conversation of a wish.
func (e *early) id(own string) string {
	id, ok := e.ids[own]
	if !ok {
		if id = own; e.r.known()[id] || id == "" {
			id = newID()
		}
		e.ids[own] = id
	}
	return id
}

// draft notes that a tool is going to be asked for.
func (e *early) draft(id, name string) {
	id = e.id(id)
	if _, ok := e.names[id]; ok || len(e.names) >= MaxUses {
		return
	}
	e.names[id] = name
	e.r.Host.Draft(id, name, "")
}

func (e *early) write(id, piece string) {
	id = e.id(id)
	if name, ok := e.names[id]; ok {
		e.r.Host.Draft(id, name, piece)
	}
}

// wish begins a tool whose input is complete, if it only reads.
func (e *early) wish(u *model.ToolUse) {
	e.wishes++
	e.changes = e.changes || !e.r.Host.Reads(u.Name)
	id := e.id(u.ID)
	if e.changes || e.wishes > MaxUses || e.begun[id] != nil {
		return
	}
	select {
	case e.slots <- struct{}{}:
	default:
		return // it has its turn when the answer is complete
	}
	own := *u
	own.ID = id
	b := &begun{use: &own, done: make(chan struct{})}
	e.begun[id] = b
	e.running.Go(func() {
		defer func() { <-e.slots }()
		defer close(b.done)
		b.res = e.r.Host.Use(e.ctx, b.use)
	})
}

// result waits for what came of a tool that has begun, and returns it; nil if it has not.
func (e *early) result(u *model.ToolUse) *model.ToolResult {
	b := e.begun[u.ID]
	if b == nil || b.use.Name != u.Name || b.use.Malformed != u.Malformed || !bytes.Equal(b.use.Input, u.Input) {
		return nil
	}
	<-b.done
	return b.res
}
