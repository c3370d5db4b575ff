package tap

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/interrupt"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/trace"
)

// DefaultGrace is how long an agent may take to end after a signal was passed on to it, unless
// [Config.Grace] says otherwise.
const DefaultGrace = 5 * time.Second

// A Sink receives what passes, like a [trace.Recorder]: its methods must not block, must copy what
// they keep, and may be called from several goroutines, even after everything has ended.
type Sink interface {
	Frame(dir trace.Direction, line []byte)
	Stderr(line []byte)
	Event(name string, d trace.Detail)
	Record(rec *trace.Record)
	Started() time.Time
}

// A Config configures a tap.
type Config struct {
	// Agent is the program to start: its Path, Args, Dir and Env, and the graces of its end.
	Agent process.Config
	// In, Out and Err are the editor's side: what it writes, what it reads, and its standard error.
	// In and Out are closed when the agent closes its ends.
	In  io.ReadCloser
	Out io.WriteCloser
	Err io.Writer

	Sink  Sink   // nil records nothing
	Guard *Guard // nil forwards everything unchanged

	// Signals are passed on to the agent. After the first of them it has Grace to end. A signal
	// that follows one of its kind within [interrupt.Window] is ignored.
	Signals <-chan os.Signal
	Grace   time.Duration // 0 means DefaultGrace
}

// Run starts the agent and forwards until it has ended and everything it wrote was forwarded. It
// returns the status a shell would see: the agent's exit code, or 128 plus the number of the signal
// that ended it. An error says that the agent could not be started, or not be ended.
//
// When the editor has closed both ends, as it does when it dies, Run ends the agent: it has 2 s
// after the end of its input, then gets SIGTERM, and is killed 2 s later, with everything it has
// started. After a signal that was passed on it has Grace first. An editor that has closed only its
// writing end may still read, and the agent may work as long as it likes.
//
// In is read by a goroutine that ends when the read does, which for the standard input of a process
// may be later than Run.
func Run(ctx context.Context, cfg Config) (status int, err error) {
	t := &tap{cfg: cfg, left: make(chan struct{}, 4), through: make(chan struct{})}
	if t.cfg.Sink == nil {
		t.cfg.Sink = nothing{}
	}
	if t.cfg.Grace <= 0 {
		t.cfg.Grace = DefaultGrace
	}
	stderr, theirs, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	t.cfg.Agent.StderrFile = theirs
	t.agent, err = process.Start(ctx, t.cfg.Agent)
	_ = theirs.Close()
	if err != nil {
		_ = stderr.Close()
		return 0, err
	}
	t.cfg.Sink.Event("start", trace.Detail{PID: t.agent.PID(), Text: cfg.Agent.Path})
	t.stdout, t.stderr = &tail{File: t.agent.Stdout()}, &tail{File: stderr}
	t.forward()
	t.await()
	stopped := t.agent.Stop(context.Background())
	_ = stderr.Close()
	_ = t.cfg.In.Close()
	_ = t.cfg.Out.Close()
	return t.status(), stopped
}

// A tap is one run.
type tap struct {
	cfg            Config
	agent          *process.Process
	stdout, stderr *tail

	left    chan struct{} // receives a value for each sign that the editor has closed an end
	through chan struct{} // closed when everything the agent wrote was forwarded
}

// forward starts the goroutines that forward.
func (t *tap) forward() {
	var toAgent, toClient route
	if t.cfg.Guard == nil {
		toAgent = &plain{t.agent.Stdin(), t.cutter(trace.ToAgent)}
		toClient = &plain{t.cfg.Out, t.cutter(trace.ToClient)}
	} else {
		toAgent, toClient = guarded(t.cfg.Guard, t.agent.Stdin(), t.cfg.Out, t.cfg.Sink)
	}
	errs := &plain{unclosed{t.cfg.Err}, cutter{emit: func(line []byte, _ int64) { t.cfg.Sink.Stderr(line) }}}
	go func() {
		err := pump(toAgent, t.cfg.In)
		t.closed(err, "the client stopped writing", "the agent stopped reading")
		if err == nil {
			t.left <- struct{}{}
		}
	}()
	go func() {
		if deserted(t.cfg.In, t.cfg.Out, t.through) {
			t.left <- struct{}{}
			t.left <- struct{}{}
		}
	}()
	var writing sync.WaitGroup
	writing.Go(func() {
		err := pump(toClient, t.stdout)
		t.closed(err, "the agent stopped writing", "the client stopped reading")
		if err != nil {
			t.left <- struct{}{}
		}
	})
	writing.Go(func() { _ = pump(errs, t.stderr) })
	go func() {
		writing.Wait()
		close(t.through)
	}()
}

func (t *tap) closed(err error, ended, broken string) {
	if err != nil {
		ended = broken
	}
	t.cfg.Sink.Event("close", trace.Detail{Text: ended})
}

// await returns when the agent has ended and everything it wrote was forwarded, and ends it where
// necessary.
func (t *tap) await() {
	done, through := t.agent.Done(), (<-chan struct{})(nil)
	var over <-chan time.Time
	var once interrupt.Filter
	for left := 0; ; {
		select {
		case <-done:
			done, through = nil, t.through
			t.stdout.end()
			t.stderr.end()
		case <-through:
			return
		case <-t.left:
			if left++; left == 2 && done != nil {
				over = nil
				go t.end()
			}
		case sig := <-t.cfg.Signals:
			if !once.Counts(sig, time.Now()) {
				continue
			}
			t.cfg.Sink.Event("signal", trace.Detail{Text: nameOf(sig)})
			switch {
			case done == nil:
				return // it has ended; the editor does not accept what is left
			case t.agent.Signal(sig) != nil:
				go t.end()
			case over == nil:
				timer := time.NewTimer(t.cfg.Grace)
				defer timer.Stop()
				over = timer.C
			}
		case <-over:
			go t.end()
		}
	}
}

// end ends the agent, in stages.
func (t *tap) end() { _ = t.agent.End(context.Background()) }

// status returns how the agent has ended, and records it.
func (t *tap) status() int {
	var exit *process.ExitError
	code, text := 0, ""
	switch err := t.agent.Wait(); {
	case err == nil:
	case !errors.As(err, &exit):
		code, text = 1, err.Error()
	case exit.Signal != "":
		code, text = 128+numberOf(exit.Signal), exit.Signal
	default:
		code = exit.Code
	}
	t.cfg.Sink.Event("exit", trace.Detail{PID: t.agent.PID(), Code: &code, Text: text})
	return code
}

// cutter returns a cutter that records the lines of a direction.
func (t *tap) cutter(dir trace.Direction) cutter { return cutter{emit: recordTo(t.cfg.Sink, dir)} }

// recordTo records lines. For a line that was cut it records the length.
func recordTo(sink Sink, dir trace.Direction) func([]byte, int64) {
	return func(line []byte, size int64) {
		if size == int64(len(line)) {
			sink.Frame(dir, line)
			return
		}
		sink.Record(&trace.Record{At: time.Since(sink.Started()), Kind: trace.Text, Dir: dir, Data: line, Size: size})
	}
}

// unclosed is a writer whose Close does nothing.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// nothing records nothing.
type nothing struct{}

func (nothing) Frame(trace.Direction, []byte) {}
func (nothing) Stderr([]byte)                 {}
func (nothing) Event(string, trace.Detail)    {}
func (nothing) Record(*trace.Record)          {}
func (nothing) Started() time.Time            { return time.Time{} }
