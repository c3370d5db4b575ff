package agents

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/remembered"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// Bounds of what is kept and waited for.
const (
	maxStderr    = 16 << 10         // bytes
	maxMore      = 8                // lines
	maxServers   = 64               // MCP servers that are told of
	sessionLimit = 30 * time.Second // for session/new and session/delete
	closeGrace   = 2 * time.Second  // for an agent to end when its input ends
	survivorWait = 2 * time.Second  // for what an agent has started to be gone
	slowStart    = 5 * time.Second  // what is worth telling
)

// marker is the environment variable by which what an agent has started is found.
const marker = "ACP_DOCTOR_RUN"

// A doctor looks at one agent. It belongs to one goroutine.
type doctor struct {
	o      *Options
	cfg    *config.Config
	agent  roster.Agent
	limit  time.Duration
	report *report

	stderr tail
	noise  noise
	login  []string // environment of the login shell, once it is known
}

// run makes all checks, in order, up to the first after which the others have no
// meaning.
func (d *doctor) run(ctx context.Context) {
	if d.agent.Builtin {
		d.runBuiltIn(ctx)
		return
	}
	if d.agent.URL == "" && !d.found(ctx) {
		return
	}
	run := rand.Text()
	conn, started := d.connect(ctx, run, 0)
	if conn == nil && ctx.Err() == nil && d.agent.Protocol == 0 && started {
		conn = d.again(ctx, run)
	}
	d.tellNoise()
	if conn != nil {
		d.examine(ctx, conn)
		d.end(conn)
	}
	d.tellSurvivors(run)
	d.tellStderr()
}

// found looks for the program, and for the one that its first line names.
func (d *doctor) found(ctx context.Context) bool {
	env := d.agent.Environ()
	if d.agent.LoginEnv {
		env = d.agent.Upon(d.loginEnv(ctx))
	}
	dir := d.agent.Dir
	if dir == "" {
		dir = d.o.App.Cwd
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		d.report.add(check{Name: "directory", Status: bad, Detail: dir + " is not there", Cure: "set agents." + d.agent.Name + ".dir to a directory"})
		return false
	}
	path, err := roster.LookPath(d.agent.Command, dir, env)
	switch {
	case errors.Is(err, os.ErrPermission):
		d.report.add(check{Name: "found", Status: bad, Detail: path + " cannot be run: it is not executable, or its directory is closed", Cure: "chmod +x " + roster.Quote(path)})
		return false
	case err != nil:
		d.notFound(ctx, dir)
		return false
	}
	d.report.add(check{Name: "found", Status: good, Detail: path})
	return d.interpreter(ctx, path, env)
}

func (d *doctor) notFound(ctx context.Context, dir string) {
	c := check{Name: "found", Status: bad, Detail: fmt.Sprintf("%s is not in PATH", d.agent.Command)}
	switch {
	case strings.ContainsAny(d.agent.Command, "/"+string(filepath.Separator)):
		c.Detail = d.agent.Command + " is not there"
	case !d.agent.LoginEnv:
		if path, err := roster.LookPath(d.agent.Command, dir, d.loginEnv(ctx)); err == nil {
			c.Detail = fmt.Sprintf("%s is not in PATH, but in that of your login shell: %s", d.agent.Command, path)
			c.key, c.value = "login_env", true
			c.Cure = cureBySetting(d.agent, "login_env", true)
		}
	}
	words := roster.Apart(d.agent)
	switch {
	case c.Cure != "":
	case words != nil && d.agent.Source == roster.SourceCommand:
		c.Cure = "leave out the quotes around the whole command: " + roster.Join(words)
	case words != nil:
		c.Cure = "write the arguments apart: acp agents add --force " + roster.Quote(d.agent.Name) + " -- " + roster.Join(words)
	case d.agent.Install != "":
		c.Cure = "install it: " + d.agent.Install
	default:
		c.Cure = "install it, or correct the command"
	}
	d.report.add(c)
}

// loginEnv returns the environment of the login shell, or nothing.
func (d *doctor) loginEnv(ctx context.Context) []string {
	if d.login == nil {
		d.login = []string{}
		if env, err := process.LoginEnv(ctx); err == nil {
			d.login = env
		}
	}
	return d.login
}

// interpreter looks for the program that runs a script.
func (d *doctor) interpreter(ctx context.Context, path string, env []string) bool {
	name := interpreterOf(path)
	if name == "" || runtime.GOOS == "windows" {
		return true
	}
	if _, err := roster.LookPath(name, "/", env); err == nil {
		return true
	}
	c := check{Name: "interpreter", Status: bad, Detail: fmt.Sprintf("%s is run by %s, which is not there", path, name), Cure: "install " + filepath.Base(name)}
	if !d.agent.LoginEnv && !strings.Contains(name, "/") {
		if found, err := roster.LookPath(name, "/", d.loginEnv(ctx)); err == nil {
			c.Detail += " in PATH, but in that of your login shell: " + found
			c.key, c.value, c.Cure = "login_env", true, cureBySetting(d.agent, "login_env", true)
		}
	}
	d.report.add(c)
	return false
}

// interpreterOf returns the program that the first line of a script names, "" if it
// is no script: of /usr/bin/env what that looks up.
func interpreterOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it was only read
	first, _ := bufio.NewReader(io.LimitReader(f, 512)).ReadString('\n')
	words, ok := strings.CutPrefix(first, "#!")
	parts := strings.Fields(words)
	if !ok || len(parts) == 0 {
		return ""
	}
	if filepath.Base(parts[0]) != "env" {
		return parts[0]
	}
	for _, p := range parts[1:] {
		if !strings.HasPrefix(p, "-") && !strings.Contains(p, "=") {
			return p
		}
	}
	return parts[0]
}

// connect starts the agent and agrees on a version, at most the given one; 0 is any.
// started tells whether there was a process.
func (d *doctor) connect(ctx context.Context, run string, highest int) (conn *acp.ClientConn, started bool) {
	t, err := launch.Transport(d.agent, launch.Options{Dir: d.o.App.Cwd, Env: map[string]string{marker: run}, Stderr: &d.stderr})
	if err != nil {
		d.report.add(check{Name: "address", Status: bad, Detail: oneLine(err)})
		return nil, false
	}
	if command, ok := t.(*acp.CommandTransport); ok {
		command.CloseGrace = closeGrace
	}
	client := &acp.Client{
		Info:       acp.Implementation{Name: "acp", Title: "acp doctor", Version: d.o.App.Version},
		MinVersion: d.agent.Protocol, MaxVersion: d.agent.Protocol,
		// Which ways to log in there are depends on what the client can do.
		TerminalAuth: true,
		// Closing waits for the process as long as it takes to end it.
		Engine: jsonrpc.Settings{Diagnose: d.noise.take, Grace: 3 * closeGrace},
	}
	if highest > 0 {
		client.MinVersion, client.MaxVersion = highest, highest
	}
	memory, key := app.Memory(d.cfg), remembered.Key(d.agent.Argv())
	var known remembered.Agent
	if highest == 0 && d.agent.Protocol == 0 {
		if known = memory.Get(key); known.Protocol == 1 {
			client.FirstVersion = 1
		}
	}
	limited, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	d.noise.watch(cancel)
	begin := time.Now()
	conn, err = client.Connect(limited, t)
	took := time.Since(begin)
	if err != nil && known.Protocol == 1 && limited.Err() == nil { // it is not what it was
		known, client.FirstVersion = remembered.Agent{}, 0
		begin = time.Now()
		conn, err = client.Connect(limited, t)
		took = time.Since(begin)
	}
	if err == nil {
		d.started(conn, took, highest > 0, known)
		if highest == 0 && d.agent.Protocol == 0 && conn.Version() == 1 {
			info := roster.Introduced(conn.Agent())
			// A report is worth as much without it.
			_ = memory.Learn(key, known, remembered.Agent{Protocol: 1, NoFiles: known.NoFiles, Name: info.Name, Version: info.Version})
		}
		return conn, true
	}
	if ctx.Err() != nil {
		return nil, true
	}
	if highest > 0 {
		return nil, true // what went wrong was told before
	}
	return nil, d.failed(limited, err)
}

// again tries version 1, where asking for the highest one has not worked.
func (d *doctor) again(ctx context.Context, run string) *acp.ClientConn {
	c := d.report.find("initialize")
	if c == nil || c.Cure != "" {
		return nil
	}
	conn, _ := d.connect(ctx, run, 1)
	if conn == nil {
		return nil
	}
	c.Status, c.key, c.value = odd, "protocol", 1
	c.Cure = cureBySetting(d.agent, "protocol", 1)
	c.Detail = line("works when only version 1 is spoken; otherwise: " + c.Detail)
	return conn
}

func (d *doctor) started(conn *acp.ClientConn, took time.Duration, again bool, known remembered.Agent) {
	if !again {
		c := check{Name: "starts", Status: good, Detail: "in " + round(took).String()}
		if took >= slowStart {
			c.Status, c.Cure = odd, slowCure(d.agent, conn.Version())
		}
		d.report.add(c)
	}
	info := roster.Introduced(conn.Agent())
	d.report.Version = conn.Version()
	d.report.Agent = line(strings.TrimSpace(info.Name + " " + info.Version))
	name := d.report.Agent
	if info.Title != "" && info.Title != info.Name {
		name = info.Title + " (" + name + ")"
	}
	if name == "" {
		name = "an agent that does not say its name"
	}
	if c := d.report.find("initialize"); c == nil {
		d.report.add(check{Name: "initialize", Status: good, Detail: fmt.Sprintf("%s, protocol version %d", name, conn.Version())})
	}
	if !again && conn.Version() == 1 && d.agent.Protocol == 0 && !d.agent.Builtin {
		detail := "it speaks version 1 only and was started twice to find that out; acp remembers that for 30 days; to spare it: "
		if known.Protocol == 1 {
			detail = "it speaks version 1 only, as acp remembers since " + known.Learned.Local().Format(time.DateOnly) + "; to settle that: "
		}
		d.report.add(check{Name: "protocol", Status: fact, Detail: detail + setting(d.agent, "protocol", 1)})
	}
}

// runners are programs that look for a newer version of a program before they run it.
var runners = []string{"npx", "uvx", "bunx", "pnpx", "pipx"}

// slowCure says what can be done about a slow start.
func slowCure(agent roster.Agent, version int) string {
	name := strings.ToLower(filepath.Base(agent.Command))
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".cmd")
	switch {
	case slices.Contains(runners, name):
		return name + " looks for a newer version first; install the program instead"
	case version == 1 && agent.Protocol == 0:
		return "it was started twice, since it speaks version 1 only: " + setting(agent, "protocol", 1)
	}
	return "the program itself takes this long; timeouts.slow says after what time that is told"
}

// failed tells why the agent could not be connected to, and whether it was started
// at all.
func (d *doctor) failed(ctx context.Context, err error) (started bool) {
	var exit *process.ExitError
	var pe *exec.Error
	timeout := errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil
	first := d.noise.first()
	c := check{Name: "initialize", Status: bad, Detail: oneLine(err)}
	switch {
	case d.agent.URL != "" && errors.As(err, new(*net.OpError)):
		c.Name, c.Cure = "reached", "is the agent running, and does it listen at "+line(d.agent.URL)+"?"
		d.report.add(c)
		return false
	case errors.As(err, &pe), errors.Is(err, os.ErrPermission), errors.Is(err, os.ErrNotExist), strings.Contains(err.Error(), "exec format error"):
		c.Name = "starts"
		if strings.Contains(err.Error(), "exec format error") {
			c.Cure = "it is no program for this system, or a script without a first line such as #!/bin/sh"
		}
		d.report.add(c)
		return false
	case launch.Speaks(first) != "":
		c.Detail, c.Cure = "it "+launch.Speaks(first), "start it as an agent: look for a flag such as --acp or --stdio in its help"
	case timeout && first == "":
		c.Detail = fmt.Sprintf("no answer within %s, nothing was written", d.limit)
		c.Cure = "is it started to speak ACP? look for a flag such as --acp in its help, or give it more time: --timeout"
	case timeout:
		c.Detail = fmt.Sprintf("no answer within %s", d.limit)
		c.Cure = "it writes to standard output, but no answer: look for a flag such as --acp in its help"
	case errors.As(err, &exit):
		c.Name = "runs"
		c.Detail = fmt.Sprintf("it exited with status %d before it answered", exit.Code)
		if exit.Signal != "" {
			c.Detail = fmt.Sprintf("it was ended by %s before it answered", exit.Signal)
		}
		c.More = lastLines(exit.Stderr)
		c.Cure = "run it by hand to see why: " + d.agent.CommandLine()
		d.stderr.told = true
	case errors.Is(err, jsonrpc.ErrClosed):
		c.Name = "runs"
		c.Detail = "it ended without an answer and without an error"
		c.Cure = "is it started to speak ACP? look for a flag such as --acp in its help"
	default:
		if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
			c.Detail = fmt.Sprintf("it answered with the error %d: %s", said.Code, said.Message)
		}
	}
	if d.agent.Older != nil {
		c.More = append(c.More, fmt.Sprintf("an older version is started otherwise: acp agents add %s -- %s", d.agent.Name, roster.Join(d.agent.Older)))
	}
	d.report.add(c)
	return true
}

// end closes the connection and tells whether the agent ends by itself.
func (d *doctor) end(conn *acp.ClientConn) {
	begin := time.Now()
	_ = conn.Close() // it never fails
	took := time.Since(begin)
	if took < closeGrace {
		d.report.add(check{Name: "ends", Status: good, Detail: "in " + round(took).String() + " when its input ends"})
		return
	}
	d.report.add(check{
		Name: "ends", Status: odd, Detail: fmt.Sprintf("not within %s when its input ends; it was terminated", closeGrace),
		Cure: "nothing is left running; tell the agent's authors",
	})
}

// tellNoise tells what was written to standard output that is no message.
func (d *doctor) tellNoise() {
	lines, n, unread := d.noise.lines()
	if unread > 0 {
		detail := "a message was too large or nested too deeply to be read"
		if unread > 1 {
			detail = fmt.Sprintf("%d messages were too large or nested too deeply to be read", unread)
		}
		d.report.add(check{Name: "output", Status: odd, Detail: detail, Cure: "they are skipped; tell the agent's authors"})
	}
	if n == 0 {
		return
	}
	detail := "a line on standard output is no message"
	if n > 1 {
		detail = fmt.Sprintf("%d lines on standard output are no messages", n)
	}
	d.report.add(check{
		Name: "output", Status: odd, Detail: detail, More: lines,
		Cure: "they are skipped; look for a flag that makes it quiet",
	})
}

// tellStderr tells what was written to standard error, if something is wrong.
func (d *doctor) tellStderr() {
	wrong := false
	for _, c := range d.report.Checks {
		wrong = wrong || c.Status == bad
	}
	text := d.stderr.text()
	if !wrong || d.stderr.told || strings.TrimSpace(text) == "" {
		return
	}
	d.report.add(check{Name: "stderr", Status: fact, Detail: "the last it wrote to standard error", More: lastLines(text)})
}

// tellSurvivors looks for processes that the agent has left, and ends them.
func (d *doctor) tellSurvivors(run string) {
	deadline := time.Now().Add(survivorWait)
	left, err := survivors(run)
	for err == nil && len(left) > 0 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
		left, err = survivors(run)
	}
	if err != nil {
		d.report.Untested = append(d.report.Untested, "survivors")
		return
	}
	if len(left) == 0 {
		d.report.add(check{Name: "survivors", Status: good, Detail: "none"})
		return
	}
	var more []string
	for _, p := range left {
		more = append(more, fmt.Sprintf("%d %s", p.pid, p.command))
		if proc, err := os.FindProcess(p.pid); err == nil {
			_ = proc.Kill() // it may have ended meanwhile
		}
	}
	d.report.add(check{
		Name: "survivors", Status: odd, Detail: fmt.Sprintf("%d processes were left behind; they were ended", len(left)),
		More: clipLines(more), Cure: "the agent leaves processes running that it has cut loose; tell its authors",
	})
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// lastLines returns the end of standard error, and before it the line that says what has failed,
// if it is further up.
func lastLines(s string) []string {
	var out []string
	for l := range strings.Lines(s) {
		if strings.TrimSpace(l) != "" {
			out = append(out, strings.TrimRight(l, "\r\n"))
		}
	}
	end := out[max(0, len(out)-maxMore):]
	why := process.Reason(s)
	if why == "" || slices.ContainsFunc(end, func(l string) bool { return strings.TrimSpace(l) == why }) {
		return end
	}
	return append([]string{why, "…"}, end[min(2, len(end)):]...)
}

func clipLines(lines []string) []string {
	if n := len(lines) - maxMore; n > 0 {
		return append(lines[:maxMore:maxMore], fmt.Sprintf("… %d more", n))
	}
	return lines
}

// A tail keeps the last of what is written to it. Its methods may be called from any
// goroutine.
type tail struct {
	mu   sync.Mutex
	data []byte
	told bool // it was shown already
}

// Write keeps the last bytes. It never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p[max(0, len(p)-maxStderr):]...)
	if n := len(t.data) - maxStderr; n > 0 {
		t.data = append(t.data[:0], t.data[n:]...)
	}
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data)
}

// noise keeps the first lines that are no messages, and counts what could not be read. Its methods may be called from
// any goroutine.
type noise struct {
	mu      sync.Mutex
	kept    []string
	n       int
	unread  int
	foreign func() // called when the first line is of another protocol, so that nobody waits for more
}

func (n *noise) watch(foreign func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.foreign = foreign
}

func (n *noise) take(e jsonrpc.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch e.Kind {
	case jsonrpc.EventTooDeep, jsonrpc.EventFrameTooLarge:
		n.unread++
		return
	case jsonrpc.EventNoise:
	default:
		return
	}
	if text := strings.TrimSpace(string(e.Data)); text != "" {
		if n.n++; len(n.kept) < maxMore {
			n.kept = append(n.kept, text)
		}
		if n.n == 1 && n.foreign != nil && launch.Speaks(text) != "" {
			n.foreign()
		}
	}
}

func (n *noise) first() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.kept) == 0 {
		return ""
	}
	return n.kept[0]
}

// lines returns a copy of the lines, how many there were, and how many messages could not be read.
func (n *noise) lines() (lines []string, all, unread int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.kept...), n.n, n.unread
}
