package backend

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// ErrUnwritten is the Err of a [NoteStore] while part of a conversation waits in memory to be
// written.
var ErrUnwritten = errors.New("not written at the moment")

// ErrUnkept is the Err of a [NoteStore] once a part of a conversation is lost: it could not be written until its end.
var ErrUnkept = errors.New("a part of the conversation is lost")

// A keeper is the way of all sessions of a host to the store. It informs the frontend while part of
// any of them is not written.
type keeper struct {
	store  *store.Store // nil keeps nothing
	note   func(Note)
	killed <-chan struct{}

	mu       sync.Mutex
	troubled map[string]error // by the conversation

	telling sync.Mutex // held while note is called
	told    bool       // the frontend has been informed of trouble
}

// record returns what writes a new conversation, or nil if nothing is kept.
func (k *keeper) record() *store.Recorder {
	if k.store == nil {
		return nil
	}
	return k.store.Record(store.Session{}, k.options())
}

func (k *keeper) options() store.RecordOptions {
	return store.RecordOptions{Killed: k.killed, Trouble: k.trouble}
}

// trouble records that a conversation cannot be written, or that all of it is.
func (k *keeper) trouble(id string, err error) {
	if isFinal(err) {
		k.lose(id, fmt.Errorf("%w: what is said from now on is not kept: %w", ErrUnkept, err))
		return
	}
	k.mu.Lock()
	if err != nil {
		if k.troubled == nil {
			k.troubled = map[string]error{}
		}
		k.troubled[id] = err
	} else {
		delete(k.troubled, id)
	}
	k.mu.Unlock()
	k.tell()
}

// isFinal reports whether what cannot be written will not be tried again.
func isFinal(err error) bool {
	return errors.Is(err, journal.ErrNoLocks) || errors.Is(err, journal.ErrFenced) || errors.Is(err, journal.ErrExists) ||
		errors.As(err, new(*journal.OwnedError))
}

// lose reports that a part of a conversation is lost, once and for all: the conversations that are still written are not in
// trouble because of that.
func (k *keeper) lose(id string, err error) {
	k.mu.Lock()
	delete(k.troubled, id)
	others := len(k.troubled) > 0
	k.mu.Unlock()
	k.telling.Lock()
	defer k.telling.Unlock()
	k.say(err, k.reason(err))
	k.told = k.told && others
}

// tell informs the frontend whether there is trouble.
func (k *keeper) tell() {
	k.telling.Lock()
	defer k.telling.Unlock()
	k.mu.Lock()
	var why error
	for _, err := range k.troubled {
		why = err
	}
	k.mu.Unlock()
	switch {
	case why != nil && !k.told:
		k.say(fmt.Errorf("%w: %w", ErrUnwritten, why), "the conversation is not written at the moment, and kept in memory until it can be: "+k.reason(why))
	case why == nil && k.told:
		k.note(Note{Kind: NoteStore, Text: "the conversation is written again, and nothing of it is missing"})
	}
	k.told = why != nil
}

// reason returns the text of an error, without the directory of the store before each name.
func (k *keeper) reason(err error) string {
	if k.store == nil {
		return err.Error()
	}
	return strings.ReplaceAll(err.Error(), k.store.Dir()+string(filepath.Separator), "")
}

// closed ends what writes a conversation, and reports what could not be written.
func (k *keeper) closed(rec *store.Recorder) {
	if err := rec.Close(); err != nil {
		k.lose(rec.Conversation(), fmt.Errorf("%w: %w", ErrUnkept, err))
		return
	}
	k.mu.Lock()
	delete(k.troubled, rec.Conversation())
	k.mu.Unlock()
	k.tell()
}

// say informs the frontend of an error.
func (k *keeper) say(err error, text string) {
	k.note(Note{Kind: NoteStore, Err: err, Text: safetext.Line(text, maxNote)})
}

// unread reports that something that was kept cannot be read.
func (k *keeper) unread(session store.Session, err error) {
	k.say(err, fmt.Sprintf("what was kept of session %s cannot be read: %v", session.ID, err))
}

// uncontinued reports that something that was kept can be read, and not continued.
func (k *keeper) uncontinued(session store.Session, err error) {
	k.say(err, fmt.Sprintf("what was kept of session %s can be read and not continued, so that what follows is kept apart from it: %s", session.ID, k.reason(err)))
}

// damaged reports what of a conversation is damaged; nil means nothing.
func (k *keeper) damaged(session store.Session, damage *journal.DamageError) {
	if damage != nil {
		text := fmt.Sprintf("of what was kept of session %s %s", session.ID, damage.Summary())
		k.say(errors.New(text), text)
	}
}

// An openError reports that another process, or another part of this one, continues a conversation.
type openError struct{ owned *journal.OwnedError }

func (e *openError) Error() string {
	if who := e.owned.Who; strings.HasPrefix(who, "acp serve") || strings.Contains(who, "your gateway") {
		return fmt.Sprintf("it is open in %s, which continues it: acp sessions resume %s", safetext.Line(who, 200), e.owned.ID)
	}
	return fmt.Sprintf("it is open in %s: close it there first (acp sessions show %s reads it meanwhile)",
		safetext.Line(cmp.Or(e.owned.Who, "another program"), 200), e.owned.ID)
}

func (e *openError) Unwrap() error { return e.owned }
