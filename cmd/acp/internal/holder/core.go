package holder

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/goacp/acp/internal/process"
)

const (
	eventCost  = 64      // bytes that an event or a frame counts for beyond its text
	window     = 1 << 20 // bytes in flight in each direction; see Bounds in the package's documentation
	drainGrace = 2 * time.Second
	linger     = time.Second // for the last words to a gateway
)

// An agent is the process that is held.
type agent interface {
	input() io.WriteCloser
	output() output
	pid() int
	stderr() string
	done() <-chan struct{}         // closed when it has ended
	wait() error                   // as that of a process.Process, after done
	end(ctx context.Context) error // in stages, all that it has started; at once when ctx is done
}

// An output is the agent's standard output.
type output interface {
	io.ReadCloser
	SetReadDeadline(t time.Time) error
}

// A child is the agent as it is outside of tests.
type child struct{ *process.Process }

func (c child) input() io.WriteCloser         { return c.Stdin() }
func (c child) output() output                { return c.Stdout() }
func (c child) pid() int                      { return c.PID() }
func (c child) stderr() string                { return c.StderrTail() }
func (c child) done() <-chan struct{}         { return c.Done() }
func (c child) wait() error                   { return c.Wait() }
func (c child) end(ctx context.Context) error { return c.End(ctx) }

// An event is a line of the agent, a line that was too long, or its end.
type event struct {
	kind kind
	data []byte
}

func (e event) cost() int { return frameCost(e.data) }

// frameCost returns what a frame counts for.
func frameCost(frame []byte) int { return len(frame) + eventCost }

// A core is a holder without its socket. Goroutines: one reads the agent's output, one writes its
// input, run waits for the end, and each connection has a reader and a writer. They wake each other
// through channels that hold one signal.
type core struct {
	cfg     Config
	agent   agent
	room    chan struct{}   // the ring has room
	queued  chan struct{}   // there is a frame for the agent
	changed chan struct{}   // run has to look
	closing chan struct{}   // closed when the agent is to end
	over    chan struct{}   // closed when it has, and nobody can attach any more
	shut    func()          // ends the listening
	force   context.Context // done when the agent is to be killed
	kill    context.CancelFunc
	work    sync.WaitGroup

	mu       sync.Mutex
	events   []event // those that are not acknowledged: events[0] has the number acked+1
	held     int     // what they cost
	acked    uint64
	last     uint64
	ended    bool // the last event is the end of the agent
	exit     ending
	queue    [][]byte // frames for the agent; the first one has the number written+1
	waiting  int      // what they cost
	accepted uint64
	written  uint64
	closed   string // why the agent's input is closed
	lease    time.Time
	stop     bool // the gateway wants the end
	ending   bool // it has begun
	gateway  *link
	links    map[*link]struct{} // all that are open, or have not said who they are
}

func newCore(cfg Config, a agent) *core {
	signal := func() chan struct{} { return make(chan struct{}, 1) }
	force, kill := context.WithCancel(context.Background())
	return &core{
		cfg: cfg, force: force, kill: kill, agent: a, room: signal(), queued: signal(), changed: signal(),
		closing: make(chan struct{}), over: make(chan struct{}), shut: func() {}, links: map[*link]struct{}{},
		lease: time.Now().Add(cfg.Lease),
	}
}

// wake leaves a signal.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run holds the agent until there is a reason to end, and returns when everything has ended.
func (c *core) run(ctx context.Context) error {
	defer c.kill()
	c.work.Go(c.readAgent)
	c.work.Go(c.writeAgent)
	c.hold(ctx)

	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	close(c.closing)
	err := c.agent.end(c.force)
	if err == nil {
		c.mu.Lock()
		c.exit = endingOf(c.agent.wait())
		c.mu.Unlock()
	}
	c.shut()
	close(c.over)
	c.farewell(err)
	_ = c.agent.input().Close()
	_ = c.agent.output().Close()
	c.work.Wait()
	return err
}

// hold returns when there is a reason to end: the lease has ended, the end of the agent was
// acknowledged, the gateway wants it, or ctx is done.
func (c *core) hold(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		c.mu.Lock()
		left := time.Until(c.lease)
		over := left <= 0 || c.stop || c.ended && c.acked == c.last
		c.mu.Unlock()
		if over {
			return
		}
		timer.Reset(left)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-c.changed:
		}
	}
}

// farewell says to the gateway how the agent ended, and closes all connections.
func (c *core) farewell(err error) {
	c.mu.Lock()
	g := c.gateway
	for l := range c.links {
		if l != g {
			_ = l.conn.Close()
		}
	}
	if g != nil && err == nil {
		g.last = kindGone
		_ = g.conn.SetDeadline(time.Now().Add(linger))
		wake(g.news)
	} else if g != nil {
		_ = g.conn.Close()
	}
	c.mu.Unlock()
}

// endingOf returns what an error of process.Process.Wait says.
func endingOf(err error) ending {
	exit, ok := errors.AsType[*process.ExitError](err)
	switch {
	case err == nil:
		return ending{}
	case !ok:
		return ending{Code: -1, Error: err.Error()}
	}
	return ending{Code: exit.Code, Signal: exit.Signal, Stderr: exit.Stderr[max(0, len(exit.Stderr)-exitStderr):]}
}

// readAgent makes events of what the agent writes, and of its end.
func (c *core) readAgent() {
	out := &drained{output: c.agent.output(), done: c.agent.done()}
	c.work.Go(func() { out.cut(c.over) })
	in := newLines(out, c.cfg.MaxFrame)
	for {
		before := time.Now()
		keep := c.waitForRoom()
		out.extend(time.Since(before))
		line, size, err := in.next()
		if err != nil {
			break
		}
		if !keep {
			continue // so that an agent that is to end can write its last words
		}
		e := event{kind: kindFrame, data: line}
		if size > 0 {
			e = event{kind: kindLong, data: append(number(uint64(size)), line...)}
		}
		c.add(e)
	}
	// Without its output the agent is of no use. Most are about to end at this point.
	timer := time.NewTimer(drainGrace)
	defer timer.Stop()
	select {
	case <-c.agent.done():
	case <-timer.C:
		_ = c.agent.end(context.Background())
	}
	select {
	case <-c.agent.done():
	case <-c.over:
		return // the system does not let go of it
	}
	c.mu.Lock()
	c.exit = endingOf(c.agent.wait())
	data := encode(c.exit)
	c.mu.Unlock()
	c.add(event{kind: kindExit, data: data})
}

// waitForRoom waits until the ring is not full. It reports false if the agent is to end meanwhile.
func (c *core) waitForRoom() bool {
	for {
		c.mu.Lock()
		full := c.held >= c.cfg.Ring
		c.mu.Unlock()
		if !full {
			return true
		}
		select {
		case <-c.room:
		case <-c.closing:
			return false
		}
	}
}

// add appends an event.
func (c *core) add(e event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
	c.held += e.cost()
	c.last++
	c.ended = e.kind == kindExit
	if c.gateway != nil {
		wake(c.gateway.news)
	}
	if c.ended {
		wake(c.changed)
	}
}

// ack forgets the events up to a number. The lock is held.
func (c *core) ack(n uint64) {
	k := int(n - c.acked)
	for i := range k {
		cost := c.events[i].cost()
		c.held -= cost
		if g := c.gateway; g != nil && c.acked+uint64(i) < g.sent {
			g.flying -= cost
		}
		c.events[i] = event{}
	}
	c.events = c.events[k:]
	if len(c.events) == 0 {
		c.events = nil
	}
	c.acked = n
	if c.held < c.cfg.Ring {
		wake(c.room)
	}
	if c.ended {
		wake(c.changed)
	}
}

// writeAgent writes to the agent what was accepted.
func (c *core) writeAgent() {
	in := c.agent.input()
	for {
		c.mu.Lock()
		var frame []byte
		if len(c.queue) > 0 {
			frame = c.queue[0]
		}
		c.mu.Unlock()
		if frame == nil {
			select {
			case <-c.queued:
				continue
			case <-c.closing:
				return
			}
		}
		_, err := in.Write(append(frame, '\n')) // it has room for that
		c.mu.Lock()
		if err != nil {
			c.closed = err.Error()
			c.queue, c.waiting = nil, 0
		} else {
			c.waiting -= frameCost(frame)
			c.queue[0] = nil
			if c.queue = c.queue[1:]; len(c.queue) == 0 {
				c.queue = nil
			}
			c.written++
		}
		if c.gateway != nil {
			wake(c.gateway.news)
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// A drained output ends some time after the agent has, in case something that left its tree holds it
// open. The time in which nobody read does not count.
type drained struct {
	output
	done <-chan struct{}

	mu  sync.Mutex
	end time.Time // 0 until the agent has ended
}

// cut waits for the end of the agent.
func (d *drained) cut(over <-chan struct{}) {
	select {
	case <-d.done:
	case <-over:
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end = time.Now().Add(drainGrace)
	_ = d.SetReadDeadline(d.end)
}

// extend moves the end by a time in which nothing was read.
func (d *drained) extend(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.end.IsZero() {
		d.end = d.end.Add(by)
		_ = d.SetReadDeadline(d.end)
	}
}
