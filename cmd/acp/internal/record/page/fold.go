package page

import (
	"bytes"
	"strings"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/record/summary"
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/trace"
	"github.com/goacp/acp/transcript"
)

const (
	// inlineBytes is how much of a record pages get without asking.
	inlineBytes = 64 << 10
	// maxFindings bounds the findings that are shown for one record.
	maxFindings = 32
	// maxWhy bounds the text of one finding.
	maxWhy = 4 << 10
)

// A folder makes rows of records. One goroutine calls add and end.
type folder struct {
	log     *history
	check   checker
	frames  int64 // what was checked so far
	checked int64 // what was checked before this connection
	scratch []byte

	mu       sync.Mutex
	follower summary.Follower
}

// checker is what folders need of a [conformance.Recording].
type checker interface {
	Begins(rec *trace.Record) bool
	Add(rec *trace.Record) []conformance.Finding
	Gap()
	End() []conformance.Finding
	Frames() int64
}

func newFolder(log *history) *folder { return &folder{log: log, check: new(conformance.Recording)} }

// transcript returns the conversation of a session and the number of its changes,
// or nil.
func (f *folder) transcript(id string) (*transcript.Snapshot, int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.follower.Transcript(id)
}

// sessions returns the sessions whose conversations are kept.
func (f *folder) sessions() []summary.Session {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.follower.Sessions()
}

// NewPart is the name of an event after which records belong to another connection, as in a
// recording that was continued.
const NewPart = "part"

// add makes the row of a record, and adds it to the history.
func (f *folder) add(rec *trace.Record) {
	if f.check.Begins(rec) || rec.Kind == trace.Event && rec.Name == NewPart {
		f.finish()
	}
	f.mu.Lock()
	it := f.follower.Next(rec)
	changes := f.follower.Changes()
	f.mu.Unlock()

	findings := f.check.Add(rec)
	f.frames = f.checked + f.check.Frames()
	r := &row{frame: f.frames, at: rec.At}
	r.json = f.row(rec, &it, findings)
	if rec.Kind != trace.Event && len(rec.Data) > inlineBytes {
		r.full = rec.Data
	}
	f.log.add(r)
	f.log.told(changes)
}

// finish ends a connection before another one.
func (f *folder) finish() {
	f.end()
	f.checked = f.frames
	f.mu.Lock()
	f.follower.Restart()
	f.mu.Unlock()
}

// end reports what is wrong at the end.
func (f *folder) end() {
	findings := f.check.End()
	for len(findings) > 0 {
		n := min(len(findings), maxFindings)
		rec := trace.Record{Kind: trace.Event, Name: "checked"}
		if last := f.log.row(f.log.seq() - 1); last != nil {
			rec.At = last.at
		}
		r := &row{frame: f.frames, at: rec.At}
		r.json = f.row(&rec, &summary.Item{Type: summary.Event, Method: rec.Name, Summary: "what was left open"}, findings[:n])
		f.log.add(r)
		findings = findings[n:]
	}
}

// row returns the form of a row that pages read, without spare capacity, since there are many rows.
func (f *folder) row(rec *trace.Record, it *summary.Item, findings []conformance.Finding) []byte {
	f.scratch = f.appendRow(f.scratch[:0], rec, it, findings)
	return bytes.Clone(f.scratch)
}

// appendRow appends the form of a row that pages read: see web/src/tap/types.ts.
func (f *folder) appendRow(dst []byte, rec *trace.Record, it *summary.Item, findings []conformance.Finding) []byte {
	num := func(name string, n int64) {
		if n != 0 {
			dst = append(wire.AppendInt(append(append(append(dst, '"'), name...), `":`...), n), ',')
		}
	}
	str := func(name, s string) {
		if s != "" {
			dst = append(wire.AppendString(append(append(append(dst, '"'), name...), `":`...), s), ',')
		}
	}
	dst = append(dst, '{')
	seq := f.log.seq()
	num("seq", seq)
	num("at", int64(rec.At))
	str("type", string(it.Type))
	if rec.Dir != 0 {
		str("dir", string(rune(rec.Dir)))
	}
	str("method", it.Method)
	str("update", it.Update)
	str("id", it.ID)
	str("session", it.Session)
	num("asked", it.Asked)
	num("took", int64(it.Took))
	num("code", int64(it.Code))
	str("summary", it.Summary)
	if rec.Kind != trace.Event {
		size := rec.Size
		if size == 0 {
			size = int64(len(rec.Data))
		}
		num("size", size)
		body := rec.Data
		if len(body) > inlineBytes {
			body = body[:inlineBytes]
			num("cut", 1)
		} else if size > int64(len(body)) {
			num("short", 1) // the rest was not recorded
		}
		str("body", string(bytes.TrimRight(body, "\r\n")))
	}
	if len(findings) > 0 {
		dst = append(dst, `"findings":[`...)
		for _, x := range findings[:min(len(findings), maxFindings)] {
			dst = append(dst, '{')
			shown := seq
			if n := f.checked + x.Frame; n != f.frames {
				shown = f.log.at(n)
			}
			num("seq", shown)
			if x.Rule != nil {
				str("rule", x.Rule.ID)
				str("level", string(x.Rule.Level))
				str("text", x.Rule.Text)
				str("cites", strings.Join(x.Rule.Cites, " "))
			}
			str("why", x.Why[:min(len(x.Why), maxWhy)])
			str("path", x.Path[:min(len(x.Path), maxWhy)])
			dst = append(wire.CloseObject(dst), ',')
		}
		dst[len(dst)-1] = ']'
		dst = append(dst, ',')
	}
	return wire.CloseObject(dst)
}
