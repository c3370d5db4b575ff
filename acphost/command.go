package acphost

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/internal/process"
)

// A PTY runs commands in pseudo-terminals, or in whatever else the application
// has. Start is called from several goroutines; the context says only how long
// starting may take.
type PTY interface {
	Start(ctx context.Context, cmd PTYCommand) (PTYProcess, error)
}

// A PTYCommand is what to run.
type PTYCommand struct {
	Path string   // a file or, without a separator, a name to look up
	Args []string // without the program's name
	Dir  string   // absolute; it exists
	Env  []string // the whole environment; of several values the last one counts
}

// leads returns where the links in the directory and in the program's path lead, ""
// where that is not known. A program that has only a name is looked up later.
func (c *PTYCommand) leads() (dir, program string) {
	dir, _ = ResolvePath(c.Dir)
	if filepath.Base(c.Path) == c.Path {
		return dir, ""
	}
	program = c.Path
	if !filepath.IsAbs(program) {
		program = filepath.Join(c.Dir, program)
	}
	program, _ = ResolvePath(program)
	return dir, program
}

// A PTYProcess is a command that was started. Its methods are called from
// several goroutines, Read and Wait by one each.
type PTYProcess interface {
	// Read reads the output. After the last of it, and after Close, it
	// returns an error.
	io.Reader
	// Wait returns when the command itself has ended, with its exit code or
	// the name of the signal that ended it, such as "SIGTERM". A negative
	// code stands for one that is not known.
	Wait() (code int, signal string)
	// End ends the command and everything it has started, and returns when they
	// have ended. It begins with a polite request and uses force after a while,
	// or when ctx is done. It may be called more than once, also after the
	// command has ended.
	End(ctx context.Context) error
	// Close is called last, after End.
	Close() error
}

// pipes is the PTY that is none: commands write to a pipe.
type pipes struct{ grace time.Duration }

func (r pipes) Start(ctx context.Context, cmd PTYCommand) (PTYProcess, error) {
	p, err := process.Start(ctx, process.Config{
		Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env,
		NoStdin: true, MergeStderr: true, KeepGroup: true, TermGrace: r.grace,
	})
	if err != nil {
		return nil, err
	}
	return piped{p}, nil
}

type piped struct{ p *process.Process }

func (c piped) Read(b []byte) (int, error) { return c.p.Stdout().Read(b) }

func (c piped) Wait() (int, string) {
	var e *process.ExitError
	switch err := c.p.Wait(); {
	case err == nil:
		return 0, ""
	case errors.As(err, &e):
		return e.Code, e.Signal
	}
	return -1, ""
}

func (c piped) End(ctx context.Context) error { return c.p.End(ctx) }

func (c piped) Close() error { return c.p.Stop(context.Background()) }

// shell runs lines.
const shell = "/bin/sh"

// command checks a request.
func (h *Terminals) command(req *acpv1.CreateTerminalRequest) (PTYCommand, error) {
	c := PTYCommand{Path: req.Command, Args: req.Args, Env: h.Env}
	if c.Env == nil {
		c.Env = os.Environ()
	}
	c.Env = c.Env[:len(c.Env):len(c.Env)]
	for i, v := range req.Env {
		at := "env[" + strconv.Itoa(i) + "]."
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") {
			return c, invalid(at+"name", "is not the name of a variable")
		}
		if strings.ContainsRune(v.Value, 0) {
			return c, invalid(at+"value", "contains a zero byte")
		}
		c.Env = append(c.Env, v.Name+"="+v.Value)
	}
	for i, a := range req.Args {
		if strings.ContainsRune(a, 0) {
			return c, invalid("args["+strconv.Itoa(i)+"]", "contains a zero byte")
		}
	}
	if req.Command == "" || strings.ContainsRune(req.Command, 0) {
		return c, invalid("command", "is empty or contains a zero byte")
	}
	var err error
	if c.Dir, err = h.dir(req.Cwd); err != nil {
		return c, err
	}
	if isLine(c.Path, c.Args) {
		if _, err := os.Stat(shell); err != nil {
			return c, invalid("command", "is a line, and there is no shell to run it")
		}
		c.Path, c.Args = shell, []string{"-c", req.Command}
	}
	return c, nil
}

// isLine reports whether a command is a line for a shell: it has no arguments and
// something in it that means something to a shell, and is not the absolute path of
// a file. A relative name is never looked for: people and rules have read a line,
// and a directory named "cat src" must not make "cat src/main.go" a program.
func isLine(command string, args []string) bool {
	if len(args) > 0 || !mustQuote(command) && !strings.Contains(command, "=") {
		return false
	}
	if filepath.IsAbs(command) {
		if _, err := os.Stat(command); err == nil {
			return false
		}
	}
	return true
}

// dir returns the directory to run in.
func (h *Terminals) dir(cwd string) (string, error) {
	switch {
	case h.err != nil:
		return "", h.err
	case cwd == "" && len(h.roots) == 0:
		return os.Getwd()
	case cwd == "":
		return h.roots[0], nil
	case !filepath.IsAbs(cwd):
		return "", invalid("cwd", "is not absolute")
	}
	if fi, err := os.Stat(cwd); err != nil {
		return "", invalid("cwd", "does not exist or cannot be reached")
	} else if !fi.IsDir() {
		return "", invalid("cwd", "is not a directory")
	}
	if len(h.roots) == 0 {
		return cwd, nil
	}
	real, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return "", err
	}
	for _, root := range h.roots {
		if root, err := filepath.EvalSymlinks(root); err == nil {
			if _, ok := within(root, real); ok {
				return cwd, nil
			}
		}
	}
	return "", invalid("cwd", "is outside of the directories that are shared")
}

func startError(err error) error {
	var e *process.LookPathError
	switch {
	case errors.As(err, &e) && errors.Is(err, fs.ErrPermission):
		return invalid("command", "cannot be executed")
	case errors.As(err, &e):
		return invalid("command", "no such program")
	}
	return err
}
