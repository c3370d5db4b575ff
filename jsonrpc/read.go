package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/goacp/acp/internal/wire"
)

const (
	stageMax      = 32       // frames decoded before the lanes hear of them
	stageMaxBytes = 64 << 10 // and their bytes
	rawMax        = 16 << 10 // larger notifications are never kept as text
	arenaSize     = 16 << 10
	fewEntries    = 4
	slabMax       = 48 // entries: a slab just fits a size class of the allocator
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
	backlog    int // bytes queued when the lanes last heard from us
	slab       []entry
	slabSize   int
	arena      []byte
	last       *routes // of the last known method
	lastMux    *Mux
}

func newReader(c *Conn) *reader {
	r := &reader{c: c, slabSize: 2}
	r.d.In, r.nil.In = &r.in, &r.in
	return r
}

func (r *reader) run() {
	c := r.c
	for {
		f, err := c.stream.ReadFrame()
		if err != nil {
			var big *FrameTooLargeError
			if errors.As(err, &big) {
				c.framesIn.Add(1)
				c.oversize.Add(1)
				r.tooLarge(big)
				r.admit()
				continue
			}
			r.admit()
			c.readEnded(err)
			return
		}
		c.framesIn.Add(1)
		r.frame(f)
		r.stageBytes += len(f.Data)
		if len(r.stage) >= stageMax || r.stageBytes >= stageMaxBytes || !c.buffered() {
			if !r.admit() {
				c.readEnded(os.ErrClosed)
				return
			}
		}
	}
}

// admit gives the lanes what was read, and waits while too much is queued. It
// returns false when reading on makes no sense.
func (r *reader) admit() bool {
	c := r.c
	few := len(r.stage) <= fewEntries
	c.mu.Lock()
	for i, e := range r.stage {
		c.place(e)
		r.stage[i] = nil
	}
	c.waitForRoom()
	r.backlog = c.queued
	ok := !c.deaf
	c.mu.Unlock()
	r.stage = r.stage[:0]
	r.stageBytes = 0
	if few && !c.buffered() {
		// Who was just made ready goes first: the attempt to read, which will
		// most likely find nothing yet, is not what anybody waits for.
		runtime.Gosched()
	}
	return ok
}

// newEntry returns a fresh entry. Slabs grow with use so that an idle
// connection holds next to nothing.
func (r *reader) newEntry() *entry {
	if len(r.slab) == 0 {
		r.slabSize = min(2*r.slabSize, slabMax)
		r.slab = make([]entry, r.slabSize)
	}
	e := &r.slab[0]
	r.slab = r.slab[1:]
	return e
}

// frame handles one frame. Foreign code that runs here (codecs of users, Lane,
// Preempt) must not take the process with it when it panics.
func (r *reader) frame(f Frame) {
	// On the stack, where filling it in costs no write barriers.
	var env envelope
	defer func() {
		if p := recover(); p != nil {
			r.c.log.Error("panic on the reader", "method", env.method, "panic", p, "stack", string(debug.Stack()))
			r.c.diagnose(Event{Kind: EventHandlerError, Method: env.method, Err: fmt.Errorf("panic: %v", p)})
			r.panicked(&env)
		}
	}()
	// Handing over is for large frames. Of small ones the text may be needed
	// again, and aliasing would save little.
	f.Owned = f.Owned && len(f.Data) >= inputMax
	r.d.Reset(f.Data, f.Owned)
	r.parse(f, &env)
	if n := r.d.Replaced(); n > 0 {
		r.c.replaced.Add(uint64(n))
	}
}

// panicked answers the request that was being decoded.
func (r *reader) panicked(e *envelope) {
	if e.entry != nil {
		r.c.unregister(e.entry)
		e.entry.cancel(nil)
	}
	switch {
	case e.call != nil:
		e.call.reply = invalidResult(e.call.method, errors.New("decoding panicked"))
		r.stageCall(e.call, 0)
	case e.has&memberMethod != 0 && e.has&memberID != 0:
		r.c.answer(r.idOf(e.id), ErrInternal)
	}
}

// request registers a request and puts it on its way.
func (r *reader) request(f Frame, id ID, rt *route, env *envelope) {
	c := r.c
	e := r.newEntry()
	env.entry = e
	e.charge = chargeDecoded + 2*len(f.Data)
	e.Request = Request{Method: env.method, ID: id, Params: env.paramsVal, conn: c, kind: kindRequest, route: rt}
	e.Context, e.cancel = context.WithCancelCause(c.requestCtx)
	key := id.key()
	c.mu.Lock()
	duplicate := c.inbound[key] != nil
	if !duplicate {
		c.inbound[key] = e
	}
	c.mu.Unlock()
	if duplicate {
		e.cancel(nil)
		env.entry = nil
		c.event("request id is already in flight", Event{Kind: EventInvalidFrame, Method: e.Method, Code: CodeInvalidRequest})
		c.answer(id, &Error{Code: CodeInvalidRequest, Message: "Invalid request: id is already in flight"})
		return
	}
	r.laneOf(e)
	if c.cfg.Preempt != nil {
		if err := c.cfg.Preempt(&e.Request); err != nil {
			c.reply(e, nil, err)
			return
		}
	}
	r.stage = append(r.stage, e)
}

// notification puts a notification on its way.
func (r *reader) notification(f Frame, rt *route, env *envelope) {
	c := r.c
	e := r.newEntry()
	e.kind = kindNotification
	e.charge = chargeDecoded + 2*len(f.Data)
	// One by one: a whole Request would be copied with bulk write barriers.
	e.Method, e.Params = env.method, env.paramsVal
	e.conn, e.route, e.flags = c, rt, flagNotification
	e.Context = c.noteCtx
	r.laneOf(e)
	if c.cfg.Preempt != nil {
		if err := c.cfg.Preempt(&e.Request); err != nil {
			c.diagnose(Event{Kind: EventRefusedNotification, Method: e.Method, Err: err})
			return
		}
	}
	if text := env.text; text != nil && r.backlog >= keepText {
		// Decoded values take several times the room of their text. While
		// much is queued the text is what is kept.
		e.raw = r.keep(text)
		e.Params = nil
		e.charge = len(text) + chargeEntry
	}
	r.stage = append(r.stage, e)
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
	cl.replySize = size
	r.stage = append(r.stage, &cl.entry)
	if cl.onReply != nil {
		cl.onReply(cl.result, cl.reply)
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
	if cl = c.pending[n]; cl != nil {
		cl.held = true
		return cl, cl.result, false
	}
	return nil, nil, n < c.cfg.FirstID || n >= c.nextID
}

// tooLarge deals with a frame that was skipped: the beginning that was kept
// may say whom to tell.
func (r *reader) tooLarge(big *FrameTooLargeError) {
	c, d := r.c, &r.d
	var method, hasMethod = "", false
	var id []byte
	response := false
	d.Reset(big.Prefix, false)
	if d.Peek() == '{' {
		for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
			switch string(k) {
			case "method":
				method = d.Str()
				hasMethod = d.SyntaxErr() == nil
			case "id":
				if raw := d.Raw(); d.SyntaxErr() == nil {
					id = raw
				}
			case "result", "error":
				response = true
				d.Skip()
			default:
				d.Skip()
			}
		}
	}
	c.event("frame too large", Event{Kind: EventFrameTooLarge, Method: method, Code: CodeInvalidRequest, Size: big.Size})
	switch {
	case id == nil:
	case hasMethod:
		data := wire.AppendInt([]byte(`{"limit":`), int64(big.Limit))
		c.answer(r.idOf(id), &Error{
			Code:    CodeInvalidRequest,
			Message: "Invalid request: message too large",
			Data:    json.RawMessage(append(data, '}')),
		})
	case response:
		if cl, _, _ := r.lookup(id); cl != nil {
			cl.reply = fmt.Errorf("jsonrpc: response to %s: %w", cl.method, big)
			r.stageCall(cl, 0)
		}
	}
}
