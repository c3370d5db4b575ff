package agents

import "github.com/goacp/acp"

// rules tells how far permission rules hold the agent.
func (d *doctor) rules(conn *acp.ClientConn) {
	c := check{Name: "rules", Status: fact}
	switch {
	case d.agent.Builtin:
		c.Status, c.Detail = good, "the agent obeys them in all it does"
	case conn.Version() > 1:
		c.Detail = "rules about files and commands cannot hold this agent: in version 2 it uses its own; they decide only what it asks about"
	case d.agent.NoFiles:
		c.Detail = "rules about files cannot hold this agent: it uses its own; they decide what it asks about"
	default:
		c.Detail = "they hold what it asks about and what it does by acp; rules about files and commands cannot hold this agent in what it does by itself"
	}
	policy, err := d.o.App.Policy()
	switch {
	case err != nil:
		c.Status, c.Detail, c.Cure = bad, oneLine(err), "no session is opened until it is corrected"
	case c.Status == fact && policy.Restricts() && (conn.Version() > 1 || d.agent.NoFiles):
		c.Status, c.Cure = odd, "yours deny or ask: what the agent does against them can only be told when it has happened"
	}
	d.report.add(c)
}
