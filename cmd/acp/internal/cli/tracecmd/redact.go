package tracecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/tracefile"
	"github.com/goacp/acp/trace"
)

func (o *Options) redact(ctx context.Context) error {
	s, err := o.open(ctx, o.Files[0])
	if err != nil {
		return err
	}
	defer s.Close()
	name := o.Files[1]
	if name == "-" {
		return o.copyRedacted(s, o.App.Out)
	}
	// Whatever happens, nothing half-written has the name.
	if _, err := os.Stat(name); err == nil && !o.Force {
		return exitcode.Errorf(exitcode.Usage, "%s is there already; --force writes over it", line(name))
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // it is gone when it was renamed
	err = o.copyRedacted(s, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	fmt.Fprintf(o.App.Err, "acp: written to %s\n", line(name))
	return nil
}

func (o *Options) copyRedacted(s *tracefile.File, out io.Writer) error {
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
