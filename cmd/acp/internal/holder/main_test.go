//go:build unix

package holder

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp/internal/leaktest"
)

// TestMain makes the test binary play the holder, the agent or the gateway if its first argument says so.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "hold":
			exit(playHolder())
		case "agent":
			exit(playAgent(os.Args[2]))
		case "gateway":
			exit(playGateway(os.Args[2:]))
		}
	}
	// A program under the race detector sleeps for a second when it exits.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		exit(err)
	}
	leaktest.Main(m)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// self is the command line of a part that the test binary plays.
func self(args ...string) []string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return append([]string{exe}, args...)
}

func playHolder() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return Main(ctx, os.Stdin, os.Stdout)
}

// markVar is in the environment of an agent and of everything that it starts.
const markVar = "HOLDER_TEST_MARK"

// patience is for what no event announces. Nothing takes so long unless it fails.
const patience = 2 * time.Minute

// socketDir returns a directory whose path is short enough for sockets.
func socketDir(t testing.TB) string {
	t.Helper()
	if supported() != nil {
		t.Skip(supported())
	}
	dir, err := os.MkdirTemp("", "h")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// spec returns what starts an agent in a holder. The lease is long: a busy machine must not end it.
func spec(t testing.TB, argv ...string) Spec {
	t.Helper()
	dir := socketDir(t)
	return Spec{
		Program: self("hold"),
		Config: Config{
			Dir: dir, Lease: patience,
			Command: Command{Path: argv[0], Args: argv[1:], Env: append(os.Environ(), markVar+"="+filepath.Base(dir))},
		},
	}
}

// script returns a Spec for a shell.
func script(t testing.TB, text string) Spec { return spec(t, "/bin/sh", "-c", text) }

// begin starts an agent that ends with the test.
func begin(t testing.TB, s Spec) *Agent {
	t.Helper()
	a, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	kept(t, a, s)
	return a
}

// kept ends a holder with the test, whoever is attached.
func kept(t testing.TB, a *Agent, s Spec) {
	t.Cleanup(func() {
		_ = a.Close()
		_ = syscall.Kill(a.HolderPID(), syscall.SIGKILL)
		eventually(t, "processes are left", func() bool { return len(marked(s)) == 0 })
	})
}

// again attaches to a holder.
func again(t testing.TB, a *Agent, s State) *Agent {
	t.Helper()
	b, err := Attach(t.Context(), a.Socket(), a.Token(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// marked returns the processes of an agent that are not zombies, whose environment is empty.
func marked(s Spec) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	want := []byte(markVar + "=" + filepath.Base(s.Config.Dir) + "\x00")
	for _, d := range dirs {
		if env, err := os.ReadFile(d + "/environ"); err == nil && bytes.Contains(env, want) {
			pid, _ := strconv.Atoi(filepath.Base(d))
			pids = append(pids, pid)
		}
	}
	return pids
}

func needProc(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
}

// running reports whether a process is there and not a zombie.
func running(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := bytes.Cut(data, []byte(") "))
	return err == nil && len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}

// eventually waits for what no event announces.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !cond(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// line reads a frame.
func line(t testing.TB, a *Agent) string {
	t.Helper()
	f, err := a.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	return string(f.Data)
}

// say writes a frame.
func say(t testing.TB, a *Agent, text string) {
	t.Helper()
	if err := a.WriteFrame([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// length returns how much a frame of the streams of this test is padded. Few are long.
func length(n uint64) int {
	if n%97 == 0 {
		return 200_000
	}
	return int(n * 7919 % 400)
}

func numbered(name string, n uint64) string {
	return fmt.Sprintf(`{"%s":%d,"pad":"%s"}`, name, n, strings.Repeat("x", length(n)))
}

// parse returns the number of a frame, which must be whole.
func parse(name, text string) (uint64, error) {
	var n uint64
	if _, err := fmt.Sscanf(text, `{"`+name+`":%d,`, &n); err != nil {
		return 0, fmt.Errorf("%.80q: %w", text, err)
	}
	if text != numbered(name, n) {
		return 0, fmt.Errorf("frame %d is not whole: %.80q", n, text)
	}
	return n, nil
}

// lastFrame asks the agent to end, and is what it says then.
const lastFrame = `{"last":true}`

// playAgent is an agent that writes numbered frames until it is asked to end, and logs the numbers
// of those that it gets.
func playAgent(log string) error {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	read := make(chan error, 1)
	go func() {
		read <- func() error {
			in := bufio.NewReader(os.Stdin)
			for {
				text, err := in.ReadString('\n')
				if err != nil {
					return err
				}
				text = strings.TrimSuffix(text, "\n")
				if text == lastFrame {
					return nil
				}
				n, err := parse("g", text)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintln(f, n); err != nil {
					return err
				}
			}
		}()
	}()
	for n := uint64(1); ; n++ {
		if _, err := os.Stdout.WriteString(numbered("n", n) + "\n"); err != nil {
			return err
		}
		select {
		case err := <-read:
			_, e := os.Stdout.WriteString(lastFrame + "\n")
			return errors.Join(err, e)
		default:
		}
	}
}

// A journal is what a gateway of these tests commits to: a file of lines.
type journal struct {
	f    *os.File
	last uint64 // the number of the last line
}

// openJournal opens a journal, and drops a line at its end that is not whole.
func openJournal(path string) (*journal, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(int64(len(data))); err != nil {
		return nil, err
	}
	_, err = f.Seek(0, io.SeekEnd)
	return &journal{f, uint64(bytes.Count(data, []byte("\n")))}, err
}

// commit writes the next line.
func (j *journal) commit(text string) error {
	_, err := j.f.WriteString(text + "\n")
	j.last++
	return err
}

// playGateway is a gateway that attaches, continues where the one before it was killed, and writes a
// byte to standard output for everything it does. With the argument finish it ends the stream instead.
func playGateway(args []string) error {
	in, err := openJournal(args[2])
	if err != nil {
		return err
	}
	out, err := openJournal(args[3])
	if err != nil {
		return err
	}
	a, err := Attach(context.Background(), args[0], args[1], State{Seq: in.last})
	if err != nil {
		return err
	}
	if a.Sent() > out.last {
		return fmt.Errorf("%d frames have arrived, but only %d were committed", a.Sent(), out.last)
	}
	step := func() { _, _ = os.Stdout.Write([]byte{'.'}) }
	finish := len(args) > 4
	failed := make(chan error, 2)
	go func() { failed <- sendFrames(a, out, finish, step) }()
	go func() { failed <- readEvents(a, in, step) }()
	for range 2 {
		if err := <-failed; err != nil {
			return err
		}
	}
	return a.ExitErr()
}

// sendFrames sends what is committed and has not arrived, and then more.
func sendFrames(a *Agent, out *journal, finish bool, step func()) error {
	for n := a.Sent() + 1; ; n++ {
		if n > out.last {
			if finish {
				return a.WriteFrame([]byte(lastFrame))
			}
			if err := out.commit(strconv.FormatUint(n, 10)); err != nil {
				return err
			}
			step()
		}
		if err := a.WriteFrame([]byte(numbered("g", n))); err != nil {
			return err
		}
		step()
	}
}

// readEvents commits and acknowledges events to the end of the agent.
func readEvents(a *Agent, in *journal, step func()) error {
	for {
		f, err := a.ReadFrame()
		text := lastFrame
		switch {
		case err == io.EOF:
			text = "end"
		case err != nil:
			return err
		case string(f.Data) != lastFrame:
			n, err := parse("n", string(f.Data))
			if err != nil {
				return err
			}
			text = strconv.FormatUint(n, 10)
		}
		step()
		if a.Seq() != in.last+1 {
			return fmt.Errorf("event %d after %d", a.Seq(), in.last)
		}
		if err := in.commit(text); err != nil {
			return err
		}
		step()
		if err := a.Ack(a.Seq()); err != nil {
			return err
		}
		step()
		if text == "end" {
			return nil
		}
	}
}
