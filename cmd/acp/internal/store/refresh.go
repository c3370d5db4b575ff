package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

const (
	// maxText bounds what can be found of one message, in bytes.
	maxText = 1 << 20
	// maxChunk is the size up to which text is appended to a piece, in bytes.
	maxChunk = 64 << 10
	// chunkBits is the width of a piece's number in its id.
	chunkBits = 24
	// Indexing goes in steps, between which others can write: by conversations, and by bytes of logs.
	stepConversations = 500
	stepBytes         = 8 << 20
	// maxIndexed bounds the size of an event that is indexed, in bytes.
	maxIndexed = 64 << 20
)

// wakeIndexer starts an update of the index in the background.
func (s *Store) wakeIndexer() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// runIndexer indexes what is new when a turn has ended, so that little is left to do for a search.
// It ends with ctx.
func (s *Store) runIndexer(ctx context.Context) {
	defer close(s.done)
	for {
		select {
		case <-s.wake:
			// What fails here fails again in the search, which reads the logs then.
			if err := s.index.use(ctx, 0, s.refresh); err != nil && ctx.Err() == nil {
				s.log.Debug("the index of conversations was not brought up to date", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// sizes returns the sizes of the journals of all conversations.
func (s *Store) sizes(ctx context.Context) (map[string]int64, error) {
	all := map[string]int64{}
	return all, s.journals.List(ctx, func(id string, size int64) bool {
		if validID(id) { // those of other parts of the program are not shown
			all[id] = size
		}
		return ctx.Err() == nil
	})
}

// refresh updates the index from the journals.
func (s *Store) refresh(ctx context.Context, x *index) error {
	// Both take a while if there are many conversations.
	var sizes map[string]int64
	var failed error
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		sizes, failed = s.sizes(ctx)
	}()
	known, err := x.sizes(ctx)
	<-listed
	if err = errors.Join(err, failed, ctx.Err()); err != nil {
		return err
	}
	var work []string
	for id, size := range sizes {
		if was, ok := known[id]; !ok || was != size {
			work = append(work, id)
		}
	}
	var gone []string
	for id := range known {
		if _, ok := sizes[id]; !ok {
			gone = append(gone, id)
		}
	}
	if len(gone) > 0 {
		if err := x.tx(ctx, func(tx *sql.Tx) error {
			for _, id := range gone {
				if err := forget(ctx, tx, id); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	for len(work) > 0 {
		done := 0
		err := x.tx(ctx, func(tx *sql.Tx) error {
			left := int64(stepBytes)
			done = 0
			for _, id := range work[:min(len(work), stepConversations)] {
				whole, err := s.indexOne(ctx, tx, id, sizes[id], &left)
				if err != nil {
					return err
				}
				if whole {
					done++
				}
				if left <= 0 {
					break
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		work = work[done:]
	}
	return nil
}

// sizes returns the sizes up to which the index has the conversations.
func (x *index) sizes(ctx context.Context) (map[string]int64, error) {
	rows, err := x.db.QueryContext(ctx, `SELECT conv, size FROM session`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]int64{}
	for rows.Next() {
		var conv string
		var size int64
		if err := rows.Scan(&conv, &size); err != nil {
			return nil, errors.Join(errIndexBroken, err)
		}
		all[conv] = size
	}
	return all, rows.Err()
}

// tx runs f in a transaction that has the write lock from the beginning.
func (x *index) tx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// forget removes a conversation from the index.
func forget(ctx context.Context, tx *sql.Tx, conv string) error {
	var id int64
	err := tx.QueryRowContext(ctx, `SELECT id FROM session WHERE conv = ?`, conv).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	for _, q := range []string{
		`DELETE FROM chunk WHERE id >= ?1 << 24 AND id < (?1 + 1) << 24`,
		`DELETE FROM session WHERE id = ?1`,
	} {
		if err == nil {
			_, err = tx.ExecContext(ctx, q, id)
		}
	}
	return err
}

// An entry is what the index knows of a conversation.
type entry struct {
	state
	id      int64 // 0 if it is new
	chunks  int
	size    int64
	at      journal.Head // how far it was read
	witness journal.Head // the furthest end that was ever read; zero while the hashes are computed
}

// indexOne reads what is new in a conversation, up to what is left of a step; whole is false if there is more.
func (s *Store) indexOne(ctx context.Context, tx *sql.Tx, conv string, size int64, left *int64) (whole bool, err error) {
	e, err := loadEntry(ctx, tx, conv)
	if err != nil {
		return false, err
	}
	texts := newTexts()
	title := e.Title
	e.size = size
	switch err := s.indexNew(ctx, e, texts, left); {
	case errors.Is(err, errEnough):
		e.size = -1
	case errors.Is(err, journal.ErrNotFound): // deleted meanwhile
	case errors.Is(err, errJunction):
		if err := forget(ctx, tx, conv); err != nil {
			return false, err
		}
		next := entry{state: state{Session: Session{Conversation: conv}}, witness: e.witness, size: -1}
		if err := next.save(ctx, tx); err != nil {
			return false, err
		}
		return s.indexOne(ctx, tx, conv, size, left)
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		s.log.Debug("a journal was not read to its end", "conversation", conv, "error", err)
	}
	if texts.reset {
		if _, err := tx.ExecContext(ctx, `DELETE FROM chunk WHERE id > ?1 << 24 AND id < (?1 + 1) << 24`, e.id); err != nil {
			return false, err
		}
		e.chunks = 0
	}
	if err := e.save(ctx, tx); err != nil {
		return false, err
	}
	chunks, err := texts.save(ctx, tx, e.id, e.chunks)
	if err != nil {
		return false, err
	}
	if e.Title != title {
		if _, err := tx.ExecContext(ctx, `DELETE FROM chunk WHERE id = ?1 << 24`, e.id); err != nil {
			return false, err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO chunk (id, last, text) VALUES (?1 << 24, '', ?2)`, e.id, e.Title); err != nil {
			return false, err
		}
	}
	_, err = tx.ExecContext(ctx, `UPDATE session SET chunks = ? WHERE id = ?`, chunks, e.id)
	return e.size >= 0, err
}

// errJunction says that a journal does not continue what the index has of it: it was truncated, compacted, or exchanged.
var errJunction = errors.New("a journal is not the one that was read")

// indexNew reads what is new in a journal. It returns errEnough if it did not reach the end.
func (s *Store) indexNew(ctx context.Context, e *entry, texts *texts, left *int64) error {
	// Asked before anything is read: what becomes a journal meanwhile gets its witness the next time.
	computed, err := s.unwitnessed.Computed(ctx, e.Conversation)
	if err != nil {
		return err
	}
	if computed {
		e.witness = journal.Head{}
	}
	// Whether the journal has the record that was its last one, or another one in its place.
	passed := e.witness == e.at || e.witness == journal.Head{}
	other := !passed && e.at.Seq >= e.witness.Seq
	begin := e.at.Seq
	joined := begin == 0
	err = s.unwitnessed.Read(ctx, e.Conversation, max(begin, 1)-1, func(r *journal.Record) error {
		if !joined {
			if joined = r.Seq == e.at.Seq && r.Hash == e.at.Hash; !joined {
				return errJunction
			}
			return nil
		}
		e.apply(r)
		texts.apply(r)
		if e.at = (journal.Head{Seq: r.Seq, Hash: r.Hash}); !passed && !other && r.Seq >= e.witness.Seq {
			passed = r.Seq > e.witness.Seq || r.Hash == e.witness.Hash // it may be damaged
			other = !passed
		}
		if *left -= int64(len(r.Body)); *left <= 0 || texts.size > stepBytes {
			return errEnough
		}
		return nil
	})
	if passed && !computed {
		e.witness = e.at
	}
	damaged := errors.As(err, new(*journal.DamageError))
	switch {
	case !joined && (err == nil || damaged || errors.Is(err, journal.ErrBeyond) || errors.Is(err, journal.ErrCompacted)):
		return errJunction
	case damaged:
		return nil
	}
	return err
}

// loadEntry returns what the index has of a conversation.
func loadEntry(ctx context.Context, tx *sql.Tx, conv string) (*entry, error) {
	e := &entry{state: state{Session: Session{Conversation: conv}}}
	var hash, witness []byte
	row := tx.QueryRowContext(ctx, `SELECT `+columns+`, chunks, size, seq, hash, last, witness FROM session WHERE conv = ?`, conv)
	id, v, err := scanSession(row.Scan, &e.chunks, &e.size, &e.at.Seq, &hash, &e.witness.Seq, &witness)
	if errors.Is(err, sql.ErrNoRows) {
		return e, nil
	}
	if err == nil && (copy(e.at.Hash[:], hash) < len(e.at.Hash) || copy(e.witness.Hash[:], witness) < len(e.witness.Hash)) {
		err = errIndexBroken
	}
	if err != nil {
		return nil, err
	}
	e.id, e.Session, e.known = id, v, v.ID != "" && v.ID != v.Conversation
	return e, nil
}

// save writes what the index knows of a conversation.
func (e *entry) save(ctx context.Context, tx *sql.Tx) error {
	list := func(l []string) string {
		if l == nil {
			return ""
		}
		data, _ := json.Marshal(l) // strings cannot fail
		return string(data)
	}
	var row any
	if e.id != 0 {
		row = e.id
	}
	v := &e.Session
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO session (id, conv, agent, sid, earlier, command, cwd, title, protocol, created, updated, turns, events, state, parent, owner, by, chunks,
size, seq, hash, last, witness) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		row, v.Conversation, v.Agent, v.ID, list(v.Earlier), list(v.Command), v.Cwd, v.Title, v.Protocol,
		nanos(v.Created), nanos(v.Updated), v.Turns, v.Events, v.State, v.Parent, v.Owner, v.By, e.chunks,
		e.size, int64(e.at.Seq), e.at.Hash[:], int64(e.witness.Seq), e.witness.Hash[:])
	if err == nil && e.id == 0 {
		err = tx.QueryRowContext(ctx, `SELECT last_insert_rowid()`).Scan(&e.id)
	}
	return err
}

// witnessWait is how long reading a conversation waits for the index.
const witnessWait = 50 * time.Millisecond

// witness returns the furthest end of a journal that the index has seen. A journal that was truncated between two records
// looks sound: only something that has seen more of it can tell. Without an index, or with one that was created later, that
// goes unnoticed.
func (s *Store) witness(ctx context.Context, conv string) (head journal.Head, known bool) {
	err := s.index.use(ctx, witnessWait, func(ctx context.Context, x *index) error {
		var sum []byte
		err := x.db.QueryRowContext(ctx, `SELECT last, witness FROM session WHERE conv = ?`, conv).Scan(&head.Seq, &sum)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if known = err == nil && copy(head.Hash[:], sum) == len(head.Hash); !known {
			return errors.Join(errIndexBroken, err)
		}
		return nil
	})
	if err != nil {
		s.log.Debug("the end of a conversation is not compared with the index", "conversation", conv, "error", err)
		return journal.Head{}, false
	}
	return head, known
}

// texts are those of messages that one step has found.
type texts struct {
	list  []*messageText
	by    map[string]*messageText
	size  int
	reset bool // what is in the index no longer belongs to the conversation
}

// A messageText is what a step has found of a message.
type messageText struct {
	key  string
	text strings.Builder
}

func newTexts() *texts { return &texts{by: map[string]*messageText{}} }

// apply applies what a record adds to a message or replaces it with. It joins text that comes in
// many pieces, so that words which were split between them are found.
func (t *texts) apply(r *journal.Record) {
	if r.Kind == journal.KindReset {
		*t = *newTexts()
		t.reset = true
		return
	}
	if r.Kind != journal.KindUpdate && r.Kind != journal.KindPrompt || len(r.Data) > maxIndexed {
		return
	}
	key, text, whole, ok := messageOf(r)
	if !ok {
		return
	}
	m := t.by[key]
	if m == nil {
		m = &messageText{key: key}
		t.by[key] = m
		t.list = append(t.list, m)
	}
	if whole {
		t.size -= m.text.Len()
		m.text.Reset()
	}
	text = cut(text, max(maxText-m.text.Len(), 0))
	m.text.WriteString(text)
	t.size += len(text)
}

// save adds the texts to the existing pieces, and returns the number of the last piece.
func (t *texts) save(ctx context.Context, tx *sql.Tx, id int64, chunks int) (int, error) {
	var text []byte
	last := ""
	if chunks > 0 {
		err := tx.QueryRowContext(ctx, `SELECT last, text FROM chunk WHERE id = ? << 24 | ?`, id, chunks).Scan(&last, &text)
		if err != nil {
			return 0, errors.Join(errIndexBroken, err)
		}
	}
	changed := false
	put := func() error {
		if !changed {
			return nil
		}
		changed = false
		_, err := tx.ExecContext(ctx, `INSERT INTO chunk (id, last, text) VALUES (?1 << 24 | ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET last = ?3, text = ?4`, id, chunks, last, string(text))
		return err
	}
	for _, m := range t.list {
		rest := strings.ToValidUTF8(m.text.String(), "\uFFFD")
		if rest == "" {
			continue
		}
		if chunks == 0 {
			chunks = 1
		}
		if m.key != last && len(text) > 0 {
			text = append(text, '\n')
		}
		last = m.key
		for rest != "" {
			n := piece(rest, maxChunk-len(text))
			text = append(text, rest[:n]...)
			rest = rest[n:]
			changed = true
			if rest == "" && len(text) < maxChunk {
				break
			}
			if err := put(); err != nil {
				return 0, err
			}
			if chunks++; chunks >= 1<<chunkBits-1 {
				return chunks - 1, nil // a terabyte of text
			}
			// The next piece begins with the word that this one ends with, which may continue.
			text = append([]byte(nil), text[endWord(text):]...)
			changed = len(text) > 0
		}
	}
	if !changed && len(text) == 0 && chunks > 0 && len(t.list) > 0 {
		changed = true // so that the last piece exists
	}
	return chunks, put()
}

// piece returns how much of a text is put into a piece with that much room: up to the end of a
// word, if there is one.
func piece(text string, room int) int {
	if len(text) <= room {
		return len(text)
	}
	room = max(room, 1<<10)
	head := cut(text, room)
	if i := strings.LastIndexFunc(head, unicode.IsSpace); i > 0 {
		_, n := utf8.DecodeRuneInString(head[i:])
		return i + n
	}
	return max(len(head), 1)
}

// endWord returns where the word begins that a text ends with, if it is not a long one.
func endWord(text []byte) int {
	i := len(text)
	for i > 0 && len(text)-i < maxWord {
		r, n := utf8.DecodeLastRune(text[:i])
		if separates(r) {
			return i
		}
		i -= n
	}
	return len(text)
}
