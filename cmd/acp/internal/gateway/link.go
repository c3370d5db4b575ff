package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

const (
	// dialTime bounds how long it takes to reach another node.
	dialTime = 3 * time.Second
	// dialAgain is how long a node that could not be reached is not dialled again.
	dialAgain = time.Second
)

// A dialing is how a node is being reached, or was not.
type dialing struct {
	one   chan struct{} // holds one while the node is being dialled, who may use err and at
	err   error         // why it was not reached
	at    time.Time     // when
	users int           // who dial, or wait; guarded by the gateway's lock
}

// errUnreached is why there is no link to a node.
var errUnreached = errors.New("the node cannot be reached")

// link returns the connection to a node, which is made if there is none.
func (g *Gateway) link(ctx context.Context, node string) (*link, error) {
	l, d, err := g.linked(node)
	if l != nil || err != nil { // without waiting
		return l, err
	}
	defer g.dialed(d)
	select {
	case d.one <- struct{}{}:
		defer func() { <-d.one }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	g.mu.Lock()
	l, closed := g.links[node], g.closed
	g.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case l != nil && l.conn.Err() == nil:
		return l, nil
	case d.err != nil && time.Since(d.at) < dialAgain: // others have waited for that
		return nil, d.err
	}
	info, err := g.node(ctx, node)
	if err != nil {
		return nil, err
	}
	dialing, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	stream, err := g.cfg.Nodes.Dial(dialing, info.Transport)
	if err != nil {
		err = fmt.Errorf("reach node %s: %w: %w", node, errUnreached, err)
		if ctx.Err() == nil {
			d.err, d.at = err, time.Now()
		}
		return nil, err
	}
	d.err = nil
	return g.linkOver(node, stream)
}

// linked returns the connection to a node; or, if there is none, how it is being reached, for dialed.
func (g *Gateway) linked(node string) (*link, *dialing, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, ErrClosed
	}
	if l := g.links[node]; l != nil && l.conn.Err() == nil {
		return l, nil, nil
	}
	d := g.dials[node]
	if d == nil {
		d = &dialing{one: make(chan struct{}, 1)}
		g.dials[node] = d
	}
	d.users++
	return nil, d, nil
}

// dialed is called by who does not use d any more. What nobody uses and says nothing any more is forgotten.
func (g *Gateway) dialed(d *dialing) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d.users--
	for node, d := range g.dials {
		if d.users == 0 && (d.err == nil || time.Since(d.at) >= dialAgain) {
			delete(g.dials, node)
		}
	}
}

// linkOver makes a stream to a node the link to it.
func (g *Gateway) linkOver(node string, stream jsonrpc.Stream) (*link, error) {
	l := &link{g: g, node: node, visits: make(map[string]*visit)}
	mux := new(jsonrpc.Mux)
	rpcRecords.Handle(mux, l.records)
	rpcAsk.Handle(mux, l.ask)
	rpcAsked.Handle(mux, l.asked)
	rpcOver.Handle(mux, l.ended)
	rpcPresent.Handle(mux, l.present)
	l.conn = jsonrpc.NewConn(stream, jsonrpc.Config{Settings: linkSettings, Mux: mux, Lane: laneOf, Logger: g.cfg.Logger})
	g.mu.Lock()
	g.links[node] = l
	closed := g.closed
	g.mu.Unlock()
	g.work.Go(func() {
		<-l.conn.Done()
		for _, v := range l.all() {
			v.end(errGone)
		}
		_ = l.conn.Wait()
		g.mu.Lock()
		if g.links[node] == l {
			delete(g.links, node)
		}
		g.mu.Unlock()
	})
	if closed {
		_ = l.conn.Close()
		return nil, ErrClosed
	}
	return l, nil
}
