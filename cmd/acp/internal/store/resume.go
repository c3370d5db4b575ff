package store

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/goacp/acp/transcript"
)

// A Resumed is a conversation that a process continues: see [Store.Resume].
type Resumed struct {
	Snapshot *transcript.Snapshot
	// Damage says what of the conversation is damaged; nil means nothing.
	Damage *Damage
	// Interrupted says that the program was killed in the middle of the last turn, and that the end
	// of the turn could not be written. The caller should append it.
	Interrupted bool
}

// Resume returns a conversation, within [Bounds], for a caller that continues it. If inTurn reports that the
// last turn has no end, and no running process writes the conversation, Resume writes that the turn was
// interrupted. It reads, decides and writes while it holds the lock of the log: of several processes that
// resume the conversation at the same time, one writes the end.
func (s *Store) Resume(ctx context.Context, id string, inTurn func(*transcript.Snapshot) bool) (Resumed, error) {
	t, damage, err := s.Snapshot(ctx, id, Bounds())
	if err != nil || !inTurn(t) {
		return Resumed{Snapshot: t, Damage: damage}, err
	}
	r, err := abandon(ctx, s, func() (Resumed, error) { return s.endInterrupted(ctx, id, inTurn) })
	if ctx.Err() != nil {
		return Resumed{}, wrap("read session", ctx.Err())
	}
	if err != nil {
		s.log.Warn("the end of an interrupted turn is not written", "conversation", id, "error", err)
	}
	if r.Snapshot == nil {
		return Resumed{Snapshot: t, Damage: damage}, nil
	}
	return r, nil
}

// endInterrupted writes the end of the last turn of a conversation if the turn is open and no
// process writes the conversation, and returns the conversation with that. It returns no snapshot
// if others write it, or if that is not known.
func (s *Store) endInterrupted(ctx context.Context, id string, inTurn func(*transcript.Snapshot) bool) (Resumed, error) {
	last, err := lastPart(s.files, s.dir, id)
	if err != nil || last == 0 {
		return Resumed{}, err
	}
	// Writers append to the last part if they get its lock, and otherwise begin another part. So
	// while the last part is locked here and stays the last, only those that have locked an earlier
	// part can write.
	log, unwritable := openPart(s.files, s.dir, id, last, os.O_RDWR|os.O_APPEND)
	others := last
	if unwritable == nil {
		defer log.close()
		others--
	}
	if busy, err := s.isLocked(id, others); busy || err != nil {
		return Resumed{}, err
	}
	t, damage, err := s.snapshot(ctx, id, Bounds())
	if err != nil || !inTurn(t) {
		return Resumed{Snapshot: t, Damage: damage}, err
	}
	end := TurnEnd{By: string(transcript.EndedByClient)}
	data, err := json.Marshal(&end)
	if err != nil {
		return Resumed{}, err
	}
	event := Event{Time: time.Now(), Kind: EventTurn, Data: data} // its time precedes what another process may begin now
	if now, err := lastPart(s.files, s.dir, id); now != last || err != nil {
		return Resumed{}, err
	}
	if err := ctx.Err(); err != nil {
		return Resumed{}, err // the caller no longer waits
	}
	if unwritable == nil && log.head {
		unwritable = errors.New("the log has no header") // a recorder writes that
	}
	if unwritable == nil {
		unwritable = log.append([]Event{event})
	}
	if unwritable != nil {
		return Resumed{Snapshot: t, Damage: damage, Interrupted: true}, unwritable
	}
	s.wakeIndexer()
	return Resumed{Snapshot: Interrupted(t), Damage: damage}, nil
}
