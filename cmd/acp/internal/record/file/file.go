// Package file opens recordings for commands, and reports to the user how far reading them is and
// which lines could not be read. It keeps one record at a time.
package file

import (
	"bufio"
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
//
// A recording of a chain of proxies has several connections at a time. A File returns them one after another, each
// as a part of its own, unless it was made with [OpenTogether].
type File struct {
	Name string // for people: that of the file, or “standard input”
	Cuts int64  // lines that could not be read so far, in each pass

	c    Console
	ctx  context.Context
	src  source
	zip  *gunzip // if it is compressed
	hops hops
	file io.Closer
	size int64 // 0 if it is not known
	bar  bool
	next time.Time // when the bar moves
	n    int64     // records
	torn int64     // lines that could not be read, each once
}

// Open opens a recording, or what another program has recorded: JSON-RPC messages with one in each line, with or
// without their direction, or the events of a conductor. Each may be compressed with gzip. "-" is standard input.
// What it is is recognized by its content. Errors are lines for the user. They have the exit code of wrong usage if
// there is no such file, if it is not a recording, or if a newer program made it.
func Open(ctx context.Context, c Console, name string) (*File, error) {
	return open(ctx, c, name, false)
}

// OpenTogether is [Open] for those who want the connections of a chain as they were, at the same time: the records
// say of which one they are.
func OpenTogether(ctx context.Context, c Console, name string) (*File, error) {
	return open(ctx, c, name, true)
}

func open(ctx context.Context, c Console, name string, together bool) (*File, error) {
	f := &File{Name: name, c: c, ctx: ctx}
	f.hops.together = together
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
			if f.size = info.Size(); info.Mode().IsRegular() {
				f.hops.again = file
			}
		}
	}
	if err := f.begin(in); err != nil {
		f.Close()
		return nil, f.fail(err)
	}
	return f, nil
}

// begin reads in from its beginning.
func (f *File) begin(in io.Reader) (err error) {
	b := bufio.NewReaderSize(in, recognizeIn)
	if b, f.zip, err = expand(b); err != nil {
		return err
	}
	f.src, err = recognize(b)
	return err
}

// Header returns the header of the part of the last record.
func (f *File) Header() trace.Header { return f.src.Header() }

// Part returns the number of that part, from 1.
func (f *File) Part() int { return max(1, f.src.Part(), f.hops.part) }

// Hop returns of which connection of a chain the last record is, the zero value if there is only one.
func (f *File) Hop() trace.Hop { return f.hops.last }

// Line returns the number of the line of the last record, from 1.
func (f *File) Line() int64 { return f.src.Line() }

// Offset returns where that line ends, in bytes.
func (f *File) Offset() int64 { return f.src.Offset() }

// Progress shows from now on how much of a large file was read, if Err is a terminal.
func (f *File) Progress() { f.bar = f.size >= barFrom && f.c.Terminal }

// Close closes the file. It reports how many lines could not be read, unless each was reported.
func (f *File) Close() {
	_ = f.file.Close()
	f.clear()
	if f.torn > MaxTold {
		fmt.Fprintf(f.c.Err, "acp: %s: %d lines could not be read\n", safetext.Line(f.Name, maxLine), f.torn)
	}
	if f.hops.left > 0 {
		name := safetext.Line(f.Name, maxLine)
		fmt.Fprintf(f.c.Err, "acp: %s: %d records were left out: %s\n", name, f.hops.left, f.hops.why())
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
		code = exitcode.Usage
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
		rec, err := f.src.Next()
		var cut *trace.CutError
		switch {
		case err == nil:
			if f.hops.take(rec, f.src) {
				return rec, nil
			}
		case err == io.EOF:
			if f.zip != nil && f.zip.torn {
				f.zip.torn = false
				f.damaged(errors.New("the compressed file was cut off"))
			}
			if more, err := f.hops.next(f); !more {
				return nil, err
			}
		case errors.As(err, &cut):
			f.damaged(err)
		default:
			return nil, f.fail(err)
		}
	}
}

// damaged counts a line that cannot be read, and reports it in the first pass.
func (f *File) damaged(err error) {
	f.Cuts++
	if f.hops.pass > 0 {
		return
	}
	if f.torn++; f.torn <= MaxTold {
		f.clear()
		fmt.Fprintf(f.c.Err, "acp: %v\n", &traceError{f.Name, err, ""})
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
