package identity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// MaxSubscriptions bounds the devices of a user that are sent messages. A device has one subscription at most.
const MaxSubscriptions = 50

// The trigger has a subscription end with its device, whoever removes that, programs included that know nothing of
// subscriptions.
const pushSchema = `
CREATE TABLE IF NOT EXISTS subscription (
	device   TEXT    PRIMARY KEY,
	endpoint TEXT    NOT NULL, -- the URL; whoever has it, and a key of this server, can send messages
	public   BLOB    NOT NULL, -- p256dh
	auth     BLOB    NOT NULL,
	title    INTEGER NOT NULL  -- whether messages say what a session is called
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS subscription_end AFTER DELETE ON device BEGIN DELETE FROM subscription WHERE device = OLD.id; END;
`

// A Subscription is where a device is sent messages: see package push.
type Subscription struct {
	Endpoint     string
	Public, Auth []byte
	Title        bool // messages say what a session is called
}

// Subscribe has a device be sent messages, in place of those that it was sent so far. The error wraps [ErrNotFound] if
// there is no such device, and [ErrTooMany] if its user has [MaxSubscriptions].
func (s *Store) Subscribe(ctx context.Context, device string, sub Subscription) error {
	return s.change(ctx, func(tx *sql.Tx) error {
		var there, others int
		err := tx.QueryRowContext(ctx, `SELECT count(*), (SELECT count(*) FROM subscription JOIN device ON id = device WHERE device <> ? AND user = me.user)
			FROM device AS me WHERE id = ?`, device, device).Scan(&there, &others)
		switch {
		case err != nil:
			return storeError(err)
		case there == 0:
			return fmt.Errorf("device %s: %w", device, ErrNotFound)
		case others >= MaxSubscriptions:
			return fmt.Errorf("%w devices with notifications: there are %d; revoke some", ErrTooMany, others)
		}
		// A browser that was another device before has the same endpoint. It gets messages once.
		if _, err := tx.ExecContext(ctx, `DELETE FROM subscription WHERE endpoint = ?`, sub.Endpoint); err != nil {
			return storeError(err)
		}
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO subscription (device, endpoint, public, auth, title) VALUES (?, ?, ?, ?, ?)`,
			device, sub.Endpoint, sub.Public, sub.Auth, sub.Title)
		return storeError(err)
	})
}

// Unsubscribe ends the subscription of a device, if it has one. With an endpoint it does so only if that is its endpoint.
func (s *Store) Unsubscribe(ctx context.Context, device, endpoint string) error {
	if err := s.present(); err != nil {
		return err
	}
	_, err := s.db.ExecContext(ctx, `DELETE FROM subscription WHERE device = ? AND (? = '' OR endpoint = ?)`, device, endpoint, endpoint)
	return storeError(err)
}

// Subscription returns where a device is sent messages. The error wraps [ErrNotFound] if that is nowhere, or if its
// credential has expired.
func (s *Store) Subscription(ctx context.Context, device string) (sub Subscription, err error) {
	if err := s.present(); err != nil {
		return Subscription{}, err
	}
	err = s.db.QueryRowContext(ctx, `SELECT endpoint, public, auth, title FROM subscription JOIN device ON id = device WHERE device = ? AND (expires = 0 OR expires > ?)`,
		device, nanos(time.Now())).Scan(&sub.Endpoint, &sub.Public, &sub.Auth, &sub.Title)
	if errors.Is(err, sql.ErrNoRows) {
		return Subscription{}, fmt.Errorf("subscription of device %s: %w", device, ErrNotFound)
	}
	return sub, storeError(err)
}

// Subscribers returns the devices that are sent messages, but for those whose credential has expired.
func (s *Store) Subscribers(ctx context.Context) ([]Device, error) {
	return s.devices(ctx, `WHERE id IN (SELECT device FROM subscription) AND (expires = 0 OR expires > ?)`, nanos(time.Now()))
}

// Setting returns a setting of the server that is made once, by whichever process is the first: what fresh returns.
func (s *Store) Setting(ctx context.Context, key string, fresh func() (string, error)) (value string, err error) {
	err = s.change(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT value FROM setting WHERE key = ?`, key).Scan(&value)
		if !errors.Is(err, sql.ErrNoRows) {
			return storeError(err)
		}
		if value, err = fresh(); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO setting VALUES (?, ?)`, key, value)
		return storeError(err)
	})
	return value, err
}
