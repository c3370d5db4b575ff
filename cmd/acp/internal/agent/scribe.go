package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
	"github.com/goacp/acp/cmd/acp/internal/withheld"
	"github.com/goacp/acp/jsonrpc"
)

// A scribe speaks in a turn. What it sends is recorded by the hook of that name, in the
// order in which it is sent; failures to send are kept by the turn. Its methods may be
// called from any goroutine.
type scribe struct {
	s   *session
	out *acp.Output
	ctx context.Context
	// rank is what the sender of the prompt is in the session of a gateway: see [ownmeta.Rank].
	rank string
	// model says that a model uses the tools, and not the user.
	model bool
	// hangUp ends a turn whose client has gone; nil if it ends by itself.
	hangUp func()
}

// send sends an update. Text that follows begins a new message.
func (w *scribe) send(u acp.SessionUpdate) {
	w.out.EndMessage()
	_ = w.out.Send(u)
}

// say sends text of the answer, think a thought. Consecutive texts are one message.
func (w *scribe) say(text string)   { _ = w.out.Say(text) }
func (w *scribe) think(text string) { _ = w.out.Think(text) }

// The methods of [tool.Env].

func (w *scribe) Output() *acp.Output { return w.out }

// Drafted returns nil: only models write their input bit by bit.
func (w *scribe) Drafted() *acp.ToolCallHandle { return nil }

func (w *scribe) Session() *acp.AgentSession { return w.s.acp }
func (w *scribe) Jobs() *tool.Jobs           { return &w.s.jobs }
func (w *scribe) Web() *http.Client          { return w.s.agent.web }
func (w *scribe) MCP() *tool.Servers         { return &w.s.servers }

func (w *scribe) Skill(name string) (dir string, ok bool) {
	for _, s := range w.s.skills() {
		if s.Name == name {
			return s.Dir, true
		}
	}
	return "", false
}

// Background tells the client what the session does by itself. A failure means that the
// session is closed.
func (w *scribe) Background() { _ = w.s.acp.SetBackground(w.s.jobs.Running()...) }

// Files reconciles files if the client lends its own.
func (w *scribe) Files() *tool.Files {
	if c := w.s.acp.Conn().CapabilitiesV1(); c == nil || !c.FS.ReadTextFile {
		return nil
	}
	return &w.s.files
}

// Served returns nil: people see the files as they are.
func (w *scribe) Served() *served.Record { return nil }

func (w *scribe) Keys() *withheld.Keys { return w.s.agent.keys }

func (w *scribe) Cwd() string     { return w.s.acp.Cwd() }
func (w *scribe) Roots() []string { return w.s.roots() }

func (w *scribe) Ignores() bool {
	_, ignore := w.s.currentMode()
	return ignore
}

func (w *scribe) Judge(req acphost.Request) acphost.Verdict { return w.s.judge(req) }

// Harmless asks the rules as well: a file that they keep from being read may be in a directory that is read as a whole.
func (w *scribe) Harmless(req acphost.Request) acphost.Harmless {
	p := w.s.agent.policy
	if p == nil || p.Commands == nil {
		p = &acphost.Policy{Commands: shellline.Parser{}}
	}
	return p.Harmless(req, w.s.roots()...)
}

func (w *scribe) Restricted() bool { return w.s.restricted() }

// Intend keeps nothing: a command that the user has typed is not done again by itself.
func (w *scribe) Intend(tool.Intent) error { return nil }

func (w *scribe) SetPlan(plan []acp.PlanEntry) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.plan = plan
}

func (w *scribe) Hints() tool.Hints {
	return tool.Hints{
		ReadOn: func(path string, line uint32) string { return fmt.Sprintf("continue with `/read %s:%d-`", path, line) },
		ReadLine: func(line, column uint32) string {
			return fmt.Sprintf("`/run sed -n %dp FILE | cut -c %d-` shows more", line, column)
		},
		ReplaceAll: "use /edit! to replace all",
		Ignored:    "the option “Respect .gitignore”, switched off,",
		ReadAsks:   "/read",
	}
}

// rankOf returns what the sender of a prompt is in its session. Without a gateway that says so the client is the user.
func rankOf(t *acp.Turn) string {
	var says ownmeta.Rank
	if ownmeta.Read(t.Meta(), &says) && says.Rank != "" {
		return says.Rank
	}
	return forOwners
}

// reaches reports whether the sender of the prompt is what a role says, or more.
func (w *scribe) reaches(role string) bool {
	ranks := []string{forPrompters, forApprovers, forOwners}
	return slices.Index(ranks, w.rank) >= slices.Index(ranks, role) && slices.Contains(ranks, role)
}

// Permit asks whether the call may be made, unless the mode or an earlier answer says so
// and no rule wants it asked. For somebody who may not approve neither says so: those who may are asked each time.
func (w *scribe) Permit(ctx context.Context, call *acp.ToolCallHandle, q tool.Question) error {
	s, p := w.s, q.Permission
	v := s.judge(q.Request)
	if v.Effect == acphost.EffectDeny && !s.agent.told {
		return forbidden(v)
	}
	req := q.Request
	req.Cwd = s.acp.Cwd()
	name := req.Protects()
	guards := name != "" // neither the mode auto nor an earlier answer is about these files
	s.mu.Lock()
	mode := s.mode
	answer, known := s.answers[q.About]
	s.mu.Unlock()
	once := !w.reaches(forApprovers)
	switch {
	case mode == modeReadOnly && q.About != tool.AboutRead && q.About != tool.AboutSearch && !q.Harmless:
		return &tool.Refusal{
			Why:  "Not done: the session is in read-only mode. Change that with /mode ask.",
			Told: "Not done: the session is in read-only mode, in which you change nothing, and run only commands that are known to only read. The user can change the mode.",
		}
	case tool.Restricts(v), once:
	case mode == modeFull, q.Harmless:
		return nil
	case guards:
	case mode == modeAuto && q.About == tool.AboutEdit, known && answer:
		return nil
	case known:
		return &tool.Refusal{
			Why:  "Not done: you said to always reject this in the session. Choosing a mode, for example with /mode ask, forgets that.",
			Told: "Not done: the user said no to all of this kind in the session. Do it in another way, or say what is left.",
		}
	}
	if guards {
		p.Description = strings.TrimSpace(p.Description + " Other programs go by " + prose.Inline(name) + ", so this is asked each time.")
	}
	p.Options = []acp.PermissionOption{
		{OptionID: "allow_once", Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce},
		{OptionID: "allow_always", Name: "Always allow " + q.Always + " in this session", Kind: acp.PermissionOptionKindAllowAlways},
		{OptionID: "reject_once", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
		{OptionID: "reject_always", Name: "Always reject " + q.Always + " in this session", Kind: acp.PermissionOptionKindRejectAlways},
	}
	if tool.Restricts(v) || once || guards { // the next time it has to be asked again
		p.Options = []acp.PermissionOption{p.Options[0], p.Options[2]}
	}
	d, err := call.Ask(p)
	switch {
	case v.Effect == acphost.EffectDeny && ctx.Err() == nil:
		return forbidden(v)
	case ctx.Err() != nil:
		return tool.ErrCancelled
	case errors.Is(err, jsonrpc.ErrClosed) && w.hangUp != nil:
		w.hangUp()
		return tool.ErrCancelled
	case err != nil:
		return &tool.Refusal{Why: "Not done: the question whether it may be done could not be asked: " + prose.Error(err)}
	case d.Option.Kind == acp.PermissionOptionKindAllowAlways, d.Option.Kind == acp.PermissionOptionKindRejectAlways:
		s.mu.Lock()
		if s.mode == mode { // a new mode has forgotten the answers
			s.answers[q.About] = d.Allowed
		}
		s.mu.Unlock()
	}
	switch {
	case d.Allowed:
		return nil
	case d.Cancelled:
		return &tool.Refusal{
			Why:  "Not done: the question was dismissed without an answer.",
			Told: "Not done: the user did not answer whether it may be done. Do something else, or say what is left.",
		}
	}
	return &tool.Refusal{
		Why: "Not done: you rejected it.", Told: "Not done: the user said no. Do something else, or ask what the user wants instead.",
	}
}

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

// forbidden is why something is not done that a rule denies.
func forbidden(v acphost.Verdict) *tool.Refusal {
	why := "Not done: the rule " + prose.Inline(prose.OneLine(v.Rule, 200)) + " forbids it."
	return &tool.Refusal{Why: why, Told: why + " Do something else, or say what is left."}
}
