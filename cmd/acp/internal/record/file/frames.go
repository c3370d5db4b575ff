package file

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"time"

	envelope "github.com/goacp/acp/cmd/acp/internal/record/frame"
	"github.com/goacp/acp/trace"
)

const (
	// maxAsked bounds the requests of each side whose answers are recognized.
	maxAsked = 4096
	// frameEvery is the time that is put between frames whose times are not known.
	frameEvery = time.Millisecond
)

// frames reads a file that has a frame in each line and nothing else, as other programs record them, as a
// recording. It finds out who sent a frame: requests and notifications by their methods, answers by the
// requests that they answer. It keeps one line, of at most [trace.MaxLine] bytes, and the ids of requests.
type frames struct {
	in    *bufio.Reader
	read  envelope.Reader
	w     *trace.Writer
	out   bytes.Buffer
	line  []byte
	asked map[string][]trace.Direction // by id, the latest last
	n     time.Duration
	err   error
}

// open returns what is read as a recording: in, or frames if it has nothing but these. It waits for the
// beginning only.
func open(in io.Reader) io.Reader {
	b := bufio.NewReaderSize(in, 64<<10)
	if _, err := b.Peek(1); err != nil {
		return b
	}
	head, _ := b.Peek(min(b.Buffered(), 512)) // has been read
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	if !bytes.HasPrefix(head, []byte("{")) || !bytes.Contains(head, []byte(`"jsonrpc"`)) || bytes.HasPrefix(head, []byte(`{"acpTrace"`)) {
		return b
	}
	f := &frames{in: b, asked: map[string][]trace.Direction{}}
	f.w, f.err = trace.NewWriter(&f.out, trace.Header{Started: time.Unix(0, 0).UTC()})
	return f
}

// Read implements [io.Reader].
func (f *frames) Read(p []byte) (int, error) {
	for f.out.Len() == 0 {
		if f.err != nil {
			return 0, f.err
		}
		f.next()
	}
	return f.out.Read(p)
}

// next turns one line into a record.
func (f *frames) next() {
	f.line = f.line[:0]
	size := int64(0)
	for more := true; more; {
		part, err := f.in.ReadSlice('\n')
		size += int64(len(part))
		f.line = append(f.line, part[:min(len(part), trace.MaxLine-len(f.line))]...)
		if more = err == bufio.ErrBufferFull; !more {
			f.err = err
		}
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(f.line, []byte("\ufeff")))
	if len(text) == 0 {
		return
	}
	f.n += frameEvery
	rec := trace.Record{At: f.n, Kind: trace.Frame, Dir: f.direction(text), Data: text}
	if size > int64(len(f.line)) {
		rec.Kind, rec.Size = trace.Text, size
	}
	err := f.w.Write(&rec)
	if err == nil {
		err = f.w.Flush()
	}
	if err != nil {
		f.err = err
	}
}

// direction returns who a frame is for. What is not a message is the agent's.
func (f *frames) direction(text []byte) trace.Direction {
	e := f.read.Read(text)
	id := string(e.ID)
	switch {
	case e.Method == "" && e.ID == nil:
		return trace.ToClient
	case e.Method != "":
		dir := directionOf(e.Method)
		if list := f.asked[id]; e.ID != nil && len(f.asked) < maxAsked && len(list) < 2 {
			f.asked[id] = append(list, dir)
		}
		return dir
	}
	// If both sides use an id, the later request is answered first: it was asked in the turn of the other.
	list := f.asked[id]
	if len(list) == 0 {
		return trace.ToClient
	}
	dir := list[len(list)-1]
	if f.asked[id] = list[:len(list)-1]; len(list) == 1 {
		delete(f.asked, id)
	}
	if dir == trace.ToAgent {
		return trace.ToClient
	}
	return trace.ToAgent
}

// directionOf returns who a method is for. Extensions are taken for the agent's.
func directionOf(method string) trace.Direction {
	switch method {
	case "session/update", "session/request_permission", "auth/status_update", "mcp/connect", "mcp/disconnect":
		return trace.ToClient
	}
	for _, of := range []string{"fs/", "terminal/", "elicitation/", "_"} {
		if strings.HasPrefix(method, of) {
			return trace.ToClient
		}
	}
	return trace.ToAgent
}
