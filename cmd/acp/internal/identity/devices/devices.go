// Package devices has the methods by which clients of a gateway manage its devices: owners those of their user, and
// every device itself. They are extensions of the protocol, described in docs/gateway.md.
package devices

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/jsonrpc"
)

// The methods.
var (
	// ListMethod returns the devices that the caller may revoke.
	ListMethod = jsonrpc.Method[ListRequest, ListAnswer]{Name: ownmeta.Method + "devices/list"}
	// PairMethod makes a ticket for a new device or, with an ID, says what has happened to one and decides about it.
	PairMethod = jsonrpc.Method[PairRequest, PairAnswer]{Name: ownmeta.Method + "devices/pair"}
	// RevokeMethod ends a device and, within a second, its connections.
	RevokeMethod = jsonrpc.Method[RevokeRequest, RevokeAnswer]{Name: ownmeta.Method + "devices/revoke"}
)

// A ListRequest asks for all devices that the caller may revoke.
type ListRequest struct{}

// A ListAnswer has them by user and name.
type ListAnswer struct {
	Devices []Device `json:"devices"`
}

// A Device is one of a [ListAnswer].
type Device struct {
	identity.Device
	This bool `json:"this,omitempty"` // it asks
}

// A PairRequest is about a new device of the caller's user.
type PairRequest struct {
	Role     string   `json:"role,omitempty"` // "" is approver
	Name     string   `json:"name,omitempty"` // "" is what the device calls itself
	Agents   []string `json:"agents,omitempty"`
	Sessions []string `json:"sessions,omitempty"` // the only ones that it may use
	// ExpiresIn is how long its credential is valid, in seconds; 0 is until it is revoked.
	ExpiresIn int64 `json:"expiresIn,omitempty"`

	// ID is that of a ticket, which the caller has made. Then the above is ignored, and Decide says what is done about it:
	// nothing, "approve", "deny" or "cancel".
	ID     string `json:"id,omitempty"`
	Decide string `json:"decide,omitempty"`
}

// A PairAnswer says what a new device needs, once, and what has happened to it.
type PairAnswer struct {
	ID string `json:"id"`
	// Code is for a person to type. Link is for a QR code: it has the Ticket, the URL of the gateway as it calls
	// itself, and the fingerprint of a certificate that it has made itself.
	Code    string    `json:"code,omitempty"`
	Ticket  string    `json:"ticket,omitempty"`
	Link    string    `json:"link,omitempty"`
	Expires time.Time `json:"expires"`

	// State is an [identity.TicketState], or "ended" if the time has passed or it was cancelled. Tries are wrong codes.
	State string `json:"state"`
	Tries int    `json:"tries,omitempty"`
	// Claimant is what a device calls itself that has claimed the ticket, and Address where it is. Both may be lies.
	Claimant string           `json:"claimant,omitempty"`
	Address  string           `json:"address,omitempty"`
	Device   *identity.Device `json:"device,omitempty"` // once there is one
}

// stateEnded is the state of a ticket that is not there any more.
const stateEnded = "ended"

// A RevokeRequest names a device by its ID.
type RevokeRequest struct {
	ID string `json:"id"`
	// Paired says that the devices that it has paired are revoked as well, and those that these have.
	Paired bool `json:"paired,omitempty"`
}

// A RevokeAnswer has the device as it was, and the devices that it has paired: those that were revoked with it, or else those
// that are left.
type RevokeAnswer struct {
	Device identity.Device   `json:"device"`
	Paired []identity.Device `json:"paired,omitempty"`
}

// Bounds of requests.
const (
	maxExpiry = 10 * 365 * 24 * time.Hour
	maxMade   = 64 // tickets that are remembered; the store has no more that were not cancelled
)

// Methods serves the methods. Its fields must not be changed once it is in use; it may be used by any number of
// connections. It need not be closed.
type Methods struct {
	Store *identity.Store
	Audit *audit.Log
	// Who says who a client is, and User who this server belongs to: an owner of that user manages the devices of all.
	Who  func(ctx context.Context) identity.Principal
	User string
	// Logger gets what goes wrong, without secrets; nil discards it.
	Logger *slog.Logger

	mu   sync.Mutex
	made map[string]made // by the id of a ticket
}

// made is who has made a ticket.
type made struct {
	user      string
	expires   time.Time
	cancelled bool
}

// Register registers the methods of one connection.
func (m *Methods) Register(mux *jsonrpc.Mux) {
	ListMethod.Handle(mux, m.list)
	PairMethod.Handle(mux, m.pair)
	RevokeMethod.Handle(mux, m.revoke)
}

// manages reports whether a client may manage a device of a user. One that may use some agents or sessions only must not
// give itself the others. Members of a team have no devices: their rights are those of their groups.
func (m *Methods) manages(p identity.Principal, user string) bool {
	if !p.May(identity.Owner) || len(p.Scope.Agents)+len(p.Scope.Sessions) > 0 || p.User == "" {
		return false
	}
	return (p.Kind == identity.KindDevice || p.Kind == identity.KindLocal) && (p.User == user || p.User == m.User)
}

// is reports whether a client is a device.
func is(p identity.Principal, id string) bool {
	return p.Kind == identity.KindDevice && p.Device != "" && p.Device == id
}

func (m *Methods) list(ctx context.Context, _ *ListRequest) (*ListAnswer, error) {
	p := m.Who(ctx)
	all, err := m.Store.Devices(ctx)
	if err != nil {
		return nil, m.failed(err)
	}
	res := &ListAnswer{Devices: []Device{}}
	for _, d := range all {
		if this := is(p, d.ID); this || m.manages(p, d.User) {
			res.Devices = append(res.Devices, Device{Device: d, This: this})
		}
	}
	return res, nil
}

func (m *Methods) revoke(ctx context.Context, req *RevokeRequest) (*RevokeAnswer, error) {
	p := m.Who(ctx)
	d, err := m.Store.Device(ctx, req.ID)
	note := func(outcome string, d identity.Device, more string) {
		m.Audit.Note(m.Logger, audit.Entry{User: p.User, Device: p.Name, Action: "device.revoke", Outcome: outcome, Detail: fmt.Sprintf("device %s of %s%s", d.Name, d.User, more)})
	}
	if err == nil && !is(p, d.ID) && !m.manages(p, d.User) {
		note("refused", d, "")
		err = identity.ErrNotFound // which is the same for whoever asks
	}
	if err == nil {
		d, err = m.Store.RevokeID(ctx, d.ID)
	}
	if errors.Is(err, identity.ErrNotFound) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no such device, or it is not yours to revoke")
	} else if err != nil {
		return nil, m.failed(err)
	}
	note("done", d, "")
	res := &RevokeAnswer{Device: d}
	if !m.manages(p, d.User) {
		return res, nil // a device that leaves may not revoke others
	}
	if req.Paired {
		res.Paired, err = m.Store.RevokePaired(ctx, d.ID)
	} else {
		res.Paired, err = m.Store.Paired(ctx, d.ID)
	}
	if err != nil {
		return nil, m.failed(err)
	}
	if req.Paired {
		for _, c := range res.Paired {
			note("done", c, ", paired by "+d.Name)
		}
	}
	return res, nil
}

func (m *Methods) pair(ctx context.Context, req *PairRequest) (*PairAnswer, error) {
	p := m.Who(ctx)
	if !m.manages(p, p.User) {
		return nil, &jsonrpc.Failure{Message: "this device may not pair others", Reason: "role"}
	}
	if req.ID != "" {
		return m.progress(ctx, p, req)
	}
	role := identity.Approver
	var err error
	if req.Role != "" {
		if role, err = identity.ParseRole(req.Role); err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
		}
	}
	if req.ExpiresIn < 0 || req.ExpiresIn > int64(maxExpiry/time.Second) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "expiresIn is a number of seconds, of up to 10 years")
	}
	grant := identity.Grant{User: p.User, Role: role, Scope: identity.Scope{Agents: req.Agents, Sessions: req.Sessions}, Lifetime: time.Duration(req.ExpiresIn) * time.Second}
	if p.Kind == identity.KindDevice {
		grant.By = p.Device
	}
	if err := grant.Check(req.Name); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
	}
	at, err := m.Store.Endpoint(ctx)
	if err != nil {
		return nil, m.failed(err)
	}
	t, err := m.Store.NewTicket(ctx, req.Name, grant)
	if err != nil {
		return nil, m.failed(err)
	}
	if !m.note(t, p.User) {
		return nil, m.failed(errors.Join(fmt.Errorf("%w tickets: wait until one has expired", identity.ErrTooMany), m.Store.Cancel(ctx, t.ID)))
	}
	m.Audit.Note(m.Logger, audit.Entry{User: p.User, Device: p.Name, Action: "device.invite", Outcome: "done", Detail: fmt.Sprintf("user %s, role %s", p.User, role)})
	res := &PairAnswer{ID: t.ID, Code: t.Code, Ticket: t.Ticket, Expires: t.Expires, State: string(identity.TicketOpen)}
	if link, err := identity.Link(at, t.Ticket); err == nil { // a server on a socket alone has none
		res.Link = link
	}
	return res, nil
}

// note remembers who has made a ticket, for as long as it can be redeemed. Those that were cancelled are forgotten before
// that if there is no room; it reports false if there is none all the same.
func (m *Methods) note(t identity.Ticket, user string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made == nil {
		m.made = make(map[string]made)
	}
	now := time.Now()
	maps.DeleteFunc(m.made, func(_ string, of made) bool { return !of.expires.After(now) })
	if len(m.made) >= maxMade {
		maps.DeleteFunc(m.made, func(_ string, of made) bool { return of.cancelled })
	}
	if len(m.made) >= maxMade {
		return false
	}
	m.made[t.ID] = made{user: user, expires: t.Expires}
	return true
}

// cancel ends a ticket.
func (m *Methods) cancel(ctx context.Context, id string) error {
	if err := m.Store.Cancel(ctx, id); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if of, ok := m.made[id]; ok {
		of.cancelled = true
		m.made[id] = of
	}
	return nil
}

// progress says what has happened to a ticket, after what the request decides about it.
func (m *Methods) progress(ctx context.Context, p identity.Principal, req *PairRequest) (*PairAnswer, error) {
	m.mu.Lock()
	of, ok := m.made[req.ID]
	m.mu.Unlock()
	if !ok || of.user != p.User {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no such ticket")
	}
	var err error
	switch req.Decide {
	case "":
	case "approve":
		err = m.Store.Approve(ctx, req.ID)
	case "deny":
		err = m.Store.Deny(ctx, req.ID)
	case "cancel":
		err = m.cancel(ctx, req.ID)
	default:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "decide is approve, deny or cancel, not %.20q", req.Decide)
	}
	if err != nil && !errors.Is(err, identity.ErrNotFound) { // the state says why there was nothing to decide
		return nil, m.failed(err)
	}
	res := &PairAnswer{ID: req.ID, Expires: of.expires, State: stateEnded}
	got, err := m.Store.Progress(ctx, req.ID)
	switch {
	case errors.Is(err, identity.ErrNotFound):
		return res, nil
	case err != nil:
		return nil, m.failed(err)
	}
	res.State, res.Tries, res.Claimant, res.Address = string(got.State), got.Tries, got.Name, got.Address
	if got.Device != "" {
		d, err := m.Store.Device(ctx, got.Device)
		if err != nil && !errors.Is(err, identity.ErrNotFound) { // it was revoked since
			return nil, m.failed(err)
		}
		if err == nil {
			res.Device = &d
		}
	}
	return res, nil
}

// failed returns the error that a client gets.
func (m *Methods) failed(err error) error {
	switch {
	case errors.Is(err, identity.ErrStore), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case errors.Is(err, identity.ErrName), errors.Is(err, identity.ErrTooMany):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
	case errors.Is(err, identity.ErrNotFound):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no such device any more")
	}
	if m.Logger != nil {
		m.Logger.Error("devices cannot be managed", "error", err)
	}
	return &jsonrpc.Failure{Message: "devices cannot be read or written now", Reason: "unavailable"}
}
