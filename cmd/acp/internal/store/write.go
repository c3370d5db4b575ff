package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// nanos returns a time as it is kept; the zero time is 0.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// instant is the other way.
func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// checkKey returns an error for a key that cannot be kept.
func checkKey(k Key) error {
	switch {
	case k.ID == "":
		return errors.New("a session without an id")
	case len(k.ID) > MaxID || len(k.Agent) > MaxID:
		return fmt.Errorf("name of a session with %d bytes: %w", len(k.Agent)+len(k.ID), ErrTooLarge)
	}
	return nil
}

// cut returns the beginning of s, of max bytes at most, without half a character.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// tx runs f in a transaction that has the write lock from its beginning.
func (s *Store) tx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Put creates the session or changes what is known of it; zero fields change
// nothing, and Events is not looked at. Titles are cut at [MaxTitle].
func (s *Store) Put(ctx context.Context, session Session) error {
	err := checkKey(session.Key)
	if err == nil {
		err = s.tx(ctx, func(tx *sql.Tx) error { return put(ctx, tx, session) })
	}
	return s.failed("keep session", err)
}

func put(ctx context.Context, tx *sql.Tx, v Session) error {
	var command []byte
	if v.Command != nil {
		var err error
		if command, err = json.Marshal(v.Command); err != nil {
			return err
		}
	}
	v.Title = cut(strings.ToValidUTF8(v.Title, "\uFFFD"), MaxTitle)
	created, updated := nanos(v.Created), nanos(v.Updated)
	now := time.Now().UnixNano()
	var id int64
	err := tx.QueryRowContext(ctx, `
INSERT INTO session (agent, sid, command, cwd, title, protocol, created, updated, turns)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, coalesce(nullif(?7, 0), nullif(?8, 0), ?10), coalesce(nullif(?8, 0), nullif(?7, 0), ?10), ?9)
ON CONFLICT (agent, sid) DO UPDATE SET
	command = coalesce(nullif(?3, ''), command),
	cwd = coalesce(nullif(?4, ''), cwd),
	title = coalesce(nullif(?5, ''), title),
	protocol = coalesce(nullif(?6, 0), protocol),
	created = coalesce(nullif(?7, 0), created),
	updated = coalesce(nullif(?8, 0), updated),
	turns = coalesce(nullif(?9, 0), turns)
RETURNING id`,
		v.Agent, v.ID, string(command), v.Cwd, v.Title, v.Protocol, created, updated, v.Turns, now).Scan(&id)
	if err == nil && v.Parent != "" && v.Parent != v.ID {
		err = putChild(ctx, tx, id, Key{v.Agent, v.Parent}, now)
	}
	if err != nil || v.Title == "" {
		return err
	}
	_, err = tx.ExecContext(ctx, `
INSERT INTO message (session, role, mid, text) VALUES (?1, 'title', '', ?2)
ON CONFLICT (session, role, mid) DO UPDATE SET text = ?2 WHERE text <> ?2`, id, v.Title)
	return err
}

// putChild notes that a session is a subagent's of another, which is made if there is none.
func putChild(ctx context.Context, tx *sql.Tx, id int64, parent Key, now int64) error {
	if err := checkKey(parent); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `
INSERT INTO session (agent, sid, created, updated) VALUES (?1, ?2, ?3, ?3) ON CONFLICT (agent, sid) DO NOTHING`,
		parent.Agent, parent.ID, now)
	if err == nil {
		_, err = tx.ExecContext(ctx, `
INSERT OR REPLACE INTO child (session, parent) SELECT ?1, id FROM session WHERE agent = ?2 AND sid = ?3`,
			id, parent.Agent, parent.ID)
	}
	return err
}

// Append adds events to a session, which it makes if there is none, in one
// transaction: when it returns nil they are on the disk, and else none of them is. It sets
// their numbers and, where there is none, their time. An event of more than [MaxEvent] is
// [ErrTooLarge].
func (s *Store) Append(ctx context.Context, k Key, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	err := checkKey(k)
	for _, e := range events {
		if len(e.Data) > MaxEvent {
			err = fmt.Errorf("event of %d bytes: %w", len(e.Data), ErrTooLarge)
		}
	}
	var seqs []int64
	now := time.Now()
	if err == nil {
		err = s.tx(ctx, func(tx *sql.Tx) (err error) {
			seqs, err = appendEvents(ctx, tx, k, events, now)
			return err
		})
	}
	if err != nil {
		return s.failed("keep what happened in a session", err)
	}
	turn := false
	for i := range events {
		events[i].Seq = seqs[i]
		if events[i].Time.IsZero() {
			events[i].Time = now
		}
		turn = turn || events[i].Kind == EventTurn
	}
	if turn {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

func appendEvents(ctx context.Context, tx *sql.Tx, k Key, events []Event, now time.Time) ([]int64, error) {
	var id, seq int64
	err := tx.QueryRowContext(ctx, `
INSERT INTO session (agent, sid, created, updated) VALUES (?1, ?2, ?3, ?3)
ON CONFLICT (agent, sid) DO UPDATE SET seq = seq RETURNING id, seq`, k.Agent, k.ID, now.UnixNano()).Scan(&id, &seq)
	if err != nil {
		return nil, err
	}
	insert, err := tx.PrepareContext(ctx, `INSERT INTO event (session, seq, time, kind, data) VALUES (?, ?, ?, ?, ?)`)
	if err != nil {
		return nil, err
	}
	defer insert.Close()
	seqs := make([]int64, len(events))
	var updated, turns int64
	for i, e := range events {
		seq++
		seqs[i] = seq
		at := nanos(e.Time)
		if at == 0 {
			at = now.UnixNano()
		}
		data := []byte(e.Data)
		if data == nil {
			data = []byte("null")
		}
		if _, err := insert.ExecContext(ctx, id, seq, at, string(e.Kind), data); err != nil {
			return nil, err
		}
		switch e.Kind {
		case EventReset:
			if err := reset(ctx, tx, id, seq, e.Data); err != nil {
				return nil, err
			}
			continue
		case EventReplayed:
			continue
		case EventTurn:
			turns++
		}
		updated = max(updated, at)
	}
	// Resets have changed how many there are, so what is added is counted, not kept.
	_, err = tx.ExecContext(ctx, `
UPDATE session SET seq = ?2, events = events + ?3, turns = turns + ?4, updated = max(updated, ?5) WHERE id = ?1`,
		id, seq, len(events), turns, updated)
	return seqs, err
}

// reset puts the replayed events since the one that the reset names in the place of what is before
// them.
func reset(ctx context.Context, tx *sql.Tx, id, seq int64, data json.RawMessage) error {
	var r Reset
	if len(data) > 0 {
		if err := json.Unmarshal(data, &r); err != nil {
			return fmt.Errorf("data of a reset: %w", err)
		}
	}
	first := seq
	if r.From > 0 {
		var n int
		err := tx.QueryRowContext(ctx, `SELECT 1 FROM event WHERE session = ? AND seq >= ? AND kind = ? LIMIT 1`, id, r.From, string(EventReplayed)).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		first = min(r.From, seq)
	}
	gone, err := tx.ExecContext(ctx, `DELETE FROM event WHERE session = ? AND seq < ?`, id, first)
	if err != nil {
		return err
	}
	n, err := gone.RowsAffected()
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM message WHERE session = ? AND role <> 'title'`, id); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE session SET first = ?2, reset = ?3, indexed = ?2 - 1, events = events - ?4 WHERE id = ?1`, id, first, seq, n)
	return err
}

// maxAside bounds how many ids are tried by SetAside.
const maxAside = 10_000

// SetAside gives a session another id, the first of ID~1, ID~2 and so on that is free, so that its
// own can be used for another session: agents that remember nothing begin to count anew whenever
// they are started. That there is none is no error; free is then "".
func (s *Store) SetAside(ctx context.Context, k Key) (free string, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		var id int64
		err := tx.QueryRowContext(ctx, `SELECT id FROM session WHERE agent = ? AND sid = ?`, k.Agent, k.ID).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		for n := 1; n <= maxAside; n++ {
			name := k.ID + "~" + strconv.Itoa(n)
			var taken int
			err := tx.QueryRowContext(ctx, `SELECT 1 FROM session WHERE agent = ? AND sid = ?`, k.Agent, name).Scan(&taken)
			if errors.Is(err, sql.ErrNoRows) {
				free = name
				_, err = tx.ExecContext(ctx, `UPDATE session SET sid = ? WHERE id = ?`, name, id)
				return err
			}
			if err != nil {
				return err
			}
		}
		return fmt.Errorf("there are %d sessions of that id already", maxAside)
	})
	if err != nil {
		return "", s.failed("set session aside", err)
	}
	return free, nil
}

// Delete removes a session and its events, also from the log beside the file unless somebody is
// reading just then. That there is none is [ErrNotFound].
func (s *Store) Delete(ctx context.Context, k Key) error {
	err := s.tx(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `DELETE FROM session WHERE agent = ? AND sid = ?`, k.Agent, k.ID)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, ErrNotFound)
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return ErrNotFound
	}
	if err != nil {
		return s.failed("delete session", err)
	}
	// Gives the room back to the disk, and has the log forget what was said; what is left of either is
	// used for what comes next.
	_, _ = s.write.ExecContext(ctx, `PRAGMA incremental_vacuum`)
	_, _ = s.write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return nil
}
