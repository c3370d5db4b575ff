package host

import (
	"bytes"
	"cmp"
	"strings"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/internal/process"
)

// maxStderrLine bounds a line of standard error, in bytes; what is longer is told in pieces.
const maxStderrLine = 4 << 10

// stderrLines tells what the agent, or an MCP server that is bridged for it, writes to standard error, line
// by line. Neither waits for it: whoever writes drops what is too much.
type stderrLines struct {
	note func(Note)

	mu      sync.Mutex
	pending []byte
	latest  string
	telling string // the latest line that looks like what has failed
}

// Write takes the next bytes. It never fails.
func (w *stderrLines) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		piece := b[:min(len(b), maxStderrLine-len(w.pending))]
		if i >= 0 && i < len(piece) {
			w.pending = append(w.pending, b[:i]...)
			b = b[i+1:]
			w.tell()
			continue
		}
		w.pending = append(w.pending, piece...)
		b = b[len(piece):]
		if len(w.pending) == maxStderrLine {
			w.tell()
		}
	}
	return n, nil
}

// tell tells the line there is. It is called with mu held, which keeps the lines in order.
func (w *stderrLines) tell() {
	line := safetext.Line(strings.ToValidUTF8(string(w.pending), "\uFFFD"), maxNote)
	w.pending = w.pending[:0]
	if strings.TrimSpace(line) == "" {
		return
	}
	w.latest = line
	if process.IsReason(line) {
		w.telling = line
	}
	w.note(Note{Kind: NoteStderr, Text: line})
}

// flush tells the rest, after the last write.
func (w *stderrLines) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) > 0 {
		w.tell()
	}
}

// Close is flush. It never fails.
func (w *stderrLines) Close() error {
	w.flush()
	return nil
}

// last returns the last line that says what has failed, else the last line, or "".
func (w *stderrLines) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.telling, w.latest)
}
