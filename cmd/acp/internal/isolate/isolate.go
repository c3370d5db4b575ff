// Package isolate makes commands of agents that cannot reach what is not theirs: with bubblewrap, or in a
// container that a command of the administrator's starts. It starts nothing itself, so its commands may be
// given to whoever starts agents.
package isolate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Mode is a way to isolate.
type Mode string

// The modes.
const (
	None      Mode = "none"      // agents may do what the server may do
	Bwrap     Mode = "bwrap"     // bubblewrap, on Linux
	Container Mode = "container" // a command, such as one of podman
)

// A Config says how agents are isolated. The zero value isolates nothing.
type Config struct {
	Mode Mode
	// NoNetwork leaves agents without a network. ReadOnly are further files and directories that they can
	// read. Both are for Bwrap.
	NoNetwork bool
	ReadOnly  []string
	// Pass are names of further variables of the server's environment that agents get.
	Pass []string
	// Template is the command of the mode Container: see [Config.Check].
	Template []string
	// Homes is a directory, below which each user's agents have a home directory of their own, empty at
	// first. It must not be in a workspace.
	Homes string
}

// A Command is the command of an agent. Path may be a name that is looked up in the PATH of Env.
type Command struct {
	Path string
	Args []string
	Dir  string
	Env  []string // as in [os.Environ]
}

// A Tenant is for whom a command is.
type Tenant struct {
	User string
	// Workspaces are the directories that the agent may change, without links: see
	// [filepath.EvalSymlinks]. The first one is where it works.
	Workspaces []string
	// Env are variables of the user, and of the settings of the agent.
	Env []string
}

// passed are the variables of the server that every agent gets. Those of the language and of time come by
// their beginnings.
var passed = []string{"PATH", "LANG", "LANGUAGE", "TZ", "TERM", "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}

// Environ returns the environment of an agent: nothing of the server's but what is listed, then the further
// variables, of which the last one of a name counts.
func (c *Config) Environ(server, further []string) []string {
	var env []string
	for _, kv := range server {
		name, _, ok := strings.Cut(kv, "=")
		if ok && (slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") || slices.Contains(c.Pass, name)) {
			env = append(env, kv)
		}
	}
	env = append(env, further...)
	seen := make(map[string]bool)
	var last []string
	for _, kv := range slices.Backward(env) {
		name, _, _ := strings.Cut(kv, "=")
		if !seen[name] {
			seen[name] = true
			last = append(last, kv)
		}
	}
	slices.Reverse(last)
	return last
}

// bwrapName is the program of bubblewrap. It is looked up once, in the server's PATH.
const bwrapName = "bwrap"

// Check returns why agents cannot be isolated as the configuration says, or nil.
//
// Arguments of Template that are {command} or {env} stand for several: the agent's command, and --env NAME
// for each of its variables, which the container program then takes from its own environment, so that no
// value is on a command line. In others, {workspace}, {home}, {cwd} and {user} are replaced; {user} is a hash.
// {command} must be there. Directories are refused whose names have commas, colons, quotes or what cannot be printed.
func (c *Config) Check() error {
	switch c.Mode {
	case None, "":
		return nil
	case Bwrap:
		if runtime.GOOS != "linux" {
			return errors.New("bubblewrap is there on Linux only; use the mode container")
		}
		if err := checkBwrap(); err != nil {
			return err
		}
	case Container:
		switch {
		case len(c.Template) == 0:
			return errors.New("the command of the container is missing")
		case !slices.Contains(c.Template, "{command}"):
			return errors.New("the command of the container has no argument {command}")
		case !slices.ContainsFunc(c.Template, func(a string) bool { return strings.Contains(a, "{workspace}") }):
			return errors.New("the command of the container has no {workspace}")
		}
		if _, err := exec.LookPath(c.Template[0]); err != nil {
			return fmt.Errorf("the command of the container: %w", err)
		}
	default:
		return fmt.Errorf("%q is no way to isolate agents", c.Mode)
	}
	if !filepath.IsAbs(c.Homes) {
		return errors.New("the directory for homes is not absolute")
	}
	return nil
}

// Wrap returns the command that starts an agent isolated. server is the server's environment. It makes the
// user's home directory.
func (c *Config) Wrap(cmd Command, t Tenant, server []string) (Command, error) {
	if c.Mode == None || c.Mode == "" {
		return cmd, nil
	}
	if len(t.Workspaces) == 0 || t.User == "" {
		return Command{}, errors.New("an isolated agent has a user and a workspace")
	}
	for _, w := range t.Workspaces {
		if !filepath.IsAbs(w) || filepath.Clean(w) == string(filepath.Separator) {
			return Command{}, fmt.Errorf("%q cannot be a workspace", w)
		}
		if inside(w, c.Homes) || inside(c.Homes, w) {
			return Command{}, fmt.Errorf("the workspace %s has the homes of agents in it", w)
		}
	}
	if cmd.Dir == "" {
		cmd.Dir = t.Workspaces[0]
	}
	home := filepath.Join(c.Homes, hash(t.User))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return Command{}, fmt.Errorf("the home of agents: %w", err)
	}
	env := c.Environ(server, t.Env)
	if c.Mode == Container {
		return c.container(cmd, t, home, env)
	}
	return c.bwrap(cmd, t, home, env)
}

// hash returns a name for a user in which nothing is special.
func hash(user string) string {
	sum := sha256.Sum256([]byte(user))
	return hex.EncodeToString(sum[:12])
}

// inside reports whether a path is a directory or in it.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// plain returns why the name of a directory cannot be an argument of a container program, or nil. Programs read several
// things from one argument, as in --mount type=bind,src=/w and --volume /w:/w, so a user who names a directory must not
// add to these.
func plain(dir string) error {
	name := strings.TrimPrefix(dir, filepath.VolumeName(dir))
	for _, r := range name {
		if strings.ContainsRune(",:\"'`", r) || r == utf8.RuneError || !unicode.IsPrint(r) {
			return fmt.Errorf("the directory %q cannot be given to a container: %q in its name may mean something else there", dir, r)
		}
	}
	return nil
}

// container fills in the template.
func (c *Config) container(cmd Command, t Tenant, home string, env []string) (Command, error) {
	for _, dir := range []string{t.Workspaces[0], cmd.Dir} {
		if err := plain(dir); err != nil {
			return Command{}, err
		}
	}
	replace := strings.NewReplacer("{workspace}", t.Workspaces[0], "{home}", home, "{cwd}", cmd.Dir, "{user}", hash(t.User))
	program, err := exec.LookPath(c.Template[0])
	if err != nil {
		return Command{}, err
	}
	out := Command{Path: program, Dir: home}
	for _, arg := range c.Template[1:] {
		switch arg {
		case "{command}":
			out.Args = append(append(out.Args, cmd.Path), cmd.Args...)
		case "{env}":
			for _, kv := range t.Env {
				name, _, _ := strings.Cut(kv, "=")
				out.Args = append(out.Args, "--env", name)
			}
		default:
			out.Args = append(out.Args, replace.Replace(arg))
		}
	}
	// The container's program finds its own settings in the home directory of the server's user.
	out.Env = env
	if h, err := os.UserHomeDir(); err == nil {
		out.Env = append(out.Env, "HOME="+h)
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		out.Env = append(out.Env, "XDG_RUNTIME_DIR="+dir)
	}
	return out, nil
}
