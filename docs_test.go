package acp_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents are the texts whose Go blocks have to compile.
var documents = []string{"README.md", "docs/guide.md"}

// texts returns all documents in Markdown.
func texts(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			out = append(out, filepath.ToSlash(f))
		}
	}
	return out
}

// docImports are the packages blocks may use without importing them.
var docImports = []string{
	"context", "encoding/json", "errors", "fmt", "io", "log", "log/slog", "net/http", "os", "path/filepath", "strings", "sync",
	"testing", "testing/synctest", "time",
	module, module + "/acphost", module + "/acphttp", module + "/acpstore", module + "/acptest", module + "/acpv1", module + "/acpv2", module + "/conformance",
	module + "/jsonrpc", module + "/trace", module + "/transcript",
}

// docFixtures are the variables blocks may use without declaring them.
const docFixtures = `
var (
	ctx      context.Context
	agent    *acp.Agent
	client   *acp.Client
	conn     *acp.ClientConn
	session  *acp.ClientSession
	t        *acp.Turn
	s        *acp.AgentSession
	root     string // a directory
	savedID  acp.SessionID
	stdin    io.WriteCloser
	stdout   io.ReadCloser
	mux      *jsonrpc.Mux
	lane     func(method string, params any) string
	users    map[string]string // by what their clients send
)
`

// A goBlock is a Go block of a document.
type goBlock struct {
	file string
	line int // of its first line
	text string
}

// goBlocks returns the Go blocks of a document.
func goBlocks(file, text string) []goBlock {
	var out []goBlock
	var block *goBlock
	for i, line := range strings.Split(text, "\n") {
		switch {
		case block == nil && strings.TrimSpace(line) == "```go":
			block = &goBlock{file: file, line: i + 2}
		case block != nil && strings.TrimSpace(line) == "```":
			out = append(out, *block)
			block = nil
		case block != nil:
			block.text += line + "\n"
		}
	}
	return out
}

// A docChecker type-checks blocks.
type docChecker struct {
	fset     *token.FileSet
	importer types.Importer
}

// newDocChecker asks the go command for the compiled packages, which it has
// from building this test for the most part.
func newDocChecker(t *testing.T) *docChecker {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}, docImports...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	export := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		export[name] = file
	}
	fset := token.NewFileSet()
	return &docChecker{fset: fset, importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if export[path] == "" {
			return nil, fmt.Errorf("package %s is not among those blocks may use", path)
		}
		return os.Open(export[path])
	})}
}

// check returns what is wrong with a block, which is a file, declarations or
// statements. Parts of files need not use everything they declare.
func (c *docChecker) check(b goBlock) []error {
	at := fmt.Sprintf("//line %s:%d:1\n", b.file, b.line)
	if strings.HasPrefix(strings.TrimSpace(b.text), "package ") {
		return c.checkFile(at+b.text, false)
	}
	header := "package doc\nimport (\n"
	for _, p := range docImports {
		header += fmt.Sprintf("%q\n", p)
	}
	header += ")\n" + docFixtures
	if f := header + at + b.text; c.parses(f) {
		return c.checkFile(f, true)
	}
	return c.checkFile(header+"func _() error {\n"+at+b.text+"\nreturn nil\n}\n", true)
}

func (c *docChecker) parses(text string) bool {
	_, err := parser.ParseFile(token.NewFileSet(), "block.go", text, parser.SkipObjectResolution)
	return err == nil
}

func (c *docChecker) checkFile(text string, part bool) (errs []error) {
	f, err := parser.ParseFile(c.fset, "block.go", text, parser.SkipObjectResolution)
	if err != nil {
		return []error{err}
	}
	cfg := types.Config{Importer: c.importer, Error: func(err error) {
		if te, ok := err.(types.Error); ok && te.Soft && part {
			return // unused imports and variables
		}
		errs = append(errs, err)
	}}
	_, _ = cfg.Check("doc", c.fset, []*ast.File{f}, nil) // its error is one of errs
	return errs
}

// TestDocumentsCompile type-checks the Go blocks of the documents.
func TestDocumentsCompile(t *testing.T) {
	c := newDocChecker(t)
	for _, file := range documents {
		text, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			t.Fatal(err)
		}
		blocks := goBlocks(file, string(text))
		if len(blocks) == 0 {
			t.Errorf("%s has no Go blocks", file)
		}
		for _, b := range blocks {
			for _, err := range c.check(b) {
				t.Error(err)
			}
		}
	}
}

// TestDocumentsCompileFails shows that the check finds what is wrong, and where.
func TestDocumentsCompileFails(t *testing.T) {
	c := newDocChecker(t)
	for _, tt := range []struct{ text, want string }{
		{"session, err := conn.NewSession(ctx, acp.SessionConfig{})\n", ""},
		{"if err := t.Say(\"x\"); err != nil {\n\treturn err\n}\n", ""},
		{"func ask(s *acp.ClientSession) *acp.Reply { return s.Prompt(ctx, acp.Text(\"x\")) }\n", ""},
		{"package main\n\nfunc main() {}\n", ""},
		{"x := 1\nt.Shout(\"x\")\n", "guide.md:5:3: t.Shout undefined"},
		{"var a acp.Agent\nvar b acp.Agnet\n", "guide.md:5:11: undefined: acp.Agnet"},
		{"t.Say(\"x\"\n", "guide.md:4:"},
		{"package main\n\nimport \"os\"\n\nfunc main() {}\n", `guide.md:6:8: "os" imported and not used`},
		{"package main\n\nimport _ \"net/http/cgi\"\n\nfunc main() {}\n", "not among those"},
	} {
		document := "# Guide\n\n```go\n" + tt.text + "```\n"
		blocks := goBlocks("guide.md", document)
		if len(blocks) != 1 {
			t.Fatalf("%d blocks in %q", len(blocks), document)
		}
		errs := c.check(blocks[0])
		switch {
		case tt.want == "" && len(errs) > 0:
			t.Errorf("%q: %v", tt.text, errs)
		case tt.want != "" && !slices.ContainsFunc(errs, func(err error) bool { return strings.Contains(err.Error(), tt.want) }):
			t.Errorf("%q: %v, want %q", tt.text, errs, tt.want)
		}
	}
}

// qualified finds what looks like something of a package of the module, perhaps
// with a field or a method of it.
var qualified = regexp.MustCompile(`\b(acp|acphost|acptest|acpv1|acpv2|jsonrpc|transcript)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)

// TestDocumentNames checks that what the text calls acp.Something exists.
func TestDocumentNames(t *testing.T) {
	c := newDocChecker(t)
	for _, file := range documents {
		text, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range qualified.FindAllStringSubmatch(string(text), -1) {
			if err := c.exists(m[1], m[2], m[3]); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if c.exists("acp", "Agent", "Prompt") != nil || c.exists("acp", "Agnet", "") == nil || c.exists("acp", "Turn", "Shout") == nil {
		t.Error("the check does not tell what exists from what does not")
	}
}

func (c *docChecker) exists(pkg, name, member string) error {
	importPath := module
	if pkg != "acp" {
		importPath += "/" + pkg
	}
	p, err := c.importer.Import(importPath)
	if err != nil {
		return err
	}
	o := p.Scope().Lookup(name)
	if o == nil {
		return fmt.Errorf("there is no %s.%s", pkg, name)
	}
	if member == "" {
		return nil
	}
	if found, _, _ := types.LookupFieldOrMethod(o.Type(), true, p, member); found == nil {
		return fmt.Errorf("%s.%s has no %s", pkg, name, member)
	}
	return nil
}

var (
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unlinked = regexp.MustCompile("[^a-z0-9 _-]")
)

// TestDocumentLinks checks links to files of this module and to headings.
func TestDocumentLinks(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads documents: once is enough")
	}
	for _, file := range texts(t) {
		text, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range links.FindAllStringSubmatch(string(text), -1) {
			if err := checkLink(file, string(text), m[1]); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	for link, ok := range map[string]bool{
		"#one-two": true, "#one": false, "deps_test.go": true, "nothing.md": false, "docs/guide.md#turns": true, "docs/guide.md#turn": false,
	} {
		if err := checkLink("x.md", "# One, two\n", link); (err == nil) != ok {
			t.Errorf("%s: %v", link, err)
		}
	}
}

func checkLink(from, text, link string) error {
	file, anchor, hasAnchor := strings.Cut(link, "#")
	if strings.Contains(file, "://") {
		return nil
	}
	if file != "" {
		target := filepath.FromSlash(path.Join(path.Dir(from), file))
		if _, err := os.Stat(target); err != nil || !hasAnchor {
			return err
		}
		data, err := os.ReadFile(target)
		if err != nil {
			return err
		}
		text = string(data)
	}
	if !hasAnchor {
		return nil
	}
	for _, m := range headings.FindAllStringSubmatch(text, -1) {
		if strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == anchor {
			return nil
		}
	}
	return fmt.Errorf("%s: there is no such heading", link)
}

var fileNames = regexp.MustCompile("`([\\w/*{},.-]+\\.go)`")

// TestMapNamesFiles: the files that docs/architecture.md names exist, below the root,
// the program's packages or the engine.
func TestMapNamesFiles(t *testing.T) {
	missing := func(text string) (names []string) {
		for _, m := range fileNames.FindAllStringSubmatch(text, -1) {
			all := []string{m[1]}
			if before, rest, ok := strings.Cut(m[1], "{"); ok {
				choice, after, _ := strings.Cut(rest, "}")
				all = nil
				for c := range strings.SplitSeq(choice, ",") {
					all = append(all, before+c+after)
				}
			}
			for _, name := range all {
				if !slices.ContainsFunc([]string{"", "cmd/acp/internal/", "jsonrpc/"}, func(dir string) bool {
					found, err := filepath.Glob(filepath.FromSlash(dir + name))
					return err == nil && len(found) > 0
				}) {
					names = append(names, name)
				}
			}
		}
		return names
	}
	text, err := os.ReadFile(filepath.FromSlash("docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range missing(string(text)) {
		t.Errorf("docs/architecture.md: there is no file %s", name)
	}
	if got := missing("`agent.go` `no.go` `protocol_agent_v{1,3}.go` `cli/no*.go`"); !slices.Equal(got, []string{"no.go", "protocol_agent_v3.go", "cli/no*.go"}) {
		t.Errorf("of four files these are missing: %q", got)
	}
}

// implied are methods whose meaning follows from the interface they are for.
var implied = []string{"Error", "String", "Unwrap", "MarshalJSON", "UnmarshalJSON", "AppendJSON"}

// TestDocComments holds the rule that what packages export has a comment; for a
// constant or a variable that of its group will do. Fields that speak for
// themselves need none.
func TestDocComments(t *testing.T) {
	for dir, pkg := range packages(t) {
		if pkg.Name == "main" || strings.HasPrefix(dir, "internal/") {
			continue
		}
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range pkg.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(pkg.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		p, err := doc.NewFromFiles(fset, files, path.Join(module, dir))
		if err != nil {
			t.Fatal(err)
		}
		if p.Doc == "" {
			t.Errorf("package %s has no comment", p.ImportPath)
		}
		missing := func(pos token.Pos, what string) { t.Errorf("%s: %s has no comment", fset.Position(pos), what) }
		checkFuncs(p.Funcs, missing)
		checkValues(append(p.Consts, p.Vars...), missing)
		for _, typ := range p.Types {
			if typ.Doc == "" {
				missing(typ.Decl.Pos(), typ.Name)
			}
			checkFuncs(append(typ.Funcs, typ.Methods...), missing)
			checkValues(append(typ.Consts, typ.Vars...), missing)
		}
	}
}

func checkFuncs(funcs []*doc.Func, missing func(token.Pos, string)) {
	for _, f := range funcs {
		if f.Doc == "" && f.Level == 0 && (f.Recv == "" || !slices.Contains(implied, f.Name)) {
			missing(f.Decl.Pos(), f.Recv+" "+f.Name)
		}
	}
}

func checkValues(values []*doc.Value, missing func(token.Pos, string)) {
	for _, v := range values {
		for _, spec := range v.Decl.Specs {
			if s := spec.(*ast.ValueSpec); v.Doc == "" && s.Doc == nil && s.Comment == nil {
				missing(s.Pos(), s.Names[0].Name)
			}
		}
	}
}
