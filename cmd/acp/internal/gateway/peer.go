package gateway

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"sort"

	"github.com/goacp/acp/jsonrpc"
)

// rpcPresent says who is attached to a session elsewhere: a node tells the owner of its own clients, and the owner each node of
// all others.
var rpcPresent = jsonrpc.Notification[wirePresent]{Name: "present"}

type wirePresent struct {
	wireSession
	crowd
}

// A crowd is who is attached to a session somewhere.
type crowd struct {
	People []Person `json:"people,omitempty"`
	More   int      `json:"more,omitempty"` // that are not named
}

// bounded returns a crowd sorted by name, with as many names as a client is sent.
func (c crowd) bounded() crowd {
	sort.Slice(c.People, func(i, j int) bool {
		a, b := c.People[i], c.People[j]
		if a.Name == b.Name && a.You != b.You {
			return a.You
		}
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Role, b.Role)) < 0
	})
	if n := len(c.People) - maxPeople; n > 0 {
		c.People, c.More = c.People[:maxPeople], c.More+n
	}
	return c
}

// A peer is another node that has clients in a session: one that visits it, or the one that is visited.
type peer struct {
	owner  bool   // this node visits it
	herald herald // is rung when somebody else comes or leaves
	// Guarded by the lock of present.
	there  crowd  // its clients, or those that it knows
	said   bool   // it has said so by a message of its own
	number uint64 // the later it has joined, the higher
}

func newPeer(owner bool) *peer {
	return &peer{owner: owner, herald: herald{bell: make(chan struct{}, 1)}}
}

// current returns the nodes that know who is there: the one that this node visits, or all that visit this node, whichever have
// joined last. While a session moves there are others, which say where its clients were before. The caller holds p.mu.
func (p *present) current(id string) (nodes []*peer) {
	all := slices.SortedFunc(maps.Keys(p.peers[id]), func(a, b *peer) int { return cmp.Compare(a.number, b.number) })
	for _, n := range all {
		if n.owner || len(nodes) > 0 && nodes[0].owner {
			nodes = nodes[:0]
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// crowd returns who is attached to a session on this node, and on others but one. One of the clients may be the one who
// gets it.
func (p *present) crowd(id string, you *watcher, but *peer) crowd {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := crowd{People: make([]Person, 0, len(p.in[id]))}
	for w := range p.in[id] {
		if w != you && !w.attended() {
			continue
		}
		c.People = append(c.People, Person{w.who.name(), w.now().role(), w == you})
	}
	nodes := p.current(id)
	if but != nil && !slices.Contains(nodes, but) { // it learns of the others elsewhere
		nodes = nil
	}
	for _, n := range nodes {
		if n != but {
			c.People = append(c.People, n.there.People...)
			c.More += n.there.More
		}
	}
	return c.bounded()
}

// join adds a node, until part is called, unless ctx has ended: then it will be called, or has been.
func (p *present) join(ctx context.Context, id string, n *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if p.peers == nil {
		p.peers = make(map[string]map[*peer]bool)
	}
	if p.peers[id] == nil {
		p.peers[id] = make(map[*peer]bool)
	}
	p.peers[id][n] = true
	p.joined++
	n.number = p.joined
	n.herald.ring()
	p.tell(id, n)
}

// part removes a node, and tells those who are left.
func (p *present) part(id string, n *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.peers[id][n] {
		return
	}
	if delete(p.peers[id], n); len(p.peers[id]) == 0 {
		delete(p.peers, id)
	}
	p.tell(id, n)
}

// learn is called with what a node says of who is there; first, if that is from the answer to a request, which may be older
// than a message that has come before it. What it says is bounded here as well.
func (p *present) learn(id string, n *peer, there crowd, first bool) {
	for i := range there.People {
		person := &there.People[i]
		person.Name, person.Role, person.You = shortName(person.Name), shortName(person.Role), false
	}
	there.More = max(there.More, 0)
	there = there.bounded()
	p.mu.Lock()
	defer p.mu.Unlock()
	if first && n.said {
		return
	}
	n.there, n.said = there, !first
	if p.peers[id][n] {
		p.tell(id, n)
	}
}

// inform tells a node who is there in addition to its own clients, each time that this changes, until ctx ends.
func (g *Gateway) inform(ctx context.Context, about wireSession, n *peer, conn *jsonrpc.Conn) {
	told := crowd{People: []Person{}}
	for {
		select {
		case <-n.herald.bell:
		case <-ctx.Done():
			return
		case <-g.ctx.Done():
			return
		}
		c := g.present.crowd(about.Session, nil, n)
		if reflect.DeepEqual(c, told) {
			continue
		}
		if conn.Notify(ctx, rpcPresent.Name, &wirePresent{about, c}) != nil {
			return // the visit ends with the connection
		}
		told = c
	}
}
