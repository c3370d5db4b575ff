package identity

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/filelock"

	_ "modernc.org/sqlite" // the driver
)

const (
	storeName = "identity.db"
	// storeID marks the file: "acpD"; storeVersion is its version, of which there is one.
	storeID      = 0x61637044
	storeVersion = 1
	// storeWait bounds how long an operation waits for another process.
	storeWait = 5 * time.Second
	// usedEvery is how often the last use of a device is written.
	usedEvery = time.Minute
)

// MaxDevices bounds the devices of all users.
const MaxDevices = 1000

// The trigger counts what may end the rights of a device, for those who watch.
const storeSchema = `
CREATE TABLE device (
	id       TEXT    PRIMARY KEY,
	hash     BLOB    NOT NULL, -- SHA-256 of the secret
	user     TEXT    NOT NULL,
	name     TEXT    NOT NULL UNIQUE,
	role     TEXT    NOT NULL,
	scope    TEXT    NOT NULL, -- JSON
	created  INTEGER NOT NULL, -- nanoseconds since 1970, as all times
	used     INTEGER NOT NULL, -- 0: never
	expires  INTEGER NOT NULL  -- 0: never
) WITHOUT ROWID;
CREATE TABLE ticket (
	id       TEXT    PRIMARY KEY,
	hash     BLOB    NOT NULL, -- SHA-256 of the secret
	code     BLOB    NOT NULL, -- SHA-256 of the id and the six digits
	tries    INTEGER NOT NULL, -- that were wrong
	user     TEXT    NOT NULL,
	name     TEXT    NOT NULL, -- of the device, or nothing
	role     TEXT    NOT NULL,
	scope    TEXT    NOT NULL,
	lifetime INTEGER NOT NULL, -- of the credential, 0: unlimited
	expires  INTEGER NOT NULL,
	state    TEXT    NOT NULL, -- of TicketState
	claim    BLOB    NOT NULL, -- SHA-256 of what the claimant has chosen, or nothing
	claimant TEXT    NOT NULL, -- what the device calls itself
	address  TEXT    NOT NULL, -- where it is
	device   TEXT    NOT NULL  -- the id of the device, once there is one
) WITHOUT ROWID;
CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE revision (n INTEGER NOT NULL);
INSERT INTO revision VALUES (0);
CREATE TRIGGER device_delete AFTER DELETE ON device BEGIN UPDATE revision SET n = n + 1; END;
CREATE TRIGGER device_rights AFTER UPDATE OF hash, user, role, scope, expires ON device BEGIN UPDATE revision SET n = n + 1; END;
`

// A Store has the devices and the tickets. Any number of processes may have it open at the same time. It
// is safe for concurrent use. [Store.Close] it.
type Store struct {
	db     *sql.DB
	file   string
	is     os.FileInfo
	logger *slog.Logger

	mu     sync.Mutex
	marked map[string]time.Time // when the last use of a device was written by this process, for a minute
	watch  watcher
}

// Open opens the store in a directory, which it creates with mode 0700; the files have mode 0600. Logger
// gets trouble that fails no operation; nil discards it.
func Open(ctx context.Context, dir string, logger *slog.Logger) (_ *Store, err error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the store of devices: %w", err)
	}
	s := &Store{file: filepath.Join(dir, storeName), logger: logger, marked: make(map[string]time.Time)}
	s.watch.init(s)
	// SQLite would create it readable by others.
	file, err := os.OpenFile(s.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the store of devices: %w", err)
	}
	err = file.Chmod(0o600) // it may have been copied here
	s.is, _ = file.Stat()
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("the store of devices: %w", err)
	}
	q := url.Values{"_txlock": {"immediate"}}
	for _, p := range []string{fmt.Sprintf("busy_timeout(%d)", storeWait.Milliseconds()), "journal_mode(WAL)", "synchronous(FULL)",
		"trusted_schema(0)", "cell_size_check(1)", "secure_delete(1)", "journal_size_limit(1048576)", "cache_size(-2000)"} {
		q.Add("_pragma", p)
	}
	path := filepath.ToSlash(s.file)
	if !strings.HasPrefix(path, "/") { // a drive
		path = "/" + path
	}
	if s.db, err = sql.Open("sqlite", "file://"+(&url.URL{Path: path}).EscapedPath()+"?"+q.Encode()); err != nil {
		return nil, fmt.Errorf("the store of devices: %w", err)
	}
	s.db.SetMaxOpenConns(4) // who reads does not wait for who waits for another process
	// Whoever turns a new file into one with a log needs it alone, and SQLite does not wait for that.
	if err := filelock.Do(ctx, filepath.Join(dir, "identity.lock"), func() error { return s.prepare(ctx) }); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.file, err), s.db.Close())
	}
	return s, nil
}

// prepare creates the tables of a new store.
func (s *Store) prepare(ctx context.Context) error {
	return s.change(ctx, func(tx *sql.Tx) error {
		var id, version, tables int
		err := tx.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`).
			Scan(&id, &version, &tables)
		switch {
		case err != nil:
			return err
		case id == storeID && version == storeVersion:
			_, err = tx.ExecContext(ctx, pushSchema+makerSchema) // which a store of an earlier program lacks
			return err
		case id == storeID:
			return fmt.Errorf("%w: it has version %d", ErrStore, version)
		case id != 0 || version != 0 || tables > 0:
			return fmt.Errorf("%w: it is of another program", ErrStore)
		}
		_, err = tx.ExecContext(ctx, storeSchema+pushSchema+makerSchema+fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %d`, storeID, storeVersion))
		return err
	})
}

// change calls f in a transaction, which is committed unless f fails.
func (s *Store) change(ctx context.Context, f func(*sql.Tx) error) error {
	if err := s.present(); err != nil {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return storeError(err)
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return storeError(tx.Commit())
}

// present returns an error if the file was deleted or replaced. SQLite would keep using the one that is
// gone, in which devices are not revoked.
func (s *Store) present() error {
	now, err := os.Stat(s.file)
	if err != nil || !os.SameFile(s.is, now) {
		return fmt.Errorf("%w: %s was deleted or replaced", ErrStore, s.file)
	}
	return nil
}

func storeError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the store of devices: %w", err)
}

// Close ends all watches, without a signal, and closes the store.
func (s *Store) Close() error {
	s.watch.close()
	return storeError(s.db.Close())
}

// A Device is something that has a credential: a phone, a laptop, a program. Its fields have no secret.
type Device struct {
	ID      string    `json:"id"`
	User    string    `json:"user"`
	Name    string    `json:"name"` // unique in the store
	Role    Role      `json:"role"`
	Scope   Scope     `json:"scope,omitzero"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"used,omitzero"`    // within a minute; zero means never
	Expires time.Time `json:"expires,omitzero"` // zero means never
}

// Principal returns who the device is.
func (d Device) Principal() Principal {
	return Principal{Kind: KindDevice, User: d.User, Device: d.ID, Name: d.Name, Role: d.Role, Scope: d.Scope, Expires: d.Expires}
}

// A Grant says what a new device may do.
type Grant struct {
	User  string
	Role  Role // not None
	Scope Scope
	// Lifetime is how long the credential is valid; 0 means until it is revoked.
	Lifetime time.Duration
	// By is the id of the device that gives this, or "". A ticket ends with that device, and the credential at the latest when
	// that of By does.
	By string
}

func (g Grant) check() error {
	switch {
	case g.Role <= None || g.Role > Owner:
		return fmt.Errorf("a device needs a role: %s", strings.Join(roleNames[1:], ", "))
	case g.Lifetime < 0:
		return errors.New("the lifetime of a credential is negative")
	}
	return errors.Join(checkName("user", g.User), g.Scope.check())
}

// Check returns why the grant, or the name of a device unless that is "", is refused; or nil.
func (g Grant) Check(name string) error {
	err := g.check()
	if name != "" {
		err = errors.Join(err, checkName("device", name))
	}
	return err
}

// Add adds a device and returns its credential, which is shown once: the store keeps a hash. The error
// wraps [ErrName] if there is a device of that name, and [ErrTooMany] if there are [MaxDevices].
func (s *Store) Add(ctx context.Context, name string, g Grant) (d Device, credential string, err error) {
	if err := errors.Join(checkName("device", name), g.check()); err != nil {
		return Device{}, "", err
	}
	err = s.change(ctx, func(tx *sql.Tx) error {
		d, credential, err = addDevice(ctx, tx, name, g)
		return err
	})
	return d, credential, err
}

// AddLike is Add for a device that calls itself so: its name is what is left of that, and is made another one if there is
// a device of that name.
func (s *Store) AddLike(ctx context.Context, name string, g Grant) (d Device, credential string, err error) {
	if err := g.check(); err != nil {
		return Device{}, "", err
	}
	err = s.change(ctx, func(tx *sql.Tx) error {
		if err := expireDevices(ctx, tx, time.Now()); err != nil {
			return err
		}
		if name, err = freeName(ctx, tx, cleanName(name)); err != nil {
			return err
		}
		d, credential, err = addDevice(ctx, tx, name, g)
		return err
	})
	return d, credential, err
}

func addDevice(ctx context.Context, tx *sql.Tx, name string, g Grant) (Device, string, error) {
	var there, same int
	now := time.Now()
	if err := expireDevices(ctx, tx, now); err != nil {
		return Device{}, "", err
	}
	if err := tx.QueryRowContext(ctx, `SELECT count(*), count(CASE WHEN name = ? THEN 1 END) FROM device`, name).Scan(&there, &same); err != nil {
		return Device{}, "", storeError(err)
	}
	switch {
	case same > 0:
		return Device{}, "", fmt.Errorf("%w: %s", ErrName, name)
	case there >= MaxDevices:
		return Device{}, "", fmt.Errorf("%w devices: there are %d; revoke some", ErrTooMany, there)
	}
	secret, hash := newSecret()
	d := Device{ID: randomText(idBytes), User: g.User, Name: name, Role: g.Role, Scope: g.Scope, Created: now.UTC()}
	if g.Lifetime > 0 {
		d.Expires = d.Created.Add(g.Lifetime)
	}
	if err := bound(ctx, tx, g.By, &d.Expires); err != nil {
		return Device{}, "", err
	}
	if err := made(ctx, tx, d.ID, g.By); err != nil {
		return Device{}, "", err
	}
	scope, err := json.Marshal(d.Scope)
	if err != nil {
		return Device{}, "", err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO device (id, hash, user, name, role, scope, created, used, expires) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)`,
		d.ID, hash, d.User, d.Name, d.Role.String(), string(scope), nanos(d.Created), nanos(d.Expires))
	if err != nil {
		return Device{}, "", storeError(err)
	}
	return d, join(credentialPrefix, d.ID, secret), nil
}

// expireDevices removes those whose credential has expired: their names are free again.
func expireDevices(ctx context.Context, tx *sql.Tx, now time.Time) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM device WHERE expires <> 0 AND expires <= ?`, now.UnixNano())
	return storeError(err)
}

// deviceColumns are those that scanDevice reads.
const deviceColumns = `id, user, name, role, scope, created, used, expires`

func scanDevice(scan func(...any) error, more ...any) (Device, error) {
	var d Device
	var role, scope string
	var created, used, expires int64
	if err := scan(append([]any{&d.ID, &d.User, &d.Name, &role, &scope, &created, &used, &expires}, more...)...); err != nil {
		return Device{}, err
	}
	var err error
	if d.Role, err = ParseRole(role); err == nil {
		err = json.Unmarshal([]byte(scope), &d.Scope)
	}
	if err != nil { // without its scope a device must not count as one without limits
		return Device{}, fmt.Errorf("%w: device %s: %w", ErrStore, d.Name, err)
	}
	d.Created, d.Used, d.Expires = instant(created), instant(used), instant(expires)
	return d, nil
}

// Authenticate returns whose credential a token is. The error wraps [ErrCredential] if it is nobody's.
// The last use of the device is written at most once a minute.
func (s *Store) Authenticate(ctx context.Context, token string) (Principal, error) {
	id, secret, ok := split(credentialPrefix, token)
	if !ok {
		return Principal{}, ErrCredential
	}
	if err := s.present(); err != nil {
		return Principal{}, err
	}
	want := make([]byte, 0, 32)
	d, err := scanDevice(s.db.QueryRowContext(ctx, `SELECT `+deviceColumns+`, hash FROM device WHERE id = ?`, id).Scan, &want)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Principal{}, storeError(err)
	}
	now := time.Now()
	right := subtle.ConstantTimeCompare(hashOf(secret), want) == 1 // false without a row
	if !right || err != nil || !d.Expires.IsZero() && !now.Before(d.Expires) {
		return Principal{}, ErrCredential
	}
	s.mark(ctx, d, now)
	return d.Principal(), nil
}

// mark writes the last use of a device, unless that was done within a minute. A failure must not keep a
// client out.
func (s *Store) mark(ctx context.Context, d Device, now time.Time) {
	s.mu.Lock()
	last := s.marked[d.ID]
	due := now.Sub(d.Used) >= usedEvery && now.Sub(last) >= usedEvery
	if due {
		if len(s.marked) >= MaxDevices {
			clear(s.marked)
		}
		s.marked[d.ID] = now // also if writing fails: it is tried again in a minute
	}
	s.mu.Unlock()
	if !due {
		return
	}
	if _, err := s.db.ExecContext(ctx, `UPDATE device SET used = ? WHERE id = ? AND used < ?`, nanos(now), d.ID, nanos(now)); err != nil {
		s.logger.Warn("identity: the last use of a device was not written", "device", d.Name, "error", err)
	}
}

// Devices returns all devices by user and name, those that have expired included.
func (s *Store) Devices(ctx context.Context) ([]Device, error) {
	return s.devices(ctx, `ORDER BY user, name`)
}

// devices returns the devices that the rest of a query chooses.
func (s *Store) devices(ctx context.Context, rest string, args ...any) (list []Device, err error) {
	if err := s.present(); err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, `SELECT `+deviceColumns+` FROM device `+rest, args...)
	if err != nil {
		return nil, storeError(err)
	}
	defer rows.Close()
	for rows.Next() {
		d, err := scanDevice(rows.Scan)
		if err != nil {
			return nil, storeError(err)
		}
		list = append(list, d)
	}
	return list, storeError(rows.Err())
}

// Device returns the device with an id. The error wraps [ErrNotFound] if there is none.
func (s *Store) Device(ctx context.Context, id string) (Device, error) {
	if err := s.present(); err != nil {
		return Device{}, err
	}
	d, err := scanDevice(s.db.QueryRowContext(ctx, `SELECT `+deviceColumns+` FROM device WHERE id = ?`, id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return Device{}, fmt.Errorf("device %s: %w", id, ErrNotFound)
	}
	return d, storeError(err)
}

// Revoke removes the device of a name and returns it. From then on its credential is nobody's, and
// [Store.Watch] signals in every process. The error wraps [ErrNotFound] if there is none.
func (s *Store) Revoke(ctx context.Context, name string) (Device, error) {
	return s.revokeOne(ctx, `WHERE name = ?`, name)
}

// RevokeID is Revoke for the device with an id, whatever its name is.
func (s *Store) RevokeID(ctx context.Context, id string) (Device, error) {
	return s.revokeOne(ctx, `WHERE id = ?`, id)
}

func (s *Store) revokeOne(ctx context.Context, where, key string) (Device, error) {
	list, err := s.revoke(ctx, where, key)
	if err == nil && len(list) == 0 {
		return Device{}, fmt.Errorf("device %s: %w", key, ErrNotFound)
	}
	if err != nil {
		return Device{}, err
	}
	return list[0], nil
}

// RevokeAll removes all devices, and all tickets with them, and returns the devices.
func (s *Store) RevokeAll(ctx context.Context) ([]Device, error) { return s.revoke(ctx, ``) }

func (s *Store) revoke(ctx context.Context, where string, args ...any) (list []Device, err error) {
	err = s.change(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `DELETE FROM device `+where+` RETURNING `+deviceColumns, args...)
		if err != nil {
			return storeError(err)
		}
		defer rows.Close()
		for rows.Next() {
			d, err := scanDevice(rows.Scan)
			if errors.Is(err, ErrStore) {
				err = nil // it is removed all the same
			}
			if err != nil {
				return storeError(err)
			}
			list = append(list, d)
		}
		if err := rows.Err(); err != nil || where != "" {
			return storeError(err)
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM ticket`)
		return storeError(err)
	})
	if err != nil {
		return nil, err
	}
	s.watch.look()
	return list, nil
}

// nanos returns a time as it is stored; the zero time is 0.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// instant is the reverse.
func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
