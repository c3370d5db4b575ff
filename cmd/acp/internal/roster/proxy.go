package roster

import (
	"maps"
	"slices"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// A Proxy stands between a client and an agent. Its slice must not be modified.
type Proxy struct {
	Name string // as users call it, without arguments
	// Ready says that it is part of this program; Argv are then its name and flags. Otherwise
	// Argv are a program and its arguments.
	Ready bool
	Argv  []string
	// Err says why there is no such proxy, with the exit status of wrong usage. An agent with
	// such a proxy must not be started.
	Err error
}

// String returns what [Roster.Proxy] reads as the same proxy, if the program's name has a separator.
func (p Proxy) String() string { return Join(p.Argv) }

// ProxyErr returns why the agent cannot be used with its proxies, or nil.
func (a Agent) ProxyErr() error {
	for _, p := range a.Proxies {
		if p.Err != nil {
			return p.Err
		}
	}
	return nil
}

// Key returns what tells agents apart that are not the same behind their proxies: see package remembered.
func (a Agent) Key() []string {
	key := a.Argv()
	for _, p := range a.Proxies {
		key = append([]string{p.String()}, key...)
	}
	return key
}

// behind returns the proxies that texts mean.
func (r *Roster) behind(texts []string) []Proxy {
	var all []Proxy
	for _, text := range texts {
		all = append(all, r.Proxy(text))
	}
	return all
}

// before adds the proxies in front of every agent.
func (r *Roster) before(own []Proxy) []Proxy {
	if len(r.front) == 0 {
		return own
	}
	return append(slices.Clone(r.front), own...)
}

// Proxy returns the proxy that a text means: the name of one in the settings; a ready-made one, with its
// flags; or a command line, which has white space or a separator of paths in it. Its Err says what is
// wrong with the text.
func (r *Roster) Proxy(text string) Proxy {
	wrong := func(format string, args ...any) Proxy {
		return Proxy{Name: text, Err: exitcode.Errorf(exitcode.Usage, format, args...)}
	}
	if p, ok := r.proxies[text]; ok {
		if p.Command == "" {
			return wrong("proxy %q has no command: set proxies.%s.command", text, text)
		}
		return Proxy{Name: text, Argv: append([]string{p.Command}, p.Args...)}
	}
	if strings.TrimSpace(text) == "" {
		return wrong("the name of a proxy is empty")
	}
	argv, err := Split(text)
	switch {
	case err != nil:
		return wrong("proxy %q: %w", text, err)
	case slices.Contains(config.ReadyProxies, argv[0]):
		return Proxy{Name: argv[0], Ready: true, Argv: argv}
	case IsCommandLine(text):
		return ProxyCommand(argv)
	}
	names := append(slices.Sorted(maps.Keys(r.proxies)), config.ReadyProxies...)
	if near := config.Near(text, names); near != "" {
		return wrong("there is no proxy %q: did you mean %q?", text, near)
	}
	if file, err := LookPath(text, "", r.base()); err == nil {
		// A word is a name, as that of an agent is.
		return wrong("there is no proxy %q, but a program: use %s", text, Quote(file))
	}
	return wrong("there is no proxy %q: there are %s; or give a command line", text, strings.Join(names, ", "))
}

// ProxyCommand returns the proxy that a program with arguments is.
func ProxyCommand(argv []string) Proxy {
	name := argv[0]
	if i := strings.LastIndexAny(name, "/\\"); i >= 0 && i+1 < len(name) {
		name = name[i+1:]
	}
	return Proxy{Name: name, Argv: argv}
}
