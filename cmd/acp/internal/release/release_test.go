package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestVersion(t *testing.T) {
	for v, ok := range map[string]bool{
		"v0.1.0": true, "v1.20.3": true,
		"": false, "0.1.0": false, "v0.1": false, "v0.01.0": false, "v0.1.0-rc.1": false, "v0.1.0+x": false, "v2.0.0": false,
		"v0.1.0 ": false, "-v0.1.0": false,
	} {
		if err := checkVersion(v); (err == nil) != ok || err != nil && !errors.Is(err, errUsage) {
			t.Errorf("%q: %v", v, err)
		}
	}
}

// TestModules holds the modules of this repository to what a release needs: nothing is replaced, and
// all require one version of each other.
func TestModules(t *testing.T) {
	dir, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	work, err := os.ReadFile(filepath.Join(dir, "go.work"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range published[1:] {
		v, err := requirement(t.Context(), filepath.Join(dir, m.dir))
		if err != nil || v == "" {
			t.Errorf("%s requires %q: %v", m.path, v, err)
		}
		for _, other := range published[:2] {
			if line := other.path + " " + v + " => ./"; !strings.Contains(string(work), line) {
				t.Errorf("go.work does not replace %s", line)
			}
		}
	}
}

// repository makes a repository of the same modules, with little in them.
func repository(t *testing.T) clone {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	c := clone{dir: t.TempDir()}
	for name, text := range map[string]string{
		"go.mod":  "module github.com/goacp/acp\n\ngo 1.26.0\n",
		"go.sum":  "",
		"acp.go":  "package acp\n",
		"LICENSE": "free\n",
		"go.work": "go 1.26.0\n\nuse (\n\t.\n\t./acpws\n\t./cmd/acp\n)\n\nreplace (\n\tgithub.com/goacp/acp v0.1.0 => ./\n\tgithub.com/goacp/acp/acpws v0.1.0 => ./acpws\n)\n",

		"CHANGELOG.md":     "# Changes\n\n## Unreleased\n\n- A change.\n",
		"acpws/go.mod":     "module github.com/goacp/acp/acpws\n\ngo 1.26.0\n\nrequire github.com/goacp/acp v0.1.0\n",
		"acpws/go.sum":     "github.com/a/b v1.0.0 h1:x\ngithub.com/z/b v1.0.0 h1:x\n",
		"acpws/acpws.go":   "package acpws\n\nimport _ \"github.com/goacp/acp\"\n",
		"cmd/acp/go.mod":   "module github.com/goacp/acp/cmd/acp\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/goacp/acp v0.1.0\n\tgithub.com/goacp/acp/acpws v0.1.0\n)\n",
		"cmd/acp/go.sum":   "",
		"cmd/acp/main.go":  "package main\n\nimport _ \"github.com/goacp/acp/acpws\"\n\nfunc main() {}\n",
		"bench/go.mod":     "module github.com/goacp/acp/bench\n\ngo 1.26.0\n\nrequire github.com/goacp/acp v0.1.0\n",
		"interop/go.mod":   "module github.com/goacp/acp/interop\n\ngo 1.26.0\n\nrequire github.com/goacp/acp v0.1.0\n",
		latest:             "package version\n",
		"docs/install.md":  "# Install\n",
		"README.md":        "# acp\n",
		"SECURITY.md":      "# Security\n",
		"acpws/README.md":  "# acpws\n",
		"bench/go.work":    "go 1.26.0\n\nuse .\n",
		"interop/main.go":  "package main\n",
		"bench/main.go":    "package main\n",
		"cmd/acp/empty.go": "package main\n",
	} {
		c.put(t, name, text)
	}
	c.must(t, "init", "--quiet", "--initial-branch", "main")
	c.must(t, "config", "user.name", "A Releaser")
	c.must(t, "config", "user.email", "releaser@example.com")
	c.must(t, "config", "commit.gpgsign", "false")
	c.must(t, "config", "tag.gpgsign", "false")
	c.must(t, "add", "--all")
	c.must(t, "commit", "--quiet", "--message", "all: begin")
	return c
}

func (c clone) put(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(c.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c clone) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.git(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// state is everything a release may change.
func (c clone) state(t *testing.T) string {
	t.Helper()
	return c.must(t, "rev-parse", "HEAD") + "\n" + c.must(t, "for-each-ref") + "\n" + c.must(t, "status", "--porcelain")
}

// TestRelease: a release is one commit with three tags, whose go.sum has the sums of what was tagged. A
// release that is refused leaves the clone as it was.
func TestRelease(t *testing.T) {
	t.Setenv("GOFLAGS", "")
	c := repository(t)
	before := c.must(t, "rev-parse", "HEAD")
	refused := func(version, want string) {
		t.Helper()
		state := c.state(t)
		if err := release(t.Context(), c, version, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", version, err, want)
		}
		if d := cmp.Diff(state, c.state(t)); d != "" {
			t.Errorf("%s: -before +after\n%s", version, d)
		}
	}
	refused("0.1.0", "must be like")
	refused("v0.0.9", "older than v0.1.0, which go.mod requires")
	c.put(t, "new.txt", "new\n")
	refused("v0.1.0", "commit or stash")
	if err := os.Remove(filepath.Join(c.dir, "new.txt")); err != nil {
		t.Fatal(err)
	}
	if err := release(t.Context(), c, "v0.1.0", io.Discard); err != nil {
		t.Fatal(err)
	}
	refused("v0.1.0", "v0.1.0, which is tagged")
	released(t, c, "v0.1.0", before)

	before = c.must(t, "rev-parse", "HEAD")
	c.must(t, "tag", "acpws/v0.2.0")
	refused("v0.2.0", "not newer than acpws/v0.2.0, which is tagged")
	if err := release(t.Context(), c, "v0.10.0", io.Discard); err != nil {
		t.Fatal(err)
	}
	released(t, c, "v0.10.0", before)
	work := c.must(t, "show", "HEAD:go.work")
	for _, want := range []string{"acp v0.10.0 => ./\n", "acpws v0.10.0 => ./acpws\n"} {
		if !strings.Contains(work, want) {
			t.Errorf("go.work has no %q:\n%s", want, work)
		}
	}

	c.put(t, "CHANGELOG.md", "# Changes\n")
	c.must(t, "commit", "--quiet", "--all", "--message", "docs: lose a heading")
	refused("v0.11.0", `CHANGELOG.md has "## Unreleased" 0 times`)
	c.put(t, "cmd/acp/go.mod", c.must(t, "show", "HEAD:cmd/acp/go.mod")+"\nreplace github.com/goacp/acp => ../..\n")
	c.must(t, "commit", "--quiet", "--all", "--message", "cmd/acp: replace")
	refused("v0.11.0", "nobody could install it")
}

func released(t *testing.T, c clone, version, from string) {
	t.Helper()
	head := c.must(t, "rev-parse", "HEAD")
	for _, tag := range []string{version, "acpws/" + version, "cmd/acp/" + version} {
		if at := c.must(t, "rev-parse", tag+"^{commit}"); at != head {
			t.Errorf("%s is at %s, not %s", tag, at, head)
		}
	}
	if parent := c.must(t, "rev-parse", "HEAD^"); parent != from {
		t.Errorf("the release follows %s, not %s", parent, from)
	}
	if s := c.must(t, "status", "--porcelain"); s != "" {
		t.Errorf("left: %s", s)
	}
	if who := c.must(t, "log", "-1", "--format=%an <%ae>"); who != "A Releaser <releaser@example.com>" {
		t.Errorf("made by %s", who)
	}
	if s := c.must(t, "show", "HEAD:"+latest); !strings.Contains(s, version) || !strings.Contains(s, from) {
		t.Errorf("%s: %s", latest, s)
	}
	if s := c.must(t, "show", "HEAD:CHANGELOG.md"); !strings.Contains(s, "## Unreleased\n\n## "+version+", ") {
		t.Errorf("CHANGELOG.md: %s", s)
	}
	for _, dir := range []string{"bench", "interop"} {
		if s := c.must(t, "show", "HEAD:"+dir+"/go.mod"); !strings.Contains(s, root+" "+version) {
			t.Errorf("%s/go.mod: %s", dir, s)
		}
	}
	// With the checkout alone, without its workspace: what go.mod and go.sum say is enough.
	cache := filepath.Join(t.TempDir(), "modules")
	env, err := c.modules(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	out, err := command(t.Context(), filepath.Join(c.dir, "cmd/acp"), append(env, "GOPROXY=off"), "go", "list", "-mod=readonly",
		"-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}")
	if want := "github.com/goacp/acp " + version + "\ngithub.com/goacp/acp/acpws " + version; err != nil || !strings.Contains(out, want) {
		t.Errorf("%v, %s", err, out)
	}
}

// TestCancelled: a release that is interrupted leaves the clone as it was.
func TestCancelled(t *testing.T) {
	c := repository(t)
	state := c.state(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := release(ctx, c, "v0.1.0", io.Discard); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if d := cmp.Diff(state, c.state(t)); d != "" {
		t.Error(d)
	}
}

// TestAbsolute: documents in archives link to the repository at their version.
func TestAbsolute(t *testing.T) {
	got := string(absolute([]byte("[a](web.md#b), [c](../README.md), ![d](x/y.svg), [e](#f), [g](https://example.com/h.md), `i`(j)"), "v0.1.0", "docs"))
	const at = "https://github.com/goacp/acp/blob/v0.1.0/"
	want := "[a](" + at + "docs/web.md#b), [c](" + at + "README.md), ![d](" + at + "docs/x/y.svg), [e](#f), [g](https://example.com/h.md), `i`(j)"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestPack: archives of the same files are the same bytes, and have what was put into them.
func TestPack(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 1, 0, time.UTC)
	files := map[string]file{"acp": {[]byte("program"), 0o755}, "man/man1/acp.1": {[]byte("page"), 0o644}, "LICENSE": {[]byte("free"), 0o644}}
	want := []string{"acp_1/LICENSE -rw-r--r-- free", "acp_1/acp -rwxr-xr-x program", "acp_1/man/man1/acp.1 -rw-r--r-- page"}
	for name, pack := range map[string]func(string, map[string]file, time.Time) ([]byte, error){"tar": tarred, "zip": zipped} {
		first, err := pack("acp_1", files, at)
		if err != nil {
			t.Fatal(err)
		}
		second, err := pack("acp_1", files, at.In(time.FixedZone("elsewhere", 3600)).UTC())
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s: two archives differ, %v", name, err)
		}
		unpack := untarred
		if name == "zip" {
			unpack = unzipped
		}
		if d := cmp.Diff(want, unpack(t, first, at)); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
}

func untarred(t *testing.T, data []byte, at time.Time) (out []string) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || !h.ModTime.Equal(at) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" {
			t.Errorf("%+v, %v", h, err)
		}
		out = append(out, h.Name+" "+h.FileInfo().Mode().String()+" "+string(text))
	}
}

func unzipped(t *testing.T, data []byte, at time.Time) (out []string) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || !f.Modified.Equal(at) {
			t.Errorf("%+v, %v", f.FileHeader, err)
		}
		out = append(out, f.Name+" "+f.Mode().String()+" "+string(text))
	}
	return out
}
