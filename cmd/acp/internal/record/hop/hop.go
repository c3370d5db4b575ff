// Package hop writes what passes between the components of a chain as the frames that recordings
// consist of. The ids of a chain's connections are the conductor's own, so that frames get others.
package hop

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

// Names of the ends of a chain in recordings.
const (
	Client = "Client"
	Agent  = "Agent"
)

// Request returns the frame of a request, or of a notification if id is 0. params may be nil.
func Request(id int64, method string, params json.RawMessage) []byte {
	b := []byte(`{"jsonrpc":"2.0",`)
	if id != 0 {
		b = append(strconv.AppendInt(append(b, `"id":`...), id, 10), ',')
	}
	name, _ := json.Marshal(method) // a string cannot fail
	b = append(append(b, `"method":`...), name...)
	if len(params) > 0 {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}

// Answer returns the frame of the answer to a request. An error that is none of the protocol becomes an
// internal error.
func Answer(id int64, result json.RawMessage, err error) []byte {
	b := strconv.AppendInt([]byte(`{"jsonrpc":"2.0","id":`), id, 10)
	if err != nil {
		said, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok {
			said = jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", err.Error())
		}
		with, failed := said.AppendJSON(append(b, `,"error":`...))
		if failed == nil {
			return append(with, '}')
		}
		return append(b, `,"error":{"code":-32603,"message":"Internal error"}}`...)
	}
	if len(result) == 0 {
		result = json.RawMessage("null")
	}
	return append(append(append(b, `,"result":`...), result...), '}')
}

// Recorder returns what a conductor's Trace can be: it records to rec. last is the place of the agent.
func Recorder(rec *trace.Recorder, last int) func(acp.ChainMessage) {
	name := func(at int, name string) string {
		switch at {
		case 0:
			return Client
		case last:
			return Agent
		}
		return name
	}
	return func(h acp.ChainMessage) {
		r := trace.Record{Kind: trace.Frame, Dir: trace.ToAgent, At: h.Time.Sub(rec.Started())}
		from, to := name(h.FromAt, h.From), name(h.ToAt, h.To)
		r.Hop = trace.Hop{Client: from, Agent: to}
		if h.FromAt > h.ToAt {
			r.Dir, r.Hop = trace.ToClient, trace.Hop{Client: to, Agent: from}
		}
		switch h.Kind {
		case acp.ChainRequest:
			r.Data = Request(h.ID, h.Method, h.Params)
		case acp.ChainNotification:
			r.Data = Request(0, h.Method, h.Params)
		default:
			r.Data = Answer(h.ID, h.Result, h.Err)
		}
		rec.Record(&r)
	}
}
