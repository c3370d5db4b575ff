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
	c.status(acp.ToolCallStatusInProgress)
	exit, err := Exec(c.h, line, dir)
	switch {
	case own.Err() != nil:
		return c.cancelled("The command was cancelled."), nil
	case err != nil:
		return c.failed(err), nil
	}
	said, ok := exitText(exit)
	if ok {
		return c.done(said), nil
	}
	c.status(acp.ToolCallStatusFailed)
	return Result{Said: said, Status: acp.ToolCallStatusFailed}, nil
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
func Exec(h *acp.ToolCallHandle, line, dir string) (*acp.TerminalExitStatus, error) {
	name, args := shell(line)
	state, err := h.Exec(acp.Exec{Command: name, Args: args, Line: line, Dir: dir})
	if err != nil {
		return nil, err
	}
	return state.Exit, nil
}
