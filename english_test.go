package acp_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// dialect are the forms that CONTRIBUTING's table of English replaces.
var dialect = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`\b(?:is|are|was|were|be|been|being) told(?: [^t\s]| t[^o]|[^ ]|$)`, // not: told to
	`\b(?:tells?|told) (?:of|that)\b`,
	`\b(?:that|what|which) (?:is|are) no [^l]`, // not: no longer
	`\band else nil\b`,
	`\bwho (?:wants?|wishes|has|have) to\b`,
	`\bconcerns? nobody\b`,
	`\bgo(?:es|ing)? on\b`,
	`\bmade[- ]up\b`,
	`\bput (?:away|aside)\b`,
	`\b(?:when|what|that) (?:all )?is over\b`,
	`\bbesides\b`,
	`"" is (?:none|not)\b`,
}, "|"))

// TestNoStatementNumbers: documentation that users read cites no statement by its
// number, which they could not look up. Comments inside of functions and tests may.
func TestNoStatementNumbers(t *testing.T) {
	statement := regexp.MustCompile(`\(S\d`)
	for _, dir := range []string{".", "acphost", "acphttp", "acptest", "acpv1", "acpv2", "conformance", "jsonrpc", "trace", "transcript"} {
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		var parsed []*ast.File
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.FileExports(f) // leaves what users see
			parsed = append(parsed, f)
		}
		for _, f := range parsed {
			ast.Inspect(f, func(n ast.Node) bool {
				if c, ok := n.(*ast.CommentGroup); ok && statement.MatchString(c.Text()) {
					t.Errorf("%s: %s", fset.Position(c.Pos()), statement.FindString(c.Text()))
				}
				return true
			})
		}
		if len(parsed) == 0 {
			t.Errorf("no files in %s", dir)
		}
	}
}

// TestEnglish holds documents, comments and texts in the code to CONTRIBUTING's table of
// English.
func TestEnglish(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads documents: once is enough")
	}
	looked := 0
	look := func(at, text string) {
		looked++
		for _, m := range dialect.FindAllString(text, -1) {
			t.Errorf("%s: %q: see the table in CONTRIBUTING.md", at, m)
		}
	}
	for _, file := range texts(t) {
		data, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if file == "CONTRIBUTING.md" {
			text, _, _ = strings.Cut(text, "| not | but |")
		}
		look(file, text)
	}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && p != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, c := range f.Comments {
			look(fset.Position(c.Pos()).String(), strings.Join(strings.Fields(c.Text()), " "))
		}
		ast.Inspect(f, func(n ast.Node) bool { // errors, help and everything else that is shown
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, err := strconv.Unquote(l.Value)
				if err != nil {
					t.Fatal(err)
				}
				look(fset.Position(l.Pos()).String(), strings.Join(strings.Fields(text), " "))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if looked < 10_000 {
		t.Errorf("only %d texts were looked at", looked)
	}
}
