//go:build unix

package cluster

import (
	"syscall"
	"testing"
	"time"
)

// A fault happens while clients are busy. It returns when it is over, or has been dealt with. g is the gateway that owns
// the first session.
type fault struct {
	name string
	do   func(t *testing.T, r *rig, l *load, g *gateway)
	// planned is that nobody may notice but for a pause: all prompts run to their end, and no client connects again.
	planned bool
}

// away waits for as long as something is away that comes back by itself: longer than a lease.
func away(t *testing.T) {
	select {
	case <-time.After(2 * *lease):
	case <-t.Context().Done():
	}
}

// owner returns the gateway that owns the first session.
func (r *rig) owner(t *testing.T, l *load) *gateway {
	t.Helper()
	var node string
	r.db[r.primary].Value(t, "acp", `SELECT node FROM public.acp_head WHERE id = $1`, &node, string(l.all[0].id))
	for _, g := range r.nodes {
		if g.name == node {
			return g
		}
	}
	t.Fatalf("the owner is %q", node)
	return nil
}

// drained is the fault that bench/gateway reports apart.
const drained = "a gateway is drained"

var faults = []fault{
	{name: "nothing", do: func(*testing.T, *rig, *load, *gateway) {}},
	{name: drained, planned: true, do: func(t *testing.T, r *rig, l *load, g *gateway) {
		r.node(t, g, "drain")
		for id, node := range r.owners(t.Context(), r.primary) {
			if node == g.name {
				t.Errorf("%s belongs to %s, which is drained", id, node)
			}
		}
		l.progress(t, 2) // of these, one has begun at another gateway
		r.node(t, g, "undrain")
	}},
	{name: "a gateway is killed and comes back", do: func(t *testing.T, r *rig, l *load, g *gateway) {
		r.kill(g)
		l.progress(t, 1)
		r.start(g)
	}},
	{name: "a gateway is killed and is back at once", do: func(t *testing.T, r *rig, l *load, g *gateway) {
		r.kill(g)
		r.start(g)
	}},
	{name: "a gateway is ended", do: func(t *testing.T, r *rig, l *load, g *gateway) {
		r.end(g)
		l.progress(t, 1)
		r.start(g)
	}},
	{name: "a gateway is paused", do: func(t *testing.T, r *rig, l *load, g *gateway) {
		g.signal(syscall.SIGSTOP)
		away(t)
		g.signal(syscall.SIGCONT)
	}},
	{name: "a gateway is cut off from the database", do: func(t *testing.T, r *rig, l *load, g *gateway) {
		g.cut(true, true)
		away(t)
		g.cut(false, false)
	}},
	{name: "what a gateway sends to the database is held", do: func(t *testing.T, r *rig, l *load, g *gateway) {
		g.cut(true, false)
		away(t)
		g.cut(false, false)
	}},
	{name: "what the database answers is held", do: func(t *testing.T, r *rig, l *load, g *gateway) {
		g.cut(false, true)
		away(t)
		g.cut(false, false)
	}},
	{name: "gateways do not reach each other", do: func(t *testing.T, r *rig, _ *load, _ *gateway) {
		for _, g := range r.nodes {
			g.inbound.cut(true, true)
		}
		away(t)
		for _, g := range r.nodes {
			g.inbound.cut(false, false)
		}
	}},
	{name: "the primary is killed", do: func(t *testing.T, r *rig, l *load, _ *gateway) {
		old := r.primary
		r.db[old].Kill()
		r.failOver(t)
		l.progress(t, 1)
		r.comeBack(t, old)
	}},
	{name: "the primary is paused, and continues after another one has taken over", do: func(t *testing.T, r *rig, l *load, _ *gateway) {
		old := r.primary
		r.db[old].Pause()
		away(t)
		r.failOver(t)
		l.progress(t, 1)
		r.db[old].Continue() // it does not know
		l.progress(t, 1)
		r.comeBack(t, old)
	}},
	{name: "the primary is paused and continues", do: func(t *testing.T, r *rig, _ *load, _ *gateway) {
		r.db[r.primary].Pause()
		away(t)
		r.db[r.primary].Continue()
	}},
	{name: "standbys do not reach the primary", do: func(t *testing.T, r *rig, _ *load, _ *gateway) {
		for i := range r.follow {
			r.follow[i][r.primary].cut(true, true)
		}
		away(t)
		for i := range r.follow {
			r.follow[i][r.primary].cut(false, false)
		}
	}},
	{name: "the primary is cut off from everybody, another one takes over, and it is back", do: func(t *testing.T, r *rig, l *load, _ *gateway) {
		old := r.primary
		for _, g := range r.nodes {
			g.db[old].cut(true, true)
		}
		for i := range r.follow {
			r.follow[i][old].cut(true, true)
		}
		r.failOver(t)
		l.progress(t, 1)
		for _, g := range r.nodes {
			g.db[old].cut(false, false)
		}
		for i := range r.follow {
			r.follow[i][old].cut(false, false)
		}
		l.progress(t, 1)
		r.comeBack(t, old)
	}},
	{name: "the disk of the primary is full", do: func(t *testing.T, r *rig, l *load, _ *gateway) {
		if r.unlimited != nil {
			t.Skip(r.unlimited)
		}
		old := r.primary
		free := r.db[old].Fill(t)
		away(t)
		r.db[old].Kill() // it may have ended by itself
		r.failOver(t)
		l.progress(t, 1)
		free()
		r.comeBack(t, old)
	}},
	{name: "the clock of the database is moved forward", do: func(t *testing.T, r *rig, l *load, _ *gateway) {
		r.db[r.primary].Query(t, "acp", `UPDATE moved.by SET seconds = 3600`)
		l.progress(t, 1)
	}},
	{name: "the clock of the database is moved back", do: func(t *testing.T, r *rig, l *load, _ *gateway) {
		r.db[r.primary].Query(t, "acp", `UPDATE moved.by SET seconds = 0`)
		l.progress(t, 1)
	}},
}

// TestFaults: whatever fails, everything that a client has seen is in the log, once and in order; no prompt runs twice,
// and no question has two answers; of two owners of a session only one appends; and clients continue.
func TestFaults(t *testing.T) {
	if !*run {
		t.Skip("this takes minutes: use -cluster")
	}
	newRig(t).suffer(t, faults)
}

// suffer has one fault after the other happen, each to clients of its own.
func (r *rig) suffer(t *testing.T, faults []fault) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			l := begin(t, r)
			l.progress(t, 1)
			l.suffer(t, f)
			l.progress(t, 2)
			l.check(t)
			if f.planned && (l.figures.Failed > 0 || l.figures.Again > 0) {
				t.Errorf("%d prompts have failed, and %d clients had to connect again", l.figures.Failed, l.figures.Again)
			}
		})
		if t.Failed() {
			for _, g := range r.nodes {
				t.Logf("%s:\n%s", g.name, g.log())
			}
			return
		}
	}
}
