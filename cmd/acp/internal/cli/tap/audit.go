package tap

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/tap"
)

// An audit is the log of what a policy decided: a line of JSON each, written before the decision takes
// effect. What cannot be written is counted, and does not hold up the conversation. The zero audit
// writes nothing.
type audit struct {
	mu   sync.Mutex
	f    *os.File
	lost int
	err  error // the first
}

// open opens the log, which is only for the user to read.
func (l *audit) open(name string) (err error) {
	l.f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return err
}

func (l *audit) write(e *tap.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = l.f.Write(append(line, '\n'))
	}
	if err != nil {
		l.lost++
		if l.err == nil {
			l.err = err
		}
	}
}

// close closes the log and returns what went wrong with it.
func (l *audit) close() (problems []string) {
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
