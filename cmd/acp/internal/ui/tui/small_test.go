package tui

import (
	"fmt"
	"slices"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp/cmd/acp/internal/backend"
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
