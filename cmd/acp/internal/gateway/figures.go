package gateway

import (
	"context"
	"sync"

	"github.com/goacp/acp/jsonrpc"
)

// rpcFigures asks another node how many sessions and agents it has now: what it last said of itself may be as old as a tick.
var rpcFigures = jsonrpc.Method[wireFigures, NodeFigures]{Name: "figures"}

type wireFigures struct{}

func (*wireFigures) lane() string { return "count" } // it holds no session

// NodeFigures are what a node has now.
type NodeFigures struct {
	Name     string `json:"name"`
	Draining bool   `json:"draining"`
	Sessions int    `json:"sessions"` // that it owns
	Agents   int    `json:"agents"`   // that run
}

// figures returns what the node has, as far as is known of it.
func (n *NodeInfo) figures() *NodeFigures {
	return &NodeFigures{n.Name, n.Draining, n.Sessions, n.Agents}
}

// figures serves another node.
func (g *Gateway) figures(context.Context, *wireFigures) (*NodeFigures, error) {
	self := g.self()
	return self.figures(), nil
}

// figuresOf returns the figures of the other nodes that answer in time, by name.
func (g *Gateway) figuresOf(ctx context.Context) map[string]NodeFigures {
	all := make(map[string]NodeFigures)
	var mu sync.Mutex
	g.eachNode(ctx, countTime, func(ctx context.Context, conn *jsonrpc.Conn) {
		res, err := rpcFigures.Call(ctx, conn, &wireFigures{})
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		all[res.Name] = *res
	})
	return all
}
