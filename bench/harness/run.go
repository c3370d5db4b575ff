package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/internal/standin"
)

// limit bounds a task.
const limit = 3 * time.Minute

// marker is in each prompt. Requests without it do not belong to the conversation.
const marker = "HARNESS-TASK"

// A harness runs tasks.
type harness struct{ dir, modules, keep string }

// A result is what came of a task.
type result struct {
	agent, version, task string

	err      error
	verdict  string
	requests int // of the conversation
	side     int // others
	bytes    int // of all requests
	first    int // of the first request of the conversation
	reuse    []float64
	update   time.Duration // to the first update of the turn
	total    time.Duration
	answered time.Duration // of a cancel
	cpu      time.Duration
	rss      int64 // bytes
	left     int   // processes after the end
	faults   []string
}

// A trial is a task that runs.
type trial struct {
	h      *harness
	a      agent
	t      task
	r      *result
	home   string
	work   string
	mark   string
	model  *standin.Server
	client *acp.Client

	mu      sync.Mutex
	prompt  time.Time
	last    []segment
	step    int
	failure error
	hung    chan struct{} // closed when the model has stopped in the middle, or a tool is about to be asked for
	once    sync.Once
	steps   [][]op
	over    bool   // the model says that it is done, whatever comes
	said    string // by the last tool
	done    bool   // the last call was shown as completed
}

// run gives an agent a task.
func (h *harness) run(ctx context.Context, a agent, t task, command []string) result {
	r := result{task: t.name}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	x := &trial{h: h, a: a, t: t, r: &r, hung: make(chan struct{})}
	if err := x.run(ctx, command); err != nil {
		r.err = err
	}
	return r
}

func (x *trial) run(ctx context.Context, command []string) error {
	base := x.h.dir
	if x.h.keep != "" {
		base = x.h.keep
	}
	dir, err := os.MkdirTemp(base, x.a.name+"-"+strings.ReplaceAll(x.t.name, " ", "-")+"-")
	if err != nil {
		return err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	x.home, x.work, x.mark = filepath.Join(dir, "home"), filepath.Join(dir, "work"), filepath.Base(dir)
	for _, d := range []string{x.home, x.work, filepath.Join(dir, "tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	for name, text := range x.t.files {
		if err := os.WriteFile(filepath.Join(x.work, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if x.t.steps != nil {
		x.steps = x.t.steps(x.work)
	}
	o := standin.Options{Script: x.answer}
	if x.h.keep != "" {
		f, err := os.Create(filepath.Join(dir, "requests.log"))
		if err != nil {
			return err
		}
		defer f.Close()
		o.Log = f
	}
	x.model = standin.New(o)
	defer x.model.Close()
	if x.a.files != nil {
		for name, v := range x.a.files(x.model.URL) {
			if err := x.write(name, v); err != nil {
				return err
			}
		}
	}
	env := append([]string{
		"PATH=" + filepath.Dir(x.h.node()) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + x.home, "TMPDIR=" + filepath.Join(dir, "tmp"), "LANG=C.UTF-8", "USER=nobody", "NO_COLOR=1",
		"XDG_CONFIG_HOME=" + x.home + "/.config", "XDG_DATA_HOME=" + x.home + "/.local/share",
		"XDG_STATE_HOME=" + x.home + "/.local/state", "XDG_CACHE_HOME=" + x.home + "/.cache", markVariable + "=" + x.mark,
	}, x.a.env(x.model.URL)...)
	x.client = &acp.Client{
		Info: acp.Implementation{Name: "acp-harness", Version: "1"}, MaxVersion: 1,
		RequestPermission: func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			if x.t.deny {
				return r.Reject(), nil
			}
			return r.Allow(), nil
		},
		Update: x.update,
	}
	connect := func() (*acp.ClientConn, error) {
		tr := acp.Command(command[0], command[1:]...)
		tr.Dir, tr.Env = x.work, env
		return x.client.Connect(ctx, tr)
	}
	err = x.talk(ctx, connect)
	x.r.left = x.remain()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.t.verdict != nil {
		x.r.verdict = x.t.verdict(x.work, x.said, x.done)
	}
	return errors.Join(err, x.failure)
}

// write writes a file of the home.
func (x *trial) write(name string, v any) error {
	text, ok := v.(string)
	if !ok {
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		text = string(data)
	}
	file := filepath.Join(x.home, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}

// talk gives the task.
func (x *trial) talk(ctx context.Context, connect func() (*acp.ClientConn, error)) error {
	conn, err := connect()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	config := acp.SessionConfig{Cwd: x.work}
	if x.t.mcp != "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		config.MCPServers = []acp.MCPServer{&acp.MCPServerStdio{Name: x.t.mcp, Command: self, Args: []string{"mcp", x.t.mcp}}}
	}
	s, err := conn.NewSession(ctx, config)
	if err != nil {
		return err
	}
	began := time.Now()
	x.mu.Lock()
	x.prompt = began
	x.mu.Unlock()
	reply := s.Prompt(ctx, acp.Text(marker+": "+x.t.name+". Do what is to be done."))
	switch {
	case x.t.kill:
		return x.killed(ctx, conn, s, reply, connect)
	case x.t.hang:
		if err := x.cancelled(ctx, s, reply); err != nil {
			return err
		}
	case x.t.again:
		_, _ = reply.Wait() // it may fail, but not the next one
		if err := x.again(ctx, s); err != nil {
			return err
		}
	default:
		if _, err := reply.Wait(); err != nil {
			return err
		}
	}
	x.r.total = time.Since(began)
	x.r.cpu, x.r.rss = x.used()
	return nil
}

// cancelled cancels the turn, and has another one.
func (x *trial) cancelled(ctx context.Context, s *acp.ClientSession, reply *acp.Reply) error {
	select {
	case <-x.hung:
	case <-ctx.Done():
		return ctx.Err()
	}
	at := time.Now()
	if err := s.Cancel(ctx); err != nil {
		return err
	}
	_, err := reply.Wait()
	x.r.answered = time.Since(at)
	if err != nil {
		return fmt.Errorf("the cancelled turn: %w", err)
	}
	return x.again(ctx, s)
}

// again has another turn, which the model ends at once.
func (x *trial) again(ctx context.Context, s *acp.ClientSession) error {
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	if _, err := s.Prompt(ctx, acp.Text(marker+": continue.")).Wait(); err != nil {
		x.r.verdict = "the next turn fails"
		return nil
	}
	x.r.verdict = "continues"
	return nil
}

// killed kills the agent, loads the session and has another turn.
func (x *trial) killed(ctx context.Context, conn *acp.ClientConn, s *acp.ClientSession, reply *acp.Reply, connect func() (*acp.ClientConn, error)) error {
	select {
	case <-x.hung:
	case <-ctx.Done():
		return ctx.Err()
	}
	x.kill()
	_, _ = reply.Wait() // it fails
	_ = conn.Close()
	next, err := connect()
	if err != nil {
		return err
	}
	defer func() { _ = next.Close() }()
	loaded, err := next.Load(ctx, s.ID(), acp.SessionConfig{Cwd: x.work})
	if err != nil {
		x.r.verdict = "does not load"
		return nil
	}
	return x.again(ctx, loaded)
}

// update notes the first update of a turn.
func (x *trial) update(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch u := u.Update.(type) {
	case *acp.AgentMessageChunk, *acp.AgentThoughtChunk:
	case *acp.ToolCallUpdate:
		if status, ok := u.Status.Get(); ok {
			x.done = status == acp.ToolCallStatusCompleted
		}
	default:
		return
	}
	if x.r.update == 0 && !x.prompt.IsZero() && !u.Replayed {
		x.r.update = time.Since(x.prompt)
	}
}

// answer is the model.
func (x *trial) answer(r *standin.Request) standin.Step {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.r.bytes += len(r.Body)
	st := standin.Step{Input: len(r.Body) / 4, Output: 20}
	if !x.t.tokens {
		st.Input = 1000
	}
	if !strings.Contains(strings.Join(r.Users, "\n"), marker) || len(r.Tools) == 0 {
		x.r.side++
		st.Text = []string{"ok"}
		return st
	}
	if n := len(r.Results); n > 0 {
		x.said = r.Results[n-1]
	}
	if x.t.refuse != nil {
		if st.Refuse = x.t.refuse(r); st.Refuse != "" {
			return st
		}
	}
	x.r.requests++
	now := segments(r.API, r.Body)
	if x.r.requests == 1 {
		x.r.first = len(r.Body)
	} else if !x.over {
		x.r.reuse = append(x.r.reuse, reused(x.last, now))
	}
	x.last = now
	step := x.step
	x.step++
	switch {
	case x.over:
		st.Text = []string{"Done."}
		return st
	case x.t.hang:
		st.Text, st.Hang = []string{"I begin"}, true
		x.once.Do(func() { time.AfterFunc(500*time.Millisecond, func() { close(x.hung) }) })
		return st
	case step >= len(x.steps):
		st.Text = []string{"Done."}
		return st
	}
	if x.t.meanwhile != nil {
		if err := x.t.meanwhile(x.work, step); err != nil {
			x.failure = err
		}
	}
	st.Text = []string{"Next. "}
	for _, o := range x.steps[step] {
		call, err := o.call(r, x.a.shell)
		if err != nil {
			x.failure = err
			return standin.Step{Text: []string{"Done."}, Input: st.Input, Output: st.Output}
		}
		st.Calls = append(st.Calls, call)
	}
	if x.t.kill && step == len(x.steps)-1 {
		x.once.Do(func() { time.AfterFunc(2*time.Second, func() { close(x.hung) }) })
	}
	return st
}
