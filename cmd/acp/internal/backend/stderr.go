package backend

import (
	"bytes"
	"cmp"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/internal/process"
)

// maxStderrLine bounds a line of standard error, in bytes; longer lines are reported in pieces.
const maxStderrLine = 4 << 10

// stderrLines reports what the agent, or an MCP server that is bridged for it, writes to standard
// error, line by line. Neither of them waits: the process reader drops what is too much.
type stderrLines struct {
	note func(Note)

	mu      sync.Mutex
	pending []byte
	count   int           // lines that were reported
	more    chan struct{} // closed with the next one; nil if nothing waits for that
	latest  string
	telling string // the latest line that looks like the report of a failure
}

// Write adds bytes. It never fails.
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

// maxIndent bounds the spaces before a line, which traces of the stack have.
const maxIndent = 40

// tell reports the current line. The caller holds mu, which keeps the lines in order.
func (w *stderrLines) tell() {
	raw := strings.ReplaceAll(strings.ToValidUTF8(string(w.pending), "\uFFFD"), "\t", "    ")
	line := safetext.Line(raw, maxNote)
	indent := min(len(raw)-len(strings.TrimLeft(raw, " ")), maxIndent)
	w.pending = w.pending[:0]
	if strings.TrimSpace(line) == "" {
		return
	}
	w.latest = line
	w.count++
	if w.more != nil {
		close(w.more)
		w.more = nil
	}
	if process.IsReason(line) {
		w.telling = line
	}
	w.note(Note{Kind: NoteStderr, Text: strings.Repeat(" ", indent) + strings.TrimLeft(line, " ")})
}

// flush reports the rest, after the last write.
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

// mark returns how many lines there were so far, for since.
func (w *stderrLines) mark() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// since returns the last line if there were more than mark; otherwise it waits for one as long as
// wait. It returns "" if there is none.
func (w *stderrLines) since(mark int, wait time.Duration) string {
	w.mu.Lock()
	if w.count <= mark {
		if w.more == nil {
			w.more = make(chan struct{})
		}
		more := w.more
		w.mu.Unlock()
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-more:
		case <-timer.C:
		}
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	if w.count <= mark {
		return ""
	}
	return w.latest
}

// last returns the last line that reports a failure, or else the last line, or "".
func (w *stderrLines) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.telling, w.latest)
}
