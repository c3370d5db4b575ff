package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
)

// A link is the byte streams of one side of a connection.
type link struct {
	r io.ReadCloser
	w io.WriteCloser
	// stdio says that they are the process's own standard input and output.
	stdio bool
}

func (l link) close() {
	_ = l.w.Close()
	_ = l.r.Close()
}

// A client is the client side of a connection of some implementation.
type client interface {
	// prompt runs one prompt turn in the i-th session.
	prompt(ctx context.Context, i int, text string) error
	// close ends the connection and waits for nothing but itself.
	close()
}

// A subject is an implementation under test.
type subject struct {
	name, title string
	dial        func(link, *recorder) client
	// serve runs the agent side until the client has gone.
	serve func(link) error
}

var subjects = []*subject{ours, app, coder, bare, each}

// bare reports whether the subject understands nothing.
func (s *subject) bare() bool { return s == bare || s == each }

// tsName is the subject that runs in Node and so has no entry in subjects.
const tsName = "ts"

func subjectByName(name string) (*subject, error) {
	for _, s := range subjects {
		if s.name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("no such subject: %s", name)
}

func titleOf(name string) string {
	if name == tsName {
		return "TypeScript"
	}
	s, err := subjectByName(name)
	if err != nil {
		return name
	}
	return s.title
}

// A recorder is what the client's handlers tell and ask.
type recorder struct {
	updates atomic.Int64 // update notifications handled
	bytes   atomic.Int64 // of the text in them
	files   map[string]string
	stats   atomic.Pointer[stats]
}

func newRecorder() *recorder { return &recorder{files: map[string]string{}} }

// prepare makes the content of a file before anything is timed.
func (r *recorder) prepare(c command) {
	if c.verb == "read" && r.files[c.path()] == "" {
		r.files[c.path()] = fileText(c.arg, c.n)
	}
}

// path is the file that a read command asks for.
func (c command) path() string { return fmt.Sprintf("/home/user/%s-%d.txt", c.arg, c.n) }

// text takes the text of a chunk. The agent reports its statistics in one.
func (r *recorder) text(s string) {
	if len(s) > 0 && s[0] == '{' {
		var st stats
		if json.Unmarshal([]byte(s), &st) == nil {
			r.stats.Store(&st)
			return
		}
	}
	r.updates.Add(1)
	r.bytes.Add(int64(len(s)))
}

// agentStats asks the agent for its statistics.
func agentStats(ctx context.Context, c client, r *recorder) (stats, error) {
	return askStats(ctx, c, r, "stats")
}

func askStats(ctx context.Context, c client, r *recorder, verb string) (stats, error) {
	r.stats.Store(nil)
	if err := c.prompt(ctx, 0, command{verb: verb}.String()); err != nil {
		return stats{}, err
	}
	st := r.stats.Load()
	if st == nil {
		return stats{}, fmt.Errorf("the agent's statistics were lost")
	}
	return *st, nil
}
