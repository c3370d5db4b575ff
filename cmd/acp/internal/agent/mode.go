package agent

import (
	"slices"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// aboutModes is what a model gets to know of each mode. A conversation is searched for these texts to see what it knows.
var aboutModes = map[string]string{
	modeAsk:      "(Mode of the session: ask. Reading in its directories, and commands that only read, need no permission; the user is asked before anything else.)",
	modeAuto:     "(Mode of the session: auto. Reading and changing files in its directories, and commands that only read, need no permission; the user is asked before anything else.)",
	modeFull:     "(Mode of the session: full. Nothing needs permission, unless a rule says so.)",
	modeReadOnly: "(Mode of the session: read-only. You can read, search, and run commands that only read. Everything else is refused: find out and explain instead.)",
}

// untold returns what the model does not know of the mode, or "". It is for the end of the conversation: what
// was said before stays as it is, since providers keep that.
func (s *session) untold() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	about := aboutModes[s.mode]
	for _, m := range slices.Backward(s.talk.messages) {
		if m.Role != model.User {
			continue
		}
		for _, p := range slices.Backward(m.Parts) {
			if t, ok := p.(*model.Text); ok && isAboutMode(t.Text) {
				if t.Text == about {
					return ""
				}
				return about
			}
		}
	}
	return about
}

func isAboutMode(text string) bool {
	for _, about := range aboutModes {
		if text == about {
			return true
		}
	}
	return false
}
