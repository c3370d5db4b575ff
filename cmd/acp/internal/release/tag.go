package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

const root = "github.com/goacp/acp"

// A module is one that is released.
type module struct {
	path string
	dir  string // in the repository
}

// published are the modules that are released, each after those that it requires.
var published = []module{{root, "."}, {root + "/acpws", "acpws"}, {root + "/cmd/acp", "cmd/acp"}}

// users are the other modules of the repository, which replace ours by the checkout. The go command
// insists all the same that they require no older version than the checkout does.
var users = []string{"bench", "interop"}

// latest is the file by which the program knows its release.
const latest = "cmd/acp/internal/cli/version/latest.go"

// tag returns the tag of a version of the module.
func (m module) tag(version string) string {
	if m.dir == "." {
		return version
	}
	return path.Join(m.dir, version)
}

// release commits version and tags it, in c. It works in a clone of c, so that c stays as it is unless
// everything succeeds.
func release(ctx context.Context, c clone, version string, out io.Writer) (err error) {
	if err := checkVersion(version); err != nil {
		return err
	}
	required, err := c.check(ctx, version)
	if err != nil {
		return err
	}
	from, err := c.git(ctx, "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "acp-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	s := clone{dir: filepath.Join(temp, "clone")}
	// A name that only this clone has in its configuration is needed in the other one, too.
	if s.env, err = c.identity(ctx); err != nil {
		return err
	}
	if _, err := git(ctx, temp, "clone", "--quiet", "--no-tags", c.dir, s.dir); err != nil {
		return err
	}
	if err := s.write(ctx, version, required, from, time.Now()); err != nil {
		return err
	}
	if err := s.commit(ctx, version, filepath.Join(temp, "modules")); err != nil {
		return err
	}
	branch, err := c.git(ctx, "rev-parse", "--abbrev-ref", "HEAD")
	if err != nil {
		return err
	}
	// From here on the clone changes, which an interruption would leave half done.
	if err := c.take(context.WithoutCancel(ctx), s, version); err != nil {
		return err
	}
	if branch == "HEAD" { // no branch is checked out
		branch = "HEAD:main"
	}
	_, err = fmt.Fprintf(out, "Release %s is committed and tagged, and nothing is pushed. To publish it:\n\n"+
		"\tgit push --atomic origin %s %s\n\nFor its archives: .ci/archives %[1]s DIR\n", version, branch, strings.Join(tags(version), " "))
	return err
}

func tags(version string) (out []string) {
	for _, m := range published {
		out = append(out, m.tag(version))
	}
	return out
}

// check returns an error if version cannot be made from c as it is, and otherwise the version that
// the modules require of each other.
func (c clone) check(ctx context.Context, version string) (required string, err error) {
	changes, err := c.git(ctx, "status", "--porcelain")
	if err != nil {
		return "", err
	}
	if changes != "" {
		return "", fmt.Errorf("commit or stash what the checkout has beside its commits first:\n%s", changes)
	}
	list, err := c.git(ctx, "tag", "--list")
	if err != nil {
		return "", err
	}
	for _, t := range strings.Fields(list) {
		for _, m := range published {
			v := path.Base(t)
			if t == m.tag(v) && semver.IsValid(v) && semver.Compare(v, version) >= 0 {
				return "", fmt.Errorf("%s is not newer than %s, which is tagged", version, t)
			}
		}
	}
	for _, m := range published {
		v, err := requirement(ctx, filepath.Join(c.dir, m.dir))
		switch {
		case err != nil:
			return "", err
		case v == "": // the root requires none of the others
		case required != "" && v != required:
			return "", fmt.Errorf("%s/go.mod requires %s of our modules, another one %s", m.dir, v, required)
		default:
			required = v
		}
	}
	if semver.Compare(required, version) > 0 {
		return "", fmt.Errorf("%s is older than %s, which go.mod requires; git fetch --tags brings missing tags", version, required)
	}
	return required, nil
}

// requirement returns the version of our modules that the module in dir requires. A module that could
// not be fetched is an error.
func requirement(ctx context.Context, dir string) (string, error) {
	out, err := command(ctx, dir, []string{"GOWORK=off"}, "go", "mod", "edit", "-json")
	if err != nil {
		return "", err
	}
	var mod struct {
		Module  struct{ Path string }
		Require []struct{ Path, Version string }
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.Unmarshal([]byte(out), &mod); err != nil {
		return "", fmt.Errorf("go.mod in %s: %w", dir, err)
	}
	for _, r := range mod.Replace {
		return "", fmt.Errorf("go.mod of %s replaces %s: nobody could install it; replace in go.work", mod.Module.Path, r.Old.Path)
	}
	version := ""
	for _, r := range mod.Require {
		if r.Path != root && !strings.HasPrefix(r.Path, root+"/") {
			continue
		}
		if checkVersion(r.Version) != nil || r.Version == "v0.0.0" || version != "" && r.Version != version {
			return "", fmt.Errorf("go.mod of %s requires %s %s", mod.Module.Path, r.Path, r.Version)
		}
		version = r.Version
	}
	return version, nil
}

// identity returns who commits here, as variables of the environment.
func (c clone) identity(ctx context.Context) ([]string, error) {
	var env []string
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		ident, err := c.git(ctx, "var", "GIT_"+who+"_IDENT") // Name <mail> seconds zone
		if err != nil {
			return nil, err
		}
		name, rest, _ := strings.Cut(ident, " <")
		mail, _, _ := strings.Cut(rest, ">")
		env = append(env, "GIT_"+who+"_NAME="+name, "GIT_"+who+"_EMAIL="+mail)
	}
	return env, nil
}

// write writes everything that says which release it is, but the sums of the modules.
func (c clone) write(ctx context.Context, version, required, from string, now time.Time) error {
	var commit string
	var seconds int64
	if _, err := fmt.Sscan(from, &commit, &seconds); err != nil {
		return fmt.Errorf("git log printed %q: %w", from, err)
	}
	at := time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	if err := os.WriteFile(filepath.Join(c.dir, latest), latestFile(version, commit, at), 0o644); err != nil {
		return err
	}
	const heading = "\n## Unreleased\n"
	if err := c.edit("CHANGELOG.md", heading, heading+"\n## "+version+", "+now.Format(time.DateOnly)+"\n"); err != nil {
		return err
	}
	for _, m := range published[:2] {
		if err := c.edit("go.work", m.path+" "+required+" =>", m.path+" "+version+" =>"); err != nil {
			return err
		}
	}
	for _, dir := range append([]string{"acpws", "cmd/acp"}, users...) {
		args := []string{"mod", "edit", "-require=" + root + "@" + version}
		if dir != "acpws" {
			args = append(args, "-require="+root+"/acpws@"+version)
		}
		if _, err := command(ctx, filepath.Join(c.dir, dir), []string{"GOWORK=off"}, "go", args...); err != nil {
			return err
		}
	}
	return nil
}

// edit replaces what is once in a file.
func (c clone) edit(file, old, with string) error {
	name := filepath.Join(c.dir, file)
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if n := bytes.Count(data, []byte(old)); n != 1 {
		return fmt.Errorf("%s has %q %d times, not once", file, strings.TrimSpace(old), n)
	}
	return os.WriteFile(name, bytes.Replace(data, []byte(old), []byte(with), 1), 0o644)
}

func latestFile(version, commit, at string) []byte {
	return fmt.Appendf(nil, `package version

// latest is the latest release that this source follows or is. Written by .ci/release.
var latest = release{version: %q, commit: %q, time: %q}
`, version, commit, at)
}

// commit commits what was written and tags it. The sum of a module is known when it is committed, and
// no module has its own: each is tagged, fetched as users fetch it, and written into go.sum of those
// that require it. All of them are one commit in the end.
func (c clone) commit(ctx context.Context, version, cache string) error {
	message := []string{"commit", "--quiet", "--all", "--message", "all: release " + version}
	if _, err := c.git(ctx, message...); err != nil {
		return err
	}
	for i, m := range published {
		if _, err := c.git(ctx, "tag", "--no-sign", m.tag(version)); err != nil {
			return err
		}
		later := published[i+1:]
		if len(later) == 0 {
			break
		}
		sums, err := c.download(ctx, m, version, filepath.Join(cache, "first"))
		if err != nil {
			return err
		}
		for _, user := range later {
			if err := addSums(filepath.Join(c.dir, user.dir, "go.sum"), m.path, sums); err != nil {
				return err
			}
		}
		if _, err := c.git(ctx, append(message, "--amend")...); err != nil {
			return err
		}
	}
	written, err := os.ReadFile(filepath.Join(c.dir, "cmd/acp/go.sum"))
	if err != nil {
		return err
	}
	for i, m := range published {
		if _, err := c.git(ctx, "tag", "--force", "--annotate", "--message", m.path+" "+version, m.tag(version)); err != nil {
			return err
		}
		sums, err := c.download(ctx, m, version, filepath.Join(cache, "last"))
		if err != nil {
			return err
		}
		if i+1 < len(published) && !strings.Contains(string(written), strings.Join(sums, "\n")+"\n") {
			return fmt.Errorf("cmd/acp/go.sum does not have the sums of what is tagged:\n%s", strings.Join(sums, "\n"))
		}
	}
	return nil
}

// download fetches a module at its tag in c and returns its lines for go.sum.
func (c clone) download(ctx context.Context, m module, version, cache string) ([]string, error) {
	dir := filepath.Dir(cache) // outside of any module
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	env, err := c.modules(ctx, cache)
	if err != nil {
		return nil, err
	}
	out, err := command(ctx, dir, env, "go", "mod", "download", "-json", m.path+"@"+version)
	if err != nil {
		return nil, err
	}
	var got struct{ Sum, GoModSum string }
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Sum == "" || got.GoModSum == "" {
		return nil, fmt.Errorf("go mod download %s@%s printed %s: %w", m.path, version, out, err)
	}
	return []string{m.path + " " + version + " " + got.Sum, m.path + " " + version + "/go.mod " + got.GoModSum}, nil
}

// addSums writes the lines of a module into go.sum, instead of those of its earlier version.
func addSums(file, modulePath string, lines []string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var out []string
	added := false
	for line := range strings.Lines(string(data)) {
		p, _, _ := strings.Cut(line, " ")
		if !added && p > modulePath {
			out, added = append(out, strings.Join(lines, "\n")+"\n"), true
		}
		if p != modulePath {
			out = append(out, line)
		}
	}
	if !added {
		out = append(out, strings.Join(lines, "\n")+"\n")
	}
	return os.WriteFile(file, []byte(strings.Join(out, "")), 0o644)
}

// take brings the release from s into c: the tags, and the commit to what is checked out.
func (c clone) take(ctx context.Context, s clone, version string) error {
	fetch := []string{"fetch", "--quiet", "--no-tags", "--atomic", s.dir}
	drop := []string{"tag", "--delete"}
	for _, t := range tags(version) {
		fetch = append(fetch, "refs/tags/"+t+":refs/tags/"+t)
		drop = append(drop, t)
	}
	if _, err := c.git(ctx, fetch...); err != nil {
		return err
	}
	if _, err := c.git(ctx, "merge", "--quiet", "--ff-only", version); err != nil {
		_, undo := c.git(ctx, drop...)
		return errors.Join(err, undo)
	}
	return nil
}
