package tui

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/changes"
	"github.com/goacp/acp/cmd/acp/internal/mention"
	"github.com/goacp/acp/cmd/acp/internal/ui/tui/view"
)

// A phase is the state of the connection to the agent.
type phase int

const (
	starting phase = iota // the agent is being started
	opening               // the agent runs, and the session is being opened
	ready                 // the session accepts prompts
	dead                  // the agent could not be started, or has exited
)

// A model is the state of the whole screen. Only Bubble Tea's loop uses it, so it needs no locks;
// what other goroutines have to say arrives as messages.
type model struct {
	ctx     context.Context
	cancel  context.CancelFunc
	opt     Options
	actions []action // with the user's keys
	front   *front
	now     func() time.Time

	terminalState
	agentState
	turnState
	// What the screen shows.
	screen   scroller
	stale    bool          // there is layout work to do
	child    acp.SessionID // the subagent whose conversation is shown, or ""
	search   *search
	browsing bool
	focus    uint64 // the selected entry while browsing
	notes    []note
	unsaved  string // why the conversation cannot be written at the moment, or ""
	flash    string // a remark that disappears after some seconds
	flashID  int

	input    *input
	unwanted *acp.ContentBlock // of the suggested prompt that the user did not want
	vim      *vim              // nil for plain editing
	popup    *popup
	files    []string // of the project, for completion
	filesAt  time.Time
	dir      dirMsg // the directory that was completed last
	reading  string // the directory that is being read
	overlay  overlay
	demands  []overlay // questions of the agent, the oldest first
}

// terminalState is what is known about the terminal.
type terminalState struct {
	st         *styles
	theme      *view.Theme
	dark       bool
	profile    colorprofile.Profile
	w, h       int
	away       bool // the terminal does not have the focus
	reports    bool // the terminal reports its focus
	lastKey    time.Time
	escaped    time.Time // when Esc was pressed last, with nothing to leave
	born       time.Time
	progresses bool // the terminal shows progress
}

// agentState is the connection to the agent and what is known about it.
type agentState struct {
	phase   phase
	began   time.Time // when the phase began
	attempt int       // counts starts; messages of an earlier one are ignored
	slow    string    // what the line of progress says about a slow start
	link    link
	kept    *keeper
	talk    talk
	session acp.SessionID // the session that is open or being opened; "" means a new one
	why     error         // why the phase is dead
	stderr  []string      // the last lines of the agent's standard error

	background  map[acp.TerminalID]bool // the terminals whose commands run
	mode        *modeChange             // that is under way, or nil
	base        *changes.Base           // the project when baseOf was opened; nil without Git
	baseOf      acp.SessionID
	baseTaken   <-chan struct{} // closed when Git has been asked for base; nil before
	stopWaiting chan struct{}   // closed when the user cancels prompts that wait for that; nil before

	gatewayState
	outage
	contacts []contact // the agents that can be talked to; nil until they are found
}

// turnState is the state of the running turn and of the prompts that wait for its end.
type turnState struct {
	flying    int // prompts without an answer
	turnBegan time.Time
	cancelled bool // the user has cancelled the turn
	killed    bool
	queue     []string  // prompts to send after the turn
	loggingIn bool      // a login has begun, which may need what the user does elsewhere
	steered   []steered // prompts that were sent while a turn ran, until the agent takes them; see awaited
	held      bool      // the queue waits until the user presses Enter
	urgent    bool      // the first of the queue is sent however the turn ends
	sent      int       // number of prompts sent
	quitSoon  time.Time
	ticking   bool
	spin      int
	doubted   string // a misspelt command that was not sent

	running    string // the user's command, or ""
	endShell   func()
	shellBegan time.Time
}

// An overlay replaces the input and receives the keys.
type overlay interface {
	// key handles a key.
	key(m *model, k tea.KeyPressMsg) tea.Cmd
	// paste handles pasted text.
	paste(m *model, text string) tea.Cmd
	// draw returns at most height lines of at most width cells, and the
	// position of the cursor among them or nil.
	draw(m *model, width, height int) ([]string, *tea.Position)
	// dismiss answers whatever waits for an answer.
	dismiss()
}

// A note is a remark of acp below the transcript.
type note struct {
	text string
	bad  bool
}

func newModel(ctx context.Context, o Options) *model {
	ctx, cancel := context.WithCancel(ctx)
	m := &model{
		ctx: ctx, cancel: cancel, opt: o,
		front: &front{send: func(tea.Msg) {}},
		now:   time.Now,
	}
	m.dark = o.ui.Theme != "light" && (o.ui.Theme == "dark" || !lightHint(os.Getenv("COLORFGBG")))
	m.profile = colorprofile.TrueColor
	m.session = o.Session
	m.kept = new(keeper)
	m.screen.follow = true
	m.input = newInput(o.StateDir, o.cwd)
	m.restyle()
	m.began = m.now()
	m.born = m.began
	if o.ui.Editing == "vim" {
		m.vim = &vim{}
	}
	m.actions, _ = boundActions(o.ui.Keys) // Run has reported mistakes
	m.progresses = showsProgress(o.ui.Progress, os.Getenv)
	m.attempt = 1
	return m
}

// restyle recreates everything that depends on colours.
func (m *model) restyle() {
	m.st = newStyles(m.opt.ui.Theme, m.dark)
	m.theme = view.NewTheme(m.opt.ui.Theme, m.dark, m.profile)
	m.input.restyle(m.st)
	if m.screen.tr == nil {
		m.rebuildView()
		return
	}
	m.screen.tr.SetTheme(m.theme)
	m.stale = true
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.start(), m.input.loadHistory, m.tick()}
	if m.autoTheme() {
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	if a := m.opt.App; a != nil {
		cmds = append(cmds, leftOut(a), findContacts(a))
	}
	return guard(tea.Batch(cmds...))
}

// autoTheme reports whether the terminal's background decides between dark and light colours. The terminal is
// asked once the screen is visible. Until it answers, if it ever does, [lightHint] decides, so that
// the first picture does not have to wait.
func (m *model) autoTheme() bool { return m.opt.ui.Theme != "dark" && m.opt.ui.Theme != "light" }

// lightHint reports whether the variable COLORFGBG names a bright background. Some terminals set it
// to the colours of text and background among the first 16, such as "0;15" or "0;default;15".
func lightHint(v string) bool {
	n, err := strconv.Atoi(v[strings.LastIndexByte(v, ';')+1:])
	return err == nil && strings.Contains(v, ";") && (n == 7 || n > 8 && n < 16)
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if d, ok := msg.(defect); ok {
		panic(d)
	}
	cmd := m.update(msg)
	m.layout()
	return m, guard(cmd)
}

func (m *model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
		m.input.resize(m.w, m.inputLimit())
	case tea.ColorProfileMsg:
		if msg.Profile != m.profile {
			m.profile = msg.Profile
			m.restyle()
		}
	case tea.BackgroundColorMsg:
		if msg.IsDark() != m.dark {
			m.dark = msg.IsDark()
			m.restyle()
		}
	case tea.FocusMsg:
		m.away, m.reports = false, true
		if m.autoTheme() { // the user may have changed the terminal's colours in the meantime
			return tea.RequestBackgroundColor
		}
	case tea.BlurMsg:
		m.away, m.reports = true, true
	case tea.KeyPressMsg:
		cmd := m.key(msg)
		m.lastKey = m.now()
		return cmd
	case tea.PasteMsg:
		return m.paste(msg.Content)
	case tea.MouseMsg:
		return m.mouse(msg)
	case tea.ResumeMsg:
		return tea.RequestWindowSize

	case changedMsg:
		return m.changed()
	case layoutMsg:
		m.screen.ordered = false
	case noteMsg:
		return m.noted(msg.note)
	case tickMsg:
		return m.ticked()
	case flashGoneMsg:
		if msg.id == m.flashID {
			m.flash = ""
		}
	default:
		return m.reported(msg)
	}
	return nil
}

// reported handles the messages of the backend and of acp's own commands.
func (m *model) reported(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case startedMsg:
		return m.wasStarted(msg)
	case openedMsg:
		return m.wasOpened(msg)
	case endedMsg:
		return m.hasEnded(msg)
	case turnMsg:
		return m.turnEnded(msg)
	case steeredMsg:
		return m.wasSteered(msg)
	case failedMsg:
		m.say(msg.err.Error(), true)
	case wroteMsg:
		m.say(msg.text, true)
	case saidMsg:
		return m.remark(msg.text)

	case askMsg:
		return m.demand(newAskOverlay(m, msg.ask))
	case askGoneMsg:
		m.dropDemands(func(o overlay) bool { a, ok := o.(*askOverlay); return ok && a.ask == msg.ask })
	case formMsg:
		return m.demand(newFormOverlay(msg.form))
	case formGone:
		m.dropDemands(func(o overlay) bool { f, ok := o.(*formOverlay); return ok && f.form == msg.form })
	case formDone:
		m.dropDemands(func(o overlay) bool {
			f, ok := o.(*formOverlay)
			return ok && f.form.req.Form == nil && f.form.req.ElicitationID == msg.id
		})
		return m.remark("done: the agent has received what it was waiting for")
	case loginMsg:
		return m.demand(newLoginPicker(msg.login))
	case loginGone:
		m.dropDemands(func(o overlay) bool { p, ok := o.(*picker); return ok && p.of == any(msg.login) })
	case runMsg:
		return m.runInTerminal(msg)
	case shellResult:
		m.running, m.endShell = "", nil
		if msg.then == nil {
			return nil
		}
		return msg.then(m, msg)

	case historyMsg:
		m.input.loaded(msg)
	case editedMsg:
		return m.edited(msg)
	case filesMsg:
		first := len(m.files) == 0
		m.files, m.filesAt = msg.files, m.now()
		m.complete()
		if first && mention.IsCut(msg.files) {
			return m.remark("not all files of this directory are offered: a part of the path is found with @./")
		}
	case dirMsg:
		m.dir, m.reading = msg, ""
		m.complete()
	case modeMsg:
		return m.modeSet(msg)
	case sessionsMsg:
		return m.showSessions(msg)
	case baseMsg:
		if msg.of == m.session {
			m.base = msg.base
		}
	case changesMsg:
		return m.showChanges(msg)
	case reopenedMsg:
		if o, ok := m.overlay.(*changesOverlay); ok {
			return m.findChanges(o)
		}
	case askFoundMsg:
		return m.askFound(msg)
	case foundMsg:
		m.foundMore(msg)
	case pastedMsg:
		return m.pasted(msg)
	case contactsMsg:
		m.contacts = msg.all
	case leftOutMsg:
		for _, s := range msg.what {
			m.say(tildes(s), false)
		}
	}
	return nil
}

// maxStderr bounds the lines of the agent's standard error that are kept.
const maxStderr = 2000

// openStderr shows what the agent has written to its standard error.
func (m *model) openStderr() tea.Cmd {
	if len(m.stderr) == 0 {
		return m.remark("the agent has written nothing to its standard error")
	}
	p := &pager{title: "Standard error of " + one(m.agentTitle()), lines: slices.Clone(m.stderr)}
	p.top = len(p.lines)
	m.overlay = p
	return nil
}

// maxNotesShown bounds the remarks below the transcript.
const maxNotesShown = 8

// say adds a remark below the transcript, which remains until the next prompt.
func (m *model) say(text string, bad bool) {
	m.flash = "" // the new remark replaces it
	n := note{one(text), bad}
	if k := len(m.notes); k > 0 && m.notes[k-1] == n {
		return
	}
	m.notes = append(m.notes, n)
	if len(m.notes) > maxNotesShown {
		m.notes = m.notes[len(m.notes)-maxNotesShown:]
	}
}

type flashGoneMsg struct{ id int }

// remark shows a remark for a few seconds.
func (m *model) remark(text string) tea.Cmd {
	m.flash = one(text)
	m.flashID++
	id := m.flashID
	return tea.Tick(4*time.Second, func(time.Time) tea.Msg { return flashGoneMsg{id} })
}

// demand queues a question of the agent.
func (m *model) demand(o overlay) tea.Cmd {
	m.demands = append(m.demands, o)
	return m.ring(eventAsk, wanted(o))
}

// wanted returns what a question of the agent is, in a line.
func wanted(o overlay) string {
	switch o := o.(type) {
	case *askOverlay:
		return o.ask.req.Title
	case *formOverlay:
		return o.form.req.Message
	}
	return "the agent asks you something"
}

// dropDemands removes questions that no longer need an answer.
func (m *model) dropDemands(is func(overlay) bool) {
	m.demands = slices.DeleteFunc(m.demands, is)
	m.aside = slices.DeleteFunc(m.aside, is)
}

// top returns the overlay that receives the keys, or nil. Questions of the agent come before
// overlays that the user has opened.
func (m *model) top() overlay {
	if len(m.demands) > 0 {
		return m.demands[0]
	}
	return m.overlay
}

// shut closes an overlay.
func (m *model) shut(o overlay) {
	if m.overlay == o {
		m.overlay = nil
	}
	m.dropDemands(func(d overlay) bool { return d == o })
}

// dismissAll dismisses all questions, so that nothing waits for the user any longer.
func (m *model) dismissAll() {
	for _, o := range m.demands {
		o.dismiss()
	}
	for _, o := range m.aside {
		o.dismiss()
	}
	m.demands, m.aside = nil, nil
	if m.overlay != nil {
		m.overlay.dismiss()
		m.overlay = nil
	}
}

// noted handles a note of the backend.
func (m *model) noted(n backend.Note) tea.Cmd {
	switch n.Kind {
	case backend.NoteStarting, backend.NoteReady:
	case backend.NoteSlow:
		m.slow = "no answer yet" // the line of progress has the name and a clock
	case backend.NoteLogin:
		m.slow, m.loggingIn = one(n.Text), m.phase == opening
	case backend.NoteEnded, backend.NoteSilent:
		// The link reports the end with its reason, and the conversation has a notice of silence.
	case backend.NoteHere:
		m.isHere(n)
	case backend.NoteOutage:
		return m.interrupted(n.Err)
	case backend.NoteQueued, backend.NoteBegun: // the line of progress is enough
	case backend.NoteStderr:
		if m.stderr = append(m.stderr, n.Text); len(m.stderr) > maxStderr {
			m.stderr = append(m.stderr[:0], m.stderr[len(m.stderr)-maxStderr/2:]...)
		}
		if m.phase == starting || m.loggingIn {
			m.slow = "agent says: " + one(n.Text)
		}
	case backend.NoteStore:
		switch {
		case n.Err == nil:
			m.unsaved = ""
			m.say(n.Text, false)
		case errors.Is(n.Err, backend.ErrUnwritten):
			m.unsaved = one(n.Text)
		default:
			m.say(n.Text, true)
		}
	default:
		m.say(n.Text, n.Err != nil)
	}
	return nil
}
