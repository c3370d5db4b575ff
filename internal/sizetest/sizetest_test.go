package sizetest

import (
	"fmt"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMeasure(t *testing.T) {
	source := "package p\n" +
		"func fits() {\n" + strings.Repeat("\n", MaxLines-2) + "}\n" +
		"func long() {\n" + strings.Repeat("\n", MaxLines-1) + "}\n" +
		"type small struct {" + fields(MaxFields) + "}\n" +
		"type big struct {" + fields(MaxFields+1) + "}\n"
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	measure(fset, f, "dir", func(where, name, what string) { got = append(got, where+" "+name+" "+what) })
	want := []string{"dir long has 91 lines, more than 90", "dir big has 31 fields, more than 30"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func fields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "f%d int;", i)
	}
	return b.String()
}
