package legacy

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"iter"
	"time"
)

// A Session is a row of a session.
type Session struct {
	row                  int64
	Agent, ID            string
	Command              []string
	Cwd, Title           string
	Protocol             int
	Created, Updated     time.Time
	Turns                int
	Events, first, reset int64
	// Parent is the id of the session, of the same agent, that this one works for as a subagent.
	Parent string
}

// A Kind says what an Event is.
type Kind string

// The kinds of events.
const (
	Update   Kind = "update"
	Asked    Kind = "asked"
	Answered Kind = "answered"
	Turn     Kind = "turn"
	Replayed Kind = "replayed" // see Session.Events
	Reset    Kind = "reset"
)

// An Event is a row of an event.
type Event struct {
	Seq  int64
	Time time.Time
	Kind Kind
	Data json.RawMessage
}

// Sessions returns all sessions. A row with values of the wrong type is left out, and counted.
func (d *DB) Sessions(ctx context.Context) (all []Session, bad int, err error) {
	rows, err := d.db.QueryContext(ctx, `
SELECT session.id, session.agent, session.sid, session.command, session.cwd, session.title, session.protocol, session.created, session.updated,
	session.turns, session.events, session.first, session.reset, coalesce(parent.sid, '')
FROM session LEFT JOIN child ON child.session = session.id LEFT JOIN session AS parent ON parent.id = child.parent ORDER BY session.id`)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var s Session
		var command string
		var created, updated int64
		// A value that is not the text or number that it should be counts as missing.
		var protocol, turns, events, first, reset looseInt
		err := rows.Scan(&s.row, &s.Agent, &s.ID, &command, &s.Cwd, &s.Title, &protocol, (*looseInt)(&created), (*looseInt)(&updated), &turns, &events, &first, &reset, &s.Parent)
		if err != nil || s.ID == "" {
			bad++
			continue
		}
		s.Protocol, s.Turns, s.Events, s.first, s.reset = int(protocol), int(turns), int64(events), int64(first), int64(reset)
		s.Created, s.Updated = instant(created), instant(updated)
		if command != "" {
			_ = json.Unmarshal([]byte(command), &s.Command) // otherwise it is not known
		}
		all = append(all, s)
	}
	return all, bad, rows.Err()
}

// A looseInt is a number, or 0 if the column has something else.
type looseInt int64

// Scan implements [sql.Scanner].
func (n *looseInt) Scan(v any) error {
	*n = 0
	if i, ok := v.(int64); ok {
		*n = looseInt(i)
	}
	return nil
}

// instant returns a time as it was kept; 0 is the zero time.
func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// page is how many events are read at once.
const page = 512

// Conversation calls a function with the events that make the conversation of a session, in order.
// It leaves out those that a later history has replaced; the other events of that history become
// updates. Rows with values of the wrong type are left out.
func (d *DB) Conversation(ctx context.Context, s Session) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		after := s.first - 1
		for {
			events, err := d.page(ctx, s.row, &after)
			if err != nil {
				yield(Event{}, err)
				return
			}
			if events == nil {
				return
			}
			for _, e := range events {
				if e.Kind == Replayed {
					if e.Seq >= s.reset {
						continue // of a history that was cut off
					}
					e.Kind = Update
				}
				if e.Kind == Reset {
					continue // it has been applied
				}
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// page returns the next events, or nil after the last one.
func (d *DB) page(ctx context.Context, session int64, after *int64) ([]Event, error) {
	rows, err := d.db.QueryContext(ctx, `SELECT seq, time, kind, data FROM event WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?`, session, *after, page)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var events []Event
	size := 0
	for rows.Next() && size < 8<<20 {
		var seq int64
		var at looseInt
		var kind string
		var data sql.RawBytes
		if events == nil {
			events = []Event{}
		}
		if err := rows.Scan(&seq, &at, &kind, &data); err != nil {
			if e := rows.Scan(&seq, new(any), new(any), new(any)); e != nil {
				return nil, errors.Join(err, e)
			}
			*after = max(seq, *after+1)
			continue
		}
		*after = seq
		if !json.Valid(data) {
			continue
		}
		events = append(events, Event{Seq: seq, Time: instant(int64(at)), Kind: Kind(kind), Data: append(json.RawMessage(nil), data...)})
		size += len(data)
	}
	return events, rows.Err()
}

// SetAside closes the database and renames its file; it returns the new name.
func (d *DB) SetAside() (string, error) {
	if err := d.db.Close(); err != nil {
		return "", err
	}
	defer d.lock.Close()
	return setAside(d.path, ".taken-over")
}
