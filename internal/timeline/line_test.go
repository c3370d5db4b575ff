package timeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// rig is a line whose items are names, and what it has delivered.
type rig struct {
	*testing.T
	Line[string]
	marks map[string]*Mark[string]
	on    map[string]func(ctx context.Context) // what delivering an item does
	log   []string                             // of whoever delivers; with a star: outside of a handler
	stop  context.CancelFunc                   // ends the line's context

	mu      sync.Mutex
	waiting []string // handlers that have not returned
}

func newRig(t *testing.T, set ...func(*Config[string])) *rig {
	r := &rig{T: t, marks: map[string]*Mark[string]{}, on: map[string]func(context.Context){}}
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	cfg := Config[string]{Deliver: r.deliver, Context: ctx, Spawn: func(f func()) bool { go f(); return true }, Owner: r}
	for _, f := range set {
		f(&cfg)
	}
	r.Init(cfg)
	return r
}

func (r *rig) deliver(ctx context.Context, item string) {
	name := item
	if r.Apart() {
		name += "*"
	}
	r.log = append(r.log, name)
	if f := r.on[item]; f != nil {
		f(ctx)
	}
}

// handle runs the handler of an item, until it has returned or waits.
func (r *rig) handle(ctx context.Context, item string) {
	r.mu.Lock()
	r.waiting = append(r.waiting, item)
	r.mu.Unlock()
	go func() {
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.waiting = slices.DeleteFunc(r.waiting, func(w string) bool { return w == item })
		}()
		r.Handle(ctx, item)
	}()
	synctest.Wait()
}

// do takes a step of a script: see TestOrder.
func (r *rig) do(step string) {
	verb, args, _ := strings.Cut(step, " ")
	name, item, _ := strings.Cut(args, " ")
	mark := func() *Mark[string] {
		if r.marks[name] == nil {
			r.marks[name] = new(Mark[string])
		}
		return r.marks[name]
	}
	switch verb {
	case "arrive":
		n, _ := strconv.ParseUint(name, 10, 64)
		r.Arrived(n)
	case "handle":
		r.handle(r.Context(), name)
	case "account":
		r.Account(r.Context(), func() { r.Handle(r.Context(), name) })
	case "lose":
		r.Account(r.Context(), func() {})
	case "start": // a mark, then items; the last two of six are lost, one has no handler yet
		r.Start(mark(), 7, strings.Fields(item), 2)
	case "post":
		r.Post(name)
	case "place":
		r.Place(mark())
	case "resolve":
		r.Resolve(mark(), item)
	case "discard":
		r.Discard(mark())
	case "kick":
		r.Kick()
	case "settle":
		r.Settle()
	default:
		r.Fatal("step", step)
	}
	synctest.Wait()
}

// wants compares what was delivered and what waits.
func (r *rig) wants(log, waiting string) {
	r.Helper()
	if got := strings.Join(r.log, " "); got != log {
		r.Errorf("delivered %q, not %q", got, log)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := strings.Join(r.waiting, " "); got != waiting {
		r.Errorf("handlers of %q wait, not of %q", got, waiting)
	}
}

func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		name    string
		steps   string
		log     string // a star marks what was delivered outside of a handler
		waiting string
	}{
		{"items", "arrive 2; handle a; handle b", "a b", ""},
		{"a mark holds up what is behind it", "arrive 1; place m; arrive 1; handle a; handle b", "a", "b"},
		{"until it is resolved", "arrive 1; place m; arrive 1; handle a; handle b; resolve m x", "a x b", ""},
		{"or discarded", "arrive 1; place m; arrive 1; handle a; handle b; discard m", "a b", ""},
		{"a mark waits for what is ahead of it", "arrive 2; place m; resolve m x; kick; handle a", "a", ""},
		{"and is delivered by its last handler", "arrive 2; place m; resolve m x; kick; handle a; handle b", "a b x", ""},
		{"or outside of handlers", "arrive 1; place m; handle a; resolve m x; kick", "a x*", ""},
		{"which needs a kick", "arrive 1; place m; handle a; resolve m x", "a", ""},
		{"or settling", "arrive 1; place m; handle a; resolve m x; settle", "a x*", ""},
		{"marks keep their order", "place m; place n; resolve n y; kick", "", ""},
		{"whichever is resolved first", "place m; place n; resolve n y; kick; resolve m x; kick", "x* y*", ""},
		{"a discarded mark holds up nothing", "place m; place n; resolve n y; discard m; kick", "y*", ""},
		{"posts", "post p; post q; kick", "p* q*", ""},
		{"a post is ahead of items that are not handled", "arrive 1; post p; handle a", "p a", ""},
		{"and of marks that are placed later", "post p; place m; resolve m x; kick", "p* x*", ""},
		{"but not of those that were placed before", "place m; post p; kick; resolve m x; kick", "x* p*", ""},
		{"an item that is lost leaves no gap", "arrive 2; place m; resolve m x; handle a; lose", "a x", ""},
		{"one that is not lost counts once", "arrive 2; place m; resolve m x; account a", "a", ""},
		{"like any other", "arrive 2; place m; resolve m x; account a; account b", "a b x", ""},
		{"a lost item waits for its place", "arrive 1; place m; arrive 1; place n; resolve n y; handle a; lose", "a", ""},
		{"too", "arrive 1; place m; arrive 1; place n; resolve n y; handle a; lose; resolve m x; kick", "a x* y*", ""},
		{"a beginning waits for its mark", "start m a b c d; kick", "", ""},
		{"which is ahead of it", "start m a b c d; resolve m x; kick", "x* a* b* c* d*", ""},
		{"its items and lost ones count", "start m a b c d; resolve m x; place n; resolve n y; kick; handle e", "x* a* b* c* d* e y", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				for step := range strings.SplitSeq(tt.steps, "; ") {
					r.do(step)
				}
				r.wants(tt.log, tt.waiting)
				r.stop()
			})
		})
	}
}

// TestOneAtATime: a handler waits while another delivery is under way, and gives
// its item away when its ctx is done.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		gate := make(chan struct{})
		r.on["a"] = func(context.Context) { <-gate }
		ctx, cancel := context.WithCancel(t.Context())
		r.Arrived(3)
		r.handle(t.Context(), "a")
		r.handle(ctx, "b")
		r.wants("a", "a b")
		if at, busy := r.Position(); at != 1 || !busy {
			t.Errorf("position %d, %v", at, busy)
		}
		cancel()
		synctest.Wait()
		r.wants("a", "a")
		r.handle(t.Context(), "c")
		close(gate)
		synctest.Wait()
		r.wants("a b c", "")
		if at, busy := r.Position(); at != 3 || busy {
			t.Errorf("position %d, %v", at, busy)
		}
	})
}

// TestContextEnds: no handler waits when the line's context is done.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.do("place m")
		r.do("arrive 2")
		r.do("handle a")
		r.wants("", "a")
		r.stop()
		synctest.Wait()
		r.wants("", "")
		r.do("handle b")
		r.wants("", "")
		r.do("resolve m x")
		r.do("kick")
		r.wants("x* a* b*", "")
	})
}

// TestKickWithoutSpawn: what cannot be spawned is done at once.
func TestKickWithoutSpawn(t *testing.T) {
	r := newRig(t, func(c *Config[string]) { c.Spawn = func(func()) bool { return false } })
	r.Post("p")
	r.Kick()
	r.wants("p*", "")
}

// TestDetours: where other calls may come between a response and the return of
// its call, handlers do not wait for a mark.
func TestDetours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config[string]) { c.Detours = true })
		gate := make(chan struct{})
		r.on["b"] = func(context.Context) { <-gate }
		for _, step := range []string{"place m", "arrive 4", "handle a", "handle b"} {
			r.do(step)
		}
		r.wants("", "")
		r.do("resolve m x")
		r.do("kick")
		r.wants("x* a* b*", "")
		r.do("handle c") // but for a delivery it does
		r.wants("x* a* b*", "c")
		close(gate)
		synctest.Wait()
		r.wants("x* a* b* c", "")
	})
}

// TestRandomOrder: whatever is resolved when, and however long deliveries take,
// everything is delivered in the order in which it arrived.
func TestRandomOrder(t *testing.T) {
	const n = 3000
	r := newRig(t)
	items := make(chan string, n) // handlers run one after another, behind the reader
	var want []string
	var resolving sync.WaitGroup
	rnd := rand.New(rand.NewPCG(1, 2))
	handled := make(chan struct{})
	go func() {
		defer close(handled)
		for item := range items {
			if strings.HasSuffix(item, "7") {
				r.Account(t.Context(), func() {}) // middleware drops it
			} else {
				r.Account(t.Context(), func() { r.Handle(t.Context(), item) })
			}
		}
	}()
	for i := range n {
		if rnd.IntN(3) == 0 {
			m := &Mark[string]{Done: make(chan struct{})}
			name := fmt.Sprint("m", i)
			r.Place(m)
			keep := rnd.IntN(4) > 0
			if keep {
				want = append(want, name)
			}
			resolving.Go(func() {
				runtime.Gosched()
				if keep {
					r.Resolve(m, name)
				} else {
					r.Discard(m)
				}
				r.Kick()
				<-m.Done
			})
			continue
		}
		name := fmt.Sprint("i", i)
		r.Arrived(1)
		items <- name
		if !strings.HasSuffix(name, "7") {
			want = append(want, name)
		}
	}
	close(items)
	<-handled
	resolving.Wait()
	r.Flush(t.Context())
	for i := range r.log {
		r.log[i] = strings.TrimSuffix(r.log[i], "*")
	}
	if diff := cmp.Diff(want, r.log); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
}

// TestFlush: it waits for deliveries and for marks that are not resolved, but not
// longer than its ctx.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		flushed := func(ctx context.Context, marks ...*Mark[string]) *bool {
			done := new(bool)
			go func() { r.Flush(ctx, marks...); *done = true }()
			synctest.Wait()
			return done
		}
		if !*flushed(t.Context()) {
			t.Error("it waits for nothing")
		}
		r.Post("p")
		if !*flushed(t.Context()) {
			t.Error("it waits for a post")
		}
		r.wants("p*", "")

		gate := make(chan struct{})
		r.on["a"] = func(context.Context) { <-gate }
		r.do("arrive 1")
		r.do("handle a")
		done := flushed(t.Context())
		if *done {
			t.Error("it does not wait for a delivery")
		}
		close(gate)
		synctest.Wait()
		if !*done {
			t.Error("it waits, with nothing to deliver")
		}

		m := new(Mark[string]) // it has no place yet
		done = flushed(t.Context(), m)
		if *done {
			t.Error("it does not wait for a mark")
		}
		r.Place(m)
		r.Resolve(m, "x")
		synctest.Wait()
		if !*done {
			t.Error("it waits for a mark that is resolved")
		}
		r.wants("p* a x*", "")

		ctx, cancel := context.WithCancel(t.Context())
		done = flushed(ctx, new(Mark[string]))
		cancel()
		synctest.Wait()
		if !*done {
			t.Error("it waits beyond its ctx")
		}
	})
}

// TestHandleAllocations: an item on a line with nothing else on it costs nothing.
func TestHandleAllocations(t *testing.T) {
	var l Line[string]
	l.Init(Config[string]{Deliver: func(context.Context, string) {}, Context: t.Context()})
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { l.Arrived(1); l.Handle(ctx, "a") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
