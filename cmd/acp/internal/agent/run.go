package agent

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/internal/process"
)

const (
	// maxKeptOutput is how much of a command's output is kept as it comes, in
	// bytes; of more, only the last outputTail are kept when it has ended. What
	// the client is sent has no bound.
	maxKeptOutput = 4 << 20
	outputTail    = 1 << 20
	// drain is how long output is waited for that somebody holds open who has
	// left the command's tree of processes.
	drain = 500 * time.Millisecond
)

// shell returns how a line is run.
func shell(line string) (name string, args []string) {
	if runtime.GOOS == "windows" {
		return "cmd", []string{"/C", line}
	}
	return "sh", []string{"-c", line}
}

func runRun(k *task) error {
	line := strings.TrimSpace(k.rest)
	if line == "" {
		return misusef("the command is missing")
	}
	dir := k.turn.Session().Cwd()
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	c := k.callIn(k.out.WithContext(ctx), acp.ToolCall{
		Name: "run", Title: oneLine(line, 200), Kind: acp.ToolKindExecute, Status: acp.ToolCallStatusPending,
		Input: map[string]string{"command": line, "cwd": dir}, Cancel: cancel,
	})
	err := c.permit(askRun, "commands", acp.Permission{Title: "Run this command?", Command: line, Cwd: dir},
		acphost.Request{Title: line, Kind: string(acp.ToolKindExecute), Command: line})
	if err != nil {
		return k.failed(c, err)
	}
	c.status(acp.ToolCallStatusInProgress)
	exit, err := c.exec(ctx, line, dir)
	switch {
	case ctx.Err() != nil:
		c.status(acp.ToolCallStatusCancelled)
		if k.ctx.Err() == nil {
			k.say("The command was cancelled.")
		}
		return nil
	case err != nil:
		return k.failed(c, err)
	}
	said, ok := exitText(exit)
	if ok {
		c.complete()
	} else {
		c.status(acp.ToolCallStatusFailed)
	}
	k.say(said)
	return nil
}

func exitText(exit *acp.TerminalExitStatus) (said string, ok bool) {
	switch {
	case exit.Signal != "":
		return fmt.Sprintf("The command was ended by signal %s.", oneLine(exit.Signal, 40)), false
	case exit.ExitCode == nil:
		return "The command has ended; how is not known.", false
	case *exit.ExitCode == 0:
		return "The command has succeeded.", true
	}
	return fmt.Sprintf("The command has failed with exit status %d.", *exit.ExitCode), false
}

// exec runs a line of the shell to its end in a terminal that the call shows: the
// client's, if it lends one, otherwise here.
func (c *call) exec(ctx context.Context, line, dir string) (*acp.TerminalExitStatus, error) {
	name, args := shell(line)
	if caps := c.w.s.acp.Conn().CapabilitiesV1(); caps != nil && caps.Terminal {
		return c.execLent(name, args, line, dir)
	}
	p, err := process.Start(ctx, process.Config{Path: name, Args: args, Dir: dir, NoStdin: true, MergeStderr: true})
	if err != nil {
		return nil, err
	}
	id := acp.TerminalID(c.w.s.nextID("term"))
	_ = c.w.send(&acp.TerminalUpdate{TerminalID: id, Command: acp.Set(line), Cwd: acp.Set(dir)})
	c.show(&acp.TerminalContent{TerminalID: id})
	c.copyOutput(ctx, id, p)
	exit := exitStatus(p.Wait())
	_ = p.Stop(context.Background())
	_ = c.w.send(&acp.TerminalUpdate{TerminalID: id, ExitStatus: acp.Set(*exit)})
	return exit, nil
}

// copyOutput sends what a command prints until it has ended.
func (c *call) copyOutput(ctx context.Context, id acp.TerminalID, p *process.Process) {
	defer context.AfterFunc(ctx, p.Kill)()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-done:
			return
		case <-p.Done():
		}
		t := time.NewTimer(drain)
		defer t.Stop()
		select {
		case <-done:
		case <-t.C:
			_ = p.Stop(context.Background())
		}
	}()
	kept, tail := 0, process.NewTail(outputTail)
	buf := make([]byte, 32<<10)
	for {
		n, err := p.Stdout().Read(buf)
		if n > 0 {
			_, _ = tail.Write(buf[:n]) // never fails
			chunk := &acp.TerminalOutputChunk{TerminalID: id, Data: base64.StdEncoding.EncodeToString(buf[:n])}
			if kept += n; kept <= maxKeptOutput {
				_ = c.w.send(chunk)
			} else {
				_ = c.w.tell(chunk)
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.Kill()
			}
			break
		}
	}
	if kept > maxKeptOutput {
		text, _ := tail.Text()
		c.w.s.keep(&acp.TerminalUpdate{TerminalID: id, Output: acp.Set(output(text))})
	}
}

// execLent runs a command in the client's terminal. That is gone when the session
// comes back, so what it has shown is kept under another id.
func (c *call) execLent(name string, args []string, line, dir string) (*acp.TerminalExitStatus, error) {
	t, err := c.h.Run(acp.Exec{Command: name, Args: args, Dir: dir, OutputLimit: outputTail})
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Release() }()
	exit, err := t.Wait()
	if err != nil {
		return nil, err
	}
	state, err := t.State()
	if err != nil {
		return nil, err
	}
	id := acp.TerminalID(c.w.s.nextID("term"))
	c.w.s.keep(&acp.TerminalUpdate{
		TerminalID: id, Command: acp.Set(line), Cwd: acp.Set(dir), Output: acp.Set(output(state.Output)), ExitStatus: acp.Set(*exit),
	})
	c.w.s.keep(&acp.ToolCallContentChunk{ToolCallID: c.id, Content: &acp.TerminalContent{TerminalID: id}})
	return exit, nil
}

func exitStatus(err error) *acp.TerminalExitStatus {
	var e *process.ExitError
	switch {
	case err == nil:
		return &acp.TerminalExitStatus{ExitCode: new(int64(0))}
	case errors.As(err, &e) && e.Signal != "":
		return &acp.TerminalExitStatus{Signal: e.Signal}
	case errors.As(err, &e):
		return &acp.TerminalExitStatus{ExitCode: new(int64(e.Code))}
	}
	return &acp.TerminalExitStatus{}
}
