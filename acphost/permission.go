package acphost

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/told"
)

// RequestPermission decides a request by the policy. It is made to be the hook
// of that name of an [acp.Client].
func (p *Policy) RequestPermission(ctx context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
	d := p.Decide(ctx, RequestOf(req))
	if d.Option == nil {
		return acp.CancelPermission(), nil
	}
	return acp.SelectPermission(d.Option.OptionID), nil
}

// RequestOf puts a client's permission request into the words rules are made of.
// How it finds what would be run, and what of that is certain, is said at
// [Request.Shows].
func RequestOf(req *acp.PermissionRequest) Request {
	if s := req.Session; s != nil {
		return RequestIn(string(s.ID()), s.Cwd(), req)
	}
	return RequestIn("", "", req)
}

// RequestIn is [RequestOf] for a request whose session this process does not
// hold, as that of a proxy: session is the session's id and cwd its working
// directory, absolute, or "" if it is not known.
func RequestIn(session, cwd string, req *acp.PermissionRequest) Request {
	r := Request{Session: session, Cwd: cwd, Title: req.Title, Description: req.Description, Options: req.Options, Of: req}
	switch subject := req.Subject.(type) {
	case *acp.CommandPermissionSubject:
		r.Kind, r.Command = string(acp.ToolKindExecute), subject.Command
		r.ToolCallID = string(subject.ToolCallID)
		if subject.Cwd != "" {
			r.Cwd = subject.Cwd
		}
		if req.ToolCall != nil {
			r.earlier(append(slices.Clone(req.Earlier), *req.ToolCall), req.EarlierMore)
		}
	case *acp.ToolCallPermissionSubject:
		r.toolCall(&subject.ToolCall)
		r.earlier(req.Earlier, req.EarlierMore)
	}
	seen := map[string]bool{}
	r.Paths = slices.DeleteFunc(r.Paths, func(path string) bool {
		was := seen[path]
		seen[path] = true
		return was
	})
	return r
}

// toolCall takes what is known of a tool call.
func (r *Request) toolCall(call *acp.ToolCallUpdate) {
	r.ToolCallID = string(call.ToolCallID)
	r.ToolName = call.Name.Or("")
	r.Kind = string(call.Kind.Or(""))
	r.RawInput = call.RawInput
	r.Paths = append(r.Paths, told.Files(call)...)
	switch acp.ToolKind(r.Kind) {
	case acp.ToolKindExecute, acp.ToolKindOther, "":
		r.findCommand(call)
	case acp.ToolKindRead, acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove:
		r.findPaths(call)
	}
}

// earlier adds what was said about the tool call before, of which nothing is taken back: what was announced
// may be done, whatever the request says.
func (r *Request) earlier(list []acp.ToolCallUpdate, more bool) {
	silent := isNothing(r.RawInput) && r.Command == ""
	for i := range slices.Backward(list) {
		was := Request{Cwd: r.Cwd}
		was.toolCall(&list[i])
		r.Paths = append(r.Paths, was.Paths...)
		if r.ToolName == "" {
			r.ToolName = was.ToolName
		}
		if isNothing(r.RawInput) {
			r.RawInput = was.RawInput
		}
		switch kind := acp.ToolKind(was.Kind); {
		case kind == "" || kind == acp.ToolKindOther || was.Kind == r.Kind:
		case r.Kind == "" || r.Kind == string(acp.ToolKindOther):
			r.Kind = was.Kind
		case kind != acp.ToolKindExecute: // which shows as a command
			r.EarlierKinds = append(r.EarlierKinds, was.Kind)
		}
		r.earlierCommand(&was, silent)
	}
	r.CommandUnknown = r.CommandUnknown || more
}

// earlierCommand adds a command that was announced. It is what would be run if the request itself is silent
// about that. If the request says another one, or something else, that is not certain, and rules that deny or
// ask are about both.
func (r *Request) earlierCommand(was *Request, silent bool) {
	if !was.runs() {
		return
	}
	now, certain := r.Shows()
	before, _ := was.Shows()
	begin := strings.TrimRight(strings.TrimSpace(before), "….") // people may have read the begin of it
	switch {
	case !certain && begins(before, now), now == "" && silent && r.Kind == execute:
		r.Cwd, r.Command, r.CommandUnknown, r.Shown = was.Cwd, was.Command, was.CommandUnknown, was.Shown
	case now != "" && strings.HasPrefix(now, begin):
	case now == "":
		r.Command, r.CommandUnknown, r.Shown = "", true, before
	default:
		r.Command, r.CommandUnknown, r.Shown = "", true, now+"\n"+before
	}
}

// begins reports whether a text that is for people is a command, or its begin with dots for the rest.
func begins(command, text string) bool {
	begin := strings.TrimRight(strings.TrimSpace(text), "….")
	return begin != "" && (strings.TrimSpace(text) == command || begin != text && strings.HasPrefix(command, begin))
}

// isNothing reports whether the input of a tool says nothing.
func isNothing(input json.RawMessage) bool {
	switch string(bytes.TrimSpace(input)) {
	case "", "null", "{}", "[]", `""`:
		return true
	}
	return false
}

// saysNothing reports whether a request does not say at all what would be done: no more than a title.
func (r *Request) saysNothing() bool {
	return (r.Kind == "" || r.Kind == string(acp.ToolKindOther)) && r.ToolName == "" && len(r.Paths) == 0 && !r.runs() && isNothing(r.RawInput)
}

// runs reports whether something would be run.
func (r *Request) runs() bool {
	return r.Kind == string(acp.ToolKindExecute) || strings.TrimSpace(r.Command) != "" || r.CommandUnknown
}

// commandUnknown reports whether something would be run and nobody knows what.
func (r *Request) commandUnknown() bool {
	return r.runs() && (r.CommandUnknown || strings.TrimSpace(r.Command) == "")
}

// pathsKnown reports whether there are paths, and nothing is missing of any.
func (r *Request) pathsKnown() bool {
	return len(r.Paths) > 0 && !slices.ContainsFunc(r.Paths, func(path string) bool {
		return path == "" || !filepath.IsAbs(path) && !filepath.IsAbs(r.Cwd)
	})
}

// Allow returns the id of the option that allows this once. It is "" if there is
// none, or more than one: nothing else is chosen in its place. Like the other
// choices it can be returned by [Policy.Ask], where "" approves nothing.
func (r *Request) Allow() acpv2.PermissionOptionID {
	return optionID(approval(r.Options, false))
}

// AllowAlways returns the id of the option that allows this and the like from
// now on or, without one, what Allow returns. Where agents do not offer that,
// [Policy.Always] remembers an answer all the same.
func (r *Request) AllowAlways() acpv2.PermissionOptionID {
	switch o := only(r.Options, acpv2.PermissionOptionKindAllowAlways); len(o) {
	case 0:
		return r.Allow()
	case 1:
		return o[0].OptionID
	}
	return ""
}

// Reject returns the id of an option that rejects this once, or "".
func (r *Request) Reject() acpv2.PermissionOptionID {
	for _, o := range only(r.Options, acpv2.PermissionOptionKindRejectOnce) {
		return o.OptionID
	}
	return ""
}

// RejectAlways returns the id of an option that rejects this and the like from
// now on or, without one, what Reject returns.
func (r *Request) RejectAlways() acpv2.PermissionOptionID {
	for _, o := range only(r.Options, acpv2.PermissionOptionKindRejectAlways) {
		return o.OptionID
	}
	return r.Reject()
}

func optionID(o *acpv2.PermissionOption) acpv2.PermissionOptionID {
	if o == nil {
		return ""
	}
	return o.OptionID
}
