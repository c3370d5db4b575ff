package acp_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestTypeDocs holds that the documentation of each exported type of the library's
// packages begins with its name, not with a comment of the group or of the type
// before.
func TestTypeDocs(t *testing.T) {
	for _, dir := range []string{".", "acphost", "acphttp", "acpstore", "acptest", "conformance", "jsonrpc", "trace", "transcript", "acpv1", "acpv2"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
			return !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go")
		})
		for _, e := range entries {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, dir+"/"+e.Name(), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != token.TYPE {
					continue
				}
				for _, spec := range g.Specs {
					s := spec.(*ast.TypeSpec)
					doc := s.Doc.Text()
					if doc == "" && !g.Lparen.IsValid() {
						doc = g.Doc.Text()
					}
					words := strings.Fields(doc)
					if len(words) > 0 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
						words = words[1:]
					}
					if s.Name.IsExported() && (len(words) == 0 || strings.TrimRight(words[0], ".,:;'s") != strings.TrimRight(s.Name.Name, "s")) {
						t.Errorf("%s: the documentation of %s begins with %.60q", fset.Position(s.Pos()), s.Name.Name, doc)
					}
				}
			}
		}
	}
}
