package tui

import (
	"fmt"
	"slices"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/transcript"
)

// TestStderrInOrder: the lines of standard error come in the order in which they were written.
func TestStderrInOrder(t *testing.T) {
	got := make(chan string)
	f := &front{send: func(msg tea.Msg) { got <- msg.(noteMsg).note.Text }}
	var want, have []string
	for i := range maxNotes {
		want = append(want, fmt.Sprint(i))
		f.note(backend.Note{Kind: backend.NoteStderr, Text: want[i]})
	}
	for range want {
		have = append(have, <-got)
	}
	if !slices.Equal(have, want) {
		t.Errorf("got %q", have)
	}
}

// TestBackgroundEnds: a command that no tool call shows is said to run in the background, too, until the
// agent ends.
func TestBackgroundEnds(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.said(&acpv2.TerminalUpdate{TerminalID: "t", Command: acpv2.Set("make serve")})
	r.wants("make serve · not finished")
	r.talk.runs = []*transcript.Terminal{r.talk.conv.Snapshot().Terminal("t")}
	r.said(&acpv2.IdleStateUpdate{})
	r.wants("make serve · running in the background", "1 in the background")
	r.send(endedMsg{r.m.attempt})
	r.wants("make serve · not finished")
	r.lacks("in the background")
}
