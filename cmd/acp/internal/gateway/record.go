package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/jsonrpc"
)

// maxRecord bounds what is kept in one record, in bytes.
const maxRecord = engine.MaxData - 64<<10

// Kinds of records.
const (
	kindPrompt = journal.KindPrompt  // promptRecord: a client's prompt, as its turn begins
	kindUpdate = journal.KindUpdate  // a session update of version 2
	kindChild  = journal.KindChild   // the same of the session of a subagent
	kindEnd    = journal.KindEnd     // endRecord
	kindAsk    = journal.KindAsked   // askRecord: the agent asks
	kindAnswer = journal.KindDecided // answerRecord: and has an answer
	kindLate   = journal.KindLate    // answerRecord: an answer that came when there was a decision, and counts for nothing
	kindNotice = journal.KindNotice  // noticeRecord: what the gateway has to say
	kindShare  = journal.KindShared  // shareRecord

	kindDropped  = journal.KindDropped  // droppedRecord: a prompt that was cancelled before it began
	kindFork     = journal.KindFork     // forkRecord: what the session was forked from
	kindStart    = journal.KindStart    // an agent is started that outlives the gateway
	kindSent     = journal.KindSent     // sentRecord: what it is sent next
	kindAccepted = journal.KindAccepted // acceptedRecord: its answer to a prompt, in version 2
	kindMark     = journal.KindMark     // stamp: of events without a record
)

// Says returns what a record says about its session: see [engine.Options].
func Says(r *engine.Record) (said engine.Said) {
	switch r.Kind {
	case kindPrompt:
		said.State = stateRunning
	case kindEnd:
		if end, err := decodeEnd(r.Data); err == nil {
			said.State = end.state()
		}
	case kindShare:
		var s shareRecord
		if json.Unmarshal(r.Data, &s) == nil && s.User != "" {
			if s.Role == RoleNone {
				s.Role = ""
			}
			said.Share = &engine.Share{User: s.User, Role: s.Role}
		}
	}
	return said
}

// States of sessions in the engine.
const (
	stateIdle    = "idle"
	stateRunning = "running" // a turn runs, or ran when its process died
	stateFailed  = "failed"  // the last turn did
	stateStopped = "stopped" // the last turn was cancelled, or its agent did not come to the end
)

// A stamp says which event of an agent that outlives the gateway a record is about, and up to which one
// all have reached the log.
type stamp struct {
	Event  uint64 `json:"e,omitempty"`
	Marked uint64 `json:"w,omitempty"`
}

// sentRecord is a frame for such an agent, before it is sent.
type sentRecord struct {
	Frame uint64 `json:"frame"`
	Wire  string `json:"wire,omitempty"` // the id of the request, which is a prompt
	Ask   string `json:"ask,omitempty"`  // or the question that is answered
}

// acceptedRecord is the answer to a prompt in version 2.
type acceptedRecord struct {
	Result json.RawMessage `json:"result"`
	stamp
}

// promptRecord is a prompt whose turn begins.
type promptRecord struct {
	ID string `json:"id"` // of the prompt as a message
	By string `json:"by"` // its principal
	// From is what others see of that, if it is something else, and Rank what the client was in the session.
	From string `json:"from,omitempty"`
	Rank string `json:"rank,omitempty"`
	// Operation is the client's name for it, or "".
	Operation string             `json:"op,omitempty"`
	Content   []acp.ContentBlock `json:"-"`
	Raw       json.RawMessage    `json:"content"`
}

// droppedRecord is a prompt with a name that never began, since its client has cancelled it.
type droppedRecord struct {
	ID        string `json:"id"`
	By        string `json:"by"`
	Operation string `json:"op"`
	Sum       string `json:"sum"` // of what it says
}

// message returns the prompt as the clients of a principal see it, but for the one that has sent it.
func (p *promptRecord) message(principal string) *acp.UserMessage {
	return &acp.UserMessage{MessageID: acp.MessageID(p.ID), Content: acp.Set(p.Content), Meta: p.meta(principal)}
}

// endRecord is the end of a turn.
type endRecord struct {
	Prompt string         `json:"prompt"` // the id of its prompt
	Stop   acp.StopReason `json:"stop,omitempty"`
	Error  string         `json:"error,omitempty"` // in place of Stop
	By     string         `json:"by,omitempty"`    // who has stopped it, as others see it
	Lost   bool           `json:"lost,omitempty"`  // the agent or the gateway died in the turn
	Noted  bool           `json:"noted,omitempty"` // a notice follows that says so

	Meta json.RawMessage `json:"meta,omitempty"` // what the agent says of the turn in metadata
	stamp
}

// maxEndMeta bounds the metadata of a turn that is kept, in bytes. More of it is left out.
const maxEndMeta = 16 << 10

// outcome returns how the turn has ended. seq is the number of the record.
func (e *endRecord) outcome(seq uint64) turnEnd {
	end := turnEnd{stop: e.Stop, seq: seq, by: e.By, meta: e.Meta}
	if e.Error != "" {
		end.err = &jsonrpc.Failure{Message: e.Error, Reason: "agent"}
	}
	return end
}

func decodeEnd(data []byte) (end endRecord, err error) {
	err = json.Unmarshal(data, &end)
	return end, err
}

// askRecord is a question to the user.
type askRecord struct {
	ID    string          `json:"id"`
	Title string          `json:"title"`
	Raw   json.RawMessage `json:"raw,omitempty"` // the request of an agent that outlives the gateway
	stamp

	seq, sent uint64        // its record, and the frame with the answer
	decided   *answerRecord // the answer, if there is one
}

// answerRecord is the decision on a question.
type answerRecord struct {
	ID      string `json:"id"`
	By      string `json:"by,omitempty"`
	Outcome string `json:"outcome"` // the option, "cancelled", "accepted" and the like
	// Title is that of the question, Name that of the option, From what others see of By, and Key the client that
	// has answered. They are for people who look on.
	Title string `json:"title,omitempty"`
	Name  string `json:"name,omitempty"`
	From  string `json:"from,omitempty"`
	Key   string `json:"key,omitempty"`
	// Call is the tool call that was asked about, and Child the session of the subagent it belongs to, or "". Kind is
	// that of the option, and Rule says that a rule has answered. Detail is what would be done, if there is no call.
	Call   acp.ToolCallID           `json:"call,omitempty"`
	Child  acp.SessionID            `json:"child,omitempty"`
	Kind   acp.PermissionOptionKind `json:"kind,omitempty"`
	Rule   bool                     `json:"rule,omitempty"`
	Detail string                   `json:"detail,omitempty"`
	// Content is what was entered in a form, if the agent outlives the gateway: the next one may have to tell it.
	Content map[string]json.RawMessage `json:"content,omitempty"`
}

// noticeRecord is something that people should know.
type noticeRecord struct {
	Severity    acp.NoticeSeverity `json:"severity"`
	Title       string             `json:"title"`
	Description string             `json:"description,omitempty"`
}

// plainNotice returns the text of a notice for a client of version 1, which has no notices.
func plainNotice(title, description string) string {
	return strings.TrimSpace(title + " " + description)
}

// encode returns a record's data. It cannot fail for the types of this file.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("gateway: encode a record: %v", err)) // a defect of this package
	}
	return data
}

// encodePrompt returns the data of a prompt.
func encodePrompt(p promptRecord) ([]byte, error) {
	raw, err := rawPrompt(p.Content)
	if err != nil {
		return nil, err
	}
	p.Raw = raw
	return json.Marshal(p)
}

// rawPrompt returns what a prompt says as its record has it.
func rawPrompt(content []acp.ContentBlock) (json.RawMessage, error) {
	return json.Marshal(acpv2.PromptRequest{Prompt: content})
}

// decodePrompt reads the data of a prompt.
func decodePrompt(data []byte) (p promptRecord, err error) {
	if err = json.Unmarshal(data, &p); err != nil {
		return p, err
	}
	var req acpv2.PromptRequest
	if err = json.Unmarshal(p.Raw, &req); err != nil {
		return p, err
	}
	p.Content = req.Prompt
	return p, nil
}

// updateRecord is an update of the agent.
type updateRecord struct {
	Update json.RawMessage `json:"update"`       // of version 2
	V1     json.RawMessage `json:"v1,omitempty"` // as an agent of version 1 has sent it
	// Child is the session of the subagent that it is about, or "".
	Child acp.SessionID `json:"child,omitempty"`
	stamp
}

// withEvent adds the number of an event to an update.
func withEvent(text []byte, seq uint64) []byte {
	params := []byte(`"params":{`)
	i := bytes.Index(text, params)
	if i < 0 {
		return withEventSlowly(text, seq)
	}
	i += len(params)
	out := make([]byte, 0, len(text)+24)
	out = append(append(out, text[:i]...), `"_e":`...)
	out = strconv.AppendUint(out, seq, 10)
	if next := bytes.TrimLeft(text[i:], " \t\r\n"); len(next) > 0 && next[0] != '}' {
		out = append(out, ',')
	}
	return append(out, text[i:]...)
}

// withEventSlowly is withEvent for JSON with spaces.
func withEventSlowly(text []byte, seq uint64) []byte {
	var all map[string]json.RawMessage
	var params map[string]json.RawMessage
	if json.Unmarshal(text, &all) != nil || json.Unmarshal(all["params"], &params) != nil || params == nil {
		return text
	}
	params["_e"] = strconv.AppendUint(nil, seq, 10)
	all["params"] = encode(params)
	return encode(all)
}

// eventOf returns the number that withEvent has added, or 0.
func eventOf(unknown json.RawMessage) uint64 {
	if len(unknown) == 0 {
		return 0
	}
	var e struct {
		E uint64 `json:"_e"`
	}
	_ = json.Unmarshal(unknown, &e)
	return e.E
}

// eventOfUpdate returns the number of the event that an update has come in, or 0.
func eventOfUpdate(u *acp.Update) uint64 {
	switch {
	case u.V1 != nil:
		return eventOf(u.V1.Unknown)
	case u.V2 != nil:
		return eventOf(u.V2.Unknown)
	}
	return 0
}
