package leaktest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unlooked are the packages that start goroutines and whose tests do not look for what is
// left of them, each with the reason.
var unlooked = map[string]string{
	"bench":                              "a program of its own module, which ends with its goroutines",
	"cmd/acp/internal/engine/enginetest": "for the tests of the databases, whose TestMain looks",
	"cmd/acp/internal/engine/postgres/pgtest": "for tests of others, whose TestMain looks",
	"cmd/acp/internal/journal/journaltest":    "for the tests of the backends, whose TestMain looks",
	"examples/rawagent":                       "a program; interop runs it",
	"examples/testy":                          "a program; interop runs it",
}

// TestEverywhere: the tests of each package that starts goroutines look for those that
// are left.
func TestEverywhere(t *testing.T) {
	root := filepath.Join("..", "..")
	starts, looks := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); p != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(p))
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(rel)
		if strings.HasSuffix(p, "_test.go") {
			data, err := os.ReadFile(p)
			text := string(data)
			looks[dir] = looks[dir] || strings.Contains(text, "func TestMain(") && strings.Contains(text, "leaktest.Main(m")
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				starts[dir] = true
			case *ast.SelectorExpr: // of package time or context
				if n.Sel.Name == "AfterFunc" {
					starts[dir] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(starts) < 15 {
		t.Errorf("only %d packages start goroutines: does this test look in the right place?", len(starts))
	}
	for dir := range starts {
		if !looks[dir] && unlooked[dir] == "" {
			t.Errorf("%s starts goroutines: its TestMain calls leaktest.Main", dir)
		}
	}
	for dir := range unlooked {
		if !starts[dir] || looks[dir] {
			t.Errorf("%s needs no exception", dir)
		}
	}
}
