package tui

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/transcript"
)

// A fakeLink is an agent that does what a test says.
type fakeLink struct {
	takes    acp.PromptContent
	forks    bool
	version  int
	done     chan struct{}
	err      error
	once     sync.Once
	talk     *fakeTalk
	opened   int
	restored []acp.SessionID
	children map[acp.SessionID]*fakeTalk
}

func (l *fakeLink) Agent() acp.Implementation {
	return acp.Implementation{Name: "fake", Title: "Fake", Version: "1.2.3"}
}
func (l *fakeLink) Forks() bool              { return l.forks }
func (l *fakeLink) Version() int             { return l.version }
func (l *fakeLink) Takes() acp.PromptContent { return l.takes }
func (l *fakeLink) NewSession(context.Context) (talk, error) {
	l.opened++
	return l.talk, nil
}
func (l *fakeLink) Restore(_ context.Context, id acp.SessionID) (talk, acp.Restored, error) {
	l.restored = append(l.restored, id)
	return l.talk, 2, nil
}
func (l *fakeLink) Sessions(context.Context, string) ([]acp.SessionInfo, error) {
	return []acp.SessionInfo{{SessionID: "s-old", Title: "an \x1b[31mold one"}}, nil
}
func (l *fakeLink) Session(id acp.SessionID) (talk, bool) {
	t, ok := l.children[id]
	return t, ok
}
func (l *fakeLink) Done() <-chan struct{} { return l.done }
func (l *fakeLink) Err() error            { return l.err }
func (l *fakeLink) Close() error          { l.once.Do(func() { close(l.done) }); return nil }
func (l *fakeLink) Kill()                 { _ = l.Close() }

// A fakeTalk is a session whose turns end when a test says so.
type fakeTalk struct {
	id       acp.SessionID
	conv     *transcript.Conversation
	mu       sync.Mutex
	prompts  [][]acp.ContentBlock
	results  chan turnEnd
	steers   func(text string) (acp.SteerOutcome, error) // nil is an agent that has no way
	cancels  int
	options  []acp.SessionConfigOption
	commands []acp.AvailableCommand
	suggests []acpv2.PromptSuggestion
	set      []acp.SessionConfigOptionValue
	unset    []error
	cursors  []acpv2.CursorUpdate
	forks    []acpv2.CursorID
	runs     []*transcript.Terminal
	stopped  []acp.TerminalID
	left     int
}

type turnEnd struct {
	res *acp.Result
	err error
}

func (t *fakeTalk) ID() acp.SessionID                  { return t.id }
func (t *fakeTalk) Snapshot() *transcript.Snapshot     { return t.conv.Snapshot() }
func (t *fakeTalk) Options() []acp.SessionConfigOption { return t.options }
func (t *fakeTalk) Commands() []acp.AvailableCommand   { return t.commands }
func (t *fakeTalk) Suggestions() []acpv2.PromptSuggestion {
	return slices.Clone(t.suggests)
}
func (t *fakeTalk) Unset() []error                { return t.unset }
func (t *fakeTalk) Cursors() []acpv2.CursorUpdate { return t.cursors }
func (t *fakeTalk) Fork(_ context.Context, at acpv2.CursorID) (talk, error) {
	if at == "gone" {
		return nil, errors.New("no such cursor")
	}
	t.forks = append(t.forks, at)
	return &fakeTalk{id: "fork", conv: transcript.New(transcript.Config{}), results: make(chan turnEnd, 8)}, nil
}
func (t *fakeTalk) Title() string { return t.conv.Snapshot().Session().Title }
func (t *fakeTalk) SetTitle(context.Context, string) error {
	return errors.ErrUnsupported
}
func (t *fakeTalk) SetOption(_ context.Context, _ acp.SessionConfigID, v acp.SessionConfigOptionValue) error {
	t.set = append(t.set, v)
	return nil
}
func (t *fakeTalk) Prompt(ctx context.Context, content ...acp.ContentBlock) (*acp.Result, error) {
	t.mu.Lock()
	t.prompts = append(t.prompts, content)
	t.mu.Unlock()
	select {
	case e := <-t.results:
		return e.res, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *fakeTalk) Steer(_ context.Context, content ...acp.ContentBlock) (acp.SteerOutcome, error) {
	if t.steers == nil {
		return acp.SteerQueued, nil
	}
	return t.steers(content[0].(*acp.TextContent).Text)
}

// sent returns the prompts so far.
func (t *fakeTalk) sent() [][]acp.ContentBlock {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.prompts)
}
func (t *fakeTalk) Running() []*transcript.Terminal { return t.runs }
func (t *fakeTalk) StopTerminal(_ context.Context, id acp.TerminalID) error {
	t.stopped = append(t.stopped, id)
	return nil
}
func (t *fakeTalk) Cancel(context.Context) error { t.cancels++; return nil }
func (t *fakeTalk) Leave(context.Context) error  { t.left++; return nil }

// A rig is a model without a terminal: messages go in by hand, and commands
// run when the test says so.
type rig struct {
	t    *testing.T
	m    *model
	link *fakeLink
	talk *fakeTalk
	now  time.Time
	cmds []tea.Cmd
	quit bool
}

func newRig(t *testing.T, w, h int, change func(*Options)) *rig {
	t.Helper()
	talk := &fakeTalk{id: "s-1", conv: transcript.New(transcript.Config{}), results: make(chan turnEnd, 8)}
	fake := &fakeLink{version: 2, done: make(chan struct{}), talk: talk, children: map[acp.SessionID]*fakeTalk{}}
	o := Options{
		Agent:    roster.Agent{Name: "fake", Title: "Fake"},
		StateDir: t.TempDir(),
		cwd:      t.TempDir(),
		ui:       &config.UI{Theme: "dark"},
		open:     func(context.Context, roster.Agent, *front) (link, error) { return fake, nil },
	}
	if change != nil {
		change(&o)
	}
	r := &rig{t: t, link: fake, talk: talk, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	r.m = newModel(t.Context(), o)
	r.m.now = func() time.Time { return r.now }
	r.m.began, r.m.born = r.now, r.now
	t.Cleanup(func() { r.m.end() })
	r.send(tea.WindowSizeMsg{Width: w, Height: h})
	return r
}

// start brings the model to the point where it can be prompted.
func (r *rig) start() *rig {
	r.t.Helper()
	r.send(startedMsg{r.m.attempt, r.link, nil})
	r.send(openedMsg{attempt: r.m.attempt, talk: r.talk})
	if r.m.phase != ready {
		r.t.Fatalf("phase %v after the start", r.m.phase)
	}
	r.cmds, r.m.baseTaken = nil, nil // what would ask Git is not run
	return r
}

// send gives a message to the model and keeps the command it returns.
func (r *rig) send(msg tea.Msg) tea.Cmd {
	_, cmd := r.m.Update(msg)
	if cmd != nil {
		r.cmds = append(r.cmds, cmd)
	}
	return cmd
}

// keys presses keys, by their names; others are typed as text.
func (r *rig) keys(names ...string) tea.Cmd {
	r.t.Helper()
	var last tea.Cmd
	named := map[string]tea.KeyPressMsg{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab},
		"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown},
		"backspace": {Code: tea.KeyBackspace}, "space": {Code: ' ', Text: " "}, "end": {Code: tea.KeyEnd}, "home": {Code: tea.KeyHome},
		"shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt},
	}
	for _, n := range names {
		if k, ok := named[n]; ok {
			last = r.send(k)
			continue
		}
		if rest, ok := strings.CutPrefix(n, "ctrl+"); ok {
			last = r.send(tea.KeyPressMsg{Code: rune(rest[0]), Mod: tea.ModCtrl})
			continue
		}
		if rest, ok := strings.CutPrefix(n, "alt+"); ok {
			last = r.send(tea.KeyPressMsg{Code: rune(rest[0]), Mod: tea.ModAlt})
			continue
		}
		for _, c := range n {
			last = r.send(tea.KeyPressMsg{Code: c, Text: string(c)})
		}
	}
	return last
}

// run runs a command and everything in it, and gives what it returns to the
// model. Timers are passed over.
func (r *rig) run(cmd tea.Cmd) {
	r.t.Helper()
	if cmd == nil {
		return
	}
	out := make(chan tea.Msg, 1)
	id := make(chan string, 1)
	go func() {
		id <- goroutine()
		out <- cmd()
	}()
	var msg tea.Msg
	select {
	case msg = <-out:
	case <-waits(<-id):
		select {
		case msg = <-out:
		default:
			// A timer, or something that waits for the test: its message comes
			// later, by hand.
			return
		}
	}
	switch msg := msg.(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			r.run(c)
		}
	case tickMsg, flashGoneMsg:
	case tea.QuitMsg:
		r.quit = true
	default:
		r.run(r.send(msg))
	}
}

// goroutine returns the number of the goroutine that calls it, as stacks have it.
func goroutine() string {
	buf := make([]byte, 64)
	name, _, _ := strings.Cut(string(buf[:runtime.Stack(buf, false)]), " [")
	return name
}

// waits returns a channel that is closed once a goroutine waits for something, and
// has had a while for what others do meanwhile. One that works, or has no processor,
// is given its time.
func waits(goroutine string) <-chan struct{} {
	waits := make(chan struct{})
	go func() {
		defer close(waits)
		for buf := make([]byte, 1<<20); ; {
			time.Sleep(50 * time.Millisecond)
			_, rest, there := strings.Cut(string(buf[:runtime.Stack(buf, true)]), goroutine+" [")
			state, _, _ := strings.Cut(rest, "]")
			state, _, _ = strings.Cut(state, ",")
			switch {
			case !there, state == "select", state == "sleep", strings.HasPrefix(state, "chan "), strings.HasPrefix(state, "sync."):
				return
			}
		}
	}()
	return waits
}

// said has the agent say something.
func (r *rig) said(u acpv2.SessionUpdate) {
	c := r.talk.conv.Apply(u)
	r.m.front.changed(r.talk.id, []transcript.Change{c})
	r.send(changedMsg{})
}

// screen is what is on the screen, without styles and trailing spaces.
func (r *rig) screen() string {
	r.t.Helper()
	lines, _ := r.m.draw()
	if len(lines) != r.m.h {
		r.t.Errorf("%d lines on a screen of %d", len(lines), r.m.h)
	}
	for i, l := range lines {
		if w := ansi.StringWidth(l); w > r.m.w {
			r.t.Errorf("line %d has %d cells of %d: %q", i, w, r.m.w, l)
		}
		lines[i] = strings.TrimRight(ansi.Strip(l), " ")
	}
	return strings.Join(lines, "\n")
}

func (r *rig) wants(texts ...string) {
	r.t.Helper()
	s := r.screen()
	for _, w := range texts {
		if !strings.Contains(s, w) {
			r.t.Errorf("the screen lacks %q:\n%s", w, s)
		}
	}
}

func (r *rig) lacks(texts ...string) {
	r.t.Helper()
	s := r.screen()
	for _, w := range texts {
		if strings.Contains(s, w) {
			r.t.Errorf("the screen has %q:\n%s", w, s)
		}
	}
}
