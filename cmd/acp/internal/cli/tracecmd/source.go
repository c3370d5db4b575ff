package tracecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/trace"
)

// A source is a trace that is read, with what is told about reading it.
type source struct {
	*trace.Reader
	app  *app.App
	ctx  context.Context
	name string
	file io.Closer
	size int64 // 0 if it is not known
	bar  bool  // there is a bar to show how far it is
	next time.Time
	n    int64 // records
	cuts int64
}

const (
	barFrom  = 32 << 20 // size from which there is a bar
	barEvery = 200 * time.Millisecond
	maxTold  = 5 // damaged lines that are told one by one
)

// open opens a trace. It has to be closed.
func (o *Options) open(ctx context.Context, name string) (*source, error) {
	s := &source{app: o.App, ctx: ctx, name: name}
	in := o.App.In
	if name == "-" {
		s.name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, exitcode.With(exitcode.Usage, err)
		}
		s.file, in = f, f
		if info, err := f.Stat(); err == nil {
			if info.IsDir() {
				_ = f.Close()
				return nil, exitcode.Errorf(exitcode.Usage, "%s is a directory, not a recording", line(name))
			}
			s.size = info.Size()
		}
	}
	r, err := trace.NewReader(in)
	if err != nil {
		s.close()
		return nil, s.fail(err)
	}
	s.Reader = r
	s.bar = s.size >= barFrom && o.App.ErrTerminal && (!o.App.OutTerminal || o.Verb != verbShow)
	return s, nil
}

func (s *source) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
	if s.bar {
		fmt.Fprint(s.app.Err, "\r\x1b[K")
	}
	if s.cuts > maxTold {
		fmt.Fprintf(s.app.Err, "acp: %s: %d lines could not be read\n", line(s.name), s.cuts)
	}
}

// fail says what is wrong with the trace.
func (s *source) fail(err error) error {
	code := exitcode.Failed
	if errors.Is(err, trace.ErrNotTrace) || errors.Is(err, trace.ErrVersion) {
		code = exitcode.Usage
	}
	// Who reads it knows what it is.
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return exitcode.With(code, &traceError{s.name, err})
}

// A traceError leaves out the name of the package.
type traceError struct {
	name string
	err  error
}

func (e *traceError) Error() string {
	return line(e.name) + ": " + strings.TrimPrefix(e.err.Error(), "trace: ")
}
func (e *traceError) Unwrap() error { return e.err }

// record returns the next record, or io.EOF. Lines that cannot be read are told.
func (s *source) record() (*trace.Record, error) {
	for {
		if s.n++; s.n%512 == 0 {
			if err := s.ctx.Err(); err != nil {
				return nil, err
			}
			s.progress()
		}
		rec, err := s.Next()
		var cut *trace.CutError
		switch {
		case err == nil || err == io.EOF:
			return rec, err
		case errors.As(err, &cut):
			if s.cuts++; s.cuts <= maxTold {
				fmt.Fprintf(s.app.Err, "acp: %v\n", &traceError{s.name, err})
			}
		default:
			return nil, s.fail(err)
		}
	}
}

// progress shows how much was read.
func (s *source) progress() {
	if !s.bar || time.Now().Before(s.next) {
		return
	}
	s.next = time.Now().Add(barEvery)
	const width = 40
	done := min(int(s.Offset()*width/s.size), width)
	fmt.Fprintf(s.app.Err, "\r[%s%s] %d %%", strings.Repeat("#", done), strings.Repeat(" ", width-done), min(100, s.Offset()*100/s.size))
}
