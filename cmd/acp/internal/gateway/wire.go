package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/jsonrpc"
)

// What nodes say to each other, as JSON-RPC. The node that a client is connected to calls; the owner of the
// session answers. What is committed comes from the owner by itself, and is a hint only: whoever misses some of it
// reads the log.
//
//	open      request       visit the session, and have what happens in it from now on
//	begin     request       the same for a session that is new: its agent is started
//	leave     notification  end the visit
//	prompt    request       queue a prompt; the answer is the end of its turn
//	cancel    notification  cancel a prompt, or what runs
//	steer     request       have the agent take a message into the turn that runs
//	option    request       change an option
//	change    request       change something else about the session
//	files     request       list files of its directory
//	asking    notification  a client is being asked
//	answer    notification  and has answered, or is not asked any more
//	present   notification  who is attached to the session, without clients of the other node; both say so
//	drain     request       give up all sessions, or stop doing so
//	remove    request       end a session and delete it
//	count     request       how many clients and questions sessions have there
//
//	records   notification  from the owner: committed records
//	ask       notification  from the owner: a question is open
//	asked     notification  from the owner: and is not any more
//	over      notification  from the owner: the session does not run there any more
var (
	rpcOpen   = jsonrpc.Method[wireOpen, wireOpened]{Name: "open"}
	rpcBegin  = jsonrpc.Method[wireOpen, wireOpened]{Name: "begin"}
	rpcPrompt = jsonrpc.Method[wirePrompt, wireEnd]{Name: "prompt"}
	rpcOption = jsonrpc.Method[wireOption, wireEnd]{Name: "option"}
	rpcLeave  = jsonrpc.Notification[wireSession]{Name: "leave"}
	rpcCancel = jsonrpc.Notification[wireCancel]{Name: "cancel"}
	rpcAsking = jsonrpc.Notification[wireAnswer]{Name: "asking"}
	rpcAnswer = jsonrpc.Notification[wireAnswer]{Name: "answer"}

	rpcRecords = jsonrpc.Notification[wireRecords]{Name: "records"}
	rpcAsk     = jsonrpc.Notification[wireAsk]{Name: "ask"}
	rpcAsked   = jsonrpc.Notification[wireAnswer]{Name: "asked"}
	rpcOver    = jsonrpc.Notification[wireSession]{Name: "over"}
)

// laneOf is the lane of a message between nodes: that of its session.
func laneOf(_ string, params any) string {
	if p, ok := params.(interface{ lane() string }); ok {
		return p.lane()
	}
	return ""
}

// A wireSession names a session, and the visit that a message is about. What is about another visit is ignored.
type wireSession struct {
	Session string `json:"session"`
	Visit   uint64 `json:"visit"`
}

func (s *wireSession) lane() string { return s.Session }

// A wireOpen begins a visit. A node numbers its visits in the order in which they begin, also over restarts.
type wireOpen struct {
	wireSession
	Node string `json:"node"` // that visits
}

// wireOpened is what is open in a session that is visited.
type wireOpened struct {
	Failure *wireFailure `json:"failure,omitempty"`
	Asks    []wireAsk    `json:"asks,omitempty"`
	There   crowd        `json:"there,omitzero"` // who is attached to it
}

type wirePrompt struct {
	wireSession
	ID        acp.MessageID   `json:"id"`
	By        string          `json:"by"`
	From      string          `json:"from,omitempty"` // what others see of by
	Rank      string          `json:"rank,omitempty"` // see turn
	Operation string          `json:"op,omitempty"`
	Content   json.RawMessage `json:"content"` // a prompt request of version 2
	Trace     acp.Trace       `json:"trace,omitzero"`
}

// wireEnd is the end of a turn, or of any other request.
type wireEnd struct {
	Stop     acp.StopReason `json:"stop,omitempty"`
	Failure  *wireFailure   `json:"failure,omitempty"`
	Refused  bool           `json:"refused,omitempty"`
	Unqueued bool           `json:"unqueued,omitempty"` // it was not queued, since the session moves
	Seq      uint64         `json:"seq,omitempty"`
	First    acp.MessageID  `json:"first,omitempty"` // the prompt was sent before, and ran under this name
}

type wireCancel struct {
	wireSession
	ID acp.MessageID `json:"id,omitempty"` // "" is the turn that runs
	By string        `json:"by"`
	// From is what others see of that.
	From string `json:"from,omitempty"`
}

type wireOption struct {
	wireSession
	Request json.RawMessage `json:"request"` // a session/set_config_option of version 2
}

// wireAsk is a question.
type wireAsk struct {
	wireSession
	ID         string          `json:"id"`
	Seq        uint64          `json:"seq"`
	Title      string          `json:"title"`
	Permission json.RawMessage `json:"permission,omitempty"` // a session/request_permission of version 2
	Form       json.RawMessage `json:"form,omitempty"`
	URL        string          `json:"url,omitempty"`
	Message    string          `json:"message,omitempty"`
	ToolCall   acp.ToolCallID  `json:"toolCall,omitempty"`
	Meta       json.RawMessage `json:"meta,omitempty"`
}

// wireAnswer is what a client has answered, if anything.
type wireAnswer struct {
	wireSession
	ID       string    `json:"id"`
	By       string    `json:"by,omitempty"`
	Decision *decision `json:"decision,omitempty"` // nil if the client is not asked any more
}

type wireRecords struct {
	wireSession
	Records []wireRecord `json:"records"`
}

type wireRecord struct {
	Seq   uint64 `json:"n"`
	Epoch uint32 `json:"e"`
	Time  int64  `json:"t"`
	Kind  string `json:"k"`
	Data  []byte `json:"d"` // exactly the bytes that the hash is of
	Hash  []byte `json:"h"`
}

func toWire(r engine.Record) wireRecord {
	return wireRecord{r.Seq, r.Epoch, r.At.UnixNano(), string(r.Kind), r.Data, r.Hash[:]}
}

func (w *wireRecord) record() (engine.Record, error) {
	r := engine.Record{Seq: w.Seq, From: w.Seq, Epoch: w.Epoch, At: time.Unix(0, w.Time).UTC(), Kind: engine.Kind(w.Kind), Data: w.Data}
	if copy(r.Hash[:], w.Hash) != len(r.Hash) || len(w.Hash) != len(r.Hash) {
		return r, fmt.Errorf("record %d has no hash", w.Seq)
	}
	return r, nil
}

// wireFailure is an error as the client of another node gets it.
type wireFailure struct {
	Code    int           `json:"code,omitempty"`
	Message string        `json:"message"`
	Reason  string        `json:"reason,omitempty"`
	Private bool          `json:"private,omitempty"` // the message is not for clients
	Retry   time.Duration `json:"retry,omitempty"`
}

// failed returns what the other node gets for an error.
func failed(err error) *wireFailure {
	if err == nil {
		return nil
	}
	f := &wireFailure{Message: err.Error()}
	var failure *jsonrpc.Failure
	var answer *jsonrpc.Error
	switch {
	case errors.As(err, &failure):
		f.Code, f.Message, f.Reason, f.Retry = failure.Code, failure.Message, failure.Reason, failure.RetryAfter
	case errors.As(err, &answer):
		f.Code, f.Message = answer.Code, answer.Message
	case errors.Is(err, errGone), errors.Is(err, engine.ErrOwned), errors.Is(err, engine.ErrFenced), errors.Is(err, ErrClosed), errors.Is(err, engine.ErrLapsed):
		f.Reason = "moved"
	case errors.Is(err, errUnsuited):
		f.Reason = "unsuited"
	default:
		f.Private = true
	}
	return f
}

// err returns the error of a failure, or nil.
func (f *wireFailure) err() error {
	switch {
	case f == nil:
		return nil
	case f.Reason == "moved":
		return fmt.Errorf("%w: %s", errGone, f.Message)
	case f.Reason == "unsuited":
		return errUnsuited
	case f.Private:
		return fmt.Errorf("another node: %s", f.Message)
	case f.Code != 0 && f.Reason == "":
		return jsonrpc.Errorf(f.Code, "%s", f.Message)
	}
	return &jsonrpc.Failure{Code: f.Code, Message: f.Message, Reason: f.Reason, RetryAfter: f.Retry}
}

// toWire returns a question as other nodes get it.
func (a *ask) toWire(session string) (wireAsk, error) {
	w := wireAsk{wireSession: wireSession{Session: session}, ID: a.id, Seq: a.seq, Title: a.title}
	var err error
	switch {
	case a.permission != nil:
		p := a.permission
		w.Permission, err = json.Marshal(&acpv2.RequestPermissionRequest{
			SessionID: acp.SessionID(session), Title: p.Title, Description: p.Description, Subject: p.Subject, Options: p.Options, Meta: p.Meta,
		})
	case a.form != nil:
		w.Message, w.ToolCall, w.Meta = a.form.Message, a.form.ToolCallID, a.form.Meta
		w.Form, err = json.Marshal(a.form.Schema)
	default:
		w.Message, w.ToolCall, w.Meta, w.URL = a.link.Message, a.link.ToolCallID, a.link.Meta, a.link.URL
	}
	return w, err
}

// ask returns the question.
func (w *wireAsk) ask() (*ask, error) {
	a := &ask{id: w.ID, title: w.Title, seq: w.Seq}
	switch {
	case len(w.Permission) > 0:
		var p acpv2.RequestPermissionRequest
		if err := json.Unmarshal(w.Permission, &p); err != nil {
			return nil, err
		}
		a.permission = &acp.Permission{Title: p.Title, Description: p.Description, Options: p.Options, Subject: p.Subject, Meta: p.Meta}
	case len(w.Form) > 0:
		a.form = &acp.FormRequest{Message: w.Message, ToolCallID: w.ToolCall, Meta: w.Meta}
		if err := json.Unmarshal(w.Form, &a.form.Schema); err != nil {
			return nil, err
		}
	default:
		a.link = &acp.LinkRequest{Message: w.Message, URL: w.URL, ToolCallID: w.ToolCall, Meta: w.Meta}
	}
	return a, nil
}
