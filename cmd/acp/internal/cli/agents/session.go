package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/mcp"
	"github.com/goacp/acp/cmd/acp/internal/remembered"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// examine reports what the agent can do, and opens a session.
func (d *doctor) examine(ctx context.Context, conn *acp.ClientConn) {
	d.capabilities(conn)
	d.rules(conn)
	d.session(ctx, conn)
}

// capabilities reports what the agent advertises.
func (d *doctor) capabilities(conn *acp.ClientConn) {
	caps := conn.Capabilities()
	can := []string{}
	add := func(list *[]string, name string, ok bool) {
		if ok {
			*list = append(*list, name)
		}
	}
	if v1 := conn.CapabilitiesV1(); v1 != nil {
		s := v1.SessionCapabilities
		add(&can, "list", s.List != nil)
		add(&can, "load", v1.LoadSession)
		add(&can, "resume", s.Resume != nil)
		add(&can, "close", s.Close != nil)
	} else if caps.Session != nil { // in version 2 these are mandatory
		can = append(can, "list", "resume", "close")
	}
	if s := caps.Session; s != nil {
		if p := s.Prompt; p != nil {
			add(&can, "images", p.Image != nil)
			add(&can, "audio", p.Audio != nil)
			add(&can, "embedded files", p.EmbeddedContext != nil)
		}
		add(&can, "delete", s.Delete != nil)
		add(&can, "fork", s.Fork != nil)
		add(&can, "further directories", s.AdditionalDirectories != nil)
		add(&can, "set title", s.Title != nil)
	}
	d.report.addCheck(check{Name: "capabilities", Status: fact, Detail: orNone(can)})
	d.report.addCheck(check{Name: "mcp", Status: fact, Detail: mcp.OffersOf(conn).String()})
	d.servers(conn)
}

// servers reports how the agent would reach each MCP server of its sessions. It starts none of
// them, because a server may be slow or ask for a login.
func (d *doctor) servers(conn *acp.ClientConn) {
	servers, err := d.o.App.MCP()
	if err != nil {
		d.report.addCheck(check{Name: "mcp server", Status: bad, Detail: oneLine(err), Cure: "acp opens no session until this is corrected"})
		return
	}
	left := d.o.App.LeftServers()
	for _, why := range left[:min(len(left), maxServers)] {
		d.report.addCheck(check{Name: "mcp server", Status: odd, Detail: safetext.Line(why, 500), Cure: "set the variable, or turn the server off"})
	}
	for i, r := range mcp.Routes(servers, mcp.OffersOf(conn), mcp.Options{Agent: d.agent.Name, Dir: d.o.App.Cwd}) {
		if i == maxServers {
			d.report.addCheck(check{Name: "mcp server", Status: fact, Detail: fmt.Sprintf("… %d more", len(servers)-i)})
			return
		}
		s := r.Server
		c := check{Name: "mcp server", Status: good, Detail: fmt.Sprintf("%s (%s): supported directly, by %s", s.Name, s.Source, r.Via)}
		switch {
		case r.Err != nil:
			c.Status, c.Detail = bad, fmt.Sprintf("%s (%s) cannot be used: %s", s.Name, s.Source, oneLine(r.Err))
			c.Cure = "acp opens no session with it; correct it, or turn it off: " + turnOff(s)
		case r.Bridged():
			c.Detail = fmt.Sprintf("%s (%s): bridged from %s to %s", s.Name, s.Source, s.Type, r.Via)
		}
		d.report.addCheck(c)
	}
}

// turnOff returns the command that disables a server, or the flag to leave out.
func turnOff(s mcp.Server) string {
	if s.Source == mcp.SourceFlag {
		return "leave out --mcp " + roster.Quote(s.Name+"=…")
	}
	return "acp config set " + roster.Quote(config.KeyOf("mcp", s.Name, "off")) + " true"
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// methods lists the login methods, at most maxMore of them.
func methods(conn *acp.ClientConn) []string {
	var out []string
	for _, m := range conn.AuthMethods() {
		switch m := m.(type) {
		case *acpv2.AuthMethodAgent:
			out = append(out, fmt.Sprintf("%s (%s)", m.Name, m.MethodID))
		case *acpv2.AuthMethodTerminal:
			out = append(out, fmt.Sprintf("%s (%s, in a terminal)", m.Name, m.MethodID))
		case *acpv2.UnknownAuthMethod:
			out = append(out, fmt.Sprintf("%s (%s, of type %s)", m.Name, m.MethodID, m.Type))
		}
	}
	return clipLines(out)
}

// session opens a session and deletes it again if the agent supports that. It has no MCP servers:
// what fails then is the agent itself.
func (d *doctor) session(ctx context.Context, conn *acp.ClientConn) {
	ways := methods(conn)
	if len(ways) > 0 {
		d.report.addCheck(check{Name: "logins", Status: fact, Detail: strings.Join(ways, ", ")})
	}
	limited, cancel := context.WithTimeout(ctx, min(sessionLimit, d.limit))
	defer cancel()
	begin := time.Now()
	s, err := conn.NewSession(limited, acp.SessionConfig{Cwd: d.o.App.Cwd})
	took := time.Since(begin)
	said, _ := errors.AsType[*jsonrpc.Error](err)
	switch {
	case err == nil:
		c := check{Name: "session/new", Status: good, Detail: sessionDetail(s, took)}
		if took >= slowStart {
			c.Status, c.Cure = odd, "each new session takes this long; the agent may wait for the network or its MCP servers"
		}
		d.report.addCheck(c)
	case errors.Is(err, jsonrpc.ErrAuthRequired):
		c := check{Name: "session/new", Status: bad, Detail: "it requires a login", Cure: "acp auth login " + roster.Quote(d.agent.Name)}
		if len(ways) == 0 {
			c.Cure = "it offers no login method: log in with its own program"
		}
		d.report.addCheck(c)
		return
	case limited.Err() != nil && ctx.Err() == nil:
		d.report.addCheck(check{
			Name: "session/new", Status: bad, Detail: fmt.Sprintf("no answer within %s", min(sessionLimit, d.limit)),
			Cure: "see its standard error; it may be waiting for a login or for the network",
		})
		return
	case said != nil:
		c := check{Name: "session/new", Status: bad, Detail: fmt.Sprintf("it answered with the error %d: %s", said.Code, said.Message)}
		if len(ways) > 0 {
			c.Cure = "it may require a login: acp auth login " + roster.Quote(d.agent.Name)
		}
		d.report.addCheck(c)
		return
	default:
		d.report.addCheck(check{Name: "session/new", Status: bad, Detail: oneLine(err), Cure: "see its standard error"})
		return
	}
	if err := conn.Delete(limited, s.ID()); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		d.report.addCheck(check{Name: "session/delete", Status: odd, Detail: oneLine(err)})
	}
}

// sessionDetail reports how long opening took, and the names of the session's options.
func sessionDetail(s *acp.ClientSession, took time.Duration) string {
	var names []string
	for _, o := range s.Options() {
		names = append(names, o.Name)
	}
	opened := "a session was opened in " + round(took).String()
	if len(names) == 0 {
		return opened
	}
	return opened + "; it has the options " + strings.Join(clipLines(names), ", ")
}

// runBuiltIn examines the built-in agent, over a connection in memory.
func (d *doctor) runBuiltIn(ctx context.Context) {
	agent, err := d.o.App.BuiltIn(ctx)
	if err != nil {
		d.report.addCheck(check{Name: "starts", Status: bad, Detail: oneLine(err)})
		return
	}
	transport := acp.InProcess(agent)
	defer func() { _ = transport.Wait() }() // a failure shows at this end of the connection
	client := &acp.Client{Info: acp.Implementation{Name: "acp", Title: "acp doctor", Version: d.o.App.Version}}
	conn, err := client.Connect(ctx, transport)
	if err != nil {
		d.report.addCheck(check{Name: "initialize", Status: bad, Detail: oneLine(err)})
		return
	}
	d.started(conn, 0, true, remembered.Agent{})
	d.examine(ctx, conn)
	_ = conn.Close() // it never fails
}
