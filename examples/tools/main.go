// Command tools is an agent that keeps notes: every prompt becomes a line of
// notes.txt in the session's working directory, which is then sorted.
//
// It shows what an agent lets its user see and decide while it works: a plan, a
// tool call with a diff, a permission, and a command in a terminal.
package main

import (
	"context"
	"errors"
	"io/fs"
	"log"
	"path/filepath"

	"github.com/goacp/acp"
)

var agent = acp.Agent{
	Info:   acp.Implementation{Name: "tools", Version: "1.0.0"},
	Prompt: prompt,
}

func main() {
	if err := agent.Serve(context.Background(), acp.Stdio()); err != nil {
		log.Fatal(err)
	}
}

var errDeclined = errors.New("the user declined")

// prompt carries out a plan of two steps. That something cannot be done is part
// of the conversation. What the turn could not send ends it, so that need not
// be looked at each time.
func prompt(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
	file := filepath.Join(t.Session().Cwd(), "notes.txt")
	plan(t, 0)
	if err := write(t, file, t.Text()); err != nil {
		_ = t.Say("I wrote nothing: " + err.Error())
		return acp.StopEndTurn, t.Err()
	}
	plan(t, 1)
	notes, err := sorted(t, file)
	if err != nil {
		_ = t.Say("I could not sort the notes: " + err.Error())
		return acp.StopEndTurn, t.Err()
	}
	plan(t, 2)
	_ = t.Say("Your notes are now:\n" + notes)
	return acp.StopEndTurn, t.Err()
}

// plan shows the plan with the first steps done.
func plan(t *acp.Turn, done int) {
	var entries []acp.PlanEntry
	for i, what := range []string{"Write the note", "Sort the notes"} {
		status := acp.PlanEntryStatusPending
		switch {
		case i < done:
			status = acp.PlanEntryStatusCompleted
		case i == done:
			status = acp.PlanEntryStatusInProgress
		}
		entries = append(entries, acp.PlanEntry{Content: what, Priority: acp.PlanEntryPriorityMedium, Status: status})
	}
	_ = t.Plan(entries...)
}

// write adds a note to a file, if the user agrees.
func write(t *acp.Turn, file, note string) error {
	before, err := t.ReadFile(file) // from the client, if it has the file open
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	created := err != nil
	after := before + note + "\n"
	call := t.ToolCall(acp.ToolCall{
		Title: "Write " + filepath.Base(file), Kind: acp.ToolKindEdit, Status: acp.ToolCallStatusPending,
		Locations: []acp.ToolCallLocation{{Path: file}},
	})
	_ = call.Change(acp.FileChange{Path: file, Before: before, After: after, Created: created})
	if !call.Permit(acp.Permission{Description: "A note is added."}) {
		_ = call.Fail(errDeclined)
		return errDeclined
	}
	_ = call.SetStatus(acp.ToolCallStatusInProgress)
	if err := t.WriteFile(file, after); err != nil {
		_ = call.Fail(err)
		return err
	}
	return call.Complete()
}

// sorted runs a command that prints the notes in order. The user sees its
// output as it comes, in the client's own terminal if it has one.
func sorted(t *acp.Turn, file string) (notes string, err error) {
	call := t.ToolCall(acp.ToolCall{Title: "Sort " + filepath.Base(file), Kind: acp.ToolKindExecute})
	defer func() {
		if err != nil {
			_ = call.Fail(err)
		}
	}()
	terminal, err := call.Run(acp.Exec{Command: "sort", Args: []string{file}})
	if err != nil {
		return "", err
	}
	defer terminal.Release()
	exit, err := terminal.Wait()
	if err != nil {
		return "", err
	}
	if exit.ExitCode == nil || *exit.ExitCode != 0 {
		return "", errors.New("sort failed")
	}
	state, err := terminal.State()
	if err != nil {
		return "", err
	}
	return state.Output, call.Complete()
}
