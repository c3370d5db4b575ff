package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/withheld"
)

// RunSeconds is how long a command runs before it becomes a job, unless its caller says
// otherwise. Commands that users type run to their end.
const RunSeconds = 120

// Run runs a command.
var Run = Tool{
	Name: "run", Kind: acp.ToolKindExecute,
	About: "Runs a line of the shell in the session's directory. Variables, cd and processes do not outlast it. One that takes longer than seconds (120 by default) runs on as a job; with background it is one at once.",
	Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"},` +
		`"seconds":{"type":"integer","minimum":1,"maximum":3600},"background":{"type":"boolean"}},` +
		`"required":["command"],"additionalProperties":false}`),
	Run: runRun,
}

// RunInput is the input of [Run].
type RunInput struct {
	Command string `json:"command"`
	// Seconds is how long it may take before it becomes a job; 0 is [RunSeconds], and a
	// negative number means that it never does.
	Seconds    int  `json:"seconds,omitempty"`
	Background bool `json:"background,omitempty"`
}

func runRun(ctx context.Context, env Env, input json.RawMessage) (Result, error) {
	var in RunInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	line := strings.TrimSpace(in.Command)
	if line == "" {
		return Result{}, Misusef("the command is missing")
	}
	if patch, dir, ok, err := asPatch(env, line); err != nil || ok {
		if err != nil {
			return Result{}, err
		}
		return applyPatch(ctx, env, patch, dir)
	}
	dir := env.Cwd()
	c, own, end := beginAlone(ctx, env, acp.ToolCall{
		Name: "run", Title: prose.OneLine(line, 200), Kind: acp.ToolKindExecute, Status: acp.ToolCallStatusPending,
		Input: map[string]string{"command": line, "cwd": dir},
	})
	defer end()
	quiet := calmOf(own, env, line, dir)
	err := c.permit(Question{
		Permission: acp.Permission{Title: "Run this command?", Command: line, Cwd: dir}, About: AboutRun + About(line), Always: "this command",
		Harmless: quiet != nil,
		Request:  acphost.Request{Title: line, Kind: string(acp.ToolKindExecute), Command: line},
	})
	if err != nil {
		return c.failed(err), nil
	}
	if err := env.Intend(Intent{Command: line}); err != nil {
		return c.failed(err), nil
	}
	c.status(acp.ToolCallStatusInProgress)
	if in.Seconds >= 0 {
		return c.runJob(own, line, quiet.apply(command(c.env.Keys(), line, dir)), &in), nil
	}
	state, err := c.h.Exec(quiet.apply(command(c.env.Keys(), line, dir)))
	switch {
	case own.Err() != nil:
		res := c.cancelled("The command was cancelled.")
		res.Text = c.printed(line, state) + "The command was cancelled."
		return res, nil
	case err != nil:
		return c.failed(err), nil
	}
	return c.ran(line, state, state.Exit), nil
}

// runJob runs a command that may become a job. It belongs to the session, not to the
// call.
func (c *call) runJob(own context.Context, line string, cmd acp.Exec, in *RunInput) Result {
	t, err := c.env.Session().Run(cmd)
	if err != nil {
		return c.failed(err)
	}
	c.show(&acp.TerminalContent{TerminalID: t.ID()})
	jobs := c.env.Jobs()
	if in.Background {
		j, err := jobs.add(line, t, c.env.Background)
		if err != nil {
			_ = t.Release() // which ends it
			return c.failed(err)
		}
		return c.became(j, "It runs")
	}
	seconds := in.Seconds
	if seconds == 0 {
		seconds = RunSeconds
	}
	ended := make(chan struct{})
	var exit *acp.TerminalExitStatus
	var waitErr error
	go func() {
		defer close(ended)
		exit, waitErr = t.Wait()
	}()
	timer := time.NewTimer(time.Duration(seconds) * time.Second)
	defer timer.Stop()
	select {
	case <-ended:
	case <-own.Done():
		_ = t.Kill()
		<-ended
		state, _ := t.State() // or else nothing is known of it
		_ = t.Release()
		res := c.cancelled("The command was cancelled.")
		res.Text = c.printed(line, state) + "The command was cancelled."
		return res
	case <-timer.C:
		j, err := jobs.add(line, t, c.env.Background)
		if err == nil {
			return c.became(j, fmt.Sprintf("It still runs after %d seconds, and runs on", seconds))
		}
		_ = t.Kill()
		<-ended
		waitErr = err
	}
	state, err := t.State()
	_ = t.Release()
	if waitErr != nil {
		return c.failed(waitErr)
	}
	if err != nil {
		return c.failed(err)
	}
	return c.ran(line, state, exit)
}

// became ends the call of a command that runs on.
func (c *call) became(j *job, how string) Result {
	c.env.Background()
	said := fmt.Sprintf("%s in the background, as job %s.", how, j.id)
	text, err := j.output()
	if err != nil {
		text = ""
	}
	c.found = text + said
	return c.done(said)
}

// ran ends the call of a command that has ended.
func (c *call) ran(line string, state *acp.TerminalState, exit *acp.TerminalExitStatus) Result {
	said, ok := exitText(exit)
	advice := ""
	if state.Left > 0 {
		what := "1 process that it had left in the background was"
		if state.Left > 1 {
			what = fmt.Sprintf("%d processes that it had left in the background were", state.Left)
		}
		said += " " + what + " ended with it."
		advice = " For what is to run on, use background."
	}
	c.found = c.printed(line, state) + said + advice
	if ok {
		return c.done(said)
	}
	if names := c.env.Keys().Names(); len(names) > 0 {
		note := " These variables, which hold keys, were withheld from it: " + prose.OneLine(strings.Join(names, ", "), 300) + "."
		said, c.found = said+note, c.found+note
	}
	c.status(acp.ToolCallStatusFailed)
	return Result{Said: said, Text: c.found, Status: acp.ToolCallStatusFailed}
}

// exitText says how a command ended, and whether that was a success.
func exitText(exit *acp.TerminalExitStatus) (said string, ok bool) {
	switch {
	case exit.Signal != "":
		return fmt.Sprintf("The command was ended by signal %s.", prose.OneLine(exit.Signal, 40)), false
	case exit.ExitCode == nil:
		return "The command has ended; how is not known.", false
	case *exit.ExitCode == 0:
		return "The command has succeeded.", true
	}
	return fmt.Sprintf("The command has failed with exit status %d.", *exit.ExitCode), false
}

// Exec runs a line of the shell to its end, in a terminal that the call shows: the
// client's, if it lends one, otherwise one of the agent's.
func Exec(h *acp.ToolCallHandle, keys *withheld.Keys, line, dir string) (*acp.TerminalExitStatus, error) {
	state, err := h.Exec(command(keys, line, dir))
	if err != nil {
		return nil, err
	}
	return state.Exit, nil
}
