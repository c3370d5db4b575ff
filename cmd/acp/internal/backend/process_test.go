//go:build unix

package backend

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/test/replay"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/transcript"
)

// role makes the test binary an agent, or a program that uses one.
const (
	role  = "ACP_HOST_TEST_ROLE"
	place = "ACP_HOST_TEST_DIR" // where it keeps things
)

func TestMain(m *testing.M) {
	if r := os.Getenv(role); r != "" {
		if r == "user" {
			beUser()
			return
		}
		beAgent(r)
		return
	}
	leaktest.Main(m)
}

// beAgent is an agent as the words say: v1 or v2, and what it does.
func beAgent(words string) {
	does := strings.Fields(words)
	is := func(w string) bool { return slices.Contains(does, w) }
	dir := os.Getenv(place)
	switch {
	case is("replays"):
		if err := replay.Serve(does[1], dir, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case is("exits"):
		fmt.Fprintln(os.Stderr, "no model \x1b[31mconfigured")
		os.Exit(3)
	case is("silent-later") && exists(filepath.Join(dir, "login")) && !slices.Contains(os.Args, "--setup"):
		fmt.Fprintln(os.Stderr, "waiting for the moon")
		select {}
	}
	if slices.Contains(os.Args, "--setup") { // the terminal login
		if err := os.WriteFile(filepath.Join(dir, "login"), []byte(os.Getenv("ACP_HOST_TEST_KEY")), 0o600); err != nil {
			os.Exit(1)
		}
		return
	}
	var loggedIn sync.Map
	needs := func() error {
		if _, ok := loggedIn.Load("ok"); ok {
			return nil
		}
		switch {
		case is("needs-agent"), is("needs-env") && os.Getenv("FAKE_KEY") == "":
			return errAuth
		case is("needs-env"):
			return errAuth // until it is told
		case is("needs-terminal"), is("needs-described"):
			if _, err := os.Stat(filepath.Join(dir, "login")); err != nil {
				return errAuth
			}
		}
		return nil
	}
	a := acp.Agent{
		Info: acp.Implementation{Name: "child", Version: "1"},
		NewSession: func(_ context.Context, s *acp.AgentSession) error {
			if is("at-prompt") {
				return nil
			}
			return needs()
		},
		Accept: func(context.Context, *acp.Turn) error { return needs() },
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			switch t.Text() {
			case "die":
				_ = t.Say("last words")
				_ = t.Plan(acp.PlanEntry{Content: "p", Status: acp.PlanEntryStatusPending, Priority: acp.PlanEntryPriorityLow})
				_ = acp.AgentConnFrom(ctx).Conn().Call(ctx, "_child/read", nil, nil) // refused when all of that was read
				fmt.Fprintln(os.Stderr, "out of luck")
				os.Exit(7)
			case "children":
				var list []string
				for range 2 {
					c := exec.Command("sleep", "1000")
					if c.Start() == nil {
						list = append(list, strconv.Itoa(c.Process.Pid))
					}
				}
				list = append(list, strconv.Itoa(os.Getpid()))
				_ = t.Say(strings.Join(list, " "))
				<-ctx.Done()
				if is("deaf") {
					select {}
				}
				return acp.StopCancelled, nil
			case "terminal":
				call := t.ToolCall(acp.ToolCall{Title: "run", Kind: acp.ToolKindExecute})
				state, err := call.Exec(acp.Exec{Command: "sh", Args: []string{"-c", "echo hello; test -t 1 && echo tty"}})
				if err != nil {
					return "", err
				}
				_ = call.Complete()
				return acp.StopEndTurn, t.Say(state.Output)
			case "pid":
				return acp.StopEndTurn, t.Say(strconv.Itoa(os.Getpid()))
			case "count":
				for i := 0; ; i++ {
					if err := t.Say(strconv.Itoa(i) + " "); err != nil {
						return "", err
					}
					if i == 0 {
						_ = t.Say("pid" + strconv.Itoa(os.Getpid()) + " ")
					}
				}
			}
			return acp.StopEndTurn, t.Say("heard " + t.Text() + " with " + os.Getenv("FAKE_KEY"))
		},
	}
	if is("keeps") {
		a.ResumeSession = func(context.Context, *acp.AgentSession, bool) error { return nil }
	}
	switch {
	case is("needs-agent"):
		a.AuthMethods = []acp.AuthMethod{&acp.AuthMethodAgent{MethodID: "browser", Name: "Browser"}}
	case is("needs-env"):
		a.AuthMethods = []acp.AuthMethod{envMethod()}
	case is("needs-terminal"):
		a.AuthMethods = []acp.AuthMethod{&acp.AuthMethodTerminal{MethodID: "setup", Name: "Set up", Args: []string{"--setup"},
			Env: []acp.EnvVariable{{Name: "ACP_HOST_TEST_KEY", Value: "k1"}}}}
	}
	if is("needs-described") {
		meta, _ := json.Marshal(map[string]any{"terminal-auth": map[string]any{"command": os.Args[0], "args": []string{"--setup"}, "env": map[string]string{"X": "1"}, "label": "Set up"}})
		a.AuthMethods = []acp.AuthMethod{&acp.AuthMethodAgent{MethodID: "setup", Name: "Set up", Meta: meta}}
	}
	if a.AuthMethods != nil {
		a.Login = func(_ context.Context, _ *acp.AgentConn, id acp.AuthMethodID) error {
			if is("refuses") {
				return errors.New("no")
			}
			loggedIn.Store("ok", true)
			return nil
		}
	}
	if is("stubborn") {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		go func() {
			<-asked
			_ = os.WriteFile(filepath.Join(dir, "asked"), nil, 0o600)
		}()
	}
	if err := a.Serve(context.Background(), acp.Stdio()); err != nil {
		os.Exit(1)
	}
	if is("stubborn") {
		select {}
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// child is the test binary as an agent.
func child(t *testing.T, version int, words string) Config {
	t.Helper()
	exe, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Agent: roster.Agent{Name: "child", Command: exe, Protocol: version,
			Env: map[string]string{role: words, place: t.TempDir()}},
		Cwd: t.TempDir(), Connect: 20 * time.Second,
	}
}

func TestOpenFails(t *testing.T) {
	// answer is a script that answers the first request with the rest of a response.
	answer := func(rest string) string {
		return `read l; id=$(echo "$l" | sed 's/.*"id":\("*[^",}]*"*\).*/\1/'); echo '{"jsonrpc":"2.0","id":'"$id"',` + rest + `}'; cat >/dev/null`
	}
	shell := func(script string) func(*Config) {
		return func(c *Config) {
			c.Agent.Command, c.Agent.Args = "sh", []string{"-c", script}
			c.Connect = 3 * time.Second
		}
	}
	tests := []struct {
		name string
		cfg  func(*Config)
		code exitcode.Code
		want []string
	}{
		{"missing", func(c *Config) { c.Agent.Command = "no-such-agent-of-ours" }, exitcode.Agent, []string{"no-such-agent-of-ours"}},
		{"exits", func(c *Config) { c.Agent.Env[role] = "exits" }, exitcode.Agent, []string{"exited with status 3", "no model"}},
		{"silent", func(c *Config) {
			c.Agent.Command, c.Agent.Args = "sh", []string{"-c", "echo waiting for the moon >&2; exec sleep 1000"}
			c.Connect = 3 * time.Second
			c.Slow = 10 * time.Millisecond
		}, exitcode.Timeout,
			[]string{"has not answered in 3s", "waiting for the moon"}},
		{"noise", func(c *Config) { c.Agent.Command, c.Agent.Args = "sh", []string{"-c", "echo Welcome to the shell"} }, exitcode.Protocol, []string{"Welcome to the shell", "and ended"}},
		{"noise and patience", shell("echo Welcome; cat >/dev/null"), exitcode.Protocol, []string{"in 3s it wrote nothing but", "Welcome"}},
		{"noise and failure", shell("echo Welcome; exit 4"), exitcode.Agent, []string{"Welcome", "exited with status 4"}},
		{"http", shell(`read l; printf 'HTTP/1.1 400 Bad\r\n\r\nno\n'`), exitcode.Protocol, []string{"speaks HTTP", "HTTP/1.1 400 Bad"}},
		{"lsp", shell(`read l; printf 'Content-Length: 2\r\n\r\n{}'; cat >/dev/null`), exitcode.Protocol, []string{"language server"}},
		{"cat", shell("cat"), exitcode.Protocol, []string{"sends back what it is sent"}},
		{"error", shell(answer(`"error":{"code":-32050,"message":"closed today"}`)),
			exitcode.Protocol, []string{"closed today"}},
		{"version", shell(answer(`"result":{"protocolVersion":9}`)),
			exitcode.Protocol, []string{"version 9"}},
		{"nonsense", shell(answer(`"result":[]`)),
			exitcode.Protocol, []string{"not an object"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := child(t, 0, "v1")
			tt.cfg(&cfg)
			var n notes
			cfg.Front.Note = n.add
			h, err := Open(t.Context(), cfg)
			if err == nil {
				_ = h.Close()
				t.Fatal("it opened")
			}
			if exitcode.Of(err) != tt.code {
				t.Errorf("exit code %d of %v", exitcode.Of(err), err)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
			if tt.name == "silent" && len(n.text(NoteSlow)) != 1 {
				t.Errorf("notes %+v", n.list)
			}
			if tt.name == "exits" && !slices.ContainsFunc(n.text(NoteStderr), func(s string) bool { return s == "no model configured" }) {
				t.Errorf("standard error %q", n.text(NoteStderr))
			}
		})
	}
}

// TestDies: what an agent told before it died is kept, and the error says how it died.
func TestDies(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		cfg := child(t, version, "v")
		cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
		var n notes
		cfg.Front.Note = n.add
		h := open(t, cfg)
		s, err := h.NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Prompt(t.Context(), acp.Text("die"))
		if exitcode.Of(err) != exitcode.Agent || !strings.Contains(err.Error(), "child exited with status 7: out of luck") {
			t.Errorf("Prompt: %d, %v", exitcode.Of(err), err)
		}
		<-h.Done()
		if err := h.Err(); err == nil || !strings.Contains(err.Error(), "exit status 7") {
			t.Errorf("Err: %v", err)
		}
		stored, _, err := cfg.Store.Snapshot(t.Context(), s.journal.conversationID(), transcript.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, snap := range []*transcript.Snapshot{stored, s.Snapshot()} {
			if got := strings.Join(messages(snap), "|"); got != "user: die|agent: last words" || snap.Len() < 3 {
				t.Errorf("kept %s, %d entries", got, snap.Len())
			}
			if !snap.Session().State.Idle() {
				t.Error("it is still busy")
			}
		}
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if len(n.text(NoteEnded)) != 1 {
			t.Errorf("notes %+v", n.list)
		}
	})
}

// gone waits for the end of processes.
func gone(t *testing.T, pids ...string) {
	t.Helper()
	for _, p := range pids {
		pid, err := strconv.Atoi(p)
		if err != nil {
			t.Errorf("%q is no process", p)
			continue
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			b, err := os.ReadFile("/proc/" + p + "/stat")
			_, rest, _ := strings.Cut(string(b), ") ")
			if syscall.Kill(pid, 0) != nil || err == nil && strings.HasPrefix(rest, "Z") {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("process %d survives", pid)
				break
			}
		}
	}
}

// begin prompts, and returns what the agent said when that has n words.
func begin(t *testing.T, s *Session, ctx context.Context, prompt string, n int) (words []string, result <-chan error) {
	t.Helper()
	errs := make(chan error, 1)
	go func() {
		_, err := s.Prompt(ctx, acp.Text(prompt))
		errs <- err
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if words = strings.Fields(s.Snapshot().Text()); len(words) >= n {
			return words, errs
		}
		if time.Now().After(deadline) {
			t.Fatalf("it says %q", words)
		}
	}
}

// TestEndings: however it ends, no process is left.
func TestEndings(t *testing.T) {
	endings := map[string]func(h *Host, s *Session, cancel func()){
		"close":           func(h *Host, _ *Session, _ func()) { _ = h.Close() },
		"kill":            func(h *Host, _ *Session, _ func()) { h.Kill(); <-h.Done() },
		"cancel":          func(_ *Host, s *Session, _ func()) { _ = s.Cancel(context.Background()) },
		"cancel the call": func(_ *Host, _ *Session, cancel func()) { cancel() },
	}
	versions(t, func(t *testing.T, version int) {
		for name, end := range endings {
			for _, how := range []string{"v", "v deaf"} {
				if strings.HasPrefix(name, "cancel") && how != "v" {
					continue // waits for the grace of the client
				}
				t.Run(name+" "+how, func(t *testing.T) {
					t.Parallel()
					h := open(t, child(t, version, how))
					s, err := h.NewSession(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					pids, result := begin(t, s, ctx, "children", 3)
					end(h, s, cancel)
					select {
					case <-result:
					case <-time.After(time.Minute):
						t.Fatal("the prompt does not return")
					}
					if err := h.Close(); err != nil {
						t.Errorf("Close: %v", err)
					}
					gone(t, pids...)
				})
			}
		}
	})
}

// beUser is a program with a store that prompts and prints what it shows, until it is killed.
func beUser() {
	ctx := context.Background()
	dir := os.Getenv(place)
	// A busy machine may take longer to write than what is shown usually waits for.
	st, err := store.Open(ctx, store.Options{Path: filepath.Join(dir, "kept"), Normal: true, AppendWait: time.Hour})
	if err != nil {
		panic(err)
	}
	out := bufio.NewWriter(os.Stdout)
	cfg := Config{
		Agent: roster.Agent{Name: "child", Command: os.Args[0], Env: map[string]string{role: "v"}},
		Cwd:   dir, Store: st,
	}
	cfg.Agent.Protocol, _ = strconv.Atoi(os.Getenv("ACP_HOST_TEST_VERSION"))
	cfg.Front.Changed = func(s *Session, changes []transcript.Change) {
		for _, ch := range changes {
			if m, ok := s.Snapshot().Entry(ch.Seq).(*transcript.Message); ok && m.Role == transcript.RoleAgent && ch.Text != "" {
				_ = json.NewEncoder(out).Encode([]string{string(s.ID()), ch.Text})
			}
		}
		_ = out.Flush()
	}
	h, err := Open(ctx, cfg)
	if err != nil {
		panic(err)
	}
	s, err := h.NewSession(ctx)
	if err != nil {
		panic(err)
	}
	_, _ = s.Prompt(ctx, acp.Text("count"))
}

// TestKilled: what was shown is in the store after kill -9, and nothing runs any more.
func TestKilled(t *testing.T) {
	times := 5
	if !long.All() {
		times = 1
	}
	versions(t, func(t *testing.T, version int) {
		for i := range times {
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), role+"=user", place+"="+dir, "ACP_HOST_TEST_VERSION="+strconv.Itoa(version))
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var shown strings.Builder
			var id string
			sc := bufio.NewScanner(out)
			sc.Buffer(nil, 64<<20)
			for n := 0; sc.Scan(); n++ {
				var line []string
				if json.Unmarshal(sc.Bytes(), &line) != nil {
					continue // torn
				}
				id = line[0]
				shown.WriteString(line[1])
				if n == 3+i {
					_ = cmd.Process.Kill()
				}
			}
			_ = cmd.Wait()
			_, rest, _ := strings.Cut(shown.String(), "pid")
			pid, _, _ := strings.Cut(rest, " ")
			gone(t, pid)
			st := openStore(t, filepath.Join(dir, "kept"))
			kept, err := st.Latest(t.Context(), store.Key{Agent: "child", ID: id})
			if err != nil {
				t.Fatal(err)
			}
			snap, _, err := st.Snapshot(t.Context(), kept.Conversation, transcript.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if busy, err := st.Writing(t.Context(), kept.Conversation); busy || err != nil || kept.State != records.StateRunning || !history.InTurn(snap) {
				t.Errorf("written: %v, %v; open: %v; in a turn: %v", busy, err, kept.State == records.StateRunning, history.InTurn(snap))
			}
			if !strings.HasPrefix(snap.Text(), shown.String()) {
				t.Errorf("shown %d bytes, of which the store has other %d", shown.Len(), len(snap.Text()))
			}
		}
	})
}

// TestTerminal: the output of a terminal that is lent shows in the conversation, as of a terminal.
func TestTerminal(t *testing.T) {
	cfg := child(t, 1, "v")
	cfg.Front.Ask = allow
	h := open(t, cfg)
	s, err := h.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(t.Context(), acp.Text("terminal")); err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(s.Snapshot().Text(), "\r", ""); got != "hello\ntty\n" {
		t.Errorf("the agent saw %q", got)
	}
	for e := range s.Snapshot().Entries() {
		call, ok := e.(*transcript.ToolCall)
		if !ok || call.Title != "run" {
			continue
		}
		for _, c := range call.Content {
			ref, ok := c.(*acp.TerminalContent)
			if !ok {
				continue
			}
			term := s.Snapshot().Terminal(ref.TerminalID)
			if term == nil || term.Plain() != "hello\ntty\n" || !term.Exited() {
				t.Errorf("terminal %+v", term)
			}
			return
		}
	}
	t.Error("no terminal is shown")
}
