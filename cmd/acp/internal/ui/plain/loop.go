package plain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// maxQueued bounds the prompts that wait for the end of the running turn.
const maxQueued = 64

// errLeft ends a loop without an error.
var errLeft = errors.New("the user has left")

// A loop runs an open conversation. All its methods are called by one goroutine. A method that
// handles an event returns an error to end the loop.
type loop struct {
	c          *conversation
	ctx        context.Context
	interrupts <-chan struct{}

	question *question          // the question that the next line answers, or nil
	running  bool               // a turn is running
	stop     context.CancelFunc // cancels the context of the turn
	cancels  int                // interrupts since the turn began
	leaving  bool               // the input has ended
	returned bool               // a turn runs that was begun before the connection broke
	begun    []string           // the lines so far of a prompt that continues on the next line
}

// run sends the first prompt, unless it is "", and then the typed ones. It returns when the user
// leaves, when the input has ended and the last turn with it, or when the agent has ended.
func (l *loop) run(first string) error {
	defer func() { l.stop() }()
	if first != "" {
		l.start(first)
	} else {
		l.c.idlePrompt()
	}
	return l.resume()
}

// resume is run without a first prompt.
func (l *loop) resume() error {
	for {
		l.startQueued()
		if !l.busy() && l.leaving {
			return nil
		}
		switch err := l.next(); {
		case errors.Is(err, errLeft):
			return nil
		case err != nil:
			return err
		}
	}
}

// start starts a turn.
func (l *loop) start(text string) {
	l.running, l.cancels = true, 0
	l.c.show.prompted(true)
	var turn context.Context
	turn, l.stop = context.WithCancel(l.ctx)
	l.c.turn(turn, text)
	l.c.unsent()
}

// startQueued starts the next queued prompt if no turn is running.
func (l *loop) startQueued() {
	if c := l.c; !l.busy() && len(c.queue) > 0 {
		text := c.queue[0]
		c.queue = c.queue[1:]
		l.start(text)
	}
}

// next waits for an event and handles it.
func (l *loop) next() error {
	c := l.c
	questions := c.questions
	var lines <-chan inputLine
	var gone <-chan struct{}
	if l.question != nil {
		questions, gone = nil, l.question.ctx.Done()
	}
	// In a script, a line is read only when it is needed: see [Run].
	if !l.leaving && (l.question != nil || !l.busy() || c.app.InTerminal) {
		lines = c.nextLine()
	}
	select {
	case q := <-questions:
		l.onQuestion(q)
	case <-gone:
		c.show.line("The question was withdrawn.")
		l.question = nil
		if !l.busy() {
			c.idlePrompt()
		}
	case line := <-lines:
		return l.onLine(line)
	case <-c.moved:
		l.others()
	case end := <-c.ends:
		return l.onEnd(end)
	case <-l.interrupts:
		return l.onInterrupt()
	case <-l.ctx.Done():
		l.settle()
		return context.Cause(l.ctx)
	case <-c.host.Done():
		l.settle()
		return c.gone()
	}
	return nil
}

// settle waits for the end of the running turn, if there is one.
func (l *loop) settle() {
	if l.running {
		<-l.c.ends
	}
}

func (l *loop) onQuestion(q *question) {
	if l.leaving {
		close(q.answer)
		return
	}
	l.question = q
	l.c.showQuestion(q)
}

// onLine handles a line that the user has typed: an answer, a command or a prompt.
func (l *loop) onLine(line inputLine) error {
	c := l.c
	c.lineRead(line)
	if l.question != nil {
		c.answer(l.question, line)
		l.question = nil
		c.unsent()
		l.leaving = l.leaving || line.end
		return nil
	}
	if line.err != nil {
		return fmt.Errorf("reading the input: %w", line.err)
	}
	if line.end {
		l.leaving = true
		if len(l.begun) == 0 {
			if l.busy() && c.app.InTerminal {
				_ = c.session.Cancel(l.ctx)
				c.queue = nil
			}
			return nil
		}
		line.text = ""
	}
	text, more := strings.CutSuffix(line.text, `\`)
	l.begun = append(l.begun, text)
	if more && !line.end {
		c.show.prompt("… ")
		return nil
	}
	text = strings.Join(l.begun, "\n")
	l.begun = nil
	return l.onPrompt(text)
}

// onPrompt handles typed text: a command of this program, or a prompt.
func (l *loop) onPrompt(text string) error {
	c := l.c
	switch quit, own := c.runOwnCommand(l.ctx, text, l.busy()); {
	case quit:
		return errLeft
	case own:
		if !l.busy() {
			c.idlePrompt()
		}
	case strings.TrimSpace(text) == "":
		if !l.busy() && !l.leaving {
			c.idlePrompt()
		}
	case !l.busy():
		l.start(text)
	case len(c.queue) == maxQueued:
		c.show.line("Not queued: too many prompts are waiting already.")
	default:
		c.queue = append(c.queue, text)
		c.show.line(fmt.Sprintf("Queued, number %d.", len(c.queue)))
	}
	return nil
}

// onEnd handles the end of a turn.
func (l *loop) onEnd(end ending) error {
	l.stop()
	l.running = false
	l.c.show.prompted(false)
	if err := l.c.ended(end); err != nil {
		return err
	}
	if len(l.c.queue) == 0 && !l.leaving {
		l.c.idlePrompt()
	}
	return nil
}

// onInterrupt handles Ctrl-C: the first one cancels the turn, the second one kills the agent, or leaves it to its
// gateway. Without a turn, the second one leaves.
func (l *loop) onInterrupt() error {
	c := l.c
	l.cancels++
	switch {
	case l.busy() && l.cancels == 1:
		c.queue = nil
		if c.agent.Gateway {
			c.show.line("Cancelling. Press Ctrl-C again to leave.")
		} else {
			c.show.line("Cancelling. Press Ctrl-C again to end the agent.")
		}
		if err := c.session.Cancel(l.ctx); err != nil {
			c.show.line("Cancelling failed: " + safetext.Line(err.Error(), 500))
		}
	case l.busy() && c.agent.Gateway && c.app.InTerminal: // the agent is not ours
		return errLeft
	case l.busy() && c.agent.Gateway:
		return exitcode.Errorf(exitcode.Cancelled, "interrupted again before the turn was cancelled")
	case l.busy():
		c.host.Kill()
		return exitcode.Errorf(exitcode.Cancelled, "the agent was ended")
	case l.cancels > 1:
		return errLeft
	default:
		c.show.line("Press Ctrl-C again or Ctrl-D to leave.")
		c.idlePrompt()
	}
	return nil
}
