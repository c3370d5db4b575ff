package postgres

import "context"

// Size implements [engine.Sizer]: it is that of all tables. Not every database that speaks as PostgreSQL does knows it.
func (d *Database) Size(ctx context.Context) (n int64, err error) {
	err = d.read.QueryRowContext(ctx, `SELECT sum(pg_total_relation_size(t::regclass)) FROM (VALUES
		('acp_head'), ('acp_session'), ('acp_record'), ('acp_tombstone')) AS tables (t)`).Scan(&n)
	return n, wrap(err)
}
