package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

// maxReason bounds the message of an error that the relay answers with, in cells.
const maxReason = 1000

// survive deals with an error of reading after which the next message can be read. Otherwise it
// returns false and the error. It may fail to write, which ends the direction as well.
func (r *relay) survive(err error, from, to *end, side Side) (handled bool, _ error) {
	if lost, ok := errors.AsType[*jsonrpc.UnansweredError](err); ok {
		if side == Far && r.answered(lost.ID) {
			err = to.write(r.failure(lost.ID, lost.Err))
			return err == nil, err
		}
		return true, nil
	}
	big, ok := errors.AsType[*jsonrpc.FrameTooLargeError](err)
	if !ok {
		return false, err
	}
	r.o.Logger.Debug("a message is too large and was skipped", "size", big.Size, "limit", big.Limit, slog.Bool("agent", side == Far))
	request, id := beginning(big.Prefix)
	switch {
	case id == nil:
		return true, nil
	case request:
		err = from.write(tooLarge(id, big))
	default:
		if side == Far {
			r.answered(id)
		}
		err = to.write(r.failure(id, fmt.Errorf("the answer is too large: %d bytes, at most %d are forwarded", big.Size, big.Limit)))
	}
	return err == nil, err
}

// beginning returns what the beginning of a message says: whether it is a request, and its id, or nil
// if that is not known.
func beginning(prefix []byte) (request bool, id []byte) {
	var d wire.Decoder
	d.Reset(prefix, false)
	if d.Peek() != '{' {
		return false, nil
	}
	for key, ok := d.FirstKey(); ok; key, ok = d.NextKey() {
		switch string(key) {
		case "method":
			request = true
			d.Skip()
		case "id":
			if raw := d.Raw(); d.SyntaxErr() == nil {
				id = raw
			}
		default:
			d.Skip()
		}
	}
	return request, id
}

// An answer is a response with an error.
type answer struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   problem         `json:"error"`
}

type problem struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// A refusal is the data of an error that an HTTP server has refused a request with. The TypeScript
// SDK's client uses the same members.
type refusal struct {
	Status int    `json:"status"`
	Body   string `json:"body"`
}

// failure returns the answer to a request that failed on the way.
func (r *relay) failure(id []byte, err error) []byte {
	if r.o.Explain != nil {
		if why := r.o.Explain(err); why != nil {
			err = why
		}
	}
	p := problem{Code: jsonrpc.CodeInternalError, Message: safetext.Line(err.Error(), maxReason)}
	if said, ok := errors.AsType[*acphttp.StatusError](err); ok {
		p.Data = refusal{said.Status, said.Text}
	}
	return encode(id, p)
}

// tooLarge returns the answer to a request that is too large.
func tooLarge(id []byte, big *jsonrpc.FrameTooLargeError) []byte {
	return encode(id, problem{
		Code: jsonrpc.CodeInvalidRequest, Message: "Invalid request: message too large",
		Data: map[string]int{"limit": big.Limit},
	})
}

func encode(id []byte, p problem) []byte {
	text, err := json.Marshal(answer{"2.0", id, p})
	if err != nil { // the id is not JSON, so nobody waits for it
		text, _ = json.Marshal(answer{"2.0", json.RawMessage("null"), p})
	}
	return text
}
