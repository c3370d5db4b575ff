package tui

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/app"
)

// TestHistoryPlace: the history is in the state directory of the settings, where everything else of that kind is.
func TestHistoryPlace(t *testing.T) {
	state := t.TempDir()
	o := Options{App: &app.App{Environ: []string{"XDG_STATE_HOME=" + state, "XDG_CONFIG_HOME=" + t.TempDir()}, Cwd: t.TempDir()}}
	if err := o.setDefaults(); err != nil {
		t.Fatal(err)
	}
	if got, want := filepath.Dir(newInput(o.StateDir, o.cwd).history.path), filepath.Join(state, "acp", "history"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestHistoryOff: nothing that is typed is kept if the settings say that nothing is.
func TestHistoryOff(t *testing.T) {
	a := &app.App{
		Environ: []string{"XDG_STATE_HOME=" + t.TempDir(), "XDG_CONFIG_HOME=" + t.TempDir()}, Cwd: t.TempDir(),
		Flags: map[string]any{"store.off": true},
	}
	o := Options{App: a}
	if err := o.setDefaults(); err != nil {
		t.Fatal(err)
	}
	if path := newInput(o.StateDir, o.cwd).history.path; path != "" {
		t.Errorf("what is typed is kept in %s", path)
	}
}

// TestHistoryBlank: what begins with a blank is found with the keys until the program ends, and is not kept, whichever key
// sends it.
func TestHistoryBlank(t *testing.T) {
	for _, key := range []string{"enter", "ctrl+s"} {
		r := newRig(t, 80, 24, nil).start()
		r.run(r.keys(" secret", key))
		r.run(r.keys("kept", key))
		if diff := cmp.Diff([]string{"kept"}, readHistory(r.m.input.history.path)); diff != "" {
			t.Errorf("%s: the file (-want +got):\n%s", key, diff)
		}
		if diff := cmp.Diff([]string{"secret", "kept"}, r.m.input.history.lines); diff != "" {
			t.Errorf("%s: the keys find (-want +got):\n%s", key, diff)
		}
	}
}

// TestForget: the prompts of a conversation go from the history, also those with something long in them; all else stays.
func TestForget(t *testing.T) {
	dir, cwd := t.TempDir(), t.TempDir()
	in := newInput(dir, cwd)
	keep := []string{"one more", "[#1 pasted text, 30 lines]", "[#2 pasted text, 30 lines] other", "!ls"}
	for _, line := range append([]string{"one", "look at [#1 pasted text, 30 lines] and [#2 image, 3 kB] now", "two\nlines"}, keep...) {
		if cmd := in.remember(line); cmd != nil {
			if msg := cmd(); msg != nil {
				t.Fatal(msg)
			}
		}
	}
	if err := Forget(dir, cwd, []string{"one", "two\nlines\n", "look at a\nlong\ntext and  now"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(keep, readHistory(in.history.path)); diff != "" {
		t.Error(diff)
	}
	if err := Forget(dir, t.TempDir(), []string{"x"}); err != nil {
		t.Error(err)
	}
}

// TestEmptyPlaceholder: a prompt of an earlier run is not sent with a placeholder in place of what was pasted, unless the user
// insists; one whose text is there is.
func TestEmptyPlaceholder(t *testing.T) {
	for _, key := range []string{"enter", "ctrl+s"} {
		for _, line := range []string{"[#1 pasted text, 1500 lines]", "look at [#2 image, 3 kB]", "[#1 the conversation so far, 8 lines] hello", "[#2 output of ls -la, 9 lines] x"} {
			r := newRig(t, 100, 24, nil).start()
			r.m.input.set(line)
			r.run(r.keys(key))
			if sent := r.talk.sent(); len(sent) > 0 || r.m.input.value() != line {
				t.Errorf("%s: %q is sent, the input is %q", line, sent, r.m.input.value())
			}
			r.wants("stands for nothing any more")
			r.run(r.keys(key))
			if sent := r.talk.sent(); len(sent) != 1 {
				t.Errorf("%s: %q after it was sent twice", line, sent)
			}
		}
		r := newRig(t, 100, 24, nil).start()
		r.m.input.insert(strings.Repeat("long\n", 100))
		r.run(r.keys(" and [#7 of the list]", key))
		if sent := r.talk.sent(); len(sent) != 1 {
			t.Errorf("what is there is not sent: %q", sent)
		}
	}
}
