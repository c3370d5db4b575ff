package view

import (
	"strings"
	"testing"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/updatetest"
	"github.com/goacp/acp/transcript"
)

// notInTranscript lists the updates that change no entry.
var notInTranscript = map[string]string{
	"state_update":              "the line at the bottom shows it",
	"available_commands_update": "the list of commands shows it",
	"config_option_update":      "the line at the bottom and the list of options show it",
	"session_info_update":       "the title of the window shows it",
	"usage_update":              "the line at the bottom shows it",
	"prompt_suggestions_update": "no part of what was said",
	"cursor_update":             "says what can be done, not what was said",
	"replay_complete":           "the history is there",
}

// TestUpdates: every update changes what is drawn, or is listed as one that does not.
func TestUpdates(t *testing.T) {
	updatetest.Check(t, notInTranscript, func(t *testing.T, us []acpv2.SessionUpdate) string {
		c := transcript.New(transcript.Config{})
		for _, u := range us {
			c.Apply(u)
		}
		s := c.Snapshot()
		tr := New(plainTheme())
		tr.SetWidth(80)
		tr.Set(s, nil)
		for e := range s.Entries() {
			if !tr.Expanded(e.Seq()) {
				tr.Toggle(e.Seq())
			}
		}
		return strings.Join(drawAll(tr), "\n")
	})
}

// TestUpdatesText: every update changes what is searched, or is listed.
func TestUpdatesText(t *testing.T) {
	ignored := map[string]string{"plan_removed": "the steps of the plan stay to be found"}
	for kind, why := range notInTranscript {
		ignored[kind] = why
	}
	updatetest.Check(t, ignored, func(t *testing.T, us []acpv2.SessionUpdate) string {
		c := transcript.New(transcript.Config{})
		for _, u := range us {
			c.Apply(u)
		}
		s := c.Snapshot()
		tr := New(plainTheme())
		tr.Set(s, nil)
		var b strings.Builder
		for e := range s.Entries() {
			b.WriteString(tr.plainEntry(e, true))
		}
		return b.String()
	})
}
