package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

const (
	// MaxJobs bounds the commands of a session that run in the background at once.
	MaxJobs = 16
	// maxKeptJobs bounds those that have ended and can still be read.
	maxKeptJobs = 32
	// maxJobWait is how long the tool job waits at most.
	maxJobWait = 600 * time.Second
)

// Jobs are the commands of a session that run on by themselves. They end with the session.
// Its methods may be called from any goroutine. The zero value has none.
type Jobs struct {
	mu   sync.Mutex
	last int
	all  []*job // the oldest first
}

// A job is a command that runs, or has run, in the background.
type job struct {
	id    string
	line  string
	t     *acp.Terminal
	ended chan struct{} // closed when it has ended

	mu    sync.Mutex
	exit  *acp.TerminalExitStatus
	state *acp.TerminalState // at its end
	gone  bool               // its output is not kept any more
	read  int                // bytes of its output that were read
	told  bool               // its end was
}

// add makes a job of a command that runs. changed is called when it has ended.
func (j *Jobs) add(line string, t *acp.Terminal, changed func()) (*job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	running := 0
	for _, old := range j.all {
		if old.runs() {
			running++
		}
	}
	if running >= MaxJobs {
		return nil, fmt.Errorf("%d commands run in the background already: stop one first", MaxJobs)
	}
	n := j.append(line)
	n.t = t
	go func() {
		exit, err := t.Wait()
		state, stateErr := t.State()
		if stateErr != nil {
			state = &acp.TerminalState{}
		}
		if err != nil || exit == nil {
			exit = &acp.TerminalExitStatus{}
		}
		n.mu.Lock()
		n.exit, n.state = exit, state
		n.mu.Unlock()
		_ = t.Release() // nothing can be done about a failure
		close(n.ended)
		changed()
	}()
	return n, nil
}

// append adds a job. The oldest of those that have ended are forgotten where there are more
// than maxKeptJobs, and their outputs where these have more than maxKept bytes.
func (j *Jobs) append(line string) *job {
	j.last++
	n := &job{id: strconv.Itoa(j.last), line: line, ended: make(chan struct{})}
	j.all = append(j.all, n)
	for i := 0; len(j.all) > MaxJobs+maxKeptJobs && i < len(j.all); {
		if j.all[i].runs() {
			i++
			continue
		}
		j.all = slices.Delete(j.all, i, i+1)
	}
	size := 0
	for _, old := range slices.Backward(j.all) {
		old.mu.Lock()
		if old.state != nil {
			if size += len(old.state.Output); size > maxKept {
				old.state, old.gone = &acp.TerminalState{}, true
			}
		}
		old.mu.Unlock()
	}
	return n
}

// keep makes a job of a command that has ended, so that what it has printed can be read.
func (j *Jobs) keep(line string, state *acp.TerminalState) *job {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := j.append(line)
	n.state, n.exit, n.told, n.read = state, state.Exit, true, len(state.Output)
	if n.exit == nil {
		n.exit = &acp.TerminalExitStatus{}
	}
	close(n.ended)
	return n
}

func (j *job) runs() bool {
	select {
	case <-j.ended:
		return false
	default:
		return true
	}
}

// find returns a job; nil if there is none with that id.
func (j *Jobs) find(id string) *job {
	j.mu.Lock()
	defer j.mu.Unlock()
	if i := slices.IndexFunc(j.all, func(n *job) bool { return n.id == id }); i >= 0 {
		return j.all[i]
	}
	return nil
}

// Running returns what the session does in the background.
func (j *Jobs) Running() []acp.BackgroundWork {
	j.mu.Lock()
	defer j.mu.Unlock()
	var work []acp.BackgroundWork
	for _, n := range j.all {
		if n.runs() {
			work = append(work, &acpv2.BackgroundTerminal{TerminalID: n.t.ID()})
		}
	}
	return work
}

// Ended says which jobs have ended since it was called last, a line for each, for a
// language model.
func (j *Jobs) Ended() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b strings.Builder
	for _, n := range j.all {
		if n.runs() {
			continue
		}
		n.mu.Lock()
		if !n.told {
			n.told = true
			said, _ := exitText(n.exit)
			fmt.Fprintf(&b, "Job %s (%s) has ended. %s\n", n.id, prose.OneLine(n.line, 100), said)
		}
		n.mu.Unlock()
	}
	return b.String()
}

// now returns what a job shows.
func (j *job) now() (*acp.TerminalState, error) {
	j.mu.Lock()
	state, gone := j.state, j.gone
	j.mu.Unlock()
	switch {
	case gone:
		return nil, fmt.Errorf("the output of job %s is not kept any more: a session keeps %s of the latest commands",
			j.id, prose.Size(maxKept))
	case state != nil:
		return state, nil
	}
	return j.t.State()
}

// output returns what a job has printed since it was read last, for a language model.
func (j *job) output() (string, error) {
	state, err := j.now()
	if err != nil {
		return "", err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if state.Truncated { // how much of it was read before is not known any more
		return lost(state) + cutOutput(outputText(state), 0, j.id), nil
	}
	read := min(j.read, len(state.Output))
	j.read = len(state.Output)
	before := 0
	if read > 0 {
		before = strings.Count(onScreen(state.Output[:read]), "\n")
	}
	return cutOutput(ended(onScreen(state.Output[read:])), before, j.id), nil
}

// Job reads, waits for and stops commands that run in the background.
var Job = Tool{
	Name: "job", Kind: acp.ToolKindExecute,
	About: "Looks after a command in the background: read returns what is new in its output, wait does so at its end or after some seconds, stop ends it.",
	Schema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"},` +
		`"do":{"type":"string","enum":["read","wait","stop"]},` +
		`"seconds":{"type":"integer","minimum":1,"maximum":600,"description":"for wait; 60 by default"}},` +
		`"required":["id","do"],"additionalProperties":false}`),
	Run: runJob,
}

// JobInput is the input of [Job].
type JobInput struct {
	ID      string `json:"id"`
	Do      string `json:"do"`
	Seconds int    `json:"seconds,omitempty"`
}

func runJob(ctx context.Context, env Env, input json.RawMessage) (Result, error) {
	var in JobInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	j := env.Jobs().find(in.ID)
	if j == nil {
		return Result{}, noJob(in.ID)
	}
	titles := map[string]string{"read": "Read the output of ", "wait": "Wait for ", "stop": "Stop "}
	title, ok := titles[in.Do]
	if !ok {
		return Result{}, Misusef("do is read, wait or stop, not %q", prose.OneLine(in.Do, 20))
	}
	c, own, end := beginAlone(ctx, env, acp.ToolCall{
		Name: "job", Title: title + "job " + j.id + ": " + prose.OneLine(j.line, 150), Kind: acp.ToolKindExecute, Status: acp.ToolCallStatusInProgress,
	})
	defer end()
	switch in.Do {
	case "stop":
		if err := j.stop(own); err != nil {
			return c.failed(err), nil
		}
	case "wait":
		seconds := cmp.Or(in.Seconds, 60)
		timer := time.NewTimer(min(time.Duration(seconds)*time.Second, maxJobWait))
		defer timer.Stop()
		select {
		case <-j.ended:
		case <-timer.C:
		case <-own.Done():
			return c.cancelled("The wait was cancelled; the command runs on."), nil
		}
	}
	text, err := j.output()
	if err != nil {
		return c.failed(err), nil
	}
	said := "It still runs."
	if !j.runs() {
		j.mu.Lock()
		j.told = true
		said, _ = exitText(j.exit)
		j.mu.Unlock()
	}
	if text != "" {
		shown, _ := prose.Head(text, 50, 8<<10)
		c.text(prose.Code("", shown))
	}
	c.found = text + said
	return c.done(said), nil
}

// noJob says that there is no job with an id.
func noJob(id string) error {
	return Misusef("there is no job %q: those of earlier runs of the agent have ended with it", prose.OneLine(id, 20))
}

// stop ends a command.
func (j *job) stop(ctx context.Context) error {
	if !j.runs() {
		return nil
	}
	if err := j.t.Kill(); err != nil {
		return err
	}
	select {
	case <-j.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(10 * time.Second):
		return errors.New("it does not end")
	}
}
