package tool

import (
	"fmt"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// Restricts reports whether a verdict is more than that no rule restricts something.
func Restricts(v acphost.Verdict) bool {
	return v.Effect == acphost.EffectDeny || v.Effect == acphost.EffectAsk
}

// using is the use of a file or directory, in the words of rules.
func using(kind acp.ToolKind, p place) acphost.Request { return Using(kind, p.path, p.real) }

// Using is the use of a file or directory, in the words of rules. Both of its names count: real is where links
// lead, or "".
func Using(kind acp.ToolKind, path, real string) acphost.Request {
	r := acphost.Request{Kind: string(kind), Paths: []string{path}}
	if real != path && real != "" {
		r.Paths = append(r.Paths, real)
	}
	return r
}

// freely reports whether a place may be read without a question: it is inside, and no rule is about reading it.
func freely(env Env, p place) bool {
	return p.inside && !Restricts(env.Judge(using(acp.ToolKindRead, p)))
}

// permitPlace asks for leave to read a place where that is needed: outside the session's directories,
// and where a rule wants it.
func (c *call) permitPlace(p place) error {
	if freely(c.env, p) {
		return nil
	}
	ask := acp.Permission{Title: "Read " + p.path + "?"}
	if !p.inside {
		ask.Description = "It is outside the directories of this session."
	}
	return c.permit(Question{
		Permission: ask, About: AboutRead, Always: "reading outside the session's directories",
		Request: using(acp.ToolKindRead, p),
	})
}

// permitSearch asks for leave to search the session's directories where a rule wants it, and returns the verdict.
// Rules about files in there are for those files.
func (c *call) permitSearch() (acphost.Verdict, error) {
	req := acphost.Request{Title: "Search", Kind: string(acp.ToolKindSearch), Paths: c.env.Roots()}
	v := c.env.Judge(req)
	if !Restricts(v) {
		return v, nil
	}
	return v, c.permit(Question{
		Permission: acp.Permission{Title: "Search the files of the session?"},
		About:      AboutSearch, Always: "searching", Request: req,
	})
}

// permitSearchOf asks for leave to search a place where a rule wants it: one about all searches of the session, or
// one about that place.
func (c *call) permitSearchOf(p place) error {
	var all acphost.Verdict
	if p.inside {
		var err error
		if all, err = c.permitSearch(); err != nil {
			return err
		}
	}
	req := using(acp.ToolKindSearch, p)
	if v := c.env.Judge(req); !Restricts(v) || Restricts(all) && v.Rule == all.Rule { // which was asked
		return nil
	}
	return c.permit(Question{
		Permission: acp.Permission{Title: "Search " + p.shown + "?"},
		About:      AboutSearch, Always: "searching", Request: req,
	})
}

// left are files that a search has left out since rules are about them.
type left struct{ denied, asked int }

// leavesOut reports whether rules keep a search from a file, by its path and where that leads. What they
// want asked is not asked in a search, for there may be thousands of files: unless it was asked, these are left out.
func (s *scope) leavesOut(path, real string, asked bool) bool {
	if !s.rules {
		return false
	}
	for _, kind := range []acp.ToolKind{acp.ToolKindRead, acp.ToolKindSearch} {
		effect := s.env.Judge(Using(kind, path, real)).Effect
		if effect != acphost.EffectDeny && (asked || effect != acphost.EffectAsk) {
			continue
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if effect == acphost.EffectDeny {
			s.left.denied++
		} else {
			s.left.asked++
		}
		return true
	}
	return false
}

// says returns what was left out, as sentences with a space before each.
func (l left) says(asks string) string {
	var b strings.Builder
	if l.denied > 0 {
		fmt.Fprintf(&b, " Left out, since a rule forbids reading: %s.", prose.Count(l.denied, "file"))
	}
	if l.asked > 0 {
		fmt.Fprintf(&b, " Left out, since a rule wants you to be asked, as %s does: %s.", asks, prose.Count(l.asked, "file"))
	}
	return b.String()
}
