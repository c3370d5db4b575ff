package plain

import (
	"bytes"
	"testing"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/internal/updatetest"
	"github.com/goacp/acp/transcript"
)

// TestUpdates: every update is written, or listed here.
func TestUpdates(t *testing.T) {
	ignored := map[string]string{
		"user_message_chunk":        "the user has typed it",
		"user_message":              "the user has typed it",
		"state_update":              "the prompt says that it is the user's turn",
		"tool_call_content_chunk":   "of a call its title and how it ends are written",
		"available_commands_update": "/help lists them",
		"config_option_update":      "/set lists them",
		"session_info_update":       "the title is of use in lists of sessions",
		"usage_update":              "/usage writes it",
		"compaction_summary_chunk":  "what the agent remembers is its own",
		"prompt_suggestions_update": "lines that are written cannot be withdrawn",
		"cursor_update":             "nothing can be forked here",
		"replay_complete":           "the history is there",
		"session_message":           "what agents say to each other is theirs",
		"session_message_chunk":     "what agents say to each other is theirs",
	}
	updatetest.Check(t, ignored, func(t *testing.T, us []acpv2.SessionUpdate) string {
		var b bytes.Buffer
		s := newShow(&app.App{Out: &b})
		s.main, s.thoughts = "s", true
		c := transcript.New(transcript.Config{})
		for _, u := range us {
			change := c.Apply(u)
			s.writeChanges("s", c.Snapshot(), []transcript.Change{change})
		}
		s.endLine()
		return b.String()
	})
}
