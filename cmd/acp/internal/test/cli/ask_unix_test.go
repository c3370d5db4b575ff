//go:build !windows

package cli

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// A terminal is a real one, with what was written to it.
type terminal struct {
	t *testing.T

	mu   sync.Mutex
	text string
	gone bool
	news *sync.Cond
}

// read reads what is written to the terminal, until it is gone.
func (s *terminal) read(from interface{ Read([]byte) (int, error) }) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		s.mu.Lock()
		s.text += string(buf[:n])
		s.gone = err != nil
		s.news.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// wait waits for a text and forgets what was written up to it.
func (s *terminal) wait(want string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if _, after, ok := strings.Cut(s.text, want); ok {
			s.text = after
			return
		}
		if s.gone {
			s.t.Fatalf("%q was not written; after that there was %q", want, s.text)
		}
		s.news.Wait()
	}
}

// openTerminal returns both ends of a terminal. Closing the master hangs up, also while it is read.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	blocking, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer blocking.Close()
	fd, err := syscall.Dup(int(blocking.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	master = os.NewFile(uintptr(fd), "terminal")
	t.Cleanup(func() { _, _ = master.Close(), slave.Close() }) // they may be closed already
	return master, slave
}

// TestAsk answers what acp exec --ask asks on a real terminal, while its standard streams are something
// else, as in a pipeline.
func TestAsk(t *testing.T) {
	const choice = "Your choice (number, or Enter to dismiss): "
	type step struct{ wait, send string }
	for _, tt := range []struct {
		name   string
		args   []string
		mode   string
		steps  []step
		hangUp bool
		code   exitcode.Code
		stdout string
		stderr string // part of it; "" is nothing at all
	}{
		{name: "allow", mode: "run", steps: []step{{choice, "1\n"}}, stdout: "I did it.\n"},
		{name: "nonsense, then allow", mode: "run", steps: []step{{choice, "perhaps\n"}, {"That is not one of the choices.\r\n" + choice, "1\n"}}, stdout: "I did it.\n"},
		{name: "reject", mode: "run", steps: []step{{choice, "3\n"}}, code: exitcode.Denied, stdout: "I was not allowed to.\n", stderr: "denied: Run the tests: go test ./..., as you answered\n"},
		{name: "dismiss", mode: "run", steps: []step{{choice, "\n"}}, code: exitcode.Denied, stdout: "I was not allowed to.\n", stderr: "denied: Run the tests"},
		{name: "end of input", mode: "run", steps: []step{{choice, "\x04"}}, code: exitcode.Denied, stdout: "I was not allowed to.\n", stderr: "denied: Run the tests"},
		{name: "interrupt", mode: "run", steps: []step{{choice, "\x03"}}, code: exitcode.Cancelled, stderr: "acp: cancelled: interrupt\n"},
		{name: "hang up", mode: "run", steps: []step{{choice, ""}}, hangUp: true, code: exitcode.Cancelled, stderr: "acp: cancelled: hangup\n"},
		{name: "allowed by a rule", args: []string{"--allow", "command:go test *"}, mode: "run", stdout: "I did it.\n"},
		{name: "denied by a rule", args: []string{"--deny", "*"}, mode: "run", code: exitcode.Denied, stdout: "I was not allowed to.\n", stderr: "denied: Run the tests"},
		{name: "json", args: []string{"--json"}, mode: "run", steps: []step{{choice, "1\n"}}, stdout: `"by":"user"`},
		{name: "interrupt with no question", mode: "slow-turn", steps: []step{{"", "\x03"}}, code: exitcode.Cancelled, stdout: "working", stderr: "acp: cancelled: interrupt\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			cmd := acpCommand(t, home, append(append([]string{"exec", "--ask"}, tt.args...), fake(tt.mode)...)...)
			master, slave := openTerminal(t)
			cmd.Stdin = strings.NewReader("go")
			var errs bytes.Buffer
			begun := make(chan struct{})
			out := &watched{begun: begun}
			cmd.Stdout, cmd.Stderr = out, &errs
			// The terminal is none of its streams, but the one it belongs to.
			cmd.ExtraFiles = append(cmd.ExtraFiles, slave)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = slave.Close()
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			s := &terminal{t: t}
			s.news = sync.NewCond(&s.mu)
			go s.read(master)
			for _, st := range tt.steps {
				if st.wait != "" {
					s.wait(st.wait)
				} else {
					<-begun
				}
				if _, err := master.WriteString(st.send); err != nil {
					t.Error(err)
				}
			}
			if tt.hangUp {
				_ = master.Close()
			}
			<-done
			if got := exitcode.Code(cmd.ProcessState.ExitCode()); got != tt.code {
				t.Errorf("status %d, want %d", got, tt.code)
			}
			if !strings.Contains(out.String(), tt.stdout) {
				t.Errorf("stdout %q, want %q", out.String(), tt.stdout)
			}
			if got := errs.String(); !strings.Contains(got, tt.stderr) || tt.stderr == "" && tt.code == exitcode.Done && got != "" {
				t.Errorf("stderr %q, want %q", got, tt.stderr)
			}
		})
	}
}

// A watched buffer tells of the first write. Its methods may be called from any goroutine.
type watched struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	begun chan struct{}
}

// Write never fails.
func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.buf.Len() == 0 {
		close(w.begun)
	}
	return w.buf.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// TestAskNobody: without a terminal there is nobody to ask, which is said before anything is started.
func TestAskNobody(t *testing.T) {
	cmd := acpCommand(t, t.TempDir(), append([]string{"exec", "--ask", "go"}, fake("run")...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	if _, ok := err.(*exec.ExitError); !ok || cmd.ProcessState.ExitCode() != int(exitcode.Usage) {
		t.Errorf("%v: %s", err, out)
	}
	if !strings.HasPrefix(string(out), "acp: --ask needs a terminal: ") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("%s", out)
	}
}
