package tap

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/cmd/acp/internal/grant"
	"github.com/goacp/acp/jsonrpc"
)

// Bounds of the questions that a guard asks the client.
const (
	maxAsked  = 64        // that have no answer yet
	maxHeld   = 64 << 20  // bytes of the calls that wait for these answers, together
	maxAnswer = 64 << 10  // of an answer: anything longer is not an answer
	maxShown  = 256 << 10 // bytes of a file to be written, beyond which the question does not show it
)

// A held is a request of the agent that waits for the answer to a question.
type held struct {
	line    []byte // as the agent wrote it, without its end
	id      []byte
	entry   Entry
	session string
	act     string       // what it does, as in grant.Set
	rule    string       // that wants it to be asked about
	leads   grant.Target // where it leads, as of the question
}

// size returns about how many bytes it holds.
func (h *held) size() int { return len(h.line) + len(h.id) + len(h.session) + len(h.act) }

// errAsked says that a rule requires asking the user.
func errAsked(why string) error {
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "Permission denied").WithData(map[string]string{"reason": why})
}

// question is the verdict on what a rule requires asking about: the client is asked for permission
// in the agent's name, and the request waits for the answer. A decision about reading a file counts
// for the rest of the turn, since files are read in pieces. If the user has decided about the same
// act when the agent asked, there is no second question.
func (g *Guard) question(e *envelope, x *Entry, r acphost.Request, rule string) Verdict {
	x.Decision, x.By, x.Rule = DecisionAsk, string(acphost.ByRule), cut(rule)
	h := &held{line: e.frame, id: e.id, session: r.Session, rule: rule, act: g.actOf(r), leads: grant.TargetOf(g.policy, r)}
	g.mu.Lock()
	defer g.mu.Unlock()
	var nothing grant.Set
	set, ok := g.granted.get(h.session)
	if _, cancelled := g.cancelled.get(h.session); !ok || cancelled {
		set = &nothing
	}
	switch {
	case set.Take(h.act):
		x.Decision, x.By = DecisionPass, ByUser
		g.audit(x)
		return pass
	case set.TakeDenied(h.act):
		x.By, x.Reason = ByUser, "rejected by the user"
		return g.refuse(e, x, errAsked(x.Reason))
	case e.id == nil || g.version != "1":
		x.Reason = "a rule wants it to be asked, which the tap cannot do here"
		return g.refuse(e, x, errAsked(x.Reason))
	case len(g.held) >= maxAsked:
		x.Reason = fmt.Sprintf("%d questions wait for an answer", maxAsked)
		return g.refuse(e, x, errAsked(x.Reason))
	case g.heldBytes+h.size() > maxHeld:
		x.Reason = fmt.Sprintf("the calls that wait for an answer would take more than %d bytes together", maxHeld)
		return g.refuse(e, x, errAsked(x.Reason))
	}
	id := "acp-tap-" + rand.Text()
	frame, err := questionFrame(id, e, r)
	if err != nil {
		return g.refuse(e, x, err)
	}
	g.audit(x)
	h.line, h.id, h.entry = slices.Clone(h.line), slices.Clone(h.id), *x
	if g.held == nil {
		g.held = map[string]*held{}
	}
	g.held[id] = h
	g.heldBytes += h.size()
	g.asks.Store(int64(len(g.held)))
	return Verdict{Ask: frame, Note: e.method + " asked about: " + x.Rule}
}

// questionFrame is the question.
func questionFrame(id string, e *envelope, r acphost.Request) ([]byte, error) {
	title := r.Command
	if len(r.Paths) > 0 {
		title = strings.ToUpper(r.Kind[:1]) + r.Kind[1:] + " " + r.Paths[len(r.Paths)-1]
	}
	call := map[string]any{"toolCallId": id, "title": title, "kind": r.Kind, "status": "pending"}
	if len(r.Paths) > 0 {
		var locations []map[string]string
		for _, p := range r.Paths {
			locations = append(locations, map[string]string{"path": p})
		}
		call["locations"] = locations
	}
	if r.Command != "" {
		call["rawInput"] = map[string]string{"command": r.Command, "cwd": r.Cwd}
	}
	if r.Kind == "edit" {
		var w acpv1.WriteTextFileRequest
		if w.UnmarshalJSON(e.params) == nil && len(w.Content) <= maxShown {
			call["content"] = []map[string]any{{"type": "diff", "path": r.Paths[0], "newText": w.Content}}
		}
	}
	return json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "method": methodPermission,
		"params": map[string]any{
			"sessionId": r.Session, "toolCall": call,
			"options": []map[string]string{
				{"optionId": "allow", "name": "Allow", "kind": "allow_once"}, {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
			},
		},
	})
}

// asking reports whether a question has no answer yet.
func (g *Guard) asking() bool { return g.asks.Load() > 0 }

// Settle examines a line of the client. It reports whether that answers a question of the guard's,
// which the agent must not see: then release goes to the client, or reply to the agent.
func (g *Guard) Settle(line []byte) (is bool, release, reply []byte) {
	if isText(line) || !g.asking() {
		return false, nil, nil
	}
	e := parse(line)
	var id string
	if e.fault != "" || e.method != "" || json.Unmarshal(e.id, &id) != nil {
		return false, nil, nil
	}
	h := g.takeHeld(id)
	if h == nil {
		return false, nil, nil
	}
	var result struct {
		Outcome struct {
			Outcome, OptionID string
		}
	}
	selected := !e.failed && json.Unmarshal(e.result, &result) == nil && result.Outcome.Outcome == "selected"
	x := h.entry
	x.Time, x.By = time.Now(), ByUser
	err := errAsked("rejected by the user")
	if allowed := selected && result.Outcome.OptionID == "allow"; allowed {
		err = g.releasable(h, &x)
	} else {
		x.Reason = "rejected by the user"
	}
	if selected && x.By == ByUser && grant.Is(grant.SortRead, h.act) {
		g.mu.Lock()
		if set := g.decided(h.session); err == nil {
			set.Allow(h.act, true)
		} else {
			set.Deny(h.act, true)
		}
		g.mu.Unlock()
	}
	if err == nil {
		x.Decision, x.Reason = DecisionPass, ""
		g.audit(&x)
		return true, h.line, nil
	}
	g.lands(h.id)
	v := g.refuse(&envelope{id: h.id, method: h.entry.Method}, &x, err)
	return true, nil, v.Answer
}

// takeHeld returns the call that waits for the answer to a question, or nil, and no longer holds
// it.
func (g *Guard) takeHeld(id string) *held {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.held[id]
	if h == nil {
		return nil
	}
	delete(g.held, id)
	g.heldBytes -= h.size()
	g.asks.Store(int64(len(g.held)))
	return h
}

// releasable decides again about a call that the user has allowed: meanwhile the turn may have been
// cancelled, and the call's paths may lead elsewhere. An error is the agent's answer.
func (g *Guard) releasable(h *held, x *Entry) error {
	if g.isCancelled(h.session) {
		x.By, x.Reason = ByCancelled, "the turn was cancelled"
		return errAsked(x.Reason)
	}
	e := parse(h.line)
	now := entry(&e, DecisionPass, ByRoots)
	r, err := g.act(&e, now)
	if err == nil {
		err = g.denied(now, r)
	}
	if err != nil {
		x.By, x.Rule, x.Reason = now.By, now.Rule, now.Reason
		return err
	}
	v := g.policy.Judge(r)
	if grant.TargetOf(g.policy, r) != h.leads || v.Effect == acphost.EffectAsk && v.Rule != h.rule {
		x.By, x.Reason = ByRoots, "it has come to lead somewhere else since the user was asked"
		return errAsked(x.Reason)
	}
	return nil
}
