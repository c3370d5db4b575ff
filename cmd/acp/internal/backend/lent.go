package backend

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/grant"
)

// A sessionKey is the key of the session in the context of calls to what is lent.
type sessionKey struct{}

// lentFiles are files; the session decides what may be read or written.
type lentFiles struct{ *acphost.Files }

// ReadTextFile implements [acp.FileSystem].
func (f lentFiles) ReadTextFile(ctx context.Context, req *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	return f.Files.ReadTextFile(context.WithValue(ctx, sessionKey{}, req), req)
}

// WriteTextFile implements [acp.FileSystem].
func (f lentFiles) WriteTextFile(ctx context.Context, req *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	return f.Files.WriteTextFile(context.WithValue(ctx, sessionKey{}, req), req)
}

// An errand is something that the agent asks this program to do.
type errand struct {
	what string // as in grant.Set
	req  acphost.Request
	free bool // it needs no permission unless a rule says otherwise
	// call returns the tool call that shows it, for the question about it.
	call func() acp.ToolCallUpdate
}

// permit decides about an errand: by the rules that deny, by an earlier decision about the same
// act, and otherwise by asking.
func (s *Session) permit(ctx context.Context, e errand) error {
	e.req.Session = string(s.ID())
	v := s.host.policy.Judge(e.req)
	if e.free && (v.Effect == "" || v.Effect == acphost.EffectAllow) {
		s.mu.Lock()
		grant.Note(&s.through, e.what)
		s.mu.Unlock()
		return nil
	}
	s.mu.Lock()
	had := v.Effect != acphost.EffectDeny && s.granted.Take(e.what)
	rejected := !had && s.granted.TakeDenied(e.what)
	switch {
	case had:
		grant.Note(&s.through, e.what)
	case rejected:
		grant.Note(&s.barred, e.what)
	}
	s.mu.Unlock()
	switch {
	case had:
		return nil
	case rejected:
		return fs.ErrPermission
	}
	return s.question(ctx, e)
}

// stands reports whether an errand that the user has allowed still leads where it did when they
// were asked, and no rule denies it by now.
func (s *Session) stands(e errand, was grant.Target) bool {
	p := s.host.policy
	return grant.TargetOf(p, e.req) == was && p.Judge(e.req).Effect != acphost.EffectDeny
}

// question asks about an errand. If a tool call of the agent's has it, the question is about that,
// so that one act is one call in the conversation; otherwise it is about a call that stands for the
// errand.
func (s *Session) question(ctx context.Context, e errand) error {
	call := e.call()
	own := true
	if id, shows := s.callFor(e); id != "" {
		call.ToolCallID, own = id, false
		if content := call.Content.Or(nil); !shows {
			for _, c := range content {
				s.put(&acp.ToolCallContentChunk{ToolCallID: id, Content: c})
			}
		}
	}
	kept := call
	if !own { // what the agent has said of it stays
		kept = acp.ToolCallUpdate{ToolCallID: call.ToolCallID}
	}
	r := e.req
	r.Options, r.ToolCallID = ownOptions(), string(call.ToolCallID)
	req := &acp.PermissionRequest{
		Session: s.Client(), Title: r.Title, Description: r.Description, Options: r.Options,
		Subject: &acp.ToolCallPermissionSubject{ToolCall: kept}, ToolCall: &call,
	}
	req.V2 = &acpv2.RequestPermissionRequest{SessionID: s.ID(), Title: req.Title, Description: req.Description, Subject: req.Subject, Options: req.Options}
	if !own {
		s.isAsked(call.ToolCallID, false)
	}
	was := grant.TargetOf(s.host.policy, e.req)
	d := s.decide(ctx, req, r)
	allowed := d.Effect == acphost.EffectAllow && d.Option != nil && s.stands(e, was)
	if !own {
		s.isAsked(call.ToolCallID, allowed)
	}
	keeps := allowed && s.host.keeps(r, d)
	s.mu.Lock()
	if allowed {
		grant.Note(&s.through, e.what)
		if keeps {
			s.granted.Keep(e.what)
		}
	} else {
		grant.Note(&s.barred, e.what)
	}
	if isReading(e.what) && s.turns > 0 && d.By != acphost.ByCancelling {
		// It may be read in many pieces.
		if allowed {
			s.granted.Allow(e.what, true)
		} else if d.Effect == acphost.EffectDeny {
			s.granted.Deny(e.what, true)
		}
	}
	s.mu.Unlock()
	var err error
	if !allowed {
		err = fs.ErrPermission
	}
	if own {
		s.settled(call.ToolCallID, err)
	}
	return err
}

// settled ends a tool call that stands for something this program did.
func (s *Session) settled(id acp.ToolCallID, err error) {
	status := acp.ToolCallStatusCompleted
	if err != nil {
		status = acp.ToolCallStatusFailed
	}
	s.put(&acp.ToolCallUpdate{ToolCallID: id, Status: acp.Set(status)})
}

// bothNames returns the names of a file: as it was spelled, and where that leads.
func bothNames(spelled, real string) []string {
	if spelled == real || spelled == "" {
		return []string{real}
	}
	return []string{spelled, real}
}

// permitRead is a hook of the files. Reading needs no permission unless a rule denies it or
// requires asking.
func (h *Host) permitRead(ctx context.Context, path string) error {
	if !h.policy.Restricts() {
		return nil
	}
	req, _ := ctx.Value(sessionKey{}).(*acpv1.ReadTextFileRequest)
	if req == nil {
		return fs.ErrPermission
	}
	r := acphost.Request{
		Session: string(req.SessionID), Title: "Read " + path, Kind: string(acp.ToolKindRead), Paths: bothNames(req.Path, path), Cwd: h.cfg.Cwd,
	}
	s, ok := h.Session(acp.SessionID(req.SessionID))
	if !ok { // it was not mentioned yet
		if v := h.policy.Judge(r); v.Effect == acphost.EffectDeny || v.Effect == acphost.EffectAsk {
			return fs.ErrPermission
		}
		return nil
	}
	r.Cwd = s.Cwd()
	return s.permit(ctx, errand{what: grant.Read(path), req: r, free: true, call: func() acp.ToolCallUpdate {
		return acp.ToolCallUpdate{
			ToolCallID: h.callID("read"), Title: acp.Set(r.Title), Kind: acp.Set(acp.ToolKindRead),
			Locations: acp.Set([]acp.ToolCallLocation{{Path: path}}),
		}
	}})
}

// permitWrite is a hook of the files.
func (h *Host) permitWrite(ctx context.Context, path string) error {
	req, _ := ctx.Value(sessionKey{}).(*acpv1.WriteTextFileRequest)
	if req == nil {
		return fs.ErrPermission
	}
	s, ok := h.Session(acp.SessionID(req.SessionID))
	if !ok {
		return fs.ErrPermission
	}
	r := acphost.Request{Title: "Write " + path, Kind: string(acp.ToolKindEdit), Paths: bothNames(req.Path, path), Cwd: s.Cwd()}
	return s.permit(ctx, errand{what: grant.Write(path), req: r, call: func() acp.ToolCallUpdate {
		return acp.ToolCallUpdate{
			ToolCallID: h.callID("write"), Title: acp.Set(r.Title), Kind: acp.Set(acp.ToolKindEdit),
			Locations: acp.Set([]acp.ToolCallLocation{{Path: path}}),
			Content:   acp.Set([]acp.ToolCallContent{writeDiff(path, req.Content)}),
		}
	}})
}

// permitCommand asks about a command of the agent's.
func (h *Host) permitCommand(ctx context.Context, req *acpv1.CreateTerminalRequest) error {
	s, ok := h.Session(acp.SessionID(req.SessionID))
	if !ok {
		return fs.ErrPermission
	}
	cwd := cmp.Or(req.Cwd, h.cfg.Cwd)
	line := acphost.TerminalCommand(req)
	input, err := json.Marshal(struct {
		Command string `json:"command"`
		Cwd     string `json:"cwd,omitempty"`
	}{line, cwd})
	if err != nil {
		return err
	}
	r := acphost.Request{Title: line, Kind: string(acp.ToolKindExecute), Command: line, Cwd: cwd, RawInput: input}
	return s.permit(ctx, errand{what: grant.Run(h.policy, line, cwd), req: r, call: func() acp.ToolCallUpdate {
		return acp.ToolCallUpdate{ToolCallID: h.callID("run"), Title: acp.Set(line), Kind: acp.Set(acp.ToolKindExecute), RawInput: input}
	}})
}
