package trace

import (
	"context"

	"github.com/goacp/acp/cmd/acp/internal/record/file"
	"github.com/goacp/acp/conformance"
)

// open opens a recording, which the caller must close.
func (o *Options) open(ctx context.Context, name string) (*file.File, error) {
	f, err := file.Open(ctx, o.console(), name)
	if err != nil {
		return nil, err
	}
	// The progress of reading would mix with the output on a terminal, and says nothing about a
	// replay, which waits most of the time.
	if o.Verb != verbReplay && (o.Verb != verbShow || !o.App.OutTerminal) {
		f.Progress()
	}
	return f, nil
}

// console is where recordings are read, and damage is reported.
func (o *Options) console() file.Console {
	a := o.App
	return file.Console{Dir: a.Cwd, In: a.In, Err: a.Err, Terminal: a.ErrTerminal}
}

// checker returns the checker of the protocol's rules, or nil, which checks nothing, without
// --check.
func (o *Options) checker() *conformance.Recording {
	if !o.Check {
		return nil
	}
	return new(conformance.Recording)
}
