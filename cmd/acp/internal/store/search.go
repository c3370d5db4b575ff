package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goacp/acp/acpv2"
)

const (
	// maxText bounds what of one message can be found, in bytes.
	maxText = 1 << 20
	// maxWords and maxWord bound what is searched for.
	maxWords = 16
	maxWord  = 100
	// Indexing goes in steps, between which others can write.
	stepEvents = 4096
	stepBytes  = 8 << 20
)

// runIndexer indexes what is new when a turn has ended, so that a search has little left to do. It
// ends with ctx.
func (s *Store) runIndexer(ctx context.Context) {
	defer close(s.done)
	for {
		select {
		case <-s.wake:
			// What fails here fails again in the search, which tells.
			_ = s.indexAll(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// indexAll brings the index up to date.
func (s *Store) indexAll(ctx context.Context) error {
	for {
		var id int64
		err := s.read.QueryRowContext(ctx, `SELECT id FROM session WHERE indexed < seq LIMIT 1`).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.tx(ctx, func(tx *sql.Tx) error { return indexStep(ctx, tx, id) }); err != nil {
			return err
		}
	}
}

// messageKey names a message within its session.
type messageKey struct{ role, id string }

// A messageText is what a step of indexing has found of a message.
type messageText struct {
	text  strings.Builder
	whole bool // it replaces what is there
}

// indexStep looks at the next events of a session. Text that comes in many pieces is put together, so
// words that were cut between them are found.
func indexStep(ctx context.Context, tx *sql.Tx, id int64) error {
	var indexed, last, reset int64
	err := tx.QueryRowContext(ctx, `SELECT indexed, seq, reset FROM session WHERE id = ?`, id).Scan(&indexed, &last, &reset)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, `SELECT seq, time, kind, data FROM event WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?`, id, indexed, stepEvents)
	if err != nil {
		return err
	}
	texts := map[messageKey]*messageText{}
	var order []messageKey
	n, size := 0, 0
	for size < stepBytes && rows.Next() {
		e, err := scanEvent(rows)
		if err != nil {
			rows.Close()
			return err
		}
		n++
		size += len(e.Data)
		indexed = e.Seq
		if e.Kind != EventUpdate && (e.Kind != EventReplayed || e.Seq > reset) {
			continue
		}
		key, text, whole, ok := messageOf(e.Data)
		if !ok {
			continue
		}
		t := texts[key]
		if t == nil {
			t = new(messageText)
			texts[key] = t
			order = append(order, key)
		}
		if whole {
			t.text.Reset()
			t.whole = true
		}
		t.text.WriteString(cut(text, max(maxText-t.text.Len(), 0)))
	}
	full := size >= stepBytes || n == stepEvents
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	if !full {
		indexed = last
	}
	for _, key := range order {
		t := texts[key]
		if _, err := tx.ExecContext(ctx, `
INSERT INTO message (session, role, mid, text) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (session, role, mid) DO UPDATE SET text = CASE WHEN ?5 THEN ?4 ELSE text || ?4 END
WHERE ?5 OR length(text) < ?6`,
			id, key.role, key.id, t.text.String(), t.whole, maxText); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `UPDATE session SET indexed = ? WHERE id = ?`, indexed, id)
	return err
}

// messageOf returns the text that an update adds to a message of the user's or the agent's, or puts in
// its place.
func messageOf(data []byte) (key messageKey, text string, whole, ok bool) {
	if !bytes.Contains(data, []byte(`_message`)) {
		return key, "", false, false
	}
	u, err := acpv2.UnmarshalSessionUpdate(data)
	if err != nil {
		return key, "", false, false
	}
	switch u := u.(type) {
	case *acpv2.AgentMessageChunk:
		return messageKey{"agent", string(u.MessageID)}, blockText(u.Content), false, true
	case *acpv2.UserMessageChunk:
		return messageKey{"user", string(u.MessageID)}, blockText(u.Content), false, true
	case *acpv2.AgentMessage:
		text, whole = patchText(u.Content)
		return messageKey{"agent", string(u.MessageID)}, text, whole, whole
	case *acpv2.UserMessage:
		text, whole = patchText(u.Content)
		return messageKey{"user", string(u.MessageID)}, text, whole, whole
	}
	return key, "", false, false
}

func patchText(p acpv2.Patch[[]acpv2.ContentBlock]) (text string, whole bool) {
	if p.IsZero() {
		return "", false
	}
	var b strings.Builder
	for _, block := range p.Or(nil) {
		b.WriteString(blockText(block))
	}
	return b.String(), true
}

func blockText(b acpv2.ContentBlock) string {
	if t, ok := b.(*acpv2.TextContent); ok {
		return t.Text
	}
	return ""
}

// searchWords returns the words to look for, as the index knows words.
func searchWords(text string) []string {
	words := strings.FieldsFunc(text, separates)
	words = words[:min(len(words), maxWords)]
	for i, w := range words {
		words[i] = cut(w, maxWord)
	}
	return words
}

// separates reports whether a character is between words, as the index sees it.
func separates(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co) || r == utf8.RuneError
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// wordCondition returns the condition for messages with a word, and its argument. Words are found by
// their beginning. In scripts that put no spaces between words the index has but long runs of them,
// so all texts are looked at.
func wordCondition(word string) (cond, arg string) {
	if strings.ContainsFunc(word, unspaced) {
		return `instr(text, ?) > 0`, word
	}
	return `id IN (SELECT rowid FROM message_text WHERE message_text MATCH ?)`, `"` + word + `"*`
}

func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// snippet returns a piece of the session's text around the words.
func (s *Store) snippet(ctx context.Context, id int64, words []string) (string, error) {
	var spaced []string
	for _, w := range words {
		if !strings.ContainsFunc(w, unspaced) {
			spaced = append(spaced, `"`+w+`"*`)
		}
	}
	var text string
	var err error
	if len(spaced) > 0 {
		// The index has functions that mark words, which take time by the square of how often they are there.
		err = s.read.QueryRowContext(ctx, `
SELECT text FROM message_text WHERE message_text MATCH ?1 AND rowid IN (SELECT id FROM message WHERE session = ?2) ORDER BY rank LIMIT 1`,
			strings.Join(spaced, " OR "), id).Scan(&text)
		text = around(text, words)
	} else {
		err = s.read.QueryRowContext(ctx, `
SELECT substr(text, max(1, instr(text, ?1) - 20), 80) FROM message WHERE session = ?2 AND instr(text, ?1) > 0 ORDER BY id LIMIT 1`,
			words[0], id).Scan(&text)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return strings.Join(strings.Fields(text), " "), err
}
