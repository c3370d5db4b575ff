package acphost

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
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
	case *acp.ToolCallPermissionSubject:
		r.toolCall(&subject.ToolCall)
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
	for _, l := range call.Locations.Or(nil) {
		r.Paths = append(r.Paths, l.Path)
	}
	for _, c := range call.Content.Or(nil) {
		if d, ok := c.(*acp.Diff); ok {
			r.Paths = append(r.Paths, diffPaths(d)...)
		}
	}
	switch acp.ToolKind(r.Kind) {
	case acp.ToolKindExecute, acp.ToolKindOther, "":
		r.findCommand(call)
	}
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

// diffPaths are the files a diff is about.
func diffPaths(d *acp.Diff) (paths []string) {
	for _, c := range d.Changes {
		switch op := c.Operation.(type) {
		case *acpv2.DiffAdd:
			paths = append(paths, op.Path)
		case *acpv2.DiffDelete:
			paths = append(paths, op.Path)
		case *acpv2.DiffModify:
			paths = append(paths, op.Path)
		case *acpv2.DiffMove:
			paths = append(paths, op.OldPath, op.Path)
		case *acpv2.DiffCopy:
			paths = append(paths, op.OldPath, op.Path)
		}
	}
	return paths
}
