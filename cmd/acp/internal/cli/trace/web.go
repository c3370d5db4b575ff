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

// WebOptions are the flags and arguments of acp trace web.
type WebOptions struct {
	App  *app.App
	File string
	Addr string // of the page; "" means any free port
}

// newWeb returns the command acp trace web. If runF is not nil, it is called instead of the command
// itself.
func newWeb(a *app.App, runF func(context.Context, *WebOptions) error) *cobra.Command {
	o := &WebOptions{App: a}
	cmd := &cobra.Command{
		Use: "web FILE", Short: "Show a recording on a page in the browser",
		Long: `Show a recording on the page that acp tap --web serves during a recording. The page is
available on this machine only, to anyone who has the printed address, until you
interrupt the command. It shows the last 200,000 records, or the last 256 MiB.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.Addr, "addr", "", "serve the page at `ADDRESS`, such as 127.0.0.1:8080 (default: a free port)")
	return cmd
}

// run serves the page until ctx is done, which an interrupt causes.
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
	fmt.Fprintf(o.App.Err, "acp: serving %s at this address; press Ctrl-C to stop\n", line(src.Name))
	// Reading may block, for example on standard input. That must not keep the command from ending.
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

// feed adds all records to the page. Times count from the beginning of the first part.
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
			if hop := src.Hop(); hop != (trace.Hop{}) {
				words = append(words, hop.Client, "→", hop.Agent)
			}
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
