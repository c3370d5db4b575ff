package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the expected files of the golden tests")

// An archive is a text file of several files, each behind a line "-- name --".
type archive struct {
	comment string
	names   []string
	files   map[string]string
}

func parseArchive(text string) *archive {
	a := &archive{files: map[string]string{}}
	name := ""
	for line := range strings.Lines(text) {
		if n, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(n, " --\n") {
			name = strings.TrimSuffix(n, " --\n")
			a.names = append(a.names, name)
			a.files[name] = ""
			continue
		}
		if name == "" {
			a.comment += line
		} else {
			a.files[name] += line
		}
	}
	return a
}

func (a *archive) String() string {
	var b strings.Builder
	b.WriteString(a.comment)
	for _, n := range a.names {
		fmt.Fprintf(&b, "-- %s --\n%s", n, a.files[n])
	}
	return b.String()
}

// small returns a table that puts everything into one file, changed by f.
func small(f func(*table)) *table {
	t := &table{files: []fileRule{{"things", []string{"*"}}}}
	if f != nil {
		f(t)
	}
	return t
}

// A tiny is a protocol to generate: the schema, what of it is stable (all of it
// when empty), and our words about it.
type tiny struct {
	version, schema, stable, docs string
	table                         *table
}

// generate does what the command does for one version.
func (x tiny) generate() (map[string][]byte, error) {
	doc, err := parseDocument([]byte(x.schema))
	if err != nil {
		return nil, err
	}
	stable := doc
	if x.stable != "" {
		if stable, err = parseDocument([]byte(x.stable)); err != nil {
			return nil, err
		}
	}
	dd, err := parseDocs(x.docs)
	if err != nil {
		return nil, err
	}
	m, err := buildModel(x.version, doc, stable, x.table, dd)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	if err := m.emit(files); err != nil {
		return nil, err
	}
	if len(m.errs) > 0 {
		return nil, errors.Join(m.errs...)
	}
	if u := dd.unused(); len(u) > 0 {
		return nil, fmt.Errorf("docs.txt entries never used: %s", strings.Join(u, ", "))
	}
	return files, nil
}

// goldens are the cases in testdata: what each is generated with besides its
// schemas. The files method_gen.go and experimental_gen.go are compared where
// the archive has them; wire_gen.go is the same for all, and TestGenerated
// compares it.
var goldens = map[string]struct {
	version string
	table   func(*table)
}{
	"struct": {"v2", nil},
	"patch": {"v2", func(t *table) {
		t.patch = properties("patch", "Upsert: name kind tags deep count")
		t.metaPatch = names("meta patch", "Upsert")
		t.pointers = properties("pointer", "Upsert: old")
	}},
	"patch_v1": {"v1", func(t *table) {
		t.patch = properties("patch", "Upsert: name")
		t.metaPatch = names("meta patch", "Upsert")
	}},
	"lenient": {"v2", func(t *table) { t.patch = properties("patch", "Lenient: change") }},
	"enum": {"v2", func(t *table) {
		t.values = entries("value", map[string]string{"Code=-1": "CodeBad", "Code=0": "CodeNone", "Kind=open_ai": "KindOpenAI"})
		t.closed = names("closed", "Only")
		t.names = entries("name", map[string]string{"Level": "Severity"})
	}},
	"union":      {"v1", nil},
	"union_open": {"v2", nil},
	"union_shared": {"v2", func(t *table) {
		t.coalloc = entries("coalloc", map[string]coalloc{"Chunk": {"content", "Text", "text"}})
		t.fuse = names("fuse", "Message")
	}},
	"union_inline": {"v2", func(t *table) {
		scope := inlineSpec{"Scope", "Scope", "tells what it belongs to.", "What it belongs to; required."}
		t.inline = entries("inline", map[string]inlineSpec{
			"Ask": {"Mode", "Mode", "is the way to ask.", "How to ask; required."}, "Ask=*": scope, "Form": scope,
		})
		t.byMember = entries("by member", map[string][]string{"Scope": {"sessionId", "requestId"}})
		t.names = entries("name", map[string]string{"Ask=cancel": "CancelMode"})
		t.aliases = entries("alias", map[string]string{"RequestId": "jsonrpc.ID"})
	}},
	"union_nested": {"v2", func(t *table) { t.names = entries("name", map[string]string{"State=*": "UnrecognizedState"}) }},
	"union_member": {"v2", func(t *table) {
		t.byMember = entries("by member", map[string][]string{"Resource": {"text", "blob"}})
	}},
	"union_list": {"v2", func(t *table) {
		t.lists = entries("list", map[string]listSpec{"Options": {[]string{"OptionList", "GroupList"}, []string{"value", "group"}}})
	}},
	"union_untagged": {"v1", func(t *table) {
		t.untagged = entries("untagged", map[string]untaggedSpec{"Server": {tag: "stdio"}, "Choice": {tag: "id", anyTag: true}, "Items": {}})
	}},
	"union_merged": {"v2", func(t *table) {
		t.merge = entries("merge", map[string]mergeSpec{"Idle": {"reason", "Reason", "tells why it stopped."}, "Reply": {}})
	}},
	"maps": {"v2", func(t *table) {
		t.ordered = entries("ordered", map[string]orderedSpec{"Form.properties": {"FormProperty"}})
		t.formValues = names("form value", "Answer")
		t.aliases = entries("alias", map[string]string{"Answer": "json.RawMessage", "Path": "string", "Version": "uint16"})
		t.constants = entries("constant", map[string]string{"Form.type": "object"})
	}},
	"methods": {"v2", nil},
}

func readGolden(t *testing.T, name string) (*archive, tiny) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	a, c := parseArchive(string(data)), goldens[name]
	return a, tiny{version: c.version, schema: a.files["schema.json"], stable: a.files["stable.json"], docs: a.files["docs.txt"], table: small(c.table)}
}

func TestGolden(t *testing.T) {
	found, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		if _, ok := goldens[strings.TrimSuffix(filepath.Base(p), ".txtar")]; !ok {
			t.Errorf("%s is no test case", p)
		}
	}
	for name := range goldens {
		t.Run(name, func(t *testing.T) {
			a, x := readGolden(t, name)
			files, err := x.generate()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for p, src := range files {
				base := path.Base(p)
				if _, listed := a.files[base]; listed || base == "things_gen.go" {
					got[base] = string(src)
				}
			}
			if *update {
				for base, src := range got {
					if !slices.Contains(a.names, base) {
						a.names = append(a.names, base)
					}
					a.files[base] = src
				}
				if err := os.WriteFile(filepath.Join("testdata", name+".txtar"), []byte(a.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want := map[string]string{}
			for n, text := range a.files {
				if strings.HasSuffix(n, ".go") {
					want[n] = text
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("run go test ./internal/gen -update and look at what changed:\n%s", diff)
			}
		})
	}
}

// jsonrpcStandIn is what the generated code needs of package jsonrpc.
const jsonrpcStandIn = `package jsonrpc
type Method[P, R any] struct{ Name string }
type Notification[P any] struct{ Name string }
type ID struct{}
func (ID) IsString() bool { return false }
func (ID) IsInteger() bool { return false }
func (ID) IsNull() bool { return false }
func (ID) IsZero() bool { return false }
func (ID) AppendJSON(b []byte) ([]byte, error) { return b, nil }
`

// TestGoldenCompiles type-checks what the tiny schemas generate: a golden file
// that no compiler accepts proves nothing.
func TestGoldenCompiles(t *testing.T) {
	if testing.Short() {
		t.Skip("asks the go command for compiled packages")
	}
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}",
		"github.com/goacp/acp/internal/wire", "encoding/json", "slices").Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		p, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[p] = file
	}
	fset := token.NewFileSet()
	std := importer.ForCompiler(fset, "gc", func(p string) (io.ReadCloser, error) { return os.Open(exports[p]) })
	checked := map[string]*types.Package{}
	load := importerFunc(func(p string) (*types.Package, error) {
		if pkg := checked[p]; pkg != nil {
			return pkg, nil
		}
		return std.Import(p)
	})
	compile := func(pkg string, sources map[string]string) (*types.Package, error) {
		var list []*ast.File
		for _, name := range slices.Sorted(maps.Keys(sources)) {
			f, err := parser.ParseFile(fset, pkg+"/"+name, sources[name], parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			list = append(list, f)
		}
		return (&types.Config{Importer: load}).Check(pkg, fset, list, nil)
	}
	const jsonrpc = "github.com/goacp/acp/jsonrpc"
	if checked[jsonrpc], err = compile(jsonrpc, map[string]string{"jsonrpc.go": jsonrpcStandIn}); err != nil {
		t.Fatal(err)
	}
	for name := range goldens {
		_, x := readGolden(t, name)
		files, err := x.generate()
		if err != nil {
			t.Fatal(err)
		}
		sources := map[string]string{}
		for p, src := range files {
			sources[path.Base(p)] = string(src)
		}
		if !bytes.Contains([]byte(x.schema), []byte(`"RequestId"`)) {
			sources["id.go"] = "package acp" + x.version + "\nimport \"" + jsonrpc + "\"\ntype RequestID = jsonrpc.ID\n"
		}
		if _, err := compile("acp"+x.version, sources); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type importerFunc func(string) (*types.Package, error)

func (f importerFunc) Import(p string) (*types.Package, error) { return f(p) }
