package exec

import (
	"bytes"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/internal/updatetest"
	"github.com/goacp/acp/transcript"
)

// reported returns what acp exec writes of updates.
func reported(t *testing.T, o Options, us []acpv2.SessionUpdate) string {
	t.Helper()
	var b bytes.Buffer
	o.App = &app.App{Out: &b, Err: &b, ErrTerminal: true}
	r := newReport(&o)
	r.main = "s"
	c := transcript.New(transcript.Config{})
	for _, u := range us {
		change := c.Apply(u)
		r.writeChanges("s", c.Snapshot(), []transcript.Change{change})
	}
	return b.String()
}

// TestUpdatesJSON: every update makes a line that says what it brought.
func TestUpdatesJSON(t *testing.T) {
	ignored := map[string]string{
		"prompt_suggestions_update": "nobody is there to whom prompts could be suggested",
		"cursor_update":             "is no part of a conversation: see TestCursorsJSON",
		"replay_complete":           "the history is not written",
	}
	updatetest.Check(t, ignored, func(t *testing.T, us []acpv2.SessionUpdate) string {
		text := reported(t, Options{JSON: true}, us)
		for line := range strings.Lines(text) {
			if !strings.Contains(line, `"sessionUpdate":`) && !strings.Contains(line, `"text":`) && !strings.Contains(line, `"data":`) {
				t.Errorf("says nothing: %s", line)
			}
		}
		return text
	})
}

// TestCursorsJSON: what the agent says of a cursor makes a line.
func TestCursorsJSON(t *testing.T) {
	var b bytes.Buffer
	r := newReport(&Options{JSON: true, App: &app.App{Out: &b, Err: &b}})
	r.main = "s"
	const cursor = `{"sessionUpdate":"cursor_update","cursorId":"c","anchor":{"type":"user_message","messageId":"m","position":"before"}}`
	r.writeChanges("s", transcript.New(transcript.Config{}).Snapshot(), []transcript.Change{
		{Op: transcript.OpSession, Field: backend.FieldCursor, ID: "c", Text: cursor},
	})
	if want := `{"type":"update","session":"s","op":"session","field":"cursor","value":` + cursor + "}\n"; b.String() != want {
		t.Errorf("%s, want %s", &b, want)
	}
}

// TestUpdatesText: every update is written on a terminal, or listed here.
func TestUpdatesText(t *testing.T) {
	const notAsked = "whoever writes a prompt on the command line wants the answer, what tools do, and warnings"
	ignored := map[string]string{
		"user_message_chunk":        "the user has typed it",
		"user_message":              "the user has typed it",
		"state_update":              "the end of the program says as much",
		"plan_update":               notAsked,
		"plan_removed":              notAsked,
		"available_commands_update": notAsked,
		"config_option_update":      notAsked,
		"session_info_update":       notAsked,
		"usage_update":              "counts for --max-cost, and is not written",
		"compaction_update":         notAsked,
		"compaction_summary_chunk":  notAsked,
		"subagent_update":           notAsked,
		"prompt_suggestions_update": notAsked,
		"cursor_update":             notAsked,
		"replay_complete":           notAsked,
		"session_message":           "what agents say to each other is theirs",
		"session_message_chunk":     "what agents say to each other is theirs",
	}
	updatetest.Check(t, ignored, func(t *testing.T, us []acpv2.SessionUpdate) string {
		return reported(t, Options{Show: ShowAll}, us)
	})
}

// TestUpdatesAlone: nothing is written of a turn that is left to a gateway, also if it says something before that is known.
func TestUpdatesAlone(t *testing.T) {
	us := []acpv2.SessionUpdate{&acpv2.AgentMessageChunk{MessageID: "m", Content: acp.Text("hello")}}
	for _, json := range []bool{false, true} {
		if got := reported(t, Options{JSON: json, NoWait: true}, us); got != "" {
			t.Errorf("%q", got)
		}
		if got := reported(t, Options{JSON: json}, us); got == "" {
			t.Error("nothing is written of a turn that is waited for")
		}
	}
}
