package process

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLookPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs Unix modes")
	}
	root := t.TempDir()
	one, two := filepath.Join(root, "one"), filepath.Join(root, "two")
	first := script(t, one, "both", "")
	second := script(t, two, "both", "")
	script(t, one, "plain", "")
	plain := script(t, two, "plain", "")
	if err := errors.Join(os.Chmod(filepath.Join(one, "plain"), 0o666), os.Mkdir(filepath.Join(one, "dir"), 0o777)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(one)
	for _, tt := range []struct {
		name, path string
		want       string
		err        error
		says       string
	}{
		{"both", one + ":" + two, first, nil, ""},
		{"both", two + ":" + one, second, nil, ""},
		{"plain", one + ":" + two, plain, nil, ""},
		{"plain", one, "", fs.ErrPermission, `program "plain": permission denied`},
		{"dir", one, "", exec.ErrNotFound, `program "dir": not found in PATH`},
		{"none", one + ":" + two, "", exec.ErrNotFound, `program "none": not found in PATH`},
		{"both", "", "", exec.ErrNotFound, `program "both": not found, PATH is empty`},
		{"both", ".:" + two, second, nil, ""},
		{"both", ".::rel", "", fs.ErrNotExist, `program "both": not found in PATH, of which relative directories are not searched`},
		{"./both", "", "./both", nil, ""},
		{first, "", first, nil, ""},
		{first + "x", "", "", fs.ErrNotExist, `program "` + first + `x": no such file`},
		{"./none", one, "", exec.ErrNotFound, `program "./none": no such file`},
		{"", one, "", exec.ErrNotFound, `program "": not found in PATH`},
	} {
		got, err := LookPath(tt.name, []string{"PATH=/elsewhere", "PATH=" + tt.path})
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s in %s: %q, %v", tt.name, tt.path, got, err)
			continue
		}
		if err != nil && err.Error() != tt.says {
			t.Errorf("%s in %s: %q, want %q", tt.name, tt.path, err, tt.says)
		}
	}
	var e *LookPathError
	_, err := LookPath("none", []string{"PATH=" + one + ":rel:" + two})
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{one, two}, {"rel"}}, [][]string{e.Searched, e.Skipped}); diff != "" {
		t.Error(diff)
	}
	t.Setenv("PATH", two)
	if got, err := LookPath("both", nil); got != second || err != nil {
		t.Errorf("in this process: %q, %v", got, err)
	}
}

func TestExtensions(t *testing.T) {
	for _, tt := range []struct {
		name, pathext string
		want          []string
	}{
		{"npm", "", []string{".com", ".exe", ".bat", ".cmd"}},
		{"npm", ".EXE;.CMD", []string{".exe", ".cmd"}},
		{"npm.CMD", ".EXE;.cmd", []string{"", ".exe", ".cmd"}},
		{"a.b", "exe;;.cmd", []string{".exe", ".cmd"}},
	} {
		if diff := cmp.Diff(tt.want, extensions(tt.name, tt.pathext)); diff != "" {
			t.Errorf("%s with %s: %s", tt.name, tt.pathext, diff)
		}
	}
}

// TestSearchExtensions looks for a name as on Windows.
func TestSearchExtensions(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	script(t, one, "npm", "")
	cmdFile := script(t, one, "npm.cmd", "")
	exe := script(t, two, "npm.exe", "")
	for _, tt := range []struct {
		name string
		dirs []string
		want string
	}{
		{"npm", []string{one, two}, cmdFile},
		{"npm", []string{two, one}, exe},
		{"npm.cmd", []string{two, one}, cmdFile},
		{filepath.Join(two, "npm"), []string{""}, exe},
	} {
		got, err := search(tt.name, tt.dirs, extensions(tt.name, ".EXE;.CMD"))
		if got != tt.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestBatchLine(t *testing.T) {
	const head = `cmd.exe /e:on /v:off /d /s /c ""C:\a b\npx.cmd"`
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, ``},
		{[]string{"plain"}, ` "plain"`},
		{[]string{""}, ` ""`},
		{[]string{"a b", "c&calc", "d|e", "^", "(x)", "!y!"}, ` "a b" "c&calc" "d|e" "^" "(x)" "!y!"`},
		{[]string{`"&calc&"`}, ` """&calc&"""`},
		{[]string{`\"&calc`}, ` "\\""&calc"`},
		{[]string{`dir\`, `dir\\`}, ` "dir\\" "dir\\\\"`},
		{[]string{`a\b`}, ` "a\b"`},
		{[]string{"%PATH%"}, ` "%%cd:~,%PATH%%cd:~,%"`},
	} {
		got, err := batchLine(`C:\a b\npx.cmd`, tt.args)
		if want := head + tt.want + `"`; got != want || err != nil {
			t.Errorf("%q: %v\n got %s\nwant %s", tt.args, err, got, want)
		}
	}
	for _, bad := range [][]string{{"x.cmd", "a\nb"}, {"x.cmd", "a\rb"}, {"x.cmd", "a\x00b"}, {"%x%.cmd"}, {`x".cmd`}, {`x.cmd\`}} {
		if got, err := batchLine(bad[0], bad[1:]); err == nil {
			t.Errorf("%q: %s", bad, got)
		}
	}
}

// FuzzBatchLine holds that no argument leaves the quotes as cmd.exe sees them:
// outside of them, only what joins the arguments appears.
func FuzzBatchLine(f *testing.F) {
	f.Add(`"&calc&"`, `\`)
	f.Add("%x%", `a"b`)
	f.Fuzz(func(t *testing.T, a, b string) {
		line, err := batchLine("x.cmd", []string{a, b})
		if err != nil {
			return
		}
		rest, ok := strings.CutPrefix(line, `cmd.exe /e:on /v:off /d /s /c "`)
		rest, ok2 := strings.CutSuffix(rest, `"`)
		if !ok || !ok2 {
			t.Fatal(line)
		}
		in, outside := false, ""
		for i := range len(rest) {
			switch {
			case rest[i] == '"':
				in = !in
			case !in:
				outside += rest[i : i+1]
			}
		}
		if in || outside != "  " {
			t.Fatalf("%q is outside the quotes of %s", outside, rest)
		}
		plain := strings.ReplaceAll(rest, "%%cd:~,%", "")
		if strings.Contains(plain, "%") {
			t.Fatalf("a percent sign in %s", rest)
		}
	})
}

func FuzzTail(f *testing.F) {
	f.Add([]byte("héllo wörld € 𝄞"), 5, 3)
	f.Add([]byte("\xd0"), 0, 3)
	f.Add([]byte("\xff\xfe\xe2\x82"), 2, 1)
	f.Fuzz(func(t *testing.T, data []byte, limit, chunk int) {
		limit, chunk = min(max(limit, 0), 1<<16), max(chunk, 1)
		tail := NewTail(limit)
		for part := range slices.Chunk(data, chunk) {
			if n, err := tail.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
			if len(tail.buf) > 2*(limit+8) {
				t.Fatalf("%d bytes kept for a limit of %d", len(tail.buf), limit)
			}
		}
		whole := NewTail(len(data) * 3)
		_, _ = whole.Write(data)
		all, cut := whole.Text()
		text, truncated := tail.Text()
		switch {
		case cut:
			t.Fatal("the whole is cut")
		case len(text) > limit:
			t.Fatalf("%d bytes for a limit of %d", len(text), limit)
		case strings.ToValidUTF8(text, "") != text:
			t.Fatalf("%q is not valid", text)
		case truncated != (len(data) > limit || len(all) > limit):
			t.Fatalf("truncated %v of %d bytes for %d", truncated, len(data), limit)
		case strings.ToValidUTF8(string(data), "") == string(data) && !strings.HasSuffix(all, text):
			t.Fatalf("%q is not the end of %q", text, all)
		case strings.ToValidUTF8(string(data), "") == string(data) && len(data) > limit && len(text) < limit-3:
			t.Fatalf("only %d bytes for a limit of %d", len(text), limit)
		}
	})
}
