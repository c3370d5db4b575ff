package check

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/trace"
)

func content(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSave: a file is there whole or as it was, with the mode and the links it had, and nothing else.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.xml")
	for _, text := range []string{"one", "two"} {
		if err := save(file, []byte(text)); err != nil || content(t, file) != text {
			t.Errorf("%v, %q", err, content(t, file))
		}
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(file, 0o640); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(file, link); err != nil {
			t.Fatal(err)
		}
		if err := save(link, []byte("three")); err != nil || content(t, file) != "three" {
			t.Errorf("%v, %q", err, content(t, file))
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%v: the link is gone", err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%v, mode %v", err, info.Mode())
		}
		if err := save(os.DevNull, []byte("x")); err != nil {
			t.Error(err)
		}
	}
	if err := save(filepath.Join(dir, "nowhere", "x"), nil); err == nil {
		t.Error("written to a directory that is not there")
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestWritable: what cannot be written is told before anything is started.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	for _, test := range []struct {
		o    Options
		want string
	}{
		{Options{JUnit: "a", SARIF: "b", Markdown: "-", Output: "d"}, ""},
		{Options{JUnit: "file", Output: "-"}, ""},
		{Options{JUnit: "a", SARIF: dir + "/a"}, "--junit and --sarif cannot both be written to " + dir + "/a"},
		{Options{Markdown: dir}, "--markdown: " + dir + " is a directory"},
		{Options{JUnit: "no/such/file"}, "--junit: stat "},
		{Options{SARIF: "file/x"}, "--sarif: file is not a directory"},
	} {
		test.o.App = &app.App{Cwd: dir}
		err := test.o.writable()
		if test.want == "" && err != nil || test.want != "" && (exitcode.Of(err) != exitcode.Usage || !strings.HasPrefix(filepath.ToSlash(err.Error()), filepath.ToSlash(test.want))) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// TestRecording: a file is made, or written over, only when there is something to record.
func TestRecording(t *testing.T) {
	o := &Options{App: &app.App{Cwd: t.TempDir()}, Output: "t.acptrace"}
	file := o.file(o.Output)
	begin := func() *recording {
		t.Helper()
		r, err := o.openRecording()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	end := func(r *recording) {
		t.Helper()
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}
	end(begin())
	if exists(file) {
		t.Error("there is a file with nothing in it")
	}
	write(t, file, strings.Repeat("an earlier recording\n", 100))
	end(begin())
	if !strings.HasPrefix(content(t, file), "an earlier") {
		t.Error("what was there is lost")
	}
	r := begin()
	r.event("start", trace.Detail{PID: 1})
	r.frame(trace.ToAgent, []byte(`{"a":1}`))
	w := r.stderr()
	_, _ = w.Write([]byte("warning\n"))
	end(r)
	got := content(t, file)
	for _, want := range []string{`{"acpTrace":1`, `"start"`, `{"a":1}`, "warning"} {
		if !strings.Contains(got, want) {
			t.Errorf("without %s: %s", want, got)
		}
	}
	if strings.Contains(got, "earlier") {
		t.Errorf("what was there is left: %s", got)
	}
	none := &recording{}
	none.frame(trace.ToAgent, nil)
	none.event("start", trace.Detail{})
	if none.stderr() != nil || none.close() != nil {
		t.Error("nothing is recorded")
	}
}
