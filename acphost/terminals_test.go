//go:build unix

package acphost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

const session acpv1.SessionID = "s"

func local(t *testing.T, roots ...string) *Terminals {
	t.Helper()
	h := Local(roots...)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func create(t *testing.T, h *Terminals, req acpv1.CreateTerminalRequest) acpv1.TerminalID {
	t.Helper()
	if req.SessionID == "" {
		req.SessionID = session
	}
	resp, err := h.CreateTerminal(t.Context(), &req)
	if err != nil {
		t.Fatal(err)
	}
	return resp.TerminalID
}

func script(lines string) acpv1.CreateTerminalRequest {
	return acpv1.CreateTerminalRequest{Command: "/bin/sh", Args: []string{"-c", lines}}
}

func output(t *testing.T, h *Terminals, id acpv1.TerminalID) *acpv1.TerminalOutputResponse {
	t.Helper()
	resp, err := h.TerminalOutput(t.Context(), &acpv1.TerminalOutputRequest{SessionID: session, TerminalID: id})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func wait(t *testing.T, h *Terminals, id acpv1.TerminalID) *acpv1.WaitForTerminalExitResponse {
	t.Helper()
	resp, err := h.WaitForTerminalExit(t.Context(), &acpv1.WaitForTerminalExitRequest{SessionID: session, TerminalID: id})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// until waits until the output has a text in it, which nothing announces.
func until(t *testing.T, h *Terminals, id acpv1.TerminalID, text string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(output(t, h, id).Output, text) {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("%q is not printed", text)
		}
	}
}

// alive counts the processes that have a mark in their environment.
func alive(mark string) int {
	n := 0
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if env, err := os.ReadFile(f); err == nil && bytes.Contains(env, []byte("MARK="+mark+"\x00")) {
			n++
		}
	}
	return n
}

// marked adds a mark to a request, by which its processes are found.
func marked(t *testing.T, req acpv1.CreateTerminalRequest) (acpv1.CreateTerminalRequest, func(want int)) {
	mark := fmt.Sprintf("%s-%d-%d", t.Name(), os.Getpid(), time.Now().UnixNano())
	req.Env = append(req.Env, acpv1.EnvVariable{Name: "MARK", Value: mark})
	return req, func(want int) {
		t.Helper()
		if runtime.GOOS != "linux" {
			return
		}
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(time.Minute); alive(mark) != want; <-tick.C {
			if time.Now().After(end) {
				t.Fatalf("%d processes, want %d", alive(mark), want)
			}
		}
	}
}

func TestTerminalRuns(t *testing.T) {
	dir := realDir(t)
	put(t, filepath.Join(dir, "two words"), "#!/bin/sh\necho a program\n")
	if err := os.Chmod(filepath.Join(dir, "two words"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("INHERITED", "from here")
	code := func(n uint32) *uint32 { return &n }
	for _, tt := range []struct {
		name string
		req  acpv1.CreateTerminalRequest
		want acpv1.TerminalOutputResponse
	}{
		{"both outputs in order", script("echo one; echo two >&2; echo three; exit 3"),
			acpv1.TerminalOutputResponse{Output: "one\ntwo\nthree\n", ExitStatus: &acpv1.TerminalExitStatus{ExitCode: code(3)}}},
		{"no input", script("read x || echo none"),
			acpv1.TerminalOutputResponse{Output: "none\n", ExitStatus: &acpv1.TerminalExitStatus{ExitCode: code(0)}}},
		{"signal", script("kill -TERM $$"),
			acpv1.TerminalOutputResponse{ExitStatus: &acpv1.TerminalExitStatus{Signal: "SIGTERM"}}},
		{"environment", acpv1.CreateTerminalRequest{Command: "/bin/sh", Args: []string{"-c", `echo "$INHERITED, $ADDED, $PWD"`}, Cwd: dir,
			Env: []acpv1.EnvVariable{{Name: "ADDED", Value: "a"}, {Name: "ADDED", Value: "b=c"}}},
			acpv1.TerminalOutputResponse{Output: "from here, b=c, " + dir + "\n", ExitStatus: &acpv1.TerminalExitStatus{ExitCode: code(0)}}},
		{"line", acpv1.CreateTerminalRequest{Command: "echo one; echo two | tr a-z A-Z"},
			acpv1.TerminalOutputResponse{Output: "one\nTWO\n", ExitStatus: &acpv1.TerminalExitStatus{ExitCode: code(0)}}},
		{"a program, no line", acpv1.CreateTerminalRequest{Command: filepath.Join(dir, "two words")},
			acpv1.TerminalOutputResponse{Output: "a program\n", ExitStatus: &acpv1.TerminalExitStatus{ExitCode: code(0)}}},
		{"limit", acpv1.CreateTerminalRequest{Command: "/bin/sh", Args: []string{"-c", "printf 'äöü'"}, OutputByteLimit: new(uint64(5))},
			acpv1.TerminalOutputResponse{Output: "öü", Truncated: true, ExitStatus: &acpv1.TerminalExitStatus{ExitCode: code(0)}}},
		{"limit not reached", acpv1.CreateTerminalRequest{Command: "/bin/sh", Args: []string{"-c", "printf 'äöü'"}, OutputByteLimit: new(uint64(6))},
			acpv1.TerminalOutputResponse{Output: "äöü", ExitStatus: &acpv1.TerminalExitStatus{ExitCode: code(0)}}},
		{"limit 0", acpv1.CreateTerminalRequest{Command: "/bin/sh", Args: []string{"-c", "printf 'äöü'"}, OutputByteLimit: new(uint64(0))},
			acpv1.TerminalOutputResponse{Truncated: true, ExitStatus: &acpv1.TerminalExitStatus{ExitCode: code(0)}}},
		{"invalid bytes", script(`printf 'a\377\376b'`),
			acpv1.TerminalOutputResponse{Output: "a\ufffdb", ExitStatus: &acpv1.TerminalExitStatus{ExitCode: code(0)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := local(t)
			id := create(t, h, tt.req)
			exit := wait(t, h, id)
			got := output(t, h, id)
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(&acpv1.WaitForTerminalExitResponse{ExitCode: got.ExitStatus.ExitCode, Signal: got.ExitStatus.Signal}, exit); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLineRunsAsRead: a directory whose name begins like a command does not make a line the name of a
// program.
func TestLineRunsAsRead(t *testing.T) {
	dir := realDir(t)
	for name, text := range map[string]string{"src/main.go": "package main\n", "cat src/main.go": "#!/bin/sh\necho evil\n", "ls .": "#!/bin/sh\necho evil\n"} {
		put(t, filepath.Join(dir, name), text)
		if err := os.Chmod(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h := local(t)
	for line, want := range map[string]string{"cat src/main.go": "package main\n", "./ls .": "", "A=1 cat src/main.go": "package main\n"} {
		var shown string
		h.Permit = func(_ context.Context, req *acpv1.CreateTerminalRequest) error {
			shown = TerminalCommand(req)
			return nil
		}
		id := create(t, h, acpv1.CreateTerminalRequest{Command: line, Cwd: dir})
		wait(t, h, id)
		if got := output(t, h, id).Output; shown != line || strings.Contains(got, "evil") || want != "" && got != want {
			t.Errorf("%q is shown as %q and prints %q", line, shown, got)
		}
	}
	program := filepath.Join(dir, "cat src", "main.go")
	if got, want := TerminalCommand(&acpv1.CreateTerminalRequest{Command: program}), "'"+program+"'"; got != want {
		t.Errorf("a program is shown as %q, want %q", got, want)
	}
}

func TestTerminalRefused(t *testing.T) {
	dir := realDir(t)
	root, other := filepath.Join(dir, "root"), filepath.Join(dir, "other")
	put(t, filepath.Join(root, "file"), "")
	put(t, filepath.Join(other, "file"), "")
	link(t, other, filepath.Join(root, "link"))
	h := local(t, root)
	for _, tt := range []struct {
		path, reason string
		req          acpv1.CreateTerminalRequest
	}{
		{"command", "empty", acpv1.CreateTerminalRequest{}},
		{"command", "zero byte", acpv1.CreateTerminalRequest{Command: "a\x00"}},
		{"command", "no such", acpv1.CreateTerminalRequest{Command: "no-such-program"}},
		{"command", "no such", acpv1.CreateTerminalRequest{Command: "no such program", Args: []string{"x"}}},
		{"command", "executed", acpv1.CreateTerminalRequest{Command: filepath.Join(root, "file")}},
		{"args[1]", "zero byte", acpv1.CreateTerminalRequest{Command: "sh", Args: []string{"a", "\x00"}}},
		{"env[0].name", "variable", acpv1.CreateTerminalRequest{Command: "sh", Env: []acpv1.EnvVariable{{Name: "A=B"}}}},
		{"env[1].name", "variable", acpv1.CreateTerminalRequest{Command: "sh", Env: []acpv1.EnvVariable{{Name: "A"}, {}}}},
		{"env[0].value", "zero byte", acpv1.CreateTerminalRequest{Command: "sh", Env: []acpv1.EnvVariable{{Name: "A", Value: "\x00"}}}},
		{"cwd", "absolute", acpv1.CreateTerminalRequest{Command: "sh", Cwd: "root"}},
		{"cwd", "exist", acpv1.CreateTerminalRequest{Command: "sh", Cwd: filepath.Join(root, "none")}},
		{"cwd", "not a directory", acpv1.CreateTerminalRequest{Command: "sh", Cwd: filepath.Join(root, "file")}},
		{"cwd", "outside", acpv1.CreateTerminalRequest{Command: "sh", Cwd: other}},
		{"cwd", "outside", acpv1.CreateTerminalRequest{Command: "sh", Cwd: filepath.Join(root, "link")}},
		{"cwd", "outside", acpv1.CreateTerminalRequest{Command: "sh", Cwd: root + "/../other"}},
	} {
		_, err := h.CreateTerminal(t.Context(), &tt.req)
		code, data := answer(t, err)
		reason, _ := data["reason"].(string)
		if code != jsonrpc.CodeInvalidParams || data["path"] != "params."+tt.path || !strings.Contains(reason, tt.reason) {
			t.Errorf("%+v: %d %v", tt.req, code, data)
		}
	}
	if len(h.all) != 0 {
		t.Errorf("%d terminals are left", len(h.all))
	}
	id := create(t, h, acpv1.CreateTerminalRequest{Command: "pwd"})
	wait(t, h, id)
	if got := output(t, h, id).Output; got != root+"\n" {
		t.Errorf("without a directory it runs in %q", got)
	}
	if _, err := Local("").CreateTerminal(t.Context(), &acpv1.CreateTerminalRequest{Command: "pwd"}); err == nil {
		t.Error("a root without a name")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.CreateTerminal(ctx, &acpv1.CreateTerminalRequest{Command: "pwd"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestTerminalMoved: what the hook has permitted is not started somewhere else, should a link have been
// changed while the hook was asking.
func TestTerminalMoved(t *testing.T) {
	for _, tt := range []struct {
		name, link, to string
		req            acpv1.CreateTerminalRequest
		reason         string // "" if it is started
	}{
		{"nothing", "unused", "b", acpv1.CreateTerminalRequest{Command: "pwd", Cwd: "now"}, ""},
		{"the directory", "now", "b", acpv1.CreateTerminalRequest{Command: "pwd", Cwd: "now"}, "somewhere else"},
		{"the directory, to the outside", "now", "../other", acpv1.CreateTerminalRequest{Command: "pwd", Cwd: "now"}, "outside"},
		{"the program", "now", "b", acpv1.CreateTerminalRequest{Command: "now/tool"}, "somewhere else"},
		{"the program, from another directory", "now", "b", acpv1.CreateTerminalRequest{Command: "../now/tool", Cwd: "a"}, "somewhere else"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := realDir(t)
			root := filepath.Join(dir, "root")
			for _, d := range []string{"root/a", "root/b", "other"} {
				put(t, filepath.Join(dir, d, "tool"), "#!/bin/sh\n")
				if err := os.Chmod(filepath.Join(dir, d, "tool"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			link(t, "a", filepath.Join(root, "now"))
			link(t, "a", filepath.Join(root, "unused"))
			if tt.req.Cwd != "" {
				tt.req.Cwd = filepath.Join(root, tt.req.Cwd)
			}
			h := local(t, root)
			h.Permit = func(context.Context, *acpv1.CreateTerminalRequest) error {
				path := filepath.Join(root, tt.link)
				return errors.Join(os.Remove(path), os.Symlink(tt.to, path))
			}
			_, err := h.CreateTerminal(t.Context(), &tt.req)
			if tt.reason == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			code, data := answer(t, err)
			if reason, _ := data["reason"].(string); code != jsonrpc.CodeInvalidParams || !strings.Contains(reason, tt.reason) {
				t.Errorf("%d %v, want %q", code, data, tt.reason)
			}
			if n := h.len(); n != 0 {
				t.Errorf("%d terminals were made", n)
			}
		})
	}
}

func TestTerminalKill(t *testing.T) {
	for name, tt := range map[string]struct {
		lines string
		grace time.Duration
		ctx   func() context.Context
		want  acpv1.WaitForTerminalExitResponse
	}{
		"polite":    {"trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 1000 & wait; done", time.Hour, t.Context, acpv1.WaitForTerminalExitResponse{ExitCode: new(uint32(7))}},
		"deaf":      {"trap '' TERM; echo ready; while :; do sleep 1000; done", -1, t.Context, acpv1.WaitForTerminalExitResponse{Signal: "SIGKILL"}},
		"impatient": {"trap '' TERM; echo ready; while :; do sleep 1000; done", time.Hour, canceled, acpv1.WaitForTerminalExitResponse{Signal: "SIGKILL"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := local(t)
			h.Grace = tt.grace
			req, processes := marked(t, script(tt.lines))
			id := create(t, h, req)
			until(t, h, id, "ready\n")
			waited := make(chan *acpv1.WaitForTerminalExitResponse, 1)
			go func() {
				resp, _ := h.WaitForTerminalExit(t.Context(), &acpv1.WaitForTerminalExitRequest{SessionID: session, TerminalID: id})
				waited <- resp
			}()
			kill := &acpv1.KillTerminalRequest{SessionID: session, TerminalID: id}
			for range 2 { // the second time there is nothing to do
				if _, err := h.KillTerminal(tt.ctx(), kill); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(&tt.want, <-waited); diff != "" {
				t.Error(diff)
			}
			processes(0)
			// What it printed is still there, the last words too.
			want := "ready\n"
			if name == "polite" {
				want += "bye\n"
			}
			if got := output(t, h, id); got.Output != want || got.ExitStatus == nil {
				t.Errorf("%+v", got)
			}
		})
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestTerminalRelease(t *testing.T) {
	h := local(t)
	req, processes := marked(t, script("echo ready; sleep 1000"))
	id := create(t, h, req)
	until(t, h, id, "ready")
	other := acpv1.SessionID("other")
	gone := func(s acpv1.SessionID) {
		t.Helper()
		_, err1 := h.TerminalOutput(t.Context(), &acpv1.TerminalOutputRequest{SessionID: s, TerminalID: id})
		_, err2 := h.WaitForTerminalExit(t.Context(), &acpv1.WaitForTerminalExitRequest{SessionID: s, TerminalID: id})
		_, err3 := h.KillTerminal(t.Context(), &acpv1.KillTerminalRequest{SessionID: s, TerminalID: id})
		_, err4 := h.ReleaseTerminal(t.Context(), &acpv1.ReleaseTerminalRequest{SessionID: s, TerminalID: id})
		for i, err := range []error{err1, err2, err3, err4} {
			if code, data := answer(t, err); code != jsonrpc.CodeResourceNotFound || data["terminalId"] != string(id) {
				t.Errorf("call %d: %d %v", i, code, data)
			}
		}
	}
	gone(other)
	processes(2)
	waited := make(chan error, 1)
	go func() {
		_, err := h.WaitForTerminalExit(t.Context(), &acpv1.WaitForTerminalExitRequest{SessionID: session, TerminalID: id})
		waited <- err
	}()
	if _, err := h.WaitForTerminalExit(canceled(), &acpv1.WaitForTerminalExitRequest{SessionID: session, TerminalID: id}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := h.ReleaseTerminal(t.Context(), &acpv1.ReleaseTerminalRequest{SessionID: session, TerminalID: id}); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil && !errors.Is(err, jsonrpc.ErrResourceNotFound) {
		t.Error(err)
	}
	gone(session)
	processes(0)
}

// TestTerminalBackground holds what becomes of what a command leaves running.
func TestTerminalBackground(t *testing.T) {
	h := local(t)
	flag := filepath.Join(t.TempDir(), "flag")
	req, processes := marked(t, script("(until [ -e "+flag+" ]; do sleep 0.01; done; echo later; sleep 1000) & echo started"))
	id := create(t, h, req)
	if got := wait(t, h, id); got.ExitCode == nil || *got.ExitCode != 0 {
		t.Fatalf("%+v", got)
	}
	until(t, h, id, "started")
	put(t, flag, "")
	until(t, h, id, "later")
	if _, err := h.ReleaseTerminal(t.Context(), &acpv1.ReleaseTerminalRequest{SessionID: session, TerminalID: id}); err != nil {
		t.Fatal(err)
	}
	processes(0)
}

// TestTerminalFlood prints a gigabyte.
func TestTerminalFlood(t *testing.T) {
	size := 1 << 30
	if testing.Short() {
		size = 64 << 20
	}
	h := local(t)
	const limit = 100_001
	const line = "aä€𝄞\n"
	req := script(fmt.Sprintf("yes 'aä€𝄞' | head -c %d; echo end", size/len(line)*len(line)))
	req.OutputByteLimit = new(uint64(limit))
	id := create(t, h, req)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-h.find(session, id).exited:
			done = true
		case <-tick.C:
		}
		got := output(t, h, id).Output
		if len(got) > limit || !utf8.ValidString(got) || strings.Contains(got, "\ufffd") {
			t.Fatalf("%d bytes, valid: %v", len(got), utf8.ValidString(got))
		}
	}
	got := output(t, h, id)
	if len(got.Output) < limit-3 || !got.Truncated || !strings.HasSuffix(got.Output, "\nend\n") {
		t.Errorf("%d bytes, truncated: %v, end %q", len(got.Output), got.Truncated, got.Output[len(got.Output)-20:])
	}
}

func TestTerminalBounds(t *testing.T) {
	h := local(t)
	h.MaxTerminals, h.OutputLimit, h.MaxOutput = 2, 4, 6
	for limit, want := range map[*uint64]string{nil: "6789", new(^uint64(0)): "456789"} {
		req := script("printf 123456789")
		req.OutputByteLimit = limit
		id := create(t, h, req)
		wait(t, h, id)
		if got := output(t, h, id).Output; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	req := script("true")
	req.SessionID = session
	_, err := h.CreateTerminal(t.Context(), &req)
	if code, _ := answer(t, err); code != jsonrpc.CodeInternalError {
		t.Error(err)
	}
	req.SessionID = "other"
	create(t, h, req)
	h.ReleaseSession(session)
	create(t, h, script("true"))
	for i := range maxAllTerminals - 2 {
		h.all[acpv1.TerminalID(fmt.Sprint("fake", i))] = new(terminal)
	}
	req.SessionID = "third"
	if _, err := h.CreateTerminal(t.Context(), &req); err == nil {
		t.Error("there is no bound for all sessions")
	}
	for i := range maxAllTerminals - 2 {
		delete(h.all, acpv1.TerminalID(fmt.Sprint("fake", i)))
	}
}

// TestTerminalsEnd ends sessions and everything while commands are being
// started.
func TestTerminalsEnd(t *testing.T) {
	h := local(t)
	h.MaxTerminals = 100
	req, processes := marked(t, script("trap '' TERM; sleep 1000"))
	req.SessionID = session
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			_, err := h.CreateTerminal(t.Context(), &req)
			if err != nil && !errors.Is(err, jsonrpc.ErrInternal) {
				t.Error(err)
			}
			if i%10 == 5 {
				h.ReleaseSession(session)
			}
		})
	}
	wg.Wait()
	h.ReleaseSession(session)
	processes(0)
	req.SessionID = "another"
	create(t, h, req)
	for range 2 {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	processes(0)
	if _, err := h.CreateTerminal(t.Context(), &req); err == nil {
		t.Error("created after the end")
	}
}

// slowPTY starts when it is told to.
type slowPTY struct {
	asked, start chan struct{}
	fail         error
}

func (p *slowPTY) Start(ctx context.Context, c PTYCommand) (PTYProcess, error) {
	close(p.asked)
	<-p.start
	if p.fail != nil {
		return nil, p.fail
	}
	return &ptyProcess{out: strings.NewReader(c.Path), end: make(chan struct{})}, nil
}

type ptyProcess struct {
	out  *strings.Reader
	end  chan struct{}
	once sync.Once
}

func (p *ptyProcess) Read(b []byte) (int, error) { return p.out.Read(b) }
func (p *ptyProcess) Wait() (int, string)        { <-p.end; return -1, "" }
func (p *ptyProcess) Close() error               { return nil }
func (p *ptyProcess) End(context.Context) error {
	p.once.Do(func() { close(p.end) })
	return nil
}

// TestTerminalStarting holds that a terminal that is being started cannot be
// used, but is ended with its session.
func TestTerminalStarting(t *testing.T) {
	for _, fail := range []error{nil, errors.New("no pty left")} {
		h := local(t)
		pty := &slowPTY{make(chan struct{}), make(chan struct{}), fail}
		h.PTY = pty
		created := make(chan error, 1)
		go func() {
			_, err := h.CreateTerminal(t.Context(), &acpv1.CreateTerminalRequest{SessionID: session, Command: "sh"})
			created <- err
		}()
		<-pty.asked
		if _, err := h.KillTerminal(t.Context(), &acpv1.KillTerminalRequest{SessionID: session, TerminalID: "term-1"}); !errors.Is(err, jsonrpc.ErrResourceNotFound) {
			t.Error(err)
		}
		dropped := make(chan struct{})
		go func() {
			defer close(dropped)
			h.ReleaseSession(session)
		}()
		for h.len() > 0 {
			runtime.Gosched()
		}
		close(pty.start)
		<-dropped
		if err := <-created; fail == nil && !errors.Is(err, jsonrpc.ErrInternal) || fail != nil && !errors.Is(err, fail) {
			t.Error(err)
		}
	}
}

func (h *Terminals) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

func TestTerminalPTY(t *testing.T) {
	h := local(t)
	pty := &slowPTY{make(chan struct{}), make(chan struct{}), nil}
	close(pty.start)
	h.PTY = pty
	id := create(t, h, acpv1.CreateTerminalRequest{Command: "sh"})
	until(t, h, id, "sh")
	if _, err := h.KillTerminal(t.Context(), &acpv1.KillTerminalRequest{SessionID: session, TerminalID: id}); err != nil {
		t.Fatal(err)
	}
	if got := wait(t, h, id); got.ExitCode != nil || got.Signal != "" {
		t.Errorf("an unknown status is %+v", got)
	}
}
