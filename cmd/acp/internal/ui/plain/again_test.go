package plain

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/transcript"
)

// TestWithdrawn: after a question that was withdrawn, the prompt is there again.
func TestWithdrawn(t *testing.T) {
	var out bytes.Buffer
	a := &app.App{In: strings.NewReader(""), Out: &out, InTerminal: true}
	c := &conversation{app: a, show: newShow(a), input: newInput(nil), host: new(backend.Host)}
	defer c.input.stop()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	l := &loop{c: c, ctx: t.Context(), leaving: true, question: &question{ctx: gone}}
	if err := l.next(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "The question was withdrawn.\n> " {
		t.Errorf("%q", got)
	}
	for in, want := range map[string]string{"root allowed: Run it?": "root allowed: Run it?", "root has answered": "root has answered."} {
		if got := sentence(in); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestInterruptedAgain: somebody who presses Ctrl-C twice at a gateway leaves, and its agent is not ended.
func TestInterruptedAgain(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		var out bytes.Buffer
		a := &app.App{In: strings.NewReader(""), Out: &out, InTerminal: terminal}
		c := &conversation{app: a, show: newShow(a), agent: roster.Agent{Gateway: true}} // without a host that could be killed
		l := &loop{c: c, ctx: t.Context(), running: true, cancels: 1}
		err := l.onInterrupt()
		if errors.Is(err, errLeft) != terminal || !terminal && exitcode.Of(err) != exitcode.Cancelled {
			t.Errorf("in a terminal %v: %v", terminal, err)
		}
	}
}

// TestBack: of a conversation that a gateway sends again, only what is new is written.
func TestBack(t *testing.T) {
	talk := func(updates ...acpv2.SessionUpdate) *transcript.Snapshot {
		c := transcript.New(transcript.Config{})
		for _, u := range updates {
			c.Apply(u)
		}
		return c.Snapshot()
	}
	you := func(id, text string) acpv2.SessionUpdate {
		return &acpv2.UserMessage{MessageID: acpv2.MessageID(id), Content: acpv2.Set([]acpv2.ContentBlock{acpv2.Text(text)})}
	}
	agent := func(id, text string) acpv2.SessionUpdate {
		return &acpv2.AgentMessageChunk{MessageID: acpv2.MessageID(id), Content: acpv2.Text(text)}
	}
	before := talk(you("1", "hi"), agent("2", "half "))
	for _, tt := range []struct {
		name string
		now  *transcript.Snapshot
		want string
	}{
		{"nothing is new", before, "Back.\n"},
		{"the rest of a message", talk(you("1", "hi"), agent("2", "half a line\n"), agent("3", "more\n")), "Back.\na line\nmore\n"},
		{"another turn", talk(you("1", "hi"), agent("2", "half a line\n"), you("4", "again"), agent("5", "yes\n")), "Back.\na line\nYou: again\nyes\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			s := newShow(&app.App{Out: &out})
			s.back("s", before, tt.now)
			s.endLine()
			if got := out.String(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
