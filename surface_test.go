package acp_test

import (
	"cmp"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSurface holds the rule that nothing exported is of an internal type: users can
// neither name such a type nor find its documentation.
func TestSurface(t *testing.T) {
	c := newDocChecker(t)
	for dir, pkg := range packages(t) {
		if pkg.Name == "main" || strings.Contains("/"+dir+"/", "/internal/") {
			continue
		}
		p, err := c.importer.Import(path.Join(module, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range p.Scope().Names() {
			if o := p.Scope().Lookup(name); o.Exported() {
				for _, hidden := range hiddenTypes(o) {
					t.Errorf("%s.%s", p.Path(), hidden)
				}
			}
		}
	}
	p := types.NewPackage(module+"/internal/x", "x")
	inner := types.NewNamed(types.NewTypeName(0, p, "T", nil), types.NewStruct(nil, nil), nil)
	f := types.NewFunc(0, p, "F", types.NewSignatureType(nil, nil, nil, types.NewTuple(types.NewParam(0, p, "", types.NewSlice(types.NewPointer(inner)))), nil, false))
	if len(hiddenTypes(f)) != 1 {
		t.Error("the test does not find an internal type")
	}
}

// hiddenTypes says where the declaration of o, with its exported fields and methods,
// names an internal type.
func hiddenTypes(o types.Object) (found []string) {
	check := func(where string, typ types.Type) {
		if hidden := internalType(typ, 0); hidden != "" {
			found = append(found, where+" is of type "+hidden)
		}
	}
	named, ok := types.Unalias(o.Type()).(*types.Named)
	if _, isType := o.(*types.TypeName); !isType || !ok {
		check(o.Name(), o.Type())
		return found
	}
	if named.Obj().Pkg() != o.Pkg() {
		check(o.Name(), named)
		return found
	}
	methods := types.NewMethodSet(types.NewPointer(named)) // those of embedded types, too
	for i := range methods.Len() {
		if m := methods.At(i).Obj(); m.Exported() {
			check(o.Name()+"."+m.Name(), m.Type())
		}
	}
	switch u := named.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if f.Exported() {
				check(o.Name()+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range u.ExplicitMethods() {
			if m.Exported() {
				check(o.Name()+"."+m.Name(), m.Type())
			}
		}
	default:
		check(o.Name(), u)
	}
	return found
}

// internalType returns an internal type that typ is made of, or "".
func internalType(typ types.Type, depth int) string {
	if depth > 10 {
		return ""
	}
	inside := func(list ...types.Type) string {
		for _, x := range list {
			if hidden := internalType(x, depth+1); hidden != "" {
				return hidden
			}
		}
		return ""
	}
	switch x := typ.(type) {
	case *types.Alias:
		return inside(types.Unalias(x))
	case *types.Named:
		if p := x.Obj().Pkg(); p != nil && strings.HasPrefix(p.Path(), module+"/internal/") {
			return x.String()
		}
		for arg := range x.TypeArgs().Types() {
			if hidden := inside(arg); hidden != "" {
				return hidden
			}
		}
	case *types.Signature:
		for _, tuple := range []*types.Tuple{x.Params(), x.Results()} {
			for v := range tuple.Variables() {
				if hidden := inside(v.Type()); hidden != "" {
					return hidden
				}
			}
		}
	case *types.Map:
		return inside(x.Key(), x.Elem())
	case interface{ Elem() types.Type }: // a pointer, slice, array or channel
		return inside(x.Elem())
	}
	return ""
}

// TestDocsBegin: what is exported has documentation that begins with its name.
func TestDocsBegin(t *testing.T) {
	n := 0
	for dir, pkg := range packages(t) {
		if pkg.Name == "main" || strings.Contains("/"+dir+"/", "/internal/") {
			continue
		}
		var files []*ast.File
		fset := token.NewFileSet()
		for _, name := range pkg.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		p, err := doc.NewFromFiles(fset, files, path.Join(module, dir))
		if err != nil {
			t.Fatal(err)
		}
		begins := func(of, name, text string) {
			n++
			words := strings.Fields(text)
			if len(words) > 1 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
				words = words[1:]
			}
			if len(words) == 0 || strings.Trim(words[0], ",.:") != name {
				t.Errorf("%s: the documentation of %s%s is %.40q…", p.ImportPath, of, name, text)
			}
		}
		functions := func(of string, list []*doc.Func) {
			for _, f := range list {
				begins(of, f.Name, f.Doc)
			}
		}
		functions("", p.Funcs)
		for _, x := range p.Types {
			begins("", x.Name, x.Doc)
			functions("", x.Funcs)
			functions(x.Name+".", x.Methods)
		}
	}
	if n < 1000 {
		t.Errorf("only %d names were found", n)
	}
}

// TestExamplesRun: every example says what it prints. One that does not is compiled, and
// never run.
func TestExamplesRun(t *testing.T) {
	n := 0
	for dir, pkg := range packages(t) {
		var files []*ast.File
		for _, name := range slices.Concat(pkg.TestGoFiles, pkg.XTestGoFiles) {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		for _, e := range doc.Examples(files...) {
			n++
			if e.Output == "" && !e.EmptyOutput && e.Name != "_agent" { // a program: Example_client starts it
				t.Errorf("%s: Example%s has no output", cmp.Or(pkg.ImportPath, dir), e.Name)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d examples were found", n)
	}
}

// TestAdvertised: every hook of an Agent and a Client says in one form what it advertises.
func TestAdvertised(t *testing.T) {
	for _, side := range []struct {
		file, name string
		atLeast    int
	}{{"agent.go", "Agent", 20}, {"client.go", "Client", 5}} {
		f, err := parser.ParseFile(token.NewFileSet(), side.file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		hooks := 0
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != side.name {
				return true
			}
			documented := ""
			for _, field := range spec.Type.(*ast.StructType).Fields.List {
				if field.Doc != nil {
					documented = field.Doc.Text()
				}
				if _, hook := field.Type.(*ast.FuncType); hook && field.Names[0].IsExported() {
					hooks++
					if _, says, ok := strings.Cut(documented, "\n\nAdvertised: "); !ok || !strings.HasSuffix(says, ".\n") || strings.Contains(says, "\n\n") {
						t.Errorf("%s.%s does not end with a paragraph “Advertised: …”", side.name, field.Names[0])
					}
				}
			}
			return false
		})
		if hooks < side.atLeast {
			t.Errorf("%s: %d hooks were found", side.name, hooks)
		}
	}
}
