package agents

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// A status is the outcome of a check.
type status string

// The statuses.
const (
	good status = "ok"      // it works
	odd  status = "warning" // it may cause trouble
	bad  status = "failed"  // it must be fixed
	fact status = "info"    // no judgement, just information
)

var marks = map[status]string{good: "✓", odd: "!", bad: "✗", fact: "·"}

// A check is one line of a report. All text in it is safe to print.
type check struct {
	Name   string   `json:"check"`
	Status status   `json:"status"`
	Detail string   `json:"detail,omitempty"`
	More   []string `json:"more,omitempty"` // further lines, such as the end of standard error
	Cure   string   `json:"cure,omitempty"`
	Fixed  bool     `json:"fixed,omitempty"` // the cure was written to the user's file

	key   string // the agent's setting that is the cure, or ""
	value any
}

// A report is what doctor has found out about an agent. It is what --json prints.
type report struct {
	Name     string   `json:"name"`
	Title    string   `json:"title"`
	Source   string   `json:"source"`
	Command  []string `json:"command,omitempty"`
	OK       bool     `json:"ok"`
	Version  int      `json:"protocolVersion,omitempty"`
	Agent    string   `json:"agentVersion,omitempty"` // name and version that the agent reports
	Checks   []*check `json:"checks"`
	Untested []string `json:"untested,omitempty"` // checks that this system does not support
}

// addCheck appends a check after making its text safe to print: most of it comes from the agent.
func (r *report) addCheck(c check) *check {
	c.Detail, c.Cure = line(c.Detail), line(c.Cure)
	for i := range c.More {
		c.More[i] = line(c.More[i])
	}
	r.Checks = append(r.Checks, &c)
	return &c
}

// checkNamed returns the first check of that name, or nil.
func (r *report) checkNamed(name string) *check {
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// doctor examines the chosen agents one after another, and fails if one of them cannot be used.
func (o *Options) doctor(ctx context.Context) error {
	cfg, err := o.App.Config()
	if err != nil {
		return err
	}
	if o.Timeout < 0 {
		return exitcode.Errorf(exitcode.Usage, "--timeout: %s is negative", o.Timeout)
	}
	chosen, err := o.chosen(cfg)
	if err != nil {
		return err
	}
	for _, text := range o.App.Untrusted() {
		fmt.Fprintf(o.App.Err, "acp: %s\n", line(text))
	}
	failing := 0
	for i, agent := range chosen {
		d := &doctor{o: o, cfg: cfg, agent: agent, limit: o.Timeout, report: &report{
			Name: agent.Name, Title: line(agent.Title), Source: agent.Source, Command: agent.Argv(), Checks: []*check{},
		}}
		if d.limit == 0 {
			d.limit = cfg.Timeouts.Connect
		}
		d.run(ctx)
		if err := ctx.Err(); err != nil {
			return exitcode.With(exitcode.Cancelled, context.Cause(ctx))
		}
		d.report.OK = true
		for _, c := range d.report.Checks {
			d.report.OK = d.report.OK && c.Status != bad
		}
		if o.Fix {
			if err := o.fix(d.report); err != nil {
				return err
			}
		}
		if !d.report.OK {
			failing++
		}
		if o.JSON {
			err = safetext.PrintJSON(o.App.Out, d.report)
		} else {
			err = d.report.print(o.App.Out, i > 0)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case failing == 1 && len(chosen) == 1:
		return exitcode.Errorf(exitcode.Agent, "agent %q does not work yet", chosen[0].Name)
	case failing > 0:
		return exitcode.Errorf(exitcode.Agent, "%d of %d agents do not work yet", failing, len(chosen))
	}
	return nil
}

// chosen returns the agents to examine.
func (o *Options) chosen(cfg *config.Config) ([]roster.Agent, error) {
	agents := roster.New(cfg)
	names := o.Names
	switch {
	case o.All && len(names) > 0:
		return nil, exitcode.Errorf(exitcode.Usage, "--all examines all installed agents; leave out the names")
	case o.All:
		names = agents.Suggestions()
	case len(names) == 0:
		names = []string{cfg.Agent}
	}
	var out []roster.Agent
	for _, name := range names {
		a, err := agents.Find(name)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// print prints the report as text. gap asks for an empty line before it.
func (r *report) print(w io.Writer, gap bool) error {
	var b strings.Builder
	if gap {
		b.WriteString("\n")
	}
	head := line(r.Name)
	if r.Title != r.Name {
		head += " (" + r.Title + ")"
	}
	if r.Command != nil && r.Source != roster.SourceCommand {
		head += ": " + line(roster.Join(r.Command))
	}
	b.WriteString(head + "\n")
	width := 0
	for _, c := range r.Checks {
		width = max(width, len(c.Name))
	}
	for _, c := range r.Checks {
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %s %-*s  %s", marks[c.Status], width, c.Name, c.Detail), " ") + "\n")
		for _, m := range c.More {
			fmt.Fprintf(&b, "      | %s\n", m)
		}
		if c.Fixed {
			fmt.Fprintf(&b, "      → done: %s\n", c.Cure)
		} else if c.Cure != "" {
			fmt.Fprintf(&b, "      → %s\n", c.Cure)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fix writes those cures that are settings of the agent to the user's file.
func (o *Options) fix(r *report) error {
	var cures []*check
	for _, c := range r.Checks {
		if c.key != "" {
			cures = append(cures, c)
		}
	}
	if len(cures) == 0 || r.Source == roster.SourceCommand || r.Source == roster.SourceProject {
		return nil // the agent is not in the user's file
	}
	_, e, err := o.userFile()
	if err != nil {
		return err
	}
	for _, c := range cures {
		if err := e.Set(c.value, "agents", r.Name, c.key); err != nil {
			return err
		}
	}
	if err := e.Save(); err != nil {
		return err
	}
	for _, c := range cures {
		c.Fixed = true
	}
	return nil
}

// cureBySetting returns the advice to change a setting of the agent, in the form that fits where
// the agent comes from.
func cureBySetting(agent roster.Agent, key string, value any) string {
	switch agent.Source {
	case roster.SourceCommand:
		flag := map[string]string{"login_env": "--login-env", "protocol": fmt.Sprintf("--protocol %v", value)}[key]
		return fmt.Sprintf("give it a name: acp agents add NAME %s -- %s", flag, agent.CommandLine())
	case roster.SourceProject:
		return fmt.Sprintf("write %s = %v under [agents.%s] in the project's %s", key, value, agent.Name, config.ProjectFile)
	}
	return setting(agent, key, value) + " (or --fix)"
}

// setting returns the command or the line that gives the agent a setting.
func setting(agent roster.Agent, key string, value any) string {
	switch agent.Source {
	case roster.SourceCommand, roster.SourceProject:
		return fmt.Sprintf("%s = %v under [agents.NAME]", key, value)
	}
	return fmt.Sprintf("acp config set agents.%s.%s %v", agent.Name, key, value)
}

// round rounds a time for display.
func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
