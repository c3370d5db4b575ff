package backend

import (
	"testing"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/updatetest"
)

// TestUpdates: every update begins a conversation in the store, or is listed here as one
// that an agent sends of a session in which nothing was said.
func TestUpdates(t *testing.T) {
	silent := map[string]string{
		"state_update":              "a session may be idle before anything is said",
		"available_commands_update": "agents announce commands when the session opens",
		"config_option_update":      "agents announce options when the session opens",
		"session_info_update":       "a title alone is nothing to keep",
		"usage_update":              "an empty context alone is nothing to keep",
		"prompt_suggestions_update": "a suggestion alone is nothing to keep",
		"cursor_update":             "a position alone is nothing to keep",
		"replay_complete":           "the end of a replay alone is nothing to keep",
	}
	updatetest.Check(t, silent, func(t *testing.T, us []acpv2.SessionUpdate) string {
		text := ""
		for _, u := range us {
			if said(&item{update: u}) {
				text += "said "
			}
		}
		return text
	})
}
