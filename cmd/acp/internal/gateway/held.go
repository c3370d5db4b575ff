package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// A Held is an agent that outlives the gateway, as package holder has them: its events have numbers and
// come again until they are acknowledged, and frames for it are numbered, too.
type Held interface {
	jsonrpc.Stream
	// Seq is the number of the event that ReadFrame returned last, Sent that of the last frame that was
	// written or, before the first one, of the last one that has arrived.
	Seq() uint64
	Sent() uint64
	// Ack says that all events up to a number are committed.
	Ack(seq uint64) error
	// Stop ends the agent.
	Stop(ctx context.Context) error
	// Socket and Token are what is needed to attach to it again.
	Socket() string
	Token() string
}

// heldState is what is kept of an agent that outlives the gateway.
type heldState struct {
	Socket     string          `json:"socket"`
	Token      string          `json:"token"`
	Version    int             `json:"version,omitempty"`    // of the protocol
	Initialize json.RawMessage `json:"initialize,omitempty"` // the result
	Opened     json.RawMessage `json:"opened,omitempty"`     // the result of opening its session
	Loaded     uint64          `json:"loaded,omitempty"`     // the event with which it has loaded that: updates before it are history
}

// A heldStream is the stream of an agent that outlives the gateway. It knows which events have reached the
// log, so that no other is acknowledged, and writes down what the agent is sent that must be sent once.
//
// A gateway that adopts an agent of an earlier one connects to it anew. The agent does not notice: what
// it has answered is answered here.
type heldStream struct {
	h      Held
	s      *session
	prefix string // of the ids of its requests
	events chan heldEvent
	done   chan struct{} // closed by Close
	once   sync.Once
	pump   sync.WaitGroup

	writing sync.Mutex // a frame is written: its number is the one that was noted

	mu      sync.Mutex
	local   [][]byte      // frames that come from here
	wake    chan struct{} // has room for one
	next    int           // number of the next request
	sent    map[string]heldCall
	asks    map[string]*heldAsk // the agent's requests that are not answered, by id
	open    []uint64            // events that have not reached the log, in order
	last    uint64              // the last event
	marked  uint64              // up to which the log knows that all events have reached it
	turn    string              // the id of the prompt whose turn runs; "" without one
	began   uint64              // the event that says that it has begun, in version 2
	end     uint64              // the event that ends the turn
	bytes   int                 // of events since the log knew of all
	hastens bool                // hasten is under way
	adopted *adoption           // what an earlier gateway has left; nil if there was none
	results map[string]json.RawMessage
	loaded  uint64 // the event with the answer to session/load
	family  family
	prompt  *keptPrompt // that is kept with its frame; nil if there is none
	steered heldSteers
}

type heldEvent struct {
	seq  uint64
	text []byte
	err  error
}

// heldCall is a request to the agent.
type heldCall struct {
	id     json.RawMessage // by which the connection knows it
	method string
}

// heldAsk is a request of the agent.
type heldAsk struct {
	id     json.RawMessage
	seq    uint64
	raw    []byte
	ask    string // the id of its question; "" if it is none
	known  bool   // an earlier gateway has put it
	record uint64 // then, the record of that
	// withdrawn is the event with which the agent has withdrawn it, or 0. It has not reached the log before the decision.
	withdrawn uint64
	// decided is the answer, if an earlier gateway has kept it, and keeps is one that is to be kept with the frame that has it.
	decided *records.Decided
	keeps   *records.Decided
	kept    bool // its answer is being committed: none can be added any more
	over    bool // its answer is being written: the agent may use its id again
}

func newHeldStream(h Held, s *session, prefix string, adopted *adoption) *heldStream {
	hs := &heldStream{
		h: h, s: s, prefix: prefix, events: make(chan heldEvent), done: make(chan struct{}), wake: make(chan struct{}, 1),
		sent: make(map[string]heldCall), asks: make(map[string]*heldAsk), adopted: adopted, results: make(map[string]json.RawMessage),
	}
	if adopted != nil {
		hs.last, hs.marked = adopted.marked, adopted.marked
	}
	hs.pump.Go(hs.read)
	return hs
}

// read reads events.
func (hs *heldStream) read() {
	for {
		f, err := hs.h.ReadFrame()
		ev := heldEvent{seq: hs.h.Seq(), text: f.Data, err: err}
		if !f.Owned {
			ev.text = bytes.Clone(f.Data)
		}
		select {
		case hs.events <- ev:
		case <-hs.done:
			return
		}
		if tooLarge := (*jsonrpc.FrameTooLargeError)(nil); err != nil && !errors.As(err, &tooLarge) {
			return
		}
	}
}

// ReadFrame implements [jsonrpc.Stream].
func (hs *heldStream) ReadFrame() (jsonrpc.Frame, error) {
	for {
		hs.mu.Lock()
		if len(hs.local) > 0 {
			text := hs.local[0]
			hs.local = hs.local[1:]
			hs.mu.Unlock()
			return jsonrpc.Frame{Data: text, Owned: true}, nil
		}
		events := hs.events
		if a := hs.adopted; a != nil && (!a.opened || a.waits || !a.asked) {
			// What comes before the session is open would count as its history, the answer to the prompt
			// must not come before the prompt, and nothing that withdraws a question before that.
			events = nil
		}
		hs.mu.Unlock()
		select {
		case <-hs.wake:
		case ev := <-events:
			text, err := hs.event(ev)
			if text != nil || err != nil {
				return jsonrpc.Frame{Data: text, Owned: true, Number: ev.seq}, err
			}
		case <-hs.done:
			return jsonrpc.Frame{}, os.ErrClosed
		}
	}
}

// put adds frames that come from here.
func (hs *heldStream) put(text ...[]byte) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.putLocked(text...)
}

func (hs *heldStream) putLocked(text ...[]byte) {
	hs.local = append(hs.local, text...)
	select {
	case hs.wake <- struct{}{}:
	default:
	}
}

// envelope is what a frame is.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

var updatePrefix = []byte(`"method":"session/update"`)

// event takes an event. It returns nothing for one that is dealt with.
func (hs *heldStream) event(ev heldEvent) ([]byte, error) {
	hs.mu.Lock()
	has := len(hs.family.known) > 0
	hs.mu.Unlock()
	n := notificationOf(ev.text, has)
	hs.mu.Lock()
	if ev.err != nil && ev.seq == hs.last {
		hs.mu.Unlock()
		return nil, ev.err
	}
	hs.last = ev.seq
	hs.bytes += len(ev.text)
	if hs.adopted != nil && hs.adopted.have[ev.seq] { // it has reached the log before
		hs.mu.Unlock()
		return nil, ev.err
	}
	hs.open = append(hs.open, ev.seq) // together with last: nobody may take it for settled
	hs.family.note(ev, n)
	hs.mu.Unlock()
	if ev.err != nil {
		hs.dropped(ev.seq)
		return nil, ev.err
	}
	if bytes.Contains(ev.text, updatePrefix) && !bytes.Contains(ev.text, []byte(`"id":`)) {
		return hs.update(ev)
	}
	var e envelope
	err := json.Unmarshal(ev.text, &e)
	switch {
	case err != nil: // the connection answers
	case e.Method != "" && len(e.ID) > 0:
		if !hs.takes(ev, &e) {
			hs.refuse(&e)
			hs.dropped(ev.seq)
			return nil, nil
		}
		return ev.text, nil
	case e.Method == "session/update":
		return hs.update(ev)
	case e.Method == "" && len(e.ID) > 0:
		return hs.answer(ev, &e)
	case e.Method == "$/cancel_request" && hs.withdraws(ev, &e):
		return ev.text, nil
	}
	hs.dropped(ev.seq)
	return ev.text, nil
}

// update takes an update. The log has what an agent has replayed to an earlier gateway, which may not have come to say so.
func (hs *heldStream) update(ev heldEvent) ([]byte, error) {
	if hs.adopted != nil && ev.seq < hs.adopted.state.Loaded {
		hs.dropped(ev.seq)
		return nil, nil
	}
	return ev.text, nil
}

// answer takes the agent's answer to a request.
func (hs *heldStream) answer(ev heldEvent, e *envelope) ([]byte, error) {
	var wire string
	_ = json.Unmarshal(e.ID, &wire)
	hs.mu.Lock()
	call, ok := hs.sent[wire]
	delete(hs.sent, wire)
	if !ok { // to a request of an earlier gateway that nobody waits for
		update, taken := hs.takesSteer(wire, ev, e)
		hs.mu.Unlock()
		if !taken {
			hs.dropped(ev.seq)
		}
		return update, nil
	}
	accepted, turn, taken := false, false, false
	switch call.method {
	case "initialize", "session/new", "session/load", "session/resume":
		if len(e.Error) == 0 {
			hs.results[call.method] = e.Result
			if call.method == "session/load" {
				hs.loaded = ev.seq
			}
		}
	case methodSteering, methodGoose:
		var update []byte
		if update, taken = hs.takesSteer(wire, ev, e); update != nil {
			hs.mu.Unlock()
			return update, nil
		}
	case "session/prompt":
		accepted = hs.version() > 1 && len(e.Error) == 0
		if accepted && wire == hs.turn {
			hs.began = ev.seq
		}
		if turn = !accepted && wire == hs.turn; turn { // and not one that was given up
			hs.end = ev.seq
		}
	}
	hs.mu.Unlock()
	switch {
	case accepted:
		r := acceptedRecord{Result: e.Result, Stamp: hs.stamp(ev.seq)}
		if err := hs.s.log.put(hs.s.ctx, kindAccepted, encode(r), hs.committed(r.Stamp)); err != nil {
			return nil, err
		}
	case !turn && !taken:
		hs.dropped(ev.seq)
	}
	return replaceID(ev.text, e, call.id), nil
}

// version returns the version of the protocol, once it is known.
func (hs *heldStream) version() int {
	var v struct {
		ProtocolVersion int `json:"protocolVersion"`
	}
	raw := hs.results["initialize"]
	if hs.adopted != nil {
		raw = hs.adopted.state.Initialize
	}
	_ = json.Unmarshal(raw, &v)
	return v.ProtocolVersion
}

// replaceID returns a response with another id.
func replaceID(text []byte, e *envelope, id json.RawMessage) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	if len(e.Error) > 0 {
		return append(append(append(out, `,"error":`...), e.Error...), '}')
	}
	return append(append(append(out, `,"result":`...), e.Result...), '}')
}

// settled is called when an event has reached the log, or need not. The updates of a session come in order, so those
// before an update that were not recorded never will be. Nor will those that another session has overtaken by far.
func (hs *heldStream) settled(seq uint64, update bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if _, ok := slices.BinarySearch(hs.open, seq); !ok {
		return // it was taken for one that is never recorded
	}
	asked := func(e uint64) bool {
		for _, a := range hs.asks {
			if a.seq == e || a.withdrawn == e {
				return true
			}
		}
		return hs.steered.has(e)
	}
	kept := hs.open[:0]
	for _, e := range hs.open {
		over := update && e < seq && hs.family.same(e, seq) || hs.family.overtaken(e, seq)
		if e != seq && (!over || e == hs.end || asked(e)) {
			kept = append(kept, e)
		}
	}
	hs.open = kept
	hs.family.settled(hs.open)
}

// watermark returns the event up to which all have reached the log.
func (hs *heldStream) watermark() uint64 {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if len(hs.open) > 0 {
		return hs.open[0] - 1
	}
	return hs.last
}

// stamp returns what a record of an event says of it, and of those before.
func (hs *heldStream) stamp(seq uint64) records.Stamp {
	if hs == nil {
		return records.Stamp{}
	}
	return records.Stamp{Event: seq, Marked: hs.watermark()}
}

// committed returns what is to be done once a record with a stamp is committed; nil for nothing.
func (hs *heldStream) committed(s records.Stamp) func(uint64, error) {
	if hs == nil {
		return nil
	}
	return func(_ uint64, err error) {
		if err != nil {
			return
		}
		hs.settled(s.Event, true)
		hs.mark(s.Marked)
		hs.hasten() // of all that is in flight there may have been records before any was committed
	}
}

// mark acknowledges events of which the log says that they have reached it.
func (hs *heldStream) mark(marked uint64) {
	hs.mu.Lock()
	further := marked > hs.marked
	if further {
		hs.marked = marked
	}
	hs.mu.Unlock()
	if further {
		_ = hs.h.Ack(marked) // reading says what is wrong
	}
}

// maxUnmarked and maxUnmarkedBytes bound the events of which the log does not know that they need no record.
// They come again after a restart, and until then the holder keeps them.
const (
	maxUnmarked      = 64
	maxUnmarkedBytes = 256 << 10
)

// dropped is called for an event of which there is no record.
func (hs *heldStream) dropped(seq uint64) {
	if hs == nil || seq == 0 {
		return
	}
	hs.settled(seq, false)
	hs.hasten()
}

// WriteFrame implements [jsonrpc.Stream].
func (hs *heldStream) WriteFrame(data []byte) error {
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	hs.writing.Lock()
	defer hs.writing.Unlock()
	switch {
	case e.Method != "" && len(e.ID) > 0:
		return hs.request(data, &e)
	case e.Method == "" && len(e.ID) > 0:
		return hs.respond(data, &e)
	}
	return hs.h.WriteFrame(data)
}

// request sends a request, or answers it here.
func (hs *heldStream) request(data []byte, e *envelope) error {
	if a := hs.adopted; a != nil {
		switch e.Method {
		case "initialize":
			hs.put(replaceID(nil, &envelope{Result: a.initialized()}, e.ID))
			return nil
		case "session/load", "session/resume":
			if !a.opened {
				hs.mu.Lock()
				defer hs.mu.Unlock()
				hs.putLocked(replaceID(nil, &envelope{Result: a.state.Opened}, e.ID))
				hs.putLocked(hs.family.introduce(a, data)...)
				a.opened = true // events follow
				return nil
			}
		case "session/prompt":
			if a.waits {
				hs.mu.Lock()
				hs.sent[a.sent.Wire] = heldCall{bytes.Clone(e.ID), e.Method}
				hs.turn, hs.began = a.sent.Wire, a.began
				hs.mu.Unlock()
				hs.resume()
				if a.accepted != nil {
					hs.put(replaceID(nil, &envelope{Result: a.accepted}, e.ID))
				}
				return nil
			}
		}
	}
	hs.mu.Lock()
	hs.next++
	wire := hs.prefix + strconv.Itoa(hs.next)
	hs.sent[wire] = heldCall{bytes.Clone(e.ID), e.Method}
	if e.Method == "session/prompt" {
		hs.turn, hs.began = wire, 0
		hs.family.before = hs.last
	}
	hs.mu.Unlock()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	all["id"] = encode(wire)
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if e.Method == methodSteering || e.Method == methodGoose {
		if err := hs.noteSteer(wire, e.Params); err != nil {
			return err
		}
	}
	if e.Method == "session/prompt" {
		hs.mu.Lock()
		p := hs.prompt
		hs.prompt = nil
		hs.mu.Unlock()
		if err := hs.note(p, sentRecord{Frame: hs.h.Sent() + 1, Wire: wire}); err != nil {
			return err
		}
	}
	return hs.h.WriteFrame(text)
}

// begins has a prompt kept with the frame in which the agent gets it, which is the next one with a prompt.
func (hs *heldStream) begins(p *keptPrompt) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.prompt = p
}

// sends reports whether a prompt is still to be kept with its frame. It is not from then on.
func (hs *heldStream) sends(p *keptPrompt) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.prompt != p {
		return false
	}
	hs.prompt = nil
	return true
}

// resume lets events come that have waited for the prompt of an adopted turn.
func (hs *heldStream) resume() {
	if hs == nil || hs.adopted == nil {
		return
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.adopted.waits = false
	select {
	case hs.wake <- struct{}{}:
	default:
	}
}

// note writes down what is sent next. It is in the log before it is sent, so a gateway that adopts the
// agent knows by the number whether it has arrived. The prompt that is sent may have to be kept with it.
func (hs *heldStream) note(p *keptPrompt, r sentRecord) error {
	sent := engine.Record{Kind: kindSent, Data: encode(r)}
	if p != nil {
		return p.commit(sent)
	}
	_, err := hs.s.log.commitAll(hs.s.ctx, sent)
	return err
}

// idle is called for an event that says that the agent is idle, which ends the turn if there is one.
func (hs *heldStream) idle(seq uint64) {
	if hs == nil || seq == 0 {
		return
	}
	hs.mu.Lock()
	// One that was on its way as the prompt was sent is about what was before.
	ends := hs.turn != "" && hs.end == 0 && hs.began > 0 && seq > hs.began
	if ends {
		hs.end = seq
	}
	hs.mu.Unlock()
	if !ends {
		hs.dropped(seq)
	}
}

// turnEnd returns the event that has ended the turn, which is over, or 0.
func (hs *heldStream) turnEnd() uint64 {
	if hs == nil {
		return 0
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	end := hs.end
	hs.end, hs.began, hs.turn = 0, 0, ""
	hs.open = hs.family.late(hs.open)
	return end
}

// Close implements [jsonrpc.Stream]. The agent continues to run.
func (hs *heldStream) Close() error {
	hs.once.Do(func() {
		close(hs.done)
		_ = hs.h.Close()
	})
	hs.pump.Wait()
	hs.mu.Lock()
	var left []*records.Decided // that the agent will not hear
	for _, a := range hs.asks {
		if a.keeps != nil {
			left = append(left, a.keeps)
			a.keeps = nil
		}
	}
	hs.mu.Unlock()
	for _, answer := range left {
		_ = hs.s.log.put(hs.s.ctx, kindAnswer, encode(answer), nil) // the code that closed the log has reported it
	}
	return nil
}
