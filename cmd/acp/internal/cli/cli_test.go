package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/cli/docs"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/interrupt"
)

var update = flag.Bool("update", false, "write docs/cli.md")

// TestDocs finds docs/cli.md out of date: go test -run TestDocs -update ./cmd/acp/internal/cli
// writes it.
func TestDocs(t *testing.T) {
	const file = "../../../../docs/cli.md"
	root, _ := newRoot(&app.App{})
	got := docs.Markdown(root)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/cli.md is not what the commands say; -update writes it (-file +commands):\n%s", diff)
	}
}

// TestCommands holds every command to what all of them have in common.
func TestCommands(t *testing.T) {
	root, _ := newRoot(&app.App{})
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: short description %q", cmd.CommandPath(), cmd.Short)
		}
		if cmd.Run != nil && cmd.Name() != "help" {
			t.Errorf("%s has Run, whose errors have no status", cmd.CommandPath())
		}
		if cmd.PersistentPreRunE != nil || cmd.PersistentPreRun != nil {
			t.Errorf("%s has a persistent hook", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

func TestOneLine(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"simple", "simple"},
		{"acp: prefixed", "prefixed"},
		{"two\n  lines\n\n", "two | lines"},
		{"red \x1b[31mtext\x1b[0m", "red text"},
	} {
		if got := oneLine(errors.New(tt.in)); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

type brokenWriter struct{ writes int }

func (w *brokenWriter) Write([]byte) (int, error) { w.writes++; return 0, syscall.EPIPE }

func TestBrokenPipe(t *testing.T) {
	w, told := new(brokenWriter), 0
	p := &pipe{w: w, broken: func() { told++ }}
	for range 3 {
		if n, err := p.Write([]byte("x")); n != 1 || err != nil {
			t.Errorf("write: %d, %v", n, err)
		}
	}
	if w.writes != 1 || told != 1 || !p.isBroken() {
		t.Errorf("%d writes, told %d times", w.writes, told)
	}
	var errs bytes.Buffer
	if code := Main([]string{"version"}, strings.NewReader(""), new(brokenWriter), &errs); code != int(exitcode.Failed) || errs.Len() > 0 {
		t.Errorf("status %d, stderr %q", code, &errs)
	}
}

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestFullDisk: output that is lost is told, also where a command does not look.
func TestFullDisk(t *testing.T) {
	for _, args := range []string{"version", "help", "--version", "--help"} {
		var errs bytes.Buffer
		code := Main([]string{args}, strings.NewReader(""), fullWriter{}, &errs)
		if code != int(exitcode.Failed) || !strings.Contains(errs.String(), syscall.ENOSPC.Error()) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: status %d, stderr %q", args, code, &errs)
		}
	}
}

func TestStatusOfInterruption(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&interrupt.Error{Signal: os.Interrupt})
	cause := context.Cause(ctx)
	if !errors.Is(cause, context.Canceled) {
		t.Error("an interruption is no cancellation")
	}
	if got := oneLine(cause); got != "cancelled: interrupt" {
		t.Errorf("message %q", got)
	}
}

func TestCrash(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("TMP", os.Getenv("TMPDIR"))
	line := crash("index out\nof range", []byte("goroutine 1 [running]"))
	name := line[strings.LastIndex(line, " ")+1:]
	data, err := os.ReadFile(name)
	if err != nil || !bytes.Contains(data, []byte("goroutine 1")) || strings.Contains(line, "\n") {
		t.Errorf("%q: %v", line, err)
	}
}

// TestIsHold: only what gateways call is done without commands.
func TestIsHold(t *testing.T) {
	for line, want := range map[string]bool{"hold": true, "": false, "hold -h": false, "hold x": false, "--verbose hold": false, "agent": false} {
		if got := isHold(strings.Fields(line)); got != want {
			t.Errorf("%q: %t", line, got)
		}
	}
}

// TestAlone: a command that is made without the others says what it says beside them.
func TestAlone(t *testing.T) {
	for _, line := range []string{"version", "version --json", "version --help", "version x", "version --jsn", "version help", "agent --help", "agent x", "agent --modle x"} {
		said := func(all bool) string {
			args := strings.Fields(line)
			a := &app.App{Version: "1.2"}
			var out bytes.Buffer
			a.Out, a.Err = &out, &out
			root, _ := newRoot(a, args...)
			if all {
				root, _ = newRoot(a)
			} else if n := len(root.Commands()); n > 2 { // with help
				t.Errorf("%s: there are %d commands", line, n)
			}
			root.SetArgs(args)
			root.SetOut(&out)
			root.SetErr(&out)
			_, err := root.ExecuteContextC(t.Context())
			return out.String() + "\n" + fmt.Sprint(err, exitcode.Of(err))
		}
		if diff := cmp.Diff(said(true), said(false)); diff != "" {
			t.Errorf("%s (-all +alone):\n%s", line, diff)
		}
	}
}
