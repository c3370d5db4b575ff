package isolate

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBwrapArguments needs no bubblewrap that works.
func TestBwrapArguments(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(old, bwrapName), []byte("#!/bin/sh\necho --bind SRC DEST\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", old+":"+os.Getenv("PATH"))
	if err := (&Config{Mode: Bwrap, Homes: t.TempDir()}).Check(); err == nil || !strings.Contains(err.Error(), "no option --bind-fd") {
		t.Errorf("a bubblewrap without --bind-fd: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, bwrapName), []byte("#!/bin/sh\necho --bind-fd FD DEST\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	c := &Config{Mode: Bwrap, Homes: t.TempDir(), NoNetwork: true, ReadOnly: []string{"/opt/agents"}}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	got, err := c.Wrap(Command{Path: "/srv/agent/run", Args: []string{"--acp"}, Dir: "/w/a"}, Tenant{User: "jo", Workspaces: []string{"/w", "/x"}, Env: []string{"HOME=/root", "KEY=1"}}, []string{"PATH=/bin", "XDG_STATE_HOME=/s"})
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Join(got.Args, " ")
	if self, _ := os.Executable(); got.Path != self || !strings.HasPrefix(line, Name+" "+filepath.Join(dir, bwrapName)+" --") {
		t.Errorf("%s %s", got.Path, line)
	}
	home := filepath.Join(c.Homes, hash("jo"))
	for _, part := range []string{
		"--unshare-net", "--unshare-pid", "--die-with-parent", "--new-session", "--ro-bind-try /usr /usr", "--tmpfs /tmp",
		"--bind " + home + " /home/agent", "--ro-bind /opt/agents /opt/agents", "--bind-fd /w /w", "--bind-fd /x /x", "--chdir /w/a -- /srv/agent/run --acp",
	} {
		if !strings.Contains(line, part) {
			t.Errorf("%q is missing in %s", part, line)
		}
	}
	if strings.Index(line, "--tmpfs /tmp") > strings.Index(line, "--bind-fd /w") {
		t.Error("a workspace in /tmp is hidden")
	}
	for _, part := range []string{"KEY", "--bind / ", "--ro-bind / ", " /etc /etc"} {
		if strings.Contains(line, part) {
			t.Errorf("%q in %s", part, line)
		}
	}
	if env := strings.Join(got.Env, " "); env != "PATH=/bin KEY=1 HOME=/home/agent" {
		t.Error(env)
	}
}

// TestBwrap runs a program in bubblewrap that looks around.
func TestBwrap(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	c := &Config{Mode: Bwrap, Homes: t.TempDir()}
	if err := c.Check(); err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command(bwrapName, "--unshare-user-try", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true").CombinedOutput(); err != nil {
		t.Skipf("bubblewrap makes no namespaces here: %s", out)
	}
	work, other := t.TempDir(), t.TempDir()
	secret := filepath.Join(other, "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SERVER_SECRET", "x")
	run := func(user, script string) string {
		t.Helper()
		cmd, err := c.Wrap(Command{Path: "sh", Args: []string{"-c", script}, Dir: work}, Tenant{User: user, Workspaces: []string{work}, Env: []string{"MINE=1"}}, os.Environ())
		if err != nil {
			t.Fatal(err)
		}
		p := exec.Command(cmd.Path, cmd.Args...)
		p.Dir, p.Env = cmd.Dir, cmd.Env
		var out bytes.Buffer
		p.Stdout, p.Stderr = &out, &out
		if err := p.Run(); err != nil {
			t.Errorf("%s: %v: %s", script, err, &out)
		}
		return strings.TrimSpace(out.String())
	}
	for _, tt := range []struct{ script, want string }{
		{"echo $MINE$SERVER_SECRET", "1"},
		{"pwd", work},
		{"cd; pwd; ls -A", "/home/agent"},
		{"ls " + other + " 2>/dev/null; echo", ""},
		{"cat /etc/shadow /root/.* 2>/dev/null | head -1; echo", ""},
		{"touch /usr/x 2>/dev/null || echo read-only", "read-only"},
		{"ls /proc | grep -c '^[0-9]*$' | awk '{print ($1 < 9)}'", "1"},
		{"ls -A /tmp | grep -v '" + strings.Split(work, "/")[2] + "'; echo", ""},
		{"echo result > file; cat file", "result"},
		{"for fd in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do test -d /proc/self/fd/$fd/ && echo $fd; done; echo", ""},
		{"echo kept > ~/kept; cat ~/kept", "kept"},
	} {
		if got := run("jo", tt.script); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.script, got, tt.want)
		}
	}
	if got := run("jo", "cat ~/kept"); got != "kept" {
		t.Errorf("the home is not kept: %q", got)
	}
	if got := run("al", "ls -A ~"); got != "" {
		t.Errorf("another user sees %q", got)
	}
	if data, err := os.ReadFile(filepath.Join(work, "file")); err != nil || string(data) != "result\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestReplaced: a directory that is replaced by a link after its command was made is not mounted.
func TestReplaced(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dev, state := filepath.Join(root, "dev"), filepath.Join(root, "state")
	work := filepath.Join(dev, "x")
	for _, dir := range []string{work, filepath.Join(state, "x")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// It writes what it gets, instead of mounting it.
	echo, err := exec.LookPath("echo")
	if err != nil {
		t.Skip(err)
	}
	run := func(args ...string) (string, error) {
		out, err := exec.Command(os.Args[0], append([]string{Name, echo}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	out, err := run("--unshare-pid", bindFD, work, work, bindFD, dev, dev, "--", bindFD, work)
	var fd [2]int
	if _, e := fmt.Sscanf(out, "--unshare-pid --bind-fd %d "+work+" --bind-fd %d "+dev+" -- --bind-fd "+work, &fd[0], &fd[1]); e != nil || err != nil || fd[0] < 3 || fd[1] == fd[0] {
		t.Errorf("%q, %v, %v", out, err, e)
	}
	for _, link := range []string{work, dev} { // itself, and what it is in
		if err := os.RemoveAll(link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(state, link); err != nil {
			t.Fatal(err)
		}
		if out, err := run(bindFD, work, work, "--", "x"); err == nil || !strings.Contains(out, "not a directory") {
			t.Errorf("%s: %q, %v", link, out, err)
		}
	}
	for _, args := range [][]string{{bindFD, "x", "x"}, {bindFD, root + "/dev/..", "/w"}, {bindFD, root + "/none", "/w"}} {
		if out, err := run(args...); err == nil {
			t.Errorf("%q is accepted: %s", args, out)
		}
	}
	for _, args := range [][]string{nil, {"bwrap"}, {filepath.Join(root, "none"), "--"}} {
		if err := Exec(args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
