package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// An adoption is what the log says of an agent that an earlier gateway has started, and that may run
// still.
type adoption struct {
	state    heldState
	marked   uint64          // up to this one all events have reached the log
	have     map[uint64]bool // and these
	arrived  uint64          // frames that have arrived at the agent
	prompt   *records.Prompt // whose turn has not ended
	sent     *sentRecord     // of the prompt
	accepted json.RawMessage // the answer to the prompt, in version 2
	began    uint64          // its event
	asks     []openAsk       // that the agent waits for
	ended    string          // the state that the last turn has left
	opened   bool            // the session was opened, as far as the connection knows
	waits    bool            // the prompt has arrived, and the connection has not sent it yet
	asked    bool            // the connection has seen what the agent waits for
	steers   []*sentRecord   // what was said to the turn that runs, if the log does not have that
	children []subagent      // that it has announced, in order
	names    *naming
}

// An openAsk is a question of an agent that has not heard the answer.
type openAsk struct {
	records.Asked
	seq, sent uint64           // its record, and the frame with the answer
	decided   *records.Decided // the answer, if there is one
}

// read goes through the log.
func (a *adoption) read(ctx context.Context, l *engine.Engine, session string) error {
	a.have = make(map[uint64]bool)
	asks := make(map[string]openAsk)
	var order []string
	known := make(map[acp.SessionID]bool) // those of children
	err := l.Fold(ctx, session, 0, func(r engine.Record) error {
		var s records.Stamp
		a.names.kept(session, &r)
		switch r.Kind {
		case kindStart:
			a.names.begins()
			a.marked, a.sent, a.accepted = 0, nil, nil // a prompt is that for which it is started
			clear(a.have)
			clear(asks)
			a.steers = nil
			order = nil // its subagents stay: an agent that brings its session back need not announce them anew
			return nil
		case kindPrompt:
			p, err := records.DecodePrompt(r.Data)
			if err != nil {
				return err
			}
			a.prompt, a.sent, a.accepted, a.steers = &p, nil, nil, nil
			return nil
		case kindSent:
			var sent sentRecord
			err := json.Unmarshal(r.Data, &sent)
			if ask, ok := asks[sent.Ask]; ok {
				ask.sent = sent.Frame
				asks[sent.Ask] = ask
			} else if err == nil {
				a.sends(&sent)
			}
			return err
		case kindAccepted:
			var accepted acceptedRecord
			if err := json.Unmarshal(r.Data, &accepted); err != nil {
				return err
			}
			a.accepted, a.began, s = accepted.Result, accepted.Event, accepted.Stamp
		case kindAsk:
			var ask openAsk
			if err := json.Unmarshal(r.Data, &ask.Asked); err != nil {
				return err
			}
			ask.seq = r.Seq
			if len(ask.Raw) > 0 {
				asks[ask.ID] = ask
				order = append(order, ask.ID)
			}
			s = ask.Stamp
		case kindAnswer:
			var answer records.Decided
			if err := json.Unmarshal(r.Data, &answer); err != nil {
				return err
			}
			if ask, ok := asks[answer.ID]; ok {
				ask.decided = &answer
				asks[answer.ID] = ask
			}
			return nil
		case kindUpdate, kindChild, kindEnd, kindMark:
			if err := json.Unmarshal(r.Data, &s); err != nil {
				return err
			}
			if c, ok := toldOf(session, r); ok && !known[c.session] && len(known) < maxChildren {
				known[c.session] = true
				a.children = append(a.children, c)
			}
			a.says(&r)
			if r.Kind == kindEnd {
				end, err := records.DecodeEnd(r.Data)
				if err != nil {
					return err
				}
				a.prompt, a.ended = nil, end.State()
			}
		}
		if s.Event > 0 {
			a.have[s.Event] = true
		}
		a.marked = max(a.marked, s.Marked)
		return nil
	})
	for _, id := range order {
		a.asks = append(a.asks, asks[id])
	}
	return err
}

// sends takes a prompt or a message for the turn that runs.
func (a *adoption) sends(sent *sentRecord) {
	switch {
	case len(sent.Steer) > 0:
		// Goose is sent a message again if the run that the request named has ended.
		a.steers = slices.DeleteFunc(a.steers, func(m *sentRecord) bool { return m.Ask == sent.Ask })
		a.steers = append(a.steers, sent)
	case sent.Ask == "":
		a.sent = sent
	}
}

// says takes an update, which may be a message for the turn that runs: the agent has that.
func (a *adoption) says(r *engine.Record) {
	if len(a.steers) > 0 && r.Kind == kindUpdate {
		a.steers = slices.DeleteFunc(a.steers, func(m *sentRecord) bool { return bytes.Contains(r.Data, []byte(m.Ask)) })
	}
}

// settle drops what has arrived at the agent: how many frames that are is known once it is attached.
func (a *adoption) settle(arrived uint64) {
	a.arrived = arrived
	a.steers = slices.DeleteFunc(a.steers, func(m *sentRecord) bool { return m.Frame > arrived })
	a.waits = a.prompt != nil && a.sent != nil && a.sent.Frame <= arrived
	var asks []openAsk
	for _, ask := range a.asks {
		if ask.sent == 0 || ask.sent > arrived {
			asks = append(asks, ask)
		}
	}
	a.asks = asks
}

// initialized returns the agent's answer to initialize. The session is opened by loading it, whatever the
// agent can do: it will not notice.
func (a *adoption) initialized() json.RawMessage {
	if a.state.Version > 1 {
		return a.state.Initialize
	}
	var result map[string]json.RawMessage
	if json.Unmarshal(a.state.Initialize, &result) != nil {
		return a.state.Initialize
	}
	caps := make(map[string]json.RawMessage)
	_ = json.Unmarshal(result["agentCapabilities"], &caps)
	caps["loadSession"] = json.RawMessage("true")
	result["agentCapabilities"] = encode(caps)
	return encode(result)
}

// adopt takes an agent over that an earlier gateway has started. It reports false if there is none.
func (s *session) adopt(ctx context.Context) (bool, error) {
	state := s.known.Held
	if state == nil || s.g.cfg.Rehold == nil || len(state.Opened) == 0 {
		return false, nil
	}
	if s.g.cfg.Gone != nil && s.g.cfg.Gone(state.Socket) { // the log need not be read
		s.logger().Info("gateway: the agent is gone")
		return false, nil
	}
	a := &adoption{state: *state, names: newNaming(s.known.Starts, &s.begunAt)}
	if err := a.read(ctx, s.g.cfg.Log, s.id); err != nil {
		return false, err
	}
	h, err := s.g.cfg.Rehold(ctx, state.Socket, state.Token, a.marked)
	if err != nil {
		s.logger().Info("gateway: the agent is gone", "error", err)
		return false, nil
	}
	if err := s.g.admitAgent(ctx, s.info.Owner, s.known.Groups, true, -1); err != nil {
		return false, errors.Join(err, h.Stop(ctx))
	}
	a.settle(h.Sent())
	b := &backend{s: s, names: a.names, ended: make(chan struct{}), held: h, events: s.g.events(s.info.Owner, s.known.Groups)}
	b.stream = newHeldStream(h, s, s.wirePrefix(), a)
	client := b.client()
	client.MinVersion, client.MaxVersion = state.Version, state.Version
	b.conn, err = client.Connect(ctx, acp.Over(b.stream))
	if err == nil {
		if b.session, _, err = b.conn.Restore(ctx, acp.SessionID(s.info.AgentSession), acp.SessionConfig{Cwd: s.info.Cwd}); err != nil {
			_ = b.conn.Close()
		}
	}
	if err != nil {
		s.g.dismissAgent(s.info.Owner)
		s.logger().Warn("gateway: the agent cannot be taken over", "error", err)
		return false, h.Stop(ctx)
	}
	if err := s.run(b); err != nil {
		s.g.dismissAgent(s.info.Owner)
		return true, err
	}
	if s.known.Handover {
		if b.transcript, _, err = s.transcript(ctx); err != nil {
			return true, err
		}
	}
	if p := a.prompt; p != nil {
		t := &turn{id: acp.MessageID(p.ID), by: p.By, from: p.From, rank: p.Rank, content: p.Content, operation: p.Operation, adopted: true, done: make(chan struct{})}
		if a.waits {
			t.agent = b
		}
		if err := s.enqueue(t); err != nil {
			return true, err
		}
	} else if s.info.State == records.StateRunning { // it had ended, and that was not noted
		if err := s.setState(ctx, cmp.Or(a.ended, records.StateIdle)); err != nil {
			return true, err
		}
	}
	if err := b.begin(ctx); err != nil {
		return true, err
	}
	b.adopts(a.steers)
	b.stream.again(a.asks) // lets events in, which keep their order now that the session has begun
	return true, nil
}

// again lets the connection see the requests of the agent that an earlier one has taken. Events follow: one of them may
// withdraw such a request, or have its id.
func (hs *heldStream) again(asks []openAsk) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.adopted.asked = true
	var all [][]byte
	for _, r := range asks {
		var e envelope
		if json.Unmarshal(r.Raw, &e) != nil {
			continue
		}
		hs.asks[string(e.ID)] = &heldAsk{id: e.ID, seq: r.Event, raw: r.Raw, ask: r.ID, known: true, record: r.seq, decided: r.decided}
		all = append(all, r.Raw)
	}
	hs.putLocked(all...)
}

// wirePrefix returns what the ids of this gateway's requests to the agent that was started last begin with, and those
// of its questions: no other gateway has them, and no other agent, whose own ids begin anew.
func (s *session) wirePrefix() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d.%d-", s.own.Epoch(), s.known.Starts)
}
