package identity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// The trigger has tickets end with the device that has made them, whoever removes that, programs included that know nothing of
// makers. What a device has paired stays, and who has paired it.
const makerSchema = `
CREATE TABLE IF NOT EXISTS maker (
	made TEXT PRIMARY KEY, -- the id of a ticket or of a device
	by   TEXT NOT NULL     -- that of the device that has made it, which may be gone
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS maker_end AFTER DELETE ON device BEGIN
	DELETE FROM ticket WHERE id IN (SELECT made FROM maker WHERE by = OLD.id);
	DELETE FROM maker WHERE made = OLD.id;
END;
CREATE TRIGGER IF NOT EXISTS maker_ticket AFTER DELETE ON ticket BEGIN DELETE FROM maker WHERE made = OLD.id; END;
`

// made notes which device has made a ticket or another device; "" means none.
func made(ctx context.Context, tx *sql.Tx, id, by string) error {
	if by == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO maker VALUES (?, ?)`, id, by)
	return storeError(err)
}

// maker returns the id of the device that has made a ticket, or "".
func maker(ctx context.Context, tx *sql.Tx, id string) (by string, err error) {
	err = tx.QueryRowContext(ctx, `SELECT by FROM maker WHERE made = ?`, id).Scan(&by)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return by, storeError(err)
}

// bound makes an expiry one that is not after that of a device, which must be there unless it is "".
func bound(ctx context.Context, tx *sql.Tx, by string, expires *time.Time) error {
	if by == "" {
		return nil
	}
	var n int64
	err := tx.QueryRowContext(ctx, `SELECT expires FROM device WHERE id = ?`, by).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("the device that gives this: %w", ErrNotFound)
	}
	if last := instant(n); err == nil && !last.IsZero() && (expires.IsZero() || expires.After(last)) {
		*expires = last
	}
	return storeError(err)
}

// paired are the devices that one has paired, and those that these have.
const paired = `WITH RECURSIVE tree(id) AS (SELECT made FROM maker WHERE by = ? UNION SELECT made FROM maker JOIN tree ON by = tree.id) `

// Paired returns the devices that one has paired, and those that these have, by user and name. The device itself may be revoked.
func (s *Store) Paired(ctx context.Context, id string) ([]Device, error) {
	return s.devices(ctx, `WHERE id IN (`+paired+`SELECT id FROM tree) AND id <> ? ORDER BY user, name`, id, id)
}

// RevokePaired revokes what [Store.Paired] returns, and returns it.
func (s *Store) RevokePaired(ctx context.Context, id string) ([]Device, error) {
	return s.revoke(ctx, `WHERE id IN (`+paired+`SELECT id FROM tree) AND id <> ?`, id, id)
}
