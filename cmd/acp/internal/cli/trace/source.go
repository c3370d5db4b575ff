package trace

import (
	"context"

	"github.com/goacp/acp/cmd/acp/internal/record/file"
	"github.com/goacp/acp/conformance"
)

// open opens a recording. It has to be closed.
func (o *Options) open(ctx context.Context, name string) (*file.File, error) {
	a := o.App
	f, err := file.Open(ctx, file.Console{Dir: a.Cwd, In: a.In, Err: a.Err, Terminal: a.ErrTerminal}, name)
	if err != nil {
		return nil, err
	}
	// What is shown and how far it is do not share a terminal, and what is played may take hours.
	if o.Verb != verbReplay && (o.Verb != verbShow || !o.App.OutTerminal) {
		f.Progress()
	}
	return f, nil
}

// checker returns what checks the rules of the protocol, if that is asked for.
func (o *Options) checker() *conformance.Recording {
	if !o.Check {
		return nil
	}
	return new(conformance.Recording)
}
