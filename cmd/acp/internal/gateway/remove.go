package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/internal/sleep"
	"github.com/goacp/acp/jsonrpc"
)

// removeTime bounds how long another node may take to delete a session: it ends an agent.
const removeTime = dialTime + stopTime

// deleteTime bounds how long it may take to delete what is kept of a session.
const deleteTime = time.Minute

// rpcRemove has the owner of a session delete it.
var rpcRemove = jsonrpc.Method[wireRemove, wireEnd]{Name: "remove"}

type wireRemove struct {
	Session string `json:"session"`
}

func (r *wireRemove) lane() string { return "remove " + r.Session } // it takes long, and what else is about the session need not wait

// remove ends a session, wherever it runs, and deletes everything of it. An owner that cannot be reached notices when it
// writes next.
func (g *Gateway) remove(ctx context.Context, id string) error {
	asked := ""
	if g.cfg.Nodes != nil && g.session(id) == nil {
		owner, err := g.cfg.Log.Owner(ctx, id)
		if err != nil {
			g.logger(id).Info("gateway: the owner of a session that is deleted is not known", "error", err)
		}
		g.removeThere(ctx, owner, id)
		asked = owner
	}
	return g.removeHere(ctx, id, asked)
}

// removeThere has the owner of a session delete it, if that is another node.
func (g *Gateway) removeThere(ctx context.Context, owner, id string) {
	if g.cfg.Nodes == nil || owner == "" || owner == g.self().Name {
		return
	}
	if err := g.askToRemove(ctx, owner, id); err != nil {
		g.logger(id).Info("gateway: the owner of a session that is deleted cannot end it", "error", err)
	}
}

func (g *Gateway) askToRemove(ctx context.Context, owner, id string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	l, err := g.link(ctx, owner)
	if err != nil {
		return err
	}
	res, err := rpcRemove.Call(ctx, l.conn, &wireRemove{id})
	if err != nil {
		return err
	}
	return res.Failure.err()
}

// removed is called by another node.
func (g *Gateway) removed(ctx context.Context, r *wireRemove) (*wireEnd, error) {
	return &wireEnd{Failure: failed(g.removeHere(ctx, r.Session, ""))}, nil
}

// removeHere ends a session if it runs here, and deletes everything of it. asked is a node that was asked to do so before.
func (g *Gateway) removeHere(ctx context.Context, id, asked string) error {
	g.mu.Lock()
	g.deleting[id]++
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.deleting[id]--; g.deleting[id] == 0 {
			delete(g.deleting, id)
		}
	}()
	defer g.changed(id)
	// What has begun continues when the client leaves: a half-deleted session is useless.
	ctx, cancel := either(context.WithoutCancel(ctx), g.ctx)
	defer cancel()
	var owner string
	var gone bool
	var left error // why records are left
	remove := func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, deleteTime)
		defer cancel()
		owner, err = g.cfg.Log.Delete(ctx, id)
		if errors.Is(err, engine.ErrUnpurged) {
			left, err = err, nil
		}
		gone = err == nil
		return err
	}
	if g.cfg.Nodes == nil && g.session(id) == nil {
		if who, err := g.cfg.Log.Owner(ctx, id); err == nil && who != "" {
			return openElsewhere(&journal.OwnedError{ID: id, Who: who})
		}
	}
	if s := g.session(id); s != nil {
		// It is deleted while it is owned. Once it is given up, another node may claim it.
		err := s.closeWith(func() error {
			err := remove()
			if err != nil {
				err = errors.Join(err, s.release())
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if !gone {
		if err := remove(); err != nil {
			return err
		}
	}
	g.dropTexts(id)
	if owner != asked { // it has claimed the session meanwhile
		g.removeThere(ctx, owner, id)
	}
	return left
}

// dropTexts drops what is remembered of the text of a session that was deleted.
func (g *Gateway) dropTexts(id string) {
	g.exports.drop(id)
	g.backdrops.drop(id)
}

// expireEvery is how often it is looked at what is remembered and was not used lately.
const expireEvery = time.Minute

// expire drops what is remembered and was not used lately, until the gateway closes: a session that another node deletes
// leaves nothing here.
func (g *Gateway) expire() {
	for sleep.For(g.ctx, expireEvery) {
		g.exports.expire()
		g.backdrops.expire()
		g.fileLists.expire()
	}
}
