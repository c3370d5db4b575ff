package acphost

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

func realDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
		t.Fatal(err)
	}
}

func link(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Skip(err)
	}
}

func get(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func read(f *Files, path string) (string, error) {
	resp, err := f.ReadTextFile(context.Background(), &acpv1.ReadTextFileRequest{Path: path})
	if err != nil {
		return "", err
	}
	return resp.Content, nil
}

func write(f *Files, path, text string) error {
	_, err := f.WriteTextFile(context.Background(), &acpv1.WriteTextFileRequest{Path: path, Content: text})
	return err
}

func TestReadLines(t *testing.T) {
	dir := realDir(t)
	long := strings.Repeat("x", 200<<10)
	files := map[string]string{
		"lf":      "one\ntwo\nthree\n",
		"no end":  "one\ntwo",
		"crlf":    "one\r\ntwo\r\n\r\nfour",
		"cr":      "one\rtwo\n",
		"bom":     "\ufeffone\ntwo\n",
		"empty":   "",
		"invalid": "a\xff\xfeb\xe2\x82\ngood\n",
		"rune":    "\ufffd\n",
		"long":    long + "\n" + long + "\nend\n",
	}
	for name, text := range files {
		put(t, filepath.Join(dir, name), text)
	}
	for _, tt := range []struct {
		file        string
		line, limit *uint32
		want        string
	}{
		{"lf", nil, nil, files["lf"]},
		{"lf", new(uint32(0)), nil, files["lf"]},
		{"lf", new(uint32(1)), nil, files["lf"]},
		{"lf", new(uint32(2)), nil, "two\nthree\n"},
		{"lf", new(uint32(3)), nil, "three\n"},
		{"lf", new(uint32(4)), nil, ""},
		{"lf", new(^uint32(0)), new(^uint32(0)), ""},
		{"lf", nil, new(uint32(0)), ""},
		{"lf", nil, new(uint32(1)), "one\n"},
		{"lf", new(uint32(2)), new(uint32(1)), "two\n"},
		{"lf", new(uint32(2)), new(uint32(9)), "two\nthree\n"},
		{"no end", new(uint32(2)), new(uint32(1)), "two"},
		{"no end", new(uint32(3)), new(uint32(1)), ""},
		{"crlf", nil, nil, files["crlf"]},
		{"crlf", new(uint32(2)), new(uint32(2)), "two\r\n\r\n"},
		{"cr", nil, new(uint32(1)), "one\rtwo\n"},
		{"bom", nil, new(uint32(1)), "\ufeffone\n"},
		{"empty", nil, nil, ""},
		{"empty", new(uint32(5)), new(uint32(5)), ""},
		{"invalid", new(uint32(2)), nil, "good\n"}, // what is asked for can be had
		{"rune", nil, new(uint32(1)), "\ufffd\n"},  // which is a character like others
		{"long", new(uint32(2)), new(uint32(1)), long + "\n"},
		{"long", new(uint32(3)), nil, "end\n"},
	} {
		req := &acpv1.ReadTextFileRequest{Path: filepath.Join(dir, tt.file), Line: tt.line, Limit: tt.limit}
		onDisk, err := Dir(dir).ReadTextFile(t.Context(), req)
		if err != nil {
			t.Fatal(tt, err)
		}
		f := Dir(dir)
		f.Overlay = func(path string) (string, bool) { return files[filepath.Base(path)], true }
		inMemory, err := f.ReadTextFile(t.Context(), req)
		if err != nil {
			t.Fatal(tt, err)
		}
		if onDisk.Content != tt.want || inMemory.Content != tt.want {
			t.Errorf("%s: %.40q, unsaved %.40q, want %.40q", tt.file, onDisk.Content, inMemory.Content, tt.want)
		}
	}
}

// TestRefused holds what each wrong request is answered with.
func TestRefused(t *testing.T) {
	dir := realDir(t)
	root, other := filepath.Join(dir, "root"), filepath.Join(dir, "other")
	put(t, filepath.Join(root, "a.txt"), "a")
	put(t, filepath.Join(root, "sub", "b.txt"), "b")
	put(t, filepath.Join(other, "secret.txt"), "secret")
	put(t, filepath.Join(dir, "root2", "c.txt"), "c")
	link(t, filepath.Join("..", "other"), filepath.Join(root, "up"))
	link(t, other, filepath.Join(root, "abs"))
	link(t, filepath.Join("..", "other", "new.txt"), filepath.Join(root, "dangling"))
	link(t, "loop", filepath.Join(root, "loop"))
	link(t, "sub/../../other/secret.txt", filepath.Join(root, "sly"))
	const (
		gone    = jsonrpc.CodeResourceNotFound
		refused = jsonrpc.CodeInvalidParams
	)
	for _, tt := range []struct {
		path        string
		read, write int // codes
		reason      string
	}{
		{"a.txt", refused, refused, "absolute"},
		{"", refused, refused, "absolute"},
		{root, refused, refused, "directory"},
		{filepath.Join(root, "sub"), refused, refused, "directory"},
		{filepath.Join(root, "none.txt"), gone, 0, ""},
		{filepath.Join(root, "none", "none.txt"), gone, 0, ""},
		{filepath.Join(root, "a.txt", "x"), refused, refused, "through a file"},
		{root + "2", refused, refused, "outside"},
		{filepath.Join(dir, "root2", "c.txt"), refused, refused, "outside"},
		{filepath.Join(other, "secret.txt"), refused, refused, "outside"},
		{root + "/../other/secret.txt", refused, refused, "outside"},
		{root + "/sub/../../other/secret.txt", refused, refused, "outside"},
		{filepath.Join(root, "up", "secret.txt"), refused, refused, "outside"},
		{filepath.Join(root, "up", "new.txt"), refused, refused, "outside"},
		{filepath.Join(root, "abs", "secret.txt"), refused, refused, "outside"},
		{filepath.Join(root, "dangling"), refused, refused, "outside"},
		{filepath.Join(root, "sly"), refused, refused, "outside"},
		{filepath.Join(root, "loop"), refused, refused, "too many"},
		{filepath.Join(root, "a\x00b"), refused, refused, "zero byte"},
	} {
		_, err := read(Dir(root), tt.path)
		code, data := answer(t, err)
		if reason, _ := data["reason"].(string); code != tt.read || code == refused &&
			(!strings.Contains(reason, tt.reason) || data["path"] != "params.path") || code == gone && data["path"] != tt.path {
			t.Errorf("reading %q: %d %v", tt.path, code, data)
		}
		// A directory has a place as well; whether it is a file shows when it is used.
		to, err := Dir(root).Resolve(t.Context(), tt.path)
		if want := tt.read == refused && tt.reason != "directory"; want != (err != nil) || !want && to != tt.path {
			t.Errorf("resolving %q: %q, %v", tt.path, to, err)
		}
		err = write(Dir(root), tt.path, "new")
		if tt.write == 0 {
			if err != nil || get(t, tt.path) != "new" {
				t.Errorf("writing %q: %v", tt.path, err)
			}
		} else if code, data := answer(t, err); code != tt.write || !strings.Contains(data["reason"].(string), tt.reason) {
			t.Errorf("writing %q: %d %v", tt.path, code, data)
		}
	}
	if got := get(t, filepath.Join(other, "secret.txt")); got != "secret" {
		t.Errorf("the file outside has become %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", ".acp-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestRoots(t *testing.T) {
	dir := realDir(t)
	put(t, filepath.Join(dir, "one", "f"), "1")
	put(t, filepath.Join(dir, "two", "f"), "2")
	put(t, filepath.Join(dir, "one", "inner", "f"), "inner")
	link(t, "one", filepath.Join(dir, "alias"))
	link(t, filepath.Join("inner", "f"), filepath.Join(dir, "one", "relative"))
	link(t, filepath.Join(dir, "one", "inner"), filepath.Join(dir, "one", "absolute"))
	link(t, dir+"/alias/inner/../f", filepath.Join(dir, "one", "by alias"))
	if err := os.MkdirAll(filepath.Join(dir, "one", "a", "b"), 0o777); err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Join("a", "b"), filepath.Join(dir, "one", "deep"))
	link(t, "deep/../g", filepath.Join(dir, "one", "through")) // a/g, not g
	put(t, filepath.Join(dir, "one", "a", "g"), "a/g")
	put(t, filepath.Join(dir, "one", "g"), "g")
	t.Chdir(dir)
	for _, tt := range []struct {
		roots []string
		path  string
		want  string // "" if it is refused
	}{
		{[]string{"one", "two"}, "one/f", "1"},
		{[]string{"one", "two"}, "two/f", "2"},
		{[]string{"two"}, "one/f", ""},
		{nil, "one/f", ""},
		{[]string{"one", "one/inner"}, "one/inner/f", "inner"},
		{[]string{"one/inner"}, "one/f", ""},
		{[]string{"alias"}, "alias/f", "1"},
		{[]string{"alias"}, "one/f", "1"}, // what the agent may take the root for
		{[]string{"one"}, "alias/f", ""},
		{[]string{"."}, "alias/inner/f", "inner"},
		{[]string{"one"}, "one/relative", "inner"},
		{[]string{"one"}, "one/absolute/f", "inner"},
		{[]string{"alias"}, "one/by alias", "1"},
		{[]string{"alias"}, "alias/absolute/f", "inner"},
		{[]string{"one"}, "one/through", "a/g"},
		{[]string{"one"}, "one/through/../g", "g"},
		{[]string{"/"}, "two/f", "2"},
	} {
		f := Dir(tt.roots...)
		path := dir + "/" + tt.path
		got, err := read(f, path)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s below %q: %q, %v", tt.path, tt.roots, got, err)
		}
		if werr := write(f, path, tt.want); (werr == nil) != (err == nil) {
			t.Errorf("%s below %q: written: %v", tt.path, tt.roots, werr)
		}
	}
	if _, err := read(Dir(""), dir+"/one/f"); err == nil || errors.As(err, new(*jsonrpc.Error)) {
		t.Errorf("a root without a name: %v", err)
	}
}

func TestWrite(t *testing.T) {
	dir := realDir(t)
	f := Dir(dir)
	f.Sync = true
	path := filepath.Join(dir, "deep", "er", "file.txt")
	if err := write(f, path, "\ufeffone\r\ntwo"); err != nil || get(t, path) != "\ufeffone\r\ntwo" {
		t.Fatalf("%v, %q", err, get(t, path))
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(path, 0o751); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := os.Stat(path)
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()
	if err := write(f, path, "new"); err != nil {
		t.Fatal(err)
	}
	after, _ := os.Stat(path)
	if before.Mode() != after.Mode() || os.SameFile(before, after) {
		t.Errorf("mode %v became %v; the file was changed in place: %v", before.Mode(), after.Mode(), os.SameFile(before, after))
	}
	if fi, _ := old.Stat(); fi.Size() != before.Size() {
		t.Error("a reader of the old text sees another")
	}
	alias := filepath.Join(dir, "alias")
	link(t, filepath.Join("deep", "er", "file.txt"), alias)
	if err := write(f, alias, "through a link"); err != nil || get(t, path) != "through a link" {
		t.Errorf("%v, %q", err, get(t, path))
	}
	if fi, _ := os.Lstat(alias); fi.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	entries, _ := os.ReadDir(filepath.Dir(path))
	if len(entries) != 1 {
		t.Errorf("%v is there", entries)
	}
}

func TestHooks(t *testing.T) {
	dir := realDir(t)
	path := filepath.Join(dir, "f")
	f := Dir(dir)
	var asked []string
	f.Overlay = func(p string) (string, bool) { asked = append(asked, p); return "unsaved", filepath.Base(p) == "f" }
	saved := map[string]string{}
	broken := errors.New("the editor is gone")
	f.Saved = func(p, text string) (bool, error) {
		switch saved[p] = text; text {
		case "broken":
			return false, broken
		case "refused":
			return true, invalid("content", "no")
		}
		return text == "handled", nil
	}
	if got, err := read(f, dir+"/x/../f"); got != "unsaved" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := read(f, dir+"/g"); !errors.Is(err, jsonrpc.ErrResourceNotFound) {
		t.Error(err)
	}
	if _, err := read(f, filepath.Dir(dir)+"/f"); !errors.Is(err, jsonrpc.ErrInvalidParams) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{path, filepath.Join(dir, "g")}, asked); diff != "" {
		t.Error(diff)
	}
	if err := write(f, path, "handled"); err != nil || saved[path] != "handled" {
		t.Error(err, saved)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it was written all the same", err)
	}
	if err := write(f, path, "broken"); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := write(f, path, "refused"); !errors.Is(err, jsonrpc.ErrInvalidParams) {
		t.Error(err)
	}
	if err := write(f, path, "text"); err != nil || get(t, path) != "text" {
		t.Error(err)
	}
}

// TestHookPaths holds that hooks get the path of the file itself, and none that
// leads out.
func TestHookPaths(t *testing.T) {
	dir := realDir(t)
	root, out := filepath.Join(dir, "root"), filepath.Join(dir, "out")
	put(t, filepath.Join(root, "sub", "f"), "text")
	put(t, filepath.Join(out, "secret"), "outside")
	link(t, root, filepath.Join(dir, "alias"))
	link(t, out, filepath.Join(root, "up"))
	link(t, "sub", filepath.Join(root, "in"))
	for _, base := range []string{root, filepath.Join(dir, "alias")} {
		for path, want := range map[string]string{
			base + "/sub/f": base + "/sub/f", base + "/in/f": base + "/sub/f", root + "/in/new/g": base + "/sub/new/g",
			base + "/up/secret": "", base + "/up/new": "",
		} {
			f := Dir(base)
			var got []string
			f.Overlay = func(p string) (string, bool) { got = append(got, p); return "", true }
			f.PermitWrite = func(_ context.Context, p string) error { got = append(got, p); return nil }
			f.Saved = func(p, _ string) (bool, error) { got = append(got, p); return true, nil }
			_, err1 := read(f, path)
			err2 := write(f, path, "x")
			wanted := []string{want, want, want}
			if want == "" {
				wanted = nil
			}
			if diff := cmp.Diff(wanted, got); diff != "" || (err1 == nil) != (want != "") || (err2 == nil) != (want != "") {
				t.Errorf("%s: %v, %v: %s", path, err1, err2, diff)
			}
		}
	}
}

func TestPermitWrite(t *testing.T) {
	dir := realDir(t)
	put(t, filepath.Join(dir, "a", "f"), "old")
	put(t, filepath.Join(dir, "b", "f"), "other")
	path := filepath.Join(dir, "now", "f")
	ctx, cancel := context.WithCancel(t.Context())
	for _, tt := range []struct {
		name   string
		permit func() error
		is     func(error) bool
		want   string
	}{
		{"refused", func() error { return fs.ErrPermission }, func(err error) bool { return errors.Is(err, jsonrpc.ErrInternal) }, "old"},
		{"refused by an answer", func() error { return invalid("content", "no") }, func(err error) bool { return errors.Is(err, jsonrpc.ErrInvalidParams) }, "old"},
		{"broken", func() error { return io.ErrUnexpectedEOF }, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }, "old"},
		{"permitted", func() error { return nil }, func(err error) bool { return err == nil }, "new"},
		{"moved meanwhile", func() error {
			return errors.Join(os.Remove(filepath.Join(dir, "now")), os.Symlink("b", filepath.Join(dir, "now")))
		}, func(err error) bool { return errors.Is(err, jsonrpc.ErrInvalidParams) }, "old"},
		{"cancelled meanwhile", func() error { cancel(); return nil }, func(err error) bool { return errors.Is(err, context.Canceled) }, "old"},
	} {
		put(t, filepath.Join(dir, "a", "f"), "old")
		_ = os.Remove(filepath.Join(dir, "now"))
		link(t, "a", filepath.Join(dir, "now"))
		f := Dir(dir)
		f.PermitWrite = func(context.Context, string) error { return tt.permit() }
		if _, err := f.WriteTextFile(ctx, &acpv1.WriteTextFileRequest{Path: path, Content: "new"}); !tt.is(err) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := get(t, filepath.Join(dir, "a", "f")); got != tt.want || get(t, filepath.Join(dir, "b", "f")) != "other" {
			t.Errorf("%s: %q is there", tt.name, got)
		}
	}
	cancel()
}

func TestReadBound(t *testing.T) {
	dir := realDir(t)
	path := filepath.Join(dir, "f")
	put(t, path, strings.Repeat("0123456\n", 4))
	f := Dir(dir)
	for _, tt := range []struct {
		max int
		ok  bool
	}{{31, false}, {32, true}, {0, true}} {
		f.MaxRead = tt.max
		_, err := read(f, path)
		if (err == nil) != tt.ok {
			t.Errorf("limit %d: %v", tt.max, err)
		}
		if err != nil {
			if code, data := answer(t, err); code != jsonrpc.CodeInternalError || data["limit"] != 31.0 {
				t.Error(code, data)
			}
		}
	}
	f.MaxRead = 8
	resp, err := f.ReadTextFile(t.Context(), &acpv1.ReadTextFileRequest{Path: path, Line: new(uint32(3)), Limit: new(uint32(1))})
	if err != nil || resp.Content != "0123456\n" {
		t.Errorf("%+v, %v", resp, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.ReadTextFile(ctx, &acpv1.ReadTextFileRequest{Path: path}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := f.WriteTextFile(ctx, &acpv1.WriteTextFileRequest{Path: path}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := f.cut(ctx, strings.NewReader("x"), &acpv1.ReadTextFileRequest{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// FuzzPath holds that no path reads or changes anything outside of the roots,
// whatever links there are in them.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"a", "../out/secret", "up/secret", "abs/secret", "sub/../../out/secret",
		"sub/./up2/secret", "self/self/self/a", "sub/back/up/secret", "dangling", "//a", "up", "up/../../out/secret",
		`..\out\secret`, "sub/up2/../../out/secret", "new/dir/file", "\x00", ".", "loop/x", "a/x"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, name string, absolutely bool) {
		dir := realDir(t)
		root, out := filepath.Join(dir, "root"), filepath.Join(dir, "out")
		put(t, filepath.Join(root, "a"), "inside")
		put(t, filepath.Join(root, "sub", "b"), "inside")
		put(t, filepath.Join(out, "secret"), "outside")
		for name, target := range map[string]string{
			"up": "../out", "abs": out, "self": ".", "sub/back": "..", "sub/up2": "../../out",
			"dangling": "../out/new", "loop": "loop", "file": "../out/secret", "sub/abs": out + "/secret",
		} {
			link(t, target, filepath.Join(root, name))
		}
		path := root + "/" + name
		if absolutely {
			path = name
			if filepath.IsAbs(name) && !strings.HasPrefix(filepath.Clean(name), dir) {
				// Where no root is, whatever it is, but it must not be written
				// to should this test ever fail.
				if _, err := read(Dir(root), path); err == nil {
					t.Fatalf("%q was read", path)
				}
				return
			}
		}
		was := tree(t, dir, root)
		files := Dir(root)
		if text, err := read(files, path); err == nil && text != "inside" {
			t.Fatalf("%q has %q", path, text)
		}
		_ = write(files, path, "written")
		// Hooks that go by the path alone.
		files.Overlay = func(p string) (string, bool) {
			data, err := os.ReadFile(p)
			return string(data), err == nil
		}
		files.PermitWrite = func(_ context.Context, p string) error {
			if _, ok := within(root, p); !ok {
				t.Fatalf("%q is asked for as %q", path, p)
			}
			return nil
		}
		files.Saved = func(p, text string) (bool, error) { return true, os.WriteFile(p, []byte(text), 0o666) }
		if text, err := read(files, path); err == nil && text != "inside" && text != "written" {
			t.Fatalf("%q has %q for a hook", path, text)
		}
		_ = write(files, path, "saved")
		if diff := cmp.Diff(was, tree(t, dir, root)); diff != "" {
			t.Fatalf("%q led out: %s", path, diff)
		}
	})
}

// tree lists what is below dir, the inside of one directory apart.
func tree(t testing.TB, dir, except string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if p == except {
			return fs.SkipDir
		}
		line := p + " " + d.Type().String()
		if d.Type().IsRegular() {
			line += " " + get(t, p)
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// TestPermitRead: reading is permitted before anything is looked at, for the file that the path
// leads to, and for no other.
func TestPermitRead(t *testing.T) {
	dir := realDir(t)
	put(t, filepath.Join(dir, "a", "f"), "secret")
	put(t, filepath.Join(dir, "b", "f"), "other")
	ctx, cancel := context.WithCancel(t.Context())
	for _, tt := range []struct {
		name, path string
		permit     func() error
		is         func(error) bool
	}{
		{"refused", "now/f", func() error { return fs.ErrPermission }, func(err error) bool { return errors.Is(err, jsonrpc.ErrInternal) }},
		{"refused, missing", "now/g", func() error { return fs.ErrPermission }, func(err error) bool { return errors.Is(err, jsonrpc.ErrInternal) }},
		{"refused by an answer", "now/f", func() error { return invalid("path", "no") }, func(err error) bool { return errors.Is(err, jsonrpc.ErrInvalidParams) }},
		{"broken", "now/f", func() error { return io.ErrUnexpectedEOF }, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{"permitted", "now/f", func() error { return nil }, func(err error) bool { return err == nil }},
		{"moved meanwhile", "now/f", func() error {
			return errors.Join(os.Remove(filepath.Join(dir, "now")), os.Symlink("b", filepath.Join(dir, "now")))
		}, func(err error) bool { return errors.Is(err, jsonrpc.ErrInvalidParams) }},
		{"cancelled meanwhile", "now/f", func() error { cancel(); return nil }, func(err error) bool { return errors.Is(err, context.Canceled) }},
	} {
		_ = os.Remove(filepath.Join(dir, "now"))
		link(t, "a", filepath.Join(dir, "now"))
		f := Dir(dir)
		var asked []string
		overlaid := false
		f.PermitRead = func(_ context.Context, path string) error { asked = append(asked, path); return tt.permit() }
		f.Overlay = func(string) (string, bool) { overlaid = true; return "", false }
		resp, err := f.ReadTextFile(ctx, &acpv1.ReadTextFileRequest{Path: filepath.Join(dir, tt.path)})
		if !tt.is(err) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if want := []string{filepath.Join(dir, "a", filepath.Base(tt.path))}; !slices.Equal(asked, want) {
			t.Errorf("%s: asked about %q, want %q", tt.name, asked, want)
		}
		if (err == nil) != overlaid || err == nil && resp.Content != "secret" {
			t.Errorf("%s: the overlay was asked: %t; response %+v", tt.name, overlaid, resp)
		}
	}
	cancel()
}

// TestReadNotUTF8: what is not UTF-8 is refused, and not returned with other
// characters in its place, which would be written back.
func TestReadNotUTF8(t *testing.T) {
	dir := realDir(t)
	for name, text := range map[string]string{
		"byte": "ok\xff\xfebad\n", "cut": "ok \xe2\x82", "surrogate": "\xed\xa0\x80", "latin": "Gr\xfc\xdfe\n", "utf16": "\xff\xfeo\x00k\x00",
	} {
		file := filepath.Join(dir, name)
		put(t, file, text)
		_, err := Dir(dir).ReadTextFile(t.Context(), &acpv1.ReadTextFileRequest{Path: file})
		said := (*jsonrpc.Error)(nil)
		if !errors.As(err, &said) || !strings.Contains(said.Message, "not text in UTF-8") || !strings.Contains(string(said.Data), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
