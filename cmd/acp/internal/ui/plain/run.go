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
	"sync/atomic"

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

// Options are the parameters of a conversation.
type Options struct {
	App     *app.App
	Agent   roster.Agent
	Session acp.SessionID // the session to continue; "" means a new one
	Prompt  string        // sent at once unless it is ""
}

// Run holds a conversation line by line, until its input ends or the user leaves. It reads prompts
// from the App's In, one per line; a backslash at the end of a line continues the prompt on the
// next. Answers to the agent's questions come from there, too. If In is not a terminal, the next
// line is read only when it is needed, so that a script can contain the answers.
//
// An interrupt cancels the turn, a second one ends the agent. A read of In cannot be cancelled, so
// one goroutine may stay blocked in it until the process exits.
func Run(ctx context.Context, o Options) error {
	c := &conversation{
		app: o.App, agent: o.Agent,
		show:      newShow(o.App),
		input:     newInput(o.App.In),
		questions: make(chan *question),
		ends:      make(chan ending, 1),
		left:      make(chan struct{}),
		moved:     make(chan struct{}, 1),
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
	l := &loop{c: c, ctx: ctx, interrupts: interrupts, stop: func() {}}
	err := l.run(o.Prompt)
	for {
		var back bool
		if back, err = l.again(err); !back {
			break
		}
		err = l.resume()
	}
	c.show.line("")
	c.farewell()
	if e := c.host.Close(); err == nil && e != nil && ctx.Err() == nil {
		err = e
	}
	return err
}

// farewell prints the command that resumes the conversation, if a user is there to read it.
func (c *conversation) farewell() {
	if c.parted {
		return
	}
	if c.app.InTerminal && c.sent > 0 && c.agent.Gateway {
		c.show.line(app.Return(c.agent, c.session.ID(), false))
		return
	}
	if c.app.InTerminal && c.sent > 0 {
		c.show.line("To resume this conversation: " + safetext.Line(
			roster.Join(append(app.Program(os.Environ()), "chat", "--plain", c.agent.Name, "--session", string(c.session.ID()))), 500))
	}
}

// A conversation is the state of Run. Run's goroutine owns it, except for what mu guards and the
// channels; the frontend's hooks run in other goroutines and use only those.
type conversation struct {
	app       *app.App
	agent     roster.Agent
	show      *show
	input     *input
	questions chan *question
	ends      chan ending
	left      chan struct{} // closed when Run returns and nobody answers questions any more
	moved     chan struct{} // a session has changed
	front     backend.Frontend

	host    *backend.Host
	session *backend.Session
	queue   []string
	sent    int         // number of prompts
	last    string      // the last one
	parted  bool        // how to return was said
	cut     atomic.Bool // there is no connection at the moment

	mu      sync.Mutex
	reading bool // a line was asked for and has not arrived
}

// An ending is the result of a turn.
type ending struct {
	res *acp.Result
	err error
}

// A question waits for a line that the user types.
type question struct {
	ctx    context.Context
	lines  []string
	prompt string
	answer chan string // closed if there will be no answer
}

// ask asks a question and waits for the line that answers it. ok is false if the input has ended.
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
		if !ok && c.agent.Gateway { // somebody else may answer; who leaves decides nothing
			select {
			case <-c.left:
			case <-ctx.Done():
			}
			return "", false, ctx.Err()
		}
		return line, ok, nil
	case <-c.left:
		return "", false, nil
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
}

// open starts the agent and opens the session. Meanwhile it serves the questions of a login.
func (c *conversation) open(ctx context.Context, id acp.SessionID, interrupts <-chan struct{}) error {
	cfg, err := c.app.Config()
	if err != nil {
		return err
	}
	c.show.thoughts = cfg.UI.Thoughts == "shown"
	for _, left := range c.app.LeftOut() {
		c.show.line("Notice: " + safetext.Line(left, 500))
	}
	c.front = backend.Frontend{
		Changed: c.sessionChanged, Ask: c.permission, Elicit: c.elicit, Note: c.note,
		Decided:    c.decided,
		ElicitDone: func(acp.ElicitationID) { c.show.line("You have finished at the address that the agent sent you to.") },
	}
	if c.app.InTerminal {
		// In a script, the first line is a prompt and must not be mistaken for the choice of a
		// login.
		c.front.ChooseLogin = c.chooseLogin
	}
	if c.app.InTerminal && c.app.OutTerminal {
		c.front.RunInTerminal = c.runInTerminal
	}
	opening, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	how := acp.RestoredNew
	go func() {
		var err error
		if c.host, err = c.app.Open(opening, c.agent, c.front); err == nil {
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
	c.show.begin(c.session, how)
	for _, err := range c.session.Unset() {
		c.show.line("Notice: " + safetext.Line(err.Error(), 500))
	}
	info := c.host.Introduced()
	agent := safetext.Line(cmp.Or(info.Title, info.Name, c.agent.Title, c.agent.Name), 60)
	if info.Version != "" {
		agent += " " + safetext.Line(info.Version, 40)
	}
	c.show.line(fmt.Sprintf("Talking to %s in %s. %s", agent,
		safetext.Line(tilde(c.app.Cwd), 300), c.helpHint()))
	return nil
}

// tilde abbreviates the home directory to ~.
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
	hint := "Type /acp:help for help."
	if c.app.InTerminal {
		hint += " Press Ctrl-D to leave."
	}
	return hint
}

// serve serves questions until done reports the end of opening.
func (c *conversation) serve(ctx context.Context, done <-chan error, interrupts <-chan struct{}, cancel func()) (bool, error) {
	var current *question
	for {
		questions := c.questions
		var lines <-chan inputLine
		var gone <-chan struct{}
		if current != nil {
			questions, lines, gone = nil, c.nextLine(), current.ctx.Done()
		}
		select {
		case err := <-done:
			if current != nil { // it is answered in the conversation
				go c.askLater(current)
			}
			return true, err
		case q := <-questions:
			current = q
			c.showQuestion(q)
		case <-gone:
			c.show.line("The question was withdrawn.")
			current = nil
		case l := <-lines:
			c.lineRead(l)
			c.answer(current, l)
			current = nil
		case <-interrupts:
			cancel()
		}
	}
}

// askLater has the loop ask a question.
func (c *conversation) askLater(q *question) {
	select {
	case c.questions <- q:
	case <-q.ctx.Done():
	case <-c.left:
	}
}

// showQuestion writes a question and its prompt.
func (c *conversation) showQuestion(q *question) {
	for _, line := range q.lines {
		c.show.line(line)
	}
	c.show.prompt(q.prompt)
}

// answer passes a line to the hook that waits for it.
func (c *conversation) answer(q *question, l inputLine) {
	if l.end {
		close(q.answer)
		return
	}
	q.answer <- l.text
}

// nextLine asks for a line and returns the channel on which it will arrive.
func (c *conversation) nextLine() <-chan inputLine {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = true
	return c.input.next()
}

// lineRead records that the line has arrived.
func (c *conversation) lineRead(l inputLine) {
	if !l.end {
		c.show.answered()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
}

// gone returns the error of a conversation whose agent has exited.
func (c *conversation) gone() error {
	if err := c.host.Err(); err != nil {
		return err
	}
	return exitcode.Errorf(exitcode.Agent, "the agent has exited")
}

func (c *conversation) idlePrompt() {
	if c.app.InTerminal {
		c.show.prompt("> ")
	}
}

// turn sends a prompt. The result arrives in ends.
func (c *conversation) turn(ctx context.Context, text string) {
	c.sent++
	c.last = text
	go func() {
		res, err := c.session.Prompt(ctx, acp.Text(text))
		c.ends <- ending{res, err}
	}()
}

// ended reports how a turn ended. It returns an error only if the agent has exited; any other
// failure ends just the turn.
func (c *conversation) ended(end ending) error {
	c.show.endLine()
	if end.err != nil {
		select {
		case <-c.host.Done():
			return c.gone()
		default:
		}
		if c.isBroken(end.err) {
			return c.gone()
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
	case acpv2.StopReasonEndTurn, "":
	default:
		c.show.line("The agent stopped: " + safetext.Line(string(end.res.StopReason), 100))
	}
	return nil
}

// permission is [backend.Frontend]'s Ask.
func (c *conversation) permission(ctx context.Context, _ *backend.Session, req acphost.Request) (acp.PermissionOptionID, error) {
	lines := Question(req)
	for {
		line, ok, err := c.ask(ctx, lines, "Your choice (number, or Enter to dismiss): ")
		if err != nil || !ok {
			return "", err
		}
		if id, ok := Choice(req, line); ok {
			return id, nil
		}
		lines = []string{"That is not one of the choices."}
	}
}

// decided is [backend.Frontend]'s Decided. It reports decisions that were made without the user.
func (c *conversation) decided(_ *backend.Session, rec acphost.Record, _ acphost.Request) {
	if rec.By == acphost.ByUser || rec.By == acphost.ByCancelling {
		return
	}
	title := safetext.VisibleLine(rec.Title, maxTitle)
	if title == "" {
		title = safetext.VisibleLine(rec.Kind, 40)
	}
	if command, certain := rec.Shows(); command != "" {
		title = safetext.VisibleLine(strings.TrimSpace(shown.With(rec.Title, command)), 2*maxTitle)
	} else if !certain {
		title += " (it is not known what would run)"
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

// chooseLogin is [backend.Frontend]'s ChooseLogin.
func (c *conversation) chooseLogin(ctx context.Context, agent acp.Implementation, methods []acp.AuthMethod) (acp.AuthMethodID, error) {
	lines := []string{safetext.Line(agent.Name, 60) + " requires a login. Methods:"}
	ids := []acp.AuthMethodID{}
	for _, m := range methods {
		d := backend.Describe(m)
		line := fmt.Sprintf("  %d. %s", len(ids)+1, safetext.Line(d.Name, maxTitle))
		if what := safetext.Line(d.Description, 300); what != "" {
			line += ": " + what
		}
		if run := d.Command(); run != "" {
			line += "\n     It runs " + run
		}
		lines, ids = append(lines, line), append(ids, d.ID)
	}
	for {
		line, ok, err := c.ask(ctx, lines, "Your choice (number, or Enter to cancel): ")
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
		lines = []string{"That is not one of the choices."}
	}
}

// runInTerminal is [backend.Frontend]'s RunInTerminal. It fails while a line is being read: the
// blocked read would take the first input of the login program.
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

// note is [backend.Frontend]'s Note.
func (c *conversation) note(n backend.Note) {
	switch n.Kind {
	case backend.NoteSlow, backend.NoteLogin, backend.NoteBridged, backend.NoteStore, backend.NoteNoise:
		c.show.line("Notice: " + safetext.Line(n.Text, 500))
	case backend.NoteHere:
		if n.Text != "" {
			c.show.line("Also here: " + safetext.Line(n.Text, 500) + ".")
		}
	case backend.NoteOutage:
		c.cut.Store(n.Err != nil)
		if n.Err != nil {
			c.show.line("No connection. Trying again.")
		} else {
			c.show.line("The connection is back.")
		}
	case backend.NoteDecided:
		c.show.line(sentence(safetext.Line(n.Text, 500)))
	case backend.NoteStarting:
		if c.app.InTerminal {
			c.show.line(c.startLine())
		}
	}
}

// sentence ends a text with a full stop, unless it ends like a sentence.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}
