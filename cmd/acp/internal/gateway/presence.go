package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// What a gateway tells clients whose initialize has "presence": true in its part of _meta. Others are sent nothing of this.
const (
	// MethodPresence is a notification that says who is attached to a session: a [Presence].
	MethodPresence = ownmeta.Method + "presence"
	// MethodDecided is a notification that says who has answered a question of the agent: a [Decided].
	MethodDecided = ownmeta.Method + "decided"
	// MethodQueued is a notification that a prompt of the client is kept, and runs whether the client stays or
	// not: a [Queued].
	MethodQueued = ownmeta.Method + "queued"
	// MethodBegun is a notification that a prompt of the client itself begins: a [Begun], before the message of the user. What
	// came before belongs to turns of others, or to earlier ones.
	MethodBegun = ownmeta.Method + "begun"
)

// maxPeople bounds the people that are named, and maxPersonName the bytes of a name.
const (
	maxPeople     = 32
	maxPersonName = 64
)

// A Presence is who is attached to a session, on all nodes that the owner of the session reaches.
type Presence struct {
	SessionID acp.SessionID `json:"sessionId"`
	People    []Person      `json:"people"`
	More      int           `json:"more,omitempty"` // further clients that are not named
}

// A Person is a client that is attached.
type Person struct {
	Name string `json:"name"` // of the device, or of the user
	Role string `json:"role,omitempty"`
	You  bool   `json:"you,omitempty"` // the client that gets this
}

// Decided is the answer to a question.
type Decided struct {
	SessionID acp.SessionID `json:"sessionId"`
	Title     string        `json:"title,omitempty"` // of the question
	By        string        `json:"by,omitempty"`    // the name of who has answered; "" if nobody has
	You       bool          `json:"you,omitempty"`   // it was this client
	Outcome   string        `json:"outcome"`         // the name of the option, "accepted", "declined" or "cancelled"
	// Ask is what _meta of the question has as "ask", and Option the option that was chosen, if it was one.
	Ask    string                 `json:"ask,omitempty"`
	Option acp.PermissionOptionID `json:"option,omitempty"`
}

// Begun is a prompt of the client itself whose turn begins.
type Begun struct {
	SessionID acp.SessionID `json:"sessionId"`
	MessageID acp.MessageID `json:"messageId"` // of the message that follows
	// OperationID is the name that the client has given to the prompt, or "".
	OperationID string `json:"operationId,omitempty"`
}

// Queued is a prompt that is kept.
type Queued struct {
	SessionID acp.SessionID `json:"sessionId"`
	Before    int           `json:"before,omitempty"` // turns that run or wait before it
	// OperationID is the name that the client has given to the prompt, or "".
	OperationID string `json:"operationId,omitempty"`
}

// wantsPresence reports whether a client has asked for these notifications.
func wantsPresence(c *acp.AgentConn) bool { return wishesOf(c).Presence }

// wishes are what a client says of itself in _meta of initialize.
type wishes struct {
	Presence bool
	Sessions bool // it is notified of changes of the list of sessions
	ReadOnly bool // it only watches, whatever it may do
}

func wishesOf(c *acp.AgentConn) (said wishes) {
	var all map[string]json.RawMessage
	if json.Unmarshal(c.Meta(), &all) == nil {
		_ = json.Unmarshal(all[metaKey], &said) // otherwise it wishes nothing
	}
	return said
}

// name is what others see of a client.
func (w *Who) name() string {
	name := w.Name
	if name == "" {
		name = w.User
	}
	return shortName(name)
}

// shortName cuts a name that is too long.
func shortName(name string) string {
	if len(name) > maxPersonName+len("…") || len(name) > maxPersonName && !strings.HasSuffix(name, "…") { // it may be cut already
		name = strings.ToValidUTF8(name[:maxPersonName], "") + "…"
	}
	if !utf8.ValidString(name) {
		name = strings.ToValidUTF8(name, "?")
	}
	return name
}

// role is what others see of a client's rights.
func (w *Who) role() string {
	switch {
	case w.Role != "":
		return w.Role
	case w.may(MayApprove):
		return "approver"
	case w.may(MayPrompt):
		return "prompter"
	}
	return "viewer"
}

// present is who is attached to the sessions of this process. The zero value is ready for use.
type present struct {
	mu    sync.Mutex
	in    map[string]map[*watcher]bool
	peers map[string]map[*peer]bool // nodes whose clients share a session with ours

	joined uint64 // nodes so far
}

// enter adds a client and tells everybody.
func (p *present) enter(w *watcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.ctx.Err() != nil { // it has left, or is about to
		return
	}
	if p.in == nil {
		p.in = make(map[string]map[*watcher]bool)
	}
	if p.in[w.id] == nil {
		p.in[w.id] = make(map[*watcher]bool)
	}
	p.in[w.id][w] = true
	p.tell(w.id, nil)
	w.g.changed(w.id)
}

// leave removes a client and tells the others.
func (p *present) leave(w *watcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.in[w.id], w)
	w.g.changed(w.id)
	if len(p.in[w.id]) == 0 {
		delete(p.in, w.id)
	}
	p.tell(w.id, nil)
}

// tell has everybody learn who is there, and all other nodes but one. The caller holds p.mu.
func (p *present) tell(id string, but *peer) {
	for w := range p.in[id] {
		w.herald.ring()
	}
	for n := range p.peers[id] {
		if n != but {
			n.herald.ring()
		}
	}
}

// changed tells everybody in a session that the role of a client is another one.
func (p *present) changed(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell(id, nil)
}

// count returns how many clients are attached to a session on this node. Of those that were killed, or whose network
// failed, the connections live on for a while; they do not count.
func (p *present) count(id string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.in[id] {
		if w.attended() {
			n++
		}
	}
	return n
}

// A seat says whether a client is there to read, and when that has changed: an [acphttp.Presence].
type seat interface {
	Present() bool
	Notify(changed func()) (stop func())
}

// attended reports whether the client is there to read.
func (w *watcher) attended() bool { return w.seat == nil || w.seat.Present() }

// all returns how many clients are attached to sessions.
func (p *present) all() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range p.in {
		n += len(in)
	}
	return n
}

// people returns who is attached to a session, sorted by name, for a client.
func (p *present) people(id string, you *watcher) Presence {
	c := p.crowd(id, you, nil)
	return Presence{SessionID: acp.SessionID(id), People: c.People, More: c.More}
}

// A herald tells a client who is there, from a goroutine of its own, so that a client that does not read holds up nobody
// else. It tells the last of several changes only.
type herald struct {
	bell chan struct{} // has room for one; nil if the client does not want to know
}

// ring has the client notified, soon. It never waits.
func (h *herald) ring() {
	select {
	case h.bell <- struct{}{}: // of nil, never
	default:
	}
}

// appear makes the client present until ctx is done.
func (w *watcher) appear() {
	if wantsPresence(w.session.Conn()) {
		w.herald.bell = make(chan struct{}, 1)
		w.g.work.Go(w.tellPresence)
	}
	w.g.present.enter(w)
	stop := w.seat.Notify(func() {
		w.g.changed(w.id)
		w.g.present.changed(w.id)
	})
	context.AfterFunc(w.ctx, stop)
}

// tellPresence tells the client who is there, until it leaves.
func (w *watcher) tellPresence() {
	ctx, cancel := either(w.ctx, w.g.ctx)
	defer cancel()
	for {
		select {
		case <-w.herald.bell:
		case <-ctx.Done():
			return
		}
		w.notify(ctx, MethodPresence, w.g.present.people(w.id, w))
	}
}

// notify sends the client a notification. That it has left is noticed elsewhere.
func (w *watcher) notify(ctx context.Context, method string, params any) {
	if w.herald.bell == nil {
		return
	}
	if err := w.session.Conn().Conn().Notify(ctx, method, params); err != nil && ctx.Err() == nil {
		w.g.logger(w.id).Debug("gateway: a client cannot be notified", "method", method, "error", err)
	}
}

// decided tells the client who has answered a question.
func (w *watcher) decided(data []byte) error {
	var r records.Decided
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	said := decidedIn(w.id, &r)
	said.You = r.Key != "" && r.Key == w.key
	w.notify(w.ctx, MethodDecided, said)
	return nil
}

// decidedIn returns an answer in a session as clients see it.
func decidedIn(id string, r *records.Decided) *Decided {
	said := &Decided{SessionID: acp.SessionID(id), Title: r.Title, By: r.From, Outcome: string(r.Outcome), Ask: r.ID}
	if r.Name != "" {
		said.Outcome, said.Option = r.Name, acp.PermissionOptionID(r.Outcome)
	}
	return said
}

// queued tells the client that its prompt is kept.
func (w *watcher) queued(o *ownPrompt, before int) {
	w.notify(w.ctx, MethodQueued, Queued{acp.SessionID(w.id), before, o.sent.operation})
}

// waiting returns how many questions of a session wait for an answer, as far as this node knows.
func (g *Gateway) waiting(id string) int {
	s := g.session(id)
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asks)
}

// StateElsewhere is the state, in a list, of a session in which a turn runs that another program on this machine has: a
// chat, or acp exec. If that was killed, the gateway ends the turn soon.
const StateElsewhere = "elsewhere"

// about returns _meta of a session in a list, in which n is how much happens.
func about(who *Who, info *engine.Session, n count) json.RawMessage {
	about := map[string]any{"agent": info.Agent, "state": info.State}
	if info.State == records.StateRunning && n.elsewhere {
		about["state"] = StateElsewhere
	}
	if info.Owner != who.User {
		about["owner"], about["role"] = info.Owner, who.standing
	}
	if n.Waiting > 0 {
		about["waiting"] = n.Waiting
	}
	if n.Here > 0 {
		about["here"] = n.Here
	}
	return ownmeta.Of(about)
}

// answerMeta returns _meta of the answer to a client that comes to a session. from is the record after which its history
// begins, if that is not all of it.
func (g *Gateway) answerMeta(ctx context.Context, id string, cursor uint64, from *uint64) json.RawMessage {
	here := g.present.people(id, nil)
	said := map[string]any{"cursor": cursor, "people": here.People}
	if info, err := g.cfg.Log.Session(ctx, id); err == nil {
		said["agent"] = info.Agent
		if title := g.cfg.Titles[info.Agent]; title != "" {
			said["title"] = title
		}
	}
	if here.More > 0 {
		said["more"] = here.More
	}
	if from != nil {
		said["from"] = *from
	}
	return ownmeta.Of(said)
}

// Busy is how much happens in a gateway.
type Busy struct {
	Clients int // that are attached to sessions
	Turns   int // that run or wait
	Asks    int // questions that wait for an answer
}

// None reports whether nothing happens.
func (b Busy) None() bool { return b == Busy{} }

// Busy returns how much happens.
func (g *Gateway) Busy() Busy {
	b := Busy{Clients: g.present.all()}
	for _, s := range g.all() {
		s.mu.Lock()
		b.Turns += len(s.queue)
		b.Asks += len(s.asks)
		s.mu.Unlock()
	}
	return b
}

// before implements place.
func (s *session) before(t *turn) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(slices.Index(s.queue, t), 0)
}

// before implements place. The owner knows more.
func (*visit) before(*turn) int { return 0 }

// maxClip bounds texts that are repeated for people who look on, in bytes.
const maxClip = 200

// clip cuts a text that is too long.
func clip(text string) string {
	if len(text) <= maxClip {
		return text
	}
	return strings.ToValidUTF8(text[:maxClip], "") + "…"
}

// errRead ends reading a log early.
var errRead = errors.New("gateway: read")

// leaveTime is how long a client must stay after it has dismissed a question, for that to count. A client that leaves dismisses
// what it was asked, too, and decides nothing by that.
const leaveTime = 500 * time.Millisecond

// leaves reports whether a client that has dismissed a question, or could not be asked because of err, has left or is about to.
func (w *watcher) leaves(a *ask, err error) bool {
	conn := w.session.Conn().Conn()
	if errors.Is(err, jsonrpc.ErrClosed) || conn.Err() != nil {
		return true
	}
	timer := time.NewTimer(leaveTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
	case <-conn.Done():
	case <-a.ctx.Done():
	}
	return conn.Err() != nil || w.ctx.Err() != nil
}
