//go:build unix

package roster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// TestProgramIsNoName holds that one word stays a name, though there is a program called so, and
// that what users are told to type instead works.
func TestProgramIsNoName(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "some-agent")
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	r := New(&config.Config{Environ: []string{"PATH=" + dir}})
	_, err := r.Find("some-agent")
	want := `there is no agent "some-agent", but a program: use ` + file + `, or name it: acp agents add some-agent -- some-agent`
	if err == nil || err.Error() != want || exitcode.Of(err) != exitcode.Usage {
		t.Errorf("%v, want %s", err, want)
	}
	one, err := r.Command("some-agent")
	if err != nil || one.Reference() != file {
		t.Errorf("reference %q, want %q: %v", one.Reference(), file, err)
	}
	if a, err := r.Find(one.Reference()); err != nil || a.Command != file {
		t.Errorf("found %+v, %v", a, err)
	}
	for _, argv := range [][]string{{"some-agent", "--acp"}, {"missing"}} {
		a, err := r.Command(argv...)
		if err != nil || a.Reference() != a.Name {
			t.Errorf("%v: reference %q, %v", argv, a.Reference(), err)
		}
	}
}
