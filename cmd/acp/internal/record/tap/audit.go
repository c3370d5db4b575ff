package tap

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/goacp/acp/trace"
)

// An Audit is the log of a policy's decisions: one line of JSON each, written before the decision
// takes effect. A decision that cannot be written is counted and still takes effect. The zero Audit
// writes nothing. Its methods may be called from any goroutine.
type Audit struct {
	Redactor *trace.Redactor // removes secrets; nil leaves them

	mu   sync.Mutex
	f    *os.File
	torn bool  // the last line is incomplete
	lost int   // decisions that could not be written
	err  error // the first failure
}

// Open opens the log for appending. Only its owner can read it.
func (l *Audit) Open(name string) (err error) {
	l.f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	l.torn = err == nil && isTorn(name)
	return err
}

// isTorn reports whether the last line of a file was cut off, as by a crash or a full disk.
func isTorn(name string) bool {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var last [1]byte
	_, err = f.ReadAt(last[:], info.Size()-1)
	return err == nil && last[0] != '\n'
}

// Write appends a decision. It is for [NewGuard] and never fails; Close reports what went wrong.
func (l *Audit) Write(e *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		err = l.appendLine(line)
	}
	if err != nil {
		l.lost++
		if l.err == nil {
			l.err = err
		}
	}
}

// appendLine appends a line. If the last one is incomplete, it starts a new line, so that a crash
// costs one entry and not two.
func (l *Audit) appendLine(line []byte) error {
	var out []byte
	if l.torn {
		out = append(out, '\n')
	}
	if l.Redactor != nil {
		out = l.Redactor.Redact(out, &trace.Record{Kind: trace.Frame, Data: line})
	} else {
		out = append(out, line...)
	}
	n, err := l.f.Write(append(out, '\n'))
	if n > 0 {
		l.torn = err != nil
	}
	return err
}

// Close closes the log and returns the problems to report, if any.
func (l *Audit) Close() (problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	if err := l.f.Close(); err != nil && l.err == nil {
		l.err = err
	}
	l.f = nil
	if l.err == nil {
		return nil
	}
	return []string{fmt.Sprintf("%d decisions could not be written to the log: %v", l.lost, l.err)}
}
