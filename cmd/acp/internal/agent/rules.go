package agent

import (
	"fmt"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
)

// judge returns what the rules say about something that the session is about to do.
func (s *session) judge(req acphost.Request) acphost.Verdict {
	p := s.agent.policy
	if p == nil {
		return acphost.Verdict{}
	}
	req.Session, req.Cwd = string(s.acp.ID()), s.acp.Cwd()
	return p.Judge(req)
}

// restricted reports whether there are rules that deny or ask.
func (s *session) restricted() bool { return s.agent.policy != nil && s.agent.policy.Restricts() }

// using is the use of a file or directory, in the words of rules. Both of its names count.
func using(kind acp.ToolKind, p place) acphost.Request {
	r := acphost.Request{Kind: string(kind), Paths: []string{p.path}}
	if p.real != p.path && p.real != "" {
		r.Paths = append(r.Paths, p.real)
	}
	return r
}

// forbidden is why something is not done that a rule denies.
func forbidden(v acphost.Verdict) *refusal {
	return &refusal{"Not done: the rule " + inline(oneLine(v.Rule, 200)) + " forbids it."}
}

// says reports whether a verdict is more than that no rule restricts something.
func says(v acphost.Verdict) bool {
	return v.Effect == acphost.EffectDeny || v.Effect == acphost.EffectAsk
}

// permitPlace asks for leave to read a place where that is needed: outside the session's directories,
// and where a rule wants it.
func (c *call) permitPlace(p place) error {
	req := using(acp.ToolKindRead, p)
	if p.inside && !says(c.w.s.judge(req)) {
		return nil
	}
	ask := acp.Permission{Title: "Read " + p.path + "?"}
	if !p.inside {
		ask.Description = "It is outside the directories of this session."
	}
	return c.permit(askRead, "reading outside the session's directories", ask, req)
}

// permitSearch asks for leave to search the session's directories where a rule wants it. Rules about
// files in there are for those files.
func (c *call) permitSearch() error {
	s := c.w.s
	req := acphost.Request{Title: "Search", Kind: string(acp.ToolKindSearch), Paths: s.roots()}
	if !says(s.judge(req)) {
		return nil
	}
	return c.permit(askSearch, "searching", acp.Permission{Title: "Search the files of the session?"}, req)
}

// left are files that a search has left out since rules are about them.
type left struct{ denied, asked int }

// leavesOut reports whether rules keep a search from a file. What they want asked is not asked in a
// search: there may be thousands of files.
func (s *search) leavesOut(path string) bool {
	if s.judge == nil {
		return false
	}
	real, err := realPath(path)
	if err != nil {
		real = path
	}
	for _, kind := range []acp.ToolKind{acp.ToolKindRead, acp.ToolKindSearch} {
		switch s.judge(using(kind, place{path: path, real: real})).Effect {
		case acphost.EffectDeny:
			s.left.denied++
			return true
		case acphost.EffectAsk:
			s.left.asked++
			return true
		}
	}
	return false
}

// String says what was left out, as sentences with a space before each.
func (l left) String() string {
	var b strings.Builder
	if l.denied > 0 {
		fmt.Fprintf(&b, " Left out, since a rule forbids reading: %s.", count(l.denied, "file"))
	}
	if l.asked > 0 {
		fmt.Fprintf(&b, " Left out, since a rule wants you to be asked, as /read does: %s.", count(l.asked, "file"))
	}
	return b.String()
}
