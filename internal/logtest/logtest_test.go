package logtest

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// fake is a test whose output can be read, and which ends when the test says so.
type fake struct {
	testing.TB
	out     bytes.Buffer
	cleanup []func()
}

func (f *fake) Output() io.Writer { return &f.out }
func (f *fake) Cleanup(c func())  { f.cleanup = append(f.cleanup, c) }

// TestNew: what is logged is in the output of the test, and nothing is once that has ended.
func TestNew(t *testing.T) {
	f := new(fake)
	log := New(f)
	log.Error("during", "n", 1)
	for _, c := range f.cleanup {
		c()
	}
	log.Error("after")
	if got := f.out.String(); !strings.Contains(got, "level=ERROR msg=during n=1\n") || strings.Contains(got, "after") {
		t.Errorf("%q", got)
	}
}
