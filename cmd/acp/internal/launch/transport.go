package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/jsonrpc"
)

// Options say how an agent is started. All are optional. Those that are about a process are ignored
// for other agents.
type Options struct {
	Dir     string            // the working directory of the session
	Env     map[string]string // added to the agent's own
	Stderr  io.Writer         // receives what it writes there
	BuiltIn *acp.Agent        // the built-in agent; required for that one
	Tool    string            // this program and its version, as recordings of its proxies name it
	// Environ is the environment of the commands that its ready-made proxies run, without what those must not know;
	// nil means that of this process, without the keys of acp.
	Environ []string
	// Interrupted is called when the network of an agent with a URL fails, and when it works again: see
	// [acphttp.Transport].
	Interrupted func(err error)
}

// Transport returns the way to an agent, through its proxies if it has any: an
// [*acp.CommandTransport], an [*acp.InProcessTransport] for the built-in agent, or a connection over
// the network for an agent with a URL. The proxies run in this process, or are started by it.
func Transport(agent roster.Agent, o Options) (acp.Transport, error) {
	t, err := Direct(agent, o)
	if err != nil || len(agent.Proxies) == 0 {
		return t, err
	}
	c, err := NewChain(agent, o)
	if err != nil {
		return nil, err
	}
	return c.Before(t), nil
}

// Direct is [Transport] without the proxies.
func Direct(agent roster.Agent, o Options) (acp.Transport, error) {
	switch {
	case agent.Builtin && o.BuiltIn == nil:
		return nil, errors.New("there is no built-in agent in this program")
	case agent.Builtin:
		return acp.InProcess(o.BuiltIn), nil
	case agent.URL != "":
		if err := roster.CheckURL(agent.URL); err != nil {
			return nil, err
		}
		if remote.Is(agent.URL) {
			how := agent.Remote
			how.Interrupted = o.Interrupted
			t, err := remote.Transport(agent.URL, how)
			return t, exitcode.With(exitcode.Usage, err)
		}
		network, address := roster.Dial(agent.URL)
		return &socket{network, address, agent.URL}, nil
	}
	t := agent.Transport(o.Dir)
	if len(o.Env) > 0 {
		if t.Env == nil && !t.LoginEnv {
			t.Env = os.Environ()
		}
		t.Env = slices.Clone(t.Env)
		for _, k := range slices.Sorted(maps.Keys(o.Env)) {
			t.Env = append(t.Env, k+"="+o.Env[k])
		}
	}
	t.Stderr = o.Stderr
	return t, nil
}

// A socket reaches an agent that runs already and speaks the protocol in lines. It may be opened
// more than once.
type socket struct{ network, address, url string }

// Open implements [acp.Transport].
func (s *socket) Open(ctx context.Context) (jsonrpc.Stream, error) {
	conn, err := new(net.Dialer).DialContext(ctx, s.network, s.address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.url, err)
	}
	return jsonrpc.NewLineStream(conn, conn), nil
}
