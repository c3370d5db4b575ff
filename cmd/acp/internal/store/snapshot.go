package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// Bounds are what conversations are kept within, in memory: a message of up to 32 MiB is whole, and
// the last 4 MiB of the output of a command are kept. A conversation that says little needs little,
// whatever they are.
func Bounds() transcript.Config {
	return transcript.Config{TotalBytes: 256 << 20, EntryBytes: 32 << 20, TerminalBytes: 4 << 20}
}

// Snapshot returns the conversation that the events of a session make, within the bounds of cfg: the
// last history that was told to its end and everything since, or all events if there is none. Events
// that cannot be read as what they should be are passed over. A session that is not there
// is [ErrNotFound].
//
// Permissions that were never answered are without an outcome. A turn that was cut off leaves the
// session as busy as it was then.
func (s *Store) Snapshot(ctx context.Context, k Key, cfg transcript.Config) (*transcript.Snapshot, error) {
	snapshot, err := s.fold(ctx, k, cfg)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	return snapshot, s.failed("read session", err)
}

func (s *Store) fold(ctx context.Context, k Key, cfg transcript.Config) (*transcript.Snapshot, error) {
	// One transaction, so that a reset meanwhile does not take events away.
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	var id, first, reset int64
	err = tx.QueryRowContext(ctx, `SELECT id, first, reset FROM session WHERE agent = ? AND sid = ?`, k.Agent, k.ID).Scan(&id, &first, &reset)
	if err != nil {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, `
SELECT seq, time, kind, data FROM event
WHERE session = ?1 AND seq >= ?2 AND (kind <> 'replayed' OR seq < ?3) ORDER BY seq`, id, first, reset)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	f := folder{conversation: transcript.New(cfg), asked: map[int64]uint64{}}
	for rows.Next() {
		e, err := scanEvent(rows)
		if err != nil {
			return nil, err
		}
		f.apply(e)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return f.conversation.Snapshot(), nil
}

// A folder makes a conversation of events.
type folder struct {
	conversation *transcript.Conversation
	asked        map[int64]uint64 // entries of questions without an answer, by the event that asked
}

func (f *folder) apply(e Event) {
	switch e.Kind {
	case EventUpdate, EventReplayed:
		if u, err := acpv2.UnmarshalSessionUpdate(e.Data); err == nil {
			f.conversation.Apply(u)
		}
	case EventAsked:
		var req acpv2.RequestPermissionRequest
		if json.Unmarshal(e.Data, &req) == nil {
			f.asked[e.Seq], _ = f.conversation.Asked(&req)
		}
	case EventAnswered:
		var a Answered
		if json.Unmarshal(e.Data, &a) != nil {
			return
		}
		outcome, err := acpv2.UnmarshalRequestPermissionOutcome(a.Outcome)
		if seq, ok := f.asked[a.Asked]; ok && err == nil {
			f.conversation.Answered(seq, outcome)
			delete(f.asked, a.Asked)
		}
	case EventTurn:
		var t TurnEnd
		if json.Unmarshal(e.Data, &t) != nil {
			return
		}
		if state := f.conversation.Snapshot().Session().State; !state.Idle() {
			f.conversation.Apply(&acpv2.IdleStateUpdate{StopReason: acpv2.StopReason(t.StopReason), Background: state.Background})
		}
	}
}
