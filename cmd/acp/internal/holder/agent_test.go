//go:build unix

package holder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

var _ interface {
	jsonrpc.EagerStream
	jsonrpc.BatchStream
	ExitErr() error
} = (*Agent)(nil)

// TestPermissionPending: a permission that the agent waits for survives its gateway. It is asked again,
// and the answer arrives.
func TestPermissionPending(t *testing.T) {
	const request, answer = `{"id":7,"method":"session/request_permission"}`, `{"id":7,"result":{}}`
	a := begin(t, script(t, `echo '`+request+`'; read -r answer; echo "$answer"`))
	if got := line(t, a); got != request {
		t.Fatal(got)
	}
	if err := a.Close(); err != nil { // before it has committed the request
		t.Fatal(err)
	}
	if _, err := a.ReadFrame(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	b := again(t, a, State{})
	if got := line(t, b); got != request || b.Seq() != 1 || b.Sent() != 0 {
		t.Fatalf("%q, event %d, %d frames", got, b.Seq(), b.Sent())
	}
	say(t, b, answer)
	if got := line(t, b); got != answer || b.Seq() != 2 || b.Sent() != 1 {
		t.Errorf("%q, event %d, %d frames", got, b.Seq(), b.Sent())
	}
}

// TestTakeover: who attaches with the token takes the place of whoever was attached. The frames of the
// former count.
func TestTakeover(t *testing.T) {
	a := begin(t, spec(t, "/bin/cat"))
	say(t, a, "1")
	if got := line(t, a); got != "1" {
		t.Fatal(got)
	}
	if err := a.Ack(2); err == nil {
		t.Error("an event that was not read is acknowledged")
	}
	b := again(t, a, State{})
	if _, err := a.ReadFrame(); !errors.Is(err, ErrTaken) || !errors.Is(err, jsonrpc.ErrOutcomeUnknown) {
		t.Errorf("read: %v", err)
	}
	_, stderr := a.Stderr(t.Context())
	for what, err := range map[string]error{"write": a.WriteFrame([]byte("lost")), "renew": a.Renew(0), "ack": a.Ack(1), "stderr": stderr} {
		if !errors.Is(err, ErrTaken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := a.Stop(t.Context()); !errors.Is(err, ErrTaken) {
		t.Errorf("stop: %v", err)
	}
	if b.Sent() != 1 {
		t.Errorf("%d frames have arrived", b.Sent())
	}
	if got := line(t, b); got != "1" || b.Seq() != 1 {
		t.Errorf("%q, event %d", got, b.Seq())
	}
	say(t, b, "two\nlines\r\n")
	if got := line(t, b); got != "two lines  " {
		t.Errorf("%q", got)
	}
	if err := b.Ack(b.Seq()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(b.Stop(t.Context()), b.Stop(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestRefused: without the token, and without an event that is gone, there is no attaching, and whoever
// is attached does not notice.
func TestRefused(t *testing.T) {
	a := begin(t, spec(t, "/bin/cat"))
	say(t, a, "1")
	say(t, a, "2")
	line(t, a)
	if err := a.Ack(1); err != nil {
		t.Fatal(err)
	}
	line(t, a) // so that the acknowledgement has arrived as well
	say(t, a, "3")
	line(t, a)
	for _, tt := range []struct {
		name, socket, token string
		have                uint64
		want                error
	}{
		{"no token", a.Socket(), "", 1, ErrToken},
		{"wrong token", a.Socket(), strings.Repeat("x", len(a.Token())), 1, ErrToken},
		{"too little", a.Socket(), a.Token(), 0, ErrGap},
		{"too much", a.Socket(), a.Token(), 4, ErrGap},
		{"no socket", a.Socket() + "x", a.Token(), 1, ErrNone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if b, err := Attach(t.Context(), tt.socket, tt.token, State{Seq: tt.have}); !errors.Is(err, tt.want) || b != nil {
				t.Errorf("%v", err)
			}
		})
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Attach(canceled, a.Socket(), a.Token(), State{Seq: 1}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	say(t, a, "4")
	if got := line(t, a); got != "4" {
		t.Errorf("%q", got)
	}
}

// TestSocket: nobody else can get at the socket.
func TestSocket(t *testing.T) {
	s := spec(t, "/bin/cat")
	a := begin(t, s)
	info, err := os.Stat(a.Socket())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(s.Config.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "0700") {
		t.Errorf("in an open directory: %v", err)
	}
	if err := Run(t.Context(), Config{Dir: s.Config.Dir, ID: "x", Token: a.Token(), Command: s.Config.Command}); err == nil || !strings.Contains(err.Error(), "0700") {
		t.Errorf("in an open directory: %v", err)
	}
	if err := os.Chmod(s.Config.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Config.ID = strings.TrimSuffix(filepath.Base(a.Socket()), suffix)
	if _, err := Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("under a name that is taken: %v", err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if exists(a.Socket()) || running(a.HolderPID()) || len(marked(s)) > 0 {
		t.Error("something is left")
	}
}

// TestStartFails: what cannot be started is said, and leaves nothing.
func TestStartFails(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, tt := range []struct {
		name   string
		change func(*Spec)
		want   error
		text   string
	}{
		{"no program", func(s *Spec) { s.Config.Command.Path = missing }, fs.ErrNotExist, "no such file"},
		{"no directory", func(s *Spec) { s.Config.Command.Dir = missing }, fs.ErrNotExist, missing},
		{"no command", func(s *Spec) { s.Config.Command = Command{} }, nil, "no command"},
		{"name", func(s *Spec) { s.Config.ID = "../x" }, nil, "other characters"},
		{"path", func(s *Spec) { s.Config.ID = strings.Repeat("x", 100) }, nil, "longer than"},
		{"short token", func(s *Spec) { s.Config.Token = "short" }, nil, "fewer than"},
		{"long token", func(s *Spec) { s.Config.Token = strings.Repeat("x", 5000) }, nil, "more than"},
		{"lease", func(s *Spec) { s.Config.Lease = time.Hour }, nil, "lease"},
		{"ring", func(s *Spec) { s.Config.Ring = -1 }, nil, "ring"},
		{"limit", func(s *Spec) { s.Config.MaxFrame = -1 }, nil, "limit"},
		{"directory is a file", func(s *Spec) { s.Config.Dir = os.Args[0] }, nil, "not a directory"},
		{"no holder", func(s *Spec) { s.Program = []string{missing} }, fs.ErrNotExist, missing},
		{"another program", func(s *Spec) { s.Program = []string{"/bin/echo", "hello"} }, nil, "hello"},
		{"failing program", func(s *Spec) { s.Program = []string{"/bin/false"} }, nil, "exit status 1"},
		{"silent program", func(s *Spec) { s.Program = []string{"/bin/true"} }, io.ErrUnexpectedEOF, "ended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := spec(t, "/bin/cat")
			dir := s.Config.Dir
			tt.change(&s)
			a, err := Start(t.Context(), s)
			if err == nil || a != nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%v", err)
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
				t.Errorf("%v, %v", files, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, spec(t, "/bin/cat")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestStderr returns the last of it.
func TestStderr(t *testing.T) {
	a := begin(t, script(t, `i=0; while [ $i -lt 3000 ]; do echo "line $i of standard error, which is long" >&2; i=$((i+1)); done; echo; echo ready; cat`))
	line(t, a)
	var text string
	eventually(t, "the end is missing", func() bool {
		var err error
		if text, err = a.Stderr(t.Context()); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(text, "line 2999 of")
	})
	if len(text) > stderrBytes || len(text) < stderrBytes-4 {
		t.Errorf("%d bytes", len(text))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Stderr(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = a.Close()
	if _, err := a.Stderr(t.Context()); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// TestLongLine: a line over the limit is an event like any other, and the next ones can be read.
func TestLongLine(t *testing.T) {
	s := script(t, `printf '%01000d\n' 1; printf '%0200000d\n' 2; printf '%01001d\n' 3; echo 4`)
	s.Config.MaxFrame = 1000
	a := begin(t, s)
	for _, have := range []uint64{0, 1} {
		if have == 0 {
			if got := line(t, a); len(got) != 1000 {
				t.Errorf("%d bytes", len(got))
			}
		}
		for _, size := range []int64{200_000, 1001} {
			_, err := a.ReadFrame()
			big, ok := errors.AsType[*jsonrpc.FrameTooLargeError](err)
			if !ok || big.Size != size || big.Limit != 1000 || len(big.Prefix) != int(min(size, longPrefix)) || strings.Trim(string(big.Prefix), "0123") != "" {
				t.Errorf("%v", err)
			}
		}
		if got := line(t, a); got != "4" || a.Seq() != 4 {
			t.Errorf("%q, event %d", got, a.Seq())
		}
		if have == 0 {
			a = again(t, a, State{Seq: 1})
		}
	}
	if err := a.WriteFrame(make([]byte, 1001)); !errors.Is(err, jsonrpc.ErrFrameTooLarge) {
		t.Error(err)
	}
}

// TestRingFull: an agent that writes more than the ring holds waits, and nothing is lost.
func TestRingFull(t *testing.T) {
	const all, ring = 3000, 32 << 10
	file := filepath.Join(t.TempDir(), "written")
	s := script(t, `i=1; while [ $i -le 3000 ]; do printf '%01000d\n' $i; echo $i >"$0"; i=$((i+1)); done`)
	s.Config.Command.Args = append(s.Config.Command.Args, file)
	s.Config.Ring = ring
	a := begin(t, s)
	// Unacknowledged lines, the one that was read last, the buffer of the holder and that of the pipe.
	const most = (ring + 1000 + 32<<10 + 64<<10) / 1000
	for n := 1; n <= all; n++ {
		if got := line(t, a); got != fmt.Sprintf("%01000d", n) {
			t.Fatalf("line %d: %.2000q", n, got)
		}
		if n%30 == 0 { // less than the ring has room for
			written := 0
			if data, err := os.ReadFile(file); err == nil {
				_, _ = fmt.Sscan(string(data), &written)
			}
			if written > n+most {
				t.Fatalf("%d lines are written while %d are read", written, n)
			}
			if n == 900 { // what is not acknowledged comes again
				a = again(t, a, State{Seq: 890})
				for i := 891; i <= n; i++ {
					if got := line(t, a); got != fmt.Sprintf("%01000d", i) {
						t.Fatalf("line %d: %.2000q", i, got)
					}
				}
			}
			if err := a.Ack(a.Seq()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := a.ReadFrame(); err != io.EOF {
		t.Error(err)
	}
}

// TestWriteWaits: an agent that does not read holds WriteFrame up, which Close ends. What was accepted
// arrives, whoever is attached.
func TestWriteWaits(t *testing.T) {
	s := script(t, `read -r go <"$0"; cat`)
	fifo := filepath.Join(t.TempDir(), "go")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Config.Command.Args = append(s.Config.Command.Args, fifo)
	a := begin(t, s)
	frame := strings.Repeat("x", 10_000)
	failed := make(chan error)
	go func() {
		for {
			if err := a.WriteFrame([]byte(frame)); err != nil {
				failed <- err
				return
			}
		}
	}()
	const least = window - 2*(10_000+eventCost)
	waits := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.flying > least
	}
	eventually(t, "it does not wait", waits)
	_ = a.Close()
	if err := <-failed; !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	if a.Sent()*10_000 > window+256<<10 {
		t.Errorf("%d frames were sent", a.Sent())
	}
	b := again(t, a, State{})
	n := b.Sent()
	if b.Written() > n || n > a.Sent() || n == 0 {
		t.Fatalf("%d frames are written, %d accepted, %d sent", b.Written(), n, a.Sent())
	}
	if err := os.WriteFile(fifo, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	for range n {
		if got := line(t, b); got != frame {
			t.Fatalf("%.80q", got)
		}
		if err := b.Ack(b.Seq()); err != nil {
			t.Fatal(err)
		}
	}
	say(t, b, "end")
	if got := line(t, b); got != "end" || b.Sent() != n+1 {
		t.Errorf("%q after %d frames", got, b.Sent())
	}
	eventually(t, "it was not written", func() bool { return b.Written() == n+1 })
}

// TestInputClosed: an agent that closes its input is not written to.
func TestInputClosed(t *testing.T) {
	a := begin(t, script(t, `exec <&-; echo closed; sleep 1000`))
	line(t, a)
	var err error
	eventually(t, "writing does not fail", func() bool {
		err = a.WriteFrame([]byte("{}"))
		return err != nil
	})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	b := again(t, a, State{})
	eventually(t, "writing does not fail", func() bool { return b.WriteFrame([]byte("{}")) != nil })
}

// TestOutputClosed: an agent that closes its output is of no use, and ends.
func TestOutputClosed(t *testing.T) {
	s := script(t, `exec >&-; sleep 1000`)
	s.Config.CloseGrace, s.Config.TermGrace = -1, time.Second
	a := begin(t, s)
	if _, err := a.ReadFrame(); err != io.EOF {
		t.Error(err)
	}
	if exit, ok := errors.AsType[*process.ExitError](a.ExitErr()); !ok || exit.Signal == "" {
		t.Error(a.ExitErr())
	}
}

// TestBatch: frames that are written together arrive as if they were not, and a reader that is about to
// wait says so.
func TestBatch(t *testing.T) {
	a := begin(t, script(t, `while read -r l; do id=${l#*\"id\":}; id=${id%%[,\}]*}; echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$id}"; done`))
	var frames [][]byte
	for i := range 100 {
		frames = append(frames, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"x"}`, i))
	}
	if err := a.WriteFrames(append(frames, nil)); err != nil {
		t.Fatal(err)
	}
	waited := 0
	a.BeforeRead(func() error { waited++; return nil })
	for i := range 100 {
		if got, want := line(t, a), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%d}`, i, i); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	a.BeforeRead(func() error { waited++; return io.ErrNoProgress })
	if _, err := a.ReadFrame(); err != io.ErrNoProgress || waited < 1 || a.Buffered() {
		t.Errorf("%v, called %d times", err, waited)
	}
	if err := a.Renew(MaxLease + 1); err == nil {
		t.Error("a lease that is too long")
	}
}
