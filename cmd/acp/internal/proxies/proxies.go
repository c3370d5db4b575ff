// Package proxies has the proxies that are part of the program. Each is a file. They run in the process
// that uses them, or as the command acp proxy NAME, which any conductor can start.
package proxies

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// Env is where a proxy works.
type Env struct {
	Dir    string    // which names of files are relative to
	Stderr io.Writer // gets lines for the user; nil discards them
	Tool   string    // the program and its version, for recordings
	// Environ is the environment of commands that a proxy runs; nil means that of this process, without the keys of acp.
	Environ []string
}

// file returns the file that a flag names.
func (e Env) file(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(e.Dir, name)
}

// note writes a line for the user.
func (e Env) note(proxy, text string) {
	if e.Stderr != nil {
		_, _ = fmt.Fprintf(e.Stderr, "[%s] %s\n", proxy, safetext.Line(text, 1000))
	}
}

// A Kind is a ready-made proxy.
type Kind struct {
	Name  string
	Short string // a line of help
	Long  string
	// Example is how it is used, as the text of --proxy.
	Example string
	// Flags declares its flags. What it returns checks their values, and returns what starts a
	// proxy.
	Flags func(f *pflag.FlagSet) (check func(Env) (start func() (*Running, error), err error))
}

// Kinds returns all ready-made proxies, by their names.
func Kinds() []Kind { return []Kind{budget(), contextKind(), policy(), record(), redact()} }

// A Running is a proxy in use. Close it when it has served its client.
type Running struct {
	Proxy *acp.Proxy
	close func() error
}

// Close frees what it holds.
func (r *Running) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close()
}

// A Ready is a proxy whose flags are right. It may be started several times.
type Ready struct {
	start func() (*Running, error)
}

// Start starts it for one client.
func (r *Ready) Start() (*Running, error) { return r.start() }

// Parse reads the name of a ready-made proxy and its flags.
func Parse(argv []string, env Env) (*Ready, error) {
	for _, k := range Kinds() {
		if len(argv) == 0 || k.Name != argv[0] {
			continue
		}
		f := pflag.NewFlagSet(k.Name, pflag.ContinueOnError)
		f.SetOutput(io.Discard)
		f.Usage = func() {}
		check := k.Flags(f)
		err := f.Parse(argv[1:])
		switch {
		case errors.Is(err, pflag.ErrHelp):
			return nil, fmt.Errorf("proxy %s: see acp proxy %s --help", k.Name, k.Name)
		case err != nil:
			return nil, fmt.Errorf("proxy %s: %w; see acp proxy %s --help", k.Name, err, k.Name)
		case f.NArg() > 0:
			return nil, fmt.Errorf("proxy %s: it has flags only, not %q", k.Name, f.Arg(0))
		}
		start, err := check(env)
		if err != nil {
			return nil, fmt.Errorf("proxy %s: %w", k.Name, err)
		}
		return &Ready{start}, nil
	}
	return nil, fmt.Errorf("there is no such ready-made proxy; there are %s", strings.Join(config.ReadyProxies, ", "))
}
