// Package records has what the records of a conversation say: the data of each kind of [journal.Record] that more than
// one part of the program reads. A gateway, a chat and a list read the same records, no matter which program wrote them.
//
// The decoders also take what earlier versions of chat have written, which had the updates of the protocol as they are.
package records

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	codec "github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

const (
	// chatLetters are the letters of ids of conversations that a chat has begun, and chatLength is how many there are: 80
	// random bits.
	chatLetters = "abcdefghijklmnopqrstuvwxyz234567"
	chatLength  = 16
)

// GatewayID begins the ids of sessions that a gateway has begun.
const GatewayID = "s_"

// NewID returns an id for a conversation that a chat begins.
func NewID() string { return strings.ToLower(rand.Text()[:chatLength]) }

// ByChat reports whether a chat, or acp exec, has begun the conversation with an id. The bounds of a gateway and its
// retention are not for those.
func ByChat(id string) bool { return len(id) == chatLength && strings.Trim(id, chatLetters) == "" }

// A Stamp is about an agent that outlives its owner: the event that a record comes from, and the last event up to
// which all have reached the log.
type Stamp struct {
	Event  uint64 `json:"e,omitempty"`
	Marked uint64 `json:"w,omitempty"`
}

// A Prompt is the data of a [journal.KindPrompt]: what a user said, as a turn begins.
type Prompt struct {
	ID string `json:"id"`           // of the prompt as a message
	By string `json:"by,omitempty"` // its principal; "" in a conversation that one person holds
	// From is what others see of that, if it is something else, and Rank what the client was in the session.
	From string `json:"from,omitempty"`
	Rank string `json:"rank,omitempty"`
	// Operation is the client's name for it, or "".
	Operation string               `json:"op,omitempty"`
	Content   []acpv2.ContentBlock `json:"-"`
	Raw       json.RawMessage      `json:"content"` // a prompt request of version 2 with Content
	// Meta is the metadata of the message, if the agent has sent it.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// Encode returns the data, with Raw made of Content.
func (p *Prompt) Encode() (data []byte, err error) {
	if p.Raw, err = RawPrompt(p.Content); err != nil {
		return nil, err
	}
	return json.Marshal(p)
}

// RawPrompt returns what a prompt says as [Prompt.Raw] has it.
func RawPrompt(content []acpv2.ContentBlock) (json.RawMessage, error) {
	return json.Marshal(acpv2.PromptRequest{Prompt: content})
}

// DecodePrompt reads the data of a prompt.
func DecodePrompt(data []byte) (p Prompt, err error) {
	if isUpdate(data) {
		u, err := acpv2.UnmarshalSessionUpdate(data)
		if err != nil {
			return p, err
		}
		m, ok := u.(*acpv2.UserMessage)
		if !ok {
			return p, fmt.Errorf("a prompt is a %T", u)
		}
		p = Prompt{ID: string(m.MessageID), Meta: m.Meta}
		p.Content, _ = m.Content.Get()
		p.Raw, err = RawPrompt(p.Content)
		return p, err
	}
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

// Message returns the prompt as a principal's clients see it, except for the client that sent it.
func (p *Prompt) Message(principal string) *acpv2.UserMessage {
	m := &acpv2.UserMessage{MessageID: acpv2.MessageID(p.ID), Content: acpv2.Set(p.Content), Meta: p.Meta}
	said := map[string]string{}
	if name := p.Author(); name != "" {
		said["author"] = name
	}
	if p.Operation != "" && p.By == principal { // by which a client knows its own after the connection was broken
		said["operationId"] = p.Operation
	}
	if len(said) > 0 {
		m.Meta = ownmeta.Of(said)
	}
	return m
}

// Author returns who has sent a prompt, as others see it, or "".
func (p *Prompt) Author() string { return cmp.Or(p.From, p.By) }

// An Update is the data of a [journal.KindUpdate], and of a [journal.KindChild].
type Update struct {
	Update json.RawMessage `json:"update"` // of version 2
	// Child is the session of the subagent that it is about, or "".
	Child acpv2.SessionID `json:"child,omitempty"`
	Stamp
}

// UnmarshalJSON implements [json.Unmarshaler].
func (u *Update) UnmarshalJSON(data []byte) error {
	type plain Update
	if isUpdate(data) {
		*u = Update{Update: bytes.Clone(data)}
		return nil
	}
	return json.Unmarshal(data, (*plain)(u))
}

// Encode returns the data. Update must be JSON: it is most of what is written, so it is not looked at again.
func (u *Update) Encode() []byte {
	data := make([]byte, 0, len(updateKey)+len(u.Update)+len(u.Child)+64)
	data = append(append(data, updateKey...), u.Update...)
	if u.Child != "" {
		child, _ := json.Marshal(u.Child) // a string cannot fail
		data = append(append(data, `,"child":`...), child...)
	}
	if u.Event > 0 {
		data = strconv.AppendUint(append(data, `,"e":`...), u.Event, 10)
	}
	if u.Marked > 0 {
		data = strconv.AppendUint(append(data, `,"w":`...), u.Marked, 10)
	}
	return append(data, '}')
}

// The beginnings of data that is an update as the protocol has it, and of what has one as its first member.
const (
	updateType = `{"sessionUpdate":`
	updateKey  = `{"update":`
)

func isUpdate(data []byte) bool { return bytes.HasPrefix(data, []byte(updateType)) }

// RawUpdate returns the update of a record as it is stored.
func RawUpdate(data []byte) (json.RawMessage, error) {
	if isUpdate(data) {
		return data, nil
	}
	var d codec.Decoder
	d.Reset(data, false)
	if key, ok := d.FirstKey(); ok && string(key) == "update" { // as it is written; the rest is not looked at
		if raw := d.Raw(); raw != nil {
			return raw, nil
		}
	}
	var r Update
	err := json.Unmarshal(data, &r)
	return r.Update, err
}

// DecodeUpdate reads the data of an update.
func DecodeUpdate(data []byte) (acpv2.SessionUpdate, error) {
	raw, err := RawUpdate(data)
	if err != nil {
		return nil, err
	}
	return acpv2.UnmarshalSessionUpdate(raw)
}

// DecodeChild reads an update of the session of a subagent.
func DecodeChild(data []byte) (id acpv2.SessionID, u acpv2.SessionUpdate, err error) {
	var r Update
	if err = json.Unmarshal(data, &r); err == nil {
		u, err = acpv2.UnmarshalSessionUpdate(r.Update)
	}
	if err != nil {
		return "", nil, fmt.Errorf("what a subagent does: %w", err)
	}
	return r.Child, u, nil
}

// A Notice is the data of a [journal.KindNotice]: something that people should know.
type Notice struct {
	Severity    acpv2.NoticeSeverity `json:"severity"`
	Title       string               `json:"title"`
	Description string               `json:"description,omitempty"`
}

// Update returns the notice as clients see it.
func (n *Notice) Update() *acpv2.Notice {
	return &acpv2.Notice{Severity: n.Severity, Title: n.Title, Description: n.Description}
}

// An Output is the data of a [journal.KindOutput]: part of the output of a command.
type Output struct {
	TerminalID string `json:"terminalId"`
	At         uint64 `json:"at"`   // place of the first byte in the whole output
	Data       []byte `json:"data"` // in base64
}

// Update returns the output as clients see it, which do not learn of a gap before it.
func (o *Output) Update() *acpv2.TerminalOutputChunk {
	return &acpv2.TerminalOutputChunk{TerminalID: acpv2.TerminalID(o.TerminalID), Data: base64.StdEncoding.EncodeToString(o.Data)}
}

// An End is the data of a [journal.KindEnd].
type End struct {
	Prompt string           `json:"prompt"` // the id of its prompt, or "" if that is the last one
	Stop   acpv2.StopReason `json:"stop,omitempty"`
	Error  string           `json:"error,omitempty"` // why the turn failed, in the words of the program
	By     string           `json:"by,omitempty"`    // who has stopped it, as others see it
	Lost   bool             `json:"lost,omitempty"`  // the agent or its owner died in the turn
	Noted  bool             `json:"noted,omitempty"` // a notice follows that says so
	// Ended is who ended the turn, if the program that ran it has recorded that. Said is why the turn failed in the words
	// of the agent, and Others is how many turns of the session continue.
	Ended  transcript.EndedBy `json:"ended,omitempty"`
	Said   string             `json:"said,omitempty"`
	Others int                `json:"others,omitempty"`

	Meta json.RawMessage `json:"meta,omitempty"` // what the agent says of the turn in metadata
	Stamp
}

// UnmarshalJSON implements [json.Unmarshaler].
func (e *End) UnmarshalJSON(data []byte) error {
	type plain End
	is := struct {
		Prompt *string `json:"prompt"`
		*plain
		// As chat had them.
		StopReason acpv2.StopReason `json:"stopReason"`
		Who        string           `json:"who"`
	}{plain: (*plain)(e)}
	if err := json.Unmarshal(data, &is); err != nil {
		return err
	}
	if is.Prompt != nil {
		e.Prompt = *is.Prompt
		return nil
	}
	e.Stop, e.Ended, e.By = is.StopReason, transcript.EndedBy(e.By), is.Who
	return nil
}

// DecodeEnd reads the data of the end of a turn.
func DecodeEnd(data []byte) (e End, err error) {
	err = json.Unmarshal(data, &e)
	return e, err
}

// EndOf returns the record of how a turn has ended that has no number: it is the last one.
func EndOf(t *transcript.TurnEnd) End {
	return End{Stop: t.StopReason, Ended: cmp.Or(t.By, transcript.EndedByAgent), By: t.Who, Said: t.Said, Error: t.Error, Others: t.Others}
}

// Why returns why the turn failed, or "".
func (e *End) Why() string { return cmp.Or(e.Error, e.Said) }

// State returns the state of a session whose last turn has ended so.
func (e *End) State() string {
	switch {
	case e.Others > 0:
		return StateRunning
	case e.Why() != "":
		return StateFailed
	case (e.Stop == acpv2.StopReasonEndTurn || e.Stop == "") && (e.Ended == "" || e.Ended == transcript.EndedByAgent):
		return StateIdle
	}
	return StateStopped
}

// The states of a session.
const (
	StateIdle    = "idle"
	StateRunning = "running" // a turn runs, or ran when its process died
	StateFailed  = "failed"  // the last turn did
	StateStopped = "stopped" // the last turn was cancelled, or its agent did not come to the end
)

// Update returns the end as clients of version 2 are sent it.
func (e *End) Update() *acpv2.IdleStateUpdate {
	said := history.End{Turn: cmp.Or(e.Prompt, history.LastTurn), By: e.By, Lost: e.Lost, Noted: e.Noted}
	if e.Ended != "" {
		said.Ended, said.Stop, said.Said, said.Others = e.Ended, e.Stop, e.Said, e.Others
	}
	u := &acpv2.IdleStateUpdate{StopReason: e.Stop, Meta: ownmeta.Add(e.Meta, said)}
	if text := e.Why(); text != "" {
		u.StopReason, u.Error = acpv2.StopReasonError, ErrorOf(&jsonrpc.Failure{Message: text, Reason: ReasonAgent})
	}
	return u
}

// ReasonAgent is the reason of a failure that is the agent's.
const ReasonAgent = "agent"

// ErrorOf returns an error as an update has it.
func ErrorOf(err error) *acpv2.Error {
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return &acpv2.Error{Code: acpv2.ErrorCode(said.Code), Message: said.Message, Data: said.Data}
	}
	return &acpv2.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// An Asked is the data of a [journal.KindAsked]: the agent asks.
type Asked struct {
	ID    string          `json:"id"` // of the question, unique in the session
	Title string          `json:"title,omitempty"`
	Raw   json.RawMessage `json:"raw,omitempty"` // the request of an agent that outlives its owner
	// Request is a session/request_permission of version 2, if what was asked is shown apart from its tool call.
	Request json.RawMessage `json:"request,omitempty"`
	Stamp
}

// Questions are those of a session that have no decision, in the order in which they were asked. Of each the ID and the
// Title are known.
type Questions []Asked

// Apply takes the next record. It reports false for a decision on a question that is not open, which changes nothing.
func (q *Questions) Apply(r *journal.Record) bool {
	var of struct{ ID, Title string }
	if r.Kind != journal.KindAsked && r.Kind != journal.KindDecided || json.Unmarshal(r.Data, &of) != nil {
		return true
	}
	if r.Kind == journal.KindAsked {
		*q = append(*q, Asked{ID: of.ID, Title: of.Title})
		return true
	}
	open := len(*q)
	*q = slices.DeleteFunc(*q, func(a Asked) bool { return a.ID == of.ID })
	return len(*q) < open
}

// Has reports whether a question is open.
func (q Questions) Has(id string) bool {
	return slices.ContainsFunc(q, func(a Asked) bool { return a.ID == id })
}

// Permission returns the request, or nil if there is none.
func (a *Asked) Permission() *acpv2.RequestPermissionRequest {
	req := new(acpv2.RequestPermissionRequest)
	if len(a.Request) == 0 || json.Unmarshal(a.Request, req) != nil {
		return nil
	}
	return req
}

// A Decided is the data of a [journal.KindDecided], the decision on a question, and of a [journal.KindLate].
type Decided struct {
	ID      string  `json:"id"`
	By      string  `json:"by,omitempty"`
	Outcome Outcome `json:"outcome"` // the option, "cancelled", "accepted" and the like
	// Title is that of the question, Name that of the option, From what others see of By, and Key the client that
	// has answered. They are for people who look on.
	Title string `json:"title,omitempty"`
	Name  string `json:"name,omitempty"`
	From  string `json:"from,omitempty"`
	Key   string `json:"key,omitempty"`
	// Call is the tool call that was asked about, and Child the session of the subagent it belongs to, or "". Kind is
	// that of the option, and Rule says that a rule has answered. Detail is what would be done, if there is no call.
	Call   acpv2.ToolCallID           `json:"call,omitempty"`
	Child  acpv2.SessionID            `json:"child,omitempty"`
	Kind   acpv2.PermissionOptionKind `json:"kind,omitempty"`
	Rule   bool                       `json:"rule,omitempty"`
	Detail string                     `json:"detail,omitempty"`
	// Content is what was entered in a form, if the agent outlives its owner: the next one may have to tell it.
	Content map[string]json.RawMessage `json:"content,omitempty"`
}

// An Outcome is what was decided: the ID of an option, or one of these.
type Outcome string

// The outcomes that stand for no option.
const (
	Cancelled Outcome = "cancelled"
	Accepted  Outcome = "accepted" // a form
	Declined  Outcome = "declined"
)

// UnmarshalJSON implements [json.Unmarshaler].
func (o *Outcome) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return json.Unmarshal(data, (*string)(o))
	}
	was, err := acpv2.UnmarshalRequestPermissionOutcome(data)
	*o = outcomeOf(was)
	return err
}

// outcomeOf returns an outcome of the protocol. One that it does not know is [Cancelled].
func outcomeOf(o acpv2.RequestPermissionOutcome) Outcome {
	if s, ok := o.(*acpv2.SelectedPermissionOutcome); ok {
		return Outcome(s.OptionID)
	}
	return Cancelled
}

// permission returns the outcome of a permission in the words of the protocol.
func (d *Decided) permission(req *acpv2.RequestPermissionRequest) acpv2.RequestPermissionOutcome {
	if d.Outcome == Cancelled && d.Kind == "" && d.Name == "" {
		return &acpv2.CancelledPermissionOutcome{}
	}
	for _, option := range req.Options {
		if string(option.OptionID) == string(d.Outcome) {
			return &acpv2.SelectedPermissionOutcome{OptionID: option.OptionID}
		}
	}
	return &acpv2.CancelledPermissionOutcome{}
}

// DecidedOf returns the decision on a permission.
func DecidedOf(id string, req *acpv2.RequestPermissionRequest, o acpv2.RequestPermissionOutcome) Decided {
	d := Decided{ID: id, Outcome: outcomeOf(o), Title: req.Title}
	selected, _ := o.(*acpv2.SelectedPermissionOutcome)
	for _, option := range req.Options {
		if selected != nil && option.OptionID == selected.OptionID {
			d.Name, d.Kind = option.Name, option.Kind
			break
		}
	}
	switch subject := req.Subject.(type) {
	case *acpv2.ToolCallPermissionSubject:
		d.Call = subject.ToolCall.ToolCallID
	case *acpv2.CommandPermissionSubject:
		d.Call, d.Detail = subject.ToolCallID, "$ "+subject.Command
	}
	return d
}

// Decision returns how a question was decided, as clients see it. r is the record.
func (d *Decided) Decision(r *journal.Record) *history.Decision {
	return &history.Decision{
		Ask: d.ID, Title: d.Title, By: d.From, Rule: d.Rule, Name: d.Name, Kind: d.Kind, Outcome: string(d.Outcome), Time: r.At.UTC(),
	}
}

// Update returns how a permission was decided as an update: of the tool call that it was about or, if it was about
// none, a notice that says what would be done. It returns nil if the record holds only the text of the question, as for a form.
func (d *Decided) Update(r *journal.Record) acpv2.SessionUpdate {
	said := d.Decision(r)
	if d.Call == "" {
		if d.Detail == "" {
			return nil
		}
		return &acpv2.Notice{Severity: acpv2.NoticeSeverityInfo, Title: d.Title + ": " + said.Words(), Description: d.Detail, Meta: said.Meta()}
	}
	u := &acpv2.ToolCallUpdate{ToolCallID: d.Call, Meta: said.Meta()}
	if said.Rejects() {
		u.Status = acpv2.Set(acpv2.ToolCallStatusCancelled) // it does not wait any more; the agent may say more of it
	}
	return u
}

// DraftOf returns the draft of an update: a [journal.KindPrompt] if it is what the user said, and a
// [journal.KindUpdate] otherwise, as it is for history that the agent has replayed, which has a mark.
func DraftOf(u acpv2.SessionUpdate) (d journal.Draft, err error) {
	if m, ok := u.(*acpv2.UserMessage); ok && m.Unknown == nil && !bytes.Contains(m.Meta, []byte(`"`+ownmeta.Key+`"`)) {
		if content, ok := m.Content.Get(); ok {
			p := Prompt{ID: string(m.MessageID), Content: content, Meta: m.Meta}
			d.Kind = journal.KindPrompt
			d.Data, err = p.Encode()
			return d, err
		}
	}
	data, err := u.AppendJSON([]byte(updateKey))
	if err != nil {
		return d, err
	}
	return journal.Draft{Kind: journal.KindUpdate, Data: append(data, '}')}, nil
}

// A Description is the data of a [journal.KindSession]: what is known of a session apart from what was said. The last
// one counts.
type Description struct {
	Agent    string    `json:"agent,omitempty"`
	Session  string    `json:"session,omitempty"` // the agent's id
	Command  []string  `json:"command,omitempty"`
	Cwd      string    `json:"cwd,omitempty"`
	Title    string    `json:"title,omitempty"`
	Protocol int       `json:"protocol,omitempty"`
	Parent   string    `json:"parent,omitempty"` // the conversation that this one, of a subagent, is part of
	By       string    `json:"by,omitempty"`     // the command that runs it, if not a conversation with a person
	Created  time.Time `json:"created,omitzero"` // if not the time of this record
	Updated  time.Time `json:"updated,omitzero"` // if not the time of the last record
	Turns    int       `json:"turns,omitempty"`  // that ended before the first event that is kept

	// What a gateway knows. A description without a State is of a chat, which leaves all this as it is; that of a gateway
	// leaves Command, Protocol, Parent and By as they are.
	State *string `json:"state,omitempty"`
	Owner string  `json:"owner,omitempty"`
	From  string  `json:"from,omitempty"` // the session that it was forked from
	// Attributes are those that have changed; null removes one.
	Attributes map[string]json.RawMessage `json:"attributes,omitempty"`
}
