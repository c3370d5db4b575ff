package gateway

import (
	"context"
	"sync"

	"github.com/goacp/acp/jsonrpc"
)

// rpcFigures asks another node how many sessions and agents it has now: what it last said of itself may be as old as a tick.
var rpcFigures = jsonrpc.Method[wireFigures, figures]{Name: "figures"}

type wireFigures struct{}

func (*wireFigures) lane() string { return "count" } // it holds no session

// figures are what a node has.
type figures struct {
	Name     string `json:"name"`
	Draining bool   `json:"draining,omitempty"`
	Sessions int    `json:"sessions"`
	Agents   int    `json:"agents"`
}

// figures serves another node.
func (g *Gateway) figures(context.Context, *wireFigures) (*figures, error) {
	self := g.self()
	return &figures{self.Name, self.Draining, self.Sessions, self.Agents}, nil
}

// figuresOf returns the figures of the other nodes that answer in time, by name.
func (g *Gateway) figuresOf(ctx context.Context) map[string]figures {
	all := make(map[string]figures)
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
