// Package sizetest holds the functions and structs of a module to their size. For tests
// only.
package sizetest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The limits.
const (
	MaxLines  = 90 // of a function, from its first line to its last
	MaxFields = 30 // of a struct
)

// Check looks at every Go file below root that is part of the module there, generated files
// and tests aside. exceptions gives the reason why a function or struct may exceed its
// limit, by directory and name, such as "internal/wire unescape". An exception that is not
// needed fails the test.
func Check(t *testing.T, root string, exceptions map[string]string) {
	t.Helper()
	needed := map[string]bool{}
	over := func(where, name, what string) {
		key := where + " " + name
		needed[key] = true
		if exceptions[key] == "" {
			t.Errorf("%s %s: split it along a seam, or list it with the reason", key, what)
		}
	}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enter(root, p, d.Name())
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(f) {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(p))
		if err != nil {
			return err
		}
		measure(fset, f, filepath.ToSlash(rel), over)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for key := range exceptions {
		if !needed[key] {
			t.Errorf("the exception %q is not needed", key)
		}
	}
}

// enter skips directories that are not part of the module.
func enter(root, p, name string) error {
	if p == root {
		return nil
	}
	if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil || name == "testdata" || strings.HasPrefix(name, ".") {
		return fs.SkipDir
	}
	return nil
}

// measure calls over for every function and struct of a file that exceeds its limit.
func measure(fset *token.FileSet, f *ast.File, where string, over func(where, name, what string)) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if lines := fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1; lines > MaxLines {
				over(where, n.Name.Name, fmt.Sprintf("has %d lines, more than %d", lines, MaxLines))
			}
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok && s.Fields.NumFields() > MaxFields {
				over(where, n.Name.Name, fmt.Sprintf("has %d fields, more than %d", s.Fields.NumFields(), MaxFields))
			}
		}
		return true
	})
}
