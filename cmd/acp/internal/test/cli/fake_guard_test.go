package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goacp/acp"
)

// guardModes are the modes of the program fake-agent that are about rules: agents that use the files
// and terminals of the client, that ask in the ways of real agents, and that do not ask.
var guardModes = map[string]func(t *acp.Turn) error{
	"lent": usesLent,
	"P": func(t *acp.Turn) error {
		return asksToRun(t, "demo shell", map[string]any{"command": t.Text(), "commands": []string{t.Text()}})
	},
	"Z": func(t *acp.Turn) error { return asksToRun(t, "demo shell", argv(t.Text())) },
	"gemini": func(t *acp.Turn) error {
		return asksToRun(t, t.Text()+" [in the working directory] (a description)", nil)
	},
	"backtick": func(t *acp.Turn) error {
		return asksToRun(t, "`"+t.Text()+"`", nil)
	},
	"blind": func(t *acp.Turn) error { return asksToRun(t, "demo shell", map[string]any{"task": 7}) },
	"K":     asksInText,
	"I":     doesNotAsk,
}

func argv(line string) map[string]any {
	return map[string]any{
		"call_id": "c1", "command": []string{"/bin/bash", "-lc", line}, "cwd": "", "reason": nil, "timeout_ms": 10000,
	}
}

// usesLent does what each line of the prompt says by the files and terminals of the client, and says
// what came of it.
func usesLent(t *acp.Turn) error {
	for line := range strings.Lines(t.Text()) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		path, text, _ := strings.Cut(rest, " ")
		if !filepath.IsAbs(path) {
			path = filepath.Join(t.Session().Cwd(), path)
		}
		said, err := "done", error(nil)
		switch verb {
		case "read":
			said, err = t.ReadFile(path)
		case "write":
			err = t.WriteFile(path, text)
		case "run":
			_, err = t.ToolCall(acp.ToolCall{Title: "runs", Kind: acp.ToolKindExecute}).Exec(acp.Exec{Command: "/bin/sh", Args: []string{"-c", rest}})
		}
		if err != nil {
			said = "failed: " + err.Error()
		}
		if err := t.Say(verb + ": " + strings.TrimSpace(said) + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// asksToRun asks for leave to run the prompt as a command, and runs it by itself.
func asksToRun(t *acp.Turn, title string, input map[string]any) error {
	call := acp.ToolCall{Title: title, Kind: acp.ToolKindExecute}
	if input != nil {
		call.Input = input
	}
	h := t.ToolCall(call)
	d, err := h.Ask(acp.Permission{})
	if err != nil {
		return err
	}
	if !d.Allowed {
		_ = h.Fail(errors.New("not permitted"))
		return t.Say("I was not allowed to.")
	}
	_ = h.Complete()
	return t.Say("I did it.")
}

// asksInText asks for leave to run the prompt, in a text for people, and has the client run it in a
// shell.
func asksInText(t *acp.Turn) error {
	h := t.ToolCall(acp.ToolCall{Title: "Bash", Kind: acp.ToolKindExecute, Content: []acp.ToolCallContent{
		&acp.BlockContent{Content: acp.Text("Requesting approval to Running: " + t.Text())},
	}})
	if _, err := h.Ask(acp.Permission{}); err != nil {
		return err
	}
	// What it was told does not keep it from trying.
	state, err := h.Exec(acp.Exec{Command: "/bin/bash", Args: []string{"-c", fmt.Sprintf("cd '%s' && %s", t.Session().Cwd(), t.Text())}})
	if err != nil {
		_ = h.Fail(errors.New("permission denied"))
		return t.Say("I could not.")
	}
	_ = h.Complete()
	return t.Say(fmt.Sprintf("It ended with %d.", *state.Exit.ExitCode))
}

// doesNotAsk writes the file that the prompt names, and tells of it.
func doesNotAsk(t *acp.Turn) error {
	path := filepath.Join(t.Session().Cwd(), t.Text())
	h := t.ToolCall(acp.ToolCall{Title: "write", Kind: acp.ToolKindEdit, Locations: []acp.ToolCallLocation{{Path: path}}})
	if err := os.WriteFile(path, []byte("written\n"), 0o600); err != nil {
		return err
	}
	_ = h.Complete()
	return t.Say("I did it.")
}

// guardMode sets what an agent does in a mode; ok says whether there is one of that name.
func guardMode(agent *acp.Agent, mode string) (ok bool) {
	does, ok := guardModes[mode]
	if ok {
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, does(t) }
	}
	return ok
}
