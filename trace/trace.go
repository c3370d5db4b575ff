// Package trace records what an agent and a client say to each other, and reads
// such recordings. The format is described in docs/trace.md: a line of JSON for
// each frame, so a recording that was cut off, or written to again, can be read.
package trace

import (
	"time"
)

// Version is the version of the format this package writes. It reads all
// versions up to it.
const Version = 1

// A Direction says who a frame was sent to.
type Direction byte

// The directions.
const (
	ToAgent  Direction = '>'
	ToClient Direction = '<'
)

// A Kind says what a record is about.
type Kind byte

// The kinds of records.
const (
	Frame  Kind = iota // Data is a JSON text that passed
	Text               // Data is a line that passed and is not JSON
	Stderr             // Data is a line the agent wrote to its standard error
	Event              // something happened: Name says what
)

// A Header is the first line of a recording, and of each part of one that was
// written to again. The zero value says nothing.
type Header struct {
	Version  int       // of the format; 0 in what is written stands for [Version]
	Started  time.Time // times of records count from here
	Tool     string    // what recorded, as "acp 1.2.3"
	Command  []string  // what was run, nil if nothing was
	Redacted bool      // secrets were replaced
}

// A Record is one thing that happened.
type Record struct {
	At   time.Duration // since [Header.Started]
	Kind Kind
	Dir  Direction // of frames and text
	Data []byte    // see [Kind]; in what a [Reader] returns, valid until the next call
	// Size is the length of what passed, in bytes, which is more than that of
	// Data when it was cut because it was too long. 0 stands for len(Data).
	Size int64
	// Name says what an event is: "start", "exit", "signal", "close", "lost",
	// "policy" or another word. Everything else is in Detail.
	Name   string
	Detail Detail
}

// Detail tells more of an event. Members that do not apply are zero.
type Detail struct {
	PID   int    `json:"pid,omitempty"`
	Code  *int   `json:"code,omitempty"`  // exit status
	Count int64  `json:"count,omitempty"` // how many, of what was lost
	Text  string `json:"text,omitempty"`
}
