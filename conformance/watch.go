package conformance

import (
	"path"
	"slices"
	"sync"
	"time"

	"github.com/goacp/acp/internal/pattern"
	"github.com/goacp/acp/trace"
)

// A watch checks observed rules on the connections of a check. It judges the
// peer only: the checker itself breaks rules all the time.
type watch struct {
	side Side

	mu       sync.Mutex
	monitors []sight
	broken   map[brokenRule]*breach
}

// A sight is a connection that is watched, or was.
type sight struct {
	monitor *Monitor
	order   int // among all connections
}

// A breach is how an observed rule was broken on the first connection that shows it. Which one
// shows it earliest differs from one check to the next if several are open at a time.
type breach struct {
	Result
	order int
}

// brokenRule is a rule in a version of the protocol; 0 stands for all that a
// connection speaks before one is agreed on.
type brokenRule struct {
	id      string
	version int
}

// maxSaw bounds the frames that show how an observed rule was broken.
const maxSaw = 4

func newWatch(side Side) *watch { return &watch{side: side, broken: map[brokenRule]*breach{}} }

// connection returns what has to see every frame of a connection, one at a time.
// Its findings come behind those of connections of a lower order.
func (w *watch) connection(order int) func(at time.Duration, dir trace.Direction, out bool, data []byte) {
	m := NewMonitor(MonitorConfig{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.monitors = append(w.monitors, sight{m, order})
	odd := &table[bool]{max: maxOdd}
	return func(at time.Duration, dir trace.Direction, out bool, data []byte) {
		w.mu.Lock()
		defer w.mu.Unlock()
		found := m.Frame(at, dir, data)
		switch {
		case out && len(found) > 0:
			if id := idOf(data); id != "" {
				odd.put(id, true)
			}
		case len(found) > 0:
			found = slices.DeleteFunc(found, func(f Finding) bool {
				if _, ours := odd.get(idOf(data)); !ours {
					return false
				}
				return path.Base(f.Rule.ID) == "id-kind" || path.Base(f.Rule.ID) == "response-known"
			})
		}
		w.note(m, order, found, out, data)
	}
}

// maxOdd bounds the ids of broken frames that the checker has sent. A peer that answers
// with such an id repeats it.
const maxOdd = 256

// idOf returns the id of a message as JSON, or "".
func idOf(data []byte) string {
	v, err := pattern.Parse(string(data))
	if err != nil || v.Get("id") == nil {
		return ""
	}
	return v.Get("id").Text
}

func (w *watch) note(m *Monitor, order int, found []Finding, out bool, data []byte) {
	for _, f := range found {
		if f.Rule.Side != w.side {
			continue
		}
		key := brokenRule{f.Rule.ID, m.version}
		r := w.broken[key]
		if r == nil || r.order > order {
			r = &breach{Result{Rule: f.Rule, Version: m.version, Status: Fail, Why: f.Why}, order}
			w.broken[key] = r
		}
		if r.order == order && data != nil && f.Frame == m.stats.Frames && len(r.Saw) < maxSaw {
			seen := Seen{Out: out, Data: clip(string(data), 2<<10)}
			if !slices.Contains(r.Saw, seen) { // once more it would say nothing
				r.Saw = append(r.Saw, seen)
			}
		}
	}
}

// fail notes that a rule was broken in a way that only who has asked can see.
func (w *watch) fail(id string, version int, why string, saw ...Seen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if key := (brokenRule{id, version}); w.broken[key] == nil && builtin().byID[id] != nil {
		w.broken[key] = &breach{Result{Rule: builtin().byID[id], Version: version, Status: Fail, Why: why, Saw: saw}, 0}
	}
}

// interrupted says that connections have ended before their time: what is missing at their
// ends is not missing because of the peer.
func (w *watch) interrupted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, seen := range w.monitors {
		seen.monitor.ended = true
	}
}

// result returns what became of an observed rule in a version, when all
// connections are over.
func (w *watch) result(r *Rule, d *dialect) *Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, seen := range w.monitors {
		if !seen.monitor.ended {
			w.note(seen.monitor, seen.order, seen.monitor.End(), false, nil)
		}
	}
	for _, v := range []int{d.version, 0} {
		if b := w.broken[brokenRule{r.ID, v}]; b != nil {
			c := b.Result
			c.Version = d.version
			return &c
		}
	}
	status := Unseen
	for _, seen := range w.monitors {
		if m := seen.monitor; m.seenIn(r, d.version) || m.version == d.version && m.seenIn(r, 0) {
			status = Pass
			break
		}
	}
	return &Result{Rule: r, Version: d.version, Status: status}
}
