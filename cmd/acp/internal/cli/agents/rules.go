package agents

import "github.com/goacp/acp"

// rules reports how far permission rules can restrain the agent. See "What rules can hold" in
// docs/cli.md.
func (d *doctor) rules(conn *acp.ClientConn) {
	c := check{Name: "rules", Status: fact}
	switch {
	case d.agent.Builtin:
		c.Status, c.Detail = good, "the agent obeys them in everything it does"
	case conn.Version() > 1:
		c.Detail = "rules about files and commands cannot hold this agent: in version 2, agents use their own; they decide only what it asks about"
	case d.agent.NoFiles:
		c.Detail = "rules about files cannot hold this agent: it accesses files itself; they decide only what it asks about"
	default:
		c.Detail = "they decide what it asks about and what it does through acp; rules about files and commands cannot hold this agent in what it does itself"
	}
	policy, err := d.o.App.Policy()
	switch {
	case err != nil:
		c.Status, c.Detail, c.Cure = bad, oneLine(err), "acp opens no session until this is corrected"
	case c.Status == fact && policy.Restricts() && (conn.Version() > 1 || d.agent.NoFiles):
		c.Status, c.Cure = odd, "your rules deny or ask: acp can report what the agent does against them only after the fact"
	}
	d.report.addCheck(c)
}
