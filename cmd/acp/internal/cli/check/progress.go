package check

import (
	"fmt"
	"slices"
	"sync"

	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp/conformance"
)

// A progress shows how far a check is, on a terminal.
type progress struct {
	o     *Options
	mu    sync.Mutex
	total int
	done  int
	fails int
	live  bool
	over  bool
}

func newProgress(o *Options) *progress {
	p := &progress{o: o, live: o.App.ErrTerminal}
	for _, r := range conformance.Rules() {
		named := func(pattern string) bool { return conformance.Names(pattern, r.ID) }
		if r.Side != o.Side || r.Experimental && !o.Experimental || len(o.Only) > 0 && !slices.ContainsFunc(o.Only, named) || slices.ContainsFunc(o.Skip, named) {
			continue
		}
		for _, v := range r.Versions {
			if slices.Contains(o.Versions, v) {
				p.total++
			}
		}
	}
	return p
}

func (p *progress) result(r *conformance.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if r.Status == conformance.Fail && r.Rule.Level == conformance.Must {
		p.fails++
	}
	if !p.live || p.over {
		return
	}
	text := fmt.Sprintf("%d of %d", p.done, p.total)
	if p.fails > 0 {
		text += fmt.Sprintf(", %d failed", p.fails)
	}
	// A line that fills the terminal would go on in the next, and stay.
	text = ansi.Truncate(text+"  "+r.Rule.ID, columns(p.o.App.Err, widthDefault)-1, "…")
	fmt.Fprint(p.o.App.Err, "\r\x1b[K"+text)
}

// interrupted says why nothing moves any more while what was started is ended.
func (p *progress) interrupted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live && !p.over {
		text := "interrupted: ending what was started; Ctrl-C again does not wait"
		fmt.Fprint(p.o.App.Err, "\r\x1b[K"+ansi.Truncate(text, columns(p.o.App.Err, widthDefault)-1, "…"))
	}
	p.over = true
}

// close takes it away.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.live {
		fmt.Fprint(p.o.App.Err, "\r\x1b[K")
	}
}

// invite says how a client is configured to be checked.
func (p *progress) invite(d *door) {
	command := d.command()
	fmt.Fprintf(p.o.App.Err, `Configure this command as the agent of the client that is to be checked:

  %s

In Zed's settings:

  "agent_servers": {"acp check": {"type": "custom", "command": %s, "args": [%s, %s]}}

Then open a conversation with it and send any prompt, and another one when it has
ended, until the report is written here. Ctrl-C ends with a report of what there is.
`, d.line(), quoteJSON(command[0]), quoteJSON(command[1]), quoteJSON(command[2]))
}
