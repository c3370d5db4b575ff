package trace

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp/internal/wire"
)

// Bounds of what is written, in bytes.
const (
	// DefaultMaxFrame is the longest frame that is kept whole unless
	// [Writer.MaxFrame] says otherwise.
	DefaultMaxFrame = 64 << 20
	// MaxText is the longest line of text or of standard error that is kept whole.
	// Of a longer line, and of a frame beyond its own limit, the first MaxText bytes
	// and the whole length are kept.
	MaxText = 64 << 10
	// maxBuffer bounds the lines that a Writer keeps because they could not be written.
	maxBuffer = 1 << 20
	// flushAt is the number of bytes that are collected before they are written.
	flushAt = 64 << 10
)

// A Writer writes a trace. A record is written whole or not at all: what could not be
// written, because the disk was full for example, is kept and written by a later call,
// so that no line is torn unless the process is killed. [NewWriter] and [Append] make
// one. A Writer is not safe for concurrent use.
type Writer struct {
	// MaxFrame is the longest frame that is kept whole, in bytes; 0 means
	// [DefaultMaxFrame], which is also the maximum.
	MaxFrame int

	w   io.Writer
	buf []byte
}

// NewWriter writes h and returns a Writer. The version that is written is that of this
// package, whatever h says. The error is that of w.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	t := &Writer{w: w}
	t.buf = appendHeader(t.buf, h)
	return t, t.Flush()
}

// Append returns a Writer that continues the trace f: it ends a line that was cut off,
// and h begins another part. f must be open for reading and writing; it may be empty.
// If f holds anything but a trace, the error wraps [ErrNotTrace]; if it holds one of a
// newer version, the error wraps [ErrVersion]. In both cases f is unchanged.
func Append(f *os.File, h Header) (*Writer, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	t := &Writer{w: f}
	if size > 0 {
		_, err := NewReader(io.NewSectionReader(f, 0, min(size, maxHeader)))
		if cut := (*CutError)(nil); err != nil && !errors.As(err, &cut) {
			return nil, err
		}
		last := []byte{0}
		if _, err := f.ReadAt(last, size-1); err != nil {
			return nil, err
		}
		if last[0] != '\n' {
			t.buf = append(t.buf, '\n')
		}
	}
	t.buf = appendHeader(t.buf, h)
	return t, t.Flush()
}

// Write adds a record. Records are collected and written together: see [Writer.Flush].
// A frame that is not JSON is written as text. Line breaks between the tokens of a frame
// become spaces. An error is that of the underlying writer, or says what is wrong with
// r; in either case r is not written.
func (t *Writer) Write(r *Record) error {
	if r.Kind == Frame && wire.Valid(r.Data) != nil {
		text := *r
		text.Kind = Text
		r = &text
	}
	return t.write(r)
}

// write is Write for frames that are known to be JSON.
func (t *Writer) write(r *Record) error {
	if len(t.buf) >= flushAt {
		if err := t.Flush(); err != nil && len(t.buf) >= maxBuffer {
			return err
		}
	}
	if r.Kind == Frame && len(r.Data) > t.limit() {
		cut := *r
		cut.Kind, cut.Size = Text, max(r.Size, int64(len(r.Data)))
		r = &cut
	}
	buf, err := appendRecord(t.buf, r)
	if err != nil {
		return err
	}
	t.buf = buf
	return nil
}

func (t *Writer) limit() int {
	if t.MaxFrame <= 0 || t.MaxFrame > DefaultMaxFrame {
		return DefaultMaxFrame
	}
	return t.MaxFrame
}

// Flush writes what has been collected. After an error the rest is kept, and the next
// call continues where this one stopped.
func (t *Writer) Flush() error {
	if len(t.buf) == 0 {
		return nil
	}
	n, err := t.w.Write(t.buf)
	n = max(0, min(n, len(t.buf)))
	if err == nil && n < len(t.buf) {
		err = io.ErrShortWrite
	}
	t.buf = t.buf[:copy(t.buf, t.buf[n:])]
	if len(t.buf) == 0 && cap(t.buf) > maxBuffer {
		t.buf = nil // a large frame passed
	}
	return err
}

// Pending returns the number of bytes that are collected and not yet written.
func (t *Writer) Pending() int { return len(t.buf) }

func appendHeader(b []byte, h Header) []byte {
	line, err := json.Marshal(headerLine{
		Version: Version, Started: h.Started.Format(time.RFC3339Nano), Tool: h.Tool,
		Command: h.Command, Redacted: h.Redacted,
	})
	if err != nil { // cannot happen: it holds strings and numbers
		line = fmt.Appendf(nil, `{"acpTrace":%d}`, Version)
	}
	return append(append(b, line...), '\n')
}

// headerLine is a header as it is written. The version comes first, because a header is
// recognized by the beginning of its line.
type headerLine struct {
	Version  int      `json:"acpTrace"`
	Started  string   `json:"started"`
	Tool     string   `json:"tool,omitempty"`
	Command  []string `json:"command,omitempty"`
	Redacted bool     `json:"redacted,omitempty"`
}

// appendRecord appends the line of r. If there is an error, it returns b unchanged.
func appendRecord(b []byte, r *Record) ([]byte, error) {
	start := len(b)
	b = append(b, `{"t":`...)
	b = strconv.AppendInt(b, int64(max(0, r.At)), 10)
	switch r.Kind {
	case Frame, Text:
		if r.Dir != ToAgent && r.Dir != ToClient {
			return b[:start], fmt.Errorf("trace: a frame has the direction %q", byte(r.Dir))
		}
		b = append(b, `,"d":"`...)
		b = append(b, byte(r.Dir), '"')
		b = appendHop(b, r.Hop)
		if r.Kind == Frame {
			b = append(b, `,"f":`...)
			at := len(b)
			b = append(b, bytes.TrimSpace(r.Data)...)
			spaceBreaks(b[at:])
		} else {
			b = appendText(b, r.Data, r.Size)
		}
	case Stderr:
		b = append(b, `,"e":"stderr"`...)
		b = appendHop(b, r.Hop)
		b = appendText(b, r.Data, r.Size)
	case Event:
		if r.Name == "" || r.Name == "stderr" {
			return b[:start], fmt.Errorf("trace: an event is called %q", r.Name)
		}
		b = append(b, `,"e":`...)
		b = wire.AppendString(b, r.Name)
		b = appendHop(b, r.Hop)
		b = appendDetail(b, r.Detail)
	default:
		return b[:start], fmt.Errorf("trace: a record of kind %d", r.Kind)
	}
	return append(b, '}', '\n'), nil
}

// appendHop appends the member for a connection, unless it is the only one.
func appendHop(b []byte, h Hop) []byte {
	if h == (Hop{}) {
		return b
	}
	b = append(b, `,"hop":[`...)
	b = wire.AppendString(b, cutName(h.Client))
	b = append(b, ',')
	b = wire.AppendString(b, cutName(h.Agent))
	return append(b, ']')
}

func cutName(name string) string {
	name = strings.ToValidUTF8(name, "\ufffd")
	if len(name) <= MaxHopName {
		return name
	}
	n := MaxHopName
	for !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n]
}

// appendText appends the members for a text. A text that is not UTF-8 is in base64, so
// that it is read as it was written; one that was cut has its size.
func appendText(b, text []byte, size int64) []byte {
	size = max(size, int64(len(text)))
	if len(text) > MaxText {
		text = cutText(text)
	}
	if utf8.Valid(text) {
		b = append(b, `,"text":`...)
		b = wire.AppendString(b, string(text))
	} else {
		b = append(b, `,"base64":"`...)
		b = base64.StdEncoding.AppendEncode(b, text)
		b = append(b, '"')
	}
	if size > int64(len(text)) {
		b = append(b, `,"size":`...)
		b = strconv.AppendInt(b, size, 10)
	}
	return b
}

// cutText returns the beginning of text without a cut character at its end.
func cutText(text []byte) []byte {
	for n := MaxText; n > MaxText-utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) {
			return text[:n]
		}
	}
	return text[:MaxText]
}

func appendDetail(b []byte, d Detail) []byte {
	if d.PID != 0 {
		b = append(b, `,"pid":`...)
		b = strconv.AppendInt(b, int64(d.PID), 10)
	}
	if d.Code != nil {
		b = append(b, `,"code":`...)
		b = strconv.AppendInt(b, int64(*d.Code), 10)
	}
	if d.Count != 0 {
		b = append(b, `,"count":`...)
		b = strconv.AppendInt(b, d.Count, 10)
	}
	if d.Text != "" {
		b = append(b, `,"text":`...)
		text := d.Text
		if len(text) > MaxText {
			text = string(cutText([]byte(text)))
		}
		b = wire.AppendString(b, text)
	}
	return b
}

// spaceBreaks replaces the line breaks of valid JSON, which stand between its
// tokens only.
func spaceBreaks(b []byte) {
	for {
		i := bytes.IndexAny(b, "\n\r")
		if i < 0 {
			return
		}
		b[i], b = ' ', b[i+1:]
	}
}
