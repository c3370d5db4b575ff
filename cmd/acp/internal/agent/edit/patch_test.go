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
	for text, want := range map[string]string{
		"":                                "the line *** Begin Patch is missing",
		"*** Begin Patch\n":               "line 3 of the patch: the line *** End Patch is missing",
		"*** Begin Patch\n*** End Patch":  "line 2 of the patch: the patch is empty",
		"*** Begin Patch\nhello":          `line 2 of the patch: *** Add File: PATH, *** Delete File: PATH or *** Update File: PATH is wanted, not "hello"`,
		"*** Begin Patch\n*** Add File: ": `line 2 of the patch: *** Add File: PATH, *** Delete File: PATH or *** Update File: PATH is wanted, not "*** Add File:"`,
		"*** Begin Patch\n*** Add File: a\nx\n*** End Patch":       `line 3 of the patch: each line of a file that is added begins with a plus, not "x"`,
		"*** Begin Patch\n*** Update File: a\nx\n*** End Patch":    `line 3 of the patch: each line of an update begins with a blank, a minus, a plus or @@, not "x"`,
		"*** Begin Patch\n*** Update File: a\n*** End Patch":       "line 2 of the patch: the update of a changes nothing",
		"*** Begin Patch\n*** Update File: a\n@@ b\n*** End Patch": "line 3 of the patch: the update of a changes nothing",
	} {
		if _, err := ParsePatch(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestApplyHunks(t *testing.T) {
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
		{"nothing changes", "a\nb\n", " a\n b\n", "a\nb\n"},
		{"indentation", file, "@@ func g() {\n-    x()\n+    y()\n+    z()\n     return nil\n", "package a\n\nfunc f() {\n\tx()\n\treturn nil\n}\n\nfunc g() {\n\ty()\n\tz()\n\treturn nil\n}\n"},
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
	for _, tc := range []struct {
		name  string
		hunks []Hunk
		want  string
	}{
		{"ambiguous", []Hunk{{Old: []string{"x"}, New: []string{"y"}}, {Old: []string{"same"}, New: []string{"y"}}}, "f: hunk 2: the old text is in the file 2 times, at lines 2, 3: give more of what surrounds it"},
		{"line before missing", []Hunk{{After: []string{"nowhere"}, Old: []string{"x"}, New: []string{"y"}}}, "f: hunk 1: the old text is not in the file, nor anything like it"},
		{"out of order", []Hunk{{Old: []string{"last"}, New: []string{"y"}}, {Old: []string{"x"}, New: []string{"y"}}}, "f: hunk 2: the old text is not in the file, nor anything like it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := ApplyHunks("f", "x\nsame\nsame\nlast\n", tc.hunks, nil)
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
