package tap

import (
	"encoding/json"
	"strconv"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/grant"
)

// Bounds of what is remembered of the user's answers.
const (
	maxDeciding = 64   // sessions in which something was decided, the latest
	maxFlying   = 1024 // requests of the agent that the client has not answered
	maxInquired = 64   // paths and options of a permission request that counts for what follows it
)

// An inquiry is a permission request of the agent's that the client decides.
type inquiry struct {
	session string
	acts    []string // what it is about, as in [grant.Set]
	options map[string]acpv2.PermissionOptionKind
}

// inquiryOf returns what the answer to a permission request decides, or nil if that is nothing, or
// uncertain. It resolves the paths of the request now, when the user sees them.
func (g *Guard) inquiryOf(r acphost.Request) *inquiry {
	if len(r.Paths) > maxInquired || len(r.Options) > maxInquired {
		return nil
	}
	q := &inquiry{session: r.Session, acts: grant.ActsOf(g.policy, r), options: map[string]acpv2.PermissionOptionKind{}}
	for _, o := range r.Options {
		if _, twice := q.options[string(o.OptionID)]; twice {
			return nil
		}
		q.options[string(o.OptionID)] = o.Kind
	}
	return q
}

// flies records that a request of the agent's goes to the client, unless the tap answers it. The
// answer to a permission request can only be recognized by its id. So if an id is used twice at a
// time, or there are too many requests, no answer counts any longer: the user is asked again.
func (g *Guard) flies(e *envelope, v *Verdict, q *inquiry) {
	if e.method == "" || v.Answer != nil || e.id == nil && !e.longID {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.version != "1" && g.version != "" || g.confused { // later versions have no such calls
		return
	}
	id := idKey(e.id)
	if _, twice := g.flying[id]; twice || e.longID || len(g.flying) >= maxFlying {
		g.confused, g.flying = true, nil
		return
	}
	if g.flying == nil {
		g.flying = map[string]*inquiry{}
	}
	g.flying[id] = q
}

// lands records that the tap itself has answered a request of the agent's.
func (g *Guard) lands(id []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.flying, idKey(id))
}

// idKey is the same for all ids that a client may regard as equal.
func idKey(id []byte) string {
	var s string
	if json.Unmarshal(id, &s) == nil {
		return s
	}
	var f float64
	if json.Unmarshal(id, &f) == nil {
		return strconv.FormatFloat(f+0, 'g', -1, 64) // -0 is 0
	}
	return "?"
}

// hears applies an answer of the client's: what the user has decided about an act counts for the
// call that follows.
func (g *Guard) hears(e *envelope) {
	if e.id == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	id := idKey(e.id)
	q := g.flying[id]
	delete(g.flying, id)
	if q == nil || e.failed {
		return
	}
	var response acpv1.RequestPermissionResponse
	if response.UnmarshalJSON(e.result) != nil {
		return
	}
	selected, ok := response.Outcome.(*acpv1.SelectedPermissionOutcome)
	if !ok {
		return
	}
	_, cancelled := g.cancelled.get(q.session)
	for _, what := range q.acts {
		switch kind := q.options[string(selected.OptionID)]; {
		case kind == acpv2.PermissionOptionKindRejectOnce, kind == acpv2.PermissionOptionKindRejectAlways:
			g.decided(q.session).Deny(what, grant.Is(grant.SortRead, what))
		case cancelled:
		case kind == acpv2.PermissionOptionKindAllowAlways:
			g.decided(q.session).Keep(what)
		case kind == acpv2.PermissionOptionKindAllowOnce:
			g.decided(q.session).Allow(what, grant.Is(grant.SortRead, what))
		}
	}
}

// decided returns what the user has decided in a session. The caller holds the mutex.
func (g *Guard) decided(session string) *grant.Set {
	set, ok := g.granted.get(session)
	if !ok {
		set = new(grant.Set)
		g.granted.put(session, set)
	}
	return set
}

// turnOver forgets what the user has decided for a turn. The caller holds the mutex.
func (g *Guard) turnOver(session string) {
	if set, ok := g.granted.get(session); ok {
		if set.Clear(); set.Empty() {
			g.granted.drop(session)
		}
	}
}

// actOf names what a call does, as in [grant.Set].
func (g *Guard) actOf(r acphost.Request) string {
	switch r.Kind {
	case "read":
		return grant.Read(r.Paths[len(r.Paths)-1])
	case "edit":
		return grant.Write(r.Paths[len(r.Paths)-1])
	}
	return grant.Run(g.policy, r.Command, r.Cwd)
}
