package acp_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/build"
	"html"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the drawings of the packages anew")

// TestDrawings holds docs/packages.svg and docs/packages-program.svg to the
// imports they are made from.
func TestDrawings(t *testing.T) {
	program := module + "/cmd/acp/internal/"
	for _, d := range []struct {
		file, dir, prefix string
		leave             func(pkg string) bool
	}{
		{"docs/packages.svg", ".", module, func(pkg string) bool {
			forTests := strings.HasPrefix(pkg, "internal/") && strings.HasSuffix(pkg, "test")
			return forTests || strings.HasPrefix(pkg, "examples/") || slices.Contains([]string{"internal/gen", "internal/sample", "internal/registry"}, pkg)
		}},
		{"docs/packages-program.svg", "cmd/acp/internal", program, func(pkg string) bool {
			return strings.HasPrefix(pkg, "test/")
		}},
	} {
		imports, err := importsBelow(d.dir, d.prefix)
		if err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(imports, func(pkg string, _ []string) bool { return d.leave(pkg) })
		want := drawPackages(imports)
		if *update {
			if err := os.WriteFile(filepath.FromSlash(d.file), want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(filepath.FromSlash(d.file))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go test -run TestDrawings . -update", d.file, err)
		}
	}
}

// importsBelow returns what each package below a directory imports of the others,
// tests aside. Packages are named without the prefix; the root package is "acp".
func importsBelow(dir, prefix string) (map[string][]string, error) {
	short := func(p string) string {
		if p = strings.Trim(p, "/"); p == "" || p == "." {
			return "acp"
		}
		return p
	}
	out := map[string][]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name := d.Name()
		if p != dir && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(p, "go.mod")); p != dir && err == nil {
			return fs.SkipDir // another module
		}
		pkg, err := build.ImportDir(p, 0)
		if _, none := err.(*build.NoGoError); none {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		var own []string
		for _, imp := range pkg.Imports {
			if rest, ok := strings.CutPrefix(imp, prefix); ok && (rest == "" || prefix[len(prefix)-1] == '/' || rest[0] == '/') {
				own = append(own, short(rest))
			}
		}
		out[short(filepath.ToSlash(rel))] = own
		return nil
	})
	return out, err
}

// drawPackages draws packages on floors: each stands above everything it imports.
// An import that follows from others is not drawn.
func drawPackages(imports map[string][]string) []byte {
	floors := map[string]int{}
	var floor func(pkg string) int
	floor = func(pkg string) int {
		if n, ok := floors[pkg]; ok {
			return n
		}
		n := 0
		for _, i := range imports[pkg] {
			if _, drawn := imports[i]; drawn {
				n = max(n, floor(i)+1)
			}
		}
		floors[pkg] = n
		return n
	}
	var reaches func(from, to string) bool
	reaches = func(from, to string) bool {
		return slices.ContainsFunc(imports[from], func(i string) bool { return i == to || reaches(i, to) })
	}
	rows := map[int][]string{}
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		n := floor(pkg)
		rows[n] = append(rows[n], pkg)
	}

	const (
		letter, high, gap, wide = 7.3, 28.0, 14.0, 1180.0
		between                 = 46.0
	)
	width := func(pkg string) float64 { return float64(len(pkg))*letter + 18 }
	type box struct{ x, y, w float64 }
	boxes := map[string]box{}
	y := 20.0
	for n := len(rows) - 1; n >= 0; n-- {
		for line := rows[n]; len(line) > 0; {
			total, count := -gap, 0
			for count < len(line) && (count == 0 || total+gap+width(line[count]) <= wide-40) {
				total += gap + width(line[count])
				count++
			}
			x := (wide - total) / 2
			for _, pkg := range line[:count] {
				boxes[pkg] = box{x, y, width(pkg)}
				x += width(pkg) + gap
			}
			line = line[count:]
			y += high + 12
		}
		y += between - 12
	}

	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">`+"\n", wide, y-between+20)
	b.WriteString(`<style>rect{fill:#f6f8fa;stroke:#57606a}text{fill:#1f2328}path{fill:none;stroke:#8c959f;stroke-opacity:.55}
@media (prefers-color-scheme: dark){rect{fill:#21262d;stroke:#8b949e}text{fill:#e6edf3}path{stroke:#8b949e}}</style>` + "\n")
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		from := boxes[pkg]
		direct := slices.Compact(slices.Sorted(slices.Values(imports[pkg])))
		for _, i := range direct {
			to, drawn := boxes[i]
			if !drawn || slices.ContainsFunc(direct, func(other string) bool { return other != i && reaches(other, i) }) {
				continue
			}
			x1, y1, x2, y2 := from.x+from.w/2, from.y+high, to.x+to.w/2, to.y
			fmt.Fprintf(&b, `<path d="M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f"/>`+"\n", x1, y1, x1, (y1+y2)/2, x2, (y1+y2)/2, x2, y2)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		at := boxes[pkg]
		fmt.Fprintf(&b, `<g><title>%s imports %s</title><rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="5"/><text x="%.0f" y="%.0f" text-anchor="middle">%s</text></g>`+"\n",
			html.EscapeString(path.Base(pkg)), html.EscapeString(strings.Join(slices.Sorted(slices.Values(imports[pkg])), ", ")),
			at.x, at.y, at.w, high, at.x+at.w/2, at.y+18, html.EscapeString(pkg))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
