package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/record/file"
	"github.com/goacp/acp/trace"
)

// redact copies a recording without its secrets.
func (o *Options) redact(ctx context.Context) error {
	s, err := o.open(ctx, o.Files[0])
	if err != nil {
		return err
	}
	defer s.Close()
	return o.writeCopy(o.Files[1], func(out io.Writer) error { return o.copyRedacted(s, out) })
}

// writeCopy writes a file of what a function writes, "-" for standard output. It appears complete or not at all: half
// a copy might be mistaken for a whole one.
func (o *Options) writeCopy(out string, write func(io.Writer) error) error {
	if out == "-" {
		return write(o.App.Out)
	}
	name := out
	if !filepath.IsAbs(name) {
		name = filepath.Join(o.App.Cwd, name)
	}
	switch info, err := os.Stat(name); {
	case err == nil && info.IsDir():
		return exitcode.Errorf(exitcode.Usage, "%s is a directory", line(out))
	case err == nil && !info.Mode().IsRegular():
		return writeInto(name, write) // a device or a pipe, which must not be replaced
	case err == nil && !o.Force:
		return exitcode.Errorf(exitcode.Usage, "%s exists already; use --force to overwrite it", line(out))
	case err == nil:
		// A link stays a link.
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return exitcode.With(exitcode.Usage, err)
		}
	}
	f, err := app.CreateBeside(name, "."+filepath.Base(name)+"-*")
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails after the file was renamed
	if err = errors.Join(write(f), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	fmt.Fprintf(o.App.Err, "acp: written to %s\n", line(out))
	return nil
}

// writeInto writes to an existing file.
func writeInto(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	return errors.Join(write(f), f.Close())
}

// copyRedacted copies all parts. Each begins with a header that declares it redacted.
func (o *Options) copyRedacted(s *file.File, out io.Writer) error {
	var r trace.Redactor
	part := 0
	var w *trace.Writer
	for {
		rec, err := s.Record()
		if err != nil && err != io.EOF {
			return err
		}
		if s.Part() != part {
			h := s.Header()
			h.Redacted, h.Command = true, r.Command(h.Command)
			if w != nil {
				if err := w.Flush(); err != nil {
					return err
				}
			}
			var werr error
			if w, werr = trace.NewWriter(out, h); werr != nil {
				return werr
			}
			part = s.Part()
		}
		if err == io.EOF {
			return w.Flush()
		}
		r.Apply(rec)
		if err := w.Write(rec); err != nil {
			return err
		}
	}
}
