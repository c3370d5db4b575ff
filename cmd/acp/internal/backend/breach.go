package backend

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/grant"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// A Breach is something that the agent has done, or does, although a rule denies it.
type Breach struct {
	Request acphost.Request // what was done, as the agent reports it
	Rule    string          // the name of the rule
}

// Text says in one line what was done against which rule.
func (b Breach) Text() string {
	what := b.Request.Command
	if what == "" && len(b.Request.Paths) > 0 {
		what = b.Request.Kind + " " + b.Request.Paths[0]
	}
	if what == "" {
		what = b.Request.Title
	}
	return safetext.Line(what, maxNote/2) + ", forbidden by " + safetext.Line(b.Rule, maxNote/2)
}

// Unheld returns why rules cannot hold the agent, in a line for people. It returns "" if no rule
// denies or asks anything, and for agents of which only their behaviour shows it: see
// [Frontend.Unheld].
func (h *Host) Unheld() string {
	if h.cfg.Obeys || !h.policy.Restricts() || h.Conn().Version() == 1 {
		return ""
	}
	return safetext.Line(fmt.Sprintf("rules cannot hold %s: it uses files and runs commands by itself; the rules decide only what it asks about", h.name()), maxNote)
}

// watched is what is known of what the agent does in a session, for the rules. The session's mutex
// guards it.
type watched struct {
	granted grant.Set // what was decided
	done
	acts   acts
	unheld bool // the user has learned that rules cannot hold the agent

	unasked string // that the agent asks for nothing in the mode that the session was opened in
}

// done is what this program has done and refused to do in the turns that run. The zero value is
// empty.
type done struct {
	through map[string]bool // what was done by us
	barred  map[string]bool // what we refused to do
	matched map[string]bool // what of that a tool call was matched with
}

// clear forgets everything.
func (g *done) clear() { *g = done{} }

func isReading(what string) bool { return grant.Is(grant.SortRead, what) }

// tellUnheld reports, once, why rules cannot hold the agent; "" reports nothing.
func (s *Session) tellUnheld(why string) {
	if why == "" {
		return
	}
	s.mu.Lock()
	told := s.unheld
	s.unheld = true
	s.mu.Unlock()
	if told {
		return
	}
	s.put(&acp.Notice{Severity: acpv2.NoticeSeverityWarning, Title: why})
	if f := s.host.cfg.Front.Unheld; f != nil {
		f(s, why)
	}
}

// observe compares what the agent reports of its tool calls with the rules.
func (s *Session) observe(u acp.SessionUpdate) {
	switch u.(type) {
	case *acp.ToolCallUpdate, *acp.ToolCallContentChunk, *acp.TerminalUpdate, *acpv2.TerminalOutputChunk:
	default:
		return
	}
	h := s.host
	rules := !h.cfg.Obeys && h.policy.Restricts()
	s.mu.Lock()
	x, done := s.acts.see(u)
	if r, ok := s.acts.alone(s, u); ok && rules {
		s.mu.Unlock()
		if id := u.(*acp.TerminalUpdate).TerminalID; !h.lends(id) {
			if b, _ := s.broken(r, new(act)); b != nil {
				s.tellBreach(*b)
			}
		}
		return
	}
	if x == nil || !done || x.over || !rules {
		s.mu.Unlock()
		return
	}
	ran := s.acts.hasRun(x)
	consent := x.consent
	// A call that is reported late is part of the history.
	late := s.turns == 0 && s.user && s.client != nil && s.client.Conn().Version() == 1
	requests := s.acts.requests(s, x)
	ended := x.ended()
	x.over = ended
	s.mu.Unlock()
	if late || consent == consentGiven || consent == consentDenied && !ran {
		return // agents also report calls as completed that were rejected
	}
	refused := false
	for _, r := range requests {
		b, was := s.broken(r, x)
		refused = refused || was
		if b != nil {
			s.mu.Lock()
			x.over = true
			s.mu.Unlock()
			s.tellBreach(*b)
			return
		}
	}
	if ended && consent == consentUnasked && !refused && slices.ContainsFunc(requests, s.byItself) {
		s.tellUnheld(safetext.Line(fmt.Sprintf("rules cannot hold %s: it does things without asking, first %s", h.name(), described(requests[0])), maxNote))
	}
}

// described names what was done.
func described(r acphost.Request) string {
	if r.Title != "" {
		return r.Title
	}
	return "a tool of the kind " + r.Kind
}

// broken returns the breach of a rule by something that was done, or nil. A rule that only may
// match does not count. Neither does what this program has refused to do, since it was not done.
func (s *Session) broken(r acphost.Request, x *act) (b *Breach, refused bool) {
	if !touches(r) {
		return nil, false
	}
	acts := s.host.carried(r)
	r.Shown = "" // what a text for people says is not certain
	v := s.host.policy.Judge(r)
	if v.Effect != acphost.EffectDeny || !v.Certain {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(acts) == 0 && x.refused || s.refused(acp.ToolKind(r.Kind), acts) {
		x.refused = true
		return nil, true
	}
	return &Breach{Request: r, Rule: v.Rule}, false
}

// refused reports whether this program has refused what a tool call is about. A call that does not
// say what it is about counts as one that was refused of its kind; each refusal explains one such
// call.
func (g *done) refused(kind acp.ToolKind, acts []string) bool {
	was := false
	for _, what := range acts {
		if g.barred[what] {
			grant.Note(&g.matched, what)
			was = true
		}
	}
	sort := ""
	switch kind {
	case acp.ToolKindRead, acp.ToolKindSearch:
		sort = grant.SortRead
	case acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove:
		sort = grant.SortWrite
	case acp.ToolKindExecute:
		sort = grant.SortRun
	}
	if was || len(acts) > 0 || sort == "" {
		return was
	}
	for what := range g.barred {
		if grant.Is(sort, what) && !g.matched[what] {
			grant.Note(&g.matched, what)
			return true
		}
	}
	return false
}

// carried returns what this program would have been asked to do if it were what has carried out a
// tool call. Agents may describe that less exactly than what is allowed.
func (h *Host) carried(r acphost.Request) []string {
	r.Paths = slices.Clone(r.Paths)
	for i, p := range r.Paths {
		if !filepath.IsAbs(p) && filepath.IsAbs(r.Cwd) {
			r.Paths[i] = filepath.Join(r.Cwd, p)
		}
	}
	acts := grant.ActsOf(h.policy, r)
	if k := acp.ToolKind(r.Kind); k == acp.ToolKindOther || k == "" {
		for _, p := range r.Paths {
			if filepath.IsAbs(p) {
				acts = append(acts, grant.Read(p), grant.Write(p))
			}
		}
	}
	return acts
}

// touches reports whether a tool call touches anything outside of the agent.
func touches(r acphost.Request) bool {
	switch acp.ToolKind(r.Kind) {
	case acp.ToolKindRead, acp.ToolKindSearch, acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove, acp.ToolKindExecute, acp.ToolKindFetch:
		return true
	}
	return len(r.Paths) > 0 || r.Command != "" || strings.HasPrefix(r.ToolName, "mcp__")
}

// byItself reports whether the agent did something without this program that rules are about.
func (s *Session) byItself(r acphost.Request) bool {
	if !touches(r) || !s.host.policy.RestrictsKind(acp.ToolKind(r.Kind)) {
		return false
	}
	acts := s.host.carried(r)
	s.mu.Lock()
	ours := slices.ContainsFunc(acts, func(what string) bool { return s.through[what] || s.barred[what] })
	var terminals []acp.TerminalID
	if x := s.acts.byID[acp.ToolCallID(r.ToolCallID)]; x != nil {
		terminals = x.terminals
	}
	s.mu.Unlock()
	// A command that this program runs is shown by its terminal.
	return !ours && !slices.ContainsFunc(terminals, s.host.lends)
}

// lends reports whether a terminal is one of ours.
func (h *Host) lends(id acp.TerminalID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.link != nil && h.link.tag != "" && strings.HasPrefix(string(id), h.link.tag)
}

// tellBreach adds a breach to the conversation and reports it to the frontend.
func (s *Session) tellBreach(b Breach) {
	h := s.host
	about := []string{}
	if b.Request.Command != "" {
		about = append(about, "command: "+b.Request.Command)
	}
	for _, p := range b.Request.Paths[:min(len(b.Request.Paths), 8)] {
		about = append(about, "file: "+filepath.Clean(p))
	}
	s.put(&acp.Notice{Severity: acpv2.NoticeSeverityError, Title: "A rule was broken: " + b.Text(), Description: safetext.Text(strings.Join(about, "\n"))})
	h.cfg.Logger.Warn("a rule was broken", "rule", b.Rule, "kind", b.Request.Kind)
	if f := h.cfg.Front.Broken; f != nil {
		f(s, b)
	}
}
