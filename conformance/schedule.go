package conformance

import (
	"path"
	"slices"
	"sync"
	"time"
)

// MaxJobs is the largest value of [Options.Jobs] that has an effect.
const MaxJobs = 64

// A gate bounds how many trials run at a time, and lets a trial run alone. Trials enter in
// the order in which they come.
type gate struct {
	turn  chan struct{} // holds a value while a trial enters
	taken chan struct{} // holds a value for each place that is taken
}

func newGate(places int) *gate {
	return &gate{turn: make(chan struct{}, 1), taken: make(chan struct{}, places)}
}

// places returns how many there are. A trial that takes all of them is alone.
func (g *gate) places() int { return cap(g.taken) }

// enter waits for some places. A trial ends within the limits of its steps, and soon when the
// check is interrupted.
func (g *gate) enter(places int) {
	g.turn <- struct{}{}
	for range places {
		g.taken <- struct{}{}
	}
	<-g.turn
}

func (g *gate) leave(places int) {
	for range places {
		<-g.taken
	}
}

// A trial is a rule that is to be tried in a version, and what came of it.
type trial struct {
	rule   *Rule
	test   *test
	of     *dialect
	res    *Result // nil if it was interrupted
	took   time.Duration
	tried  bool // its scenario was played
	silent bool // it failed and nothing was answered
	done   bool // res is final
}

// A queue is the trials of a check in the order of the results. Which trials share a connection, and in
// what order, does not depend on how many run at a time, so that what becomes of them does not either.
type queue struct {
	groups []*group

	mu     sync.Mutex
	trials []*trial
	next   int // of trials, whose result is due
}

// A group is trials that a lane plays one after another.
type group struct {
	lane   *lane
	number int // among the groups of the dialect
	trials []*trial
	again  []*trial // that are to be tried once more, alone
}

// add adds the trials of a dialect. Rules of a topic share connections, and all others are by
// themselves; a client's share them all. first, which may be connected already, plays the first ones.
func (q *queue) add(c *checker, first *lane) {
	was, lane, n := "", first, 0
	for _, r := range c.rules {
		t := c.all.tests[r]
		if t == nil || t.scenarios[first.version] == nil {
			continue
		}
		key := path.Dir(r.ID)
		if t.place != onShared || c.opt.Apart {
			key = r.ID
		}
		if c.side == Client {
			key = "all"
		}
		if key != was {
			if was != "" {
				lane = c.lane(first.dialect)
			}
			was = key
			q.groups = append(q.groups, &group{lane: lane, number: n})
			n++
		}
		one := &trial{rule: r, test: t, of: first.dialect}
		first.left++
		q.trials = append(q.trials, one)
		g := q.groups[len(q.groups)-1]
		g.trials = append(g.trials, one)
	}
}

// run plays all groups, in their order, as many at a time as the gate has places, and then, one by one,
// the trials that are to be tried again.
func (q *queue) run(c *checker) {
	work := make(chan *group)
	var workers sync.WaitGroup
	for range min(c.gate.places(), len(q.groups)) {
		workers.Go(func() {
			for g := range work {
				g.run(q)
			}
		})
	}
	for _, g := range q.groups {
		if g.number >= maxSilent {
			<-g.lane.awake
		}
		work <- g
	}
	close(work)
	workers.Wait()
	for _, g := range q.groups {
		for _, t := range g.again {
			if c.ctx.Err() == nil {
				g.lane.retry(t)
			}
			q.settle(g.lane, t)
		}
		g.lane.drop()
	}
}

// run plays the trials of a group.
func (g *group) run(q *queue) {
	c := g.lane
	defer c.drop()
	defer c.ended()
	c.mu.Lock()
	ask := c.report.Mute != "" && c.speaks && !c.asked && c.given == ""
	c.asked = c.asked || ask
	c.mu.Unlock()
	if ask {
		c.ask() // what is so in one version is likely so in the other one
	}
	if c.side == Client && c.speaks {
		c.acquaint()
	}
	for _, t := range g.trials {
		if c.ctx.Err() == nil && c.try(t) {
			g.again = append(g.again, t)
			continue
		}
		q.settle(c, t)
	}
}

// wake lets all groups of the dialect run. The first ones run without the others until something was
// answered in one of their trials, or the peer was given up: what became of the others would depend on
// when that is.
func (d *dialect) wake() {
	select {
	case <-d.awake:
	default:
		close(d.awake)
	}
}

// ended notes that a group has ended: nothing is to be learned from the first ones when all have.
func (c *lane) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups++; c.groups >= maxSilent {
		c.wake()
	}
}

// settle makes the result of a trial final, and passes on all that are due. While no trial of a version was
// answered, those are not due that have failed: they say nothing of their rules if the peer is given up.
func (q *queue) settle(c *lane, t *trial) {
	if t.res != nil && t.res.Status != Pass && c.ctx.Err() != nil {
		t.res = nil // the interruption may be to blame
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t.done = true
	t.of.left--
	for ; q.next < len(q.trials) && q.trials[q.next].done; q.next++ {
		due := q.trials[q.next]
		c.mu.Lock()
		heard, given := due.of.heard, due.of.given
		c.mu.Unlock()
		switch {
		case due.res == nil:
			continue
		case !heard && given != "" && due.tried:
			due.res.Status, due.res.Why, due.res.Saw = Broken, given, nil
		case due.silent && !heard && due.of.left > 0 && c.ctx.Err() == nil:
			return
		}
		c.add(due.res)
	}
}

// inOrder sorts the rules by the connections that they need. For clients those come first that share a turn,
// so that the client has to be started, or to prompt, as seldom as possible.
func (c *checker) inOrder() {
	slices.SortStableFunc(c.rules, func(a, b *Rule) int { return int(c.placeOf(a)) - int(c.placeOf(b)) })
}
