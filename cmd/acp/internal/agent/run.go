package agent

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
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
	exit, err := c.exec(line, dir)
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
func (c *call) exec(line, dir string) (*acp.TerminalExitStatus, error) {
	name, args := shell(line)
	state, err := c.h.Exec(acp.Exec{
		ID:      acp.TerminalID(c.w.s.nextID("term")),
		Command: name, Args: args, Line: line, Dir: dir, OutputLimit: outputTail,
	})
	if err != nil {
		return nil, err
	}
	return state.Exit, nil
}
