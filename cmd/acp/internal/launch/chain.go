package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/proxies"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// A Chain is the proxies in front of an agent. It can be started any number of times, each time
// with proxies of its own.
type Chain struct {
	agent string // its name in errors and traces
	parts []part
	o     Options
}

// part is a proxy: a ready-made one, or a program.
type part struct {
	name    string
	ready   *proxies.Ready
	command *acp.CommandTransport
}

// NewChain returns the proxies of an agent. Flags of a ready-made proxy that are wrong, and programs
// that do not exist, are found here.
func NewChain(agent roster.Agent, o Options) (*Chain, error) {
	if err := agent.ProxyErr(); err != nil {
		return nil, &chainError{err}
	}
	c := &Chain{o: o}
	if agent.Source != roster.SourceCommand {
		c.agent = agent.Name
	}
	taken := []string{"Client", "Agent", "client", "agent", c.agent} // as recordings name the ends
	env := proxies.Env{Dir: o.Dir, Stderr: o.Stderr, Tool: o.Tool, Environ: o.Environ}
	for _, p := range agent.Proxies {
		one := part{name: p.Name}
		for n := 2; slices.Contains(taken, one.name); n++ {
			one.name = fmt.Sprintf("%s %d", p.Name, n)
		}
		taken = append(taken, one.name)
		if p.Ready {
			var err error
			if one.ready, err = proxies.Parse(p.Argv, env); err != nil {
				return nil, &chainError{exitcode.With(exitcode.Usage, err)}
			}
		} else {
			if _, err := lookProxy(p, o.Dir); err != nil {
				return nil, &chainError{err}
			}
			one.command = &acp.CommandTransport{Path: p.Argv[0], Args: p.Argv[1:], Dir: o.Dir}
		}
		c.parts = append(c.parts, one)
	}
	return c, nil
}

// A chainError is what is wrong with a proxy, which [Start.Failed] must not say of the agent. It has an exit
// status.
type chainError struct{ error }

// Unwrap returns the error with the exit status.
func (e *chainError) Unwrap() error { return e.error }

// lookProxy returns the file of a proxy's program.
func lookProxy(p roster.Proxy, dir string) (string, error) {
	file, err := roster.LookPath(p.Argv[0], dir, os.Environ())
	if err != nil {
		return "", exitcode.Errorf(exitcode.Agent, "the proxy %s cannot be used: program %s: %w",
			safetext.Line(p.Name, 200), roster.Quote(safetext.Line(p.Argv[0], 200)), err)
	}
	return file, nil
}

// Conductor returns a conductor with the proxies in front of an agent, for one client. Call end when it
// has served that client. Without an agent it serves as a proxy itself.
func (c *Chain) Conductor(agent acp.Transport) (_ *acp.Conductor, end func() error, err error) {
	conductor := &acp.Conductor{Agent: acp.Component{Name: c.agent, Transport: agent}, Stderr: c.o.Stderr}
	var started []*proxies.Running
	end = func() error {
		var err error
		for _, r := range started {
			err = errors.Join(err, r.Close())
		}
		return err
	}
	for _, p := range c.parts {
		if p.ready == nil {
			conductor.Proxies = append(conductor.Proxies, acp.Component{Name: p.name, Transport: p.command})
			continue
		}
		r, err := p.ready.Start()
		if err != nil {
			return nil, nil, errors.Join(err, end())
		}
		started = append(started, r)
		conductor.Proxies = append(conductor.Proxies, acp.Component{Name: p.name, Proxy: r.Proxy})
	}
	return conductor, end, nil
}

// Serve returns what serves a client with an agent behind the proxies.
func (c *Chain) Serve(agent acp.Transport) func(context.Context, acp.Transport) error {
	return func(ctx context.Context, client acp.Transport) error {
		conductor, end, err := c.Conductor(agent)
		if err != nil {
			return err
		}
		return errors.Join(conductor.Serve(ctx, client), end())
	}
}

// Before returns the way to an agent through the proxies. For its user it is the agent's own: the agent's
// process can be killed, and errors say how that ended.
func (c *Chain) Before(agent acp.Transport) acp.Transport {
	return acp.WrapTransport(agent, func(inner jsonrpc.Stream) jsonrpc.Stream {
		conductor, end, err := c.Conductor(agent)
		if err != nil {
			return &failed{inner, err}
		}
		chain := conductor.Wrap(inner)
		return &chainStream{chain.(jsonrpc.EagerStream), chain, end}
	})
}

// chainStream is the client's end of a chain.
type chainStream struct {
	jsonrpc.EagerStream
	chain jsonrpc.Stream
	end   func() error // of the proxies
}

// Unwrap returns the end that package acp knows.
func (s *chainStream) Unwrap() jsonrpc.Stream { return s.chain }

// Close ends the chain and returns when it has ended.
func (s *chainStream) Close() error { return errors.Join(s.EagerStream.Close(), s.end()) }

// failed is the stream to an agent whose proxies could not be started.
type failed struct {
	jsonrpc.Stream
	err error
}

// ReadFrame returns why.
func (f *failed) ReadFrame() (jsonrpc.Frame, error) { return jsonrpc.Frame{}, f.err }

// WriteFrame returns why.
func (f *failed) WriteFrame([]byte) error { return f.err }

// Conducted returns the arguments that make this program a conductor with the proxies of an agent, which
// argv starts. An agent with a URL is reached there.
func Conducted(agent roster.Agent, dir string, argv ...string) ([]string, error) {
	if err := agent.ProxyErr(); err != nil {
		return nil, err
	}
	args := []string{"conductor"}
	for _, p := range agent.Proxies {
		if !p.Ready {
			file, err := lookProxy(p, dir)
			if err != nil {
				return nil, err
			}
			p.Argv = append([]string{file}, p.Argv[1:]...) // a word would be taken for a name
		}
		args = append(args, p.String())
	}
	if agent.URL != "" {
		return append(args, "--agent", agent.URL), nil
	}
	return append(append(args, "--"), argv...), nil
}
