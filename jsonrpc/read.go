package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/goacp/acp/internal/wire"
)

const (
	arenaSize = 16 << 10
	slabMax   = 51  // entries: a slab just fits a size class of the allocator
	slabFrame = 512 // bytes: the frames whose entries are in slabs
)

// reader is the goroutine that reads. It decodes each frame in one pass, lets
// what has to act at once act (cancellations, Preempt), and hands the rest to
// the lanes: at the latest before it waits for more input.
type reader struct {
	c   *Conn
	d   wire.Decoder
	in  wire.Interner
	nil wire.Decoder // for params that were omitted

	stage      []*entry
	stageBytes int
	gathered   []notes
	backlog    int  // bytes queued when the lanes last heard from us
	handling   bool // a frame, rather than reading one
	slab       []entry
	slabSize   int
	arena      []byte
	last       *routes // of the last known method
	lastMux    *Mux
	forms      wire.Forms
	opening    opening
	handed     json.RawMessage // params that are handed over as they are
}

// opening remembers how the last notification began, up to its params: nearly
// all that follow begin the same way. What the parser makes of it depends on
// nothing but the text and the handlers.
type opening struct {
	text   []byte
	routes *routes
	mux    *Mux
}

const openingMax = 128

func newReader(c *Conn) *reader {
	r := &reader{c: c, slabSize: 2}
	r.d.In, r.nil.In = &r.in, &r.in
	r.d.Forms = &r.forms
	return r
}

// run reads to the end. If foreign code exits on the way, another goroutine reads on,
// unless it was the stream.
func (r *reader) run() {
	survive(r.readAll, func() {
		if r.handling {
			go r.run()
		} else {
			r.c.readEnded(errGoexit)
		}
	})
}

func (r *reader) readAll() {
	c := r.c
	r.handling = false
	for {
		if len(r.stage) >= stageMax || r.stageBytes >= stageMaxBytes || !c.buffered() {
			if !r.admit() {
				c.readEnded(os.ErrClosed)
				return
			}
		}
		f, err := c.stream.ReadFrame()
		var big *FrameTooLargeError
		switch {
		case err == nil:
			if c.tap != nil {
				c.tap(false, f.Data)
			}
			if len(f.Data) > c.cfg.MaxFrame { // the stream has no limit, or another
				big = &FrameTooLargeError{Limit: c.cfg.MaxFrame, Size: int64(len(f.Data)), Prefix: f.Data[:min(len(f.Data), keptHead)]}
			}
		case unanswered(err) != nil:
			r.fail(unanswered(err))
			continue
		default:
			if big = tooLarge(err); big == nil {
				r.admit()
				c.readEnded(err)
				return
			}
		}
		c.seen.framesIn.Add(1)
		r.handling = true
		r.handle(f, big)
		r.handling = false
		r.stageBytes += len(f.Data)
	}
}

// tooLarge returns what ReadFrame says of an oversize frame. A variable whose
// address is taken would cost the caller an allocation for each frame.
func tooLarge(err error) *FrameTooLargeError {
	var big *FrameTooLargeError
	errors.As(err, &big)
	return big
}

// beforeRead is what the stream calls when it has nothing more to give without
// waiting: what was read must not wait for that.
func (r *reader) beforeRead() error {
	if len(r.stage) > 0 && !r.admit() {
		return os.ErrClosed
	}
	return nil
}

// admit gives the lanes what was read, and waits while too much is queued. It
// returns false when reading on makes no sense.
func (r *reader) admit() bool {
	c := r.c
	n, awaited := len(r.stage), r.gather()
	c.mu.Lock()
	for i, s := range r.gathered {
		if s.first.kind == kindNotification {
			c.placeNotes(s)
		} else {
			c.place(s.first)
		}
		r.gathered[i] = notes{}
	}
	c.waitForRoom()
	r.backlog = c.room.queued
	ok := !c.ending.deaf
	c.mu.Unlock()
	switch {
	case n == 0:
	case r.backlog > busyBytes:
		yieldToLanes()
	case awaited && n <= fewEntries && !c.buffered():
		yieldToAnswers()
	}
	return ok
}

// gather puts what is staged together: notifications in a row that belong to one
// lane are one, so that the workers, who need the lock for each of them, have to
// wait for the reader as short as possible. It reports whether anything but
// notifications is among it.
func (r *reader) gather() (awaited bool) {
	r.gathered = r.gathered[:0]
	var s *notes
	for i, e := range r.stage {
		switch {
		case e.kind != kindNotification:
			awaited, s = true, nil
			r.gathered = append(r.gathered, notes{first: e})
		case s != nil && s.last.Lane == e.Lane:
			s.last.next, s.last = e, e
			s.n++
			s.charge += e.charge
		default:
			r.gathered = append(r.gathered, notes{e, e, 1, e.charge})
			s = &r.gathered[len(r.gathered)-1]
		}
		r.stage[i] = nil
	}
	r.stage, r.stageBytes = r.stage[:0], 0
	return awaited
}

// newEntry returns a fresh entry for a notification. Slabs grow with use so
// that an idle connection holds next to nothing. An entry keeps its whole slab
// alive, and so what its neighbours hold: large messages, and requests, which
// may run for long, get entries of their own.
func (r *reader) newEntry(size int) *entry {
	if size > slabFrame {
		return new(entry)
	}
	if len(r.slab) == 0 {
		r.slabSize = min(2*r.slabSize, slabMax)
		r.slab = make([]entry, r.slabSize)
	}
	e := &r.slab[0]
	r.slab = r.slab[1:]
	return e
}

// handle takes one frame, or one that was skipped. Foreign code that is called here
// (codecs of users, Lane, Preempt) must take neither the process nor the reader
// with it if it panics or exits.
func (r *reader) handle(f Frame, big *FrameTooLargeError) {
	// On the stack, where filling it in costs no write barriers.
	var env envelope
	protect(func() {
		if big != nil {
			r.tooLarge(big)
		} else {
			// Handing over is for large frames. The text of small ones may be
			// needed again, and aliasing would save little.
			f.Owned = f.Owned && len(f.Data) >= inputMax
			r.d.Reset(f.Data, f.Owned)
			r.parse(f, &env)
			if n := r.d.Replaced(); n > 0 {
				r.c.seen.replaced.Add(uint64(n))
			}
		}
		if len(f.Data) >= inputMax || big != nil {
			r.d.Reset(nil, false) // does not keep the frame
		}
	}, func(p any) { r.panicked(&env, p) })
}

// panicked answers the request that was being decoded, or fails the call.
func (r *reader) panicked(e *envelope, p any) {
	c := r.c
	if e.entry != nil {
		c.mu.Lock()
		c.unregister(e.entry)
		c.mu.Unlock()
		e.entry.Cancel(nil)
	}
	switch {
	case e.call != nil:
		e.call.reply = invalidResult(e.call.method, errors.New("decoding panicked"))
		r.stageCall(e.call, 0)
	case e.has&memberMethod == 0 || e.has&memberID == 0:
	case e.id == nil:
		c.answer(nullID(), ErrInvalidRequest)
	default:
		c.answer(r.idOf(e.id), ErrInternal)
	}
	c.log.Error("panic on the reader", "method", e.method, "panic", p, "stack", string(debug.Stack()))
	c.diagnose(Event{Kind: EventHandlerError, Method: e.method, Err: fmt.Errorf("panic: %v", p)})
}

// request registers a request and puts it on its way.
func (r *reader) request(f Frame, id ID, rt *route, env *envelope) {
	c := r.c
	in := new(inbound)
	in.ctx.Parent = c.requestCtx
	if mux := c.mux.Load(); mux != nil && mux.InOrder {
		in.proceed = make(chan struct{})
	}
	e := &in.entry
	env.entry = e
	e.charge = chargeOf(len(f.Data))
	e.Request = Request{
		Method: env.method, ID: id, Params: env.paramsVal, Frame: f.Number, conn: c, kind: kindRequest, route: rt, in: in,
	}
	key := id.key()
	c.mu.Lock()
	duplicate := c.work.inbound[key] != nil
	if !duplicate {
		c.work.inbound[key] = e
	}
	c.mu.Unlock()
	if duplicate {
		in.cancel(nil)
		env.entry = nil
		c.event("request id is already in flight", Event{Kind: EventInvalidFrame, Method: e.Method, Code: CodeInvalidRequest})
		c.answer(id, &Error{Code: CodeInvalidRequest, Message: "Invalid request: id is already in flight"})
		return
	}
	r.laneOf(e)
	if c.cfg.Preempt != nil {
		if err := c.cfg.Preempt(&e.Request); err != nil {
			env.entry = nil
			c.refuseRequest(e, err)
			return
		}
	}
	r.stage = append(r.stage, e)
}

// notification puts a notification on its way.
func (r *reader) notification(f Frame, rt *route, env *envelope) {
	c := r.c
	e := r.newEntry(len(f.Data))
	e.kind = kindNotification
	e.charge = chargeOf(len(f.Data))
	// One by one: a whole Request would be copied with bulk write barriers.
	e.Method, e.Params, e.Frame = env.method, env.paramsVal, f.Number
	e.conn, e.route, e.flags = c, rt, flagNotification
	r.laneOf(e)
	if c.cfg.Preempt != nil {
		if err := c.cfg.Preempt(&e.Request); err != nil {
			c.diagnose(Event{Kind: EventRefusedNotification, Method: e.Method, Err: err})
			return
		}
	}
	if text := env.text; text != nil && r.backlog >= keepText && c.cfg.Preempt == nil {
		// Decoded values take several times the room of their text. While
		// much is queued the text is what is kept. Not of what Preempt saw:
		// it may have changed or kept that.
		e.Params = keptText(r.keep(text))
		e.charge = chargeText + len(text)
	}
	r.stage = append(r.stage, e)
}

// direct hands a notification over to its handler, if nothing is before it: see
// [Mux.Direct].
func (r *reader) direct(f Frame, rt *route, env *envelope) bool {
	c := r.c
	if len(r.stage) > 0 || !rt.ready() {
		return false
	}
	r.handed = nil
	if env.has&memberParams != 0 {
		r.handed = f.Data[env.params:env.paramsEnd:env.paramsEnd]
	}
	lane := ""
	if c.cfg.Lane != nil {
		lane = c.cfg.Lane(env.method, &r.handed)
	}
	c.mu.Lock()
	free := c.work.lanes[lane] == nil && !c.ending.deaf
	c.mu.Unlock()
	if !free {
		return false
	}
	if err := rt.direct(c.noteCtx, lane, r.handed); err != nil {
		c.log.Error("notification handler failed", "method", env.method, "error", err)
		c.diagnose(Event{Kind: EventHandlerError, Method: env.method, Err: err})
	}
	return true
}

// keep copies text into memory shared with its neighbours in the queue.
func (r *reader) keep(text []byte) []byte {
	if len(text) > cap(r.arena)-len(r.arena) {
		r.arena = make([]byte, 0, max(arenaSize, len(text)))
	}
	n := len(r.arena)
	r.arena = append(r.arena, text...)
	return r.arena[n:len(r.arena):len(r.arena)]
}

func (r *reader) laneOf(e *entry) {
	if f := r.c.cfg.Lane; f != nil {
		e.Lane = f(e.Method, e.Params)
	}
}

// stageCall puts a response on its way. Its outcome is in cl.reply.
func (r *reader) stageCall(cl *call, size int) {
	cl.replySize, cl.staged = size, true
	r.stage = append(r.stage, &cl.entry)
	if cl.onReply != nil {
		r.onReply(cl)
	}
}

// onReply tells the caller's function of the response, unless the call has
// returned. While the function runs the call does not return.
func (r *reader) onReply(cl *call) {
	c := r.c
	c.mu.Lock()
	if c.calls.pending[cl.id] != cl {
		c.mu.Unlock()
		return
	}
	replied := make(chan struct{})
	cl.replying = replied
	c.mu.Unlock()
	method := cl.method
	defer func() {
		p := recover()
		c.mu.Lock()
		cl.replying = nil
		c.mu.Unlock()
		close(replied)
		if p != nil {
			c.log.Error("OnReply panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
			c.diagnose(Event{Kind: EventHandlerError, Method: method, Err: fmt.Errorf("panic: %v", p)})
		}
	}()
	if cl.reply != nil {
		cl.onReply(nil, cl.reply)
	} else {
		cl.onReply(cl.result, nil)
	}
}

// lookup finds the call a response belongs to. Nil without unknown means that
// the response is late.
func (r *reader) lookup(id []byte) (cl *call, result any, unknown bool) {
	n, ok := ownID(id)
	if !ok {
		return nil, nil, true
	}
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl = c.calls.pending[n]; cl != nil {
		if cl.staged {
			return nil, nil, false // a second response
		}
		cl.held = true
		return cl, cl.result, false
	}
	return nil, nil, n >= c.calls.next
}
