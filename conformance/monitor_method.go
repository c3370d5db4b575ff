package conformance

import (
	"strings"

	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

var (
	ckMethodKnown   = decides("both/method/known")
	ckMethodRetired = decides("both/method/retired")
	ckMethodVersion = decides("both/method/version")
	ckMethodSide    = decides("both/method/side")
	ckMethodKind    = decides("both/method/kind")
	ckParams        = decides("both/schema/params")
	ckResult        = decides("both/schema/result")
	ckSalvaged      = decides("both/schema/salvaged")
	ckVariant       = decides("both/schema/variant")
	ckFields        = decides("both/schema/members")
	ckMeta          = decides("both/schema/meta")
	ckAnswered      = decides("both/answer/due")
	ckUnknownCode   = decides("both/answer/unknown-method")
	ckUnasked       = decides("both/cancel/unasked")
	ckCancelKnown   = decides("both/cancel/known")
	ckCancelTwice   = decides("both/cancel/once")
)

// retired reports whether drafts before the present ones had the method.
func retired(name string) bool {
	switch name {
	case "session/set_model", "mcp/connect", "mcp/disconnect":
		return true
	}
	return strings.HasPrefix(name, "nes/") || strings.HasPrefix(name, "document/")
}

// judge checks whether the sender may send a message of this method and kind,
// and returns what reads it, or nil.
func (m *Monitor) judge(e *envelope, asked bool) (*method, *codec) {
	name := e.method
	if strings.HasPrefix(name, "_") {
		m.breaks(ckMethodKnown, false)
		m.breaks(ckMethodRetired, false)
		return nil, nil // anybody's (S84)
	}
	mt := protocol(m.speaks())[name]
	if mt == nil {
		old := protocol(3 - m.speaks())[name] != nil
		if m.breaks(ckMethodVersion, old && m.version != 0) {
			m.add(ckMethodVersion, "method", "sent %s, which version %d does not have", name, m.version)
		}
		if old {
			return nil, nil
		}
		if m.breaks(ckMethodRetired, retired(name)) {
			m.add(ckMethodRetired, "method", "sent %s, which the protocol no longer has", quote(name))
		}
		if m.breaks(ckMethodKnown, !retired(name)) {
			m.add(ckMethodKnown, "method", "sent %s, which is unknown and does not begin with _", quote(name))
		}
		return nil, nil
	}
	m.breaks(ckMethodKnown, false)
	m.breaks(ckMethodRetired, false)
	m.breaks(ckMethodVersion, false)
	c, by := mt.notification, mt.tells
	if asked {
		c, by = mt.request, mt.asks
	}
	kind, other := "a notification", "a request"
	if asked {
		kind, other = other, kind
	}
	if m.breaks(ckMethodKind, by == nobody) {
		m.add(ckMethodKind, "method", "sent %s as %s, and it is %s", name, kind, other)
	}
	if by == nobody {
		return mt, nil
	}
	if m.breaks(ckMethodSide, !by.takes(1-m.from)) {
		m.add(ckMethodSide, "method", "sent %s, which only the other side sends", name)
	}
	if !by.takes(1 - m.from) {
		return mt, nil
	}
	return mt, c
}

// request looks at a request.
func (m *Monitor) request(e *envelope) {
	r := &request{key: idKey(e.id), name: brief(e.method), from: m.from, frame: m.stats.Frames, at: int64(m.at)}
	r.due, r.dueAt = r.frame, r.at
	old, inFlight := m.open[m.from].get(r.key)
	if inFlight {
		r.again = old.again + 1
	}
	r.doubtful = e.twice != "" || e.has&(hasVersion|badVersion) != hasVersion || !m.idKind(e)
	if m.breaks(ckIDReused, inFlight) {
		m.add(ckIDReused, "id", "sent another request with the id %s, which is not answered yet", quote(r.key))
	}
	opens := e.method == "initialize" || e.method == "proxy/initialize"
	if opens {
		m.offer(e)
	}
	mt, c := m.judge(e, true)
	r.m = mt
	m.early(r.name, true)
	if c != nil {
		m.malformed = false
		if opens && m.later {
			m.greeted(r, e, c)
		} else if p := m.paramsOf(e, c); p != nil {
			m.asked(r, p)
		} else if c.params != nil {
			r.malformed = m.malformed && !opens
			m.misasked(e, r)
		}
	} else if mt == nil {
		m.sessionOf(e, r)
		m.steers(e, r)
	}
	m.open[m.from].put(r.key, r)
}

// notification looks at a notification.
func (m *Monitor) notification(e *envelope) {
	mt, c := m.judge(e, false)
	m.early(e.method, false)
	if mt == nil || c == nil {
		return
	}
	p := m.paramsOf(e, c)
	if p == nil {
		return
	}
	m.told(p)
}

// paramsOf decodes params, and returns nil if they are unfit.
func (m *Monitor) paramsOf(e *envelope, c *codec) any {
	if c.params == nil {
		return nil
	}
	m.member = "params"
	return m.decode(ckParams, c.params, e.has&hasParams != 0, e.params)
}

// resultOf decodes a result and passes it on.
func (m *Monitor) resultOf(e *envelope, r *request) {
	var c *codec
	if r.m != nil && r.m.asks.takes(m.from) {
		c = r.m.request
	}
	if r.name == "initialize" || r.name == "proxy/initialize" {
		m.agree(m.peekVersion(e.result))
		c = protocol(m.speaks())[r.name].request
	}
	if _, ok := r.facts.(*forwardFacts); ok {
		m.proxy.version = m.peekVersion(e.result)
	}
	if r.name == steering {
		m.steered(e, r)
	}
	if c == nil || c.result == nil {
		m.succeeded(r, nil)
		return
	}
	m.member = "result"
	if r.name == "session/options" {
		m.optionLists(e)
	}
	d := &m.d
	d.Seek(e.result)
	null := d.Peek() == 'n'
	v := m.decode(ckResult, c.result, !null, e.result)
	// The documentation of version 1 itself answers these with null.
	usual := m.version == 1 && (r.name == "fs/write_text_file" || r.name == "session/load")
	if m.breaks(ckNull, null && v != nil && !usual) {
		m.add(ckNull, "result", "answered %s with null and not with an object", r.name)
	}
	m.succeeded(r, v)
}

// decode reads the value at pos, or {} in its place (S14, S23). It returns nil
// if the value is unfit.
func (m *Monitor) decode(c check, read func(*wire.Decoder) any, there bool, pos int) any {
	d := &m.d
	var none wire.Decoder
	if there {
		d.Seek(pos)
		there = d.Peek() != 'n'
	}
	if !there {
		none.Reset([]byte("{}"), false)
		d = &none
	}
	v := read(d)
	fe := d.FieldErr()
	if fe != nil && fe.Reason == "duplicate member" {
		if m.breaks(ckTwice, true) {
			m.add(ckTwice, m.path(fe.Path), "sent a member twice in %s", m.member)
		}
		return nil
	}
	m.malformed = fe != nil
	if m.breaks(c, fe != nil) {
		m.add(c, m.path(fe.Path), "%s: %s", m.path(fe.Path), fe.Reason)
	}
	m.notes()
	if fe != nil {
		return nil
	}
	return v
}

// notes turns what the decoder let pass into findings.
func (m *Monitor) notes() {
	m.breaks(ckSalvaged, false)
	m.breaks(ckVariant, false)
	m.breaks(ckFields, false)
	m.breaks(ckMeta, false)
	m.breaks(ckSpelling, false)
	d := &m.d
	for i := range m.watch.Notes {
		n := &m.watch.Notes[i]
		p := d.Path(n)
		switch n.Kind {
		case wire.NoteSalvaged:
			m.expect(ckSalvaged, false, p, "%s: %s", p, n.Reason)
		case wire.NoteVariant:
			if m.version == 1 && strings.HasPrefix(p, "result.authMethods[") { // one of the agent, with a member more (S80)
				m.expect(ckFields, false, p, "%s: %s is no type of a way to sign in, and does not begin with _", p, quote(n.Name))
				continue
			}
			m.expect(ckVariant, false, p, "%s: %s is unknown and does not begin with _", p, quote(n.Name))
		case wire.NoteMember:
			if otherGreeting(p) {
				continue
			}
			m.expect(ckFields, false, p, "%s is a member that is unknown and does not begin with _", p)
		case wire.NoteMeta:
			m.expect(ckMeta, false, p, "%s is not an object", p)
		case wire.NoteSpelling:
			m.expect(ckSpelling, false, p, "%s is an integer written with a fraction or an exponent", p)
		}
	}
	m.watch.Notes = m.watch.Notes[:0]
}

// otherGreeting reports the members of initialize that only one version has: who
// does not know yet which one will be spoken may send both (S64, S65).
func otherGreeting(path string) bool {
	switch path {
	case "params.clientInfo", "params.clientCapabilities", "params.info", "params.capabilities",
		"result.agentInfo", "result.agentCapabilities", "result.info", "result.capabilities":
		return true
	}
	return false
}

// refused looks at an error that answers a request.
func (m *Monitor) refused(r *request, we *jsonrpc.Error) {
	if m.nobodys(r) && !m.first(r, we) {
		if m.breaks(ckUnknownCode, we.Code != jsonrpc.CodeMethodNotFound) {
			m.add(ckUnknownCode, "error.code", "refused the unknown request %s with %d and not with -32601", quote(r.name), we.Code)
		}
	}
	unasked := we.Code == jsonrpc.CodeRequestCancelled && !r.withdrawn && !r.stopped
	if m.breaks(ckUnasked, unasked && !m.gap) {
		m.add(ckUnasked, "error.code", "answered %s with -32800 though nobody cancelled it", quote(r.name))
	}
	m.steerRefused(r, we)
	m.failed(r, we)
}

// nobodys reports whether a request is of a method that no version and no draft
// has: agents may well know those of others.
func (m *Monitor) nobodys(r *request) bool {
	return r.m == nil && !strings.HasPrefix(r.name, "_") && !retired(r.name) && protocol(3 - m.speaks())[r.name] == nil
}

// first reports whether an error is about something that is looked at before the
// request as such.
func (m *Monitor) first(r *request, we *jsonrpc.Error) bool {
	switch we.Code {
	case jsonrpc.CodeAuthRequired:
		return m.from == theAgent
	case jsonrpc.CodeRequestCancelled:
		return r.withdrawn || r.stopped
	}
	return !m.ready
}

// withdraw looks at $/cancel_request.
func (m *Monitor) withdraw(id jsonrpc.ID) {
	key := idKey([]byte(id.String()))
	r, ok := m.open[m.from].get(key)
	_, was := m.answered[m.from].get(key)
	if m.breaks(ckCancelKnown, !ok && !was && m.open[m.from].lacks(key) && !m.answered[m.from].forgot) {
		m.add(ckCancelKnown, "params.requestId", "cancelled a request %s that was never made", quote(key))
	}
	if !ok {
		return
	}
	if m.breaks(ckCancelTwice, r.withdrawn) {
		m.add(ckCancelTwice, "params.requestId", "cancelled the request %s twice", quote(key))
	}
	if r.withdrawn {
		return
	}
	r.withdrawn, r.due, r.dueAt = true, m.stats.Frames, int64(m.at)
	for _, e := range m.open[1-m.from].m {
		if e.v.parent == key {
			e.v.stopped = true // whoever made it has nobody to ask for any more
		}
	}
}
