package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// shell returns how a line is run.
func shell(line string) (name string, args []string) {
	if runtime.GOOS == "windows" {
		return "cmd", []string{"/C", line}
	}
	return "sh", []string{"-c", line}
}

// Run runs a command.
var Run = Tool{
	Name: "run", Kind: acp.ToolKindExecute,
	About: "Runs a command of the shell in the session's directory, to its end.",
	Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string","description":"a line for the shell"}},` +
		`"required":["command"],"additionalProperties":false}`),
	Run: runRun,
}

// RunInput is the input of [Run].
type RunInput struct {
	Command string `json:"command"`
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
	dir := env.Cwd()
	c, own, end := beginAlone(ctx, env, acp.ToolCall{
		Name: "run", Title: prose.OneLine(line, 200), Kind: acp.ToolKindExecute, Status: acp.ToolCallStatusPending,
		Input: map[string]string{"command": line, "cwd": dir},
	})
	defer end()
	err := c.permit(Question{
		Permission: acp.Permission{Title: "Run this command?", Command: line, Cwd: dir}, About: AboutRun, Always: "commands",
		Request: acphost.Request{Title: line, Kind: string(acp.ToolKindExecute), Command: line},
	})
	if err != nil {
		return c.failed(err), nil
	}
	if err := env.Intend(Intent{Command: line}); err != nil {
		return c.failed(err), nil
	}
	c.status(acp.ToolCallStatusInProgress)
	state, err := exec(c.h, line, dir)
	output := ""
	if state != nil {
		output = bounded(state.Output, outputTail)
		if state.Truncated {
			output = "[the beginning is left out]\n" + output
		}
		if output != "" && !strings.HasSuffix(output, "\n") {
			output += "\n"
		}
	}
	switch {
	case own.Err() != nil:
		res := c.cancelled("The command was cancelled.")
		res.Text = output + "The command was cancelled."
		return res, nil
	case err != nil:
		return c.failed(err), nil
	}
	said, ok := exitText(state.Exit)
	c.found = output + said
	if ok {
		return c.done(said), nil
	}
	c.status(acp.ToolCallStatusFailed)
	return Result{Said: said, Text: c.found, Status: acp.ToolCallStatusFailed}, nil
}

// outputTail is how much of the end of a long output is for a language model, in bytes.
const outputTail = 40 << 10

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
func Exec(h *acp.ToolCallHandle, line, dir string) (*acp.TerminalExitStatus, error) {
	state, err := exec(h, line, dir)
	if err != nil {
		return nil, err
	}
	return state.Exit, nil
}

// exec is Exec with what was printed, also if the command was given up.
func exec(h *acp.ToolCallHandle, line, dir string) (*acp.TerminalState, error) {
	name, args := shell(line)
	return h.Exec(acp.Exec{Command: name, Args: args, Line: line, Dir: dir})
}
