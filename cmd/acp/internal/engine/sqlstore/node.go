package sqlstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// forgetNode is how long a node is known whose lease has lapsed.
const forgetNode = 24 * time.Hour

// andGone is the condition that the lease of a node has lapsed.
const andGone = ` AND NOT EXISTS (SELECT 1 FROM acp_lease l WHERE l.node = acp_node.node AND l.expires > {now})`

// ForgetNode implements [engine.Database].
func (s *Store) ForgetNode(ctx context.Context, node string) (there bool, err error) {
	err = s.write(ctx, func(tx Tx) error {
		n, err := s.exec(ctx, tx, `DELETE FROM acp_node WHERE node = $1`+andGone, node)
		there = n > 0
		return err
	})
	return there, err
}

// DescribeNode implements [engine.Database].
func (s *Store) DescribeNode(ctx context.Context, node string, token int64, info json.RawMessage) error {
	return s.write(ctx, func(tx Tx) error {
		if _, err := s.exec(ctx, tx, `DELETE FROM acp_node WHERE seen < {now} - $1`+andGone, forgetNode.Microseconds()); err != nil {
			return err
		}
		n, err := s.exec(ctx, tx, `INSERT INTO acp_node (node, info, seen)
			SELECT l.node, cast($3 AS {blob}), {now} FROM acp_lease l WHERE l.node = $1 AND l.token = $2 AND l.expires > {now}
			ON CONFLICT (node) DO UPDATE SET info = excluded.info, seen = excluded.seen`, node, token, bytesOf(info))
		if err == nil && n == 0 {
			err = engine.ErrLapsed
		}
		return err
	})
}

// Nodes implements [engine.Database].
func (s *Store) Nodes(ctx context.Context, n int) ([]engine.Node, error) {
	rows, err := s.d.Read.QueryContext(ctx, s.sql(`SELECT node, info, (SELECT count(*) FROM acp_lease l WHERE l.node = acp_node.node AND l.expires > {now})
		FROM acp_node ORDER BY node LIMIT $1`), n)
	if err != nil {
		return nil, s.d.Wrap(err)
	}
	defer rows.Close()
	var all []engine.Node
	for rows.Next() {
		var node engine.Node
		var info []byte
		var live int
		if err := rows.Scan(&node.Name, &info, &live); err != nil {
			return nil, s.d.Wrap(err)
		}
		node.Info, node.Live = nilIfEmpty(info), live > 0
		all = append(all, node)
	}
	return all, s.d.Wrap(rows.Err())
}
