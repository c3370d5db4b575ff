package check

import (
	"fmt"
	"slices"
	"sync"

	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp/conformance"
)

// A progress shows the progress of a check on one line of the terminal. Without a terminal it shows
// nothing. Its methods may be called from any goroutine.
type progress struct {
	o     *Options
	mu    sync.Mutex
	total int
	done  int
	fails int
	live  bool
	ended bool // nothing more is shown
}

// newProgress returns the progress of a check, for which it counts the rules.
func newProgress(o *Options) *progress {
	p := &progress{o: o, live: o.App.ErrTerminal}
	sides := map[conformance.Side]int{o.Side: 1} // and how often their rules are tried in each version
	if o.At != "" {
		sides[o.Side] = 2
	}
	for _, r := range conformance.Rules() {
		named := func(pattern string) bool { return conformance.Names(pattern, r.ID) }
		if r.Experimental && !o.Experimental || len(o.Only) > 0 && !slices.ContainsFunc(o.Only, named) || slices.ContainsFunc(o.Skip, named) {
			continue
		}
		if r.Side == conformance.Server && o.At != "" {
			p.total++ // in one version
		}
		for _, v := range r.Versions {
			if slices.Contains(o.Versions, v) {
				p.total += sides[r.Side]
			}
		}
	}
	return p
}

// result counts a result, and shows the count on a terminal.
func (p *progress) result(r *conformance.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if r.Status == conformance.Fail && r.Rule.Level == conformance.Must {
		p.fails++
	}
	if !p.live || p.ended {
		return
	}
	text := fmt.Sprintf("%d of %d", p.done, p.total)
	if p.fails > 0 {
		text += fmt.Sprintf(", %d failed", p.fails)
	}
	// A line that fills the terminal would wrap, and its beginning could not be erased.
	text = ansi.Truncate(text+"  "+r.Rule.ID, columns(p.o.App.Err, widthDefault)-1, "…")
	fmt.Fprint(p.o.App.Err, "\r\x1b[K"+text)
}

// interrupted explains why the progress stops while the started programs are being ended.
func (p *progress) interrupted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live && !p.ended {
		text := "interrupted: waiting for programs to end; press Ctrl-C again to exit at once"
		fmt.Fprint(p.o.App.Err, "\r\x1b[K"+ansi.Truncate(text, columns(p.o.App.Err, widthDefault)-1, "…"))
	}
	p.ended = true
}

// close erases the line.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.live {
		fmt.Fprint(p.o.App.Err, "\r\x1b[K")
	}
}

// invite prints how to configure a client for the check.
func (p *progress) invite(d *door) {
	command := d.command()
	fmt.Fprintf(p.o.App.Err, `Configure this command as an agent in the client that you want to check:

  %s

In Zed's settings:

  "agent_servers": {"acp check": {"type": "custom", "command": %s, "args": [%s, %s]}}

Then open a conversation with this agent and send any prompt. When its turn has ended,
send another one, until the report appears here. Press Ctrl-C to end with a partial report.
`, d.line(), quoteJSON(command[0]), quoteJSON(command[1]), quoteJSON(command[2]))
}
