package backend

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// maxNamed bounds the people that are named in a line.
const maxNamed = 8

// maxPerson bounds a name that is shown, in cells.
const maxPerson = 40

// hosted returns _meta of requests that open a session: the agent that a gateway is to start, or nil.
func (h *Host) hosted() json.RawMessage {
	if h.cfg.Agent.Hosted == "" {
		return nil
	}
	return ownmeta.Of(map[string]string{"agent": h.cfg.Agent.Hosted})
}

// introduced is what a gateway says of itself in _meta of the answer to initialize.
type introduced struct {
	Gateway bool // it is one
	Begun   bool // it says when a prompt of a client begins
}

func introducedBy(meta json.RawMessage) (said introduced) {
	ownmeta.Read(meta, &said)
	return said
}

// Introduced returns what the agent has said of itself; of a gateway, which agent the session has that was opened last there.
// It is empty if neither is known.
func (h *Host) Introduced() acp.Implementation {
	if agent := h.behind.Load(); agent != nil {
		return *agent
	}
	if c := h.Conn(); c != nil {
		return roster.Introduced(c.Agent())
	}
	return acp.Implementation{}
}

// opens notes what a gateway says of the agent of a session in the answer to the request that has opened it.
func (h *Host) opens(meta json.RawMessage) {
	var said struct{ Agent, Title string }
	if h.cfg.Agent.Gateway && ownmeta.Read(meta, &said) && said.Agent != "" {
		h.behind.Store(&acp.Implementation{Name: said.Agent, Title: said.Title})
	}
}

// Begins reports whether the host is connected to a gateway that says when a prompt begins: see [NoteBegun].
func (h *Host) Begins() bool { return h.cfg.Agent.Gateway && introducedBy(h.Conn().Meta()).Begun }

// speakTo prepares a client for a gateway: it asks for what gateways say beyond the protocol, and passes it on. The
// notifications are those of package gateway.
func (h *Host) speakTo(c *acp.Client) {
	if !h.cfg.Agent.Gateway {
		return
	}
	c.Meta = ownmeta.Of(map[string]bool{"presence": true, "readOnly": h.cfg.Agent.ReadOnly})
	c.Extensions = func(mux *jsonrpc.Mux) {
		jsonrpc.Notification[presence]{Name: ownmeta.Method + "presence"}.Handle(mux, func(_ context.Context, p *presence) error {
			h.note(Note{Kind: NoteHere, Session: p.SessionID, Text: p.String(), Role: p.role()})
			return nil
		})
		jsonrpc.Notification[decided]{Name: ownmeta.Method + "decided"}.Handle(mux, func(_ context.Context, p *decided) error {
			h.elsewhere.decided(p.Ask, p.outcome())
			if !p.You && p.By != "" {
				h.note(Note{Kind: NoteDecided, Session: p.SessionID, Text: p.String()})
			}
			return nil
		})
		jsonrpc.Notification[queued]{Name: ownmeta.Method + "queued"}.Handle(mux, func(_ context.Context, p *queued) error {
			h.note(Note{Kind: NoteQueued, Session: p.SessionID, Text: p.String()})
			return nil
		})
		jsonrpc.Notification[begun]{Name: ownmeta.Method + "begun"}.Handle(mux, func(_ context.Context, p *begun) error {
			h.hasBegun(p)
			return nil
		})
	}
}

// interrupted is called when the network to the agent fails, and with nil when it works again.
func (h *Host) interrupted(err error) {
	if h.cut.Swap(err != nil) == (err != nil) {
		return // each connection says so that is opened in place of one which broke
	}
	n := Note{Kind: NoteOutage, Text: "no connection: trying again", Err: err}
	if err == nil {
		n.Text = "the connection is back"
	}
	h.note(n)
}

// Cut reports whether there is no connection to a gateway, or to an agent on the network, and that is tried again.
func (h *Host) Cut() bool { return h.cut.Load() }

// refused returns why a gateway itself has refused something, in its words, or "" if it has not: then the agent was not asked.
func (h *Host) refused(err error) string {
	said, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || !h.cfg.Agent.Gateway && !h.gateway.Load() {
		return ""
	}
	var data struct{ Reason string }
	if json.Unmarshal(said.Data, &data) != nil || data.Reason != "role" && !strings.HasPrefix(data.Reason, "quota.") {
		return ""
	}
	return safetext.Line(said.Message, maxReason)
}

// A presence says who is attached to a session.
type presence struct {
	SessionID acp.SessionID `json:"sessionId"`
	People    []struct {
		Name, Role string
		You        bool
	} `json:"people"`
	More int `json:"more"`
}

// role returns what this client is, or "".
func (p *presence) role() string {
	for _, x := range p.People {
		if x.You {
			return safetext.Line(x.Role, maxPerson)
		}
	}
	return ""
}

// String returns the others in a line, or "" if there are none.
func (p *presence) String() string {
	var order []string
	count := map[string]int{}
	more := max(p.More, 0)
	for _, x := range p.People {
		if x.You {
			continue
		}
		name := safetext.Line(x.Name, maxPerson)
		if x.Role != "" && x.Role != "owner" {
			name += " (" + safetext.Line(x.Role, maxPerson) + ")"
		}
		if count[name]++; count[name] > 1 {
			continue
		}
		if len(order) == maxNamed {
			delete(count, name)
			more++
			continue
		}
		order = append(order, name)
	}
	for i, name := range order {
		if n := count[name]; n > 1 {
			order[i] = fmt.Sprintf("%s ×%d", name, n)
		}
	}
	if more > 0 {
		order = append(order, fmt.Sprintf("%d more", more))
	}
	return strings.Join(order, ", ")
}

// decided says who has answered a question.
type decided struct {
	SessionID acp.SessionID `json:"sessionId"`
	Title     string        `json:"title"`
	By        string        `json:"by"`
	You       bool          `json:"you"`
	Outcome   string        `json:"outcome"`

	Ask    string                   `json:"ask"`
	Option acpv2.PermissionOptionID `json:"option"`
}

// dismissed is the outcome of a question that somebody has answered with none of its options.
const dismissed = "cancelled"

// String returns that in a line.
func (p *decided) String() string {
	by, title := safetext.Line(p.By, maxPerson), safetext.Line(p.Title, 120)
	outcome := safetext.Line(p.Outcome, 60)
	switch {
	case p.Outcome == dismissed && title == "":
		return by + " has dismissed the question"
	case p.Outcome == dismissed:
		return by + " has dismissed the question: " + title
	case title == "":
		return by + " has answered: " + outcome
	}
	for verb, names := range map[string][]string{
		"allowed": {"allow", "allow once"}, "always allowed": {"allow always", "always allow"},
		"rejected": {"reject", "reject once"}, "always rejected": {"reject always", "always reject"},
	} {
		if slices.Contains(names, strings.ToLower(outcome)) {
			return by + " " + verb + ": " + title
		}
	}
	return by + " has answered “" + title + "”: " + outcome
}

// begun says that a prompt of this client begins.
type begun struct {
	SessionID acp.SessionID `json:"sessionId"`
	MessageID acp.MessageID `json:"messageId"`
	named
}

// InSession implements [acp.SessionParams]: the message that it is about follows.
func (b *begun) InSession() acp.SessionID { return b.SessionID }

// queued says that a prompt is kept by the gateway.
type queued struct {
	SessionID acp.SessionID `json:"sessionId"`
	Before    int           `json:"before"`
}

// String returns how many are before it, or "".
func (p *queued) String() string {
	switch {
	case p.Before <= 0:
		return ""
	case p.Before == 1:
		return "another prompt comes first"
	}
	return fmt.Sprintf("%d other prompts come first", p.Before)
}

// leaves returns a stream on which nothing is written once the host is being closed. What waits for the user would otherwise be
// answered as dismissed, which decides it for everybody: somebody who leaves decides nothing.
func (h *Host) leaves(s jsonrpc.Stream) jsonrpc.Stream { return &leaving{s, h} }

type leaving struct {
	jsonrpc.Stream
	h *Host
}

// Unwrap returns the stream below.
func (l *leaving) Unwrap() jsonrpc.Stream { return l.Stream }

// WriteFrame implements [jsonrpc.Stream].
func (l *leaving) WriteFrame(data []byte) error {
	if l.h.mute.Load() {
		return nil
	}
	return l.Stream.WriteFrame(data)
}

// request returns the request for a prompt. Where the connection to a gateway is opened again when it breaks, the gateway
// knows the prompt by a name; ended forgets that.
func (s *Session) request(content []acp.ContentBlock) (r *acpv2.PromptRequest, ended func()) {
	r = &acpv2.PromptRequest{Prompt: content}
	if !s.host.cfg.Agent.Gateway || !s.host.cfg.Returns {
		return r, func() {}
	}
	name := "acp_" + rand.Text()
	r.Meta = ownmeta.Of(named{name})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unbegun = append(s.unbegun, name)
	return r, func() { s.takeName(name) }
}

// named is what _meta of a prompt says, and that of the message which begins its turn.
type named struct {
	OperationID string `json:"operationId,omitempty"`
}

// takeName removes a name from those of prompts that have not begun. It reports whether it was one.
func (s *Session) takeName(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.unbegun, name)
	if i >= 0 {
		s.unbegun = slices.Delete(s.unbegun, i, i+1)
	}
	return i >= 0
}

// hasBegun is called when a gateway says that a prompt of this client begins.
func (h *Host) hasBegun(p *begun) {
	s, ok := h.Session(p.SessionID)
	if p.OperationID == "" || !ok || s.takeName(p.OperationID) {
		h.note(Note{Kind: NoteBegun, Session: p.SessionID, Text: string(p.MessageID)})
	}
}

// begins says that a prompt begins if an update is its message, unless the gateway has said so. It says that once, and to a
// connection that breaks just then in vain.
func (s *Session) begins(u acp.SessionUpdate) {
	var id acp.MessageID
	var meta json.RawMessage
	switch u := u.(type) {
	case *acp.UserMessage:
		id, meta = u.MessageID, u.Meta
	case *acp.UserMessageChunk:
		id, meta = u.MessageID, u.Meta
	}
	if len(meta) == 0 || !s.host.cfg.Agent.Gateway {
		return
	}
	var said named
	if ownmeta.Read(meta, &said) && s.takeName(said.OperationID) {
		s.host.note(Note{Kind: NoteBegun, Session: s.ID(), Text: string(id)})
	}
}
