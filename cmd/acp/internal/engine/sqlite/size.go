package sqlite

import "context"

// Size implements [engine.Sizer]: it is that of the file, without the journal.
func (d *Database) Size(ctx context.Context) (n int64, err error) {
	err = d.read.QueryRowContext(ctx, `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`).Scan(&n)
	return n, wrap(err)
}
