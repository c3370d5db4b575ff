package isolate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// system is what agents can read of the system: its programs and libraries. Of /etc it is what programs need
// for names, certificates and the time, since files of the server may be there, too.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/run/current-system", "/run/systemd/resolve",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/crypto-policies", "/etc/fonts", "/etc/group", "/etc/hosts",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/magic", "/etc/mime.types",
	"/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/pki", "/etc/protocols", "/etc/resolv.conf", "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf",
	"/etc/timezone",
}

// homeInside is the home directory as the agent sees it. It is the same for all: a path must not say who
// else is there.
const homeInside = "/home/agent"

// Name is the first argument of this program with which it calls [Exec] with the others.
const Name = "isolate"

// bindFD is the option of bubblewrap that mounts a directory by its descriptor. In the arguments for [Exec] its path is
// there instead.
const bindFD = "--bind-fd"

// checkBwrap returns why bubblewrap cannot be used, or nil.
func checkBwrap() error {
	program, err := exec.LookPath(bwrapName)
	if err != nil {
		return fmt.Errorf("the program of bubblewrap is missing: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	help, err := exec.CommandContext(ctx, program, "--help").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s --help: %w", program, err)
	}
	if !strings.Contains(string(help), bindFD+" ") {
		return fmt.Errorf("%s has no option %s, without which directories can be replaced while an agent starts: install bubblewrap 0.10.0, or an older one with the correction of CVE-2024-42472", program, bindFD)
	}
	return nil
}

// bwrap returns the command of bubblewrap: a root of its own, with the system read-only, the user's home, the
// workspaces, and nothing else. The agent sees its own processes only and ends with whoever started it.
func (c *Config) bwrap(cmd Command, t Tenant, home string, env []string) (Command, error) {
	program, err := exec.LookPath(bwrapName)
	if err != nil {
		return Command{}, fmt.Errorf("the program of bubblewrap is missing: %w", err)
	}
	env = slices.DeleteFunc(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "HOME" || name == "TMPDIR" || strings.HasPrefix(name, "XDG_")
	})
	env = append(env, "HOME="+homeInside)
	agent, err := find(cmd.Path, cmd.Dir, env)
	if err != nil {
		return Command{}, err
	}
	args := []string{"--unshare-user-try", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent", "--new-session", "--hostname", "agent", "--cap-drop", "ALL"}
	if c.NoNetwork {
		args = append(args, "--unshare-net")
	}
	for _, path := range system {
		args = append(args, mount(path)...)
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/var/tmp", "--bind", home, homeInside)
	for _, path := range c.ReadOnly {
		if !filepath.IsAbs(path) {
			return Command{}, fmt.Errorf("%q is not absolute", path)
		}
		args = append(args, "--ro-bind", path, path)
	}
	for _, w := range t.Workspaces {
		args = append(args, bindFD, w, w)
	}
	// The program itself, unless one of these has it. Comes last: a workspace does not replace it.
	if real, err := filepath.EvalSymlinks(agent); err == nil && !c.has(agent, t) {
		args = append(args, "--ro-bind", real, agent)
	}
	args = append(args, "--chdir", cmd.Dir, "--", agent)
	self, err := os.Executable()
	if err != nil {
		return Command{}, fmt.Errorf("the program that starts bubblewrap: %w", err)
	}
	return Command{Path: self, Args: slices.Concat([]string{Name, program}, args, cmd.Args), Dir: "/", Env: env}, nil
}

// mount returns the arguments for a path of the system. Where a directory of the root is a link, as /bin often
// is, the link is made; any other link is mounted as what it leads to.
func mount(path string) []string {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	if info.Mode()&os.ModeSymlink != 0 && filepath.Dir(path) == "/" {
		if to, err := os.Readlink(path); err == nil {
			return []string{"--symlink", to, path}
		}
	}
	return []string{"--ro-bind-try", path, path}
}

// has reports whether the agent sees a file anyway.
func (c *Config) has(file string, t Tenant) bool {
	of := func(dir string) bool { return inside(dir, file) }
	return slices.ContainsFunc(system, of) || slices.ContainsFunc(c.ReadOnly, of) || slices.ContainsFunc(t.Workspaces, of)
}

// find returns the absolute path of a program.
func find(name, dir string, env []string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, nil
	}
	for _, kv := range env {
		list, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, d := range filepath.SplitList(list) {
			file := filepath.Join(d, name)
			if info, err := os.Stat(file); filepath.IsAbs(file) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("the program %s: %w", name, exec.ErrNotFound)
}
