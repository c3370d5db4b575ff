package plain

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/pty"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/shown"
)

// Options are what a conversation is held with.
type Options struct {
	App     *app.App
	Agent   roster.Agent
	Session acp.SessionID // to go on with; "" is a new one
	Prompt  string        // sent at once, unless it is ""
}

// Run holds a conversation line by line, until its input ends or the user leaves. What is typed is
// read from the App's In, one prompt a line; a backslash at the end of a line goes on with the
// next. Questions of the agent are answered there, too: where In is no terminal the next line is
// read only when it is wanted, so that a script can hold the answers.
//
// An interrupt cancels the turn, a second one ends the agent. Reading In cannot be given up, so one
// goroutine may stay in it until the process ends.
func Run(ctx context.Context, o Options) error {
	c := &conversation{
		app: o.App, agent: o.Agent,
		show:      newShow(o.App),
		input:     newInput(o.App.In),
		questions: make(chan *question),
		ends:      make(chan ending, 1),
		left:      make(chan struct{}),
	}
	defer close(c.left)
	defer c.input.stop()
	interrupts := make(chan struct{}, 4)
	restore := o.App.HandleInterrupt(func() {
		select {
		case interrupts <- struct{}{}:
		default:
		}
	})
	defer restore()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := c.open(ctx, o.Session, interrupts); err != nil {
		return err
	}
	err := (&loop{c: c, ctx: ctx, interrupts: interrupts, stop: func() {}}).run(o.Prompt)
	c.show.line("")
	c.farewell()
	if e := c.host.Close(); err == nil && e != nil && ctx.Err() == nil {
		err = e
	}
	return err
}

// farewell says how to go on later, to users.
func (c *conversation) farewell() {
	if c.app.InTerminal && c.sent > 0 {
		c.show.line("To go on with this conversation: " + safetext.Line(
			roster.Join([]string{"acp", "chat", "--plain", c.agent.Name, "--session", string(c.session.ID())}), 500))
	}
}

// A conversation is one with an agent. Its own goroutine is that of Run; hooks of the frontend come
// from others.
type conversation struct {
	app       *app.App
	agent     roster.Agent
	show      *show
	input     *input
	questions chan *question
	ends      chan ending
	left      chan struct{} // closed when nobody answers any more

	host    *backend.Host
	session *backend.Session
	queue   []string
	sent    int // prompts

	mu      sync.Mutex
	reading bool // the input is being read
}

// An ending is how a turn ended.
type ending struct {
	res *acp.Result
	err error
}

// A question waits for a line of the user.
type question struct {
	ctx    context.Context
	lines  []string
	prompt string
	answer chan string // closed without one if there is none to come
}

// ask puts a question and waits for the line that answers it; ok is false if there is none.
func (c *conversation) ask(ctx context.Context, lines []string, prompt string) (line string, ok bool, err error) {
	q := &question{ctx: ctx, lines: lines, prompt: prompt, answer: make(chan string, 1)}
	select {
	case c.questions <- q:
	case <-c.left:
		return "", false, nil
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
	select {
	case line, ok = <-q.answer:
		return line, ok, nil
	case <-c.left:
		return "", false, nil
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
}

// open starts the agent and opens the session. Questions of a login are answered meanwhile.
func (c *conversation) open(ctx context.Context, id acp.SessionID, interrupts <-chan struct{}) error {
	cfg, err := c.app.Config()
	if err != nil {
		return err
	}
	c.show.thoughts = cfg.UI.Thoughts == "shown"
	for _, left := range c.app.Untrusted() {
		c.show.line("Notice: " + safetext.Line(left, 500))
	}
	front := backend.Frontend{
		Changed: c.show.changed, Ask: c.permission, Elicit: c.elicit, Note: c.note,
		Decided:    c.decided,
		ElicitDone: func(acp.ElicitationID) { c.show.line("What you were sent to elsewhere is done.") },
	}
	if c.app.InTerminal {
		// Otherwise the lines are prompts, and the first would be taken for a choice.
		front.ChooseLogin = c.chooseLogin
	}
	if c.app.InTerminal && c.app.OutTerminal {
		front.RunInTerminal = c.runInTerminal
	}
	opening, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	how := acp.RestoredNew
	go func() {
		var err error
		if c.host, err = c.app.Open(opening, c.agent, front); err == nil {
			if id == "" {
				c.session, err = c.host.NewSession(opening)
			} else {
				c.session, how, err = c.host.Restore(opening, id)
			}
		}
		done <- err
	}()
	_, err = c.serve(ctx, done, interrupts, cancel)
	if err != nil {
		if c.host != nil {
			_ = c.host.Close()
		}
		return err
	}
	conn := c.host.Conn()
	c.show.begin(c.session, how)
	info := roster.Introduced(conn.Agent())
	agent := safetext.Line(cmp.Or(info.Title, info.Name, c.agent.Title, c.agent.Name), 60)
	if info.Version != "" {
		agent += " " + safetext.Line(info.Version, 40)
	}
	c.show.line(fmt.Sprintf("Talking to %s in %s. %s", agent,
		safetext.Line(tilde(c.app.Cwd), 300), c.helpHint()))
	return nil
}

// tilde shortens a path in the home directory.
func tilde(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return path
	}
	if rel, err := filepath.Rel(home, path); err == nil && filepath.IsLocal(rel) {
		return filepath.Join("~", rel)
	}
	return path
}

func (c *conversation) helpHint() string {
	hint := "/acp:help tells how."
	if c.app.InTerminal {
		hint += " Ctrl-D leaves."
	}
	return hint
}

// serve answers questions until done tells the end.
func (c *conversation) serve(ctx context.Context, done <-chan error, interrupts <-chan struct{}, cancel func()) (bool, error) {
	var current *question
	for {
		questions := c.questions
		var lines <-chan inputLine
		var gone <-chan struct{}
		if current != nil {
			questions, lines, gone = nil, c.read(), current.ctx.Done()
		}
		select {
		case err := <-done:
			return true, err
		case q := <-questions:
			current = q
			c.put(q)
		case <-gone:
			c.show.line("The question is withdrawn.")
			current = nil
		case l := <-lines:
			c.took(l)
			c.answer(current, l)
			current = nil
		case <-interrupts:
			cancel()
		}
	}
}

func (c *conversation) put(q *question) {
	for _, line := range q.lines {
		c.show.line(line)
	}
	c.show.prompt(q.prompt)
}

func (c *conversation) answer(q *question, l inputLine) {
	if l.end {
		close(q.answer)
		return
	}
	q.answer <- l.text
}

// read returns where the next line comes from.
func (c *conversation) read() <-chan inputLine {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = true
	return c.input.next()
}

func (c *conversation) took(l inputLine) {
	if !l.end {
		c.show.answered()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
}

// gone is the error of a conversation whose agent has ended.
func (c *conversation) gone() error {
	if err := c.host.Err(); err != nil {
		return err
	}
	return exitcode.Errorf(exitcode.Agent, "the agent has ended")
}

func (c *conversation) idlePrompt() {
	if c.app.InTerminal {
		c.show.prompt("> ")
	}
}

// turn sends a prompt.
func (c *conversation) turn(ctx context.Context, text string) {
	c.sent++
	go func() {
		res, err := c.session.Prompt(ctx, acp.Text(text))
		c.ends <- ending{res, err}
	}()
}

// ended tells how a turn ended. An error ends the conversation only with the agent.
func (c *conversation) ended(end ending) error {
	c.show.endLine()
	if end.err != nil {
		select {
		case <-c.host.Done():
			return c.gone()
		default:
		}
		c.show.line("Error: " + safetext.Line(end.err.Error(), 1000))
		return nil
	}
	switch end.res.StopReason {
	case acpv2.StopReasonCancelled:
		c.show.line("Cancelled.")
	case acpv2.StopReasonRefusal:
		c.show.line("The agent refused the prompt.")
	case acpv2.StopReasonMaxTokens:
		c.show.line("The agent stopped at its limit of tokens.")
	case acpv2.StopReasonMaxTurnRequests:
		c.show.line("The agent stopped at its limit of requests.")
	}
	return nil
}

// permission is the hook Ask of the frontend.
func (c *conversation) permission(ctx context.Context, _ *backend.Session, req acphost.Request) (acp.PermissionOptionID, error) {
	lines := Question(req)
	if of := req.Of; of != nil && of.ToolCall != nil {
		if content, ok := of.ToolCall.Content.Get(); ok {
			lines = append(lines[:len(lines)-len(req.Options)], append(DiffLines(content), lines[len(lines)-len(req.Options):]...)...)
		}
	}
	for {
		line, ok, err := c.ask(ctx, lines, "Your choice (number, or Enter to dismiss): ")
		if err != nil || !ok {
			return "", err
		}
		if id, ok := Choice(req, line); ok {
			return id, nil
		}
		lines = []string{"There is no such choice."}
	}
}

// decided is the hook of that name: what was decided without the user is told.
func (c *conversation) decided(_ *backend.Session, rec acphost.Record, _ acphost.Request) {
	if rec.By == acphost.ByUser || rec.By == acphost.ByCancelling {
		return
	}
	title := safetext.Line(rec.Title, maxTitle)
	if title == "" {
		title = safetext.Line(rec.Kind, 40)
	}
	if command, certain := rec.Shows(); command != "" {
		title = safetext.Line(shown.With(title, command), 2*maxTitle)
	} else if !certain {
		title += " (what would be run is not known)"
	}
	verdict := "Denied: "
	if rec.Effect == acphost.EffectAllow {
		verdict = "Allowed: "
	}
	why := " (" + safetext.Line(string(rec.By), 20) + ")"
	if rec.Rule != "" {
		why = " (" + safetext.Line(rec.Rule, 100) + ")"
	}
	c.show.line(verdict + title + why)
}

// chooseLogin is the hook of that name.
func (c *conversation) chooseLogin(ctx context.Context, agent acp.Implementation, methods []acp.AuthMethod) (acp.AuthMethodID, error) {
	lines := []string{safetext.Line(agent.Name, 60) + " wants a login:"}
	ids := []acp.AuthMethodID{}
	for _, m := range methods {
		d := backend.Describe(m)
		line := fmt.Sprintf("  %d. %s", len(ids)+1, safetext.Line(d.Name, maxTitle))
		if what := safetext.Line(d.Description, 300); what != "" {
			line += ": " + what
		}
		lines, ids = append(lines, line), append(ids, d.ID)
	}
	for {
		line, ok, err := c.ask(ctx, lines, "Your choice (number, or Enter to give up): ")
		switch {
		case err != nil:
			return "", err
		case !ok || strings.TrimSpace(line) == "":
			return "", nil
		}
		var n int
		if _, err := fmt.Sscanf(line, "%d", &n); err == nil && n >= 1 && n <= len(ids) {
			return ids[n-1], nil
		}
		lines = []string{"There is no such choice."}
	}
}

// runInTerminal is the hook of that name. While the input is being read the terminal cannot be
// lent.
func (c *conversation) runInTerminal(ctx context.Context, cmd *exec.Cmd) error {
	c.mu.Lock()
	reading := c.reading
	c.mu.Unlock()
	in, okIn := c.app.In.(*os.File)
	out, okOut := c.app.Out.(*os.File)
	if reading || !okIn || !okOut {
		return fmt.Errorf("the terminal is in use; log in with: acp auth login %s", roster.Quote(c.agent.Name))
	}
	c.show.endLine()
	return pty.Run(ctx, cmd, in, out)
}

// note is the hook of that name.
func (c *conversation) note(n backend.Note) {
	switch n.Kind {
	case backend.NoteSlow, backend.NoteLogin, backend.NoteBridged, backend.NoteStore, backend.NoteNoise:
		c.show.line("Notice: " + safetext.Line(n.Text, 500))
	case backend.NoteStarting:
		if c.app.InTerminal {
			c.show.line("Starting " + safetext.Line(c.agent.Name, 100) + ".")
		}
	}
}
