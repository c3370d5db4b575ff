package agent

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// Bounds of what a keeper adds.
const (
	// maxData is what a record may have, so that none has to stand for one that is too large.
	maxData = journal.MaxRecord - lineBytes
	// lineBytes is what a record takes in a file beside its data.
	lineBytes = 192
	// What is known of a session is added again when it is more than farAfter bytes behind the end of its journal, and more
	// than nearAfter at the end of a turn. So it is found there: see [store.newest].
	farAfter, nearAfter = 256 << 10, 4 << 10
	// copyBytes is what is added at once of a journal that is copied.
	copyBytes = 1 << 20
	// closePatience bounds how long a disk is waited for when a session is closed.
	closePatience = 10 * time.Second
)

var errFull = errors.New("it has reached its greatest size")

// about is what is known of a session: the data of the records of that kind, of which the last counts.
type about struct {
	Cwd    string        `json:"cwd"` // empty in a journal that is not finished yet
	Roots  []string      `json:"roots,omitempty"`
	Title  string        `json:"title"`
	Parent acp.SessionID `json:"parent,omitempty"` // the session it was forked from
}

func (a about) draft() journal.Draft {
	data, _ := json.Marshal(a) // which strings do not fail
	return journal.Draft{Kind: journal.KindSession, Data: data}
}

// see takes what a record says, if it is one about the session.
func (a *about) see(d journal.Draft) {
	if d.Kind == journal.KindSession {
		_ = json.Unmarshal(d.Data, a)
	}
}

// A keeper owns the journal of a session, and adds to it. Its methods may be called from any goroutine.
type keeper struct {
	store *store
	id    acp.SessionID
	w     *journal.Writer // nil if nothing can be added
	lost  error           // why, then

	mu    sync.Mutex
	most  int64 // bytes of the journal; 0 if something did not fit
	about about
	size  int64
	since int64 // bytes since the last record about the session
}

// count counts what is in the journal.
func (k *keeper) count(drafts ...journal.Draft) {
	for _, d := range drafts {
		n := int64(len(d.Data)) + lineBytes
		k.size, k.since = k.size+n, k.since+n
		if d.Kind == journal.KindSession {
			k.since = 0
		}
	}
}

// added is count for what was added now.
func (k *keeper) added(drafts ...journal.Draft) {
	k.count(drafts...)
	if s := k.store; s.dir == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mem[k.id] = listed{k.id, k.about, time.Now()}
	}
}

// fits reports errFull if there is no room for records, and then there is none for others either.
func (k *keeper) fits(drafts ...journal.Draft) error {
	if k.lost != nil {
		return k.lost
	}
	size := k.size
	for _, d := range drafts {
		if size += int64(len(d.Data)) + lineBytes; len(d.Data) > maxData || size > k.most {
			k.most = 0
			return errFull
		}
	}
	return nil
}

// add adds records, and returns when they are kept: written, and synced if somebody relies on one of them. After a failure
// nothing more is added, so that the journal has no gaps.
func (k *keeper) add(drafts ...journal.Draft) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.write(drafts...)
}

// write is add for callers that hold mu.
func (k *keeper) write(drafts ...journal.Draft) error {
	err := k.fits(drafts...)
	if err == nil {
		err = k.w.Keep(context.Background(), drafts...)
	}
	if err != nil {
		return err
	}
	if k.added(drafts...); k.since > farAfter {
		return k.write(k.about.draft())
	}
	return nil
}

// set changes what is known of the session.
func (k *keeper) set(change func(*about)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.about)
	return k.write(k.about.draft())
}

// sync makes what was added survive a loss of power, at the end of a turn.
func (k *keeper) sync() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lost != nil {
		return k.lost
	}
	if k.since > nearAfter {
		return k.write(k.about.draft()) // on which somebody relies
	}
	return k.w.Sync(context.Background())
}

// bytes returns the size of the journal.
func (k *keeper) bytes() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.size
}

// close gives the journal up. Nothing can be added afterwards.
func (k *keeper) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.w == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	return k.w.Release(ctx)
}

// drop deletes the session.
func (k *keeper) drop() error {
	return errors.Join(k.store.drop(k.id), k.close())
}
