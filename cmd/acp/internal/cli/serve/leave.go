package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/interrupt"
	"github.com/goacp/acp/cmd/acp/internal/own"
)

// errKeep and errEnd are why a server ends whose user was asked what becomes of its agents.
var (
	errKeep = errors.New("the agents are kept")
	errEnd  = errors.New("the agents end")
)

// leaves reports whether a server whose ctx is done leaves its agents to the next one, as if it was killed: a service that is
// restarted must not lose more than one that crashes. An interrupt and acp serve stop end them.
func (o *Options) leaves(ctx context.Context, state string) bool {
	signal := interrupt.By(ctx)
	switch {
	case own.Stopping(state):
		return false
	case signal == os.Interrupt:
		return o.Operation.KeepAgents
	case signal != nil:
		return true
	}
	return errors.Is(context.Cause(ctx), errKeep)
}

// leave has the agents left to the next server if ctx, which is done, says so. d may be nil.
func (d *durable) leave(ctx context.Context, o *Options, state string) {
	if d == nil || ctx.Err() == nil || !o.leaves(ctx, state) {
		return
	}
	d.leaves = true
	o.note("agents that can be kept wait a minute for the next acp serve, which continues their turns")
}

// asks has an interrupt ask in the terminal what becomes of the agents, if they are at work. The context that it
// returns is done with the answer. done takes that back.
func (o *Options) asks(ctx context.Context, busy func() gateway.Busy) (_ context.Context, done func()) {
	in, isFile := o.App.In.(*os.File)
	if !isFile || !o.App.InTerminal || !o.App.ErrTerminal || o.Operation.KeepAgents {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	pressed := make(chan struct{}, 1)
	restore := o.App.HandleInterrupt(func() {
		select {
		case pressed <- struct{}{}:
		default: // it has not been looked at
		}
	})
	var asking sync.WaitGroup
	asking.Go(func() {
		select {
		case <-pressed:
		case <-ctx.Done():
			return
		}
		why := errEnd
		if work := busy(); work.Turns+work.Asks > 0 {
			why = o.ask(ctx, in, work, pressed)
		}
		restore() // from now on an interrupt is for those who cannot wait
		cancel(why)
	})
	return ctx, func() {
		cancel(nil)
		asking.Wait()
		restore()
	}
}

// ask asks what becomes of agents that are at work. A second interrupt is an answer, too.
func (o *Options) ask(ctx context.Context, in *os.File, work gateway.Busy, pressed <-chan struct{}) error {
	again, cancel := context.WithCancel(ctx)
	defer cancel()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() {
		select {
		case <-pressed:
			cancel()
		case <-again.Done():
		}
	})
	for {
		fmt.Fprintf(o.App.Err, "acp serve: %d prompts run or wait, %d questions wait for an answer. Keep them for the acp serve that is started within a minute (k), or end them (e, or Ctrl-C again)? ", work.Turns, work.Asks)
		line, err := app.ReadLine(again, in)
		switch answer := strings.ToLower(strings.TrimSpace(line)); {
		case again.Err() != nil || err != nil || line == "":
			fmt.Fprintln(o.App.Err)
			return errEnd
		case answer == "k" || answer == "keep":
			return errKeep
		case answer == "e" || answer == "end":
			return errEnd
		}
	}
}
