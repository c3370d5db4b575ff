package edit

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePatch(t *testing.T) {
	got, err := ParsePatch(`cat <<'EOF'
*** Begin Patch
*** Add File: new.txt
+one
+
+two

*** Delete File: old.txt
*** Update File: a.go
*** Move to: b.go
@@ func f() {
@@ 	if x {
 	keep
-	gone

+	new
*** End of File
*** Update File: c.go
-a
+b
*** End Patch
EOF`)
	if err != nil {
		t.Fatal(err)
	}
	want := &Patch{Files: []FilePatch{
		{Path: "new.txt", Do: Add, Text: "one\n\ntwo\n"},
		{Path: "old.txt", Do: Delete},
		{Path: "a.go", Do: Update, To: "b.go", Hunks: []Hunk{{
			After: []string{"func f() {", "if x {"}, Old: []string{"\tkeep", "\tgone", ""}, New: []string{"\tkeep", "", "\tnew"}, End: true,
		}}},
		{Path: "c.go", Do: Update, Hunks: []Hunk{{Old: []string{"a"}, New: []string{"b"}}}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPatchErrors(t *testing.T) {
	const section = "*** Add File: PATH, *** Delete File: PATH or *** Update File: PATH is wanted, not "
	for text, want := range map[string]string{
		"":                                "the line *** Begin Patch is missing: write *** Begin Patch, *** Update File: PATH, @@, the lines with a blank, - or + in front, *** End Patch",
		"*** Begin Patch\n":               "line 2 of the patch: the patch is empty: add a section such as *** Update File: PATH",
		"*** Begin Patch\n*** End Patch":  "line 2 of the patch: the patch is empty: add a section such as *** Update File: PATH",
		"*** Begin Patch\nhello":          "line 2 of the patch: " + section + `"hello"`,
		"*** Begin Patch\n*** Add File: ": "line 2 of the patch: " + section + `"*** Add File:"`,
		"*** Begin Patch\n*** Add File: a\n+x\ny\n*** End Patch":    `line 4 of the patch: each line of a file that is added begins with a plus, not "y"`,
		"*** Begin Patch\n*** Update File: a\n*** x\n*** End Patch": `line 3 of the patch: each line of an update begins with a blank, a minus, a plus or @@, not "*** x"`,
		"*** Begin Patch\n*** Update File: a\n*** End Patch":        "line 2 of the patch: the update of a changes nothing: add lines that begin with - or +",
		"*** Begin Patch\n*** Update File: a\n@@ b\n*** End Patch":  "line 3 of the patch: the update of a changes nothing: add lines that begin with - or +",
		"*** Begin Patch\n*** Update File: a\n b\n*** End Patch":    "line 3 of the patch: the update of a changes nothing: add lines that begin with - or +",
		"*** Begin Patch\n*** Move File: a\n*** End Patch":          "line 2 of the patch: it is not said where a goes: add the line *** Move to: PATH",
		"--- x\n+++ y\n@@ -1 +1 @@\n-a\n+b\n":                       "line 2 of the patch: the diff names x and y: write the same path after --- and +++",
		"diff --git a/x b/x\nBinary files a/x and b/x differ":       `line 2 of the patch: "Binary files a/x and b/x differ" cannot be done with a patch: use a command`,
		"--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n*** x":          `line 5 of the patch: each line of an update begins with a blank, a minus, a plus or @@, not "*** x"`,
	} {
		if _, err := ParsePatch(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestPatchShapes: what models write instead of the form that they were taught.
func TestPatchShapes(t *testing.T) {
	change := []FilePatch{{Path: "f", Do: Update, Hunks: []Hunk{{Old: []string{"a"}, New: []string{"b"}}}}}
	numbered := func(after ...string) []FilePatch {
		return []FilePatch{{Path: "f", Do: Update, Hunks: []Hunk{{Old: []string{"a"}, New: []string{"b"}, Numbered: true, After: after}}}}
	}
	for _, tc := range []struct {
		name, patch string
		want        []FilePatch
	}{
		{"no end", "*** Begin Patch\n*** Update File: f\n-a\n+b\n", change},
		{"no end, in a heredoc", "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: f\n-a\n+b\nEOF\n", change},
		{"no end, in a heredoc with another word", "apply_patch <<'PATCH-1'\n*** Begin Patch\n*** Update File: f\n-a\n+b\nPATCH-1\n", change},
		{"no end, in Markdown", "```diff\n*** Begin Patch\n*** Update File: f\n-a\n+b\n```", change},
		{"no beginning", "*** Update File: f\n@@\n-a\n+b\n*** End Patch", change},
		{"other words", "*** begin patch\n*** Modify File: `f`\n@@ ... @@\n-a\n+b\n*** end patch", change},
		{"names of a diff", "*** Begin Patch\n*** Update File: f\n--- a/f\n+++ b/f\n@@\n-a\n+b\n*** End Patch", change},
		{"a diff in a patch", "*** Begin Patch\n--- a/f\n+++ b/f\n@@ -3,1 +3,1 @@\n-a\n+b\n*** End Patch", numbered()},
		{"line numbers", "*** Begin Patch\n*** Update File: f\n@@ -3,1 +3,1 @@ func B()\n-a\n+b\n*** End Patch", numbered("func B()")},
		{"a diff", "--- a/f\t2026-01-01\n+++ b/f\t2026-01-02\n@@ -3 +3 @@\n-a\n+b\n", numbered()},
		{"a diff without letters", "--- f\n+++ f\n@@ -3 +3 @@\n-a\n+b\n", numbered()},
		{"a diff with the file of before", "--- f.orig\n+++ f\n@@ -3 +3 @@\n-a\n+b\n", numbered()},
		{"a diff of git", "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -3 +3 @@ x\n-a\n+b\n", numbered("x")},
		{"files of git", "diff --git a/n b/n\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n" +
			"diff --git a/d b/d\ndeleted file mode 100644\n--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n" +
			"diff --git a/o b/p\nsimilarity index 100%\nrename from o\nrename to p\n", []FilePatch{
			{Path: "n", Do: Add, Text: "x\ny"},
			{Path: "d", Do: Delete, Hunks: []Hunk{{Old: []string{"x"}, Numbered: true}}},
			{Path: "o", Do: Update, To: "p"},
		}},
		{"moves", "*** Begin Patch\n*** Move File: a -> b\n*** Move File: c\n*** Move to: d\n*** Update File: e\n*** Move File: g\n*** End Patch", []FilePatch{
			{Path: "a", Do: Update, To: "b"}, {Path: "c", Do: Update, To: "d"}, {Path: "e", Do: Update, To: "g"},
		}},
		{"two sections", "*** Begin Patch\n*** Update File: f\n-a\n+b\n*** Update File: ./f\n-c\n+d\n*** End Patch", []FilePatch{
			{Path: "f", Do: Update, Hunks: []Hunk{{Old: []string{"a"}, New: []string{"b"}}, {Old: []string{"c"}, New: []string{"d"}}}},
		}},
		{"two patches", "*** Begin Patch\n*** Add File: f\n+a\n*** End Patch\n*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch", []FilePatch{
			{Path: "f", Do: Add, Text: "b\n"},
		}},
		{"an added text without pluses", "*** Begin Patch\n*** Add File: f\na\n\nb\n\n*** End Patch", []FilePatch{{Path: "f", Do: Add, Text: "a\n\nb\n"}}},
		{"no blank before what stays", "*** Begin Patch\n*** Update File: f\nx\n-a\n+b\n\n*** End Patch", []FilePatch{
			{Path: "f", Do: Update, Hunks: []Hunk{{Old: []string{"x", "a"}, New: []string{"x", "b"}}}},
		}},
		{"a deleted file with its text", "*** Begin Patch\n*** Delete File: f\n-a\n*** End Patch", []FilePatch{{Path: "f", Do: Delete, Hunks: []Hunk{{Old: []string{"a"}}}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParsePatch(tc.patch)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Files); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestApplyHunks(t *testing.T) {
	const twins = "def a():\n    x = 1\n    return x\n\n\ndef b():\n    x = 1\n    return x\n"
	const file = "package a\n\nfunc f() {\n\tx()\n\treturn nil\n}\n\nfunc g() {\n\tx()\n\treturn nil\n}\n"
	for _, tc := range []struct {
		name, text, patch, want string
	}{
		{"one place", file, " package a\n+// new\n", "package a\n// new\n\nfunc f() {\n\tx()\n\treturn nil\n}\n\nfunc g() {\n\tx()\n\treturn nil\n}\n"},
		{"after a line", file, "@@ func g() {\n-\tx()\n+\ty()\n", "package a\n\nfunc f() {\n\tx()\n\treturn nil\n}\n\nfunc g() {\n\ty()\n\treturn nil\n}\n"},
		{"in order", file, " func f() {\n-\tx()\n+\ty()\n@@\n-\tx()\n+\tz()\n", "package a\n\nfunc f() {\n\ty()\n\treturn nil\n}\n\nfunc g() {\n\tz()\n\treturn nil\n}\n"},
		{"at the end", file, "-\treturn nil\n }\n+// end\n*** End of File\n", "package a\n\nfunc f() {\n\tx()\n\treturn nil\n}\n\nfunc g() {\n\tx()\n}\n// end\n"},
		{"only new lines", "a\nb\n", "+c\n", "a\nb\nc\n"},
		{"only new lines after one", "a\nb\n", "@@ a\n+c\n", "a\nc\nb\n"},
		{"only new lines, no end of the last line", "a", "+c\n", "a\nc"},
		{"only new lines, CRLF", "a\r\nb\r\n", "+c\n+d\n", "a\r\nb\r\nc\r\nd\r\n"},
		{"empty file", "", "+c\n", "c\n"},
		{"all lines gone", "a\nb\n", "-a\n-b\n", ""},
		{"CRLF", "a\r\nb\r\n", "-a\n+x\n b\n", "x\r\nb\r\n"},
		{"a place alone", twins, "@@\n def b():\n     x = 1\n@@\n-    return x\n+    return 2\n@@\n nowhere\n", "def a():\n    x = 1\n    return x\n\n\ndef b():\n    x = 1\n    return 2\n"},
		{"more signs", twins, "@@@ -8,1 +8,1 @@@ def b():\n-    return x\n+    return 2\n", "def a():\n    x = 1\n    return x\n\n\ndef b():\n    x = 1\n    return 2\n"},
		{"indentation", file, "@@ func g() {\n-    x()\n+    y()\n+    z()\n     return nil\n", "package a\n\nfunc f() {\n\tx()\n\treturn nil\n}\n\nfunc g() {\n\ty()\n\tz()\n\treturn nil\n}\n"},
		{"the first of equal places", twins, "@@ def a():\n     x = 1\n-    return x\n+    return 2\n", "def a():\n    x = 1\n    return 2\n\n\ndef b():\n    x = 1\n    return x\n"},
		{"the second of equal places", twins, "@@ def b():\n     x = 1\n-    return x\n+    return 2\n", "def a():\n    x = 1\n    return x\n\n\ndef b():\n    x = 1\n    return 2\n"},
		{"one after the other", twins, "@@\n-    return x\n+    return 1\n@@\n-    return x\n+    return 2\n", "def a():\n    x = 1\n    return 1\n\n\ndef b():\n    x = 1\n    return 2\n"},
		{"two below one line", twins, "@@ def a():\n-    x = 1\n+    x = 3\n@@ def a():\n-    return x\n+    return 2\n", "def a():\n    x = 3\n    return 2\n\n\ndef b():\n    x = 1\n    return x\n"},
		{"the line of @@ again", twins, "@@ def b():\n def b():\n-    x = 1\n+    x = 3\n", "def a():\n    x = 1\n    return x\n\n\ndef b():\n    x = 3\n    return x\n"},
		{"the line of @@ further below", twins, "@@ def b():\n \n \n def b():\n-    x = 1\n+    x = 3\n", "def a():\n    x = 1\n    return x\n\n\ndef b():\n    x = 3\n    return x\n"},
		{"nested lines", "class A:\n  def s(self):\n    pass\nclass B:\n  def s(self):\n    pass\n", "@@ class B\n@@ def s(self):\n-    pass\n+    return\n", "class A:\n  def s(self):\n    pass\nclass B:\n  def s(self):\n    return\n"},
		{"out of order", twins, "@@ def b():\n-    x = 1\n+    x = 3\n@@ def a():\n-    x = 1\n+    x = 2\n", "def a():\n    x = 2\n    return x\n\n\ndef b():\n    x = 3\n    return x\n"},
		{"what stays twice", "a\nb\nc\nd\n", " a\n-b\n+2\n c\n@@\n c\n-d\n+4\n", "a\n2\nc\n4\n"},
		{"the function above the place", twins, "@@ -5,2 +5,2 @@ def a():\n-def b():\n+def c():\n     x = 1\n", "def a():\n    x = 1\n    return x\n\n\ndef c():\n    x = 1\n    return x\n"},
		{"a wrong line number", twins, "@@ -90,2 +90,2 @@ def b():\n     x = 1\n-    return x\n+    return 2\n", "def a():\n    x = 1\n    return x\n\n\ndef b():\n    x = 1\n    return 2\n"},
		{"a line end comes", "a\nb", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n", "a\nc\n"},
		{"a line end goes", "a\nb\n", "@@ -2 +2 @@\n-b\n+c\n\\ No newline at end of file\n", "a\nc"},
		{"no line end, though the file has one", "a\nb\n", "@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n", "c\nb\n"},
		{"no line end, before and after", "x\nb\nx", "@@\n-x\n+c\n*** End of File\n", "x\nb\nc"},
		{"a section", "[dev]\nport = 1\n[prod]\nport = 1\n", "@@ [prod]\n-port = 1\n+port = 2\n", "[dev]\nport = 1\n[prod]\nport = 2\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := ParsePatch("*** Begin Patch\n*** Update File: f\n" + tc.patch + "*** End Patch")
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := ApplyHunks("f", tc.text, p.Files[0].Hunks, shown(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestHunksRefused(t *testing.T) {
	const flat = "x\nsame\nsame\nlast\n"
	const twins = "def a():\n    x = 1\n    return y\n\ndef b():\n    x = 1\n    return x\n\ndef b():\n    return x\n"
	const ini = "[dev]\nport = 2\n[prod]\nport = 1\n"
	for _, tc := range []struct {
		name, text string
		hunks      []Hunk
		want       string
	}{
		{"ambiguous", flat, []Hunk{{Old: []string{"x"}, New: []string{"y"}}, {Old: []string{"same"}, New: []string{"y"}}},
			"f: hunk 2: the old text is in the file 2 times, at lines 2, 3: put @@ and the function or class above it, or give more lines that stay"},
		{"line before missing", flat, []Hunk{{After: []string{"nowhere"}, Old: []string{"x"}, New: []string{"y"}}},
			"f: hunk 1: the line @@ nowhere is not in the file: name a line that is there, or leave @@ out and give more lines that stay."},
		{"missing", flat, []Hunk{{Old: []string{"nowhere"}, New: []string{"y"}}}, "f: hunk 1: the old text is not in the file, nor anything like it: read the file again"},
		{"the place of the name has gone", twins, []Hunk{{After: []string{"def a():"}, Old: []string{"    return x"}, New: []string{"    return 1"}}},
			"f: hunk 1: the line @@ def a(): does not tell the places apart, at lines 7, 10: put an @@ line with the class or function above it"},
		{"the place of the name has gone, one is left", ini, []Hunk{{After: []string{"[dev]"}, Old: []string{"port = 1"}, New: []string{"port = 3"}}},
			"f: hunk 1: the old text is not in what @@ [dev] begins, but at line 4: name what is above that place"},
		{"the place of the name of a diff has gone, one is left", "func A() {\n\tx()\n}\n\nfunc B() {\n\tz()\n}\n", []Hunk{{After: []string{"func B()"}, Numbered: true, Old: []string{"\tx()"}, New: []string{"\ty()"}}},
			"f: hunk 1: the old text is not in what @@ func B() begins, but at line 2: name what is above that place"},
		{"the name of a diff has gone", "func A() {\n\tx()\n}\n", []Hunk{{After: []string{"func B()"}, Numbered: true, Old: []string{"\tx()"}, New: []string{"\ty()"}}},
			"f: hunk 1: the line @@ func B() is not in the file: name a line that is there, or leave @@ out and give more lines that stay."},
		{"the name is there twice", twins, []Hunk{{After: []string{"def b():"}, Old: []string{"    return x"}, New: []string{"    return 1"}}},
			"f: hunk 1: the line @@ def b(): does not tell the places apart, at lines 7, 10: put an @@ line with the class or function above it"},
		{"a number alone", flat, []Hunk{{Numbered: true, New: []string{"y"}}}, "f: hunk 1: it has no line that stays or goes: add a line of the file with a blank in front"},
		{"a number for two places", flat, []Hunk{{Numbered: true, Old: []string{"same"}, New: []string{"y"}}},
			"f: hunk 1: the old text is in the file 2 times, at lines 2, 3: put @@ and the function or class above it, or give more lines that stay"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := ApplyHunks("f", tc.text, tc.hunks, shown(tc.text))
			if r, ok := errors.AsType[*Refusal](err); !ok || r.Error() != tc.want {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}

// FuzzPatch: a patch is read and made without a panic, and its context stays.
func FuzzPatch(f *testing.F) {
	f.Add("*** Begin Patch\n*** Update File: f\n@@ a\n-b\n+c\n*** End of File\n*** End Patch", "a\nb\n")
	f.Add("*** Begin Patch\n*** Update File: f\n+c\n\n*** End Patch", "a\r\nb")
	f.Add("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1 @@ x\n-a\n b\n\\ No newline at end of file\n", "a\nb")
	f.Add("*** Update File: f\n@@ class A\n@@ def b\n def b\n-c\n*** Move File: g -> h", "class A\n  def b\n  c\nclass B\n  def b\n  c\n")
	f.Fuzz(func(t *testing.T, patch, text string) {
		p, err := ParsePatch(patch)
		if err != nil {
			return
		}
		for _, file := range p.Files {
			after, _, err := ApplyHunks(file.Path, text, file.Hunks, shown(text))
			if err != nil {
				if _, ok := errors.AsType[*Refusal](err); !ok {
					t.Fatal(err)
				}
				continue
			}
			if len(file.Hunks) == 0 && after != text {
				t.Fatal("changed without a hunk")
			}
			if strings.Count(text, "\x00") != strings.Count(after, "\x00") && !strings.Contains(patch, "\x00") {
				t.Fatal("something that no patch names has changed")
			}
		}
	})
}
