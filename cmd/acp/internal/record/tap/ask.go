package tap

import (
	"bytes"
	"encoding/json"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/told"
	"github.com/goacp/acp/internal/translate"
)

// permission returns the verdict on a permission request, and what the client's answer will decide.
// A request that cannot be read goes to the client, which will refuse it.
func (g *Guard) permission(e *envelope) (Verdict, *inquiry) {
	r, v1, ok := g.request(e)
	if !ok {
		return pass, nil
	}
	d, asked := g.decide(r)
	x := entry(e, string(d.Effect), string(d.By))
	x.describe(r)
	x.Rule = cut(d.Rule)
	if asked {
		x.Decision, x.By = DecisionAsk, string(acphost.ByDefault)
		if d.Rule != "" {
			x.By = string(acphost.ByRule)
		}
		g.audit(x)
		return pass, g.inquiryOf(r)
	}
	if d.Effect == acphost.EffectAllow && g.isCancelled(r.Session) {
		// The user has cancelled the turn (S40, S42).
		d = acphost.Decision{Effect: acphost.EffectDeny}
		x.Decision, x.By = DecisionDeny, ByCancelled
	}
	if d.Option != nil {
		x.OptionID, x.OptionKind = cut(string(d.Option.OptionID)), cut(string(d.Option.Kind))
	}
	g.audit(x)
	v := Verdict{Note: "permission: " + x.Decision + " by " + x.By}
	if x.Rule != "" {
		v.Note += " " + x.Rule
	}
	if e.id != nil {
		v.Answer = answer(e.id, d.Option, v1)
	}
	return v, nil
}

// answer returns the answer to a permission request; nil stands for “cancelled”.
func answer(id []byte, option *acpv2.PermissionOption, v1 bool) []byte {
	outcome := acpv2.RequestPermissionOutcome(&acpv2.CancelledPermissionOutcome{})
	if option != nil {
		outcome = &acpv2.SelectedPermissionOutcome{OptionID: option.OptionID}
	}
	if v1 {
		return success(id, &acpv1.RequestPermissionResponse{Outcome: translate.PermissionOutcomeToV1(outcome)})
	}
	return success(id, &acpv2.RequestPermissionResponse{Outcome: outcome})
}

func (g *Guard) isCancelled(session string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, is := g.cancelled.get(session)
	return is
}

// request returns a permission request in the words of rules, with what is known of the tool call.
func (g *Guard) request(e *envelope) (r acphost.Request, v1, ok bool) {
	var p struct {
		ToolCall json.RawMessage `json:"toolCall"`
	}
	if json.Unmarshal(e.params, &p) != nil {
		return r, false, false
	}
	g.mu.Lock()
	v1 = g.version == "1" || g.version == "" && p.ToolCall != nil
	g.mu.Unlock()
	w, old := new(acpv2.RequestPermissionRequest), new(acpv1.RequestPermissionRequest)
	if v1 {
		if old.UnmarshalJSON(e.params) != nil {
			return r, v1, false
		}
		*w = translate.PermissionFromV1(*old)
	} else if w.UnmarshalJSON(e.params) != nil {
		return r, v1, false
	}
	cwd := ""
	if in := g.roomIn(string(w.SessionID)); in != nil {
		cwd = in.cwd
	}
	req := &acp.PermissionRequest{Title: w.Title, Description: w.Description, Subject: w.Subject, Options: w.Options}
	calls := g.callsOf(string(w.SessionID))
	switch subject := req.Subject.(type) {
	case *acpv2.ToolCallPermissionSubject:
		if v1 {
			calls.See(old)
		} else {
			calls.See(w)
		}
		about := *subject
		about.ToolCall = *calls.Asked(&subject.ToolCall, !v1)
		req.Subject, req.ToolCall = &about, &about.ToolCall
		req.Earlier, req.EarlierMore = calls.Earlier(about.ToolCall.ToolCallID)
		if v1 {
			req.Title = about.ToolCall.Title.Or(req.Title)
		}
	case *acpv2.CommandPermissionSubject:
		req.ToolCall = calls.Known(subject.ToolCallID)
		req.Earlier, req.EarlierMore = calls.Earlier(subject.ToolCallID)
	}
	return acphost.RequestIn(string(w.SessionID), cwd, req), v1, true
}

// callsOf returns what is known of the tool calls of a session.
func (g *Guard) callsOf(session string) *told.Calls {
	g.mu.Lock()
	defer g.mu.Unlock()
	calls, ok := g.calls.get(session)
	if !ok {
		calls = new(told.Calls)
		g.calls.put(session, calls)
	}
	return calls
}

func (x *Entry) describe(r acphost.Request) {
	x.Session, x.ToolCallID, x.ToolName, x.Title = cut(r.Session), cut(r.ToolCallID), cut(r.ToolName), cut(r.Title)
	x.Kind, x.Cwd = cut(r.Kind), cut(r.Cwd)
	switch command, certain := r.Shows(); {
	case certain:
		x.Command = cut(command)
	case command != "":
		x.Shown = cut(command)
	default:
		x.CommandUnknown = true
	}
	for _, p := range r.Paths[:min(len(r.Paths), maxEntryPaths)] {
		x.Paths = append(x.Paths, cut(p))
	}
}

// update remembers what is reported of tool calls, and which sessions work for others.
func (g *Guard) update(e *envelope) {
	if bytes.Contains(e.params, []byte("tool_call")) {
		g.mu.Lock()
		v1 := g.version == "1" || g.version == ""
		g.mu.Unlock()
		one, two := new(acpv1.SessionNotification), new(acpv2.UpdateSessionNotification)
		if v1 && one.UnmarshalJSON(e.params) == nil {
			g.callsOf(string(one.SessionID)).See(one)
		} else if !v1 && two.UnmarshalJSON(e.params) == nil {
			g.callsOf(string(two.SessionID)).See(two)
		}
	}
	if !bytes.Contains(e.params, []byte("subagent_update")) {
		return
	}
	var p struct {
		SessionID string `json:"sessionId"`
		Update    struct {
			SessionUpdate string `json:"sessionUpdate"`
			SessionID     string `json:"sessionId"`
		} `json:"update"`
	}
	if json.Unmarshal(e.params, &p) != nil || p.Update.SessionUpdate != "subagent_update" || p.Update.SessionID == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r, ok := g.rooms.get(p.SessionID)
	if _, has := g.rooms.get(p.Update.SessionID); ok && !has {
		g.rooms.put(p.Update.SessionID, r) // it works where its parent does
	}
}
