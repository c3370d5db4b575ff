package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// crew is a cluster whose clients have the name of their node.
func crew(t *testing.T, names ...string) (all []*member) {
	dir := t.TempDir()
	for _, name := range names {
		all = append(all, newMember(t, dir, name, talking(nil), func(c *Config) {
			c.Who = func(context.Context) Who {
				return Who{User: "local", Name: "on " + name, Rights: MayPrompt | MayApprove}
			}
		}))
	}
	return all
}

// names returns who is there, with a star for the client itself.
func (p *Presence) names() string {
	var all []string
	for _, person := range p.People {
		name := person.Name
		if person.You {
			name += "*"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

// expect waits until a client has heard that these people are there.
func (h *hearing) expect(want string) {
	for p := range h.presence {
		if p.names() == want {
			return
		}
	}
}

// TestPresenceElsewhere: each client learns who is there on all nodes, whichever owns the session, also when it moves, and
// when a node is gone.
func TestPresenceElsewhere(t *testing.T) {
	nodes := crew(t, "a", "b", "c")
	a, b, c := nodes[0], nodes[1], nodes[2]
	one, asOne := hears(false)
	two, asTwo := hears(false)
	three, asThree := hears(false)
	s := a.connect(1, asOne).new(t)
	one.expect("on a*")
	theirs := b.connect(2, asTwo).load(t, s.ID())
	var meta map[string]struct{ People []Person }
	if err := json.Unmarshal(theirs.Meta(), &meta); err != nil || len(meta[metaKey].People) == 0 || meta[metaKey].People[0].Name != "on a" {
		t.Errorf("_meta of the answer: %s, %v", theirs.Meta(), err)
	}
	one.expect("on a*, on b")
	two.expect("on a, on b*")
	d := c.connect(2, asThree)
	d.load(t, s.ID())
	one.expect("on a*, on b, on c")
	two.expect("on a, on b*, on c")
	three.expect("on a, on b, on c*")

	if err := a.g.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	say(t, s, "one") // it runs elsewhere
	all := func(w *watcher) bool { return len(w.g.present.people(w.id, w).People) == 3 }
	for _, m := range nodes {
		for w := watcherOf(t, m, s.ID()); !all(w); {
			if t.Context().Err() != nil {
				t.Fatalf("node %s: %+v", m.name, w.g.present.people(w.id, w))
			}
			runtime.Gosched()
		}
	}
	for len(one.presence)+len(two.presence)+len(three.presence) > 0 { // what they were told while it moved
		select {
		case <-one.presence:
		case <-two.presence:
		case <-three.presence:
		default:
		}
	}
	_ = d.conn.Close()
	one.expect("on a*, on b")
	two.expect("on a, on b*")
	for _, m := range nodes {
		if n := m.g.present.count(string(s.ID())); n > 1 {
			t.Errorf("node %s counts %d clients of its own", m.name, n)
		}
	}
}

// TestPresenceMoves: nobody is named twice after a session has moved, although a node that was visited has not said yet what
// has become of prompts.
func TestPresenceMoves(t *testing.T) {
	nodes := crew(t, "a", "b", "c")
	a, b, c := nodes[0], nodes[1], nodes[2]
	one, asOne := hears(false)
	three, asThree := hears(false)
	s := a.connect(1, asOne).new(t)
	b.connect(2).load(t, s.ID())
	c.connect(2, asThree).load(t, s.ID())
	one.expect("on a*, on b, on c")
	three.expect("on a, on b, on c*")

	v, err := b.g.visit(t.Context(), "a", string(s.ID()), false) // as the client there does
	if err != nil {
		t.Fatal(err)
	}
	v.mu.Lock()
	v.calls++ // has no answer
	v.mu.Unlock()
	if err := a.g.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.connect(2).load(t, s.ID())
	for _, node := range []struct {
		hears *hearing
		want  string
	}{{three, "on a, on b, on b, on c*"}, {one, "on a*, on b, on b, on c"}} {
		for p := range node.hears.presence {
			names := p.names()
			if strings.Count(names, "on a") > 1 || strings.Count(names, "on b") > 2 || strings.Count(names, "on c") > 1 {
				t.Error(names)
			}
			if names == node.want {
				break
			}
		}
	}
}

// TestPeersCurrent: while a session moves, those who are there are named by the nodes that have joined last.
func TestPeersCurrent(t *testing.T) {
	var p present
	peers := make(map[string]*peer)
	for _, step := range []struct {
		do, node string
		owner    bool
		want     string // who is there
		told     string // whom the node is notified of
	}{
		{"join", "a", true, "a", ""},
		{"join", "b", true, "b", ""}, // it has moved to b
		{"part", "a", false, "b", ""},
		{"join", "c", false, "c", ""}, // and to this node
		{"join", "d", false, "c, d", "c"},
		{"part", "b", false, "c, d", ""},
		{"join", "e", true, "e", ""}, // and to e
		{"part", "c", false, "e", ""},
		{"part", "e", false, "d", ""}, // and back
		{"part", "d", false, "", ""},
	} {
		if step.do == "join" {
			n := newPeer(step.owner)
			peers[step.node] = n
			p.learn("s", n, crowd{People: []Person{{Name: step.node}}}, true)
			p.join(t.Context(), "s", n)
		} else {
			p.part("s", peers[step.node])
		}
		all, told := p.people("s", nil), Presence{People: p.crowd("s", nil, peers[step.node]).People}
		if got := all.names(); got != step.want {
			t.Errorf("%s %s: %q, want %q", step.do, step.node, got, step.want)
		}
		if got := told.names(); got != step.told {
			t.Errorf("%s %s: it is notified of %q, want %q", step.do, step.node, got, step.told)
		}
	}
}

// TestPresenceAway: those on a node that is gone are not there any more.
func TestPresenceAway(t *testing.T) {
	nodes := crew(t, "a", "b")
	a, b := nodes[0], nodes[1]
	one, asOne := hears(false)
	s := a.connect(1, asOne).new(t)
	b.connect(2).load(t, s.ID())
	one.expect("on a*, on b")
	b.die()
	one.expect("on a*")
}

// TestPeopleBound: at most 32 are named, wherever they are, and the others are counted.
func TestPeopleBound(t *testing.T) {
	nodes := crew(t, "a", "b")
	one, asOne := hears(false)
	s := nodes[0].connect(1, asOne).new(t)
	const clients = maxPeople + 3
	for range clients {
		nodes[1].connect(2).load(t, s.ID())
	}
	p := one.until(clients + 1)
	if len(p.People) != maxPeople || p.More != 4 {
		t.Errorf("%d people, %d more", len(p.People), p.More)
	}
	if p.People[0].Name != "on a" {
		t.Errorf("%+v", p.People[0])
	}
}

// TestLearn: what a node says of who is there is bounded, and an answer that comes late counts for nothing.
func TestLearn(t *testing.T) {
	var p present
	n := newPeer(false)
	p.join(t.Context(), "s", n)
	there := crowd{More: -1}
	for i := range 2 * maxPeople {
		there.People = append(there.People, Person{Name: fmt.Sprint(i, strings.Repeat("x", 1000)), You: true})
	}
	p.learn("s", n, there, false)
	p.learn("s", n, crowd{}, true)
	got := p.people("s", nil)
	if len(got.People) != maxPeople || got.More != maxPeople {
		t.Errorf("%d people, %d more", len(got.People), got.More)
	}
	if slices.ContainsFunc(got.People, func(p Person) bool { return p.You || len(p.Name) > maxPersonName+len("…") }) {
		t.Errorf("%+v", got.People)
	}
	p.part("s", n)
	if got := p.people("s", nil); len(got.People) != 0 || got.More != 0 {
		t.Errorf("after it has left: %+v", got)
	}
	left, cancel := context.WithCancel(t.Context())
	cancel()
	if p.join(left, "s", n); len(p.peers) != 0 {
		t.Error("a node joins that has left")
	}
}
