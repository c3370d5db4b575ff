package tui

import (
	"context"
	"os/exec"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/transcript"
)

// frame is how long changes are collected before the screen is updated.
const frame = 24 * time.Millisecond

// maxChanges bounds the changes that are collected for a session. Beyond it, everything counts as
// changed.
const maxChanges = 4096

// A front passes the calls of the backend, which arrive on any goroutine, to the model as messages.
// It collects changes, so that a burst of them costs the model one message per frame.
type front struct {
	send func(tea.Msg)

	mu      sync.Mutex
	pending map[acp.SessionID][]transcript.Change
	waiting bool           // a changedMsg was scheduled and not handled yet
	stderr  []backend.Note // lines of standard error that wait to be sent
	passing bool           // a goroutine sends them
}

// The messages of a front to the model.
type (
	changedMsg struct{}
	noteMsg    struct{ note backend.Note }
	askMsg     struct{ ask *ask }
	askGoneMsg struct{ ask *ask } // the request no longer needs an answer
	formMsg    struct{ form *form }
	formGone   struct{ form *form }
	formDone   struct{ id acp.ElicitationID }
	loginMsg   struct{ login *login }
	loginGone  struct{ login *login }
	runMsg     struct {
		ctx  context.Context
		cmd  *exec.Cmd
		done chan error
	}
)

// changed collects changes of a session. nil changes mean that everything may be different.
func (f *front) changed(id acp.SessionID, changes []transcript.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending == nil {
		f.pending = make(map[acp.SessionID][]transcript.Change)
	}
	if old, ok := f.pending[id]; !ok {
		f.pending[id] = append(make([]transcript.Change, 0, len(changes)), changes...)
	} else if old != nil {
		if changes == nil || len(old)+len(changes) > maxChanges {
			f.pending[id] = nil
		} else {
			f.pending[id] = append(old, changes...)
		}
	}
	if changes == nil {
		f.pending[id] = nil
	}
	if !f.waiting {
		f.waiting = true
		time.AfterFunc(frame, func() { f.send(changedMsg{}) })
	}
}

// takeChanges returns the changes since the last call. nil changes of a session mean that
// everything may be different.
func (f *front) takeChanges() map[acp.SessionID][]transcript.Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pending
	f.pending, f.waiting = nil, false
	return p
}

// maxNotes bounds the lines of standard error that wait to be shown. Further lines are dropped;
// acp agents doctor and the log have them.
const maxNotes = 64

// note passes a note on. Lines of standard error are special: there can be many, and the agent must
// not wait for the screen.
func (f *front) note(n backend.Note) {
	if n.Kind == backend.NoteStderr {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.stderr) >= maxNotes {
			return
		}
		f.stderr = append(f.stderr, n)
		if !f.passing {
			f.passing = true
			// An agent must not block on its own standard error. One goroutine sends all lines, because
			// several would change their order.
			go f.passOn()
		}
		return
	}
	f.send(noteMsg{n})
}

// passOn sends the lines of standard error that wait.
func (f *front) passOn() {
	for {
		f.mu.Lock()
		if len(f.stderr) == 0 {
			f.passing = false
			f.mu.Unlock()
			return
		}
		n := f.stderr[0]
		f.stderr = f.stderr[1:]
		f.mu.Unlock()
		f.send(noteMsg{n})
	}
}

// An ask is a permission request that waits for the user.
type ask struct {
	req    acphost.Request
	shown  *transcript.Snapshot // the session, or nil if it is not known
	answer chan acp.PermissionOptionID
}

// reply answers the request. Only the first answer counts.
func (a *ask) reply(id acp.PermissionOptionID) {
	select {
	case a.answer <- id:
	default:
	}
}

func (f *front) ask(ctx context.Context, shown *transcript.Snapshot, req acphost.Request) (acp.PermissionOptionID, error) {
	a := &ask{req: req, shown: shown, answer: make(chan acp.PermissionOptionID, 1)}
	f.send(askMsg{a})
	select {
	case id := <-a.answer:
		return id, nil
	case <-ctx.Done():
		f.send(askGoneMsg{a})
		return "", ctx.Err()
	}
}

func (f *front) elicit(ctx context.Context, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
	w := newForm(req)
	f.send(formMsg{w})
	select {
	case res := <-w.answer:
		return res, nil
	case <-ctx.Done():
		f.send(formGone{w})
		return nil, ctx.Err()
	}
}

func (f *front) elicitDone(id acp.ElicitationID) { f.send(formDone{id}) }

// A login asks for a login method.
type login struct {
	agent   acp.Implementation
	methods []acp.AuthMethod
	answer  chan acp.AuthMethodID // "" means no login
}

func (l *login) reply(id acp.AuthMethodID) {
	select {
	case l.answer <- id:
	default:
	}
}

func (f *front) chooseLogin(ctx context.Context, agent acp.Implementation, methods []acp.AuthMethod) (acp.AuthMethodID, error) {
	l := &login{agent: agent, methods: methods, answer: make(chan acp.AuthMethodID, 1)}
	f.send(loginMsg{l})
	select {
	case id := <-l.answer:
		if id == "" {
			return "", context.Canceled
		}
		return id, nil
	case <-ctx.Done():
		f.send(loginGone{l})
		return "", ctx.Err()
	}
}

// runInTerminal has the model lend the terminal to a program, and returns when the program has
// exited.
func (f *front) runInTerminal(ctx context.Context, cmd *exec.Cmd) error {
	done := make(chan error, 1)
	f.send(runMsg{ctx, cmd, done})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
