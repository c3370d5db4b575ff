package tap

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
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
	var p map[string]json.RawMessage
	if json.Unmarshal(e.params, &p) != nil || p == nil {
		return r, false, false
	}
	g.mu.Lock()
	v1 = g.version == "1" || g.version == "" && p["toolCall"] != nil
	g.mu.Unlock()
	w := new(acpv2.RequestPermissionRequest)
	if v1 {
		p["toolCall"] = g.recall(p["sessionId"], p["toolCall"])
		old := new(acpv1.RequestPermissionRequest)
		if reread(p, old) != nil {
			return r, v1, false
		}
		*w = translate.PermissionFromV1(*old)
	} else {
		var subject map[string]json.RawMessage
		if json.Unmarshal(p["subject"], &subject) == nil && subject["toolCall"] != nil {
			subject["toolCall"] = g.recall(p["sessionId"], subject["toolCall"])
			if all, err := json.Marshal(subject); err == nil {
				p["subject"] = all
			}
		}
		if reread(p, w) != nil {
			return r, v1, false
		}
	}
	cwd := ""
	if in := g.roomIn(string(w.SessionID)); in != nil {
		cwd = in.cwd
	}
	r = acphost.RequestIn(string(w.SessionID), cwd, &acp.PermissionRequest{
		Title: w.Title, Description: w.Description, Subject: w.Subject, Options: w.Options,
	})
	return r, v1, true
}

func reread(members map[string]json.RawMessage, v json.Unmarshaler) error {
	text, err := json.Marshal(members)
	if err != nil {
		return err
	}
	return v.UnmarshalJSON(text)
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

// told are the fields of a tool call that are remembered; the last is left out first.
var told = []string{"kind", "name", "title", "locations", "rawInput", "content"}

// update remembers what is reported of tool calls, and which sessions work for others.
func (g *Guard) update(e *envelope) {
	isCall, isChild := bytes.Contains(e.params, []byte("tool_call")), bytes.Contains(e.params, []byte("subagent_update"))
	if !isCall && !isChild {
		return
	}
	var p struct {
		SessionID json.RawMessage            `json:"sessionId"`
		Update    map[string]json.RawMessage `json:"update"`
	}
	if json.Unmarshal(e.params, &p) != nil {
		return
	}
	var kind, parent, child, id string
	_ = json.Unmarshal(p.Update["sessionUpdate"], &kind)
	switch kind {
	case "tool_call", "tool_call_update":
		if json.Unmarshal(p.Update["toolCallId"], &id) == nil {
			g.remember(callName(p.SessionID, id), p.Update)
		}
	case "subagent_update":
		if json.Unmarshal(p.SessionID, &parent) != nil || json.Unmarshal(p.Update["sessionId"], &child) != nil {
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		_, has := g.rooms.get(child)
		if r, ok := g.rooms.get(parent); ok && !has {
			g.rooms.put(child, r) // it works where its parent does
		}
	}
}

func callName(session json.RawMessage, id string) string {
	var s string
	_ = json.Unmarshal(session, &s)
	return s + "\x00" + id
}

// remember keeps what is reported of a tool call, as far as there is room.
func (g *Guard) remember(name string, update map[string]json.RawMessage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was, _ := g.calls.get(name)
	call, size := toolCall{}, 0
	for _, member := range told {
		v := update[member]
		if v == nil || string(v) == "null" {
			v = was[member]
		}
		if v != nil && size+len(v) <= maxCall {
			call[member] = slices.Clone(v)
			size += len(v)
		}
	}
	g.calls.put(name, call)
}

// recall completes a tool call with what was reported of it before.
func (g *Guard) recall(session, call json.RawMessage) json.RawMessage {
	var said map[string]json.RawMessage
	var id string
	if json.Unmarshal(call, &said) != nil || json.Unmarshal(said["toolCallId"], &id) != nil {
		return call
	}
	g.mu.Lock()
	was, _ := g.calls.get(callName(session, id))
	g.mu.Unlock()
	for member, v := range was {
		if s := said[member]; s == nil || string(s) == "null" {
			said[member] = v
		}
	}
	all, err := json.Marshal(said)
	if err != nil {
		return call
	}
	return all
}
