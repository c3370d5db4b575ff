package isolate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/leaktest"
)

// TestMain calls Exec as the program does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Name {
		fmt.Fprintln(os.Stderr, Exec(os.Args[2:]))
		os.Exit(1)
	}
	leaktest.Main(m)
}

func TestEnviron(t *testing.T) {
	c := &Config{Pass: []string{"EXTRA"}}
	got := c.Environ([]string{"PATH=/bin", "SECRET_KEY=x", "ACP_TOKEN=t", "LC_ALL=C", "EXTRA=1", "HOME=/root", "LCD=x", "A"}, []string{"KEY=1", "PATH=/own", "KEY=2"})
	if diff := cmp.Diff([]string{"LC_ALL=C", "EXTRA=1", "PATH=/own", "KEY=2"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestContainer(t *testing.T) {
	c := &Config{Mode: Container, Homes: t.TempDir(), Template: []string{"true", "run", "--volume={workspace}:{workspace}", "--volume", "{home}:/home/agent", "{env}", "--name={user}", "-w", "{cwd}", "image", "{command}"}}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	got, err := c.Wrap(Command{Path: "my-agent", Args: []string{"--acp", "{home}"}, Dir: "/w/sub"}, Tenant{User: "oidc:jo", Workspaces: []string{"/w"}, Env: []string{"KEY=secret"}}, []string{"PATH=/bin", "OTHER=x"})
	if err != nil {
		t.Fatal(err)
	}
	name := hash("oidc:jo")
	home := filepath.Join(c.Homes, name)
	// What belongs to the agent's command is never replaced, and no value is on the command line.
	want := []string{"run", "--volume=/w:/w", "--volume", home + ":/home/agent", "--env", "KEY", "--name=" + name, "-w", "/w/sub", "image", "my-agent", "--acp", "{home}"}
	if diff := cmp.Diff(want, got.Args); diff != "" {
		t.Error(diff)
	}
	if !slices.Contains(got.Env, "KEY=secret") || slices.Contains(got.Env, "OTHER=x") {
		t.Error(got.Env)
	}
	if info, err := os.Stat(home); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the home: %v, %v", info, err)
	}
}

// TestContainerNames: the name of a directory adds no option.
func TestContainerNames(t *testing.T) {
	c := &Config{Mode: Container, Homes: t.TempDir(), Template: []string{"true", "--mount", "type=bind,src={workspace},dst=/work", "-w", "{cwd}", "{command}"}}
	for dir, ok := range map[string]bool{
		"/srv/dev/a": true, "/srv/a b=c;d/é%{home}": true, "/srv/a,src=/etc": false, "/srv/a:/etc": false, `/srv/a"b`: false, "/srv/a'b": false,
		"/srv/a`b": false, "/srv/a\nb": false, "/srv/a\x00b": false, "/srv/a\x7f": false, "/srv/a\u0085": false, "/srv/a\u2028": false, "/srv/a\xff": false,
	} {
		for _, tt := range []struct{ workspace, cwd string }{{dir, ""}, {dir, "/srv/dev"}, {"/srv/dev", dir}} {
			got, err := c.Wrap(Command{Path: "a", Dir: tt.cwd}, Tenant{User: "jo", Workspaces: []string{tt.workspace}}, nil)
			if (err == nil) != ok {
				t.Errorf("%q: %q, %v", tt, got.Args, err)
			}
			if ok && (got.Args[1] != "type=bind,src="+tt.workspace+",dst=/work" || len(got.Args) != 5) {
				t.Errorf("%q: %q", tt, got.Args)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	homes := t.TempDir()
	for _, c := range []*Config{
		{Mode: "jail", Homes: homes}, {Mode: Container, Homes: homes}, {Mode: Container, Homes: homes, Template: []string{"true", "{workspace}"}},
		{Mode: Container, Homes: homes, Template: []string{"true", "{command}"}}, {Mode: Container, Homes: homes, Template: []string{"no-such-program", "{workspace}", "{command}"}},
		{Mode: Container, Homes: "homes", Template: []string{"true", "{workspace}", "{command}"}},
	} {
		if c.Check() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	c := &Config{Mode: Container, Homes: homes, Template: []string{"true", "{workspace}", "{command}"}}
	for _, tenant := range []Tenant{
		{User: "jo"}, {Workspaces: []string{"/w"}}, {User: "jo", Workspaces: []string{"w"}}, {User: "jo", Workspaces: []string{"/"}},
		{User: "jo", Workspaces: []string{filepath.Dir(homes)}}, {User: "jo", Workspaces: []string{"/w", filepath.Join(homes, "x")}},
	} {
		if _, err := c.Wrap(Command{Path: "x"}, tenant, nil); err == nil {
			t.Errorf("%+v is accepted", tenant)
		}
	}
	plain := Command{Path: "x", Dir: "/w", Env: []string{"A=1"}}
	got, err := (&Config{}).Wrap(plain, Tenant{}, nil)
	if diff := cmp.Diff(plain, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestHomes(t *testing.T) {
	seen := make(map[string]string)
	for _, user := range []string{"jo", "Jo", "oidc:jo", "..", "a/b", strings.Repeat("x", 500)} {
		h := hash(user)
		if other, ok := seen[h]; ok || len(h) != 24 || strings.ContainsAny(h, "./") {
			t.Errorf("%q and %q have %q", user, other, h)
		}
		seen[h] = user
	}
}
