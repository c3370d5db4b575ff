package conformance

import (
	"bytes"
	"encoding/json"
)

var (
	ckProxyInit      = decides("agent/proxy/initialize")
	ckProxyFirst     = decides("agent/proxy/forwards-first")
	ckProxyVersion   = decides("agent/proxy/version")
	ckProxySuccessor = decides("agent/proxy/successor")
	ckProxyCancel    = decides("both/proxy/cancel")
	ckProxyMeta      = decides("both/proxy/meta")
)

// On the connection of a proxy its conductor is the client: what passes in envelopes is
// from or for the proxy's successor.

// proxied is what is known of such a connection.
type proxied struct {
	last    bool // who answers was asked as an agent, which has no successor
	forward bool // initialize was passed on
	version int  // that the successor answered, or 0
}

// forwardFacts says that a request in an envelope is initialize.
type forwardFacts struct{}

// proxyAsked notes how a connection is opened.
func (m *Monitor) proxyAsked(r *request) {
	switch {
	case r.from == theAgent:
		if m.breaks(ckProxyInit, r.name == "proxy/initialize") {
			m.add(ckProxyInit, "method", "sent proxy/initialize, which only conductors send")
		}
	case r.name == "initialize":
		m.proxy.last = true
	default:
		m.proxy = proxied{}
	}
}

// wrapped looks at an envelope. r is nil if it is a notification.
func (m *Monitor) wrapped(r *request, method string, params, meta json.RawMessage) {
	if m.from == theAgent {
		if m.breaks(ckProxySuccessor, m.proxy.last) {
			m.add(ckProxySuccessor, "method", "sent proxy/successor, and has none: it was asked with initialize")
		}
		if m.breaks(ckProxyInit, method == "proxy/initialize") {
			m.add(ckProxyInit, "params.method", "passed proxy/initialize on to its successor, which gets initialize")
		}
		if method == "initialize" && r != nil {
			m.proxy.forward, r.facts = true, &forwardFacts{}
		}
	}
	if m.breaks(ckProxyCancel, method == "$/cancel_request") {
		m.add(ckProxyCancel, "params.method", "passed $/cancel_request on in an envelope")
	}
	if len(meta) == 0 {
		m.breaks(ckProxyMeta, false)
		return
	}
	var in struct {
		Meta json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(params, &in) // params may be an array, or missing
	if m.breaks(ckProxyMeta, len(meta) > len("{}") && bytes.Equal(meta, in.Meta)) {
		m.add(ckProxyMeta, "params._meta", "copied _meta of what is in an envelope to the envelope")
	}
}

// proxyAnswered looks at the version that a proxy answers for its chain.
func (m *Monitor) proxyAnswered(r *request, version int) {
	if r.name != "proxy/initialize" || m.gap {
		return
	}
	if m.breaks(ckProxyFirst, !m.proxy.forward) {
		m.add(ckProxyFirst, "result", "answered proxy/initialize before it passed initialize on")
	}
	if v := m.proxy.version; v != 0 && m.breaks(ckProxyVersion, v != version) {
		m.add(ckProxyVersion, "result.protocolVersion", "answered version %d where its successor had answered %d", version, v)
	}
}
