package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/jsonrpc"
)

// Methods of the gateway itself, for the owner: see [MayOperate].
var (
	// NodesMethod returns the nodes that share the log, by name.
	NodesMethod = jsonrpc.Method[NodesRequest, NodesAnswer]{Name: ownmeta.Method + "nodes"}
	// DrainMethod has a node give up its sessions, and answers when it has; the node stays drained if the caller
	// stops waiting. With Undo the node takes sessions again.
	DrainMethod = jsonrpc.Method[DrainRequest, DrainAnswer]{Name: ownmeta.Method + "drain"}
	// ForgetMethod removes a node that is not live from the list.
	ForgetMethod = jsonrpc.Method[ForgetRequest, ForgetAnswer]{Name: ownmeta.Method + "nodes/forget"}
)

// A NodesRequest asks for all nodes.
type NodesRequest struct{}

// A NodesAnswer has all nodes.
type NodesAnswer struct {
	Nodes []NodeStatus `json:"nodes"`
}

// A NodeStatus is what a node says of itself, for the owner.
type NodeStatus struct {
	NodeFigures
	Live       bool      `json:"live"`           // its lease has not lapsed
	This       bool      `json:"this,omitempty"` // the one that answers
	Version    string    `json:"version,omitempty"`
	Started    time.Time `json:"started"`
	Workspaces []string  `json:"workspaces,omitempty"`
	// Earlier says that the node has not answered within a second, so that its figures are those that it last said: while it
	// is live they are a few seconds old.
	Earlier bool `json:"earlier,omitempty"`
}

// A DrainRequest names a node; "" is the one that is asked.
type DrainRequest struct {
	Node string `json:"node,omitempty"`
	Undo bool   `json:"undo,omitempty"`
}

func (*DrainRequest) lane() string { return "drain" } // it takes long, and holds no session

// A DrainAnswer says how many sessions a node still has, and why.
type DrainAnswer struct {
	Node     string       `json:"node"`
	Draining bool         `json:"draining"`
	Sessions int          `json:"sessions"`
	Failure  *wireFailure `json:"failure,omitempty"` // between nodes only
}

// A ForgetRequest names a node that is not live.
type ForgetRequest struct {
	Node string `json:"node"`
}

// A ForgetAnswer says that the node is not listed any more.
type ForgetAnswer struct{}

// rpcDrain is [DrainMethod] between nodes.
var rpcDrain = jsonrpc.Method[DrainRequest, DrainAnswer]{Name: "drain"}

// extensions registers the methods that are the gateway's own.
func (g *Gateway) extensions(mux *jsonrpc.Mux) {
	g.operate(mux)
	ShareMethod.Handle(mux, g.share)
	g.lends(mux)
	HistoryMethod.Handle(mux, g.history)
	AgentsMethod.Handle(mux, g.choices)
	FilesMethod.Handle(mux, g.files)
	ExportMethod.Handle(mux, g.exportMarkdown)
	HiddenMethod.Handle(mux, g.hear)
	PingMethod.Handle(mux, func(context.Context, *Ping) (*Pong, error) { return &Pong{}, nil })
	if g.cfg.Extend != nil {
		g.cfg.Extend(mux)
	}
}

// operate registers the methods of the gateway itself.
func (g *Gateway) operate(mux *jsonrpc.Mux) {
	NodesMethod.Handle(mux, func(ctx context.Context, _ *NodesRequest) (*NodesAnswer, error) {
		if who := g.who(ctx); !who.may(MayOperate) {
			return nil, who.errRole("ask about nodes")
		}
		all, err := g.Members(ctx)
		if err != nil {
			return nil, err
		}
		self, now := g.self(), g.figuresOf(ctx)
		res := &NodesAnswer{Nodes: make([]NodeStatus, 0, len(all))}
		for _, n := range all {
			this := n.Name == self.Name
			if this {
				n = self // what is stored is older
			}
			figures, answers := now[n.Name]
			if !answers {
				figures = *n.figures()
			}
			res.Nodes = append(res.Nodes, NodeStatus{
				NodeFigures: figures, Live: n.Live, This: this, Version: n.Version, Started: n.Started,
				Workspaces: n.Workspaces, Earlier: !answers && !this,
			})
		}
		return res, nil
	})
	ForgetMethod.Handle(mux, func(ctx context.Context, p *ForgetRequest) (*ForgetAnswer, error) {
		if who := g.who(ctx); !who.may(MayOperate) {
			return nil, who.errRole("forget nodes")
		}
		err := g.cfg.Log.ForgetNode(ctx, p.Node)
		if errors.Is(err, engine.ErrNotFound) {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no node of that name that is gone; a node that is live cannot be forgotten")
		}
		return &ForgetAnswer{}, err
	})
	DrainMethod.Handle(mux, func(ctx context.Context, p *DrainRequest) (*DrainAnswer, error) {
		if who := g.who(ctx); !who.may(MayOperate) {
			return nil, who.errRole("drain nodes")
		}
		if p.Node == "" || p.Node == g.self().Name {
			return g.drain(ctx, p)
		}
		l, err := g.link(ctx, p.Node)
		if errors.Is(err, errNoNode) || errors.Is(err, errAway) {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
		}
		if err != nil {
			return nil, err
		}
		res, err := rpcDrain.Call(ctx, l.conn, &DrainRequest{Undo: p.Undo})
		if err == nil {
			err = res.Failure.err()
		}
		return res, err
	})
}

// drain drains this node, or undoes that.
func (g *Gateway) drain(ctx context.Context, p *DrainRequest) (*DrainAnswer, error) {
	if g.cfg.Nodes == nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "this server shares its sessions with no other one, which could take them")
	}
	var err error
	if p.Undo {
		g.Undrain(ctx)
	} else {
		err = g.Drain(ctx)
	}
	self := g.self()
	return &DrainAnswer{Node: self.Name, Draining: self.Draining, Sessions: self.Sessions}, err
}

// drained serves another node's request to drain this one.
func (g *Gateway) drained(ctx context.Context, p *DrainRequest) (*DrainAnswer, error) {
	res, err := g.drain(ctx, p)
	if err != nil {
		return &DrainAnswer{Failure: failed(err)}, nil
	}
	return res, nil
}
