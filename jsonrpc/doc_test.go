package jsonrpc

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProtocolLayers: what the package documentation lists as being for protocol
// layers begins its own documentation with that, and nothing else does.
func TestProtocolLayers(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(doc), "# For protocol layers")
	if !ok {
		t.Fatal("no section")
	}
	var listed []string
	for _, m := range regexp.MustCompile(`\[([\w.]+)\]`).FindAllStringSubmatch(section, -1) {
		listed = append(listed, m[1])
	}
	var marked []string
	look := func(name string, doc *ast.CommentGroup) {
		if short := name[strings.LastIndexByte(name, '.')+1:]; strings.HasPrefix(doc.Text(), short+" is for protocol layers. ") {
			marked = append(marked, name)
		} else if strings.Contains(doc.Text(), "for protocol layers") {
			t.Errorf("%s mentions protocol layers in another form", name)
		}
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := file.Name(); !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name == "doc.go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		documented(f, look)
	}
	slices.Sort(listed)
	slices.Sort(marked)
	if diff := cmp.Diff(listed, slices.DeleteFunc(marked, func(s string) bool { return s == "Pending.Wait" })); diff != "" {
		t.Errorf("listed -, marked +:\n%s", diff)
	}
}

// documented calls look with the names and comments of a file's declarations.
func documented(f *ast.File, look func(name string, doc *ast.CommentGroup)) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				recv := d.Recv.List[0].Type
				if p, ok := recv.(*ast.StarExpr); ok {
					recv = p.X
				}
				switch i := recv.(type) {
				case *ast.IndexExpr:
					recv = i.X
				case *ast.IndexListExpr:
					recv = i.X
				}
				name = recv.(*ast.Ident).Name + "." + name
			}
			look(name, d.Doc)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					look(s.Name.Name, d.Doc)
					if st, ok := s.Type.(*ast.StructType); ok {
						for _, field := range st.Fields.List {
							for _, n := range field.Names {
								look(s.Name.Name+"."+n.Name, field.Doc)
							}
						}
					}
				case *ast.ValueSpec:
					look(s.Names[0].Name, s.Doc)
				}
			}
		}
	}
}
