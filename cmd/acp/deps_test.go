package main

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/internal/sizetest"
)

const internal = "github.com/goacp/acp/cmd/acp/internal/"

// layers says which packages of the program each of them may import, tests
// aside. A package that is not listed fails the test: adding one is a decision.
// No entry may go against [never].
var layers = map[string][]string{
	"agent":                  {"agent/guide", "agent/loop", "agent/prose", "agent/served", "agent/tool", "agent/window", "config", "filelock", "gitread", "journal", "journal/file", "model", "ownmeta", "picture", "shellline", "withheld"},
	"agent/edit":             {"agent/served"},
	"agent/guide":            {},
	"agent/prose":            {},
	"agent/loop":             {"model"},
	"agent/served":           {},
	"agent/tool":             {"agent/edit", "agent/prose", "agent/seek", "agent/served", "gitread", "picture", "publicip", "shellline", "withheld"},
	"agent/seek":             {},
	"agent/window":           {"model", "picture"},
	"app":                    {"agent", "backend", "config", "exitcode", "identity", "launch", "mcp", "model/catalog", "own", "remembered", "remote", "roster", "safetext", "store", "withheld"},
	"at":                     {"app", "backend", "engine", "exitcode", "ownmeta", "records", "roster", "safetext"},
	"backend":                {"exitcode", "grant", "history", "ids", "journal", "launch", "mcp", "ownmeta", "pty", "records", "relay", "remembered", "remote", "roster", "safetext", "store", "title"},
	"changes":                {"gitread"},
	"cross":                  {},
	"release":                {},
	"cli":                    {"app", "cli/agent", "cli/agents", "cli/attach", "cli/audit", "cli/auth", "cli/bridge", "cli/cancel", "cli/chat", "cli/check", "cli/completion", "cli/conductor", "cli/config", "cli/connect", "cli/devices", "cli/docs", "cli/exec", "cli/models", "cli/node", "cli/proxy", "cli/serve", "cli/sessions", "cli/tap", "cli/trace", "cli/version", "config", "exitcode", "holder", "interrupt", "isolate", "mcp", "roster", "safetext", "store"},
	"cli/agent":              {"agent", "app", "exitcode"},
	"cli/agents":             {"app", "config", "exitcode", "launch", "mcp", "remembered", "roster", "safetext"},
	"cli/audit":              {"app", "exitcode", "identity", "identity/audit", "safetext"},
	"cli/attach":             {"app", "at", "backend", "exitcode", "safetext", "ui/plain", "ui/tui"},
	"cli/auth":               {"app", "backend", "exitcode", "pty", "safetext"},
	"cli/bridge":             {"app", "config", "exitcode", "launch", "remembered", "roster", "safetext"},
	"cli/cancel":             {"app", "at", "exitcode", "safetext"},
	"cli/chat":               {"app", "at", "backend", "exitcode", "roster", "store", "ui/plain", "ui/tui"},
	"cli/check":              {"app", "config", "exitcode", "launch", "record/file", "remote", "roster", "safetext"},
	"cli/completion":         {"app"},
	"cli/conductor":          {"app", "exitcode", "launch", "proxies", "record/hop", "record/page", "roster", "safetext"},
	"cli/config":             {"app", "config", "exitcode", "mcp", "roster", "safetext"},
	"cli/devices":            {"app", "exitcode", "identity", "identity/audit", "remote", "safetext"},
	"cli/docs":               {"app"},
	"cli/exec":               {"app", "at", "backend", "config", "exitcode", "ownmeta", "roster", "safetext", "shown", "store", "ui/export", "ui/plain"},
	"cli/models":             {"app", "exitcode", "model", "model/catalog", "safetext"},
	"cli/node":               {"app", "exitcode", "gateway", "identity", "launch", "remote", "safetext"},
	"cli/proxy":              {"app", "exitcode", "proxies", "roster"},
	"cli/serve":              {"app", "at", "backend", "config", "engine", "engine/postgres", "engine/sqlite", "exitcode", "filelock", "gateway", "history", "holder", "identity", "identity/audit", "identity/cert", "identity/devices", "identity/oidc", "interrupt", "isolate", "journal", "journal/file", "launch", "node", "notify", "own", "policy", "push", "remote", "roster", "safetext", "serve", "store", "telemetry", "ui/export", "web"},
	"cli/connect":            {"app", "exitcode", "launch", "relay", "remote", "safetext"},
	"cli/sessions":           {"app", "at", "backend", "exitcode", "gateway", "history", "launch", "ownmeta", "records", "roster", "safetext", "store", "ui/export"},
	"cli/tap":                {"app", "config", "exitcode", "filelock", "launch", "record/file", "record/page", "record/tap", "safetext", "serve"},
	"cli/trace":              {"app", "exitcode", "record/file", "record/frame", "record/hop", "record/page", "record/summary", "roster", "safetext", "store", "ui/export"},
	"cli/version":            {"app"},
	"config":                 {"exitcode", "filelock", "shellline"},
	"engine":                 {"journal", "journal/file", "records"},
	"engine/enginetest":      {"engine", "journal"},
	"engine/postgres/pgtest": {},
	"engine/postgres":        {"engine", "engine/sqlite", "engine/sqlstore"},
	"engine/sqlite":          {"engine", "engine/sqlstore", "filelock", "journal", "journal/file", "records"},
	"engine/sqlstore":        {"engine", "journal"},
	"exitcode":               {},
	"filelock":               {},
	"gateway":                {"engine", "history", "ids", "journal", "mention", "ownmeta", "records", "title"},
	"grant":                  {},
	"bounded":                {},
	"gitread":                {},
	"mention":                {"bounded", "gitread"},
	"history":                {"ownmeta", "safetext"},
	"ids":                    {},
	"holder":                 {},
	"node":                   {},
	"notify":                 {"identity", "identity/audit", "ownmeta", "push", "safetext"},
	"own":                    {"filelock"},
	"ownmeta":                {},
	"identity":               {"filelock", "identity/audit"},
	"identity/audit":         {"filelock"},
	"identity/cert":          {},
	"identity/devices":       {"identity", "identity/audit", "ownmeta"},
	"identity/oidc":          {"identity"},
	"interrupt":              {},
	"isolate":                {},
	"journal":                {},
	"journal/file":           {"filelock", "journal", "ownmeta"},
	"journal/journaltest":    {"journal"},
	"launch":                 {"exitcode", "proxies", "remote", "roster", "safetext"},
	"markdown":               {"markdown/gfm"},
	"markdown/gfm":           {},
	"mcp":                    {"config"},
	"model":                  {"model/schema", "picture"},
	"model/anthropic":        {"model", "model/stream"},
	"model/cassette":         {},
	"model/catalog":          {"model", "model/anthropic", "model/cassette", "model/ollama", "model/openai", "model/script", "model/stream"},
	"model/catalog/generate": {"model/catalog"},
	"model/modeltest":        {"model"},
	"model/ollama":           {"model", "model/stream"},
	"model/openai":           {"model", "model/stream"},
	"model/schema":           {},
	"model/script":           {"model"},
	"model/stream":           {"model", "model/schema"},
	"picture":                {},
	"policy":                 {"config", "shellline"},
	"pty":                    {},
	"publicip":               {},
	"push":                   {"publicip"},
	"push/pushtest":          {},
	"record/file":            {"exitcode", "filelock", "record/frame", "safetext"},
	"record/frame":           {},
	"record/page":            {"record/summary", "web/assets"},
	"record/summary":         {"record/frame", "safetext"},
	"record/hop":             {},
	"record/tap":             {"grant", "interrupt"},
	"records":                {"history", "journal", "ownmeta"},
	"relay":                  {"exitcode", "ownmeta", "record/frame", "remote", "safetext"},
	"remote":                 {"exitcode", "safetext"},
	"proxies":                {"agent/prose", "config", "record/file", "record/hop", "record/tap", "safetext", "withheld"},
	"serve":                  {"exitcode", "identity", "identity/cert", "launch", "relay", "remote", "roster"},
	"remembered":             {},
	"roster":                 {"config", "exitcode", "remote"},
	"safetext":               {},
	"shellline":              {},
	"shown":                  {"safetext"},
	"store":                  {"filelock", "journal", "journal/file", "ownmeta", "records"},
	"telemetry":              {"gateway"},
	"test/chromium":          {},
	"test/cli":               {},
	"test/cluster":           {"engine/postgres/pgtest"},
	"test/firefox":           {},
	"test/relay":             {},
	"test/replay":            {},
	"test/screens":           {},
	"test/seed":              {"engine", "engine/sqlite", "gateway", "identity"},
	"test/terminal":          {},
	"test/torture":           {},
	"test/web":               {},
	"web":                    {"identity", "web/assets"},
	"web/assets":             {},
	"web/bundle":             {"web/assets", "web/npm", "web/source"},
	"web/npm":                {},
	"web/source":             {},
	"ui/export":              {"history", "markdown", "markdown/gfm", "safetext", "shown", "store"},
	"ui/plain":               {"app", "backend", "exitcode", "history", "pty", "remote", "roster", "safetext", "shown", "store"},
	"withheld":               {},
	"title":                  {"safetext"},
	"ui/tui":                 {"app", "backend", "bounded", "changes", "config", "exitcode", "history", "mention", "pty", "remote", "roster", "safetext", "shown", "store", "title", "ui/export", "ui/tui/view"},
	"ui/tui/view":            {"history", "markdown", "safetext", "shown"},
	"ui/tui/view/lexers":     {},
}

// never says which families of packages must not know which others, whatever layers
// allow. Commands are above everything; leaves know nothing of conversations.
var never = map[string][]string{
	"agent":    {"app", "backend", "cli", "record", "store", "ui"},
	"app":      {"cli", "record", "ui"},
	"backend":  {"agent", "app", "cli", "record", "ui"},
	"engine":   {"agent", "app", "backend", "cli", "launch", "record", "store", "ui"},
	"journal":  {"agent", "app", "backend", "cli", "gateway", "launch", "record", "store", "ui"},
	"identity": {"agent", "app", "backend", "cli", "launch", "record", "remote", "roster", "serve", "store", "ui"},
	"launch":   {"agent", "app", "backend", "cli", "record", "store", "ui"},
	"model":    {"agent", "app", "backend", "cli", "record", "store", "ui"},
	"record":   {"agent", "backend", "cli", "store", "ui"},
	"roster":   {"agent", "app", "backend", "cli", "launch", "record", "store", "ui"},
	"store":    {"agent", "app", "backend", "cli", "launch", "record", "ui"},
	"ui":       {"agent", "cli", "launch", "record"},
}

// TestDirection: what layers allow goes down only.
func TestDirection(t *testing.T) {
	family := func(pkg string) string { f, _, _ := strings.Cut(pkg, "/"); return f }
	for pkg, imports := range layers {
		for _, imp := range imports {
			if slices.Contains(never[family(pkg)], family(imp)) {
				t.Errorf("%s may import %s, which is above it", pkg, imp)
			}
		}
	}
}

// templates is why the program has none.
const templates = "which calls methods by their names: the linker then keeps each exported method of every type, a tenth of the program"

var setsTemplate = regexp.MustCompile(`\.Set(Help|Usage|Version)Template\(`)

// TestImports holds the direction of imports in the program.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir("internal", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" {
			return fs.SkipDir
		}
		pkg, err := build.ImportDir(p, 0)
		if _, none := err.(*build.NoGoError); none {
			return nil
		}
		if err != nil {
			return err
		}
		dir := strings.TrimPrefix(filepath.ToSlash(p), "internal/")
		seen[dir] = true
		allowed, ok := layers[dir]
		if !ok {
			t.Errorf("package %q has no place in the layers", dir)
			return nil
		}
		for _, imp := range pkg.Imports {
			if own, inside := strings.CutPrefix(imp, internal); inside && !slices.Contains(allowed, own) {
				t.Errorf("%s imports %s, against the direction of the layers", dir, own)
			}
			if imp == "text/template" || imp == "html/template" {
				t.Errorf("%s imports %s, %s", dir, imp, templates)
			}
		}
		if slices.Contains([]string{"v1", "v2", "utils", "common", "helpers", "manager"}, path.Base(dir)) {
			t.Errorf("%s: no folder is called that here", dir)
		}
		for _, f := range slices.Concat(pkg.GoFiles, pkg.TestGoFiles, pkg.XTestGoFiles) {
			data, err := os.ReadFile(filepath.Join(p, f))
			if err != nil {
				return err
			}
			if n := strings.Count(string(data), "\n"); n > 600 {
				t.Errorf("%s has %d lines, more than 600", path.Join(dir, f), n)
			}
			if setsTemplate.Match(data) {
				t.Errorf("%s sets a template of cobra's, %s", path.Join(dir, f), templates)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range layers {
		if !seen[dir] {
			t.Errorf("the layers list %q, which does not exist", dir)
		}
	}
}

// unlinked are packages that the program must do without, and why.
var unlinked = map[string]string{
	"github.com/alecthomas/chroma/v2/lexers": "it reads 279 languages before main: ADR 0031",
	"github.com/prometheus/":                 "it has protobuf and reads /proc before main: ADR 0032",
	"google.golang.org/protobuf/":            "it is 0.7 MB, and registers its types before main: ADR 0032",
	"expvar":                                 "importing it serves the command line over HTTP: ADR 0032",
	"github.com/spf13/cobra/doc":             "it has parsers of Markdown and YAML: ADR 0008",
	"github.com/yuin/goldmark/extension":     "it makes what all of its extensions may need before main: see package markdown/gfm",
	"html/template":                          templates,
	"testing":                                "it registers flags",
	"net/http/pprof":                         "importing it serves profiles over HTTP",
}

// TestLinked: what was taken out of the program, for its size or the time before main, stays out.
func TestLinked(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		for not, why := range unlinked {
			if pkg == not || strings.HasSuffix(not, "/") && strings.HasPrefix(pkg, not) {
				t.Errorf("the program links %s: %s", pkg, why)
			}
		}
	}
}

// TestBeforeMain: no package of ours that the program links compiles an expression before main, where every start would pay
// for it: ADR 0033.
func TestBeforeMain(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{.Dir}}{{range .GoFiles}} {{.}}{{end}}", ".")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if !strings.HasPrefix(words[0], "github.com/goacp/acp") {
			continue
		}
		for _, name := range words[2:] {
			for _, at := range compiled(t, filepath.Join(words[1], name)) {
				t.Errorf("%s compiles an expression before main: use sync.OnceValue", at)
			}
		}
	}
}

// compiled returns where the variables of a package in a file are made by compiling an expression, outside of functions.
func compiled(t *testing.T, name string) (all []string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		vars, ok := d.(*ast.GenDecl)
		if !ok || vars.Tok != token.VAR {
			continue
		}
		ast.Inspect(vars, func(n ast.Node) bool {
			if f, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(f.Sel.Name, "MustCompile") {
				all = append(all, fset.Position(n.Pos()).String())
			}
			_, isFunc := n.(*ast.FuncLit)
			return !isFunc
		})
	}
	return all
}

// TestOwnKey: the program's key in _meta is in one place.
func TestOwnKey(t *testing.T) {
	modules := []string{"ownmeta", "release", "telemetry"} // the last two name the module
	err := filepath.WalkDir("internal", func(p string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(p) != ".go" || strings.HasSuffix(p, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Base(path.Dir(filepath.ToSlash(p)))
		ast.Inspect(file, func(n ast.Node) bool {
			if _, ok := n.(*ast.ImportSpec); ok {
				return false
			}
			text, ok := n.(*ast.BasicLit)
			if ok && strings.Contains(strings.ReplaceAll(text.Value, "https://"+ownmeta.Key, ""), ownmeta.Key) && !slices.Contains(modules, dir) {
				t.Errorf("%s has %s: see package ownmeta", p, text.Value)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSizes holds functions and structs to their limits.
func TestSizes(t *testing.T) { sizetest.Check(t, ".", nil) }
