package exec

import (
	"bytes"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/transcript"
)

// TestTurnByPosition: everything that comes after the beginning of the turn is part of it, whatever message it is of, and
// nothing that came before.
func TestTurnByPosition(t *testing.T) {
	say := func(id acp.MessageID, text string) acp.SessionUpdate {
		return &acp.AgentMessageChunk{MessageID: id, Content: acp.Text(text)}
	}
	for name, batch := range map[string]int{"one by one": 1, "together": 100, "first of all": 1} {
		t.Run(name, func(t *testing.T) {
			want := "one, \ntwo, \nthree\n"
			var out, errs bytes.Buffer
			r := newReport(&Options{App: &app.App{Out: &out, Err: &errs}})
			r.main = "s"
			r.follows()
			r.place.own = "mine"
			conv := transcript.New(transcript.Config{})
			var changes []transcript.Change
			updates := []acp.SessionUpdate{
				say("old", "of another turn, "),
				&acp.UserMessage{MessageID: "mine", Content: acp.Set([]acp.ContentBlock{acp.Text("go")})},
				say("new", "one, "), say("old", "two, "), say("new", "three"),
			}
			if name == "first of all" {
				updates, want = []acp.SessionUpdate{updates[1], say("new", "one")}, "one\n"
			}
			for _, u := range updates {
				changes = append(changes, conv.Apply(u))
				if len(changes) == batch {
					r.writeChanges("s", conv.Snapshot(), changes)
					changes = nil
				}
			}
			r.writeChanges("s", conv.Snapshot(), changes)
			if err := r.finish(nil, nil, nil); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
