package tui

import (
	"bytes"
	"os"
	"sync/atomic"
)

// A keyboard is the terminal that the user types on. Until a terminal is in raw mode it turns Enter
// into a newline, which is Ctrl+J in raw mode. The first read returns what was typed before,
// however long the program has taken to start, so Read turns newlines in it back into Enter.
//
// The first key of a user who presses Ctrl+J when the screen is there counts as Enter, unless the
// terminal has sent something before: it then does nothing, or accepts what is preselected. After
// the terminal was lent to a program, Enter that was typed too early is a newline.
//
// On Windows the console is read in another way, and Read is not called.
type keyboard struct {
	*os.File
	begun atomic.Bool // something was read; a reader that was abandoned may still be there
}

var paste = []byte("\x1b[200~") // the beginning of one, which only a terminal in raw mode sends

// Read is called after the terminal was put in raw mode, with a buffer of at least 4096 bytes: no
// terminal keeps more.
func (k *keyboard) Read(p []byte) (int, error) {
	n, err := k.File.Read(p)
	if n > 0 && !k.begun.Swap(true) {
		early, _, _ := bytes.Cut(p[:n], paste)
		for i, c := range early {
			if c == '\n' {
				early[i] = '\r'
			}
		}
	}
	return n, err
}
