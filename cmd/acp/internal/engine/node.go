package engine

import (
	"context"
	"encoding/json"
	"fmt"
)

// A Node is what is known of a process that shares the database.
type Node struct {
	// Name is that of its lease.
	Name string
	// Info is what it says of itself; the engine does not look into it.
	Info json.RawMessage
	// Live reports whether its lease has not lapsed, by the database's clock.
	Live bool
}

// maxNodes bounds the nodes that are listed.
const maxNodes = 1000

// Describe stores what the node of a lease says of itself, for as long as it is the one that has the lease. It
// fails with [ErrLapsed] if it is not.
func (l *Lease) Describe(ctx context.Context, info json.RawMessage) error {
	if err := checkJSON("node", info); err != nil {
		return err
	}
	if err := l.e.db.DescribeNode(ctx, l.node, l.token, info); err != nil {
		return fmt.Errorf("describe node %q: %w", l.node, err)
	}
	return nil
}

// Nodes returns the nodes that have described themselves, by name, at most 1,000, also those whose lease
// has lapsed a day ago or later.
func (e *Engine) Nodes(ctx context.Context) ([]Node, error) {
	all, err := e.db.Nodes(ctx, maxNodes)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return all, nil
}

// ForgetNode removes a node from those that [Engine.Nodes] returns. It fails with [ErrNotFound] if there is none of that
// name whose lease has lapsed.
func (e *Engine) ForgetNode(ctx context.Context, name string) error {
	there, err := e.db.ForgetNode(ctx, name)
	if err == nil && !there {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("forget node %q: %w", name, err)
	}
	return nil
}

// Owner returns the node that owns a session, or owned it last, and its epoch. The name is empty if the session was
// released or has never been claimed.
func (e *Engine) Owner(ctx context.Context, session string) (node string, epoch uint32, err error) {
	st, err := e.db.State(ctx, session)
	if err != nil {
		return "", 0, fmt.Errorf("owner of session %q: %w", session, err)
	}
	return st.Node, st.Epoch, nil
}

// Publish gives records that another node has committed to those who follow the session here. Records
// that are not the next ones make them read the log.
func (e *Engine) Publish(session string, records []Record) { e.publish(session, records) }

// Missed makes those who follow a session read the log, because records may have been committed by another node
// that were not published.
func (e *Engine) Missed(session string) {
	if t := e.topic(session); t != nil {
		t.miss()
	}
}
