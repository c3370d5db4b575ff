package check

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/trace"
)

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPlace: the sessions of each group of trials have a directory of their own, which is gone
// afterwards with all that was put into it, unless there is one that the user has named.
func TestPlace(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("TMP", tmp)
	var errs bytes.Buffer
	o := &Options{App: &app.App{Cwd: t.TempDir(), Err: &errs}}
	dir, leave, err := o.place()
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(dir) || dir == o.App.Cwd {
		t.Errorf("%s", dir)
	}
	for range 2 {
		mine, err := newScratch(dir)
		if err != nil || !exists(filepath.Join(mine, "README.md")) || !exists(filepath.Join(mine, "src", "hello.txt")) || exists(filepath.Join(mine, "src", "notes.txt")) {
			t.Fatalf("%s, %v", mine, err)
		}
		write(t, filepath.Join(mine, "src", "notes.txt"), "what the agent wrote")
	}
	leave()
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 || errs.Len() > 0 {
		t.Errorf("left: %v, %v, %s", left, err, &errs)
	}
	o.Here = true
	dir, leave, err = o.place()
	if err != nil || dir != o.App.Cwd {
		t.Fatalf("%s, %v", dir, err)
	}
	leave()
	if !exists(dir) {
		t.Error("the user's directory is gone")
	}
}

// TestLitter: what a client has written is taken away, and nothing else.
func TestLitter(t *testing.T) {
	opens := func(dir string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":` + strconv.Quote(dir) + `,"mcpServers":[]}}`)
	}
	ours, theirs, special, answered := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(theirs, litterName), "it was here")
	l := new(litter)
	for _, dir := range []string{ours, theirs, special, t.TempDir(), "relative"} {
		l.frame(trace.ToAgent, opens(dir))
	}
	l.frame(trace.ToClient, opens(answered))
	l.frame(trace.ToAgent, append(opens(answered), bytes.Repeat([]byte{' '}, maxOpens)...))
	l.frame(trace.ToAgent, []byte(`{"cwd"`))
	write(t, filepath.Join(ours, litterName), "x")
	write(t, filepath.Join(ours, "notes.txt"), "x")
	write(t, filepath.Join(answered, litterName), "x")
	if err := os.Mkdir(filepath.Join(special, litterName), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(ours, litterNames[1])
	if err := os.Symlink(theirs, link); err != nil {
		t.Log(err) // Windows lets few users
	}
	l.frame(trace.ToAgent, opens(ours)) // again, now that it is there
	l.clear()
	for file, want := range map[string]bool{
		filepath.Join(ours, litterName): false, filepath.Join(ours, "notes.txt"): true, filepath.Join(theirs, litterName): true,
		filepath.Join(special, litterName): true, filepath.Join(answered, litterName): true,
	} {
		if exists(file) != want {
			t.Errorf("%s is there: %v", file, !want)
		}
	}
	if _, err := os.Lstat(link); err == nil {
		t.Error("the link is there")
	}
	for i := range 2 * maxLitter {
		l.frame(trace.ToAgent, opens(filepath.Join(ours, strconv.Itoa(i))))
	}
	if len(l.files) > maxLitter*len(litterNames) {
		t.Errorf("%d directories are kept", len(l.files))
	}
}
