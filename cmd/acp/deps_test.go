package main

import (
	"go/build"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const internal = "github.com/goacp/acp/cmd/acp/internal/"

// layers says which packages of the program each of them may import, tests
// aside. A package that is not listed fails the test: adding one is a decision.
// Frontends know no stores and no wire; the host knows no frontends.
var layers = map[string][]string{
	"agent":          {"config", "model"},
	"app":            {"agent", "config", "exitcode", "backend", "mcp", "remembered", "roster", "safetext", "store"},
	"cli":            {"app", "cli/agent", "cli/agents", "cli/auth", "cli/bridge", "cli/chat", "cli/check", "cli/completion", "cli/config", "cli/docs", "cli/exec", "cli/sessions", "cli/tap", "cli/trace", "cli/version", "exitcode", "interrupt", "mcp", "roster", "safetext", "store"},
	"cli/agent":      {"agent", "app", "exitcode"},
	"cli/agents":     {"app", "config", "exitcode", "ui/export", "launch", "mcp", "remembered", "roster", "safetext"},
	"cli/auth":       {"app", "exitcode", "backend", "pty", "safetext"},
	"cli/bridge":     {"app", "config", "exitcode", "launch", "remembered", "roster", "safetext"},
	"cli/chat":       {"app", "exitcode", "ui/plain", "roster", "store", "ui/tui"},
	"cli/check":      {"app", "exitcode", "launch", "record/file", "roster", "safetext", "tracecheck", "ui/export"},
	"cli/completion": {"app"},
	"cli/config":     {"app", "config", "exitcode", "ui/export", "mcp", "roster", "safetext"},
	"cli/docs":       {"app"},
	"cli/exec":       {"app", "config", "exitcode", "ui/export", "backend", "ui/plain", "roster", "safetext", "shown", "store"},
	"cli/sessions":   {"app", "exitcode", "ui/export", "history", "backend", "safetext", "store"},
	"cli/tap":        {"app", "config", "exitcode", "filelock", "launch", "record/page", "record/tap", "safetext"},
	"cli/trace":      {"app", "record/summary", "record/frame", "exitcode", "ui/export", "roster", "safetext", "store", "tracecheck", "record/file", "record/page"},
	"cli/version":    {"app"},
	"test/cli":       {},
	"config":         {"exitcode", "filelock", "shellline"},
	"record/summary": {"record/frame", "safetext"},
	"record/frame":   {},
	"exitcode":       {},
	"ui/export":      {"history", "markdown", "safetext", "shown", "store"},
	"filelock":       {},
	"launch":         {"exitcode", "roster", "safetext"},
	"history":        {"safetext"},
	"grant":          {},
	"backend":        {"exitcode", "launch", "grant", "history", "mcp", "pty", "remembered", "roster", "safetext", "store"},
	"interrupt":      {},
	"markdown":       {},
	"mcp":            {"config"},
	"model":          {},
	"ui/plain":       {"app", "exitcode", "history", "backend", "pty", "roster", "safetext", "shown", "store"},
	"pty":            {},
	"remembered":     {},
	"test/replay":    {},
	"roster":         {"config", "exitcode"},
	"safetext":       {},
	"test/screens":   {},
	"test/terminal":  {},
	"shellline":      {},
	"shown":          {},
	"store":          {"filelock", "store/legacy"},
	"store/legacy":   {"filelock"},
	"record/tap":     {"grant", "interrupt"},
	"tracecheck":     {},
	"record/file":    {"app", "exitcode", "safetext"},
	"ui/tui":         {"app", "config", "exitcode", "ui/export", "backend", "pty", "roster", "safetext", "store", "ui/tui/view"},
	"ui/tui/view":    {"history", "markdown", "safetext", "shown"},
	"record/page":    {"record/summary", "tracecheck"},
}

// TestImports holds the direction of imports in the program.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir("internal", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" {
			return fs.SkipDir
		}
		pkg, err := build.ImportDir(p, 0)
		if _, none := err.(*build.NoGoError); none {
			return nil
		}
		if err != nil {
			return err
		}
		dir := strings.TrimPrefix(filepath.ToSlash(p), "internal/")
		seen[dir] = true
		allowed, ok := layers[dir]
		if !ok {
			t.Errorf("package %q has no place in the layers", dir)
			return nil
		}
		for _, imp := range pkg.Imports {
			if own, inside := strings.CutPrefix(imp, internal); inside && !slices.Contains(allowed, own) {
				t.Errorf("%s imports %s, against the direction of the layers", dir, own)
			}
		}
		if slices.Contains([]string{"v1", "v2", "utils", "common", "helpers", "manager"}, path.Base(dir)) {
			t.Errorf("%s: no folder is called that here", dir)
		}
		for _, f := range slices.Concat(pkg.GoFiles, pkg.TestGoFiles, pkg.XTestGoFiles) {
			data, err := os.ReadFile(filepath.Join(p, f))
			if err != nil {
				return err
			}
			if n := strings.Count(string(data), "\n"); n > 600 {
				t.Errorf("%s has %d lines, more than 600", path.Join(dir, f), n)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range layers {
		if !seen[dir] {
			t.Errorf("the layers list %q, which does not exist", dir)
		}
	}
}
