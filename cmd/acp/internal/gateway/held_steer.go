package gateway

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/skills"
)

// This file sees to it that no message for a running turn is lost when the gateway dies. The gateway writes the message to the
// log before it sends it, and acknowledges the agent's answer only when the log says that the agent has the message.

// heldSteers are such messages. The lock of the stream guards them.
type heldSteers struct {
	waiting []*steering          // whose sender waits
	wires   map[string]*steering // that wait for an answer, by the ids of their requests
	answers map[*steering]uint64 // the events with the answers that the agent has them, while the log does not say so
}

// has reports whether an event is such an answer.
func (h *heldSteers) has(event uint64) bool {
	for _, e := range h.answers {
		if e == event {
			return true
		}
	}
	return false
}

// sendsSteer is called with a message that is about to be sent. When nobody waits for the answer any more, over is called: an
// answer that comes later says so in an update.
func (hs *heldStream) sendsSteer(m *steering) (over func()) {
	if hs == nil {
		return func() {}
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.steered.waiting = append(hs.steered.waiting, m)
	return func() {
		m.adopted.Store(true)
		hs.mu.Lock()
		defer hs.mu.Unlock()
		hs.steered.waiting = slices.DeleteFunc(hs.steered.waiting, func(o *steering) bool { return o == m })
	}
}

// noteSteer writes down a message that is sent next, with a request of these params.
func (hs *heldStream) noteSteer(wire string, params json.RawMessage) error {
	var said struct {
		SessionID acp.SessionID
		Prompt    []json.RawMessage
	}
	_ = json.Unmarshal(params, &said) // the library has made it
	var content []acp.ContentBlock
	for _, raw := range said.Prompt {
		if b, err := acpv2.UnmarshalContentBlock(raw); err == nil {
			content = append(content, b)
		}
	}
	text := textOf(skills.Plain(content))
	hs.mu.Lock()
	i := slices.IndexFunc(hs.steered.waiting, func(m *steering) bool { return m.text == text }) // one at most: see expects
	if i < 0 {
		hs.mu.Unlock()
		return nil
	}
	m := hs.steered.waiting[i] // where it stays: goose gets it again if another run works by now
	hs.mu.Unlock()
	hs.steers(wire, m)
	return hs.note(nil, sentRecord{Frame: hs.h.Sent() + 1, Wire: wire, Ask: string(m.id), Steer: m.raw})
}

// steers notes with which request a message was sent.
func (hs *heldStream) steers(wire string, m *steering) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.steered.wires == nil {
		hs.steered.wires, hs.steered.answers = make(map[string]*steering), make(map[*steering]uint64)
	}
	hs.steered.wires[wire] = m
}

// takesSteer reports whether the answer to a request says that the agent has a message, while the log does not. If nobody waits
// for the answer, it returns an update that says so in its place. The caller holds mu.
func (hs *heldStream) takesSteer(wire string, ev heldEvent, e *envelope) (update []byte, taken bool) {
	m := hs.steered.wires[wire]
	delete(hs.steered.wires, wire)
	var res struct {
		Outcome acp.SteerOutcome
		RunID   string // which goose has given it to
	}
	if m == nil || json.Unmarshal(e.Result, &res) != nil || !isTaken(res.Outcome) && res.RunID == "" {
		return nil, false
	}
	hs.steered.answers[m] = ev.seq
	if m.adopted.Load() {
		update = encode(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{
			"sessionId": m.session, "update": &acpv2.UserMessageChunk{MessageID: m.id, Content: acp.Text("")},
		}})
	}
	return update, true
}

// steeredBy returns the event with which the agent has said that it has a message: that of an update or, if that is 0, the
// one with its answer; or 0. The log is about to say so.
func (hs *heldStream) steeredBy(m *steering, update uint64) uint64 {
	if hs == nil {
		return 0
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	maps.DeleteFunc(hs.steered.wires, func(_ string, o *steering) bool { return o == m })
	if update > 0 {
		return update
	}
	return hs.steered.answers[m]
}

// keptSteer is called once the log says that the agent has a message.
func (hs *heldStream) keptSteer(m *steering) {
	if hs == nil {
		return
	}
	hs.mu.Lock()
	answer := hs.steered.answers[m] // which may have come before an update said it
	delete(hs.steered.answers, m)
	hs.mu.Unlock()
	hs.dropped(answer)
}
