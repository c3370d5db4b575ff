// Package trace records what an agent and a client send each other, and reads such
// recordings. docs/trace.md describes the format: one line of JSON for each frame, so
// that a recording that was cut off, or continued later, can still be read.
package trace

import (
	"time"
)

// Version is the version of the format this package writes. It reads all
// versions up to it.
const Version = 1

// A Direction says to whom a frame was sent.
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

// A Header is the first line of a recording, and of each part of a recording that was
// continued later. The zero value says nothing.
type Header struct {
	Version  int       // of the format; when writing, 0 means [Version]
	Started  time.Time // the moment that the times of records count from
	Tool     string    // the recording program, such as "acp 1.2.3"
	Command  []string  // the command that was run, or nil
	Redacted bool      // whether secrets were replaced
}

// A Record is one thing that happened.
type Record struct {
	At   time.Duration // since [Header.Started]
	Kind Kind
	Dir  Direction // of frames and text
	Hop  Hop       // the connection, in a recording of several at a time
	Data []byte    // see [Kind]; in what a [Reader] returns, valid until the next call
	// Size is the length of what passed, in bytes. It is more than len(Data) if Data
	// was too long and was cut. 0 means len(Data).
	Size int64
	// Name says what an event is: "start", "exit", "signal", "close", "lost",
	// "policy" or another word. Everything else is in Detail.
	Name   string
	Detail Detail
}

// A Hop names a connection of a chain, in which proxies stand between a client and an
// agent: the two components that it connects, by the roles they have on it. The zero value
// is the only connection of a recording. Names are at most [MaxHopName] bytes long.
type Hop struct {
	Client string // which asks, such as "Client" or the name of a proxy
	Agent  string // which answers, such as the name of a proxy or "Agent"
}

// MaxHopName is the longest name in a [Hop], in bytes. A [Writer] cuts a longer one, and a
// [Reader] reports the line with it as damaged.
const MaxHopName = 256

// Detail describes an event. Fields that do not apply are zero.
type Detail struct {
	PID   int    `json:"pid,omitempty"`   // of the process
	Code  *int   `json:"code,omitempty"`  // exit status
	Count int64  `json:"count,omitempty"` // how many records were lost
	Text  string `json:"text,omitempty"`  // for people
}
