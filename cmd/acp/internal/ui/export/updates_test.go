package export

import (
	"bytes"
	"maps"
	"testing"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/internal/updatetest"
	"github.com/goacp/acp/transcript"
)

// TestUpdates: every update is exported, or listed here.
func TestUpdates(t *testing.T) {
	ignored := map[string]string{
		"state_update":              "a document has no state; a turn that has not ended is an entry",
		"available_commands_update": "what could be typed is not part of what was said",
		"config_option_update":      "settings are not part of what was said",
	}
	aside := map[string]string{
		"prompt_suggestions_update": "what could be said is not part of what was said",
		"cursor_update":             "what could be done is not part of what was said",
		"replay_complete":           "a document has no replay",
	}
	maps.Copy(ignored, aside)
	for _, f := range []Format{Markdown, HTML, Text} {
		t.Run(string(f), func(t *testing.T) {
			updatetest.Check(t, ignored, func(t *testing.T, us []acpv2.SessionUpdate) string {
				c := transcript.New(transcript.Config{})
				for _, u := range us {
					c.Apply(u)
				}
				var b bytes.Buffer
				if err := Write(&b, f, store.Session{}, c.Snapshot()); err != nil {
					t.Fatal(err)
				}
				return b.String()
			})
		})
	}
	t.Run(string(JSON), func(t *testing.T) {
		updatetest.Check(t, aside, func(t *testing.T, us []acpv2.SessionUpdate) string {
			c := transcript.New(transcript.Config{})
			for _, u := range us {
				c.Apply(u)
			}
			var b bytes.Buffer
			if err := Write(&b, JSON, store.Session{}, c.Snapshot()); err != nil {
				t.Fatal(err)
			}
			return b.String()
		})
	})
}
