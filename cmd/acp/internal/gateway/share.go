package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/jsonrpc"
)

// The roles of a user with whom a session is shared. Each includes those before it. What a device may do is a bound in
// any case.
const (
	RoleNone     = "none"     // it is not shared
	RoleViewer   = "viewer"   // read
	RolePrompter = "prompter" // send prompts, and cancel one's own
	RoleApprover = "approver" // answer the agent's questions, change options
	RoleOwner    = "owner"    // share, delete, cancel what others have sent
)

// shareRoles are the roles, from the least.
var shareRoles = []string{RoleViewer, RolePrompter, RoleApprover, RoleOwner}

// ShareMethod shares a session with a user, or ends that, and returns with whom it is shared then. Only owners may
// call it.
var ShareMethod = jsonrpc.Method[ShareRequest, ShareAnswer]{Name: ownmeta.Method + "share"}

// A ShareRequest says with whom a session is shared. Without a user nothing is changed.
type ShareRequest struct {
	SessionID acp.SessionID `json:"sessionId"`
	User      string        `json:"user,omitempty"`
	Role      string        `json:"role,omitempty"` // instead of the one before; [RoleNone] ends it
}

// A ShareAnswer has all with whom a session is shared, by name.
type ShareAnswer struct {
	Owner  string        `json:"owner"`
	Shares []SharedRight `json:"shares"`
}

// A SharedRight is what a user may do in a session of somebody else.
type SharedRight struct {
	User string `json:"user"`
	Role string `json:"role"`
}

// shareRecord says that the role of a user has changed.
type shareRecord struct {
	User string `json:"user"`
	Role string `json:"role"`
	By   string `json:"by"`
}

// lookUp returns a session that a client may see, and who the client is in it. A session of somebody else that is not
// shared with the client's user is not there.
func (g *Gateway) lookUp(ctx context.Context, id acp.SessionID) (Who, engine.Session, error) {
	who := g.who(ctx)
	info, err := g.cfg.Log.Session(ctx, string(id))
	if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrInvalid) {
		return Who{}, info, acp.SessionNotFound(id)
	}
	if err == nil {
		err = g.stand(ctx, &who, &info)
	}
	if err != nil {
		return Who{}, engine.Session{}, err
	}
	return who, info, nil
}

// stand makes who what the client is in a session: it has its own rights in a session of its user, and in another one
// at most those of the role with which it is shared. It fails if the client may not see the session.
func (g *Gateway) stand(ctx context.Context, who *Who, info *engine.Session) error {
	var shares []engine.Share
	if info.Owner != who.User {
		var err error
		if shares, err = g.cfg.Log.Shares(ctx, info.ID); err != nil {
			return err
		}
	}
	return who.stand(info, shares)
}

// stand is [Gateway.stand] for those who know with whom the session is shared.
func (w *Who) stand(info *engine.Session, shares []engine.Share) error {
	if w.User == "" || w.Agent != nil && !w.Agent(info.Agent) || w.Session != nil && !w.Session(info.ID) {
		return acp.SessionNotFound(acp.SessionID(info.ID))
	}
	if w.standing = RoleOwner; info.Owner == w.User {
		w.owner = info.Owner
		return nil
	}
	i := slices.IndexFunc(shares, func(s engine.Share) bool { return s.User == w.User })
	if i < 0 || !slices.Contains(shareRoles, shares[i].Role) {
		return acp.SessionNotFound(acp.SessionID(info.ID))
	}
	role := slices.Index(shareRoles, shares[i].Role)
	w.Rights &^= [...]Rights{MayPrompt | MayApprove, MayApprove, 0, 0}[role]
	w.owner, w.standing, w.Role = info.Owner, shares[i].Role, ""
	return nil
}

// isNotFound reports whether a client may not see a session.
func isNotFound(err error) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && e.Code == jsonrpc.CodeResourceNotFound
}

// owns reports whether the client may do with the session what only owners may.
func (w *Who) owns() bool { return w.may(MayPrompt) && w.standing == RoleOwner }

// canceller returns in whose name the client cancels the turn that runs.
func (w *Who) canceller() string {
	if w.owns() {
		return w.owner
	}
	return w.User
}

// entitled returns who the client is in its session now. Its rights may have changed since it came, if it is a session
// of somebody else.
func (w *watcher) entitled(ctx context.Context) (Who, error) {
	switch {
	case w.ctx.Err() != nil:
		return Who{}, acp.SessionNotFound(acp.SessionID(w.id))
	case w.who.owner == w.who.User:
		return w.who, nil // nobody can change it
	}
	who, _, err := w.g.lookUp(ctx, acp.SessionID(w.id))
	return who, err
}

// now returns who the client is in its session, as far as is known without asking the database.
func (w *watcher) now() *Who {
	if who := w.changed.Load(); who != nil {
		return who
	}
	return &w.who
}

// shared is called with a record that says that somebody's role has changed. If the client has none any more, it is sent
// nothing more.
func (w *watcher) shared(data []byte) error {
	var r shareRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if r.User != w.who.User || w.who.owner == w.who.User {
		return nil
	}
	who, err := w.entitled(w.ctx) // the record may be an old one
	switch {
	case err == nil:
		w.changed.Store(&who)
		w.g.present.changed(w.id)
		w.mu.Lock()
		p, sent := w.at, w.sent
		w.mu.Unlock()
		for _, a := range p.questions(sent) {
			w.ask(a, a.seq)
		}
		return nil
	case isNotFound(err):
		err = w.session.Notice(acp.NoticeSeverityWarning, "This session is not shared with you any more.", "")
	}
	w.cancel() // also if it is not known
	return err
}

// share serves [ShareMethod].
func (g *Gateway) share(ctx context.Context, p *ShareRequest) (*ShareAnswer, error) {
	who, info, err := g.lookUp(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	if !who.owns() || !who.may(MayApprove) {
		return nil, who.errRole("share this session")
	}
	if p.Role == RoleOwner && !who.may(MayGrant) {
		return nil, who.errRole("make somebody an owner of this session")
	}
	if p.User != "" {
		if err := g.setShare(ctx, &who, &info, p); err != nil {
			return nil, err
		}
	}
	shares, err := g.cfg.Log.Shares(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	res := &ShareAnswer{Owner: info.Owner, Shares: []SharedRight{}}
	for _, s := range shares {
		res.Shares = append(res.Shares, SharedRight(s))
	}
	return res, nil
}

// setShare stores a role and writes it down in the session, so that whoever has it open learns it.
func (g *Gateway) setShare(ctx context.Context, who *Who, info *engine.Session, p *ShareRequest) error {
	role := p.Role
	switch {
	case p.User == info.Owner:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the session belongs to %s", p.User)
	case role == RoleNone:
		role = ""
	case !slices.Contains(shareRoles, role):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no role %q: none, viewer, prompter, approver, owner", p.Role)
	}
	err := g.cfg.Log.Share(ctx, info.ID, engine.Share{User: p.User, Role: role})
	switch {
	case errors.Is(err, engine.ErrTooMany):
		return &jsonrpc.Failure{Message: "the session is shared with too many users", Reason: "shares"}
	case errors.Is(err, engine.ErrInvalid):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
	case err != nil:
		return err
	}
	r := &shareRecord{User: p.User, Role: p.Role, By: who.User}
	if err := g.apply(ctx, p.SessionID, change{Share: r}); err != nil {
		return err
	}
	if g.cfg.Audit.Shared != nil {
		g.cfg.Audit.Shared(r.By, info.ID, r.User, r.Role)
	}
	g.changed(info.ID)
	return nil
}
