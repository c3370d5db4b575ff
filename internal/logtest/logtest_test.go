package logtest

import (
	"bytes"
	"io"
	"log"
	"log/slog"
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

// TestSetDefault: after the test, what the default logger and package log get goes to where it went before.
func TestSetDefault(t *testing.T) {
	var before, during bytes.Buffer
	w := log.Writer()
	log.SetOutput(&before)
	defer log.SetOutput(w)
	t.Run("test", func(t *testing.T) {
		SetDefault(t, slog.NewTextHandler(&during, nil))
		slog.Info("one")
		log.Print("two")
	})
	slog.Info("three")
	log.Print("four")
	if got := during.String(); !strings.Contains(got, "one") || !strings.Contains(got, "two") || strings.Contains(got, "three") || strings.Contains(got, "four") {
		t.Errorf("during: %q", got)
	}
	if got := before.String(); strings.Contains(got, "one") || !strings.Contains(got, " INFO three\n") || !strings.Contains(got, " four\n") {
		t.Errorf("before and after: %q", got)
	}
}

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
