package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/idtest"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/jsonrpc"
)

// errLost is why a simulated holder cannot be used any more.
var errLost = errors.New("another gateway has attached")

// holderSim is what package holder does, in memory: no event is sent while 1 MiB is in flight.
type holderSim struct {
	inner      jsonrpc.Stream
	mu         sync.Mutex
	cond       *sync.Cond
	events     [][]byte
	ended      bool
	acked, acc uint64
	cur        *simHeld
	change     func([]byte) []byte
	stall      chan struct{} // what a dead gateway writes waits until it is closed; nil does not
}

func newHolderSim(inner jsonrpc.Stream, change func([]byte) []byte) *holderSim {
	h := &holderSim{inner: inner, change: change}
	h.cond = sync.NewCond(&h.mu)
	go func() {
		for {
			f, err := inner.ReadFrame()
			h.mu.Lock()
			if err != nil {
				h.ended = true
				h.cond.Broadcast()
				h.mu.Unlock()
				return
			}
			d := bytes.Clone(f.Data)
			if h.change != nil {
				d = h.change(d)
			}
			h.events = append(h.events, d)
			h.cond.Broadcast()
			h.mu.Unlock()
		}
	}()
	return h
}

type simHeld struct {
	h      *holderSim
	seq    uint64
	sent   uint64
	closed bool
	dead   bool // its gateway is: it neither ends its agent nor cancels what that does
}

func (h *holderSim) attach(seq uint64) *simHeld {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cur != nil {
		h.cur.closed = true
	}
	h.acked = max(h.acked, seq)
	h.cur = &simHeld{h: h, seq: seq, sent: h.acc}
	h.cond.Broadcast()
	return h.cur
}

func (s *simHeld) ReadFrame() (jsonrpc.Frame, error) {
	h := s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		if s.closed {
			return jsonrpc.Frame{}, errLost
		}
		if int(s.seq) < len(h.events) {
			fly := 0
			for i := h.acked; i < s.seq; i++ {
				fly += len(h.events[i]) + 64
			}
			if fly < 1<<20 {
				s.seq++
				return jsonrpc.Frame{Data: h.events[s.seq-1], Owned: true}, nil
			}
		} else if h.ended {
			return jsonrpc.Frame{}, io.EOF
		}
		h.cond.Wait()
	}
}

func (s *simHeld) WriteFrame(d []byte) error {
	s.h.mu.Lock()
	if s.closed || s.dead {
		stall := s.h.stall
		s.h.mu.Unlock()
		if stall != nil {
			<-stall
		}
		return errLost
	}
	s.sent++
	s.h.acc++
	s.h.mu.Unlock()
	return s.h.inner.WriteFrame(d)
}

func (s *simHeld) Close() error {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	s.closed = true
	s.h.cond.Broadcast()
	return nil
}

func (s *simHeld) Seq() uint64 {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return s.seq
}

func (s *simHeld) Sent() uint64 {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return s.sent
}

func (s *simHeld) Ack(n uint64) error {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	s.h.acked = max(s.h.acked, n)
	s.h.cond.Broadcast()
	return nil
}

func (s *simHeld) Stop(context.Context) error {
	_ = s.Close()
	s.h.mu.Lock()
	dead := s.dead
	s.h.mu.Unlock()
	if dead {
		return nil
	}
	return s.h.inner.Close()
}

func (s *simHeld) Socket() string { return "sim" }
func (s *simHeld) Token() string  { return "sim" }

// heldRig makes the agents of a rig held.
func heldRig(t *testing.T, agent *acp.Agent, version int, change func([]byte) []byte) (*rig, *[]*holderSim) {
	r := newRig(t, agent)
	r.max = version
	sims := new([]*holderSim)
	r.g.cfg.Hold = func(context.Context, string, string) (Held, error) {
		if _, err := r.start(t.Context(), "", ""); err != nil {
			return nil, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		h := newHolderSim(r.last, change)
		*sims = append(*sims, h)
		return h.attach(0), nil
	}
	return r, sims
}

// spaced writes JSON as json.dumps of Python does.
func spaced(d []byte) []byte {
	var v any
	dec := json.NewDecoder(bytes.NewReader(d))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return d
	}
	return spacedValue(v)
}

func spacedValue(v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for k, x := range v {
			kk, _ := json.Marshal(k)
			parts = append(parts, string(kk)+": "+string(spacedValue(x)))
		}
		return []byte("{" + strings.Join(parts, ", ") + "}")
	case []any:
		var parts []string
		for _, x := range v {
			parts = append(parts, string(spacedValue(x)))
		}
		return []byte("[" + strings.Join(parts, ", ") + "]")
	}
	b, _ := json.Marshal(v)
	return b
}

// bulky is an agent that says more in a turn than may be in flight.
func bulky() *acp.Agent {
	return &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		for range 200 {
			if err := t.Say(strings.Repeat("x", 10_000)); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, nil
	}}
}

// TestHeldBulk: events are acknowledged as they reach the log, however the agent writes its JSON, and whatever it adds.
func TestHeldBulk(t *testing.T) {
	more := func(d []byte) []byte { // that is what another version of this program called the number of an event
		return bytes.Replace(d, []byte(`"update":{`), []byte(`"_e":7,"update":{`), 1)
	}
	for name, change := range map[string]func([]byte) []byte{"compact": nil, "spaced": spaced, "more": more} {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprint(name, version), func(t *testing.T) {
				r, sims := heldRig(t, bulky(), version, change)
				s := r.connect(1).new(t)
				for range 2 {
					text, _, err := s.Prompt(t.Context(), acp.Text("go")).Text()
					if err != nil || len(text) != 2_000_000 {
						t.Fatal(len(text), err)
					}
				}
				h := (*sims)[0]
				h.mu.Lock()
				defer h.mu.Unlock()
				if int(h.acked) < len(h.events)-150 {
					t.Errorf("%d of %d events are acknowledged", h.acked, len(h.events))
				}
			})
		}
	}
}

// TestHeldReplay: an agent that is started again, and can only load, may replay more than may be in flight.
func TestHeldReplay(t *testing.T) {
	agent := talking(nil)
	agent.ResumeSession = func(_ context.Context, s *acp.AgentSession, replay bool) error {
		for i := range 20 {
			if !replay {
				break
			}
			if err := s.Send(&acp.AgentMessage{MessageID: acp.MessageID(fmt.Sprint("m", i)), Content: acp.Set([]acp.ContentBlock{acp.Text(strings.Repeat("x", 100_000))})}); err != nil {
				return err
			}
		}
		return nil
	}
	r, sims := heldRig(t, agent, 1, func(d []byte) []byte {
		return bytes.Replace(d, []byte(`"resume":{}`), []byte(`"_resume":{}`), 1)
	})
	c := r.connect(1)
	s := c.new(t)
	say(t, s, "one")
	_ = (*sims)[0].inner.Close()
	ended(r, s.ID())
	say(t, s, "two")
	if got := c.seen.until(t, "agent: two"); strings.Contains(strings.Join(got, ""), "xxx") {
		t.Error("the replay was taken for something new")
	}
}

// TestHeldIdle: an agent of version 2 that says that it is idle outside a turn holds up nothing.
func TestHeldIdle(t *testing.T) {
	agent := bulky()
	var session *acp.AgentSession
	agent.NewSession = func(_ context.Context, s *acp.AgentSession) error {
		session = s
		return nil
	}
	r, _ := heldRig(t, agent, 2, nil)
	s := r.connect(1).new(t)
	if err := session.Send(&acp.IdleStateUpdate{StopReason: acp.StopEndTurn}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		say(t, s, "go")
	}
}

// takeOver has another gateway take the place of the rig's, as if that were dead, and with it the agent of a holder. It
// returns the old one.
func (r *rig) takeOver(sim *holderSim) (old *Gateway) {
	r.t.Helper()
	old = r.g
	cfg := old.cfg
	cfg.Rehold = func(_ context.Context, _, _ string, seq uint64) (Held, error) { return sim.attach(seq), nil }
	sim.mu.Lock()
	sim.cur.dead = true // the old gateway is as good as that
	sim.mu.Unlock()
	var err error
	if cfg.Lease, err = r.log.Lease(r.t.Context(), cfg.Lease.Node()); err != nil {
		r.t.Fatal(err)
	}
	r.lease = cfg.Lease
	r.g = New(cfg)
	if err := r.g.Recover(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return old
}

// TestHeldTakenOver: another gateway continues a turn, also one for which the agent was started.
func TestHeldTakenOver(t *testing.T) {
	for name, again := range map[string]bool{"at first": false, "started again": true} {
		t.Run(name, func(t *testing.T) {
			goOn := make(chan struct{})
			r, sims := heldRig(t, talking(goOn), 1, nil)
			s := r.connect(1).new(t)
			say(t, s, "one")
			if again {
				_ = (*sims)[0].inner.Close()
				ended(r, s.ID())
			}
			c := r.connect(1)
			o := c.load(t, s.ID())
			o.Prompt(t.Context(), acp.Text("wait two"))
			c.seen.until(t, "agent: waiting")
			old := r.takeOver((*sims)[len(*sims)-1])
			d := r.connect(2)
			d.load(t, s.ID())
			close(goOn)
			got := d.seen.until(t, "agent: two")
			want := "user: one|agent: one|end: end_turn|user: wait two|agent: waiting|agent: wait|agent: two"
			if again { // that agent cannot bring a session back, and gets what was said as text
				want = strings.Replace(want, "user: wait two|", "user: wait two|notice: The agent does not remember this session.|", 1)
			}
			if strings.Join(got, "|") != want {
				t.Errorf("%q", got)
			}
			_ = c.conn.Close()
			_ = old.Close()
		})
	}
}

// TestHeldAsksAgain: the ids of requests begin anew with each start of the agent, and its questions are others.
func TestHeldAsksAgain(t *testing.T) {
	agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		answer, err := t.Ask(acp.Permission{Title: "May I?"})
		if err == nil && !answer.Allowed {
			err = errors.New("not allowed")
		}
		return acp.StopEndTurn, err
	}}
	r, sims := heldRig(t, agent, 1, nil)
	s := r.connect(1, func(c *acp.Client) {
		c.RequestPermission = func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			return r.Allow(), nil
		}
	}).new(t)
	for range 3 {
		if _, err := s.Prompt(t.Context(), acp.Text("go")).Wait(); err != nil {
			t.Fatal(err)
		}
		_ = (*sims)[len(*sims)-1].inner.Close()
		ended(r, s.ID())
	}
}

// wrapped returns the agent's end of a connection.
func (r *rig) wrapped(s jsonrpc.Stream) jsonrpc.Stream {
	if r.wrap == nil {
		return s
	}
	return r.wrap(s)
}

// TestIDsAgain: an agent may use the id of a request again once that has its answer.
func TestIDsAgain(t *testing.T) {
	agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		answer, err := t.Ask(acp.Permission{Title: "May I?"})
		if err == nil && !answer.Allowed {
			err = errors.New("not allowed")
		}
		if err != nil {
			return "", err
		}
		form, err := t.Elicit(whoForm)
		if err == nil && !form.Accepted {
			err = errors.New("not accepted")
		}
		return acp.StopEndTurn, err
	}}
	allow := func(c *acp.Client) {
		c.RequestPermission = func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			return r.Allow(), nil
		}
	}
	fill := filling(func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
		return callMe("Ada"), nil
	})
	for version := 1; version <= 2; version++ {
		for _, held := range []bool{false, true} {
			t.Run(fmt.Sprintf("version %d held %v", version, held), func(t *testing.T) {
				r := newRig(t, agent)
				if held {
					r, _ = heldRig(t, agent, version, nil)
				}
				r.max, r.wrap = version, idtest.Frugal
				s := r.connect(version, allow, fill).new(t)
				for range 3 {
					if _, err := s.Prompt(t.Context(), acp.Text("go")).Wait(); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// hastyHeld is an agent that uses the id of a request again before whoever has written the answer continues.
type hastyHeld struct {
	Held
	hs     *heldStream
	events chan string
	seq    atomic.Uint64
	again  []byte // what was read meanwhile
}

func (h *hastyHeld) ReadFrame() (jsonrpc.Frame, error) {
	text, ok := <-h.events
	if !ok {
		return jsonrpc.Frame{}, io.EOF
	}
	h.seq.Add(1)
	return jsonrpc.Frame{Data: []byte(text)}, nil
}

func (h *hastyHeld) WriteFrame([]byte) error {
	h.events <- `{"jsonrpc":"2.0","id":7,"method":"fs/second"}`
	f, err := h.hs.ReadFrame()
	h.again = f.Data
	return err
}

func (h *hastyHeld) Seq() uint64      { return h.seq.Load() }
func (h *hastyHeld) Ack(uint64) error { return nil }
func (h *hastyHeld) Close() error     { return nil }

// TestHeldIDAtOnce: what is known of a request that has the id of one whose answer has just been written is not forgotten
// with that.
func TestHeldIDAtOnce(t *testing.T) {
	h := &hastyHeld{events: make(chan string, 1)}
	h.hs = newHeldStream(h, nil, "", nil)
	defer func() {
		close(h.events)
		_ = h.hs.Close()
	}()
	h.events <- `{"jsonrpc":"2.0","id":7,"method":"fs/first"}`
	if _, err := h.hs.ReadFrame(); err != nil {
		t.Fatal(err)
	}
	if err := h.hs.WriteFrame([]byte(`{"jsonrpc":"2.0","id":7,"result":{}}`)); err != nil {
		t.Fatal(err)
	}
	if a := h.hs.asks["7"]; a == nil || a.seq != 2 || !strings.Contains(string(h.again), "second") {
		t.Errorf("%+v is known, after %s", a, h.again)
	}
	if got := h.hs.watermark(); got != 1 {
		t.Errorf("%d events are settled, want the first", got)
	}
}

// plainHeld is an agent that says lines, and keeps what it is sent.
type plainHeld struct {
	hastyHeld
	sent []string
}

func (h *plainHeld) WriteFrame(data []byte) error {
	h.sent = append(h.sent, string(data))
	return nil
}

// TestHeldIDTwice: a request that has the id of one that waits is refused, and that one waits on: neither the agent nor
// what is known of it takes the refusal for its answer.
func TestHeldIDTwice(t *testing.T) {
	h := &plainHeld{hastyHeld: hastyHeld{events: make(chan string, 3)}}
	hs := newHeldStream(h, nil, "", nil)
	defer func() {
		close(h.events)
		_ = hs.Close()
	}()
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"fs/first"}`,
		`{"jsonrpc":"2.0","id":7,"method":"fs/second"}`,
		`{"jsonrpc":"2.0","id":8,"method":"fs/third"}`,
	} {
		h.events <- text
	}
	a, b := jsonrpc.Frame{}, jsonrpc.Frame{}
	for _, f := range []*jsonrpc.Frame{&a, &b} {
		var err error
		if *f, err = hs.ReadFrame(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Contains(a.Data, []byte("first")) || !bytes.Contains(b.Data, []byte("third")) {
		t.Errorf("the connection gets %s, %s", a.Data, b.Data)
	}
	const refusal = `"error":{"code":-32600,"message":"Invalid request: id is already in flight"}`
	want := []string{`{"jsonrpc":"2.0","id":7,` + refusal + `}`}
	if !slices.Equal(h.sent, want) {
		t.Errorf("the agent gets %q", h.sent)
	}
	if ask := hs.asks["7"]; ask == nil || ask.seq != 1 || ask.over || hs.watermark() != 0 {
		t.Errorf("%+v is known of the first, and %d events are settled", ask, hs.watermark())
	}
	err := hs.WriteFrame([]byte(`{"jsonrpc":"2.0","id":7,"result":{}}`))
	if err != nil || hs.asks["7"] != nil || hs.watermark() != 2 {
		t.Errorf("%v; after its answer %+v is known, and %d events are settled", err, hs.asks["7"], hs.watermark())
	}
}

// TestHeldAsksLarge: a question is asked whatever its size, and what is kept of it is what the agent sent.
func TestHeldAsksLarge(t *testing.T) {
	size := 1_200_000 // more than what may be in flight
	if long.All() {
		size = 8_000_000
	}
	lines := strings.Repeat("line\n", size/5)
	agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		call := t.ToolCall(acp.ToolCall{Title: "Write", Kind: acp.ToolKindEdit, Content: []acp.ToolCallContent{&acpv2.Content{Content: acp.Text(lines)}}})
		answer, err := call.Ask(acp.Permission{Title: "Write?"})
		if err == nil && !answer.Allowed {
			err = errors.New("not allowed")
		}
		return acp.StopEndTurn, err
	}}
	versions(t, func(t *testing.T, client, version int) {
		r, _ := heldRig(t, agent, version, nil)
		s := r.connect(client, func(c *acp.Client) {
			c.RequestPermission = func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
				said, err := json.Marshal(r.ToolCall.Content)
				if bytes.Contains(said, []byte(strings.ReplaceAll(lines, "\n", `\n`))) {
					return r.Allow(), nil
				}
				return acp.CancelPermission(), errors.Join(err, errors.New("some of it is missing"))
			}
		}).new(t)
		if _, err := s.Prompt(t.Context(), acp.Text("go")).Wait(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestHeldLarge: a prompt and a message of 8 MB pass, in both versions of the protocol, whatever came before. A quick
// test does with what is larger than what may be in flight.
func TestHeldLarge(t *testing.T) {
	size := 1_200_000
	if long.All() {
		size = 8_000_000
	}
	agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		if err := t.Say(fmt.Sprintln(len(asked(t)))); err != nil {
			return "", err
		}
		return acp.StopEndTurn, t.Say(strings.Repeat("x", size))
	}}
	versions(t, func(t *testing.T, client, version int) {
		r, _ := heldRig(t, agent, version, nil)
		s := r.connect(client).new(t)
		text, _, err := s.Prompt(t.Context(), acp.Text(strings.Repeat("y", size))).Text()
		if want := fmt.Sprintln(size); err != nil || len(text) != len(want)+size || !strings.HasPrefix(text, want) {
			t.Fatalf("%d bytes, %.20q, %v", len(text), text, err)
		}
	})
}
