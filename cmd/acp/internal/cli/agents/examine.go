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

// The bounds of an examination.
const (
	maxStderr    = 16 << 10         // bytes
	maxMore      = 8                // lines
	maxServers   = 64               // MCP servers that are listed
	sessionLimit = 30 * time.Second // for session/new and session/delete together
	closeGrace   = 2 * time.Second  // for an agent to exit after its input has ended
	survivorWait = 2 * time.Second  // for the processes that an agent has started to exit
	slowStart    = 5 * time.Second  // a start that takes longer is reported as slow
)

// marker is the environment variable that identifies the agent's process and everything it starts:
// they inherit it, even if they detach from the agent.
const marker = "ACP_DOCTOR_RUN"

// A doctor examines one agent. It belongs to one goroutine.
type doctor struct {
	o      *Options
	cfg    *config.Config
	agent  roster.Agent
	limit  time.Duration
	report *report

	stderr tail
	noise  noise
	login  []string // environment of the login shell; nil until it is needed
}

// run makes all checks in order, up to the first failure after which the others would be
// meaningless.
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
		conn = d.tryVersion1(ctx, run)
	}
	d.reportNoise()
	if conn != nil {
		d.examine(ctx, conn)
		d.end(conn)
	}
	d.endSurvivors(run)
	d.reportStderr()
}

// found reports whether the program is installed, and, if it is a script, its interpreter.
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
		d.report.addCheck(check{Name: "directory", Status: bad, Detail: dir + " does not exist", Cure: "set agents." + d.agent.Name + ".dir to a directory"})
		return false
	}
	path, err := roster.LookPath(d.agent.Command, dir, env)
	switch {
	case errors.Is(err, os.ErrPermission):
		d.report.addCheck(check{Name: "found", Status: bad, Detail: path + " cannot be run: it is not executable, or its directory is not accessible", Cure: "chmod +x " + roster.Quote(path)})
		return false
	case err != nil:
		d.notFound(ctx, dir)
		return false
	}
	d.report.addCheck(check{Name: "found", Status: good, Detail: path})
	return d.interpreter(ctx, path, env)
}

// notFound reports a program that is not in PATH, with the most likely cure: editors and desktop
// sessions often lack the PATH of the login shell, and a command with its arguments is often quoted
// as one word.
func (d *doctor) notFound(ctx context.Context, dir string) {
	c := check{Name: "found", Status: bad, Detail: fmt.Sprintf("%s is not in PATH", d.agent.Command)}
	switch {
	case strings.ContainsAny(d.agent.Command, "/"+string(filepath.Separator)):
		c.Detail = d.agent.Command + " does not exist"
	case !d.agent.LoginEnv:
		if path, err := roster.LookPath(d.agent.Command, dir, d.loginEnv(ctx)); err == nil {
			c.Detail = fmt.Sprintf("%s is not in PATH, but it is in the PATH of your login shell: %s", d.agent.Command, path)
			c.key, c.value = "login_env", true
			c.Cure = cureBySetting(d.agent, "login_env", true)
		}
	}
	words := roster.Apart(d.agent)
	switch {
	case c.Cure != "":
	case words != nil && d.agent.Source == roster.SourceCommand:
		c.Cure = "remove the quotes around the whole command: " + roster.Join(words)
	case words != nil:
		c.Cure = "separate the arguments: acp agents add --force " + roster.Quote(d.agent.Name) + " -- " + roster.Join(words)
	case d.agent.Install != "":
		c.Cure = "install it: " + d.agent.Install
	default:
		c.Cure = "install it, or correct the command"
	}
	d.report.addCheck(c)
}

// loginEnv returns the environment of the login shell, or nothing if it cannot be had. The shell is
// run at most once.
func (d *doctor) loginEnv(ctx context.Context) []string {
	if d.login == nil {
		d.login = []string{}
		if env, err := process.LoginEnv(ctx); err == nil {
			d.login = env
		}
	}
	return d.login
}

// interpreter reports whether the interpreter of a script is installed. It is true for anything
// that is not a script.
func (d *doctor) interpreter(ctx context.Context, path string, env []string) bool {
	name := interpreterOf(path)
	if name == "" || runtime.GOOS == "windows" {
		return true
	}
	if _, err := roster.LookPath(name, "/", env); err == nil {
		return true
	}
	c := check{Name: "interpreter", Status: bad, Detail: fmt.Sprintf("%s needs %s, which was not found", path, name), Cure: "install " + filepath.Base(name)}
	if !d.agent.LoginEnv && !strings.Contains(name, "/") {
		if found, err := roster.LookPath(name, "/", d.loginEnv(ctx)); err == nil {
			c.Detail += " in PATH, but it is in the PATH of your login shell: " + found
			c.key, c.value, c.Cure = "login_env", true, cureBySetting(d.agent, "login_env", true)
		}
	}
	d.report.addCheck(c)
	return false
}

// interpreterOf returns the program that the first line of a script names, or "" for
// anything else. For /usr/bin/env it returns the program that env looks up.
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

// connect starts the agent and negotiates a version, at most highest; 0 means any.
// started reports whether the process could be started, even if it then failed.
func (d *doctor) connect(ctx context.Context, run string, highest int) (conn *acp.ClientConn, started bool) {
	t, err := launch.Transport(d.agent, launch.Options{Dir: d.o.App.Cwd, Env: map[string]string{marker: run}, Stderr: &d.stderr})
	if err != nil {
		d.report.addCheck(check{Name: "address", Status: bad, Detail: oneLine(err)})
		return nil, false
	}
	if command, ok := t.(*acp.CommandTransport); ok {
		command.CloseGrace = closeGrace
	}
	client := &acp.Client{
		Info:       acp.Implementation{Name: "acp", Title: "acp doctor", Version: d.o.App.Version},
		MinVersion: d.agent.Protocol, MaxVersion: d.agent.Protocol,
		// Agents offer terminal logins only to clients that support them.
		TerminalAuth: true,
		// Close must wait long enough for the process to be terminated after closeGrace.
		Engine: jsonrpc.Settings{Diagnose: d.noise.record, Grace: 3 * closeGrace},
	}
	if highest > 0 {
		client.MinVersion, client.MaxVersion = highest, highest
	}
	memory, key := app.Memory(d.cfg), remembered.Key(d.agent.Key())
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
	if err != nil && known.Protocol == 1 && limited.Err() == nil { // the agent may have been updated since
		known, client.FirstVersion = remembered.Agent{}, 0
		begin = time.Now()
		conn, err = client.Connect(limited, t)
		took = time.Since(begin)
	}
	if err == nil {
		d.started(conn, took, highest > 0, known)
		if highest == 0 && d.agent.Protocol == 0 && conn.Version() == 1 {
			info := roster.Introduced(conn.Agent())
			// Remembering is an optimization; the report is complete without it.
			_ = memory.Learn(key, known, remembered.Agent{Protocol: 1, NoFiles: known.NoFiles, Name: info.Name, Version: info.Version})
		}
		return conn, true
	}
	if ctx.Err() != nil {
		return nil, true
	}
	if highest > 0 {
		return nil, true // the first attempt was reported already
	}
	return nil, d.failed(limited, err)
}

// tryVersion1 tries version 1 after asking for the highest version has failed: some agents reject
// an unknown version instead of answering with one that they support.
func (d *doctor) tryVersion1(ctx context.Context, run string) *acp.ClientConn {
	c := d.report.checkNamed("initialize")
	if c == nil || c.Cure != "" {
		return nil
	}
	conn, _ := d.connect(ctx, run, 1)
	if conn == nil {
		return nil
	}
	c.Status, c.key, c.value = odd, "protocol", 1
	c.Cure = cureBySetting(d.agent, "protocol", 1)
	c.Detail = line("works if acp speaks only version 1; otherwise: " + c.Detail)
	return conn
}

// started reports a connection that works. again means that an earlier attempt has been reported.
func (d *doctor) started(conn *acp.ClientConn, took time.Duration, again bool, known remembered.Agent) {
	if !again {
		c := check{Name: "starts", Status: good, Detail: "in " + round(took).String()}
		if took >= slowStart {
			c.Status, c.Cure = odd, slowCure(d.agent, conn.Version())
		}
		d.report.addCheck(c)
	}
	info := roster.Introduced(conn.Agent())
	d.report.Version = conn.Version()
	d.report.Agent = line(strings.TrimSpace(info.Name + " " + info.Version))
	name := d.report.Agent
	if info.Title != "" && info.Title != info.Name {
		name = info.Title + " (" + name + ")"
	}
	if name == "" {
		name = "an agent that does not report its name"
	}
	if c := d.report.checkNamed("initialize"); c == nil {
		d.report.addCheck(check{Name: "initialize", Status: good, Detail: fmt.Sprintf("%s, protocol version %d", name, conn.Version())})
	}
	if !again && conn.Version() == 1 && d.agent.Protocol == 0 && !d.agent.Builtin {
		detail := "the agent speaks version 1 only and was started twice to find that out; acp remembers this for 30 days; to set it permanently: "
		if known.Protocol == 1 {
			detail = "the agent speaks version 1 only, as acp found out on " + known.Learned.Local().Format(time.DateOnly) + "; to set it permanently: "
		}
		d.report.addCheck(check{Name: "protocol", Status: fact, Detail: detail + setting(d.agent, "protocol", 1)})
	}
}

// runners are package runners, which look for a newer version of a program before they run it.
var runners = []string{"npx", "uvx", "bunx", "pnpx", "pipx"}

// slowCure returns the advice on a slow start.
func slowCure(agent roster.Agent, version int) string {
	name := strings.ToLower(filepath.Base(agent.Command))
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".cmd")
	switch {
	case slices.Contains(runners, name):
		return name + " looks for a newer version at every start; install the program instead"
	case version == 1 && agent.Protocol == 0:
		return "the agent was started twice because it speaks version 1 only: " + setting(agent, "protocol", 1)
	}
	return "the program itself takes this long; the setting timeouts.slow is the time after which acp reports a slow start"
}

// failed reports why the connection could not be established, with a cure if the cause is a
// common one. It returns whether the agent was started at all.
func (d *doctor) failed(ctx context.Context, err error) (started bool) {
	var exit *process.ExitError
	var pe *exec.Error
	timeout := errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil
	first := d.noise.first()
	c := check{Name: "initialize", Status: bad, Detail: oneLine(err)}
	switch {
	case d.agent.URL != "" && errors.As(err, new(*net.OpError)):
		c.Name, c.Cure = "reached", "check that the agent is running and listens at "+line(d.agent.URL)
		d.report.addCheck(c)
		return false
	case errors.As(err, &pe), errors.Is(err, os.ErrPermission), errors.Is(err, os.ErrNotExist), strings.Contains(err.Error(), "exec format error"):
		c.Name = "starts"
		if strings.Contains(err.Error(), "exec format error") {
			c.Cure = "it is not a program for this system, or it is a script without a first line such as #!/bin/sh"
		}
		d.report.addCheck(c)
		return false
	case launch.Speaks(first) != "":
		c.Detail, c.Cure = "it "+launch.Speaks(first), "start it as an agent: look for a flag such as --acp or --stdio in its help"
	case timeout && first == "":
		c.Detail = fmt.Sprintf("no answer and no output within %s", d.limit)
		c.Cure = "check that the command makes it speak ACP: look for a flag such as --acp in its help; or give it more time with --timeout"
	case timeout:
		c.Detail = fmt.Sprintf("no answer within %s", d.limit)
		c.Cure = "it writes to standard output, but not an answer: look for a flag such as --acp in its help"
	case errors.As(err, &exit):
		c.Name = "runs"
		c.Detail = fmt.Sprintf("it exited with status %d before it answered", exit.Code)
		if exit.Signal != "" {
			c.Detail = fmt.Sprintf("it was terminated by %s before it answered", exit.Signal)
		}
		c.More = lastLines(exit.Stderr)
		c.Cure = "run it by hand to see why: " + d.agent.CommandLine()
		d.stderr.shown = true
	case errors.Is(err, jsonrpc.ErrClosed):
		c.Name = "runs"
		c.Detail = "it exited without an answer and without an error"
		c.Cure = "check that the command makes it speak ACP: look for a flag such as --acp in its help"
	default:
		if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
			c.Detail = fmt.Sprintf("it answered with the error %d: %s", said.Code, said.Message)
		}
	}
	if d.agent.Older != nil {
		c.More = append(c.More, fmt.Sprintf("an older version needs another command: acp agents add %s -- %s", d.agent.Name, roster.Join(d.agent.Older)))
	}
	d.report.addCheck(c)
	return true
}

// end closes the connection and reports whether the agent exits by itself.
func (d *doctor) end(conn *acp.ClientConn) {
	begin := time.Now()
	_ = conn.Close() // it never fails
	took := time.Since(begin)
	if took < closeGrace {
		d.report.addCheck(check{Name: "ends", Status: good, Detail: "in " + round(took).String() + " when its input ends"})
		return
	}
	d.report.addCheck(check{
		Name: "ends", Status: odd, Detail: fmt.Sprintf("it did not exit within %s after its input ended and was terminated", closeGrace),
		Cure: "nothing is left running; report it to the agent's authors",
	})
}

// reportNoise reports what the agent has written to standard output in addition to valid messages.
func (d *doctor) reportNoise() {
	lines, n, unread := d.noise.lines()
	if unread > 0 {
		detail := "a message was too large or nested too deeply to be read"
		if unread > 1 {
			detail = fmt.Sprintf("%d messages were too large or nested too deeply to be read", unread)
		}
		d.report.addCheck(check{Name: "output", Status: odd, Detail: detail, Cure: "acp ignores this; report it to the agent's authors"})
	}
	if n == 0 {
		return
	}
	detail := "a line on standard output is not a message"
	if n > 1 {
		detail = fmt.Sprintf("%d lines on standard output are not messages", n)
	}
	d.report.addCheck(check{
		Name: "output", Status: odd, Detail: detail, More: lines,
		Cure: "acp ignores this; look for a flag that makes the agent quiet",
	})
}

// reportStderr shows the end of standard error if a check has failed. Without a failure it would
// only distract, because many agents log there.
func (d *doctor) reportStderr() {
	wrong := false
	for _, c := range d.report.Checks {
		wrong = wrong || c.Status == bad
	}
	text := d.stderr.text()
	if !wrong || d.stderr.shown || strings.TrimSpace(text) == "" {
		return
	}
	d.report.addCheck(check{Name: "stderr", Status: fact, Detail: "the end of its standard error", More: lastLines(text)})
}

// endSurvivors looks for processes that have outlived the agent, and kills them. It polls, because
// they are not children of this process and so cannot be waited for.
func (d *doctor) endSurvivors(run string) {
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
		d.report.addCheck(check{Name: "survivors", Status: good, Detail: "none"})
		return
	}
	var more []string
	for _, p := range left {
		more = append(more, fmt.Sprintf("%d %s", p.pid, p.command))
		if proc, err := os.FindProcess(p.pid); err == nil {
			_ = proc.Kill() // it may have ended meanwhile
		}
	}
	d.report.addCheck(check{
		Name: "survivors", Status: odd, Detail: fmt.Sprintf("%d processes were left running; acp has ended them", len(left)),
		More: clipLines(more), Cure: "the agent leaves detached processes running; report it to its authors",
	})
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// lastLines returns the last lines of standard error. If the line with the actual error is further
// up, as in a stack trace, it comes first.
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

// clipLines returns the first maxMore lines and, if there are more, their number.
func clipLines(lines []string) []string {
	if n := len(lines) - maxMore; n > 0 {
		return append(lines[:maxMore:maxMore], fmt.Sprintf("… %d more", n))
	}
	return lines
}

// A tail keeps the last maxStderr bytes written to it. Its methods may be called from any
// goroutine.
type tail struct {
	mu    sync.Mutex
	data  []byte
	shown bool // a check shows it already
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

// noise keeps the first lines that are not messages, and counts the messages that could not be
// read. Its methods may be called from any goroutine.
type noise struct {
	mu      sync.Mutex
	kept    []string
	n       int
	unread  int
	foreign func() // called if the first line belongs to another protocol: waiting is then pointless
}

func (n *noise) watch(foreign func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.foreign = foreign
}

// record is the Diagnose hook of the connection.
func (n *noise) record(e jsonrpc.Event) {
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
