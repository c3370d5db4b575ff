package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A failure is a test that failed, or a whole test program if it did not come to the end of its tests.
type failure struct {
	pkg, test string // test is empty for a program
}

func (f failure) String() string { return strings.TrimSpace(f.pkg + " " + f.test) }

// maxLine bounds what is kept of one line. No line of the go command itself is as long.
const maxLine = 4 << 10

// An output reads what go test prints. The zero value has read nothing.
type output struct {
	line []byte // the last one, without its end, cut at maxLine

	failed   []string // tests of the package under way, in the order of their lines
	finished bool     // its program came to the end of its tests

	idle  bool // a package passed without a test
	found []failure
	fatal error // the first failure that is not run again
}

// Write takes a part of the output; it never fails.
func (o *output) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		o.line = append(o.line, line[:min(len(line), maxLine-len(o.line))]...)
		if !whole {
			return n, nil
		}
		o.read(strings.TrimSuffix(string(o.line), "\r"))
		o.line, p = o.line[:0], rest
	}
}

func (o *output) read(line string) {
	switch {
	case line == "FAIL" || line == "PASS":
		o.finished = true
	case strings.TrimLeft(line, " \t") == "WARNING: DATA RACE": // indented in what a test logs of a child
		o.fail(errors.New("there was a data race"))
	case strings.HasPrefix(line, "ok  \t"):
		o.idle = o.idle || strings.HasSuffix(line, "[no tests to run]")
		o.next()
	case strings.HasPrefix(line, "FAIL\t"):
		o.end(strings.TrimPrefix(line, "FAIL\t"))
	default:
		if name, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			o.failed = append(o.failed, name)
		}
	}
}

// end takes the last line of a package that failed: its path, and its time or, in brackets, a reason.
func (o *output) end(line string) {
	defer o.next()
	pkg, after, _ := strings.Cut(line, "\t")
	if path, reason, ok := strings.Cut(pkg, " ["); ok || strings.HasPrefix(after, "[") {
		o.fail(fmt.Errorf("%s: %s", path, strings.Trim(reason+after, "[]")))
		return
	}
	if !o.finished || len(o.failed) == 0 {
		o.found = append(o.found, failure{pkg: pkg})
		return
	}
	for _, name := range o.failed {
		inner := func(other string) bool { return strings.HasPrefix(other, name+"/") }
		if !slices.ContainsFunc(o.failed, inner) {
			o.found = append(o.found, failure{pkg, name})
		}
	}
}

func (o *output) next() { o.failed, o.finished = nil, false }

func (o *output) fail(err error) {
	if o.fatal == nil {
		o.fatal = err
	}
}

// failures returns what is to be run again.
func (o *output) failures() ([]failure, error) {
	switch {
	case o.fatal != nil:
		return nil, o.fatal
	case len(o.found) == 0:
		return nil, errors.New("go test does not say which test failed")
	case len(o.found) > maxAgain:
		return nil, fmt.Errorf("%d tests failed, and more than %d are not chance", len(o.found), maxAgain)
	}
	return o.found, nil
}
