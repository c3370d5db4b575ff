//go:build unix

package acphost

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestLinks: rules look at a path as it is spelled and as links have it. To allow, both have to match,
// and to deny or ask one.
func TestLinks(t *testing.T) {
	dir := realDir(t)
	work, ssh := filepath.Join(dir, "work"), filepath.Join(dir, "home", ".keys")
	put(t, filepath.Join(work, "src", "a.go"), "x")
	put(t, filepath.Join(ssh, "id"), "x")
	link(t, ssh, filepath.Join(work, "docs"))
	link(t, filepath.Join(ssh, "id"), filepath.Join(work, "key"))
	link(t, "src", filepath.Join(work, "inside"))
	link(t, filepath.Join(dir, "gone", "x"), filepath.Join(work, "nowhere"))
	link(t, "circle", filepath.Join(work, "circle"))
	link(t, work, filepath.Join(dir, "there")) // the way to the directory may be a link
	in := func(name string) string { return filepath.Join(work, name) }
	allow, deny, ask := EffectAllow, EffectDeny, EffectAsk
	for _, tt := range []struct {
		name      string
		effect    Effect
		pattern   string
		cwd, path string
		want      Effect // ask if no rule decides
	}{
		{"a link out, allowed by its name", allow, "./docs/**", work, in("docs/authorized_keys"), ask},
		{"a link out, allowed by the directory", allow, "./**", work, in("docs/authorized_keys"), ask},
		{"a link out, allowed absolutely", allow, work + "/**", work, in("docs/authorized_keys"), ask},
		{"a link out, new directories", allow, "./**", work, in("docs/a/b/c"), ask},
		{"a link out, relative", allow, "./**", work, "docs/id", ask},
		{"a link to a file", allow, "./**", work, in("key"), ask},
		{"a link that stays inside", allow, "./**", work, in("inside/a.go"), allow},
		{"a link that stays inside, by another name", allow, "./inside/**", work, in("inside/a.go"), ask},
		{"no link", allow, "./src/**", work, in("src/new/b.go"), allow},
		{"a link that leads nowhere", allow, "./**", work, in("nowhere"), ask},
		{"a circle", allow, "./**", work, in("circle"), ask},
		{"the directory is a link", allow, "./src/**", filepath.Join(dir, "there"), filepath.Join(dir, "there/src/a.go"), allow},
		{"both are allowed", allow, dir + "/**", work, in("docs/id"), allow},

		{"denied where it leads", deny, ssh + "/**", work, in("docs/id"), deny},
		{"denied where a file leads", deny, "**/.keys/**", work, in("key"), deny},
		{"denied by its name", deny, "./docs/**", work, in("docs/id"), deny},
		{"denied where a new file would be", deny, "**/.keys/**", work, in("docs/new"), deny},
		{"denied, and perhaps it is that", deny, "**/.keys/**", work, in("nowhere"), ask},
		{"asked where it leads", ask, "**/.keys/**", work, in("docs/id"), ask},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rules := []Rule{{Effect: tt.effect, Paths: []string{tt.pattern}}}
			if tt.effect != allow {
				rules = append(rules, Rule{Effect: allow})
			}
			p, err := NewPolicy(rules...)
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range []string{"edit", "read"} {
				d := p.Decide(t.Context(), Request{Kind: kind, Cwd: tt.cwd, Paths: []string{tt.path}, Options: usual})
				got := d.Effect
				if d.By == ByNobody {
					got = ask
				}
				if got != tt.want {
					t.Errorf("%s: %+v, want %s", kind, d, tt.want)
				}
			}
		})
	}
}

// TestResolve: a policy of another machine's files follows links as it is told to.
func TestResolve(t *testing.T) {
	p, err := NewPolicy(Rule{Effect: EffectDeny, Paths: []string{"/secret/**"}}, Rule{Effect: EffectAllow})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	p.Resolve = func(path string) (string, error) {
		calls++
		switch path {
		case "/a/link":
			return "/secret/x", nil
		case "/a/broken":
			return "", errors.New("cannot tell")
		case "/a/odd":
			return "x", nil
		}
		return path, nil
	}
	for path, want := range map[string]Effect{"/a/link": EffectDeny, "/a/broken": EffectAsk, "/a/odd": EffectAsk, "/a/file": EffectAllow} {
		d := p.Decide(t.Context(), Request{Kind: "read", Paths: []string{path}, Options: usual})
		if d.By == ByNobody {
			d.Effect = EffectAsk
		}
		if d.Effect != want {
			t.Errorf("%s: %+v, want %s", path, d, want)
		}
	}
	calls = 0
	many := Request{Kind: "read", Options: usual}
	for i := range 2 * maxPlaces {
		many.Paths = append(many.Paths, fmt.Sprint("/b/", i))
	}
	if p.Decide(t.Context(), many); calls > maxPlaces {
		t.Errorf("%d paths were followed", calls)
	}
}

func TestResolvePath(t *testing.T) {
	dir := realDir(t)
	put(t, filepath.Join(dir, "a", "f"), "x")
	link(t, "a", filepath.Join(dir, "l"))
	link(t, "gone", filepath.Join(dir, "dangling"))
	for path, want := range map[string]string{
		"a/f": "a/f", "l/f": "a/f", "l/new/x": "a/new/x", "a/f/below": "a/f/below", "x/y": "x/y", "l/../a": "a",
		"dangling": "", "dangling/x": "",
	} {
		got, err := ResolvePath(filepath.Join(dir, path))
		if want == "" != (err != nil) || err == nil && got != filepath.Join(dir, want) {
			t.Errorf("%s: %s, %v, want %s", path, got, err, want)
		}
	}
	if os.Getuid() == 0 {
		return
	}
	if err := os.Chmod(filepath.Join(dir, "a"), 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(filepath.Join(dir, "a"), 0o700) }()
	if got, err := ResolvePath(filepath.Join(dir, "a", "f")); err == nil {
		t.Errorf("resolved to %s in a directory that cannot be searched", got)
	}
}
