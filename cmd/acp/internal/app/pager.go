package app

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// Paged calls f with a.Out being a pager, if the output is a terminal: the command in ACP_PAGER or
// PAGER, and otherwise less, which ends at once if all fits on the screen. An empty variable, cat, and a
// pager that cannot be started mean no pager. It returns when the user has left the pager. That the user
// leaves it early is no error.
func (a *App) Paged(f func() error) error {
	argv := a.pager()
	out, isFile := a.Out.(*os.File)
	if len(argv) == 0 || !isFile {
		return f()
	}
	path, err := roster.LookPath(argv[0], a.Cwd, a.environ())
	if err != nil {
		return f()
	}
	cmd := exec.Command(path, argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, a.Err
	cmd.Env = append([]string{"LESS=FRX", "LV=-c"}, a.environ()...) // those of the user come later and count
	in, err := cmd.StdinPipe()
	if err != nil {
		return f()
	}
	// Ctrl-C is for the pager.
	if a.Interrupts != nil {
		defer a.Interrupts(func() {})()
	}
	if err := cmd.Start(); err != nil {
		_ = in.Close()
		return f()
	}
	a.Out = &pagerInput{w: in}
	err = f()
	a.Out = out
	_ = in.Close()
	_ = cmd.Wait() // its status says nothing about the output
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// A pagerInput is a pipe. It hides that it is a file, whose width would be asked for.
type pagerInput struct{ w io.Writer }

// Write implements [io.Writer].
func (p *pagerInput) Write(b []byte) (int, error) { return p.w.Write(b) }

// pager returns the command of the pager, or nil for none.
func (a *App) pager() []string {
	if !a.OutTerminal || !a.InTerminal || a.variable("TERM") == "dumb" {
		return nil
	}
	for _, name := range []string{"ACP_PAGER", "PAGER"} {
		v, ok := a.lookup(name)
		if !ok {
			continue
		}
		argv, err := roster.Split(strings.TrimSpace(v))
		if err != nil || len(argv) == 0 || argv[0] == "cat" {
			return nil
		}
		return argv
	}
	if runtime.GOOS == "windows" {
		return nil
	}
	return []string{"less"}
}

// variable returns a variable of the environment.
func (a *App) variable(name string) string {
	v, _ := a.lookup(name)
	return v
}

func (a *App) lookup(name string) (value string, ok bool) {
	environ := a.environ()
	for i := len(environ) - 1; i >= 0; i-- {
		if k, v, found := strings.Cut(environ[i], "="); found && k == name {
			return v, true
		}
	}
	return "", false
}

func (a *App) environ() []string {
	if a.Environ != nil {
		return a.Environ
	}
	return os.Environ()
}
