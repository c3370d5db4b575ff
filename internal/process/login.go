package process

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Bounds of LoginEnv.
const (
	loginTimeout = 10 * time.Second
	maxLoginText = 1 << 20 // bytes of what the shell prints
)

// LoginEnv returns the environment that the user's login shell sets up, which a
// program that was not started from a terminal lacks: PATH above all. It runs
// $SHELL as an interactive login shell, without a terminal, for at most 10 s,
// and ignores what start-up files print. Daemons that start-up files start live on: they
// are the user's. On Windows, and when that does not
// work, it returns the environment of this process; in the latter case with an
// error that says why.
func LoginEnv(ctx context.Context) ([]string, error) {
	if runtime.GOOS == "windows" {
		return os.Environ(), nil
	}
	shell := os.Getenv("SHELL")
	if shell == "" {
		shell = "/bin/sh"
	}
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	env, err := loginEnv(ctx, shell)
	if err != nil {
		return os.Environ(), fmt.Errorf("environment of the login shell %s: %w", shell, err)
	}
	return env, nil
}

func loginEnv(ctx context.Context, shell string) ([]string, error) {
	mark := rand.Text()
	// In this form it means the same to sh, csh and fish. An env that does
	// not know -0 prints lines.
	script := "echo " + mark + "; env -0 || env; echo " + mark
	args := []string{"-l", "-i", "-c", script}
	if strings.HasSuffix(filepath.Base(shell), "csh") && !strings.HasSuffix(shell, "zsh") {
		args = args[1:] // -l works only alone
	}
	p, err := Start(ctx, Config{Path: shell, Args: args, NoStdin: true, session: true, TermGrace: -1})
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Stop(context.Background()) }()
	// Killing the shell ends the reading; so does closing the pipe, if
	// something else has it open.
	defer context.AfterFunc(ctx, func() {
		p.Kill()
		_ = p.Stdout().Close()
	})()

	text, err := between(p.Stdout(), mark)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == io.ErrUnexpectedEOF && after(p.Done(), drainGrace) && p.Wait() != nil:
		return nil, p.Wait()
	case err != nil:
		return nil, err
	}
	return parseEnv(text)
}

// between reads until the second line mark and returns what is between the two.
func between(r io.Reader, mark string) ([]byte, error) {
	var text []byte
	m := []byte(mark + "\n")
	buf := make([]byte, 32<<10)
	for len(text) < maxLoginText {
		n, err := r.Read(buf)
		text = append(text, buf[:n]...)
		if _, rest, ok := bytes.Cut(text, m); ok {
			if env, _, ok := bytes.Cut(rest, m); ok {
				return env, nil
			}
		}
		if err == io.EOF {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("it printed more than %d bytes", maxLoginText)
}

// parseEnv reads what env printed. In the form with lines, one that does not
// begin with a name belongs to the value before it.
func parseEnv(text []byte) ([]string, error) {
	sep := "\x00"
	if bytes.IndexByte(text, 0) < 0 {
		sep = "\n"
	}
	env := []string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), sep), sep) {
		name, _, ok := strings.Cut(line, "=")
		switch {
		case ok && (sep == "\x00" && name != "" || isName(name)):
			env = append(env, line)
		case sep == "\n" && len(env) > 0:
			env[len(env)-1] += "\n" + line
		}
	}
	env = append(dropShell(env), keepShell(os.Environ())...)
	if variable(env, "PATH") == "" {
		return nil, errors.New("it has no PATH")
	}
	return env, nil
}

// ofShell are variables that describe the shell that was asked.
var ofShell = map[string]bool{"_": true, "SHLVL": true, "PWD": true, "OLDPWD": true, MarkVar: true}

func dropShell(env []string) []string {
	out := env[:0]
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); !ofShell[name] {
			out = append(out, kv)
		}
	}
	return out
}

func keepShell(env []string) []string {
	var out []string
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); ofShell[name] {
			out = append(out, kv)
		}
	}
	return out
}

func isName(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
