package conformance

import (
	"encoding/json"

	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

var (
	ckCapSteering   = decides("client/capability/steering")
	ckSteerAnswered = decides("agent/steering/answered")
	ckSteerOutcome  = decides("agent/steering/outcome")
	ckSteerIdle     = decides("agent/steering/idle")
	ckSteerRunning  = decides("agent/steering/running")
	ckVendor        = decides("client/capability/vendor")
)

// steering is the extension by which messages reach a turn that runs.
const steering = "_session/steering"

// steerFacts is what the answer to such a message is judged by.
type steerFacts struct {
	required bool // a client wants to send a prompt itself if no turn runs
	idle     bool // none ran
	turn     int  // the number of the last one
}

// steers looks at a message for a turn that runs.
func (m *Monitor) steers(e *envelope, r *request) {
	if r.name != steering || m.from != theClient {
		return
	}
	m.offered1(ckCapSteering, m.agent.steering, "method", "_meta.steering")
	f := &steerFacts{}
	r.facts = f
	var p struct {
		Meta struct {
			Steering struct {
				IdleBehavior string `json:"idleBehavior"`
			} `json:"steering"`
		} `json:"_meta"`
	}
	if e.has&hasParams != 0 {
		m.d.Seek(e.params)
		_ = json.Unmarshal(m.d.Raw(), &p) // without it nothing is required
	}
	f.required = p.Meta.Steering.IdleBehavior == "promptRequired"
	if s := r.s; s != nil && !m.gap && !s.guessed && !s.child && !s.startsTurns && s.opening == 0 {
		f.idle, f.turn = m.rests(s), s.turn
	}
}

// rests reports whether a session certainly has no turn.
func (m *Monitor) rests(s *session) bool {
	if m.version != 2 {
		return s.turns == 0
	}
	for _, e := range m.open[theClient].m {
		if e.v.s == s && e.v.name == "session/prompt" {
			return false
		}
	}
	return s.state == "idle" && s.reported && !s.work && len(s.receipts.m) == 0
}

// steered looks at the result of such a message.
func (m *Monitor) steered(e *envelope, r *request) {
	f, ok := r.facts.(*steerFacts)
	if !ok {
		return
	}
	if m.agent.steering {
		m.breaks(ckSteerAnswered, false)
	}
	outcome := m.text(e.result, "outcome")
	known := outcome == "injected" || outcome == "promptRequired" || outcome == "startedNewTurn" || outcome == "failed"
	m.expect(ckSteerOutcome, known, "result.outcome", "answered with the unknown outcome %s", quote(outcome))
	begun := outcome == "startedNewTurn"
	if r.s != nil {
		r.s.startsTurns = r.s.startsTurns || begun
	}
	if m.breaks(ckSteerIdle, f.required && begun) {
		m.add(ckSteerIdle, "result.outcome", "began a turn for a client that wants to send a prompt itself")
	}
	same := r.s != nil && f.idle && r.s.turn == f.turn && m.rests(r.s)
	if m.breaks(ckSteerRunning, outcome == "injected" && same) {
		m.add(ckSteerRunning, "result.outcome", "put a message into a turn, and none ran")
	}
}

// steerRefused looks at an error that answers such a message.
func (m *Monitor) steerRefused(r *request, we *jsonrpc.Error) {
	if r.name == steering && m.agent.steering && m.breaks(ckSteerAnswered, we.Code == jsonrpc.CodeMethodNotFound) {
		m.add(ckSteerAnswered, "error.code", "advertised steering, and does not know %s", steering)
	}
}

// steerable reports whether an agent's answer to initialize advertises that.
func steerable(meta json.RawMessage) bool {
	var v struct {
		Steering struct {
			Supported bool `json:"supported"`
		} `json:"steering"`
	}
	return len(meta) > 0 && json.Unmarshal(meta, &v) == nil && v.Steering.Supported
}

// vendors looks at the _meta of what a client offers.
func (m *Monitor) vendors(all ...json.RawMessage) {
	for _, meta := range all {
		if len(meta) == 0 {
			continue
		}
		var d wire.Decoder
		d.Reset(meta, false)
		air := false
		for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
			name := string(k)
			raw := d.Raw()
			var v struct {
				Air json.RawMessage `json:"air"`
			}
			air = air || name == "jetbrains.air" || name == "jetbrains" && json.Unmarshal(raw, &v) == nil && v.Air != nil
		}
		if m.breaks(ckVendor, air) {
			m.add(ckVendor, "params._meta",
				"declared _meta.jetbrains.air, which changes what agents send to forms of one vendor")
		}
	}
	m.breaks(ckVendor, false)
}
