package shellline_test

import (
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
	"github.com/goacp/acp/internal/long"
)

//go:embed testdata/harmless.txt
var harmlessLines string

//go:embed testdata/seeming.txt
var seemingLines string

// linesOf returns the lines of a file that are no comments.
func linesOf(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, "## ") {
			lines = append(lines, strings.ReplaceAll(line, "⏎", "\n"))
		}
	}
	return lines
}

// project makes a directory with the files that the lines of the tables name, and returns it; with traps there are also
// files that hold keys, links that lead out, and names that may be taken for options.
func project(t testing.TB, traps bool) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "work")
	files := []string{
		"work/main.go", "work/go.mod", "work/README.md", "work/package.json", "work/src/a.go", "work/src/b.go", "work/src/deep/c.py", "work/docs/guide.md", "work/logs/app.log", "work/a.tar.gz", "work/.hidden", "outside/secret.txt",
	}
	if traps {
		files = append(files, "work/keys/.env", "work/keys/id_rsa", "work/odd/-delete", "work/odd/a b", "work/keys/d1/.env", "work/keys/d1/x.go", "work/x /main.go", "work/one/a.txt", "work/two/a.txt", "work/hid/.env", "work/hid/a.go")
	}
	for _, file := range files {
		file = filepath.Join(top, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{"work/in": "src"}
	if traps {
		links["work/out"], links["work/linked/secret"] = "../outside", "../../outside/secret.txt"
		links["work/one/l"] = "../../outside/secret.txt"
	}
	for link, to := range links {
		link = filepath.Join(top, link)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, link); err != nil {
			t.Skip(err)
		}
	}
	return dir
}

// harmlessIn returns what the judge says of a line in a directory.
func harmlessIn(line, dir string) acphost.Harmless {
	req := request(line)
	req.Cwd = dir
	return (&acphost.Policy{Commands: shellline.Parser{}}).Harmless(req, dir)
}

// TestHarmless: of 400 lines that only read at least 97 % are known as harmless, and none of 400 that only look so.
func TestHarmless(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nothing is harmless there")
	}
	dir := project(t, false)
	lines, missed := linesOf(harmlessLines), 0
	for _, line := range lines {
		if h := harmlessIn(line, dir); h.Why != "" {
			missed++
			t.Logf("asked about: %s: %s", line, h.Why)
		}
	}
	if len(lines) < 400 || missed*100 > len(lines)*3 {
		t.Errorf("%d of %d harmless lines are asked about", missed, len(lines))
	}
	lines, dir = linesOf(seemingLines), project(t, true)
	for _, line := range lines {
		if h := harmlessIn(line, dir); h.Why == "" {
			t.Errorf("runs without a question: %s", line)
		}
	}
	if len(lines) < 400 {
		t.Errorf("only %d lines that look harmless", len(lines))
	}
}

// TestHarmlessRemainder: where a rule allows a part of a line, a part that only reads needs none of its own.
func TestHarmlessRemainder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nothing is harmless there")
	}
	dir := project(t, true)
	policy := newPolicy(t, acphost.Rule{Effect: acphost.EffectAllow, Commands: []string{"go test *"}})
	for line, want := range map[string]bool{
		"go test ./... | tail -20": true, "go test ./... 2>&1 | grep -v '^ok' | head -50": true, "cd src && go test ./... | tail -5": true, "go test ./... && cat main.go": true,
		"go test ./... | sort | uniq -c": true, "go test ./...; ls -la src": true, "timeout 60 go test ./... | tail -3": true, "go test ./src/... 2>&1 | sed -n '1,20p'": true,
		"tail -20 main.go": false, "go test ./... | tee x": false, "go test ./... | tail -20 > x": false, "go test ./... && cat keys/.env": false, "go test ./... && cat out/secret.txt": false,
		"go test ./... && cat /etc/passwd": false, "go test ./... | sort -o main.go": false, "go test ./... | xargs cat": false, "go test ./... && grep -r x .": false, "go test ./... && touch x": false,
		"go test ./... && git status":      false, // settings of the repository may name programs, and nobody keeps git from them here
		"f() { go test ./...; }; f | tail": false, "go test ./... | tail & ls": false,
	} {
		req := request(line)
		req.Cwd = dir
		if d := policy.Decide(t.Context(), req); (d.Effect == acphost.EffectAllow) != want {
			t.Errorf("%s: %s: %s", line, d.Effect, d.Reason)
		}
	}
}

// TestHarmlessForbidden: what only reads a file that a rule keeps from being read is not harmless beside what is allowed.
func TestHarmlessForbidden(t *testing.T) {
	dir := project(t, true)
	policy := newPolicy(t, acphost.Rule{Effect: acphost.EffectDeny, Kinds: []string{"read"}, Paths: []string{"**/main.go"}},
		acphost.Rule{Effect: acphost.EffectAllow, Commands: []string{"go test *"}})
	for _, line := range []string{"go test ./... ; cat main.go", "go test ./... ; cat main.g?", "go test ./... ; grep -r x ."} {
		req := request(line)
		req.Cwd = dir
		if d := policy.Decide(t.Context(), req); d.Effect == acphost.EffectAllow {
			t.Errorf("%s: %s", line, d.Reason)
		}
	}
}

// TestHarmlessElsewhere: files on another machine cannot be looked at, so lines that read some are not known as harmless.
func TestHarmlessElsewhere(t *testing.T) {
	dir := project(t, false)
	far := newPolicy(t, acphost.Rule{Effect: acphost.EffectAllow, Commands: []string{"go test *"}})
	far.Resolve = func(path string) (string, error) { return path, nil }
	here := newPolicy(t, acphost.Rule{Effect: acphost.EffectAllow, Commands: []string{"go test *"}})
	for _, tt := range []struct {
		policy *acphost.Policy
		dir    string
		line   string
		want   bool
	}{
		{here, dir, "go test ./... && cat main.go", runtime.GOOS != "windows"}, {far, dir, "go test ./... && cat main.go", false}, {here, dir + "/none", "go test ./... && cat main.go", false},
		{far, dir, "go test ./... | tail -5", runtime.GOOS != "windows"}, {here, dir + "/none", "go test ./... | tail -5", runtime.GOOS != "windows"},
	} {
		req := request(tt.line)
		req.Cwd = tt.dir
		if d := tt.policy.Decide(t.Context(), req); (d.Effect == acphost.EffectAllow) != tt.want {
			t.Errorf("%s in %s: %s: %s", tt.line, tt.dir, d.Effect, d.Reason)
		}
	}
}

// TestHarmlessRuns: a shell that runs the harmless lines leaves every file and directory as it was.
func TestHarmlessRuns(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	dir := project(t, false)
	top := filepath.Dir(dir)
	home := filepath.Join(top, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, top)
	for i, line := range linesOf(harmlessLines) {
		if i%10 > 0 && !long.All() || strings.Contains(line, "tail -f") || strings.Contains(line, "go ") || strings.Contains(line, "gofmt") { // go counts its runs
			continue
		}
		cmd := exec.CommandContext(t.Context(), bash, "-c", line)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + t.TempDir(), "GIT_CEILING_DIRECTORIES=" + top}
		_ = cmd.Run() // it may fail, since programs are missing
		if diff := cmp.Diff(before, snapshot(t, top)); diff != "" {
			t.Fatalf("%s has changed something:\n%s", line, diff)
		}
	}
}

// snapshot returns what is below a directory: names, sizes, modes and the times of changes.
func snapshot(t *testing.T, top string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			all[path] = fmt.Sprint(info.Size(), info.Mode(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
