package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/record/file"
	"github.com/goacp/acp/cmd/acp/internal/record/page"
	"github.com/goacp/acp/trace"
)

// WebOptions are what acp trace web is told to do.
type WebOptions struct {
	App  *app.App
	File string
	Addr string // of the page; empty is any
}

// newWeb returns the command acp trace web; runF, if not nil, runs in place of it.
func newWeb(a *app.App, runF func(context.Context, *WebOptions) error) *cobra.Command {
	o := &WebOptions{App: a}
	cmd := &cobra.Command{
		Use: "web FILE", Short: "Look at a recording on a page in the browser",
		Long: `Look at a recording on a page in the browser: the one that acp tap --web shows
while it records. The page is served on this machine only, to who has the address
that is printed, until the command is interrupted. It shows the last 200,000 records,
or 256 MiB of them.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.Addr, "addr", "", "serve the page at `ADDRESS`, as 127.0.0.1:8080 (default: a free port)")
	return cmd
}

// run serves the page until ctx ends, which is how people end it.
func (o *WebOptions) run(ctx context.Context) error {
	src, err := (&Options{App: o.App, Verb: "web"}).open(ctx, o.File)
	if err != nil {
		return err
	}
	defer src.Close()
	h := src.Header()
	server, err := page.New(page.Options{Title: src.Name, Header: h, File: src.Name, Recorded: true, Addr: o.Addr})
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	defer server.Close()
	fmt.Fprintln(o.App.Out, server.URL())
	fmt.Fprintf(o.App.Err, "acp: %s is shown there until this is interrupted\n", line(src.Name))
	// A reader that waits, for standard input say, does not keep the page.
	fed := make(chan error, 1)
	go func() { fed <- feed(server, src, h.Started) }()
	select {
	case err := <-fed:
		server.End()
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		<-ctx.Done()
	case <-ctx.Done():
		_ = server.Close()
		if o.File != "-" {
			<-fed
		}
	}
	return nil
}

// feed shows all records. Times count from the start of the first part.
func feed(server *page.Server, src *file.File, started time.Time) error {
	part, cuts := src.Part(), src.Cuts
	for {
		rec, err := src.Record()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		since := src.Header().Started.Sub(started)
		if n := src.Part(); n != part {
			part = n
			words := append([]string{src.Header().Started.Format(time.RFC3339)}, src.Header().Command...)
			server.Feed(&trace.Record{At: since, Kind: trace.Event, Name: page.NewPart, Detail: trace.Detail{Text: strings.Join(words, " ")}})
		}
		rec.At += since
		if n := src.Cuts - cuts; n > 0 {
			cuts = src.Cuts
			server.Feed(&trace.Record{At: rec.At, Kind: trace.Event, Name: "lost", Detail: trace.Detail{Count: n, Text: "lines that could not be read"}})
		}
		if !server.Feed(rec) {
			return nil
		}
	}
}
