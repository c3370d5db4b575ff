package conformance

import (
	"strings"

	"github.com/goacp/acp/internal/pattern"
)

// maxPages bounds how many pages of a list are asked for.
const maxPages = 100

// list asks for all sessions, page by page, with members of the params. Beyond
// maxPages pages the rest is not looked at.
func (h *host) list(p *player, s *step) error {
	var all []string
	seen := map[string]bool{}
	cursor := []string(nil)
	for range maxPages {
		c, err := p.call("", "session/list", s.val.With(p.known, cursor...))
		if err != nil {
			return err
		}
		result, refused, err := p.outcome(c)
		switch {
		case err != nil:
			return err
		case refused != nil:
			return failed("session/list was answered with the error %s, expected a result", describeError(refused))
		}
		sessions := result.Get("sessions")
		if sessions == nil || sessions.Kind != pattern.Array {
			return failed("session/list was answered without a list of sessions")
		}
		for _, e := range sessions.Elems {
			all = append(all, e.Text)
		}
		next := result.Get("nextCursor")
		if next == nil || next.Text == "null" {
			break
		}
		if seen[next.Text] {
			return failed("session/list leads back to the page of nextCursor %s", clip(next.Text, 100))
		}
		seen[next.Text] = true
		cursor = []string{"cursor", next.Text}
	}
	v, err := pattern.Parse("[" + strings.Join(all, ",") + "]")
	if err != nil {
		return failed("the list of sessions: %v", err)
	}
	p.known[s.name] = v
	return nil
}
