package acp

import (
	"bytes"
	"io"
	"sync"
)

// maxStderrLine bounds a line of a component's standard error that has not ended.
const maxStderrLine = 8 << 10

// prefixed writes lines behind a name. Those of one chain share a lock, so their lines do not mix.
type prefixed struct {
	w      io.Writer
	prefix []byte

	mu   *sync.Mutex
	line []byte
}

func newPrefixed(w io.Writer, mu *sync.Mutex, name string) *prefixed {
	return &prefixed{w: w, mu: mu, prefix: []byte("[" + name + "] ")}
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
			if err := p.end(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// end writes the line that was begun. The caller holds mu.
func (p *prefixed) end() error {
	line := append(append(bytes.Clone(p.prefix), p.line...), '\n')
	p.line = p.line[:0]
	_, err := p.w.Write(line)
	return err
}

// flush writes a last line that nothing has ended, once the component has.
func (p *prefixed) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.line) > 0 {
		_ = p.end() // there is nobody to tell
	}
}
