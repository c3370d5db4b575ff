package gateway

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// countTime is how long other nodes may take to say who is there. A list does not wait longer.
const countTime = time.Second

// rpcCount asks another node how many clients and questions sessions have there.
var rpcCount = jsonrpc.Method[wireCount, wireCounts]{Name: "count"}

type wireCount struct {
	Sessions []string `json:"sessions"`
}

func (*wireCount) lane() string { return "count" } // it holds no session

// wireCounts has the sessions that have any.
type wireCounts struct {
	Sessions map[string]count `json:"sessions,omitempty"`
}

// A count is how many clients are attached to a session, and how many questions wait in it.
type count struct {
	Here    int `json:"here,omitempty"`
	Waiting int `json:"waiting,omitempty"`
	// elsewhere says that the session is not open here, and no other node may have it.
	elsewhere bool
}

// counted serves another node.
func (g *Gateway) counted(_ context.Context, p *wireCount) (*wireCounts, error) {
	return &wireCounts{g.count(p.Sessions)}, nil
}

// count counts on this node.
func (g *Gateway) count(ids []string) map[string]count {
	all := make(map[string]count)
	for _, id := range ids {
		if c := (count{Here: g.present.count(id), Waiting: g.waiting(id)}); c != (count{}) {
			all[id] = c
		}
	}
	return all
}

// counts counts on all nodes that answer in time.
func (g *Gateway) counts(ctx context.Context, ids []string) map[string]count {
	all := g.count(ids)
	if g.cfg.Nodes == nil {
		for _, id := range ids {
			if g.session(id) == nil {
				c := all[id]
				c.elsewhere = true
				all[id] = c
			}
		}
	}
	if g.cfg.Nodes == nil || len(ids) == 0 {
		return all
	}
	var mu sync.Mutex
	g.eachNode(ctx, countTime, func(ctx context.Context, conn *jsonrpc.Conn) {
		res, err := rpcCount.Call(ctx, conn, &wireCount{ids})
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for id := range maps.Keys(res.Sessions) {
			if !slices.Contains(ids, id) {
				continue
			}
			c := all[id]
			c.Here += max(res.Sessions[id].Here, 0)
			c.Waiting += max(res.Sessions[id].Waiting, 0)
			all[id] = c
		}
	})
	return all
}
