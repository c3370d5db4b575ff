package serve

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/isolate"
	"github.com/goacp/acp/cmd/acp/internal/policy"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// TestPeer: a user of the machine is known by the name that belongs to the number.
func TestPeer(t *testing.T) {
	broken := errors.New("no directory")
	lookup := func(uid string) (*user.User, error) {
		switch uid {
		case "0":
			return &user.User{Username: "root"}, nil
		case "1001":
			return &user.User{Username: "jo"}, nil
		case "1002":
			return &user.User{Username: "al"}, nil
		case "1003":
			return nil, broken
		}
		n, _ := strconv.Atoi(uid)
		return nil, user.UnknownUserIdError(n)
	}
	some := peer(config.Serve{Users: map[string]config.Rights{"jo": {Role: "prompter"}, "root": {}}}, lookup)
	everybody := peer(config.Serve{Users: map[string]config.Rights{"jo": {}, "*": {Role: "viewer"}}}, lookup)
	for _, tt := range []struct {
		name string
		of   func(identity.Peer) (identity.Principal, error)
		uid  int
		want identity.Principal
		err  error
	}{
		{"named", some, 1001, identity.Principal{Kind: identity.KindLocal, User: "jo", Role: identity.Prompter}, nil},
		{"not named", some, 1002, identity.Principal{}, identity.ErrDenied},
		{"root without a role", some, 0, identity.Principal{}, identity.ErrDenied},
		{"no name", some, 5, identity.Principal{}, identity.ErrDenied},
		{"not known now", some, 1003, identity.Principal{}, broken},
		{"everybody", everybody, 1002, identity.Principal{Kind: identity.KindLocal, User: "al", Role: identity.Viewer}, nil},
		{"named, without a role", everybody, 1001, identity.Principal{}, identity.ErrDenied},
	} {
		got, err := tt.of(identity.Peer{UID: tt.uid})
		if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, tt.err) {
			t.Errorf("%s: %v %s", tt.name, err, diff)
		}
	}
}

// TestProxies: networks and addresses, and nothing else.
func TestProxies(t *testing.T) {
	got, err := (&Doors{Proxies: []string{"10.1.2.3/8", "192.0.2.7", "2001:db8::1"}}).proxies()
	if err != nil || len(got) != 3 || got[0].String() != "10.0.0.0/8" || got[1].String() != "192.0.2.7/32" || got[2].String() != "2001:db8::1/128" {
		t.Error(got, err)
	}
	for _, bad := range []string{"", "proxy.example", "10.0.0.0/33", "10.0.0.1:80"} {
		if _, err := (&Doors{Proxies: []string{bad}}).proxies(); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestTenants: who gets an agent, and which variables it has.
func TestTenants(t *testing.T) {
	set, err := policy.New(config.Serve{Users: map[string]config.Rights{
		"jo": {Agents: []string{"far"}, Env: map[string]string{"KEY": "jo's", "PATH": "/jo/bin"}}, "al": {Env: map[string]string{"KEY": "al's"}},
	}}, policy.Options{Many: true})
	if err != nil {
		t.Fatal(err)
	}
	in := func(mode isolate.Mode) *tenants { return &tenants{policies: set, isolate: isolate.Config{Mode: mode}} }
	me, jo, al := gateway.Tenant{User: identity.CurrentUser()}, gateway.Tenant{User: "jo"}, gateway.Tenant{User: "al"}
	near, far := roster.Agent{Name: "near", Command: "near"}, roster.Agent{Name: "far", URL: "https://agents.example/acp"}
	for _, tt := range []struct {
		name   string
		mode   isolate.Mode
		agent  roster.Agent
		tenant gateway.Tenant
		ok     bool
	}{
		{"the server's user", isolate.None, near, me, true},
		{"somebody else", isolate.None, near, jo, false},
		{"nobody", isolate.None, near, gateway.Tenant{}, false},
		{"somebody else, isolated", isolate.Container, near, jo, true},
		{"elsewhere, named", isolate.Container, far, jo, true},
		{"elsewhere, not named", isolate.Container, far, al, false},
	} {
		if err := in(tt.mode).check(tt.agent, t.TempDir(), tt.tenant); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	gone, file := filepath.Join(t.TempDir(), "gone"), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{gone, file} {
		for _, agent := range []roster.Agent{near, {Name: roster.Builtin, Builtin: true}} {
			if err := in(isolate.None).check(agent, dir, me); err == nil || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s in %s: %v", agent.Name, dir, err)
			}
		}
		if err := in(isolate.Container).check(near, dir, jo); err != nil { // it may be in there
			t.Error(err)
		}
	}
	env, err := in(isolate.Container).env(roster.Agent{Env: map[string]string{"KEY": "the agent's", "MODE": "x"}}, jo)
	if diff := cmp.Diff([]string{"KEY=the agent's", "MODE=x", "KEY=jo's", "PATH=/jo/bin"}, env); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if _, err := in(isolate.Container).env(roster.Agent{}, gateway.Tenant{User: "jo"}); err != nil {
		t.Error(err)
	}
}

// TestLinkedDirectories: a directory that was permitted, and that the user's agents replace by a link, is not bound.
func TestLinkedDirectories(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(root, name) }
	for _, name := range []string{"dev/x", "dev/y", "group", "other", "state/gateway"} {
		if err := os.MkdirAll(at(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	set, err := policy.New(config.Serve{
		Users: map[string]config.Rights{"jo": {Directories: []string{at("dev")}}}, Groups: map[string]config.Rights{"team": {Directories: []string{at("group")}}},
	}, policy.Options{Many: true, Private: []string{at("state")}})
	if err != nil {
		t.Fatal(err)
	}
	ts := &tenants{many: true, policies: set, isolate: isolate.Config{
		Mode: isolate.Container, Template: []string{os.Args[0], "{workspace}", "{command}"}, Homes: at("state/homes"),
	}}
	jo := gateway.Tenant{User: "jo", Directories: []string{at("dev/x"), at("dev/y")}}
	for _, tt := range []struct {
		name, link, to string // the link replaces what is there
		tenant         gateway.Tenant
		want           string // the workspace, or "" if nothing is started
	}{
		{"no links", "", "", jo, at("dev/x")},
		{"of a group", "", "", gateway.Tenant{User: "al", Groups: []string{"team"}, Directories: []string{at("group")}}, at("group")},
		{"no longer in the group", "", "", gateway.Tenant{User: "al", Directories: []string{at("group")}}, ""},
		{"within what is permitted", "dev/x", "dev/y", jo, at("dev/y")},
		{"the server's state", "dev/x", "state/gateway", jo, ""},
		{"what the server's state is in", "dev/x", "", jo, ""},
		{"a directory of others", "dev/x", "other", jo, ""},
		{"a link that leads nowhere", "dev/x", "none", jo, ""},
		{"a further directory", "dev/y", "state/gateway", gateway.Tenant{User: "jo", Directories: []string{at("dev"), at("dev/y")}}, ""},
		{"a parent", "dev/x", "state", gateway.Tenant{User: "jo", Directories: []string{at("dev/x/gateway")}}, ""},
	} {
		if tt.link != "" {
			if err := os.RemoveAll(at(tt.link)); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(at(tt.to), at(tt.link)); err != nil {
				t.Skip(err)
			}
		}
		c, err := ts.command(t.Context(), roster.Agent{Name: "near", Command: os.Args[0]}, tt.tenant.Directories[0], tt.tenant)
		if tt.want == "" && err == nil {
			t.Errorf("%s: the agent gets %q", tt.name, c.Args)
		}
		if tt.want != "" && (err != nil || c.Args[0] != tt.want) {
			t.Errorf("%s: %q, %v", tt.name, c.Args, err)
		}
		if tt.link != "" {
			if err := os.Remove(at(tt.link)); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(at(tt.link), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestNodeName: the name that a node keeps is the same again, and none that leads out of a directory.
func TestNodeName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node")
	name, err := nodeName(file)
	if err != nil || !nodePattern().MatchString(name) {
		t.Fatal(name, err)
	}
	for text, want := range map[string]string{name + "\n": name, "a.b-c_1": "a.b-c_1", "../x": "", "a/b": "", "..": "", "a\x00b": "", "a\nb": "", strings.Repeat("x", 65): ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := nodeName(file); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
