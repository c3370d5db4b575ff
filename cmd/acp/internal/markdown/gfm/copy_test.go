package gfm

import (
	"flag"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var update = flag.Bool("update", false, "write the copies")

var (
	compiled = regexp.MustCompile(`(?m)^var (\w+) = (regexp\.MustCompile\(.*\))(?: //nolint.*)?$`)
	filters  = regexp.MustCompile(`(?m)^var (\w+) = (html\.GlobalAttributeFilter\.ExtendString\(.*\)).*$`)
	extends  = regexp.MustCompile(`(?ms)^type \w+ struct \{[^}]*\}\n\n// \w+ is an extension .*\z`)
)

// late returns a file of goldmark's with what it makes before main made when it is needed.
func late(text, licence, version string) (string, error) {
	text = extends.ReplaceAllString(text, "") // how goldmark.New is given them, which we do without
	for _, found := range []struct {
		decl *regexp.Regexp
		kind string
	}{{compiled, "*regexp.Regexp"}, {filters, "util.BytesFilter"}} {
		for _, m := range found.decl.FindAllStringSubmatch(text, -1) {
			uses := regexp.MustCompile(`\b` + m[1] + `([.,) ])`)
			text = strings.Replace(text, m[0], "\x00", 1)
			lines := strings.Split(text, "\n")
			for i, line := range lines {
				if !strings.HasPrefix(strings.TrimSpace(line), "//") {
					lines[i] = uses.ReplaceAllString(line, m[1]+"()$1")
				}
			}
			text = strings.Replace(strings.Join(lines, "\n"), "\x00", "var "+m[1]+" = sync.OnceValue(func() "+found.kind+" { return "+m[2]+" })", 1)
		}
	}
	text = strings.Replace(text, "\t\"github.com/yuin/goldmark\"\n", "", 1)
	if strings.Contains(text, "sync.") {
		text = strings.Replace(text, "import (\n", "import (\n\t\"sync\"\n\n", 1)
	}
	text = strings.Replace(text, "package extension\n", "package gfm\n", 1)
	head := "// Code generated from package extension of goldmark " + version + " by TestCopy. DO NOT EDIT.\n\n/*\n" + licence + "*/\n\n"
	out, err := format.Source([]byte(head + text))
	return string(out), err
}

// TestCopy: the files are those of the version that go.mod names.
func TestCopy(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", "github.com/yuin/goldmark").Output()
	if err != nil {
		t.Fatal(err)
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	licence, err := os.ReadFile(filepath.Join(dir, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"linkify", "strikethrough", "table", "tasklist"} {
		text, err := os.ReadFile(filepath.Join(dir, "extension", name+".go"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := late(string(text), string(licence), version)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if *update {
			if err := os.WriteFile(name+"_gen.go", []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, _ := os.ReadFile(name + "_gen.go")
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s_gen.go is not that of goldmark %s; go test -run TestCopy -update writes it:\n%.2000s", name, version, diff)
		}
	}
}
