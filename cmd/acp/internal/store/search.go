package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

const (
	// maxWords and maxWord bound the words of a search.
	maxWords = 16
	maxWord  = 100
	// maxSnippetChunks bounds what is read for a snippet, in pieces of text.
	maxSnippetChunks = 16
	// defaultLimit is how many sessions a query without a limit returns.
	defaultLimit = 100
)

// messageOf returns the text that a record adds to a message of the user's or the agent's, or replaces it with.
func messageOf(r *journal.Record) (key string, text string, whole, ok bool) {
	if r.Kind == journal.KindPrompt {
		p, err := records.DecodePrompt(r.Data)
		return "user " + p.ID, textOf(p.Content), true, err == nil
	}
	if !bytes.Contains(r.Data, []byte(`_message`)) {
		return "", "", false, false
	}
	u, err := records.DecodeUpdate(r.Data)
	if err != nil {
		return "", "", false, false
	}
	switch u := u.(type) {
	case *acpv2.AgentMessageChunk:
		return "agent " + string(u.MessageID), blockText(u.Content), false, true
	case *acpv2.UserMessageChunk:
		return "user " + string(u.MessageID), blockText(u.Content), false, true
	case *acpv2.AgentMessage:
		text, whole = patchText(u.Content)
		return "agent " + string(u.MessageID), text, whole, whole
	case *acpv2.UserMessage:
		text, whole = patchText(u.Content)
		return "user " + string(u.MessageID), text, whole, whole
	}
	return "", "", false, false
}

// patchText returns the text of content that replaces that of a message; whole is false if nothing
// is replaced.
func patchText(p acpv2.Patch[[]acpv2.ContentBlock]) (text string, whole bool) {
	if p.IsZero() {
		return "", false
	}
	return textOf(p.Or(nil)), true
}

func textOf(content []acpv2.ContentBlock) string {
	var b strings.Builder
	for _, block := range content {
		b.WriteString(blockText(block))
	}
	return b.String()
}

func blockText(b acpv2.ContentBlock) string {
	if t, ok := b.(*acpv2.TextContent); ok {
		return t.Text
	}
	return ""
}

// searchWords returns the words of a search, split as the index splits them.
func searchWords(text string) []string {
	words := strings.FieldsFunc(text, separates)
	words = words[:min(len(words), maxWords)]
	for i, w := range words {
		words[i] = cut(w, maxWord)
	}
	return words
}

// separates reports whether a character separates words in the index.
func separates(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co) || r == utf8.RuneError
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// wordCondition returns the condition for ids of sessions with a word, and its argument. Words are
// found by their beginning. For scripts without spaces between words the index has long runs of
// characters only, so all texts are searched.
func wordCondition(word string) (cond, arg string) {
	if strings.ContainsFunc(word, unspaced) {
		return `session.id IN (SELECT id >> 24 FROM chunk WHERE instr(text, ?) > 0)`, word
	}
	return `session.id IN (SELECT rowid >> 24 FROM chunk_text WHERE chunk_text MATCH ?)`, `"` + word + `"*`
}

func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// List returns sessions, the latest first. If the index cannot be used it reads the logs, which
// takes longer.
func (s *Store) List(ctx context.Context, q Query) ([]Match, error) {
	return abandon(ctx, s, func() ([]Match, error) { return s.list(ctx, q) })
}

// Count returns how many sessions match, whatever the limit.
func (s *Store) Count(ctx context.Context, q Query) (n int, err error) {
	words := searchWords(q.Text)
	if len(words) == 0 && q.Text != "" && !blank(q.Text) {
		return 0, nil
	}
	return abandon(ctx, s, func() (n int, err error) {
		err = s.index.use(ctx, indexWait, func(ctx context.Context, x *index) (err error) {
			if err = s.refresh(ctx, x); err == nil {
				query, args := s.matching(q, words)
				err = x.db.QueryRowContext(ctx, `SELECT count(*)`+query, args...).Scan(&n)
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			var found []Match
			q.Limit = -1
			found, err = s.listLogs(ctx, q, words)
			n = len(found)
		}
		return n, wrap("count sessions", err)
	})
}

func (s *Store) list(ctx context.Context, q Query) ([]Match, error) {
	switch {
	case q.Limit == 0:
		q.Limit = defaultLimit
	case q.Limit < 0:
		q.Limit = -1
	}
	words := searchWords(q.Text)
	if len(words) == 0 && q.Text != "" && !blank(q.Text) {
		return nil, nil // nothing could match
	}
	var found []Match
	err := s.index.use(ctx, indexWait, func(ctx context.Context, x *index) (err error) {
		if err = s.refresh(ctx, x); err == nil {
			query, args := s.matching(q, words)
			found, err = x.list(ctx, query, args, q.Limit, words)
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		s.log.Info("sessions are listed without the index", "error", err)
		found, err = s.listLogs(ctx, q, words)
	}
	return found, wrap("list sessions", err)
}

// matching returns what selects the sessions that a query is about.
func (s *Store) matching(q Query, words []string) (query string, args []any) {
	query = ` FROM session WHERE parent = '' AND sid <> '' AND ` + s.mine()
	if q.Agent != "" {
		query += ` AND agent = ?`
		args = append(args, q.Agent)
	}
	if q.Cwd != "" {
		query += ` AND cwd = ?`
		args = append(args, q.Cwd)
	}
	for _, w := range words {
		cond, arg := wordCondition(w)
		query += ` AND ` + cond
		args = append(args, arg)
	}
	return query, args
}

// list returns the sessions that a query of matching selects.
func (x *index) list(ctx context.Context, query string, args []any, limit int, words []string) ([]Match, error) {
	all, ids, err := x.sessions(ctx, `SELECT `+columns+query+` ORDER BY updated DESC, id DESC LIMIT ?`, append(args, limit)...)
	if err != nil { // also if a word is two to the index, since its letters are newer than it
		return nil, err
	}
	found := make([]Match, len(all))
	for i, v := range all {
		found[i].Session = v
	}
	if len(words) == 0 {
		return found, nil
	}
	texts, err := x.db.PrepareContext(ctx, `SELECT text FROM chunk WHERE id >= ?1 << 24 AND id < (?1 + 1) << 24 ORDER BY id LIMIT ?2`)
	if err != nil {
		return nil, err
	}
	defer texts.Close()
	for i := range found {
		if found[i].Snippet, err = snippet(ctx, texts, ids[i], words); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// snippet returns a piece of the session's text, which a statement selects, around one of the
// words. It reads the first pieces of text only, so that a long session takes no longer.
func snippet(ctx context.Context, texts *sql.Stmt, id int64, words []string) (string, error) {
	rows, err := texts.QueryContext(ctx, id, maxSnippetChunks)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	title, first := "", ""
	for n := 0; rows.Next(); n++ {
		var text string
		if err := rows.Scan(&text); err != nil {
			return "", err
		}
		if at, ok := locate(text, words); ok {
			if n > 0 {
				return around(text, at), nil
			}
			title = around(text, at)
		}
		if first == "" {
			first = text
		}
	}
	if title == "" {
		title = around(first, 0)
	}
	return title, rows.Err()
}

// listLogs is List without the index.
func (s *Store) listLogs(ctx context.Context, q Query, words []string) ([]Match, error) {
	var found []Match
	err := s.each(ctx, func(v Session) error {
		if !s.shows(&v) || v.Parent != "" || v.ID == "" || q.Agent != "" && v.Agent != q.Agent || q.Cwd != "" && v.Cwd != q.Cwd {
			return nil
		}
		m := Match{Session: v}
		if len(words) > 0 {
			var ok bool
			var err error
			if m.Snippet, ok, err = s.searchLog(ctx, v, words); err != nil || !ok {
				return err
			}
		}
		found = append(found, m)
		return nil
	})
	sort.Slice(found, func(i, j int) bool { return found[j].Updated.Before(found[i].Updated) })
	if q.Limit >= 0 && len(found) > q.Limit {
		found = found[:q.Limit]
	}
	return found, err
}

// each calls f with what is known of each conversation, without the index. It leaves out those that
// cannot be read.
func (s *Store) each(ctx context.Context, f func(Session) error) error {
	sizes, err := s.sizes(ctx)
	if err != nil {
		return err
	}
	for id := range sizes {
		v, err := s.state(ctx, id)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.log.Warn("a conversation cannot be read", "conversation", id, "error", err)
			continue
		}
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// searchLog looks for words in a log.
func (s *Store) searchLog(ctx context.Context, v Session, words []string) (snippet string, ok bool, err error) {
	t := newTexts()
	if _, err := s.read(ctx, v.Conversation, func(r *journal.Record) bool { t.apply(r); return true }); err != nil {
		return "", false, err
	}
	snippet, ok = t.find(words, v.Title)
	return snippet, ok, nil
}

// find reports whether the texts and a title have all words, and returns the text around the first that was found.
func (t *texts) find(words []string, title string) (snippet string, ok bool) {
	missing := slices.Clone(words)
	look := func(text string) {
		missing = slices.DeleteFunc(missing, func(w string) bool {
			at, ok := locate(text, []string{w})
			if !ok && strings.ContainsFunc(w, unspaced) {
				at = strings.Index(text, w)
				ok = at >= 0
			}
			if ok && snippet == "" {
				snippet = around(text, at)
			}
			return ok
		})
	}
	for _, m := range t.list {
		look(m.text.String())
	}
	look(title)
	return snippet, len(missing) == 0
}

// A Finder looks for the words of a search in one conversation that is not stored here, as [Store.List] does in those that
// are. It keeps the text of the messages, up to the same bounds. It must not be used by several goroutines at once, and
// need not be closed.
type Finder struct {
	words []string
	texts *texts
}

// NewFinder returns a Finder for the words of a text, of which it uses the first 16.
func NewFinder(text string) *Finder { return &Finder{searchWords(text), newTexts()} }

// Update adds a session update of version 2, as JSON. One that is not about a message is ignored.
func (f *Finder) Update(data json.RawMessage) {
	f.texts.apply(&journal.Record{Kind: journal.KindUpdate, Data: data})
}

// Find reports whether the messages and the title have all words, and returns the text around the first that was found; it
// is not safe for a terminal. Without a word nothing is found.
func (f *Finder) Find(title string) (snippet string, ok bool) {
	if len(f.words) == 0 {
		return "", false
	}
	return f.texts.find(f.words, title)
}
