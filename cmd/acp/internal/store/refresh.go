package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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

// An entry is what the index knows of the logs of a conversation.
type entry []part

// A partEntry is what the index knows of a log.
type partEntry struct {
	size    int64
	at      place
	witness witness
}

// refresh updates the index from the logs.
func (s *Store) refresh(ctx context.Context, x *index) error {
	// Both take a while if there are many conversations.
	var logs map[string][]part
	var failed error
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		logs, failed = s.conversations()
	}()
	known, err := x.entries(ctx)
	<-listed
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	var work []string
	for id, parts := range logs {
		if e, ok := known[id]; !ok || e.stale(parts) {
			work = append(work, id)
		}
	}
	var gone []string
	for id := range known {
		if _, ok := logs[id]; !ok {
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
				whole, err := s.indexOne(ctx, tx, id, logs[id], &left)
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

// stale reports whether the logs have changed.
func (e entry) stale(parts []part) bool {
	return !slices.Equal(e, parts)
}

// entries returns what the index knows, with parts in order.
func (x *index) entries(ctx context.Context) (map[string]entry, error) {
	rows, err := x.db.QueryContext(ctx, `SELECT conv, part.n, part.size FROM part JOIN session ON session.id = part.session ORDER BY part.session, part.n`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]entry{}
	for rows.Next() {
		var conv string
		var p part
		if err := rows.Scan(&conv, &p.n, &p.size); err != nil {
			return nil, errors.Join(errIndexBroken, err)
		}
		all[conv] = append(all[conv], p)
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
		`DELETE FROM part WHERE session = ?1`, `DELETE FROM session WHERE id = ?1`,
	} {
		if err == nil {
			_, err = tx.ExecContext(ctx, q, id)
		}
	}
	return err
}

// indexOne reads what is new in a conversation, up to what is left of a step; whole is false if
// there is more.
func (s *Store) indexOne(ctx context.Context, tx *sql.Tx, conv string, parts []part, left *int64) (whole bool, err error) {
	st := state{Session: Session{Conversation: conv}}
	id, chunks, known, err := loadEntry(ctx, tx, &st)
	if err != nil {
		return false, err
	}
	for _, p := range parts {
		if e, ok := known[p.n]; ok && e.at.Offset > p.size {
			// It is another file, or has lost its end.
			return s.indexAnew(ctx, tx, conv, known, parts, left)
		}
	}
	texts := newTexts()
	title := st.Title
	whole = true
	for _, p := range parts {
		e, ok := known[p.n]
		if !ok {
			e.at = place{Hash: root(conv, p.n)}
			e.witness = witness{0, e.at.Hash}
		}
		if ok && e.size == p.size || *left <= 0 {
			whole = whole && ok && e.size == p.size
			continue
		}
		more, err := s.indexPart(conv, p, &e, &st, texts, left)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if errors.Is(err, errJunction) {
			return s.indexAnew(ctx, tx, conv, known, parts, left)
		}
		if err != nil {
			return false, err
		}
		whole = whole && !more
		known[p.n] = e
	}
	if texts.reset {
		if _, err := tx.ExecContext(ctx, `DELETE FROM chunk WHERE id > ?1 << 24 AND id < (?1 + 1) << 24`, id); err != nil {
			return false, err
		}
		chunks = 0
	}
	if id, err = saveEntry(ctx, tx, id, chunks, &st, known); err != nil {
		return false, err
	}
	if chunks, err = texts.save(ctx, tx, id, chunks); err != nil {
		return false, err
	}
	if st.Title != title {
		if _, err := tx.ExecContext(ctx, `DELETE FROM chunk WHERE id = ?1 << 24`, id); err != nil {
			return false, err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO chunk (id, last, text) VALUES (?1 << 24, '', ?2)`, id, st.Title); err != nil {
			return false, err
		}
	}
	_, err = tx.ExecContext(ctx, `UPDATE session SET chunks = ? WHERE id = ?`, chunks, id)
	return whole, err
}

// indexAnew reads a conversation from the beginning. What the index knows of the last records is
// kept.
func (s *Store) indexAnew(ctx context.Context, tx *sql.Tx, conv string, known map[int]partEntry, parts []part, left *int64) (whole bool, err error) {
	if err := forget(ctx, tx, conv); err != nil {
		return false, err
	}
	begin := map[int]partEntry{}
	for _, p := range parts {
		if e, ok := known[p.n]; ok {
			begin[p.n] = partEntry{size: -1, at: place{Hash: root(conv, p.n)}, witness: e.witness}
		}
	}
	st := state{Session: Session{Conversation: conv}}
	if _, err := saveEntry(ctx, tx, 0, 0, &st, begin); err != nil {
		return false, err
	}
	return s.indexOne(ctx, tx, conv, parts, left)
}

// errJunction says that a log does not continue what the index has of it: it was truncated, and
// written to after that.
var errJunction = errors.New("a log is not the one that was read")

// indexPart reads what is new in one log; more is true if it did not reach the end.
func (s *Store) indexPart(conv string, p part, e *partEntry, st *state, texts *texts, left *int64) (more bool, err error) {
	f, err := s.files.OpenFile(filepath.Join(s.dir, logName(conv, p.n)), os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	begin := e.at.Offset
	from := io.NewSectionReader(f, begin, max(p.size-begin, 0))
	damage := new(Damage)
	scan := newScanner(from, p.n, e.at, damage)
	// Whether the log has the record that was its last one, or another one in its place.
	passed := e.witness == witness{e.at.Seq, e.at.Hash}
	other := !passed && e.at.Seq >= e.witness.Seq
	for first := true; ; first = false {
		rec, ok := scan.next()
		if first && begin > 0 && (damage.Altered || len(damage.Lost) > 0) {
			return false, errJunction
		}
		if !ok {
			if err := scan.failed(); err != nil {
				s.log.Debug("a log was not read to its end", "conversation", conv, "error", err)
			}
			break
		}
		st.apply(&rec.Event)
		texts.apply(&rec.Event)
		if !passed && !other && rec.Seq >= e.witness.Seq {
			passed = rec.Seq > e.witness.Seq || rec.Hash == e.witness.Hash // it may be damaged
			other = !passed
		}
		if scan.at.Offset-begin > *left || texts.size > stepBytes {
			more = scan.at.Offset < p.size
			break
		}
	}
	*left -= scan.at.Offset - begin
	e.at = scan.at
	if passed {
		e.witness = witness{e.at.Seq, e.at.Hash}
	}
	e.size = p.size
	if more {
		e.size = -1
	}
	return more, nil
}

// loadEntry returns what the index has of a conversation.
func loadEntry(ctx context.Context, tx *sql.Tx, st *state) (id int64, chunks int, parts map[int]partEntry, err error) {
	parts = map[int]partEntry{}
	row := tx.QueryRowContext(ctx, `SELECT `+columns+`, chunks FROM session WHERE conv = ?`, st.Conversation)
	found, v, err := scanSession(row.Scan, &chunks)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, parts, nil
	}
	if err != nil {
		return 0, 0, nil, err
	}
	st.Session, st.known = v, v.ID != "" && v.ID != v.Conversation
	rows, err := tx.QueryContext(ctx, `SELECT n, size, offset, seq, hash, last, witness FROM part WHERE session = ?`, found)
	if err != nil {
		return 0, 0, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int
		var e partEntry
		var sum, last []byte
		if err := rows.Scan(&n, &e.size, &e.at.Offset, &e.at.Seq, &sum, &e.witness.Seq, &last); err != nil || len(sum) != len(hash{}) || len(last) != len(hash{}) || e.at.Offset < 0 {
			return 0, 0, nil, errors.Join(errIndexBroken, err)
		}
		e.at.Hash, e.witness.Hash = hash(sum), hash(last)
		parts[n] = e
	}
	return found, chunks, parts, rows.Err()
}

// saveEntry writes what the index knows of a conversation.
func saveEntry(ctx context.Context, tx *sql.Tx, id int64, chunks int, st *state, parts map[int]partEntry) (int64, error) {
	list := func(l []string) string {
		if l == nil {
			return ""
		}
		data, _ := json.Marshal(l) // strings cannot fail
		return string(data)
	}
	var row any
	if id != 0 {
		row = id
	}
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO session (id, conv, agent, sid, earlier, command, cwd, title, protocol, created, updated, turns, events, open, parent, by, chunks)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, row, st.Conversation, st.Agent, st.ID, list(st.Earlier), list(st.Command), st.Cwd, st.Title, st.Protocol,
		nanos(st.Created), nanos(st.Updated), st.Turns, st.Events, st.Open, st.Parent, st.By, chunks)
	if err == nil && id == 0 {
		err = tx.QueryRowContext(ctx, `SELECT last_insert_rowid()`).Scan(&id)
	}
	for n, e := range parts {
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO part (session, n, size, offset, seq, hash, last, witness) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
				id, n, e.size, e.at.Offset, e.at.Seq, e.at.Hash[:], e.witness.Seq, e.witness.Hash[:])
		}
	}
	return id, err
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

// apply applies what an event adds to a message or replaces it with. It joins text that comes in
// many pieces, so that words which were split between them are found.
func (t *texts) apply(e *Event) {
	if e.Kind == EventReset {
		*t = *newTexts()
		t.reset = true
		return
	}
	if e.Kind != EventUpdate || len(e.Data) > maxIndexed {
		return
	}
	key, text, whole, ok := messageOf(e.Data)
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
