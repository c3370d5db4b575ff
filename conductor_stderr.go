package acp

import (
	"bytes"
	"io"
	"sync"
)

// maxStderrLine bounds a line of a component's standard error that has not ended.
const maxStderrLine = 8 << 10

// prefixed writes lines behind a name. Lines of several writers do not mix, since each is
// written at once.
type prefixed struct {
	w      io.Writer
	prefix []byte

	mu   sync.Mutex
	line []byte
}

func newPrefixed(w io.Writer, name string) *prefixed {
	return &prefixed{w: w, prefix: []byte("[" + name + "] ")}
}

// Write writes the lines that have ended. What is longer than 8 KiB is taken apart.
func (p *prefixed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		part, rest, ended := bytes.Cut(b, []byte{'\n'})
		if room := maxStderrLine - len(p.line); len(part) > room {
			part, rest, ended = b[:room], b[room:], true
		}
		p.line = append(p.line, part...)
		b = rest
		if ended {
			line := append(append(bytes.Clone(p.prefix), p.line...), '\n')
			p.line = p.line[:0]
			if _, err := p.w.Write(line); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}
