// Package file opens recordings for commands, and reports to the user how far reading them is and
// which lines could not be read. It keeps one record at a time.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/trace"
)

const (
	// barFrom is the size of a recording from which on there is a bar; barEvery is how often the
	// bar moves.
	barFrom  = 32 << 20
	barEvery = 200 * time.Millisecond
	// MaxTold is how many damaged lines are reported one by one; further ones are only counted.
	MaxTold = 5
	// maxLine bounds names and reasons in reports, in cells.
	maxLine = 4096
)

// A Console is where a command reads and reports.
type Console struct {
	Dir      string    // which names of files are relative to
	In       io.Reader // standard input
	Err      io.Writer // for damage and the bar
	Terminal bool      // Err is a terminal
}

// A File is a recording that is read. Make it with [Open], close it, and use it from one goroutine
// at a time.
type File struct {
	*trace.Reader
	Name string // for people: that of the file, or “standard input”
	Cuts int64  // lines that could not be read so far

	c    Console
	ctx  context.Context
	file io.Closer
	size int64 // 0 if it is not known
	bar  bool
	next time.Time // when the bar moves
	n    int64     // records
}

// Open opens a recording, or a file that has a frame in each line and nothing else, "-" for standard input. Errors are lines for the user. They have the exit
// code of wrong usage if there is no such file, if it is not a recording, or if a newer program made it.
func Open(ctx context.Context, c Console, name string) (*File, error) {
	f := &File{Name: name, c: c, ctx: ctx}
	var in io.Reader
	if name == "-" {
		f.Name = "standard input"
		p := newPatient(ctx, c.In)
		f.file, in = p, p
	} else {
		if !filepath.IsAbs(name) {
			name = filepath.Join(c.Dir, name)
		}
		file, err := os.Open(name)
		if err != nil {
			return nil, exitcode.With(exitcode.Usage, err)
		}
		f.file, in = file, file
		if info, err := file.Stat(); err == nil {
			if info.IsDir() {
				_ = file.Close()
				return nil, exitcode.Errorf(exitcode.Usage, "%s is a directory, not a recording", safetext.Line(f.Name, maxLine))
			}
			f.size = info.Size()
		}
	}
	r, err := trace.NewReader(open(in))
	if err != nil {
		f.Close()
		return nil, f.fail(err)
	}
	f.Reader = r
	return f, nil
}

// Progress shows from now on how much of a large file was read, if Err is a terminal.
func (f *File) Progress() { f.bar = f.size >= barFrom && f.c.Terminal }

// Close closes the file. It reports how many lines could not be read, unless each was reported.
func (f *File) Close() {
	_ = f.file.Close()
	f.clear()
	if f.Cuts > MaxTold {
		fmt.Fprintf(f.c.Err, "acp: %s: %d lines could not be read\n", safetext.Line(f.Name, maxLine), f.Cuts)
	}
}

// clear removes the bar.
func (f *File) clear() {
	if f.bar {
		fmt.Fprint(f.c.Err, "\r\x1b[K")
	}
}

// fail explains what is wrong with the recording.
func (f *File) fail(err error) error {
	code, hint := exitcode.Failed, ""
	switch {
	case errors.Is(err, trace.ErrNotTrace):
		code, hint = exitcode.Usage, "; recordings are made with acp tap -o FILE"
	case errors.Is(err, trace.ErrVersion):
		code, hint = exitcode.Usage, "; a newer acp reads it"
	}
	// The user knows what it is.
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return exitcode.With(code, &traceError{f.Name, err, hint})
}

// A traceError leaves out the name of the package.
type traceError struct {
	name string
	err  error
	hint string // what to do
}

func (e *traceError) Error() string {
	return safetext.Line(e.name+": "+strings.TrimPrefix(e.err.Error(), "trace: "), maxLine) + e.hint
}

func (e *traceError) Unwrap() error { return e.err }

// Record returns the next record, valid until the next call, or io.EOF. Lines that cannot be read
// are reported and counted: callers that check the traffic must take into account that something is
// missing where Cuts has grown. When the context has ended, Record returns its cause.
func (f *File) Record() (*trace.Record, error) {
	for {
		if f.n++; f.n%512 == 0 {
			if f.ctx.Err() != nil {
				return nil, context.Cause(f.ctx)
			}
			f.progress()
		}
		rec, err := f.Next()
		var cut *trace.CutError
		switch {
		case err == nil || err == io.EOF:
			return rec, err
		case errors.As(err, &cut):
			if f.Cuts++; f.Cuts <= MaxTold {
				f.clear()
				fmt.Fprintf(f.c.Err, "acp: %v\n", &traceError{f.Name, err, ""})
			}
		default:
			return nil, f.fail(err)
		}
	}
}

// progress shows how much was read.
func (f *File) progress() {
	if !f.bar || time.Now().Before(f.next) {
		return
	}
	f.next = time.Now().Add(barEvery)
	const width = 40
	done := min(int(f.Offset()*width/f.size), width)
	fmt.Fprintf(f.c.Err, "\r[%s%s] %d %%", strings.Repeat("#", done), strings.Repeat(" ", width-done), min(100, f.Offset()*100/f.size))
}
