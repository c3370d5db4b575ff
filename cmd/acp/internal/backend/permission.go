package backend

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/grant"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/internal/patch"
)

// asks returns the policy with questions that go to the frontend. The policy itself is shared with
// others.
func (s *Session) asks() *acphost.Policy {
	if aside := s.host.cfg.Front.Aside; aside != nil && s.host.cfg.Agent.Gateway && aside() {
		return &acphost.Policy{AskTimeout: patience, Ask: func(ctx context.Context, _ acphost.Request) (acp.PermissionOptionID, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}}
	}
	ask := s.host.cfg.Front.Ask
	if ask == nil {
		return s.host.policy
	}
	p := s.host.policy.With(func(ctx context.Context, req acphost.Request) (acp.PermissionOptionID, error) {
		return ask(ctx, s, req)
	})
	if s.host.cfg.Agent.Gateway { // others may answer, and the gateway knows how long they may take
		p.AskTimeout = patience
	}
	return p
}

// patience is how long a question of a gateway waits here: longer than there.
const patience = 7 * 24 * time.Hour

// requestPermission is the hook of the client.
func (h *Host) requestPermission(ctx context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
	s := h.session(req.Session)
	r := acphost.RequestOf(req)
	s.isAsked(acp.ToolCallID(r.ToolCallID), false)
	about := grant.ActsOf(h.policy, r) // before the decision: a link that is changed meanwhile leads to another act
	d := s.decide(ctx, req, r)
	allowed := d.Effect == acphost.EffectAllow && d.Option != nil
	s.isAsked(acp.ToolCallID(r.ToolCallID), allowed)
	always := allowed && d.Option.Kind == acp.PermissionOptionKindAllowAlways
	keeps := allowed && s.host.keeps(r, d)
	s.mu.Lock()
	if s.turns > 0 {
		for _, what := range about {
			switch {
			case allowed:
				s.granted.Allow(what, always || isReading(what))
			case d.Effect == acphost.EffectDeny && d.By != acphost.ByCancelling:
				s.granted.Deny(what, isReading(what))
			}
			if keeps {
				s.granted.Keep(what)
			}
		}
	}
	s.mu.Unlock()
	if d.Option == nil {
		return acp.CancelPermission(), nil
	}
	return acp.SelectPermission(d.Option.OptionID), nil
}

// keeps reports whether the user has allowed something for the session: by an answer of the
// agent's, or by one of this program's, which the policy remembers.
func (h *Host) keeps(r acphost.Request, d acphost.Decision) bool {
	return d.By == acphost.ByUser && h.policy.Remember != acphost.RememberNever &&
		(d.Option.Kind == acp.PermissionOptionKindAllowAlways || h.policy.Recalled(r) == acphost.EffectAllow)
}

// isAsked records that permission for a tool call is, or was, asked for through this program.
func (s *Session) isAsked(id acp.ToolCallID, allowed bool) {
	if id == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.acts.of(id); x != nil {
		if x.consent = consentDenied; allowed {
			x.consent = consentGiven
		}
	}
}

// decide records the question, has it decided, and records the answer.
func (s *Session) decide(ctx context.Context, req *acp.PermissionRequest, r acphost.Request) acphost.Decision {
	h := s.host
	began := time.Now()
	req, r = s.ownRequest(req, r)
	r.Of = req
	q := &question{req: req.V2, ref: rand.Text()[:12]}
	s.heard.Store(true)
	s.mu.Lock()
	s.pieces.End()
	s.mu.Unlock()
	asked := askedItem(q, began)
	s.journal.await(asked)
	d := s.asks().Decide(ctx, r)
	chosen := acpv2.RequestPermissionOutcome(&acpv2.CancelledPermissionOutcome{})
	if d.Option != nil {
		chosen = &acpv2.SelectedPermissionOutcome{OptionID: d.Option.OptionID}
	}
	// Another session may have replaced this one meanwhile, without the question.
	now := s.actual()
	if now != s {
		now.journal.put(asked)
	}
	q.rule = d.By == acphost.ByRule || d.By == acphost.ByDefault
	if counts := h.elsewhere.answered(askName(req.Meta), now, q); counts != nil {
		chosen, q.rule = counts, false
	}
	answer := answerItem(q, chosen)
	answer.done = make(chan struct{})
	now.journal.put(answer)
	now.order.Unlock()
	now.journal.wait(answer.done) // the agent must not act on a decision that could be lost
	if f := h.cfg.Front.Decided; f != nil {
		f(s, acphost.NewRecord(began, r, d), r)
	}
	return d
}

// askedItem is a question for a journal.
func askedItem(q *question, at time.Time) item {
	it := item{asked: q}
	request, err := q.req.AppendJSON(nil)
	if err != nil {
		return it
	}
	if data, err := json.Marshal(records.Asked{ID: q.ref, Title: q.req.Title, Request: request}); err == nil {
		it.event = store.Event{At: at, Kind: journal.KindAsked, Data: data}
	}
	return it
}

// ownOptions are the answers to questions that this program asks on its own account.
func ownOptions() []acp.PermissionOption {
	return []acp.PermissionOption{
		{OptionID: "allow", Name: "Allow once", Kind: acp.PermissionOptionKindAllowOnce},
		{OptionID: "allow-always", Name: "Allow always", Kind: acp.PermissionOptionKindAllowAlways},
		{OptionID: "reject", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
		{OptionID: "reject-always", Name: "Reject always", Kind: acp.PermissionOptionKindRejectAlways},
	}
}

// callID returns a new id for a tool call that stands for something this program does.
func (h *Host) callID(what string) acp.ToolCallID {
	return acp.ToolCallID("acp-" + what + "-" + rand.Text()[:8])
}

// maxDiffed bounds, in bytes, the files whose change is shown as a patch.
const maxDiffed = 4 << 20

// writeDiff shows what will be written.
func writeDiff(path, text string) acp.ToolCallContent {
	f := patch.File{OldPath: path, NewPath: path, New: text}
	d := &acp.Diff{Changes: []acp.DiffChange{{Operation: &acpv2.DiffModify{Path: path}}}}
	old, err := readSmall(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.Changes[0].Operation = &acpv2.DiffAdd{Path: path}
		f.OldPath = ""
	case err != nil:
		return d
	}
	if len(text) <= maxDiffed {
		f.Old = old
		d.Patch = &acpv2.DiffPatch{Format: acpv2.DiffPatchFormatGitPatch, Text: patch.Git(f)}
	}
	return d
}

// readSmall reads a file that is small enough to be shown.
func readSmall(path string) (string, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !fi.Mode().IsRegular() || fi.Size() > maxDiffed {
		return "", errors.New("too large to be shown")
	}
	b, err := os.ReadFile(path)
	return string(b), err
}
