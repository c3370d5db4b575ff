package acp_test

import (
	"go/build"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/sizetest"
)

const module = "github.com/goacp/acp"

// layers lists what each package of the library may import from the module,
// tests aside. A package that is not listed fails the test: adding one is a
// decision.
var layers = map[string][]string{
	"internal/wire":       {},
	"internal/faultlog":   {},
	"internal/detach":     {},
	"internal/ondemand":   {},
	"internal/plaintext":  {},
	"internal/process":    {"internal/plaintext"},
	"internal/patch":      {"internal/plaintext"},
	"internal/timeline":   {},
	"internal/turnstile":  {},
	"internal/packed":     {},
	"internal/pattern":    {"internal/wire"},
	"internal/cursors":    {"acpv2"},
	"internal/skills":     {"acpv2"},
	"internal/told":       {"acpv1", "acpv2", "internal/translate"},
	"internal/translate":  {"acpv1", "acpv2", "internal/patch", "internal/plaintext", "internal/skills", "internal/wire"},
	"jsonrpc":             {"internal/faultlog", "internal/ondemand", "internal/wire"},
	"transcript":          {"acpv1", "acpv2", "internal/told", "internal/translate", "internal/wire"},
	"acpv1":               {"internal/wire", "jsonrpc"},
	"acpv2":               {"internal/wire", "jsonrpc"},
	"acphost":             {"", "acpv1", "acpv2", "internal/detach", "internal/process", "internal/told", "jsonrpc"},
	"":                    {"acpv1", "acpv2", "internal/cursors", "internal/detach", "internal/faultlog", "internal/patch", "internal/process", "internal/skills", "internal/timeline", "internal/told", "internal/translate", "internal/turnstile", "internal/wire", "jsonrpc"},
	"internal/gen":        {"internal/overlay"},
	"internal/overlay":    {},
	"internal/sample":     {},
	"internal/registry":   {"acpv1", "acpv2", "internal/wire", "jsonrpc"},
	"internal/leaktest":   {"internal/ramtemp"},
	"internal/ramtemp":    {},
	"internal/logtest":    {},
	"internal/idtest":     {"jsonrpc"},
	"internal/long":       {},
	"internal/remotetest": {"", "internal/logtest"},
	"internal/sizetest":   {},
	"internal/retest":     {},
	"internal/standin":    {},
	"internal/updatetest": {"acpv1", "acpv2"},
	"examples/bridge":     {""},
	"examples/echo":       {""},
	"examples/oneshot":    {""},
	"examples/policy":     {"", "acphost", "acpv1"},
	"acpstore":            {"", "acpv2", "jsonrpc"},
	"acphttp":             {"", "internal/sleep", "internal/webguard", "internal/wire", "jsonrpc"},
	"internal/sleep":      {},
	"internal/webguard":   {},
	"acptest":             {"", "internal/pattern", "internal/sleep", "internal/wire", "jsonrpc"},
	"conformance":         {"acpv1", "acpv2", "internal/packed", "internal/pattern", "internal/wire", "jsonrpc", "trace"},
	"trace":               {"internal/wire", "jsonrpc"},
	"examples/rawagent":   {"acpv1", "acpv2", "jsonrpc"},
	"examples/rawclient":  {"acpv1", "acpv2", "jsonrpc"},
	"examples/resume":     {"", "acpstore"},
	"examples/testy":      {"", "acpv1", "acpv2", "jsonrpc"},
	"examples/tools":      {""},
}

// testOnly lists the packages outside the standard library that tests may use.
var testOnly = []string{"github.com/google/go-cmp"}

// packages returns every package of this module, by its directory.
func packages(t *testing.T) map[string]*build.Package {
	t.Helper()
	out := map[string]*build.Package{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name := d.Name()
		if p != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(p, "go.mod")); p != "." && err == nil {
			return fs.SkipDir // another module
		}
		pkg, err := build.ImportDir(p, 0)
		if _, none := err.(*build.NoGoError); none {
			return nil
		}
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(p)
		if dir == "." {
			dir = ""
		}
		out[dir] = pkg
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// TestImports holds the import direction of the design and the rule that the
// library needs nothing but the standard library.
func TestImports(t *testing.T) {
	pkgs := packages(t)
	for dir, pkg := range pkgs {
		allowed, ok := layers[dir]
		if !ok {
			t.Errorf("package %q has no place in the layers", path.Join(module, dir))
			continue
		}
		for _, imp := range pkg.Imports {
			own, inside := strings.CutPrefix(imp, module+"/")
			switch {
			case standard(imp):
			case imp == module && slices.Contains(allowed, ""):
			case !inside:
				t.Errorf("%s imports %s: the library uses the standard library only", path.Join(module, dir), imp)
			case !slices.Contains(allowed, own):
				t.Errorf("%s imports %s, against the direction of the layers", path.Join(module, dir), imp)
			}
		}
		for _, imp := range slices.Concat(pkg.TestImports, pkg.XTestImports) {
			if standard(imp) || strings.HasPrefix(imp+"/", module+"/") {
				continue
			}
			if !slices.ContainsFunc(testOnly, func(p string) bool { return strings.HasPrefix(imp+"/", p+"/") }) {
				t.Errorf("tests of %s import %s", path.Join(module, dir), imp)
			}
		}
	}
	for dir := range layers {
		if pkgs[dir] == nil {
			t.Errorf("the layers list %q, which does not exist", dir)
		}
	}
}

// TestModules: whoever uses the library without package acpws gets the sums of what its
// tests use, and of nothing else; package acpws adds one module.
func TestModules(t *testing.T) {
	for file, want := range map[string][]string{
		"go.sum":       testOnly,
		"acpws/go.sum": append([]string{"github.com/coder/websocket"}, testOnly...),
	} {
		data, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(data)) {
			got = append(got, strings.Fields(line)[0])
		}
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%s lists %q, not %q", file, got, want)
		}
	}
	pkg, err := build.ImportDir("acpws", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, imp := range pkg.Imports {
		if !standard(imp) && !slices.Contains([]string{"github.com/coder/websocket", module + "/acphttp", module + "/jsonrpc"}, imp) {
			t.Errorf("package acpws imports %s", imp)
		}
	}
}

// TestFolders holds rules of the house about names and sizes.
func TestFolders(t *testing.T) {
	banned := []string{"v1", "v2", "utils", "common", "helpers", "manager"}
	for dir, pkg := range packages(t) {
		if slices.Contains(banned, path.Base(dir)) {
			t.Errorf("%s: no folder is called that here", dir)
		}
		for _, f := range slices.Concat(pkg.GoFiles, pkg.TestGoFiles, pkg.XTestGoFiles) {
			data, err := os.ReadFile(filepath.Join(pkg.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			limit := 600
			if strings.HasPrefix(string(data), "// Code generated ") {
				limit = 1500
			}
			if n := strings.Count(string(data), "\n"); n > limit {
				t.Errorf("%s has %d lines, more than %d", path.Join(dir, f), n, limit)
			}
		}
	}
}

// TestSizes holds functions and structs to their limits.
func TestSizes(t *testing.T) {
	sizetest.Check(t, ".", map[string]string{
		". Agent": "options: a field for each hook",
	})
}
