package jsonrpc

import (
	"context"
	"log/slog"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/goacp/acp/internal/faultlog"
)

// A Conn is one end of a JSON-RPC connection. [NewConn] makes it; it is safe for
// concurrent use. See the package documentation for the order in which messages
// are handled, for the bounds, and for how a connection ends.
type Conn struct {
	cfg       Config
	stream    Stream                        // without its taps
	tap       func(sent bool, frame []byte) // nil without taps
	reader    *reader
	buffered  func() bool // whether ReadFrame might return without reading
	pacer     Pacer       // nil if all lanes wait for the same reader
	forgetter Forgetter   // nil if nothing is kept for lanes
	log       *slog.Logger
	out       outbox
	incoming  Handler // nil without middleware
	outgoing  Handler // nil without middleware
	mux       atomic.Pointer[Mux]
	seen      counters

	// Parents of the handlers' contexts. They end separately: requests may be
	// given up while queued notifications are still handled.
	requestCtx, noteCtx         context.Context
	cancelRequests, cancelNotes context.CancelCauseFunc

	mu     sync.Mutex // guards what follows
	calls  callTable
	work   workload
	room   account
	ending ending

	jobs       chan job      // for workers that wait; filled with mu held
	readDone   chan struct{} // closed when the reader has stopped
	closeAsked chan struct{} // closed when Close was called
	done       chan struct{} // see Done
}

// callTable is the calls of this side that wait for their responses.
type callTable struct {
	next    int64           // the id of the next call
	pending map[int64]*call // by id: whoever removes a call completes it
	free    []*call         // to be used again
}

// workload is what was received and is not finished, and who works on it.
type workload struct {
	inbound map[ID]*entry    // unanswered requests, by key
	lanes   map[string]*lane // those with something queued or handled
	waiting fifo             // requests that wait for MaxRequests
	handled uint64           // entries that lanes are done with

	// Handlers and what is like them.
	running   int  // request handlers
	yielded   int  // of these, those that wait in calls
	answering int  // of these, those that have returned
	noting    int  // notification handlers
	continued int  // work that continues after the answer: see Request.Continue
	lingers   bool // Config.Linger runs
	parked    int  // workers that wait for jobs
}

// account is what keeps the reader from reading on: see mayRead.
type account struct {
	queued    int           // what is in lanes and waits, as counted by charge.go
	inHandler int           // calls made inside handlers
	outWaits  int           // sends inside handlers that wait for room
	wake      chan struct{} // closed when the reader may read on; nil unless it waits
}

// ending is how the connection ends.
type ending struct {
	err     error         // why new calls fail; nil while the connection is open
	closing bool          // Close was called
	deaf    bool          // what arrives is ignored
	started bool          // the goroutine that ends the connection was started
	quiet   chan struct{} // closed when isQuiet; nil unless somebody waits
	result  error         // what Wait returns
}

// counters is what Stats returns, apart from what the outbox counts.
type counters struct {
	framesIn, noise, invalid, oversize, deep, replaced atomic.Uint64
}

// NewConn starts a connection on the stream, which it takes over: it begins to
// read at once, and closes the stream when the connection ends. Callers must
// call [Conn.Close] when they are done with it.
func NewConn(stream Stream, cfg Config) *Conn {
	setDefault(&cfg.MaxFrame, DefaultMaxFrame)
	cfg.MaxFrame = min(cfg.MaxFrame, math.MaxInt/4) // sums of bounds must not overflow
	setDefault(&cfg.MaxQueued, defaultMaxQueued)
	setDefault(&cfg.MaxQueuedHard, hardDefault(cfg.MaxQueued, cfg.MaxFrame))
	cfg.MaxQueuedHard = max(cfg.MaxQueuedHard, cfg.MaxQueued)
	setDefault(&cfg.MaxRequests, defaultMaxRequests)
	setDefault(&cfg.Grace, DefaultGrace)
	setDefault(&cfg.flushTimeout, defaultFlushTimeout)
	if cfg.BaseContext == nil {
		cfg.BaseContext = context.Background()
	}
	c := &Conn{
		cfg:        cfg,
		calls:      callTable{pending: make(map[int64]*call)},
		work:       workload{inbound: make(map[ID]*entry), lanes: make(map[string]*lane)},
		jobs:       make(chan job, keepWorkers),
		readDone:   make(chan struct{}),
		closeAsked: make(chan struct{}),
		done:       make(chan struct{}),
	}
	logger := cfg.Logger
	if logger == nil {
		logger = faultlog.New()
	}
	c.log = slog.New(safeHandler{logger.Handler()})
	c.requestCtx, c.cancelRequests = context.WithCancelCause(cfg.BaseContext)
	context.AfterFunc(c.requestCtx, c.endRequests)
	c.noteCtx, c.cancelNotes = context.WithCancelCause(cfg.BaseContext)
	c.mux.Store(cfg.Mux)
	if len(cfg.Incoming) > 0 {
		c.incoming = chain(func(ctx context.Context, r *Request) (any, error) {
			return r.route.call(ctx, r)
		}, cfg.Incoming)
	}
	if len(cfg.Outgoing) > 0 {
		c.outgoing = chain(c.send, cfg.Outgoing)
	}
	limitFrames(stream, cfg.MaxFrame)
	c.stream, c.tap = c.untap(stream)
	c.buffered = func() bool { return false }
	c.reader = newReader(c)
	if s, ok := c.stream.(EagerStream); ok {
		c.buffered = s.Buffered
		s.BeforeRead(c.reader.beforeRead)
	}
	c.pacer, c.forgetter = find[Pacer](c.stream), find[Forgetter](c.stream)
	c.out.init(c.stream, c.tap, c)
	go c.reader.run()
	return c
}

func setDefault[T ~int | ~int64](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// hardDefault makes room for a response of any size on top of what is queued.
func hardDefault(queued, frame int) int {
	hard := int64(queued) + max(int64(queued), 2*int64(frame))
	return int(min(hard, math.MaxInt))
}

// SetMux is for protocol layers. It replaces the handlers from the next frame on.
// Called in [Config.Preempt] or [OnReply], which run on the reader, it takes effect
// exactly after the message at hand, as a protocol needs whose first message
// negotiates the version.
func (c *Conn) SetMux(m *Mux) { c.mux.Store(m) }

// Stats returns the connection's counters.
func (c *Conn) Stats() Stats {
	return Stats{
		FramesIn:  c.seen.framesIn.Load(),
		FramesOut: c.out.frames.Load(),
		Noise:     c.seen.noise.Load(),
		Invalid:   c.seen.invalid.Load(),
		Oversize:  c.seen.oversize.Load(),
		TooDeep:   c.seen.deep.Load(),
		Replaced:  c.seen.replaced.Load(),
		Writes:    c.out.writes.Load(),
	}
}

// Done returns a channel that is closed when the connection has ended: nothing is
// read, written or handled any more, except by handlers that ignored their
// cancelled context for [Settings.Grace]. These are reported as EventAbandoned.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Wait waits for [Conn.Done]. It returns nil if Close ended the connection, or if
// the peer closed it between two frames, even if answers could not be written
// after that. Otherwise it returns the error of reading or writing that ended the
// connection.
func (c *Conn) Wait() error {
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending.result
}

// Err returns nil while the connection is open. From the moment it begins to end,
// Err returns the error of new calls: errors.Is(err, ErrClosed) holds and, if the
// peer closed the connection, so does errors.Is(err, io.EOF).
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending.err
}

// diagnose reports an event. What watches a connection must not be able to
// break it.
func (c *Conn) diagnose(e Event) {
	if c.cfg.Diagnose != nil {
		defer func() {
			if p := recover(); p != nil {
				c.log.Error("Diagnose panicked", "panic", p, "stack", string(debug.Stack()))
			}
		}()
		c.cfg.Diagnose(e)
	}
}

// safeHandler is a log handler that may panic: it, or what it is given.
type safeHandler struct{ slog.Handler }

func (h safeHandler) Enabled(ctx context.Context, l slog.Level) (ok bool) {
	defer func() { _ = recover() }()
	return h.Handler.Enabled(ctx, l)
}

func (h safeHandler) Handle(ctx context.Context, r slog.Record) error {
	defer func() { _ = recover() }()
	return h.Handler.Handle(ctx, r)
}

// event logs and reports something the peer did wrong.
func (c *Conn) event(text string, e Event) {
	if c.log.Enabled(context.Background(), slog.LevelWarn) {
		attrs := make([]slog.Attr, 0, 4)
		if e.Method != "" {
			attrs = append(attrs, slog.String("method", e.Method))
		}
		if e.Code != 0 {
			attrs = append(attrs, slog.Int("code", e.Code))
		}
		if e.Path != "" {
			attrs = append(attrs, slog.String("path", e.Path))
		}
		if e.Size != 0 {
			attrs = append(attrs, slog.Int64("size", e.Size))
		}
		c.log.LogAttrs(context.Background(), slog.LevelWarn, text, attrs...)
	}
	c.diagnose(e)
}
