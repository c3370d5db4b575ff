package acp

import (
	"encoding/json"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// Steering is putting a message of the user into the turn that runs. The protocol has
// nothing for it yet; this is the extension of the most used agents.

// A SteerOutcome says what became of a message for the turn that runs. An agent may have
// others.
type SteerOutcome string

const (
	// SteerInjected means that the turn that runs has the message. It does not get a turn
	// of its own.
	SteerInjected SteerOutcome = "injected"
	// SteerPromptRequired means that no turn runs, and that nothing was done: send the
	// message as a prompt.
	SteerPromptRequired SteerOutcome = "promptRequired"
	// SteerStartedNewTurn means that the agent has begun a turn with the message, whose end
	// no prompt reports.
	SteerStartedNewTurn SteerOutcome = "startedNewTurn"
	// SteerFailed means that the agent could not do it.
	SteerFailed SteerOutcome = "failed"
	// SteerQueued is no outcome that agents report. [ClientSession.Steer] returns it if the
	// agent cannot put a message into a turn, so that nothing was sent: send it as a prompt,
	// which the agent queues, puts into the turn or refuses.
	SteerQueued SteerOutcome = "queued"
)

const methodSteering = "_session/steering"

// The params are those of a prompt.
var (
	steeringV1 = jsonrpc.Method[acpv1.PromptRequest, steeringResult]{Name: methodSteering}
	steeringV2 = jsonrpc.Method[acpv2.PromptRequest, steeringResult]{Name: methodSteering}
)

type steeringResult struct {
	Outcome SteerOutcome `json:"outcome"`
	Reason  string       `json:"reason,omitempty"`
}

// steeringMeta is what _meta says of steering, in the answer to initialize and in the
// request.
type steeringMeta struct {
	Steering struct {
		Supported    bool    `json:"supported"`
		IdleBehavior *string `json:"idleBehavior"`
	} `json:"steering"`
}

// idlePromptRequired asks the agent to do nothing if no turn runs. It is the only value.
const idlePromptRequired = "promptRequired"

// asksForPrompt adds to _meta of a request that the agent is to do nothing if no turn runs.
func asksForPrompt(meta json.RawMessage) json.RawMessage {
	return addMeta(meta, "steering", `{"idleBehavior":"`+idlePromptRequired+`"}`)
}

// addMeta adds a member to _meta, unless that is there or _meta is not an object.
func addMeta(meta json.RawMessage, key, value string) json.RawMessage {
	var all map[string]json.RawMessage
	if len(meta) > 0 && json.Unmarshal(meta, &all) != nil || all[key] != nil {
		return meta
	}
	if all == nil { // there is none, or null
		meta = json.RawMessage("{}")
	}
	added, err := withMember(meta, key, json.RawMessage(value))
	if err != nil {
		return meta
	}
	return added
}

// supportsSteering reports whether an agent says in _meta of its answer to initialize that
// it can be steered.
func supportsSteering(meta json.RawMessage) bool {
	var said steeringMeta
	return len(meta) > 0 && json.Unmarshal(meta, &said) == nil && said.Steering.Supported
}

// advertiseSteering adds to _meta of the answer to initialize that the agent can be
// steered, if it can and says nothing else.
func (a *Agent) advertiseSteering(meta json.RawMessage) json.RawMessage {
	if a.steers() {
		meta = addMeta(meta, "steering", `{"supported":true}`)
	}
	return meta
}

// steers reports whether the agent puts messages into a turn that runs.
func (a *Agent) steers() bool { return a.Busy == BusySteer || a.Steer != nil }
