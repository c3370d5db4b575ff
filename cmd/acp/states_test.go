package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// maxBooleans is how many booleans a struct of what owns sessions may have: more than that are a state without a name.
const maxBooleans = 3

// TestStates holds that what owns sessions keeps its states as such.
func TestStates(t *testing.T) {
	for _, dir := range []string{"agent", "backend", "engine", "gateway", "holder", "journal", "store"} {
		err := filepath.WalkDir(filepath.Join("internal", dir), func(p string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(p) != ".go" || strings.HasSuffix(p, "_test.go") {
				return err
			}
			if dir == "agent" && filepath.Dir(p) != filepath.Join("internal", dir) {
				return nil // its tools own no sessions
			}
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, p, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.StructType)
				if !ok {
					return true
				}
				booleans := 0
				for _, field := range s.Fields.List {
					if is, ok := field.Type.(*ast.Ident); ok && is.Name == "bool" {
						booleans += len(field.Names)
					}
				}
				if booleans > maxBooleans {
					t.Errorf("%s: a struct has %d booleans", files.Position(s.Pos()), booleans)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
