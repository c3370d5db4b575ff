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
	if l.db == nil {
		return nil
	}
	if err := l.db.DescribeNode(ctx, l.node, l.token, info); err != nil {
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
