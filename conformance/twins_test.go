package conformance

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// functionsOf returns the text of each function of a file by its name.
func functionsOf(t *testing.T, file string) map[string]string {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok {
			var b bytes.Buffer
			if err := printer.Fprint(&b, fset, d); err != nil {
				t.Fatal(err)
			}
			out[d.Name.Name] = b.String()
		}
	}
	return out
}

// TestTwins: what both versions have in common is judged in the same way. The types of
// the versions differ, so the code is there twice; a change in one needs the other.
func TestTwins(t *testing.T) {
	v1, v2 := functionsOf(t, "monitor_v1_update.go"), functionsOf(t, "monitor_v2_update.go")
	for _, name := range []string{"ask", "block", "blocks", "entries", "field"} {
		want := strings.NewReplacer("acpv2", "acpv1", "V2", "V1").Replace(v2[name+"V2"])
		if got := v1[name+"V1"]; got != want || got == "" {
			t.Errorf("%sV1 and %sV2 differ (-V2 +V1):\n%s", name, name, cmp.Diff(want, got))
		}
	}
}
