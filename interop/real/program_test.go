package real

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp/internal/standin"
)

// The exit statuses of the program that these tests know.
const (
	exitDone      = 0
	exitCancelled = 4
	exitDenied    = 5
	exitTimeout   = 8
)

// program builds acp.
func program(t *testing.T) string {
	t.Helper()
	return build(t, "cmd/acp", ".")
}

// A house is where the program talks to a real agent, several times.
type house struct {
	*place
	standin *standin.Server
	agent   []string // the command
}

func newHouse(t *testing.T, a agent) *house {
	t.Helper()
	h := &house{place: newPlace(t, a.name)}
	h.standin = standin.New(standin.Options{Tools: a.toolsIn(h.work)})
	t.Cleanup(h.standin.Close)
	h.env = append(h.env, a.configure(t, h.place, h.standin.URL)...)
	h.agent, _ = a.command(t)
	return h
}

// A run of the program that has ended.
type run struct {
	code           int
	stdout, stderr string
	lines          []line
}

// A line is what these tests read of a line of --json.
type line struct {
	Type       string
	StopReason string
	Text       string
	Denied     int
	ExitCode   int
	SessionID  string
	Session    string
	Restored   string
	Protocol   int
	Agent      struct{ Program, Version string }
}

// last returns the last line of a type.
func (r run) last(kind string) line {
	for _, l := range slices.Backward(r.lines) {
		if l.Type == kind {
			return l
		}
	}
	return line{}
}

// exec runs acp exec --json with the agent. The hook, if any, sees each line of the
// output and may signal the program.
func (h *house) exec(t *testing.T, hook func(line string, p *os.Process), args ...string) run {
	t.Helper()
	bin := program(t)
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	args = slices.Concat([]string{"exec", "--json", "--no-stdin", "--connect-timeout", "3m"}, args, []string{"--"}, h.agent)
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir, cmd.Env = h.work, h.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var r run
	scan := bufio.NewScanner(out)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		r.stdout += scan.Text() + "\n"
		var l line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			t.Errorf("not JSON: %q", scan.Text())
		}
		r.lines = append(r.lines, l)
		if hook != nil {
			hook(scan.Text(), cmd.Process)
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("%q: not done in %v\n%s", args, callLimit, &stderr)
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	r.stderr = stderr.String()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%q: %d\n%s\n%s", args, r.code, tail(r.stdout), tail(r.stderr))
		}
	})
	return r
}

// allowed finds the rule that the program says would have allowed what was denied.
var allowed = regexp.MustCompile(`--allow '(.*)'`)

// The program has turns with real agents, one process each.
func TestProgram(t *testing.T) {
	each(t, func(t *testing.T, a agent, version int) {
		if version != slices.Max(a.versions) {
			t.Skip("the program asks for the highest version")
		}
		h := newHouse(t, a)
		t.Run("text", func(t *testing.T) {
			r := h.exec(t, nil, "standin: say one two three")
			if res := r.last("result"); r.code != exitDone || res.Text != "one two three" || res.StopReason != "end_turn" {
				t.Errorf("%d %+v", r.code, res)
			}
			if s := r.last("session"); s.Agent.Program != a.title || s.Protocol != version || s.Restored != "new" {
				t.Errorf("%+v", s)
			}
			h.gone(t)
		})
		t.Run("permission", func(t *testing.T) {
			r := h.exec(t, nil, "standin: run echo hello > ran.txt")
			rule := allowed.FindStringSubmatch(r.stderr)
			if r.code != exitDenied || r.last("result").Denied != 1 || rule == nil || h.file("ran.txt") != "" {
				t.Fatalf("%d %+v %q %q", r.code, r.last("result"), r.stderr, h.file("ran.txt"))
			}
			t.Logf("%s", r.stderr)
			r = h.exec(t, nil, "--allow", rule[1], "standin: run echo hello > ran.txt")
			if r.code != exitDone || r.last("result").Denied != 0 || h.file("ran.txt") != "hello" {
				t.Errorf("%d %+v %q", r.code, r.last("result"), h.file("ran.txt"))
			}
			h.gone(t)
		})
		t.Run("file", func(t *testing.T) {
			if a.noFiles {
				t.Skip("see TestGeminiFiles")
			}
			r := h.exec(t, nil, "standin: write new.txt hello")
			rule := allowed.FindStringSubmatch(r.stderr)
			if r.code != exitDenied || rule == nil || h.file("new.txt") != "" {
				t.Fatalf("%d %+v %q %q", r.code, r.last("result"), r.stderr, h.file("new.txt"))
			}
			t.Logf("%s", r.stderr)
			r = h.exec(t, nil, "--allow", rule[1], "standin: write new.txt hello")
			if r.code != exitDone || h.file("new.txt") != "hello" {
				t.Errorf("%d %+v %q", r.code, r.last("result"), h.file("new.txt"))
			}
		})
		t.Run("interrupted", func(t *testing.T) {
			var once sync.Once
			r := h.exec(t, func(line string, p *os.Process) {
				if strings.Contains(line, "waiting") {
					once.Do(func() { _ = p.Signal(os.Interrupt) })
				}
			}, "standin: wait")
			if r.code != exitCancelled || r.last("result").StopReason != "cancelled" {
				t.Errorf("%d %+v", r.code, r.last("result"))
			}
			h.gone(t)
		})
		t.Run("timeout", func(t *testing.T) {
			r := h.exec(t, nil, "--timeout", "12s", "standin: wait")
			if r.code != exitTimeout {
				t.Errorf("%d %+v", r.code, r.last("result"))
			}
			h.gone(t)
		})
		t.Run("continue", func(t *testing.T) {
			r := h.exec(t, nil, "standin: say remember me")
			if r.code != exitDone {
				t.Fatalf("%d %q", r.code, r.stderr)
			}
			if a.later != nil {
				a.later(t, h.place)
			}
			again := h.exec(t, nil, "--session", r.last("result").SessionID, "standin: history")
			if s := again.last("session"); again.code != exitDone || s.Session != r.last("session").Session || s.Restored == "new" {
				t.Errorf("%d %+v", again.code, s)
			}
			if got := again.last("result").Text; got != "before: say remember me" {
				t.Errorf("it said %q", got)
			}
			h.gone(t)
		})
	})
}
