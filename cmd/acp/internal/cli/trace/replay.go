package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/record/frame"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// maxHeld bounds the frames that are held because they arrived before they were expected. Beyond it
// the oldest is dropped.
const maxHeld = 4096

// A player plays one side of a recording. It belongs to one goroutine; receive runs in another and
// only sends to came.
type player struct {
	o       *Options
	script  *script
	stream  jsonrpc.Stream
	asks    map[string]int       // requests that the other side has yet to send, by method
	came    chan *frame.Envelope // closed at the end of the stream
	held    []*frame.Envelope    // frames that arrived but were not expected yet
	ids     translator
	methods map[string]string // methods of our requests, by id
	sent    int
	got     int
}

// replay plays one side of a recording to a program that takes the other side.
// replay checks the flags, chooses the part, and plays it to the other side.
func (o *Options) replay(ctx context.Context) error {
	switch {
	case o.As != asAgent && o.As != asClient:
		return exitcode.Errorf(exitcode.Usage, "--as %q is neither agent nor client", o.As)
	case o.Speed != speedRecorded && o.Speed != speedMax:
		return exitcode.Errorf(exitcode.Usage, "--speed %q is neither recorded nor max", o.Speed)
	case o.Timeout <= 0 || o.Part < 0:
		return exitcode.Errorf(exitcode.Usage, "--timeout and --part must be positive")
	case o.As == asClient && len(o.Command) == 0:
		return exitcode.Errorf(exitcode.Usage, "the agent's command is missing: acp trace replay FILE --as client -- COMMAND")
	case o.As == asAgent && len(o.Command) > 0:
		return exitcode.Errorf(exitcode.Usage, "with --as agent, the client starts this command; leave out the command after --")
	case o.Files[0] == "-":
		return exitcode.Errorf(exitcode.Usage, "cannot replay standard input: the recording is read more than once")
	}
	plan, err := o.plan(ctx)
	if err != nil {
		return err
	}
	s, err := o.open(ctx, o.Files[0])
	if err != nil {
		return err
	}
	defer s.Close()
	p := &player{
		o: o, script: &script{s: s, part: plan.part, ours: o.sends()}, asks: plan.asks, methods: map[string]string{},
		came: make(chan *frame.Envelope, 256),
	}
	if o.As == asAgent {
		in, out := o.In, o.Out
		if in == nil {
			in, out = os.Stdin, os.Stdout
		}
		p.stream = jsonrpc.NewDetectStream(in, out)
		return p.run(ctx, nil)
	}
	agent, err := o.App.CommandAgent(o.Command)
	if err != nil {
		return err
	}
	t := agent.Transport(o.App.Cwd)
	proc, err := process.Start(ctx, process.Config{Path: t.Path, Args: t.Args, Dir: t.Dir, Env: t.Env})
	if err != nil {
		return exitcode.Errorf(exitcode.Agent, "%s cannot be started: %w", roster.Quote(t.Path), err)
	}
	p.stream = jsonrpc.NewLineStream(proc.Stdout(), proc.Stdin())
	err = p.run(ctx, proc)
	if stop := proc.Stop(ctx); err == nil && stop != nil {
		err = stop
	}
	return err
}

// run plays the recording and reports the result. proc is the agent if this program has started it.
func (p *player) run(ctx context.Context, proc *process.Process) error {
	quit := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.receive(quit)
	}()
	err := p.play(ctx)
	if errors.Is(err, errEnded) {
		reason := ""
		if proc != nil {
			_ = proc.Stop(ctx) // its last words on standard error may come after the end of its output
			if line := process.Reason(proc.StderrTail()); line != "" {
				reason = ": " + safetext.Line(line, 300)
			}
		}
		err = exitcode.Errorf(exitcode.Agent, "%w%s", err, reason)
	}
	close(quit)
	if closed := p.stream.Close(); err == nil && closed != nil && proc == nil {
		err = closed
	}
	// A read from standard input may stay blocked. Then the goroutine ends with the process.
	select {
	case <-done:
	case <-time.After(100 * time.Millisecond):
	}
	if err == nil {
		fmt.Fprintf(p.o.App.Err, "acp: replayed as recorded: %d frames sent, %d received\n", p.sent, p.got)
	}
	return err
}

var errEnded = errors.New("the other side ended")

// receive reads the frames of the other side. Frames that are too large are skipped.
func (p *player) receive(quit <-chan struct{}) {
	defer close(p.came)
	var read frame.Reader
	for {
		raw, err := p.stream.ReadFrame()
		if large := (*jsonrpc.FrameTooLargeError)(nil); errors.As(err, &large) {
			continue
		}
		if err != nil {
			return
		}
		data := raw.Data
		if !raw.Owned {
			data = slices.Clone(data)
		}
		f := read.Read(data)
		select {
		case p.came <- &f:
		case <-quit:
			return
		}
	}
}

// play plays the steps: it sends our frames at their times and waits for those of the other side.
func (p *player) play(ctx context.Context) error {
	var last time.Duration
	for {
		st, err := p.script.next()
		if err == io.EOF {
			return p.finish(ctx)
		}
		if err != nil {
			return err
		}
		switch {
		case !st.ours && st.needed(p.o.Strict):
			err = p.expect(ctx, st)
		case st.ours:
			if p.o.Speed == speedRecorded {
				err = sleep(ctx, st.at-last)
			}
			if err == nil {
				err = p.send(st)
			}
		}
		if err != nil {
			return err
		}
		last = st.at
	}
}

// sleep waits for a time, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *player) send(st *step) error {
	if st.Request() && len(p.methods) < maxIDs {
		p.methods[string(st.ID)] = st.Method
	}
	if err := p.stream.WriteFrame(p.ids.apply(st)); err != nil {
		return fmt.Errorf("%w before line %d could be sent: %v", errEnded, st.line, err)
	}
	p.sent++
	return nil
}

// expect waits until the other side sends what it sent in a step. Frames that belong to later steps
// are held.
func (p *player) expect(ctx context.Context, want *step) error {
	for i, f := range p.held {
		if p.fits(want, f) {
			p.held = slices.Delete(p.held, i, i+1)
			return p.match(want, f)
		}
	}
	timer := time.NewTimer(p.o.Timeout)
	defer timer.Stop()
	for {
		select {
		case f, ok := <-p.came:
			if !ok {
				return fmt.Errorf("%w while %s was expected, as in line %d", errEnded, p.name(&want.Envelope), want.line)
			}
			p.got++
			if p.fits(want, f) {
				return p.match(want, f)
			}
			if err := p.hold(want, f); err != nil {
				return err
			}
		case <-timer.C:
			return exitcode.Errorf(exitcode.Timeout, "nothing was received for %s while %s was expected, as in line %d", p.o.Timeout, p.name(&want.Envelope), want.line)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// name describes a frame of the other side.
func (p *player) name(f *frame.Envelope) string {
	return safetext.Line(describe(f, p.methods[string(f.ID)]), 200)
}

// fits reports whether f is what the step expects.
func (p *player) fits(want *step, f *frame.Envelope) bool {
	switch {
	case want.Request():
		return f.Request() && f.Method == want.Method
	case want.Answer():
		return f.Answer() && string(f.ID) == string(want.ID)
	}
	return f.Notification() && describe(f, "") == describe(&want.Envelope, "")
}

// match accepts f in place of a step and learns its ids. A success where an error was recorded, or
// the reverse, is a divergence.
func (p *player) match(want *step, f *frame.Envelope) error {
	if want.Answer() && (want.Error == nil) != (f.Error == nil) {
		if f.Error == nil {
			return p.diverge(want, f, "")
		}
		code := number(frame.Find(f.Error, "code"))
		if code == 0 {
			return p.diverge(want, f, ": "+safetext.Line(frame.Member(f.Error, "message"), 200))
		}
		return p.diverge(want, f, fmt.Sprintf(": %d %s", code, safetext.Line(frame.Member(f.Error, "message"), 200)))
	}
	if want.Request() {
		p.asks[want.Method]--
	}
	p.ids.learn(&want.Envelope, f)
	return nil
}

func (p *player) diverge(want *step, f *frame.Envelope, more string) error {
	return exitcode.Errorf(exitcode.Failed, "line %d: expected %s, got %s%s", want.line, p.name(&want.Envelope), p.name(f), more)
}

// hold holds a frame that a later step may expect. It returns an error if none will.
func (p *player) hold(want *step, f *frame.Envelope) error {
	held := 0
	for _, h := range p.held {
		if h.Request() && h.Method == f.Method {
			held++
		}
	}
	switch {
	case p.o.Strict:
		return p.diverge(want, f, "")
	case f.Request() && held >= p.asks[f.Method]:
		// Nothing in the recording would ever answer it.
		return p.diverge(want, f, ", for which there is no answer in the recording")
	case f.Notification() && !(&step{Envelope: *f}).needed(false):
		return nil
	case !f.Request() && !f.Answer() && !f.Notification():
		return nil
	}
	if len(p.held) >= maxHeld {
		p.held = p.held[1:]
	}
	p.held = append(p.held, f)
	return nil
}

// finish waits for the end of the other side: a client ends by itself, an agent when its input
// ends, which the caller takes care of.
func (p *player) finish(ctx context.Context) error {
	if p.o.As == asClient {
		return nil
	}
	timer := time.NewTimer(p.o.Timeout)
	defer timer.Stop()
	for {
		select {
		case f, ok := <-p.came:
			if !ok {
				return nil
			}
			p.got++
			if f.Request() {
				return exitcode.Errorf(exitcode.Failed, "after the end of the recording, got %s", p.name(f))
			}
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
