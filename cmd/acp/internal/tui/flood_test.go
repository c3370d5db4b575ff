package tui

import (
	"fmt"
	"testing"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// TestFlood gives the model 50,000 updates, some hundreds at a time, as the host
// does, and has it draw after each. How long that takes is told, not tested.
func TestFlood(t *testing.T) {
	kinds := map[string]func(i int) acpv2.SessionUpdate{
		"one message": func(i int) acpv2.SessionUpdate {
			return &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text(fmt.Sprintf("word%d of *many* ", i))}
		},
		"paragraphs": func(i int) acpv2.SessionUpdate {
			return &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text(fmt.Sprintf("word%d\n\n", i))}
		},
		"messages": func(i int) acpv2.SessionUpdate {
			return &acpv2.AgentMessageChunk{MessageID: acpv2.MessageID(fmt.Sprint(i)), Content: acpv2.Text(fmt.Sprintf("word%d", i))}
		},
	}
	for name, update := range kinds {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 100, 40, nil).start()
			const all, batch = 50_000, 250
			var worst, total time.Duration
			for i := 0; i < all; i += batch {
				var changes []transcript.Change
				for k := range batch {
					changes = append(changes, r.talk.conv.Apply(update(i+k)))
				}
				r.m.front.changed(r.talk.id, changes)
				began := time.Now()
				r.m.Update(changedMsg{})
				r.m.View()
				d := time.Since(began)
				worst, total = max(worst, d), total+d
			}
			r.wants(fmt.Sprintf("word%d", all-1))
			t.Logf("a frame took %v at most, %v on average", worst, total/(all/batch))
			r.keys("home")
			for range 10_000 { // the rest of the layout
				if !r.m.stale {
					break
				}
				r.send(layoutMsg{})
			}
			r.wants("word0")
		})
	}
}
