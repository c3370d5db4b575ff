package jsonrpc

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestLocksDocumented: a function that uses what a mutex guards, without locking
// that, says in its comment that the caller holds it, and one that locks it does
// not. What callees need is not looked at, and neither are tests.
func TestLocksDocumented(t *testing.T) {
	type guard struct {
		holds  string   // what the comment says
		fields []string // what is guarded
		exempt []string // functions that need no lock
	}
	guards := map[string]guard{
		"Conn":   {"The caller holds c.mu.", []string{"calls", "work", "room", "ending"}, []string{"NewConn"}},
		"outbox": {"The caller holds o.mu.", []string{"buf", "ends", "spare", "carry", "unsent", "big", "writing", "err", "room", "way", "idle", "last"}, nil},
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			p, ok := fn.Recv.List[0].Type.(*ast.StarExpr)
			if !ok || len(fn.Recv.List[0].Names) == 0 {
				continue
			}
			recv, _ := p.X.(*ast.Ident)
			if recv == nil {
				continue
			}
			g, ok := guards[recv.Name]
			if !ok || slices.Contains(g.exempt, fn.Name.Name) {
				continue
			}
			uses, locks := guarded(fn.Body, fn.Recv.List[0].Names[0].Name, g.fields)
			says := strings.Contains(strings.ReplaceAll(fn.Doc.Text(), "\n", " "), g.holds)
			seen++
			switch {
			case uses && !locks && !says:
				t.Errorf("%s: %s.%s uses what mu guards and does not say that %q", file.Name(), recv.Name, fn.Name.Name, g.holds)
			case locks && says && !strings.Contains(fn.Doc.Text(), "releases"):
				t.Errorf("%s: %s.%s locks mu itself", file.Name(), recv.Name, fn.Name.Name)
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d functions were looked at", seen)
	}
}

// guarded reports whether a function uses one of the fields of its receiver, and
// whether it locks the receiver's mutex.
func guarded(body *ast.BlockStmt, recv string, fields []string) (uses, locks bool) {
	of := func(x ast.Expr, name string) bool {
		s, ok := x.(*ast.SelectorExpr)
		if !ok || s.Sel.Name != name {
			return false
		}
		id, ok := s.X.(*ast.Ident)
		return ok && id.Name == recv
	}
	ast.Inspect(body, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if of(s.X, "mu") && s.Sel.Name == "Lock" {
				locks = true
			}
			if slices.ContainsFunc(fields, func(f string) bool { return of(s, f) }) {
				uses = true
			}
		}
		return true
	})
	return uses, locks
}
