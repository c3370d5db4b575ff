package patch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/plaintext"
)

func TestGit(t *testing.T) {
	ten := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	tests := []struct {
		name  string
		files []File
		want  string
	}{
		{"nothing", nil, ""},
		{"unchanged", []File{{OldPath: "/a", NewPath: "/a", Old: "x\n", New: "x\n"}}, ""},
		{"no paths", []File{{Old: "x", New: "y"}}, ""},
		{"modified", []File{{OldPath: "/d/a.go", NewPath: "/d/a.go", Old: ten, New: strings.Replace(ten, "5\n", "five\n", 1)}}, `diff --git a/d/a.go b/d/a.go
--- a/d/a.go
+++ b/d/a.go
@@ -2,7 +2,7 @@
 2
 3
 4
-5
+five
 6
 7
 8
`},
		{"two hunks", []File{{OldPath: "a", NewPath: "a", Old: ten, New: "0\n" + strings.Replace(ten, "9\n", "", 1)}}, `diff --git a/a b/a
--- a/a
+++ b/a
@@ -1,3 +1,4 @@
+0
 1
 2
 3
@@ -6,5 +7,4 @@
 6
 7
 8
-9
 10
`},
		{"six lines between", []File{{OldPath: "a", NewPath: "a", Old: ten, New: strings.NewReplacer("2\n", "b\n", "9\n", "i\n").Replace(ten)}}, `diff --git a/a b/a
--- a/a
+++ b/a
@@ -1,10 +1,10 @@
 1
-2
+b
 3
 4
 5
 6
 7
 8
-9
+i
 10
`},
		{"added", []File{{NewPath: "/n", New: "one\ntwo"}}, `diff --git a/n b/n
new file mode 100644
--- /dev/null
+++ b/n
@@ -0,0 +1,2 @@
+one
+two
\ No newline at end of file
`},
		{"added empty", []File{{NewPath: "/n"}}, "diff --git a/n b/n\nnew file mode 100644\n"},
		{"deleted", []File{{OldPath: "/n", Old: "one\n", New: "ignored"}}, `diff --git a/n b/n
deleted file mode 100644
--- a/n
+++ /dev/null
@@ -1 +0,0 @@
-one
`},
		{"moved", []File{{OldPath: "/a b", NewPath: "/c", Old: "x\ny\n", New: "x\ny\n"}}, `diff --git a/a b b/c
similarity index 100%
rename from a b
rename to c
`},
		{"moved and changed", []File{{OldPath: "/a b", NewPath: "/c", Old: "1234567\nx\n", New: "1234567\ny\n"}}, `diff --git a/a b b/c
similarity index 80%
rename from a b
rename to c
--- a/a b	
+++ b/c
@@ -1,2 +1,2 @@
 1234567
-x
+y
`},
		{"newline gone", []File{{OldPath: "a", NewPath: "a", Old: "x\n", New: "x"}}, `diff --git a/a b/a
--- a/a
+++ b/a
@@ -1 +1 @@
-x
+x
\ No newline at end of file
`},
		{"carriage returns", []File{{OldPath: "a", NewPath: "a", Old: "x\r\n", New: "x\n"}}, "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\r\n+x\n"},
		{"odd path", []File{{NewPath: "/tab\tquo\"te\\é\x01"}}, `diff --git "a/tab\tquo\"te\\\303\251\001" "b/tab\tquo\"te\\\303\251\001"` + "\nnew file mode 100644\n"},
		{"binary", []File{{OldPath: "a", NewPath: "a", Old: "x", New: "\x00"}, {NewPath: "b", New: "\xff"}}, `diff --git a/a b/a
Binary files a/a and b/a differ
diff --git a/b b/b
new file mode 100644
Binary files /dev/null and b/b differ
`},
		{"binary moved", []File{{OldPath: "a", NewPath: "b", Old: "x\x00", New: "y\x00"}}, "diff --git a/a b/b\nsimilarity index 0%\nrename from a\nrename to b\nBinary files a/a and b/b differ\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Git(tt.files...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTexts(t *testing.T) {
	tests := []struct {
		name, in string
		want     []File
	}{
		{"blank", " \n\n", nil},
		{"plain", "--- old.txt\t2026-01-01\n+++ new.txt\t2026-01-02\n@@ -1 +1,2 @@\n-a\n+b\n+c\n",
			[]File{{OldPath: "old.txt", NewPath: "new.txt", Old: "a\n", New: "b\nc\n", Partial: true}}},
		{"two plain", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d\n",
			[]File{{OldPath: "x", NewPath: "x", Old: "a\n", New: "b\n", Partial: true}, {OldPath: "y", NewPath: "y", Old: "c\n", New: "d\n", Partial: true}}},
		{"lines like headers", "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/q\n-+++ b/q\n+++ b/r\n+@@ -1 +1 @@\n",
			[]File{{OldPath: "x", NewPath: "x", Old: "-- a/q\n+++ b/q\n", New: "++ b/r\n@@ -1 +1 @@\n", Partial: true}}},
		{"noise around", "From: me\n\ndiff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@ func f()\n-a\n+b\n-- \n2.4\n",
			[]File{{OldPath: "x", NewPath: "x", Old: "a\n", New: "b\n", Partial: true}}},
		{"stripped space", "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n",
			[]File{{OldPath: "x", NewPath: "x", Old: "a\n\nb\n", New: "a\n\nc\n", Partial: true}}},
		{"line ends of another system", "--- a/x\r\n+++ b/x\r\n@@ -1,2 +1,2 @@\r\n\r\n-a\r\n+b\r\n",
			[]File{{OldPath: "x", NewPath: "x", Old: "\r\na\r\n", New: "\r\nb\r\n", Partial: true}}},
		{"other prefixes", "diff --git x/f y/f\n--- x/f\n+++ y/f\n@@ -1 +1 @@\n-a\n+b\n",
			[]File{{OldPath: "x/f", NewPath: "y/f", Old: "a\n", New: "b\n", Partial: true}}},
		{"binary added", "diff --git a/x b/x\nnew file mode 100644\nGIT binary patch\nliteral 3\nabc\n", []File{{NewPath: "x", Partial: true}}},
		{"mode only, spaces", "diff --git a/x b/y b/x b/y\nold mode 100644\nnew mode 100755\n", []File{{OldPath: "x b/y", NewPath: "x b/y", Partial: true}}},
		{"copied", "diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n", []File{{OldPath: "x", NewPath: "y", Partial: true}}},
		{"one path quoted", `diff --git a/x "b/\303\251"` + "\nsimilarity index 100%\nrename from x\n" + `rename to "\303\251"` + "\n",
			[]File{{OldPath: "x", NewPath: "é", Partial: true}}},
		{"newline missing in what stays", "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-a\n b\n\\ No newline at end of file\n",
			[]File{{OldPath: "x", NewPath: "x", Old: "a\nb", New: "b", Partial: true}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Texts(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTextsErrors(t *testing.T) {
	tests := []struct {
		name, in string
		want     error
		line     string
	}{
		{"no patch", "hello\n", errNone, ""},
		{"hunk without a file", "@@ -1 +1 @@\n", errHunk, "line 1"},
		{"hunk before the paths", "diff --git a/x b/x\n@@ -1 +1 @@\n", errHunk, "line 2"},
		{"bad numbers", "--- a/x\n+++ b/x\n@@ -a +1 @@\n", errHeader, "line 3"},
		{"huge numbers", "--- a/x\n+++ b/x\n@@ -1,99999999999 +1 @@\n", errHeader, "line 3"},
		{"no end of header", "--- a/x\n+++ b/x\n@@ -1 +1\n", errHeader, "line 3"},
		{"too short", "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-a\n", errShort, "line 4"},
		{"too long", "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n a\n-a\n", errShort, "line 5"},
		{"odd line", "--- a/x\n+++ b/x\n@@ -1 +1 @@\nx\n", errLine, "line 4"},
		{"stray mark", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n\\ No newline at end of file\n", errNewline, "line 4"},
		{"second mark", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No\n\\ No\n+b\n", errNewline, "line 6"},
		{"bad quotes", `diff --git "a/x b/x` + "\n", errPath, "line 1"},
		{"bad escape", `diff --git "a/\9" b/x` + "\n", errPath, "line 1"},
		{"escape at the end", `diff --git "a/\`, errPath, "line 1"},
		{"bad quotes later", "--- \"a\n+++ b/x\n", errPath, "line 1"},
		{"no path", "--- /dev/null\n+++ /dev/null\n@@ -0,0 +0,0 @@\n", errNameless, "line 3"},
		{"no path, then another file", "--- /dev/null\n+++ /dev/null\ndiff --git a/x b/x\n", errNameless, "line 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files, err := Texts(tt.in)
			if !errors.Is(err, tt.want) || files != nil {
				t.Fatalf("%v, %v; want %v", files, err, tt.want)
			}
			if !strings.Contains(err.Error(), tt.line) {
				t.Errorf("%q does not name %s", err, tt.line)
			}
		})
	}
}

// TestBack: what Git writes Texts reads: all of a file that is added or
// deleted, the changed part of another, and the paths without their slash.
func TestBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	paths := []string{"a", "/a/b", "with space", "q\"uo\\te", "é\n", "x b/x", "dev/null", "/dev/null"}
	for range 3000 {
		f := File{Old: randomText(rng, 12), New: randomText(rng, 12)}
		p, q := paths[rng.IntN(len(paths))], paths[rng.IntN(len(paths))]
		switch rng.IntN(4) {
		case 0:
			f.NewPath, f.Old = p, ""
		case 1:
			f.OldPath, f.New = p, ""
		case 2:
			f.OldPath, f.NewPath = p, p
		case 3:
			f.OldPath, f.NewPath = p, q
		}
		text := Git(f)
		got, err := Texts(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if text == "" {
			if len(got) > 0 {
				t.Fatal(got)
			}
			continue
		}
		g := got[0]
		if len(got) != 1 || "/"+g.OldPath != abs(f.OldPath) || "/"+g.NewPath != abs(f.NewPath) {
			t.Fatalf("%q %q became %+v\n%s", f.OldPath, f.NewPath, got, text)
		}
		if whole := f.OldPath == "" || f.NewPath == ""; g.Partial == whole {
			t.Fatalf("partial: %v\n%s", g.Partial, text)
		}
		if !g.Partial && (g.Old != f.Old || g.New != f.New) {
			t.Fatalf("%+v, want %+v\n%s", g, f, text)
		}
		out, err := apply(f.Old, text)
		if err != nil || out != f.New {
			t.Fatalf("%q, %v; want %q\n%s", out, err, f.New, text)
		}
	}
}

func abs(p string) string { return "/" + strings.TrimPrefix(p, "/") }

// randomText is a text of up to n lines with few different ones, so that many
// stay.
func randomText(rng *rand.Rand, n int) string {
	var b strings.Builder
	for range rng.IntN(n + 1) {
		b.WriteString([]string{"a\n", "b\n", "c\n", "\n", "-\n", "+++ x\n", "d\r\n", "\\ No\n"}[rng.IntN(8)])
	}
	if rng.IntN(3) == 0 {
		b.WriteString("end")
	}
	return b.String()
}

// apply applies the hunks of the first file of a patch to its old text, trusting the
// numbers of the lines, which must be right.
func apply(old, patch string) (string, error) {
	lines := split(old)
	var out []string
	at := 0
	left, right := 0, 0 // lines of the hunk to come
	last := byte(0)
	for line := range strings.SplitAfterSeq(patch, "\n") {
		if left == 0 && right == 0 && strings.HasPrefix(line, "@@ ") {
			var from, n, to, m int
			if _, err := fmt.Sscanf(full(line), "@@ -%d,%d +%d,%d @@", &from, &n, &to, &m); err != nil {
				return "", err
			}
			if n > 0 {
				from--
			}
			if m > 0 {
				to--
			}
			out = append(out, lines[at:from]...)
			at, left, right = from, n, m
			if len(out) != to {
				return "", fmt.Errorf("new line %d, want %d", len(out), to)
			}
			continue
		}
		if strings.HasPrefix(line, noNewline) {
			if last != '-' {
				out[len(out)-1] = strings.TrimSuffix(out[len(out)-1], "\n")
			}
			continue
		}
		if left == 0 && right == 0 || line == "" {
			continue
		}
		body := line[1:]
		last = line[0]
		if line[0] != '+' {
			if strings.TrimSuffix(lines[at], "\n") != strings.TrimSuffix(body, "\n") {
				return "", fmt.Errorf("old line %d is %q, not %q", at, lines[at], body)
			}
			at, left = at+1, left-1
		}
		if line[0] != '-' {
			out = append(out, body)
			right--
		}
	}
	return strings.Join(append(out, lines[at:]...), ""), nil
}

// full spells out the lengths of a hunk header.
func full(header string) string {
	f := strings.Fields(header)
	for i := 1; i <= 2; i++ {
		if !strings.Contains(f[i], ",") {
			f[i] += ",1"
		}
	}
	return strings.Join(f, " ")
}

// TestShortest holds the number of changed lines against a table of all
// sub-problems.
func TestShortest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 4000 {
		a, b := letters(rng, 14), letters(rng, 14)
		e := compare(a, b)
		var got int
		var keptA, keptB []string
		for i, gone := range e.deleted {
			if gone {
				got++
			} else {
				keptA = append(keptA, a[i])
			}
		}
		for j, come := range e.inserted {
			if come {
				got++
			} else {
				keptB = append(keptB, b[j])
			}
		}
		if !slices.Equal(keptA, keptB) {
			t.Fatalf("%q %q keep %q and %q", a, b, keptA, keptB)
		}
		if want := distance(a, b); got != want {
			t.Fatalf("%q %q: %d edits, want %d", a, b, got, want)
		}
	}
}

func letters(rng *rand.Rand, n int) []string {
	out := make([]string, rng.IntN(n))
	for i := range out {
		out[i] = string(rune('a' + rng.IntN(3)))
	}
	return out
}

func distance(a, b []string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			next := min(row[j+1], row[j]) + 1
			if a[i] == b[j] {
				next = diagonal
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// TestBound: texts without a common line in disorder cost no more than the
// bound, and still give a valid patch.
func TestBound(t *testing.T) {
	var old, new strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&old, "old %d\n", i)
		fmt.Fprintf(&new, "new %d\n", i)
	}
	f := File{OldPath: "x", NewPath: "x", Old: "same\n" + old.String() + "end\n", New: "same\n" + new.String() + "end\n"}
	text := Git(f)
	if got, err := apply(f.Old, text); err != nil || got != f.New {
		t.Fatal("the patch does not give the new text", err)
	}
	if n := strings.Count(text, "\n@@ "); n != 1 {
		t.Errorf("%d hunks, want one", n)
	}
	d := differ{work: 100, edits: edits{deleted: make([]bool, 3), inserted: make([]bool, 3)}, a: []int32{0, 1, 2}, b: []int32{3, 1, 4}}
	d.compare(0, 3, 0, 3)
	if d.work < 0 || d.deleted[1] {
		t.Fatalf("a hundred comparisons do not do: %+v", d)
	}
	d.work, d.edits = 3, edits{deleted: make([]bool, 3), inserted: make([]bool, 3)}
	d.compare(0, 3, 0, 3)
	if want := []bool{true, true, true}; !slices.Equal(d.deleted, want) || !slices.Equal(d.inserted, want) {
		t.Errorf("after the bound: %+v", d.edits)
	}
}

// TestAgainstGit has git apply what we write, where there is one.
func TestAgainstGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git on this machine")
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 40 {
		dir := t.TempDir()
		path := []string{"a.txt", "with space.txt", "é.txt", `back\slash`}[i%4]
		f := File{OldPath: path, NewPath: path, Old: randomText(rng, 30), New: randomText(rng, 30)}
		switch i % 5 {
		case 0:
			f.OldPath, f.Old = "", ""
		case 1:
			f.NewPath, f.New = "", ""
		case 2:
			f.NewPath = "moved " + path
		}
		if f.OldPath != "" {
			if err := os.WriteFile(filepath.Join(dir, f.OldPath), []byte(f.Old), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text := Git(f)
		if text == "" {
			continue
		}
		cmd := exec.Command(git, "apply", "--whitespace=nowarn", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(text)
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s\n%s", err, out, text)
		}
		if f.NewPath == "" {
			if _, err := os.Stat(filepath.Join(dir, path)); !os.IsNotExist(err) {
				t.Fatalf("still there: %v", err)
			}
			continue
		}
		got, err := os.ReadFile(filepath.Join(dir, f.NewPath))
		if err != nil || string(got) != f.New {
			t.Fatalf("%q, %v; want %q\n%s", got, err, f.New, text)
		}
	}
}

func FuzzTexts(f *testing.F) {
	f.Add("diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n")
	f.Add("--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-a\n b\n\\ No newline at end of file\n")
	f.Add("diff --git \"a/\\303\\251\" \"b/q\\\"\"\nsimilarity index 9%\nrename from \"\\t\"\nrename to y\n")
	f.Fuzz(func(t *testing.T, in string) {
		files, err := Texts(in)
		if err != nil {
			return
		}
		size := 0
		for _, v := range files {
			size += len(v.Old) + len(v.New)
			if v.OldPath == "" && v.NewPath == "" {
				t.Fatalf("a file without a path: %q", in)
			}
		}
		if size > 2*len(in)+2*len(files) {
			t.Fatalf("%d bytes of texts from %d", size, len(in))
		}
	})
}

func FuzzGit(f *testing.F) {
	f.Add("a\nb\n", "a\nc")
	f.Add("", "x\r\n")
	f.Add("\\ No\n", "+++ \n--- \n")
	f.Fuzz(func(t *testing.T, old, new string) {
		text := Git(File{OldPath: "/x", NewPath: "/x", Old: old, New: new})
		if plaintext.IsBinary(old) || plaintext.IsBinary(new) || old == new {
			return
		}
		if got, err := apply(old, text); err != nil || got != new {
			t.Fatalf("%q, %v; want %q\n%s", got, err, new, text)
		}
		if _, err := Texts(text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}

// TestSpans: what differs, line by line.
func TestSpans(t *testing.T) {
	for _, tc := range []struct {
		old, new string
		want     []Span
	}{
		{"", "", nil},
		{"a\n", "a\n", nil},
		{"a\nb\nc\n", "a\nx\ny\nc\n", []Span{{1, 2, 1, 3}}},
		{"a\nb\nc", "b\nc\n", []Span{{0, 1, 0, 0}, {2, 3, 1, 2}}},
		{"", "a", []Span{{0, 0, 0, 1}}},
	} {
		if diff := cmp.Diff(tc.want, Spans(tc.old, tc.new)); diff != "" {
			t.Errorf("%q, %q: %s", tc.old, tc.new, diff)
		}
	}
}
