package tui

import (
	"bytes"
	"os"
	"sync/atomic"
)

// typed is the terminal that the user types on. Until a terminal is in raw mode it turns Enter into
// a newline, which is Ctrl+J in raw mode. What was typed before is what the first read returns,
// however long the program takes until then, so Enter is put back in there.
//
// A program that is lent the terminal must be given the File: os/exec would copy from anything else.
//
// A user whose first key is Ctrl+J gets Enter instead, which does nothing in an empty input.
type typed struct {
	*os.File
	begun atomic.Bool // something was read
}

// Read is called after the terminal was put in raw mode, with a buffer that takes all that a
// terminal keeps.
func (in *typed) Read(p []byte) (int, error) {
	n, err := in.File.Read(p)
	if n > 0 && !in.begun.Swap(true) {
		copy(p, bytes.ReplaceAll(p[:n], []byte{'\n'}, []byte{'\r'}))
	}
	return n, err
}
