package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// ExportMethod returns a session as Markdown, in pieces, to whoever may see the session.
var ExportMethod = jsonrpc.Method[ExportRequest, ExportAnswer]{Name: ownmeta.Method + "export"}

// A Rendering takes the records of a session and writes what they say. A gateway does not call its methods concurrently.
type Rendering interface {
	Apply(*engine.Record)
	Write(io.Writer) error
}

// An ExportRequest asks for a piece: the first one, or the one that another answer has named.
type ExportRequest struct {
	SessionID acp.SessionID `json:"sessionId"`
	Offset    int           `json:"offset,omitempty"` // Next of the answer before
	Cursor    *uint64       `json:"cursor,omitempty"` // and its Cursor, so that all pieces are of the same text
}

// An ExportAnswer is a piece.
type ExportAnswer struct {
	Text   string `json:"text"`
	Next   int    `json:"next,omitempty"` // where the next piece begins, in bytes; 0 at the end
	Size   int    `json:"size"`           // of the whole text, in bytes
	Cursor uint64 `json:"cursor"`         // the last record that it has
}

const (
	// maxPiece bounds a piece, and maxExport the whole text, in bytes.
	maxPiece  = 256 << 10
	maxExport = 16 << 20
	// maxExports bounds the texts that are remembered, for the pieces that follow, and maxExportsBytes their size in all. A
	// text that was not asked for since exportFor is forgotten.
	maxExports      = 64
	maxExportsBytes = 4 * maxExport
	exportFor       = 5 * time.Minute
	// largeFor is how long it is remembered that a session is too large.
	largeFor = time.Minute
	// maxRendering bounds the texts that are being made.
	maxRendering = 2
)

// exports remembers texts. The zero value is ready for use.
type exports struct {
	making flights
	once   sync.Once
	busy   chan struct{} // holds one for each text that is being made

	mu   sync.Mutex
	all  []exported // the one that was asked for last at the end
	size int        // of all, in bytes
}

// An exported is the text of a session up to a record.
type exported struct {
	id     string
	cursor uint64
	text   []byte
	large  bool      // there is no text, since it would be too large
	at     time.Time // when it was asked for last; or made, if it is large
}

// exportMarkdown serves [ExportMethod].
func (g *Gateway) exportMarkdown(ctx context.Context, p *ExportRequest) (*ExportAnswer, error) {
	_, info, err := g.lookUp(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	cursor := info.Head.Seq
	if p.Cursor != nil {
		cursor = *p.Cursor
	}
	if cursor > info.Head.Seq {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the position %d is after the end, which is %d", cursor, info.Head.Seq)
	}
	text, err := g.exports.of(ctx, info.ID, cursor, func() ([]byte, error) { return g.markdown(ctx, &info, cursor) })
	if err != nil {
		return nil, err
	}
	if p.Offset < 0 || p.Offset > len(text) || p.Offset < len(text) && !utf8.RuneStart(text[p.Offset]) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "no piece begins at %d", p.Offset)
	}
	end := min(p.Offset+maxPiece, len(text))
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	res := &ExportAnswer{Text: string(text[p.Offset:end]), Size: len(text), Cursor: cursor}
	if end < len(text) {
		res.Next = end
	}
	return res, nil
}

// of returns the text of a session up to a record, which render makes.
func (e *exports) of(ctx context.Context, id string, cursor uint64, render func() ([]byte, error)) ([]byte, error) {
	if text, ok, err := e.get(id, cursor); ok {
		return text, err
	}
	making, err := e.making.begin(ctx, id)
	if err != nil {
		return nil, err
	}
	defer making.end()
	if text, ok, err := e.get(id, cursor); ok { // meanwhile
		return text, err
	}
	e.once.Do(func() { e.busy = make(chan struct{}, maxRendering) })
	select {
	case e.busy <- struct{}{}:
		defer func() { <-e.busy }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	text, err := render()
	switch {
	case err == nil:
		e.put(making, exported{id: id, cursor: cursor, text: text})
	case errors.Is(err, errTooLarge):
		e.put(making, exported{id: id, cursor: cursor, large: true})
	}
	return text, err
}

// get returns what is remembered. The rest of a session that is too large is not smaller.
func (e *exports) get(id string, cursor uint64) (text []byte, ok bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.all, func(x exported) bool {
		return x.id == id && (x.cursor == cursor && !x.large || x.cursor <= cursor && x.large && time.Since(x.at) < largeFor)
	})
	if i < 0 {
		return nil, false, nil
	}
	x := e.all[i]
	if x.large {
		return nil, true, errTooLarge
	}
	x.at = time.Now()
	e.all = append(slices.Delete(e.all, i, i+1), x)
	return x.text, true, nil
}

func (e *exports) put(making *flight, x exported) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if making.stale.Load() {
		return
	}
	x.at = time.Now()
	e.all = slices.DeleteFunc(e.all, func(other exported) bool { return other.id == x.id && other.large })
	e.all = append(e.all, x)
	e.size += len(x.text)
	for len(e.all) > maxExports || e.size > maxExportsBytes {
		e.size -= len(e.all[0].text)
		e.all = slices.Delete(e.all, 0, 1)
	}
}

// forget drops those that are to go.
func (e *exports) forget(goes func(x *exported) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = slices.DeleteFunc(e.all, func(x exported) bool {
		if !goes(&x) {
			return false
		}
		e.size -= len(x.text)
		return true
	})
}

// drop drops what is known of a session that was deleted.
func (e *exports) drop(id string) {
	e.making.spoil(id)
	e.forget(func(x *exported) bool { return x.id == id })
}

// expire drops what was not asked for lately.
func (e *exports) expire() {
	e.forget(func(x *exported) bool { return time.Since(x.at) >= exportFor })
}

// errTooLarge is why a session is not exported whose text has more than maxExport bytes.
var errTooLarge error = &jsonrpc.Failure{Message: fmt.Sprintf("the session has more than %d MiB of text: use acp sessions export", maxExport>>20), Reason: "too_large"}

// A limited writer takes maxExport bytes at most.
type limited struct{ text bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.text.Len()+len(p) > maxExport {
		return 0, errTooLarge
	}
	return l.text.Write(p)
}

// Kept returns the record of the update, or nil if it has none: see [PastRecords].
func (u *PastUpdate) Kept() *engine.Record {
	if u.Record == nil {
		return nil
	}
	return &engine.Record{Seq: u.Cursor, From: u.Cursor, At: u.Time, Kind: u.Record.Kind, Data: u.Record.Data}
}

// Apply adds the update to a conversation. What subagents have said is not part of it, and changes nothing.
func (u *PastUpdate) Apply(f *records.Fold) error {
	all, err := u.records()
	for i := range all {
		f.Apply(&all[i])
	}
	return err
}

// markdown returns the text of a session up to a record. What is damaged is left out.
func (g *Gateway) markdown(ctx context.Context, info *engine.Session, last uint64) ([]byte, error) {
	if g.cfg.Markdown == nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "this server exports no sessions")
	}
	rendering := g.cfg.Markdown(info.ID)
	err := g.cfg.Log.Fold(ctx, info.ID, 0, func(r engine.Record) error {
		if r.Seq > last {
			return errRead
		}
		rendering.Apply(&r)
		return nil
	})
	switch {
	case errors.Is(err, engine.ErrNotFound): // since it was looked up
		return nil, acp.SessionNotFound(acp.SessionID(info.ID))
	case err != nil && !errors.Is(err, errRead):
		return nil, fmt.Errorf("export: %w", err)
	}
	var out limited
	err = rendering.Write(&out)
	text := bytes.ToValidUTF8(out.text.Bytes(), []byte("\uFFFD"))
	switch {
	case errors.Is(err, errTooLarge) || err == nil && len(text) > maxExport: // what was invalid is longer now
		return nil, errTooLarge
	case err != nil:
		return nil, fmt.Errorf("export: %w", err)
	}
	return text, nil
}
