package transcript

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
)

// v1State is the state that translating version 1 of the protocol needs.
type v1State struct {
	updates translate.FromV1
	prompts int
	round   int // how often a conversation was continued from a snapshot, as far as generated ids show
	buf     []acpv2.SessionUpdate
}

// made returns an id for one that was generated in this round. In another round the same
// id may have been given to another message.
func (v *v1State) made(id string) acpv2.MessageID {
	if v.round == 0 {
		return acpv2.MessageID(id)
	}
	return acpv2.MessageID(roundMark + strconv.Itoa(v.round) + "-" + id)
}

const roundMark = "again"

// after makes the round later than that of an id.
func (v *v1State) after(id string) {
	if rest, ok := strings.CutPrefix(id, roundMark); ok {
		digits, _, _ := strings.Cut(rest, "-")
		if n, err := strconv.Atoi(digits); err == nil && n < math.MaxInt {
			v.round = max(v.round, n+1)
		}
	}
}

// ApplyV1 is [Conversation.Apply] for an update of protocol version 1, which it
// translates to version 2: messages without an id get one, the plan is called plan, and
// the mode is a config option. It usually returns one change, and none if version 2 has
// no such update.
func (c *Conversation) ApplyV1(u acpv1.SessionUpdate) []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u == nil || reflect.ValueOf(u).IsNil() {
		c.loss.Updates++
		return nil
	}
	c.v1.buf = c.v1.updates.Append(c.v1.buf[:0], u)
	defer clear(c.v1.buf)
	if len(c.v1.buf) == 1 {
		c.v1.rename(u, c.v1.buf[0])
	}
	return c.applyAll(c.v1.buf)
}

// rename gives a chunk without an id the id of this round.
func (v *v1State) rename(from acpv1.SessionUpdate, to acpv2.SessionUpdate) {
	var id acpv1.MessageID
	switch from := from.(type) {
	case *acpv1.UserMessageChunk:
		id = from.MessageID
	case *acpv1.AgentMessageChunk:
		id = from.MessageID
	case *acpv1.AgentThoughtChunk:
		id = from.MessageID
	default:
		return
	}
	if id != "" {
		return
	}
	switch to := to.(type) {
	case *acpv2.UserMessageChunk:
		to.MessageID = v.made(string(to.MessageID))
	case *acpv2.AgentMessageChunk:
		to.MessageID = v.made(string(to.MessageID))
	case *acpv2.AgentThoughtChunk:
		to.MessageID = v.made(string(to.MessageID))
	}
}

func (c *Conversation) applyAll(us []acpv2.SessionUpdate) []Change {
	out := make([]Change, 0, len(us))
	for _, u := range us {
		out = append(out, c.apply(u))
	}
	return out
}

// OpenedV1 sets the modes and options that a session of protocol version 1 is opened
// with, from the result of session/new, load, resume or fork. unknown are the unknown
// members of that result, where older agents have their models. Without OpenedV1 a
// change of mode is shown without the other modes.
func (c *Conversation) OpenedV1(modes *acpv1.SessionModeState, options []acpv1.SessionConfigOption, unknown json.RawMessage) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apply(&acpv2.ConfigOptionUpdate{ConfigOptions: translate.SessionOptionsFromV1(options, modes, unknown)})
}

// PromptedV1 adds a prompt that a client of protocol version 1 has sent, which agents do
// not report: the user's message gets a generated id, a message of the agent without an
// id ends, and the session is running.
func (c *Conversation) PromptedV1(prompt []acpv1.ContentBlock) []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.v1.updates.Boundary()
	c.v1.prompts++
	id := c.v1.made("v1-prompt-" + strconv.Itoa(c.v1.prompts))
	return c.applyAll([]acpv2.SessionUpdate{
		&acpv2.UserMessage{MessageID: id, Content: acpv2.Set(translate.BlocksFromV1(prompt))},
		&acpv2.RunningStateUpdate{},
	})
}

// EndedV1 sets the session to idle: the answer to a prompt of protocol version 1.
func (c *Conversation) EndedV1(res *acpv1.PromptResponse) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.v1.updates.Boundary()
	return c.apply(&acpv2.IdleStateUpdate{
		StopReason: translate.StopReasonFromV1(res.StopReason),
		Usage:      translate.UsageFromV1(res.Usage),
	})
}
