package acp

import (
	"encoding/json"
	"testing"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/updatetest"
)

// TestHistoryUpdates: every update is replayed, or listed here as momentary.
func TestHistoryUpdates(t *testing.T) {
	momentary := map[string]string{
		"state_update":              "says what the session does now",
		"notice":                    "is for the moment",
		"usage_update":              "says how full the context is now",
		"available_commands_update": "the agent announces its commands again when the session resumes",
		"prompt_suggestions_update": "a session begins with none",
		"replay_complete":           "each replay ends with its own",
		"config_option_update":      "the answer that resumes the session has the options",
	}
	updatetest.Check(t, momentary, func(t *testing.T, us []acpv2.SessionUpdate) string {
		var h history
		for _, u := range us {
			h.add(u)
		}
		data, err := json.Marshal(h.all())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	})
}
