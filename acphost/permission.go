package acphost

import (
	"context"
	"encoding/json"

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
	return acp.Select(d.Option.OptionID), nil
}

// RequestOf puts a client's permission request into the words rules are made
// of. A command is only taken where it is certain: from a request that is about
// a command, or from the member command of what a tool that executes is given.
func RequestOf(req *acp.PermissionRequest) Request {
	r := Request{Title: req.Title, Description: req.Description, Options: req.Options}
	if s := req.Session; s != nil {
		r.Session, r.Cwd = string(s.ID()), s.Cwd()
	}
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
	if acp.ToolKind(r.Kind) != acp.ToolKindExecute {
		return
	}
	var input struct {
		Command *string `json:"command"`
		Cwd     *string `json:"cwd"`
	}
	if json.Unmarshal(call.RawInput, &input) != nil || input.Command == nil {
		return // an array, or another name: nobody knows what would be run
	}
	r.Command = *input.Command
	if input.Cwd != nil {
		r.Cwd = *input.Cwd
	}
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
