package trace

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/internal/wire"
)

// Bounds of what is read, in bytes.
const (
	// MaxLine is the longest line a Reader keeps: longer ones are skipped and
	// told. A Writer writes none.
	MaxLine = DefaultMaxFrame + 1<<20
	// maxHeader is the longest line that is taken for the header of a file.
	maxHeader = 1 << 20
)

var (
	// ErrNotTrace says that what was to be read is not a trace.
	ErrNotTrace = errors.New("not a trace")
	// ErrVersion says that a trace, or a part of it, has a format newer than
	// [Version].
	ErrVersion = errors.New("trace of a newer version")
)

// A CutError says that a line of a trace could not be read: because writing it
// was cut off, because it is damaged or too long. The lines behind it can.
type CutError struct {
	Line   int64  // from 1
	Offset int64  // of the beginning of the line, in bytes
	Reason string // what is wrong with it
}

// Error says where and what, in a line.
func (e *CutError) Error() string {
	return fmt.Sprintf("trace: line %d (at byte %d) %s", e.Line, e.Offset, e.Reason)
}

// A Reader reads a trace. It keeps one line in memory, at most [MaxLine], and
// allocates nothing for a frame. It has to be made with [NewReader], is not safe
// for concurrent use and needs no closing.
type Reader struct {
	in     lines
	header Header
	parts  int
	rec    Record
	text   []byte // of rec, when it is not a part of the line
	code   int    // of rec
	dec    wire.Decoder
	broken error // of the header: what the first call of Next returns
	ended  error
}

// NewReader reads the header of the trace r. The error wraps [ErrNotTrace] or
// [ErrVersion], or is that of r. Of a trace that was cut off within its header
// the error is reported by [Reader.Next].
func NewReader(r io.Reader) (*Reader, error) {
	t := &Reader{in: lines{r: r, max: maxHeader}}
	line, _, err := t.in.next()
	switch {
	case err == io.EOF:
		return nil, fmt.Errorf("trace: %w: it is empty", ErrNotTrace)
	case err != nil && err != errLong:
		return nil, fmt.Errorf("trace: %w", err)
	}
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
	t.in.max = MaxLine
	if err == errLong || !t.isHeader(line) {
		if err == nil && bytes.HasPrefix(line, []byte(headerStart)) {
			t.broken = t.cut("is a header that was cut off or damaged")
			return t, nil
		}
		return nil, fmt.Errorf("trace: %w: the first line does not begin with %s", ErrNotTrace, headerStart)
	}
	if err := t.readHeader(line); err != nil {
		if errors.Is(err, ErrVersion) {
			return nil, err
		}
		t.broken = err
	}
	return t, nil
}

// Header returns the header of the part of the trace that was read last.
// Its times are what those of records count from.
func (t *Reader) Header() Header { return t.header }

// Part returns the number of that part, from 1: a trace that was written to
// again has several.
func (t *Reader) Part() int { return max(1, t.parts) }

// Offset returns how many bytes were read, to the end of the last line.
func (t *Reader) Offset() int64 { return t.in.offset }

// Line returns the number of the last line, from 1.
func (t *Reader) Line() int64 { return t.in.line }

// Next returns the next record, which is valid until the next call. Its error is
// io.EOF at the end, a *[CutError] for a line that cannot be read, after which
// the next call continues after it, one that wraps [ErrVersion] where a part from
// the future begins, or that of the underlying reader. The latter are final.
// Members and kinds of lines that are not known are left out.
func (t *Reader) Next() (*Record, error) {
	if err := t.broken; err != nil {
		t.broken = nil
		return nil, err
	}
	for t.ended == nil {
		line, whole, err := t.in.next()
		switch {
		case err == errLong:
			return nil, t.cut(fmt.Sprintf("is longer than %d MiB", MaxLine>>20))
		case err != nil:
			t.ended = err
			if err != io.EOF {
				t.ended = fmt.Errorf("trace: %w", err)
			}
			continue
		}
		if t.readFrame(line) {
			return &t.rec, nil
		}
		found, err := t.readLine(line)
		if errors.Is(err, ErrVersion) {
			t.ended = err
			continue
		}
		if err != nil {
			if !whole {
				return nil, t.cut("was cut off")
			}
			return nil, err
		}
		if found {
			return &t.rec, nil
		}
	}
	return nil, t.ended
}

func (t *Reader) cut(reason string) error {
	return &CutError{Line: t.in.line, Offset: t.in.begin, Reason: reason}
}

// The beginnings of the lines that a Writer writes.
const (
	headerStart = `{"acpTrace":`
	recordStart = `{"t":`
	frameStart  = `,"d":">","f":`
)

// readFrame reads a line with a frame as a Writer writes it: the frame is cut
// out and checked to be JSON, nothing is copied.
func (t *Reader) readFrame(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte(recordStart))
	if !ok {
		return false
	}
	n := 0
	var at int64
	for n < len(rest) && n < 18 && rest[n]-'0' < 10 {
		at = at*10 + int64(rest[n]-'0')
		n++
	}
	rest = rest[n:]
	if n == 0 || len(rest) <= len(frameStart) || rest[len(rest)-1] != '}' ||
		string(rest[:6]) != frameStart[:6] || string(rest[7:len(frameStart)]) != frameStart[7:] {
		return false
	}
	dir := Direction(rest[6])
	frame := rest[len(frameStart) : len(rest)-1]
	if dir != ToAgent && dir != ToClient {
		return false
	}
	t.dec.Reset(frame, false)
	t.dec.Skip()
	if t.dec.Finish() != nil {
		return false
	}
	t.rec = Record{At: time.Duration(at), Kind: Frame, Dir: dir, Data: frame, Size: int64(len(frame))}
	return true
}

// readLine reads any line, whatever the order of its members. It reports false
// for lines that are not records: blank ones, headers and what is not known.
func (t *Reader) readLine(line []byte) (bool, error) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return false, nil
	}
	if line[0] != '{' || wire.Valid(line) != nil {
		return false, t.cut("is damaged: it is not a JSON object")
	}
	if t.isHeader(line) {
		return false, t.readHeader(line)
	}
	d := &t.dec
	d.Reset(line, false)
	rec := Record{}
	var name string
	var isFrame, isText bool
	for key, ok := d.FirstKey(); ok; key, ok = d.NextKey() {
		switch string(key) {
		case "t":
			rec.At = time.Duration(d.Int64())
		case "d":
			if s := d.Str(); len(s) == 1 {
				rec.Dir = Direction(s[0])
			}
		case "f":
			isFrame = true
			rec.Data = d.Raw()
		case "text", "base64":
			isText = true
			coded := key[0] == 'b'
			t.text = append(t.text[:0], d.Bytes()...)
			if coded {
				n, err := base64.StdEncoding.Decode(t.text, t.text)
				if err != nil {
					return false, t.cut("is damaged: its base64 cannot be read")
				}
				t.text = t.text[:n]
			}
		case "size":
			rec.Size = d.Int64()
		case "e":
			name = d.Str()
		case "pid":
			rec.Detail.PID = int(d.Int32())
		case "code":
			t.code = int(d.Int32())
			rec.Detail.Code = &t.code
		case "count":
			rec.Detail.Count = d.Int64()
		default:
			d.Skip()
		}
	}
	if err := d.Finish(); err != nil {
		return false, t.cut("is damaged: " + err.Error())
	}
	directed := rec.Dir == ToAgent || rec.Dir == ToClient
	switch {
	case isFrame && directed:
		rec.Kind = Frame
	case isText && directed:
		rec.Kind, rec.Data = Text, t.text
	case name == "stderr":
		rec.Kind, rec.Data = Stderr, t.text[:len(t.text):len(t.text)]
		if !isText {
			rec.Data = nil
		}
	case name != "":
		rec.Kind, rec.Name = Event, name
		if isText {
			rec.Detail.Text = strings.ToValidUTF8(string(t.text), "\ufffd")
		}
	default:
		return false, nil
	}
	rec.At = max(0, rec.At)
	if rec.Kind == Event || rec.Kind == Stderr {
		rec.Dir = 0
	}
	if rec.Kind == Event {
		rec.Data, rec.Size = nil, 0
	} else {
		rec.Detail = Detail{}
		rec.Size = max(rec.Size, int64(len(rec.Data)))
	}
	t.rec = rec
	return true, nil
}

// isHeader reports whether line is one: it has the member acpTrace.
func (t *Reader) isHeader(line []byte) bool {
	if wire.Valid(line) != nil || len(line) == 0 || line[0] != '{' {
		return false
	}
	if bytes.HasPrefix(line, []byte(headerStart)) {
		return true
	}
	t.dec.Reset(line, false)
	return t.dec.Kind("acpTrace") != 0
}

// readHeader begins a part.
func (t *Reader) readHeader(line []byte) error {
	if len(line) > maxHeader {
		return t.cut("is a header longer than 1 MiB")
	}
	var h headerLine
	// The version alone first: all else may mean something else in another one.
	var v struct {
		Version json.Number `json:"acpTrace"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return t.cut("is a header without a version")
	}
	version, err := strconv.Atoi(v.Version.String())
	if err != nil || version < 1 {
		return t.cut("is a header without a version")
	}
	if version > Version {
		return fmt.Errorf("trace: line %d: %w: %d, and %d is the newest that is known here",
			t.in.line, ErrVersion, version, Version)
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return t.cut("is a damaged header")
	}
	started, err := time.Parse(time.RFC3339Nano, h.Started)
	if err != nil {
		started = time.Time{} // times still count from it
	}
	t.parts++
	t.header = Header{Version: version, Started: started, Tool: h.Tool, Command: h.Command, Redacted: h.Redacted}
	return nil
}
