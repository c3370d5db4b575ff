package edit

import (
	"flag"
	"fmt"
	"go/build"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A drift makes an edit, and the file it is for, differ in the way that models and other
// editors do. It returns false if that does not apply.
type drift struct {
	name string
	// keeps says that the old text is still the same but for blanks, so that the edit has
	// to be made where it is unique.
	keeps bool
	make  func(rng *rand.Rand, c *mutation) bool
}

// A mutation is an edit of a file.
type mutation struct {
	file, old, now string
	want           string // the file after it
}

var drifts = []drift{
	{"none", true, func(*rand.Rand, *mutation) bool { return true }},
	{"blanks at the ends of lines", true, func(rng *rand.Rand, c *mutation) bool {
		before := c.old
		c.both(func(l string) string {
			if l != "" && len(l)%3 == 0 {
				return l + "  "
			}
			return l
		})
		return c.old != before // blanks in the new text alone are meant
	}},
	{"blanks at the ends of the file's lines", true, func(_ *rand.Rand, c *mutation) bool {
		return c.inFile(func(l string) string {
			if len(l)%3 == 0 {
				return l + " \t"
			}
			return l
		})
	}},
	{"indentation missing", true, func(_ *rand.Rand, c *mutation) bool {
		if strings.Count(strings.TrimSpace(c.old), "\n") == 0 {
			return false // a line without it is a part of the line, which is found exactly
		}
		least := ""
		for i, l := range strings.Split(strings.TrimSuffix(c.old+c.now, "\n"), "\n") {
			indent, body := indented(l)
			if body != "" && (i == 0 || len(indent) < len(least)) {
				least = indent
			}
		}
		ok := least != ""
		c.both(func(l string) string {
			after, had := strings.CutPrefix(l, least)
			ok = ok && (had || strings.TrimSpace(l) == "")
			return after
		})
		return ok
	}},
	{"indentation more", true, func(_ *rand.Rand, c *mutation) bool {
		c.both(func(l string) string {
			if l == "" {
				return l
			}
			return "\t" + l
		})
		return true
	}},
	{"four blanks for each tab", true, func(_ *rand.Rand, c *mutation) bool { return c.tabs(4) }},
	{"two blanks for each tab", true, func(_ *rand.Rand, c *mutation) bool { return c.tabs(2) }},
	{"CRLF in the file", true, func(_ *rand.Rand, c *mutation) bool {
		if strings.Contains(c.file+c.want, "\r") {
			return false
		}
		c.file, c.want = strings.ReplaceAll(c.file, "\n", "\r\n"), strings.ReplaceAll(c.want, "\n", "\r\n")
		return true
	}},
	{"CRLF in the edit", true, func(_ *rand.Rand, c *mutation) bool {
		c.old, c.now = strings.ReplaceAll(c.old, "\n", "\r\n"), strings.ReplaceAll(c.now, "\n", "\r\n")
		return !strings.Contains(c.file, "\r")
	}},
	{"a line of the file has changed", false, func(rng *rand.Rand, c *mutation) bool {
		lines := strings.SplitAfter(c.old, "\n")
		i := rng.IntN(len(lines) - 1)
		if strings.TrimSpace(lines[i]) == "" {
			return false
		}
		lines[i] = strings.TrimSuffix(lines[i], "\n") + " // changed\n"
		c.file = strings.Replace(c.file, c.old, strings.Join(lines, ""), 1)
		c.want = ""
		return true
	}},
	{"the place is there twice", false, func(_ *rand.Rand, c *mutation) bool {
		c.file += "\n" + c.old
		c.want = ""
		return true
	}},
	{"a word of the old text is wrong", false, func(rng *rand.Rand, c *mutation) bool {
		words := strings.Fields(c.old)
		w := words[rng.IntN(len(words))]
		c.old = strings.Replace(c.old, w, w+"x", 1)
		c.want = ""
		return true
	}},
}

// both changes the lines of the old and of the new text.
func (c *mutation) both(f func(string) string) {
	each := func(s string) string {
		lines := strings.Split(s, "\n")
		for i, l := range lines {
			lines[i] = f(l)
		}
		return strings.Join(lines, "\n")
	}
	c.old, c.now = each(c.old), each(c.now)
}

// inFile changes the lines of the file that the edit is about.
func (c *mutation) inFile(f func(string) string) bool {
	was, is := strings.SplitAfter(c.old, "\n"), strings.SplitAfter(c.now, "\n")
	kept := map[string]string{}
	var there strings.Builder
	for _, l := range was {
		changed := l
		if body, ok := strings.CutSuffix(l, "\n"); ok {
			changed = f(body) + "\n"
		}
		if k, ok := kept[l]; ok && k != changed {
			return false
		}
		kept[l] = changed
		there.WriteString(changed)
	}
	// Lines that the edit leaves as they are keep their bytes; a line that it adds again
	// elsewhere does not have them.
	same := 0
	for same < min(len(was), len(is)) && was[same] == is[same] {
		same++
	}
	tail := 0
	for tail < min(len(was), len(is))-same && was[len(was)-1-tail] == is[len(is)-1-tail] {
		tail++
	}
	var after strings.Builder
	for i, l := range is {
		if i < same || i >= len(is)-tail {
			l = kept[l]
		}
		after.WriteString(l)
	}
	before, rest, ok := strings.Cut(c.file, c.old)
	if !ok {
		return false
	}
	c.file, c.want = before+there.String()+rest, before+after.String()+rest
	return true
}

// tabs replaces the tabs of indentations by blanks.
func (c *mutation) tabs(n int) bool {
	ok := strings.Contains(c.old, "\t")
	c.both(func(l string) string {
		indent, _ := indented(l)
		if strings.Trim(indent, "\t") != "" {
			ok = false // it is not certain any more what the blanks stand for
		}
		return strings.ReplaceAll(indent, "\t", strings.Repeat(" ", n)) + l[len(indent):]
	})
	return ok
}

// sources returns source files of the Go distribution, which are the same for everybody
// who has the same version.
func sources(t *testing.T, most int) []string {
	t.Helper()
	var all []string
	for _, root := range []string{"net", "encoding", "go", "cmd/vet", "text", "html"} {
		all = append(all, textsIn(t, filepath.Join(goroot(t), "src", filepath.FromSlash(root)), most/3+1, ".go")...)
	}
	return all
}

// otherSources returns files of other languages: what the Go distribution has of them, and,
// where they are installed, the libraries of Python, Perl and Node.
func otherSources(t *testing.T, most int) []string {
	t.Helper()
	var all []string
	roots := []string{goroot(t)}
	for _, pattern := range []string{"/usr/lib/python3*", "/usr/share/perl/5*", "/usr/lib/node_modules", "/usr/share/nodejs", "/usr/local/lib/node_modules"} {
		found, _ := filepath.Glob(pattern)
		roots = append(roots, found...)
	}
	for _, root := range roots {
		all = append(all, textsIn(t, root, most/2+1, ".py", ".js", ".ts", ".pl", ".pm", ".c", ".h", ".s", ".css", ".html", ".yml", ".yaml", ".sh", ".bash", ".json")...)
	}
	return all
}

func goroot(t *testing.T) string {
	t.Helper()
	if root := build.Default.GOROOT; root != "" {
		return root
	}
	out, err := exec.Command("go", "env", "GOROOT").Output() // with -trimpath
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// textsIn returns files below a directory with such names.
func textsIn(t *testing.T, root string, most int, ends ...string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it may be incomplete
		}
		if len(all) >= most {
			return fs.SkipAll
		}
		if d.IsDir() && p != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && slices.Contains(ends, filepath.Ext(p)) {
			if data, err := os.ReadFile(p); err == nil && len(data) > 500 && len(data) < 200_000 {
				all = append(all, string(data))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// mutate makes an edit of a file: a few lines, of which some are changed, removed or joined
// by others. It returns false if the lines do not make a sensible edit.
func mutate(rng *rand.Rand, file string) (mutation, bool) {
	lines := strings.SplitAfter(file, "\n")
	n := 1 + rng.IntN(8)
	if len(lines) < n+2 {
		return mutation{}, false
	}
	at := rng.IntN(len(lines) - n - 1)
	old := strings.Join(lines[at:at+n], "")
	if strings.TrimSpace(old) == "" || !strings.HasSuffix(old, "\n") || strings.Index(file, old) != strings.LastIndex(file, old) {
		return mutation{}, false
	}
	now := append([]string(nil), lines[at:at+n]...)
	i := rng.IntN(n)
	indent, body := indented(strings.TrimSuffix(now[i], "\n"))
	switch {
	case body == "":
		return mutation{}, false
	case rng.IntN(3) == 0:
		now[i] = indent + "changed(" + body + ")\n"
	case rng.IntN(2) == 0:
		now[i] = indent + "before()\n" + now[i]
	case n > 1:
		now[i] = ""
	default:
		now[i] += indent + "after()\n"
	}
	c := mutation{file: file, old: old, now: strings.Join(now, "")}
	c.want = strings.Join(lines[:at], "") + c.now + strings.Join(lines[at+n:], "")
	return c, c.now != "" && c.now != c.old
}

// corpus is how many edits are made with each kind of drift. The gate makes 10,000.
var corpus = flag.Int("edits", 500, "how many edits TestCorpus makes with each kind of drift")

// TestCorpus: edits of real files, with twelve kinds of drift. What is the same but for
// blanks, and unique, is applied; nothing is ever applied wrongly.
func TestCorpus(t *testing.T) {
	edits, most := *corpus, 1500
	if testing.Short() {
		edits = min(edits, 200)
	}
	if edits < 1000 {
		most = 100
	}
	files := sources(t, most)
	if len(files) < most/3 {
		t.Fatalf("only %d files", len(files))
	}
	rng := rand.New(rand.NewPCG(15, 12))
	var report strings.Builder
	for _, d := range drifts {
		applied, refused, ambiguous, short, wrong := 0, 0, 0, 0, 0
		for made := 0; made < edits; {
			c, ok := mutate(rng, files[rng.IntN(len(files))])
			if !ok {
				continue
			}
			plain, was := c.old, c.file
			if !d.make(rng, &c) || c.old == c.now || c.old != plain && strings.Contains(c.file, c.old) {
				made++ // it does not apply to this one, or is the text of another place
				continue
			}
			made++
			known := shown(c.file)
			if !d.keeps { // the file has changed since it was read
				known = shown(was)
			}
			got, _, err := Apply(c.file, []Edit{{Old: c.old, New: c.now}}, known)
			switch {
			case err != nil && strings.Contains(err.Error(), "times, at lines"):
				ambiguous++
			case err != nil && d.keeps && len(strings.Join(strings.Fields(c.old), "")) < minShifted:
				short++
			case err != nil:
				refused++
				if d.keeps && refused <= 2 {
					t.Logf("%s: refused: %v\nold:\n%q\nnew:\n%q", d.name, err, c.old, c.now)
				}
			case d.keeps && got == c.want:
				applied++
			default:
				if wrong++; wrong <= 2 {
					t.Errorf("%s: wrong:\nold:\n%q\nnew:\n%q\ngot:\n%q\nwant:\n%q", d.name, c.old, c.now, differing(got, c.want), differing(c.want, got))
				}
			}
		}
		fmt.Fprintf(&report, "%-40s %6d applied %6d refused %6d ambiguous %4d too short %6d wrong\n", d.name, applied, refused, ambiguous, short, wrong)
		if d.keeps && refused*100 > applied {
			t.Errorf("%s: %d applied and %d refused", d.name, applied, refused)
		}
	}
	t.Logf("%d files\n%s", len(files), report.String())
}

// differing returns the lines of a that differ from those of b.
func differing(a, b string) string {
	as, bs := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	for len(as) > 0 && len(bs) > 0 && as[0] == bs[0] {
		as, bs = as[1:], bs[1:]
	}
	for len(as) > 0 && len(bs) > 0 && as[len(as)-1] == bs[len(bs)-1] {
		as, bs = as[:len(as)-1], bs[:len(bs)-1]
	}
	return strings.Join(as, "")
}
