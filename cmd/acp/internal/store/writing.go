package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goacp/acp/transcript"
)

// Writing reports whether a running process, which may be this one, is writing a conversation: it has
// appended to it and has not closed its [Recorder]. Writing tries the lock of each log and leaves writers
// undisturbed. A conversation that does not exist is not being written. An error means that it is not known,
// as where files cannot be locked.
func (s *Store) Writing(ctx context.Context, conversation string) (bool, error) {
	is, err := abandon(ctx, s, func() (bool, error) { return s.isLocked(conversation, maxParts) })
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return is, wrap("read session", err)
}

// IsInterrupted reports whether the program of a conversation was killed in the middle of its last
// turn: the turn is open, and no running process writes the conversation. It returns false if that
// is not known.
func (s *Store) IsInterrupted(ctx context.Context, v Session) bool {
	if !v.Open {
		return false
	}
	busy, err := s.Writing(ctx, v.Conversation)
	return !busy && err == nil
}

// isLocked reports whether one of the parts up to last is locked for writing.
func (s *Store) isLocked(conversation string, last int) (bool, error) {
	parts, err := s.parts(conversation)
	if err != nil {
		return false, err
	}
	for _, p := range parts[:min(len(parts), last)] {
		f, err := s.files.OpenFile(filepath.Join(s.dir, logName(conversation, p.n)), os.O_RDONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		// Shared, so that two callers do not regard each other as a writer.
		free, err := s.files.TryLock(f, false)
		f.Close()
		if err != nil || !free {
			return err == nil, err
		}
	}
	return false, nil
}

// Interrupted returns a conversation in the state after its program was killed in the middle of its
// turn.
func Interrupted(t *transcript.Snapshot) *transcript.Snapshot {
	c := t.Continue(Bounds())
	(&TurnEnd{By: string(transcript.EndedByClient)}).Apply(c)
	return c.Snapshot()
}
