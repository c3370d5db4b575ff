package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
	"github.com/goacp/acp/jsonrpc"
)

// reading returns a bench whose tools are used by a model.
func reading(t *testing.T) (*bench, func(Tool, any) Result) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{cwd: dir, served: new(served.Record)}
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	return b, func(tool Tool, in any) Result {
		t.Helper()
		data, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		return use(tool, string(data))
	}
}

// is holds that a file has a text.
func (b *bench) is(t *testing.T, name, want string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.cwd, name))
	if err != nil || string(data) != want {
		t.Errorf("%s is %q, %v; want %q", name, data, err, want)
	}
}

func oneEdit(path, old, now string) EditInput {
	return EditInput{Path: path, Edits: []Replacement{{Old: old, New: now}}}
}

// TestTwin: an edit whose place has changed since it was read is not made in a twin of it.
func TestTwin(t *testing.T) {
	const was = "class A:\n    def save(self):\n        self.db.commit()\n        self.log(\"saved\")\n\nclass B:\n    def run(self):\n        if x:\n            self.db.commit()\n            self.log(\"saved\")\n"
	const old = "            self.db.commit()\n            self.log(\"saved\")\n"
	now := strings.Replace(was, "            self.log(\"saved\")", "            self.log(\"finished it\")", 1)
	for _, tool := range []string{"edit", "patch"} {
		b, use := reading(t)
		b.write(t, "a.py", was)
		use(Read, ReadInput{Path: "a.py"})
		b.write(t, "a.py", now)
		res := Result{}
		if tool == "edit" {
			res = use(Edit, oneEdit("a.py", old, "            x\n"))
		} else {
			res = use(Patch, PatchInput{"*** Begin Patch\n*** Update File: a.py\n@@\n-            self.db.commit()\n-            self.log(\"saved\")\n+            x\n*** End Patch"})
		}
		if res.Status == acp.ToolCallStatusCompleted {
			t.Errorf("%s: %s", tool, res.Said)
		}
		has(t, res.Text+res.Said, "since you read it, the user or a command has changed it", "10|             self.log(\"finished it\")")
		b.is(t, "a.py", now)
	}
}

// TestWhere: a result says where it was and how it was found, and shows what is there now.
func TestWhere(t *testing.T) {
	b, use := reading(t)
	b.write(t, "a.py", "a\nb\nclass A:\n    def save(self):\n        pass\nc\nd\ne\nf\n")
	use(Read, ReadInput{Path: "a.py"})
	res := use(Edit, oneEdit("a.py", "def save(self):\n    pass\n", "def save(self):\n    done()\n    pass\n"))
	if want := "Changed `a.py`: line 5 (indentation differed by 4).\n2| b\n3| class A:\n4|     def save(self):\n5|         done()\n6|         pass\n7| c\n8| d\n"; res.Text != want {
		t.Errorf("%q, want %q", res.Text, want)
	}
	res = use(Edit, oneEdit("a.py", "def save(self):\n    pass\n", "def save(self):\n    done()\n    pass\n"))
	has(t, res.Said, "`a.py` is like that already: line 5 (you have made this edit already).")
	res = use(Edit, EditInput{Path: "a.py", Edits: []Replacement{{Old: "a\nb\n", New: ""}, {Old: "c\n", New: "1\n2\n"}}})
	has(t, res.Text, "Changed `a.py`: line 1, lines 5-6.\n1| class A:\n")
}

// TestNothing: a place of a patch that changes nothing is not called applied.
func TestNothing(t *testing.T) {
	b, use := reading(t)
	b.write(t, "a.txt", "one\ntwo\n")
	res := use(Patch, PatchInput{"*** Begin Patch\n*** Update File: a.txt\n@@\n one\n*** End Patch"})
	if has(t, res.Said, "changes nothing"); strings.Contains(res.Said, "you have made") {
		t.Error(res.Said)
	}
}

// TestGuard: what somebody else has written is not overwritten by a text that does not know
// of it.
func TestGuard(t *testing.T) {
	b, use := reading(t)
	write := func(text string) Result { t.Helper(); return use(Write, WriteInput{"u.txt", text}) }
	refused := func(res Result, wants ...string) {
		t.Helper()
		if res.Status == acp.ToolCallStatusCompleted {
			t.Errorf("not refused: %s", res.Said)
		}
		has(t, res.Said+"\n"+res.Text, wants...)
	}
	b.write(t, "u.txt", "v1\n")
	b.write(t, "l.txt", strings.Repeat("line\n", 2000))
	refused(use(Write, WriteInput{"l.txt", "v2\n"}), "exists, and you have not read it; nothing was written: read all of it first")
	refused(use(Write, WriteInput{"l.txt", "v2\n"}), "exists, and you have not read it; nothing was written: read all of it first")
	b.write(t, "small.txt", "v1\n")
	refused(use(Write, WriteInput{"small.txt", "v2\n"}), "This is what is in it; write it again if none of that is needed:\nv1\n")
	has(t, use(Write, WriteInput{"small.txt", "v2\n"}).Said, "Changed `small.txt`: line 1.")
	b.write(t, "u.txt", "v0\n")
	refused(write("v2\n"), "exists, and you have not read it; nothing was written: read all of it first")
	b.write(t, "u.txt", "v1\n")
	b.is(t, "u.txt", "v1\n")
	use(Read, ReadInput{Path: "u.txt"})
	b.write(t, "u.txt", "v1\nUSER LINE\n")
	refused(write("v2\n"), "has changed since you read it; nothing was written", "+USER LINE")
	b.is(t, "u.txt", "v1\nUSER LINE\n")
	has(t, write("v2\nUSER LINE\n").Said, "Changed `u.txt`: line 1.") // the difference was shown
	has(t, write("v3\nUSER LINE\n").Said, "Changed `u.txt`")          // its own
	b.write(t, "u.txt", "v3\n")                                       // a line was removed
	refused(write("v4\nUSER LINE\n"), "-USER LINE")
	has(t, write("v4\n").Said, "Changed")
	b.write(t, "u.txt", "") // all was
	refused(write("v5\n"), "-v4")
	has(t, write("v5\n").Said, "Changed")

	// Parts.
	b.write(t, "p.txt", strings.Repeat("line\n", 9))
	use(Read, ReadInput{Path: "p.txt", From: 2, Lines: 3})
	res := use(Write, WriteInput{"p.txt", "x\n"})
	refused(res, "Of p.txt you have read only lines 2-4 of 9; nothing was written")
	b.write(t, "q.txt", strings.Repeat("line\n", 2000))
	use(Read, ReadInput{Path: "q.txt", From: 2, Lines: 3})
	refused(use(Write, WriteInput{"q.txt", "x\n"}), "Of q.txt you have read only lines 2-4 of 2000")
	use(Read, ReadInput{Path: "q.txt", From: 5})
	use(Read, ReadInput{Path: "q.txt", Lines: 1})
	has(t, use(Write, WriteInput{"q.txt", "x\n"}).Said, "Changed `q.txt`")
	// A search is not enough, but counts.
	b.write(t, "s.txt", "one\nneedle\n")
	use(Search, SearchInput{Pattern: "needle"})
	refused(use(Write, WriteInput{"s.txt", "x\n"}), "you have read only line 2 of 2")
	has(t, use(Edit, oneEdit("s.txt", "needle  \n", "pin\n")).Said, "Changed")
	// An edit of what was not read whole.
	b.write(t, "e.txt", "one\ntwo\n")
	has(t, use(Edit, oneEdit("e.txt", "two", "2")).Said, "Changed `e.txt`: line 2.")
	b.write(t, "e.txt", "one\n2\nthree\n")
	refused(use(Write, WriteInput{"e.txt", "x\n"}), "has changed since you read it", "+three")
	// An empty file has nothing to lose.
	b.write(t, "empty.txt", "")
	has(t, use(Write, WriteInput{"empty.txt", "x\n"}).Said, "Changed `empty.txt`")
	has(t, use(Edit, oneEdit("empty.txt", "", "x")).Said, "use write")
	// Deleting is as writing.
	b.write(t, "d.txt", "one\n")
	use(Read, ReadInput{Path: "d.txt"})
	b.write(t, "d.txt", "one\nUSER\n")
	refused(use(Patch, PatchInput{"*** Begin Patch\n*** Delete File: d.txt\n*** End Patch"}), "+USER")
	b.is(t, "d.txt", "one\nUSER\n")
}

// TestAsLeft: line ends, byte-order marks, the last line and bytes that are not UTF-8 stay as
// they are.
func TestAsLeft(t *testing.T) {
	for _, tc := range []struct{ name, before, text, want, says string }{
		{"CRLF", "a\r\nb\r\n", "a\nc\n", "a\r\nc\r\n", "CRLF"},
		{"CRLF, one line", "a\r\n", "b", "b\r\n", "CRLF"},
		{"CRLF as it is", "a\r\nb\r\n", "a\r\nc\r\n", "a\r\nc\r\n", ""},
		{"LF", "a\nb\n", "a\nc\n", "a\nc\n", ""},
		{"byte-order mark", "\ufeffa\n", "b\n", "\ufeffb\n", "byte-order mark"},
		{"no end", "a", "b\n", "b", "does not end"},
		{"end", "a\n", "b", "b\n", ""},
		{"emptied", "a\n", "", "", ""},
	} {
		b, use := reading(t)
		b.write(t, "f", tc.before)
		use(Read, ReadInput{Path: "f"})
		res := use(Write, WriteInput{"f", tc.text})
		has(t, res.Said, "Changed", tc.says)
		b.is(t, "f", tc.want)
	}
	b, use := reading(t)
	b.write(t, "latin1", "name = caf\xe9\nnext\n")
	has(t, use(Read, ReadInput{Path: "latin1"}).Text, "caf\uFFFD")
	has(t, use(Write, WriteInput{"latin1", "x\n"}).Said, "is not UTF-8")
	has(t, use(Edit, oneEdit("latin1", "next", "other")).Said, "Changed `latin1`: line 2.")
	b.is(t, "latin1", "name = caf\xe9\nother\n")
	has(t, use(Patch, PatchInput{"*** Begin Patch\n*** Update File: latin1\n@@\n-other\n+more\n*** End Patch"}).Said, "Changed `latin1`: line 2.")
	b.write(t, "binary", "a\x00b\n")
	for _, res := range []Result{
		use(Read, ReadInput{Path: "binary"}), use(Edit, oneEdit("binary", "b", "c")),
		use(Patch, PatchInput{"*** Begin Patch\n*** Update File: binary\n@@\n-b\n+c\n*** End Patch"}),
	} {
		has(t, res.Said, "is not text")
	}
}

// TestModes: modes, links and read-only files stay as they are, also when a file moves.
func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are of another kind")
	}
	b, use := reading(t)
	at := func(name string) string { return filepath.Join(b.cwd, name) }
	mode := func(name string, want fs.FileMode) {
		t.Helper()
		if info, err := os.Stat(at(name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	b.write(t, "run.sh", "echo one\n")
	if err := errors.Join(os.Chmod(at("run.sh"), 0o755), os.Link(at("run.sh"), at("other")), os.Symlink("run.sh", at("link"))); err != nil {
		t.Fatal(err)
	}
	has(t, use(Patch, PatchInput{"*** Begin Patch\n*** Update File: link\n*** Move to: new/go.sh\n@@\n-echo one\n+echo two\n*** End Patch"}).Said, "is a link")
	has(t, use(Edit, oneEdit("link", "one", "1")).Said, "Changed")
	b.is(t, "other", "echo 1\n")
	if target, err := os.Readlink(at("link")); err != nil || target != "run.sh" {
		t.Errorf("%s, %v", target, err)
	}
	res := use(Patch, PatchInput{"*** Begin Patch\n*** Update File: run.sh\n*** Move to: new/go.sh\n@@\n-echo 1\n+echo two\n*** End Patch"})
	has(t, res.Text, "Moved `run.sh` to `new/go.sh`: line 1.\n1| echo two")
	mode("new/go.sh", 0o755)
	b.is(t, "new/go.sh", "echo two\n")
	b.is(t, "other", "echo two\n")
	has(t, use(Write, WriteInput{"new/go.sh", "echo three\n"}).Said, "Changed") // its knowledge moves, too
	mode("new/go.sh", 0o755)
	if _, err := os.Lstat(at("run.sh")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}

	b.write(t, "ro.txt", "a\n")
	if err := os.Chmod(at("ro.txt"), 0o444); err != nil {
		t.Fatal(err)
	}
	use(Read, ReadInput{Path: "ro.txt"})
	for _, res := range []Result{
		use(Edit, oneEdit("ro.txt", "a", "b")), use(Write, WriteInput{"ro.txt", "b\n"}),
		use(Patch, PatchInput{"*** Begin Patch\n*** Update File: ro.txt\n@@\n-a\n+b\n*** End Patch"}),
		use(Patch, PatchInput{"*** Begin Patch\n*** Update File: ro.txt\n*** Move to: rw.txt\n*** End Patch"}),
		use(Patch, PatchInput{"*** Begin Patch\n*** Delete File: ro.txt\n*** End Patch"}),
	} {
		has(t, res.Said, "is read-only (mode 0444)")
	}
	b.is(t, "ro.txt", "a\n")
}

// TestMeant: a file that does not exist is joined by those that may be meant.
func TestMeant(t *testing.T) {
	b, use := reading(t)
	if err := os.MkdirAll(filepath.Join(b.cwd, "src", "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"src/parser.go", "src/parse.go", "src/deep/lexer.go", "secret_parser.go"} {
		b.write(t, name, "x\n")
	}
	b.deny = "secret"
	has(t, use(Read, ReadInput{Path: "src/parsr.go"}).Said, "there is no such file; perhaps you mean `src/parser.go`, `src/parse.go`.")
	has(t, use(Edit, oneEdit("lexer.go", "x", "y")).Said, "perhaps you mean `src/deep/lexer.go`.")
	has(t, use(Patch, PatchInput{"*** Begin Patch\n*** Delete File: src/Lexer.go\n*** End Patch"}).Said, "perhaps you mean `src/deep/lexer.go`")
	if res := use(Read, ReadInput{Path: "zzz"}); res.Said != "`zzz`: there is no such file." {
		t.Error(res.Said)
	}
	if res := use(Read, ReadInput{Path: "secret_parsers.go"}); strings.Contains(res.Said, "mean") {
		t.Errorf("what a rule hides is said: %s", res.Said)
	}
}

// TestMeantRules: a file that a rule hides by where its directory leads to is not said.
func TestMeantRules(t *testing.T) {
	b, use := reading(t)
	real := filepath.Join(b.cwd, "private")
	if err := os.MkdirAll(filepath.Join(real, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, filepath.Join(b.cwd, "link")); err != nil {
		t.Skip(err)
	}
	b.write(t, "private/sub/parser.go", "x\n")
	b.denyPath = "private/sub/parser.go"
	if res := use(Read, ReadInput{Path: "link/sub/parsr.go"}); strings.Contains(res.Said, "mean") {
		t.Errorf("what a rule hides is said: %s", res.Said)
	}
}

// TestMeantBound: directories count among the names that are looked at.
func TestMeantBound(t *testing.T) {
	b, use := reading(t)
	for i := range maxLooked / 2 {
		if err := os.MkdirAll(filepath.Join(b.cwd, fmt.Sprintf("a%d", i), "b"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(b.cwd, "z"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.write(t, "z/lexer.go", "x\n")
	if res := use(Read, ReadInput{Path: "lexer.go"}); strings.Contains(res.Said, "mean") {
		t.Errorf("it has looked at more than %d names: %s", maxLooked, res.Said)
	}
}

// TestPatchSecret: what a rule keeps from being read is not shown by a patch that does not fit.
func TestPatchSecret(t *testing.T) {
	b, use := reading(t)
	b.write(t, "secret.txt", "password = 12345678\n")
	b.deny = "secret"
	res := use(Patch, PatchInput{"*** Begin Patch\n*** Update File: secret.txt\n@@\n-password = 1234567\n+x\n*** End Patch"})
	if got := res.Said + res.Text; strings.Contains(got, "12345678") || res.Status == acp.ToolCallStatusCompleted {
		t.Error(got)
	}
}

// TestDeleteSecret: a file that has changed is not deleted, and nothing of it is shown or counts as read where reading
// would be asked about.
func TestDeleteSecret(t *testing.T) {
	for name, keep := range map[string]func(b *bench){
		"outside": func(b *bench) {},
		"asked":   func(b *bench) { b.ask = "secret" },
		"asked about reading": func(b *bench) {
			b.ask, b.askKind = "secret", acp.ToolKindRead
		},
		"denied": func(b *bench) { b.deny = "secret" },
	} {
		t.Run(name, func(t *testing.T) {
			b, use := reading(t)
			path := filepath.Join(b.cwd, "secret.txt")
			if name == "outside" {
				dir, err := filepath.EvalSymlinks(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				path = filepath.Join(dir, "secret.txt")
			}
			const now = "old\nKEY=hidden\n"
			put := func(text string) {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			put("old\n")
			use(Read, ReadInput{Path: path})
			put(now)
			keep(b)
			res := use(Patch, PatchInput{"*** Begin Patch\n*** Delete File: " + path + "\n*** End Patch"})
			if data, err := os.ReadFile(path); err != nil || string(data) != now || res.Status != acp.ToolCallStatusFailed {
				t.Errorf("it is %q, %v: %s", data, err, res.Said)
			}
			has(t, res.Said, "has changed since you read it; nothing was deleted")
			if said := res.Said + res.Text; strings.Contains(said, "hidden") {
				t.Errorf("it shows %q", said)
			}
			if !b.served.File(path, now).Stale() {
				t.Error("the model counts as knowing what is there")
			}
		})
	}
}

// TestLentGuard: what somebody types in an editor that lends its files is not overwritten, and
// a file that is not UTF-8 is not written through it.
func TestLentGuard(t *testing.T) {
	shown := map[string]string{}
	b := &bench{cwd: t.TempDir(), files: new(Files), served: new(served.Record)}
	run := b.sessionOf(t, &acp.Client{MaxVersion: 1, Files: editor(shown)})
	use := func(tool Tool, in any) Result {
		t.Helper()
		data, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		return run(tool, string(data))
	}
	b.write(t, "a.txt", "one\ntwo\n")
	shown["a.txt"] = "one\ntwo\n"
	use(Read, ReadInput{Path: "a.txt"})
	shown["a.txt"] = "one\ntwo\ntyped\n"
	has(t, use(Write, WriteInput{"a.txt", "x\n"}).Text, "+typed")
	if shown["a.txt"] != "one\ntwo\ntyped\n" {
		t.Errorf("%q", shown["a.txt"])
	}
	has(t, use(Edit, oneEdit("a.txt", "two  \n", "2\n")).Said, "Changed `a.txt`: line 2 (trailing blanks differed)")
	b.is(t, "a.txt", "one\n2\ntyped\n")
	const move = "*** Begin Patch\n*** Update File: %s\n*** Move to: %s\n%s*** End Patch"
	shown["a.txt"] = "one\n2\ntyped\nmore\n" // which is not on disk
	res := use(Patch, PatchInput{fmt.Sprintf(move, "a.txt", "b.txt", "")})
	has(t, res.Said, "Moved `a.txt` to `b.txt`; with what your editor had not saved.")
	b.is(t, "b.txt", "one\n2\ntyped\nmore\n")
	has(t, use(Write, WriteInput{"b.txt", "x\n"}).Text, "+more") // it has not been read
	b.write(t, "latin1", "caf\xe9 and more\nnext\n")
	shown["latin1"] = "caf\uFFFD and more\nnext\n"
	has(t, use(Read, ReadInput{Path: "latin1"}).Text, "caf\uFFFD")
	has(t, use(Edit, oneEdit("latin1", "next", "last")).Said, "is not UTF-8, and your editor")
	has(t, use(Patch, PatchInput{fmt.Sprintf(move, "latin1", "latin2", "@@\n-next\n+last\n")}).Said, "is not UTF-8, and your editor")
	b.is(t, "latin1", "caf\xe9 and more\nnext\n")
}

// TestMoveFails: a file that was moved and could not be changed is not called unchanged, and what a refusal of a move shows
// is known.
func TestMoveFails(t *testing.T) {
	b := &bench{cwd: t.TempDir(), files: new(Files), served: new(served.Record)}
	shown := editor{"a.txt": "one\ntwo\n"}
	run := b.sessionOf(t, &acp.Client{MaxVersion: 1, Files: fullEditor{shown}})
	b.write(t, "a.txt", "one\ntwo\n")
	in, err := json.Marshal(PatchInput{"*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n-two\n+2\n*** End Patch"})
	if err != nil {
		t.Fatal(err)
	}
	res := run(Patch, string(in))
	if res.Status != acp.ToolCallStatusFailed {
		t.Errorf("%+v", res)
	}
	has(t, res.Said, "a.txt was moved to b.txt, but is not changed: ", "the disk is full")
	b.is(t, "b.txt", "one\ntwo\n")
}

// A fullEditor lends files, and cannot write them.
type fullEditor struct{ editor }

func (fullEditor) WriteTextFile(context.Context, *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	return nil, jsonrpc.Errorf(1, "the disk is full")
}

// TestMoveAsks: what the refusal of a move outside of the session shows is known, and what is read-only stays there.
func TestMoveAsks(t *testing.T) {
	b, use := reading(t)
	outside := filepath.Join(t.TempDir(), "out.txt")
	write := func(mode fs.FileMode) {
		t.Helper()
		_ = os.Chmod(outside, 0o600)
		if err := errors.Join(os.WriteFile(outside, []byte("first line\nsecond line\n"), 0o600), os.Chmod(outside, mode)); err != nil {
			t.Fatal(err)
		}
	}
	move := func(old string) Result {
		t.Helper()
		return use(Patch, PatchInput{"*** Begin Patch\n*** Update File: " + outside + "\n*** Move to: in.txt\n@@\n-" + old + "\n+2\n*** End Patch"})
	}
	write(0o600)
	has(t, move("second lime").Text, "2| second line")
	real, err := filepath.EvalSymlinks(outside)
	if err != nil || !b.served.File(real, "first line\nsecond line\n").Has(2, 1) {
		t.Errorf("what was shown is not known, %v", err)
	}
	write(0o444)
	has(t, move("second line").Said, "is read-only (mode 0444)")
}

// TestPatchShown: of what a patch of many files has changed, the model knows what the result shows, and no more.
func TestPatchShown(t *testing.T) {
	b, use := reading(t)
	line := strings.Repeat("x", 300)
	text := strings.Repeat(line+"\n", 30)
	var patch strings.Builder
	patch.WriteString("*** Begin Patch\n")
	const files = 20
	for i := range files {
		name := fmt.Sprintf("f%d", i)
		b.write(t, name, "first\n"+text)
		fmt.Fprintf(&patch, "*** Update File: %s\n@@\n-first\n", name)
		for n := range 10 {
			fmt.Fprintf(&patch, "+%d of %s %s\n", n, name, line)
		}
	}
	patch.WriteString("*** End Patch")
	res := use(Patch, PatchInput{patch.String()})
	if res.Status != acp.ToolCallStatusCompleted || len(res.Text) > MaxText {
		t.Fatalf("%d bytes: %s", len(res.Text), res.Said)
	}
	all := 0
	for i := range files {
		name := fmt.Sprintf("f%d", i)
		path := filepath.Join(b.cwd, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		has(t, res.Text, "Changed `"+name+"`")
		known := b.served.File(path, string(data))
		for n := 11; n <= 13; n++ { // below the change
			if known.Has(n, 1) {
				all++
			}
		}
	}
	if shown := strings.Count(res.Text, "1| "+line) + strings.Count(res.Text, "2| "+line) + strings.Count(res.Text, "3| "+line); all != shown || shown == 0 {
		t.Errorf("%d lines are known, %d were shown", all, shown)
	}
}
