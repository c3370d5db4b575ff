//go:build unix

package page

import (
	"fmt"
	"testing"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/updatetest"
	"github.com/goacp/acp/transcript"
)

// TestUpdates: the page draws every update, or it is listed here.
func TestUpdates(t *testing.T) {
	_, tb := serve(t, Options{})
	tb.Until(`document.readyState === 'complete'`)
	tb.Eval(`import('/tap.js').then((m) => { window.drawTranscript = (t) => {
		const page = new m.Transcript();
		page.node = document.createElement('div');
		page.list = [{id: 's', changes: 1}];
		page.chosen = 's';
		page.have.set('s', {changes: 1, transcript: t});
		page.show();
		const main = page.node.querySelector('.conversation');
		return main.innerText + [...main.querySelectorAll('details')].map((d) => d.textContent).join(' ');
	}; })`, nil)
	ignored := map[string]string{
		"available_commands_update": "the frames have them",
		"config_option_update":      "the frames have them",
		"session_info_update":       "the list of sessions has the title",
		"prompt_suggestions_update": "the frames have them",
		"cursor_update":             "the frames have them",
		"replay_complete":           "the frames have them",
	}
	updatetest.Check(t, ignored, func(t *testing.T, us []acpv2.SessionUpdate) string {
		c := transcript.New(transcript.Config{})
		for _, u := range us {
			c.Apply(u)
		}
		data, err := c.Snapshot().MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var text string
		tb.Eval(fmt.Sprintf(`window.drawTranscript(%s)`, data), &text)
		return text
	})
}
