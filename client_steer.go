package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/jsonrpc"
)

// Steer puts a message of the user into the turn that runs, in the best way that the
// agent has: by the run id of goose, or by the extension "_session/steering". Nothing is
// ever cancelled for it. The outcome says what to do:
//
//	SteerInjected         nothing: the turn has the message
//	SteerStartedNewTurn   nothing: a turn has it whose end no prompt reports
//	SteerPromptRequired   send it with Prompt: no turn runs
//	SteerQueued           send it with Prompt: the agent has no better way. It queues the
//	                      prompt, puts it into the turn or refuses it
//
// With an error the message was not taken, as far as is known, and should be kept:
//
//	IsSteerRefused(err)   nothing was done, also by a prompt that failed with it: send the
//	                      message when the turn has ended
//	ErrCancelled          the session was cancelled meanwhile, and nothing was done
//	ErrOutcomeUnknown     there was no answer: let the user decide. That is so if ctx is
//	                      done or the connection ends first, or [Client.CancelGrace] after
//	                      the turn has ended
//	others                likewise, for an outcome that is not one of these, such as
//	                      SteerFailed, which is returned, too. If it wraps
//	                      [errors.ErrUnsupported] the agent does not take such content,
//	                      and nothing was sent
//
// A message that the turn has taken is an update as a prompt is, before Steer returns,
// unless that is called in a hook. It is synthesized if the agent does not send it. An
// agent may answer as late as it gets to the message: after a tool call or a question,
// say. Steer is a call about the session: see [Reply].
func (s *ClientSession) Steer(ctx context.Context, blocks ...ContentBlock) (SteerOutcome, error) {
	return s.SteerRequest(ctx, &acpv2.PromptRequest{Prompt: blocks})
}

// SteerRequest is [ClientSession.Steer] for a message with _meta, as
// [ClientSession.PromptRequest] is for prompts.
func (s *ClientSession) SteerRequest(ctx context.Context, req *acpv2.PromptRequest) (SteerOutcome, error) {
	blocks := req.Prompt
	if err := s.usable(); err != nil {
		return "", err
	}
	peer := s.conn.peer.Load()
	if peer.caps.Session == nil {
		return "", unsupported("sessions")
	}
	if err := clientCheckContent(peer.caps.Session.Prompt, blocks); err != nil {
		return "", err
	}
	m := s.steers(blocks)
	m.meta = asksForPrompt(req.Meta)
	defer m.over()
	outcome, err := SteerQueued, error(jsonrpc.ErrMethodNotFound)
	if run := s.activeRun(); run != "" {
		outcome, err = m.intoRun(ctx, run)
	}
	if errors.Is(err, jsonrpc.ErrMethodNotFound) && supportsSteering(peer.meta) {
		outcome, err = m.intoTurn(ctx)
	}
	if errors.Is(err, jsonrpc.ErrMethodNotFound) { // the agent of a gateway may have no way
		if outcome, err = SteerQueued, nil; m.idle() {
			outcome = SteerPromptRequired
		}
	}
	if err == nil && (outcome == SteerPromptRequired || outcome == SteerQueued) && m.cancelled() {
		return "", fmt.Errorf("acp: steer: the session was cancelled: %w", ErrCancelled)
	}
	return outcome, err
}

// IsSteerRefused reports whether an error of [ClientSession.Steer], or of a prompt that was
// sent while a turn ran, says that the agent has done nothing with the message: that it is
// busy, or that the request does not suit it. The message can be sent when the turn has
// ended.
func IsSteerRefused(err error) bool {
	said, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return false
	}
	switch said.Code {
	case jsonrpc.CodeInvalidRequest, jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, jsonrpc.CodeResourceNotFound:
		return true
	}
	failure, ok := errors.AsType[*Failure](err)
	return ok && failure.Reason == "busy"
}

// clientSteering is what a session knows of messages for the turn that runs. The session's mu guards it.
type clientSteering struct {
	under   []*clientSteer // on their way
	cancels uint64         // session/cancel that went out
	run     string         // of goose, which works on a prompt
}

// A clientSteer is a message on its way into the turn that runs.
type clientSteer struct {
	s       *ClientSession
	blocks  []ContentBlock
	meta    json.RawMessage // of the request
	text    string
	joined  string      // the texts of the blocks, one behind the other
	cancels uint64      // of the session before it
	sent    atomic.Bool // a request with it is on its way

	// Steer writes these, and told reads them after that:
	taken bool
	id    MessageID // that the agent has given it, or ""

	// Guarded by the session's mu:
	seen   bool // updates have had it
	echo   steerEcho
	giveUp *time.Timer
	cancel context.CancelCauseFunc // of the request under way, or nil
}

// errUnanswered is why the request is given up.
var errUnanswered = errors.New("the turn has ended, and the agent does not answer")

func (s *ClientSession) steers(blocks []ContentBlock) *clientSteer {
	m := &clientSteer{s: s, blocks: blocks, text: blocksText(blocks), joined: joinedText(blocks)}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.cancels = s.steering.cancels
	s.steering.under = append(s.steering.under, m)
	return m
}

func (m *clientSteer) over() {
	s := m.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steering.under = slices.DeleteFunc(s.steering.under, func(o *clientSteer) bool { return o == m })
	m.stopGivingUp()
}

// stopGivingUp is called with the session's mu held.
func (m *clientSteer) stopGivingUp() {
	if m.giveUp != nil {
		m.giveUp.Stop()
		m.giveUp = nil
	}
}

// cancelled reports whether the session was cancelled since Steer was called.
func (m *clientSteer) cancelled() bool {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.cancels != m.s.steering.cancels
}

// idle reports whether no turn runs, as far as is known.
func (m *clientSteer) idle() bool {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.s.idle()
}

// idle is called with mu held.
func (s *ClientSession) idle() bool {
	_, idle := s.state.state.(*IdleStateUpdate)
	return len(s.replies) == 0 && (idle || s.state.state == nil)
}

// turnEnded is called with the session's mu held: an agent that has not answered now hardly will.
func (m *clientSteer) turnEnded() {
	if m.giveUp == nil && m.cancel != nil {
		cancel := m.cancel
		m.giveUp = time.AfterFunc(m.s.conn.client.CancelGrace, func() { cancel(errUnanswered) })
	}
}

// steerEcho is the message of the user's that the agent sends at last.
type steerEcho struct {
	id     MessageID
	text   string // the texts of its blocks, joined; no longer than needed to compare it with the steered message
	blocks int
}

// see is called with an update of the session, with its mu held. An agent may send a message whole or in pieces.
func (m *clientSteer) see(u *Update) {
	if u.Synthetic || u.Replayed {
		return
	}
	switch v := u.Update.(type) {
	case *UserMessage:
		content := v.Content.Or(nil)
		m.seen = m.seen || blocksText(content) == m.text && (m.text != "" || len(content) == len(m.blocks))
		m.echo = steerEcho{id: v.MessageID}
		m.hear(content...)
	case *UserMessageChunk:
		if v.MessageID != m.echo.id {
			m.echo = steerEcho{id: v.MessageID}
		}
		m.hear(v.Content)
	}
}

// hear adds to what the agent has sent of a message.
func (m *clientSteer) hear(content ...ContentBlock) {
	e := &m.echo
	e.blocks += len(content)
	if len(e.text) <= len(m.text) { // what is longer is another one
		e.text += joinedText(content)
	}
	if m.text == "" {
		m.seen = m.seen || e.text == "" && e.blocks == len(m.blocks)
	} else {
		m.seen = m.seen || e.text == m.text || e.text == m.joined
	}
}

// joinedText is blocksText without anything between the blocks.
func joinedText(blocks []ContentBlock) string {
	var text strings.Builder
	for i := range blocks {
		text.WriteString(blocksText(blocks[i : i+1]))
	}
	return text.String()
}

// noticeSteering is called with an update that is not a piece of text, with mu held.
func (s *ClientSession) noticeSteering(u *Update) {
	var meta json.RawMessage
	if info, ok := u.Update.(*SessionInfoUpdate); ok {
		meta = info.Meta
	}
	if u.V1 != nil && len(meta) == 0 {
		meta = u.V1.Meta
	}
	if run, ok := gooseRun(meta); ok {
		s.steering.run = run
	}
	if len(s.steering.under) == 0 {
		return
	}
	_, ended := u.Update.(*IdleStateUpdate)
	for _, m := range s.steering.under {
		m.see(u)
		if ended && !u.Replayed {
			m.turnEnded()
		}
	}
}

// call makes a request with the message. Where its answer stands among the updates, the message is shown if it was taken.
func (m *clientSteer) call(ctx context.Context, call func(ctx context.Context, opts ...jsonrpc.CallOption) error) error {
	s := m.s
	asking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	m.stopGivingUp() // of an earlier request: this one has its own time
	if m.cancel = cancel; s.idle() {
		m.turnEnded()
	}
	s.mu.Unlock()
	err := s.ordered(asking, func(opt jsonrpc.CallOption) error {
		return call(asking, opt, jsonrpc.SendIf(func() bool {
			m.sent.Store(true)
			return true
		}))
	}, m.told)
	if _, said := errors.AsType[*jsonrpc.Error](err); err == nil || said {
		return err
	}
	if m.sent.Load() && !errors.Is(err, ErrOutcomeUnknown) {
		return fmt.Errorf("acp: steer: %w: %w", err, ErrOutcomeUnknown)
	}
	return fmt.Errorf("acp: steer: %w", err)
}

// told delivers the message as that of a prompt, if the turn has taken it and the agent has not sent it.
func (m *clientSteer) told(ctx context.Context) {
	s := m.s
	s.mu.Lock()
	if !m.taken || m.seen {
		s.mu.Unlock()
		return
	}
	if m.id == "" {
		s.prompted++
		m.id = MessageID("steer-" + strconv.FormatUint(s.prompted, 10))
	}
	s.mu.Unlock()
	s.v1.Boundary()
	u := s.synthetic(&UserMessage{MessageID: m.id, Content: Set(m.blocks)})
	s.emit(ctx, &u)
}

// clientSteeringV1 and clientSteeringV2 leave the result as it is: an agent may answer
// anything.
var (
	clientSteeringV1 = jsonrpc.Method[acpv1.PromptRequest, json.RawMessage]{Name: methodSteering}
	clientSteeringV2 = jsonrpc.Method[acpv2.PromptRequest, json.RawMessage]{Name: methodSteering}
)

// intoTurn sends the message by the extension that is advertised.
func (m *clientSteer) intoTurn(ctx context.Context) (outcome SteerOutcome, err error) {
	var known bool
	err = m.call(ctx, func(ctx context.Context, opts ...jsonrpc.CallOption) error {
		raw, err := m.s.conn.proto().steer(ctx, m, opts...)
		if err != nil {
			return err
		}
		var res struct{ Outcome json.RawMessage }
		if json.Unmarshal(*raw, &res) == nil {
			_ = json.Unmarshal(res.Outcome, &outcome) // any other one is none
		}
		known = outcome == SteerInjected || outcome == SteerStartedNewTurn || outcome == SteerPromptRequired
		m.taken = known && outcome != SteerPromptRequired
		return nil
	})
	if err == nil && !known {
		err = fmt.Errorf("acp: steer: the agent has not taken the message: its outcome is %.100q", outcome)
	}
	return outcome, err
}

func (p *clientV1) steer(ctx context.Context, m *clientSteer, opts ...jsonrpc.CallOption) (*json.RawMessage, error) {
	return call(ctx, clientSteeringV1, p.c.conn, &acpv1.PromptRequest{
		SessionID: acpv1.SessionID(m.s.id), Prompt: translate.BlocksToV1(m.blocks), Meta: m.meta,
	}, opts...)
}

func (p *clientV2) steer(ctx context.Context, m *clientSteer, opts ...jsonrpc.CallOption) (*json.RawMessage, error) {
	return call(ctx, clientSteeringV2, p.c.conn, &acpv2.PromptRequest{SessionID: m.s.id, Prompt: m.blocks, Meta: m.meta}, opts...)
}

// goose says in _meta of a session's information which run works on a prompt, and takes messages for that run only.

var gooseMember = []byte(`"activeRunId"`)

// gooseRun returns the id of the run that works, "" for none. ok is false if _meta does not say it.
func gooseRun(meta json.RawMessage) (id string, ok bool) {
	if !bytes.Contains(meta, gooseMember) {
		return "", false // as nearly always, without allocating
	}
	return gooseRunIn(meta)
}

func gooseRunIn(meta json.RawMessage) (id string, ok bool) {
	var said struct {
		Goose map[string]json.RawMessage `json:"goose"`
	}
	if json.Unmarshal(meta, &said) != nil || said.Goose["activeRunId"] == nil {
		return "", false
	}
	return id, json.Unmarshal(said.Goose["activeRunId"], &id) == nil
}

// activeRun returns the id of the run of goose that works on a prompt of the session, or "".
func (s *ClientSession) activeRun() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.steering.run
}

type gooseSteerRequest struct {
	SessionID SessionID       `json:"sessionId"`
	RunID     string          `json:"expectedRunId"`
	Prompt    json.RawMessage `json:"prompt"`
}

// InSession implements [SessionParams].
func (r *gooseSteerRequest) InSession() SessionID { return r.SessionID }

var clientSteerGoose = jsonrpc.Method[gooseSteerRequest, json.RawMessage]{Name: "_goose/unstable/session/steer"}

// intoRun sends the message to a run of goose. Where another one works by now, it is sent to that one.
func (m *clientSteer) intoRun(ctx context.Context, run string) (SteerOutcome, error) {
	prompt, err := encodeBlocks(m.s.conn.Version(), m.blocks)
	if err != nil {
		return "", err
	}
	for again := true; ; again = false {
		err := m.call(ctx, func(ctx context.Context, opts ...jsonrpc.CallOption) error {
			raw, err := clientSteerGoose.Call(ctx, m.s.conn.conn, &gooseSteerRequest{m.s.id, run, prompt}, opts...)
			if err != nil {
				return err
			}
			var res struct {
				MessageID MessageID `json:"messageId"`
			}
			_ = json.Unmarshal(*raw, &res) // it has the message all the same
			m.id, m.taken = res.MessageID, true
			return nil
		})
		if err == nil {
			return SteerInjected, nil
		}
		actual, stale := staleRun(err)
		switch {
		case !stale:
			return "", err
		case actual == "":
			return SteerPromptRequired, nil
		case !again:
			return "", err
		}
		run = actual
	}
}

// staleRun reports whether goose has refused a message because another run works, and which one; "" for none.
func staleRun(err error) (actual string, stale bool) {
	said, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || said.Code != jsonrpc.CodeInvalidParams {
		return "", false
	}
	var none string
	if json.Unmarshal(said.Data, &none) == nil {
		return "", none == "no active run to steer"
	}
	var data struct {
		Expected *string `json:"expectedRunId"`
		Actual   *string `json:"actualRunId"`
	}
	if json.Unmarshal(said.Data, &data) != nil || data.Expected == nil {
		return "", false
	}
	if data.Actual != nil {
		actual = *data.Actual
	}
	return actual, true
}
