package file

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/trace"
)

const (
	head  = `{"acpTrace":1,"started":"2026-11-21T10:00:00Z"}` + "\n"
	frame = `{"t":1,"d":">","f":{"a":1}}` + "\n"
)

// write puts a recording in a directory of its own and returns a console that works there.
func write(t *testing.T, text string) (Console, *bytes.Buffer) {
	t.Helper()
	dir, told := t.TempDir(), new(bytes.Buffer)
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Console{Dir: dir, In: strings.NewReader(text), Err: told}, told
}

// read counts the records, and returns what ended them.
func read(f *File) (n int, err error) {
	for {
		if _, err := f.Record(); err != nil {
			return n, err
		}
		n++
	}
}

func TestDamage(t *testing.T) {
	bad := "\x1b[31m{\n"
	for _, c := range []struct {
		name, file, text string
		records          int
		cuts, told       int64
		last             string
	}{
		{"whole", "f", head + frame + frame, 2, 0, 0, ""},
		{"standard input", "-", head + frame, 1, 0, 0, ""},
		{"cut off", "f", head + frame + frame[:9], 1, 1, 1, "acp: f: line 3 (at byte 76) was cut off\n"},
		{"of standard input", "-", head + frame[:9], 0, 1, 1, "acp: standard input: line 2 (at byte 48) was cut off\n"},
		{"a few lines", "f", head + strings.Repeat(bad, MaxTold) + frame, 1, MaxTold, MaxTold, ""},
		{"many lines", "f", head + strings.Repeat(bad, 2*MaxTold) + frame, 1, 2 * MaxTold, MaxTold + 1, "acp: f: 10 lines could not be read\n"},
	} {
		a, told := write(t, c.text)
		f, err := Open(t.Context(), a, c.file)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		n, err := read(f)
		f.Close()
		if n != c.records || err != io.EOF || f.Cuts != c.cuts {
			t.Errorf("%s: %d records, %d cuts, %v", c.name, n, f.Cuts, err)
		}
		if got := told.String(); int64(strings.Count(got, "\n")) != c.told || !strings.HasSuffix(got, c.last) || strings.Contains(got, "\x1b") {
			t.Errorf("%s: told %q", c.name, got)
		}
	}
}

func TestUnreadable(t *testing.T) {
	for _, c := range []struct {
		name, file, text, want string
		is                     error
	}{
		{"nothing there", "none", "", "no such file", os.ErrNotExist},
		{"a directory", ".", "", "is a directory, not a recording", nil},
		{"something else", "f", "hello\n", "f: not a trace: ", trace.ErrNotTrace},
		{"empty", "-", "", "standard input: not a trace: it is empty", trace.ErrNotTrace},
		{"of the future", "f", `{"acpTrace":99}` + "\n", "trace of a newer version: 99", trace.ErrVersion},
	} {
		a, _ := write(t, c.text)
		f, err := Open(t.Context(), a, c.file)
		if err == nil {
			f.Close()
			t.Errorf("%s is opened", c.name)
			continue
		}
		if c.name != "nothing there" && !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v", c.name, err)
		}
		if exitcode.Of(err) != exitcode.Usage || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: status %d: %v", c.name, exitcode.Of(err), err)
		}
	}
}

func TestInterrupted(t *testing.T) {
	a, _ := write(t, head+strings.Repeat(frame, 2000))
	ctx, cancel := context.WithCancelCause(t.Context())
	f, err := Open(ctx, a, "f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	why := errors.New("enough")
	cancel(why)
	if n, err := read(f); !errors.Is(err, why) || n > 1000 {
		t.Errorf("%d records, %v", n, err)
	}
}
