package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// takes notes a request of the agent. It reports false for one that has the id of one that waits, which is to be
// refused.
func (hs *heldStream) takes(ev heldEvent, e *envelope) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if a := hs.asks[string(e.ID)]; a != nil && !a.over {
		return false
	}
	hs.asks[string(e.ID)] = &heldAsk{id: bytes.Clone(e.ID), seq: ev.seq, raw: bytes.Clone(ev.text)} // the connection may change what it reads
	return true
}

// refuse answers a request that has the id of one that waits, as a connection does. The connection does not get it: its
// refusal would look like the answer that the user gives to the other one.
func (hs *heldStream) refuse(e *envelope) {
	no := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid request: id is already in flight"}
	hs.writing.Lock()
	defer hs.writing.Unlock()
	_ = hs.h.WriteFrame(replaceID(nil, &envelope{Error: encode(no)}, e.ID)) // reading says what is wrong
}

// respond answers a request of the agent.
func (hs *heldStream) respond(data []byte, e *envelope) error {
	hs.mu.Lock()
	a := hs.asks[string(e.ID)]
	hs.mu.Unlock()
	if a != nil && a.ask != "" {
		records := []engine.Record{{Kind: kindSent, Data: encode(sentRecord{Frame: hs.h.Sent() + 1, Ask: a.ask})}}
		if answer := hs.keeps(a); answer != nil {
			records = append([]engine.Record{{Kind: kindAnswer, Data: encode(answer)}}, records...)
		}
		if _, err := hs.s.log.commitAll(hs.s.ctx, records...); err != nil {
			return err
		}
	}
	if a != nil {
		hs.mu.Lock()
		a.over = true
		hs.mu.Unlock()
	}
	if err := hs.h.WriteFrame(data); err != nil {
		return err
	}
	if a != nil {
		hs.mu.Lock()
		if hs.asks[string(e.ID)] == a { // and not one that has its id meanwhile
			delete(hs.asks, string(e.ID))
		}
		withdrawn := a.withdrawn
		hs.mu.Unlock()
		if a.ask == "" {
			hs.dropped(a.seq)
		}
		hs.dropped(withdrawn)
	}
	return nil
}

// withdraws notes that the agent withdraws a request. It reports false if no such request waits.
func (hs *heldStream) withdraws(ev heldEvent, e *envelope) bool {
	var params struct{ RequestID json.RawMessage }
	if json.Unmarshal(e.Params, &params) != nil {
		return false
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	a := hs.asks[string(params.RequestID)]
	if a == nil || a.over || a.withdrawn > 0 {
		return false
	}
	a.withdrawn = ev.seq
	return true
}

// answers has a decision kept with the frame in which the agent hears it. It reports false if there will be none.
func (hs *heldStream) answers(a *heldAsk, answer *records.Decided) bool {
	if hs == nil || a == nil {
		return false
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	select {
	case <-hs.done:
		return false
	default:
	}
	if a.kept || a.over || hs.asks[string(a.id)] != a {
		return false // the library has answered in the hook's place
	}
	a.keeps = answer
	return true
}

// dealsWith reports whether the agent still waits for the decision on a question.
func (hs *heldStream) dealsWith(id string) bool {
	if hs == nil {
		return false
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	select {
	case <-hs.done:
		return false
	default:
	}
	for _, a := range hs.asks {
		if a.ask == id && !a.over {
			return true
		}
	}
	return false
}

// keeps takes the decision that is to be kept now, if there is one.
func (hs *heldStream) keeps(a *heldAsk) *records.Decided {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	answer := a.keeps
	a.keeps, a.kept = nil, true
	return answer
}

// asked returns the request of the agent that a hook's ctx belongs to, and the id of its question. The number of its event
// makes that: the agent may use the id of a request again.
func (hs *heldStream) asked(ctx context.Context) (a *heldAsk, id string) {
	r := jsonrpc.RequestFrom(ctx)
	if hs == nil || r == nil {
		return nil, ""
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if a = hs.asks[r.ID.String()]; a == nil {
		return nil, ""
	}
	if a.ask == "" {
		a.ask = "ask_" + hs.prefix + strconv.FormatUint(a.seq, 10)
	}
	return a, a.ask
}
