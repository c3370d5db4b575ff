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
	// MaxLine is the longest line that a Reader reads. A longer one is skipped and
	// reported as a [CutError]. A Writer writes no longer lines.
	MaxLine = DefaultMaxFrame + 1<<20
	// maxHeader is the longest line that may be the header of a file.
	maxHeader = 1 << 20
)

var (
	// ErrNotTrace is wrapped by the error of reading something that is not a trace.
	ErrNotTrace = errors.New("not a trace")
	// ErrVersion is wrapped by the error of reading a trace, or a part of one, whose
	// format is newer than [Version].
	ErrVersion = errors.New("trace of a newer version")
)

// A CutError reports a line of a trace that cannot be read because it was cut off, is
// damaged or is too long. The lines after it can be read.
type CutError struct {
	Line   int64  // from 1
	Offset int64  // of the beginning of the line, in bytes
	Reason string // what is wrong with it
}

// Error returns the place and the reason, in one line.
func (e *CutError) Error() string {
	return fmt.Sprintf("trace: line %d (at byte %d) %s", e.Line, e.Offset, e.Reason)
}

// A Reader reads a trace. It keeps one line in memory, of at most [MaxLine] bytes, and
// does not allocate for a frame. [NewReader] makes one. A Reader is not safe for
// concurrent use and need not be closed.
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

// NewReader reads the header of the trace r. The error wraps [ErrNotTrace],
// [ErrVersion] or the error of r. If the trace was cut off within its header,
// [Reader.Next] reports that.
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

// Header returns the header of the part that the last record belongs to. The times of
// records count from its Started.
func (t *Reader) Header() Header { return t.header }

// Part returns the number of that part, counted from 1. A trace that was continued
// later has several.
func (t *Reader) Part() int { return max(1, t.parts) }

// Offset returns the number of bytes up to the end of the last line that was read.
func (t *Reader) Offset() int64 { return t.in.offset }

// Line returns the number of the last line that was read, counted from 1.
func (t *Reader) Line() int64 { return t.in.line }

// Next returns the next record, which is valid until the next call. Members and kinds
// of lines that this version does not know are skipped.
//
//	what happened                        the error
//	the end                              io.EOF
//	a line cannot be read                a *[CutError]; the next call continues after it
//	a part of a newer version begins     wraps [ErrVersion]; later calls return it again
//	the underlying reader failed         wraps its error; later calls return it again
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

// readFrame reads a line with a frame as a Writer writes it. It finds the frame and
// checks that it is JSON; it copies nothing.
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

// readLine reads any line, whatever the order of its members. It reports false for lines
// that are not records: blank ones, headers and unknown ones.
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
		case "hop":
			hop, ok := readHop(d)
			if !ok {
				return false, t.cut("is damaged: hop is not a list of two names")
			}
			rec.Hop = hop
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
	return t.settle(rec, name, isFrame, isText), nil
}

// settle keeps what the members of a line come to. It reports false if that is not a record.
func (t *Reader) settle(rec Record, name string, isFrame, isText bool) bool {
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
		return false
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
	return true
}

// readHop reads the names of a connection.
func readHop(d *wire.Decoder) (h Hop, ok bool) {
	if d.Peek() != '[' {
		d.Skip()
		return Hop{}, false
	}
	n := 0
	ok = true
	for more := d.FirstElem(); more; more = d.NextElem() {
		if d.Peek() != '"' || n > 1 {
			d.Skip()
			ok = false
			continue
		}
		name := d.Str()
		if n == 0 {
			h.Client = name
		} else {
			h.Agent = name
		}
		n++
	}
	return h, ok && n == 2 && len(h.Client) <= MaxHopName && len(h.Agent) <= MaxHopName
}

// isHeader reports whether a line is a header: whether it has the member acpTrace.
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
	// The version alone first: in another version the rest may mean something else.
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
