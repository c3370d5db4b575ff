package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/agent/guide"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A mode says what the agent may do without asking again.
const (
	modeReadOnly = "read-only"
	modeAsk      = "ask"
	modeAuto     = "auto"
	modeFull     = "full"

	// oldAuto is what auto was called in earlier journals.
	oldAuto = "auto-edit"
)

// modeNamed returns the mode of a name; "" if there is none.
func modeNamed(name string) string {
	if name == oldAuto {
		return modeAuto
	}
	if slices.Contains(modes, name) {
		return name
	}
	return ""
}

// Options of a session.
const (
	optionMode   acp.SessionConfigID = "mode"
	optionModel  acp.SessionConfigID = "model"
	optionEffort acp.SessionConfigID = "effort"
	optionIgnore acp.SessionConfigID = "gitignore"
)

// maxTitle bounds titles, in characters.
const maxTitle = 80

// A sessionEnd says how far a session has ended.
type sessionEnd uint8

const (
	sessionOpen    sessionEnd = iota
	sessionClosing            // nothing may begin any more that listing waits for
	sessionClosed             // and nothing is kept
)

// A session is the agent's part of an AgentSession, which holds it as its Value. Its
// methods may be called from any goroutine.
type session struct {
	agent *builtin
	acp   *acp.AgentSession // nil if it is looked at only: see previewOptions
	conn  *acp.AgentConn
	infix string // makes ids differ from those of earlier openings
	done  func() // called when the session is closed, perhaps twice; nil before it is open

	mu      sync.Mutex
	end     sessionEnd
	j       *keeper // nil until something is kept
	lost    error   // why nothing more is kept
	told    bool    // the user has been informed of that
	ids     int
	title   string
	mode    string
	ignore  bool
	answers map[tool.About]bool // that were to hold for the rest of the session, by what was asked
	plan    []acp.PlanEntry
	turns   int
	outputs map[acp.TerminalID]*keptOutput // of commands that run

	// These lock themselves.
	jobs    tool.Jobs
	files   tool.Files    // of a client that lends its own
	served  served.Record // what the model knows of files
	servers tool.Servers
	listing sync.WaitGroup // of the tools of servers

	running   *running  // the turn that runs; nil if none does
	cancelled cancelled // the prompt before, if its turn was cancelled
	choice    chosen
	talk      conversation
}

func newSession(b *builtin, s *acp.AgentSession) *session {
	v := &session{
		agent: b, acp: s, infix: strings.ToLower(rand.Text()[:6]),
		mode: modeAsk, ignore: true, answers: map[tool.About]bool{},
	}
	if s != nil {
		v.conn = s.Conn()
	}
	v.served.Keep = func(s served.State) { v.keepRecord("served", s) }
	return v
}

// options returns the options with their values.
func (s *session) options() []acp.SessionConfigOption {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values()
}

// values is options for callers that hold mu.
func (s *session) values() []acp.SessionConfigOption {
	options := []acp.SessionConfigOption{
		{
			ConfigID: optionMode, Name: "Mode", Category: acp.SessionConfigOptionCategoryMode,
			Description: "What the agent may do without asking",
			Kind: &acp.SessionConfigSelect{
				CurrentValue: acp.SessionConfigValueID(s.mode),
				Options: acp.SessionConfigSelectOptionList{
					{Value: modeAsk, Name: "Ask", Description: "Asks before it changes a file or runs a command that does more than read"},
					{Value: modeAuto, Name: "Auto", Description: "Changes files of the session without asking; asks before it runs a command that does more than read"},
					{Value: modeFull, Name: "Full", Description: "Does everything without asking; rules still hold"},
					{Value: modeReadOnly, Name: "Read-only", Description: "Changes no file and runs only commands that read"},
				},
			},
		},
	}
	return append(append(options, s.modelOptions()...), acp.SessionConfigOption{
		ConfigID: optionIgnore, Name: "Respect .gitignore",
		Description: "Searches leave out what .gitignore files name",
		Kind:        &acp.SessionConfigBoolean{CurrentValue: s.ignore},
	})
}

// optionChanged sets an option and keeps it. A new mode forgets what was allowed or
// rejected for the rest of the session. more says that other options have changed with it.
func (s *session) optionChanged(id acp.SessionConfigID, v acp.SessionConfigOptionValue) (more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch v := v.(type) {
	case *acp.SessionConfigOptionValueID:
		if id == optionMode && s.mode != string(v.Value) {
			s.mode = string(v.Value)
			s.answers = map[tool.About]bool{}
		}
		if more, err = s.setModel(id, string(v.Value)); err != nil {
			return false, err
		}
	case *acp.SessionConfigOptionValueBoolean:
		if id == optionIgnore {
			s.ignore = v.Value
		}
	}
	if s.j == nil {
		s.writeBlank() // the journal begins with the options
		return more, nil
	}
	s.add(&acp.ConfigOptionUpdate{ConfigOptions: s.values()})
	return more, nil
}

// currentMode returns the mode and whether .gitignore counts.
func (s *session) currentMode() (mode string, ignore bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode, s.ignore
}

func (s *session) currentTitle() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.title
}

// finder finds what people have written for the session's model in a directory. What rules keep from being read is not
// read, by either of its names; nobody is asked for what a rule wants asked.
func (s *session) finder(dir string) *guide.Finder {
	return &guide.Finder{Dir: dir, Home: s.agent.home, Refuse: func(path, real string) string {
		if v := s.judge(tool.Using(acp.ToolKindRead, path, real)); tool.Restricts(v) {
			return "the rule " + prose.OneLine(v.Rule, 200) + " keeps it from being read"
		}
		return ""
	}}
}

// skills returns those that the session can use.
func (s *session) skills() []guide.Skill { return s.finder(s.acp.Cwd()).Skills() }

// prompts returns those that the user can send by their names. Names of commands are the
// commands'.
func (s *session) prompts() []guide.Prompt {
	if s.agent.models == nil {
		return nil // nobody would understand them
	}
	return slices.DeleteFunc(s.finder(s.acp.Cwd()).Prompts(), func(p guide.Prompt) bool { return isCommand(p.Name) })
}

// roots are the directories of the session.
func (s *session) roots() []string {
	return append([]string{s.acp.Cwd()}, s.acp.AdditionalDirectories()...)
}

// nextID returns an id that no other entity of the session has.
func (s *session) nextID(kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	return fmt.Sprintf("%s_%s%d", kind, s.infix, s.ids)
}

// ensure creates the journal when there is something to keep, and begins it with the options. The caller
// holds mu.
func (s *session) ensure() error {
	if s.j != nil || s.lost != nil {
		return s.lost
	}
	if s.end == sessionClosed {
		return acp.ErrSessionClosed
	}
	options, err := updateDraft(&acp.ConfigOptionUpdate{ConfigOptions: s.values()})
	if err == nil {
		s.j, err = s.agent.store.create(s.acp.ID(), s.about(), options)
	}
	if s.lost = err; err == nil {
		s.agent.store.removeBlank(s.acp.ID())
	}
	return err
}

// keep adds an update to the journal. A failure is kept in lost: the turn reports it once and continues.
func (s *session) keep(u acp.SessionUpdate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(u)
}

// add is keep for callers that hold mu.
func (s *session) add(u acp.SessionUpdate) {
	if s.ensure() != nil {
		return
	}
	d, err := updateDraft(u)
	s.put(d, err)
}

// put adds a record, unless that could not be made.
func (s *session) put(d journal.Draft, err error) {
	if err == nil {
		err = s.j.add(d)
	}
	if err != nil && s.lost == nil {
		s.lost = err
		s.agent.log.Error("agent: a session is not kept any more", "error", err)
	}
}

// keepRecord adds what is not an update to the journal, like keep.
func (s *session) keepRecord(kind journal.Kind, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ensure() == nil {
		s.put(recordDraft(kind, value))
	}
}

// sync makes what was kept durable.
func (s *session) sync() error {
	s.mu.Lock()
	j, lost := s.j, s.lost
	s.mu.Unlock()
	if j == nil || lost != nil {
		return lost
	}
	if err := j.sync(); err != nil {
		s.mu.Lock()
		s.lost = err
		s.mu.Unlock()
		return err
	}
	return nil
}

// setTitle names the session.
func (s *session) setTitle(title string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.title = title
	if s.ensure() != nil || s.j.about.Title == title {
		return nil // what is lost is reported at the end of the turn
	}
	return s.j.set(func(a *about) { a.Title = title })
}

// close closes the journal. It may be called more than once, since closing and the end of the
// connection both do.
func (s *session) close() error {
	if s.done != nil {
		s.done()
	}
	s.mu.Lock()
	s.end = max(s.end, sessionClosing)
	s.mu.Unlock()
	s.servers.Close()
	if s.acp.Context().Err() != nil { // or else listing ends a little later, with the session
		s.listing.Wait()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = sessionClosed
	if s.j == nil {
		return nil
	}
	err := s.j.close()
	if s.lost != nil {
		err = nil // of which the user knows
	}
	s.j, s.lost = nil, acp.ErrSessionClosed
	return err
}

// load restores a session that was saved.
func (s *session) load() error {
	st := newState(s)
	if !s.agent.store.exists(s.acp.ID()) && s.agent.store.readBlank(s.acp.ID(), st.see) {
		return nil // the journal is created when there is something to keep
	}
	j, err := s.agent.store.open(s.acp.ID(), st.see)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.j, s.lost, s.title = j, j.lost, prose.OneLine(j.about.Title, maxTitle)
	s.mu.Unlock()
	st.settle()
	return nil
}

// fork makes the session one that begins with what was said in another.
func (s *session) fork(from acp.SessionID) error {
	st := newState(s)
	if !s.agent.store.exists(from) && s.agent.store.readBlank(from, st.see) {
		s.setBlank()
		return nil
	}
	j, err := s.agent.store.copyOf(from, s.acp.ID(), s.about(), st.see)
	if err != nil {
		return err
	}
	title := j.about.Title
	if title != "" {
		title = prose.OneLine(title+" (fork)", maxTitle)
	}
	s.mu.Lock()
	if s.lost = j.lost; s.lost == nil {
		s.j = j
	}
	s.mu.Unlock()
	st.settle()
	return s.setTitle(title)
}

// replay sends what was kept of the session to to, except the options,
// which begin sends.
func (s *session) replay(to *acp.AgentSession) error {
	s.mu.Lock()
	j := s.j
	s.mu.Unlock()
	if j == nil {
		return nil // nothing has happened yet
	}
	each, flush := joined(func(u acp.SessionUpdate) error {
		switch u.(type) {
		case *acp.ConfigOptionUpdate:
			return nil
		}
		return to.Send(u)
	})
	err := s.agent.store.read(s.acp.ID(), func(d journal.Draft) error {
		if e, ok := parseEntry(d); ok && e.update != nil {
			return each(e.update)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// A state restores the state of a session from its journal.
type state struct {
	s         *session
	open      []acp.ToolCallID // calls that have not ended
	terminals []acp.TerminalID // commands that have not
	talk      unsettled        // the conversation with the model
}

func newState(s *session) *state { return &state{s: s} }

// see applies an entry.
func (st *state) see(e entry) {
	st.talk.see(e)
	if e.served != nil {
		st.s.served.Restore(*e.served)
	}
	if e.update != nil {
		st.seeUpdate(e.update)
	}
}

func (st *state) seeUpdate(u acp.SessionUpdate) {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	switch u := u.(type) {
	case *acp.UserMessage:
		s.turns++
	case *acp.PlanUpdate:
		if items, ok := u.Plan.(*acp.PlanItems); ok && items.PlanID == tool.PlanID {
			s.plan = items.Entries
		}
	case *acp.ConfigOptionUpdate:
		for _, o := range u.ConfigOptions {
			switch k := o.Kind.(type) {
			case *acp.SessionConfigSelect:
				if mode := modeNamed(string(k.CurrentValue)); o.ConfigID == optionMode && mode != "" {
					s.mode = mode
				}
				s.seeModel(o.ConfigID, string(k.CurrentValue))
			case *acp.SessionConfigBoolean:
				if o.ConfigID == optionIgnore {
					s.ignore = k.CurrentValue
				}
			}
		}
	case *acp.ToolCallUpdate:
		st.open = slices.DeleteFunc(st.open, func(id acp.ToolCallID) bool { return id == u.ToolCallID })
		if status, ok := u.Status.Get(); !ok || !ended(status) {
			st.open = append(st.open, u.ToolCallID)
		}
	case *acp.TerminalUpdate:
		st.terminals = slices.DeleteFunc(st.terminals, func(id acp.TerminalID) bool { return id == u.TerminalID })
		if _, ok := u.ExitStatus.Get(); !ok {
			st.terminals = append(st.terminals, u.TerminalID)
		}
	}
}

// settle ends the calls and commands that ran when the program was killed, and what was
// said to the model.
func (st *state) settle() {
	for _, m := range st.talk.settle(hashOf) {
		st.s.keepRecord("message", m)
	}
	st.talk.catchUp(&st.s.served)
	st.s.mu.Lock()
	st.s.talk = st.talk.talk
	st.s.talk.messages = st.talk.messages
	st.s.mu.Unlock()
	for _, id := range st.terminals {
		st.s.keep(&acp.TerminalUpdate{
			TerminalID: id, ExitStatus: acp.Set(acp.TerminalExitStatus{Signal: "KILL"}),
			Capabilities: acp.Clear[acpv2.TerminalCapabilities](),
		})
	}
	for _, id := range st.open {
		st.s.keep(&acp.ToolCallUpdate{
			ToolCallID: id, Status: acp.Set(acp.ToolCallStatus(acp.ToolCallStatusCancelled)),
			Capabilities: acp.Clear[acpv2.ToolCallCapabilities](),
		})
	}
}

func ended(s acp.ToolCallStatus) bool {
	return s == acp.ToolCallStatusCompleted || s == acp.ToolCallStatusFailed || s == acp.ToolCallStatusCancelled
}

// prompt is a turn.
func (b *builtin) prompt(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
	s := sessionOf(t.Session())
	w := &scribe{s: s, out: t.Output, ctx: ctx, rank: rankOf(t)}
	defer s.run(w.rank)()
	s.mu.Lock()
	was := s.title
	s.turns++
	again := s.cancelled.again(typed(t))
	s.mu.Unlock()
	ask := wishOf(typed(t), again)
	if was == "" || strings.HasPrefix(was, "/") && !ask.ok { // a command says little about a session
		if title := titleOf(ask); title != "" {
			_ = s.setTitle(title) // a failure is reported at the end of the turn
			_ = t.SetTitle(title)
		}
	}
	stop, err := b.answer(ctx, t, w, ask)
	s.mu.Lock()
	s.cancelled = nil
	if ctx.Err() != nil {
		s.cancelled = cancelledPrompt(typed(t))
	}
	s.mu.Unlock()
	if kept := s.sync(); kept != nil && ctx.Err() == nil {
		s.tellLost(t, kept)
	}
	if err == nil {
		err = t.Err()
	}
	return stop, err
}

// tellLost informs the user, once, that the session is not kept.
func (s *session) tellLost(t *acp.Turn, err error) {
	s.mu.Lock()
	told := s.told
	s.told = true
	s.mu.Unlock()
	if !told && !errors.Is(err, acp.ErrSessionClosed) {
		t.EndMessage()
		_ = t.Say("This session cannot be saved: " + prose.OneLine(err.Error(), 300) + ". What is said from here on is lost when it is closed.")
	}
}
