package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/jsonrpc"
)

var (
	simSteps = flag.Int("steps", 0, "the steps of TestSimulation, in all worlds; 0 is 600, or 20,000 with all tests")
	simSeed  = flag.Uint64("seed", 0, "the seed of the only world of TestSimulation; 0 takes others")
)

// worldSteps are the steps of a world: then everything comes to its end, and is compared.
const worldSteps = 100

// TestSimulation takes random steps with a session, an agent and clients of both versions, and kills the gateway between
// any two records. In the end all clients, those that were there all the time and those that come, know the same of the
// session; it is what the agent has said, in its order and in its turns; what was prompted has run once at most; and
// what was asked has been answered once, as the log says. A failing world prints its seed for -seed.
func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		simulate(t, *simSeed)
		return
	}
	steps := 600
	if *simSteps > 0 {
		steps = *simSteps
	} else if long.All() {
		steps = 20_000
	}
	first := rand.Uint64()
	for i := range uint64(max(steps/worldSteps, 1)) {
		if simulate(t, first+i); t.Failed() {
			return
		}
	}
}

func simulate(t *testing.T, seed uint64) {
	if !t.Run(fmt.Sprint(seed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed)
			defer w.close()
			for range worldSteps {
				w.step()
			}
			w.settle()
			w.compare()
		})
	}) {
		t.Logf("again: go test -run TestSimulation -seed %d", seed)
	}
}

// A world is a session with everything around it. Its steps are taken by one goroutine.
type world struct {
	t      *testing.T
	random *rand.Rand
	quiet  *slog.Logger
	held   bool // agents outlive the gateway
	agent  int  // the version that they speak
	steers bool // they take messages while a turn runs
	id     acp.SessionID
	server *simServer
	dead   []*simServer
	all    []*simClient
	steer  sync.WaitGroup // clients that steer
	sent   []*simPrompt
	next   int // of what is said
	steps  []string

	cancelled bool // something was

	mu     sync.Mutex
	agents []*simAgent
	turns  []*simTurn // that have begun, in order
	frames []string   // of clients, the last maxFrames
}

// maxFrames is how many frames a failing test prints.
const maxFrames = 300

func newWorld(t *testing.T, seed uint64) *world {
	random := rand.New(rand.NewPCG(seed, 0))
	w := &world{t: t, random: random, quiet: logtest.New(t), held: random.IntN(3) > 0, agent: 1 + random.IntN(2), steers: random.IntN(2) == 0}
	w.serve(t.TempDir())
	c := w.join(1 + random.IntN(2))
	s, err := c.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/project"})
	if err != nil {
		t.Fatal(err)
	}
	w.id, c.session = s.ID(), s
	return w
}

func (w *world) close() {
	if w.t.Failed() {
		w.t.Logf("held %v, agent %d:\n%s", w.held, w.agent, strings.Join(w.steps, "\n"))
		w.t.Logf("what clients have sent and got:\n%s", strings.Join(w.frames, "\n"))
		var log strings.Builder
		_ = w.server.log.Read(context.Background(), string(w.id), 0, func(r engine.Record) error {
			fmt.Fprintf(&log, "%d %s %.300s\n", r.Seq, r.Kind, r.Data)
			return nil
		})
		w.t.Logf("the log:\n%s", log.String())
	}
	for _, c := range w.all {
		c.leave()
	}
	for _, s := range append(w.dead, w.server) {
		s.close()
	}
	w.mu.Lock()
	agents := w.agents
	w.mu.Unlock()
	for _, a := range agents {
		_ = a.conn.Close()
	}
}

// note writes a step down; a failing test prints them.
func (w *world) note(format string, args ...any) {
	w.steps = append(w.steps, fmt.Sprintf(format, args...))
}

// name returns a text that is said once in the world.
func (w *world) name(prefix string) string {
	w.next++
	return fmt.Sprintf("%s%d ", prefix, w.next)
}

// A simServer is a process with a gateway. Once it is dead nobody hears of it, and what it writes is not read.
type simServer struct {
	w     *world
	dir   string
	log   *engine.Engine
	lease *engine.Lease
	g     *Gateway
	dead  atomic.Bool
	left  atomic.Int64 // records until it is killed; 0 or less for never
	after string       // the directory as it was then
	once  sync.Once
}

func (w *world) serve(dir string) {
	s := &simServer{w: w, dir: dir}
	var err error
	if s.log, err = sqlite.Open(w.t.Context(), dir, "test", engine.Options{Says: func(r *engine.Record) engine.Said {
		if s.left.Add(-1) == 0 {
			s.kill()
		}
		return Says(r)
	}}); err != nil {
		w.t.Fatal(err)
	}
	if s.lease, err = s.log.Lease(w.t.Context(), "node"); err != nil {
		w.t.Fatal(err)
	}
	cfg := Config{Log: s.log, Lease: s.lease, Agent: "test", Agents: []string{"test"}, Logger: w.quiet, Start: s.start}
	if w.held {
		cfg.Hold, cfg.Rehold = s.hold, s.rehold
	}
	s.g = New(cfg)
	if err := s.g.Recover(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.server = s
}

// kill has the server die as it is: what it has written so far is there for the next one.
func (s *simServer) kill() {
	s.once.Do(func() {
		s.dead.Store(true)
		if !s.w.held {
			s.w.lose()
		}
		s.after = s.w.t.TempDir()
		if err := os.CopyFS(s.after, journalsOf(s.dir)); err != nil {
			s.w.t.Error(err)
		}
	})
}

// journalsOf is a directory without what a process has to itself, and without the index.
func journalsOf(dir string) fs.FS { return onlyJournals{os.DirFS(dir)} }

type onlyJournals struct{ fs.FS }

func (o onlyJournals) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(o.FS, name)
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool {
		return !e.IsDir() && !strings.HasSuffix(e.Name(), ".jsonl") && !strings.HasSuffix(e.Name(), ".live")
	}), err
}

func (s *simServer) close() {
	s.kill()
	_ = s.g.Close()
	_ = s.log.Close()
}

// start starts an agent that ends with its gateway.
func (s *simServer) start(context.Context, string, string) (acp.Transport, error) {
	_, ours := s.startAgent()
	return acp.Over(&simPipe{ours, s}), nil
}

// A simPipe is a stream of a server, which is of no use once that is dead.
type simPipe struct {
	jsonrpc.Stream
	s *simServer
}

var errDead = errors.New("the server is dead")

func (p *simPipe) WriteFrame(data []byte) error {
	if p.s.dead.Load() {
		return errDead
	}
	return p.Stream.WriteFrame(data)
}

// A simAgent is a process of the agent.
type simAgent struct {
	conn   *acp.AgentConn
	socket string      // its number
	sim    *holderSim  // nil unless it is held
	over   atomic.Bool // it was ended
	gone   atomic.Bool // and so was its holder
}

func (s *simServer) startAgent() (*simAgent, jsonrpc.Stream) {
	w := s.w
	theirs, ours := jsonrpc.Pipe()
	agent := &acp.Agent{MinVersion: w.agent, MaxVersion: w.agent, Logger: w.quiet}
	a := new(simAgent)
	if w.steers {
		agent.Busy = acp.BusySteer
	}
	agent.Prompt = func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) { return s.act(ctx, t, a) }
	conn, err := agent.Connect(context.Background(), acp.Over(theirs))
	if err != nil {
		w.t.Fatal(err)
	}
	a.conn = conn
	w.mu.Lock()
	defer w.mu.Unlock()
	a.socket = fmt.Sprint(len(w.agents))
	w.agents = append(w.agents, a)
	return a, ours
}

func (s *simServer) hold(context.Context, string, string) (Held, error) {
	a, ours := s.startAgent()
	a.sim = newHolderSim(ours, nil)
	return &simHold{a.sim.attach(0), s, a, a.socket}, nil
}

func (s *simServer) rehold(_ context.Context, socket, _ string, seq uint64) (Held, error) {
	var i int
	if _, err := fmt.Sscan(socket, &i); err != nil {
		return nil, err
	}
	s.w.mu.Lock()
	a := s.w.agents[i]
	s.w.mu.Unlock()
	if a.gone.Load() {
		return nil, errDead
	}
	sim := a.sim
	sim.mu.Lock()
	acked := sim.acked
	sim.mu.Unlock()
	if seq < acked {
		s.w.t.Errorf("the events after %d are needed, and those up to %d were acknowledged", seq, acked)
	}
	return &simHold{sim.attach(seq), s, a, socket}, nil
}

// A simHold is a held agent as a server has it.
type simHold struct {
	*simHeld
	s      *simServer
	a      *simAgent
	socket string
}

func (h *simHold) Socket() string { return h.socket }

func (h *simHold) Ack(n uint64) error {
	if h.s.dead.Load() {
		return errDead
	}
	return h.simHeld.Ack(n)
}

func (h *simHold) WriteFrame(data []byte) error {
	if h.s.dead.Load() {
		return errDead
	}
	return h.simHeld.WriteFrame(data)
}

func (h *simHold) Stop(ctx context.Context) error {
	if h.s.dead.Load() {
		return h.simHeld.Close()
	}
	h.a.over.Store(true)
	h.a.gone.Store(true)
	return h.simHeld.Stop(ctx)
}

// A simPrompt is a prompt of a client, which sends it again when it comes back.
type simPrompt struct {
	text  string
	reply *acp.Reply
	ended bool           // its client has learned how its turn has ended
	stop  acp.StopReason // then: how, unless that has failed
}

// A simClient is a client, and what it knows of the session.
type simClient struct {
	w       *world
	i       int // its number
	version int
	conn    *acp.ClientConn
	session *acp.ClientSession
	end     context.CancelFunc
	view    *simView
	served  sync.WaitGroup
	prompts []*simPrompt // that have not ended, as far as it knows
	had     []string     // what it has prompted, for once more

	mu    sync.Mutex
	asked []*simAsk
}

// A simAsk is a question that a client has been asked.
type simAsk struct {
	request *acp.PermissionRequest
	answer  chan acp.PermissionDecision
}

// join connects a client.
func (w *world) join(version int) *simClient {
	c := &simClient{w: w, i: len(w.all), version: version, view: newSimView(version)}
	c.connect()
	w.all = append(w.all, c)
	return c
}

func (c *simClient) connect() {
	s, v := c.w.server, c.view
	theirs, ours := jsonrpc.Pipe()
	ctx, end := context.WithCancel(context.Background())
	c.end = end
	c.served.Go(func() { _ = s.g.Serve(ctx, acp.Over(&simPipe{theirs, s})) })
	client := &acp.Client{MinVersion: c.version, MaxVersion: c.version, Logger: c.w.quiet,
		Update: v.update, RequestPermission: c.ask}
	var err error
	if c.conn, err = client.Connect(ctx, acp.Over(jsonrpc.Tap(ours, c.passes))); err != nil {
		c.conn = nil
		if !s.dead.Load() {
			c.w.t.Error(err)
		}
	}
}

// passes notes a frame that a client sends or gets.
func (c *simClient) passes(sent bool, frame []byte) {
	way := "<-"
	if sent {
		way = "->"
	}
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.frames = append(w.frames, fmt.Sprintf("client %d %s %.300s", c.i, way, frame)); len(w.frames) > maxFrames {
		w.frames = w.frames[1:]
	}
}

func (c *simClient) ask(ctx context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
	a := &simAsk{r, make(chan acp.PermissionDecision, 1)}
	c.mu.Lock()
	c.asked = append(c.asked, a)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked = slices.DeleteFunc(c.asked, func(b *simAsk) bool { return a == b })
	}()
	select {
	case d := <-a.answer:
		return d, nil
	case <-ctx.Done():
		return acp.CancelPermission(), nil
	}
}

// leave closes the connection of a client.
func (c *simClient) leave() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
	c.end()
	c.served.Wait()
	c.conn, c.session = nil, nil
}

// enter has a client be sent what it does not know of the session: all of it, or what came behind its position.
func (c *simClient) enter(anew bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	cfg := acp.SessionConfig{Cwd: "/project"}
	position := c.view.position()
	if anew || position == "" {
		c.view.clear()
		c.session, err = c.conn.Load(ctx, c.w.id, cfg)
		return err
	}
	cfg.Meta = json.RawMessage(`{"` + metaKey + `":` + position + `}`)
	c.session, err = c.conn.Resume(ctx, c.w.id, cfg)
	return err
}

// send sends a prompt, which may be one that was cut off.
func (c *simClient) send(p *simPrompt) {
	p.reply = c.session.PromptRequest(context.Background(), &acpv2.PromptRequest{
		Prompt: []acp.ContentBlock{acp.Text(p.text)}, Meta: ownmeta.Of(map[string]string{"operationId": strings.TrimSpace(p.text)}),
	})
}

// A simTurn is a turn of the agent, and what it has said in it.
type simTurn struct {
	agent  *simAgent
	prompt string
	acts   chan func(*acp.Turn) error
	over   chan struct{}
	killed bool // its agent, or the gateway that ran that
	stop   acp.StopReason

	mu   sync.Mutex
	said []string
	asks []string // how its questions were answered
}

// says notes what the agent has said, unless that has failed.
func (t *simTurn) says(line string, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.said = append(t.said, line)
	}
	return err
}

var errFinish = errors.New("the turn is over")

// act is the agent's side of a turn: it does what the steps want.
func (s *simServer) act(ctx context.Context, turn *acp.Turn, a *simAgent) (stop acp.StopReason, err error) {
	blocks := turn.Blocks() // what a transcript says comes before
	t := &simTurn{agent: a, prompt: blocks[len(blocks)-1].(*acp.TextContent).Text, acts: make(chan func(*acp.Turn) error, 100), over: make(chan struct{})}
	defer func() {
		switch {
		case err == nil:
			t.stop = stop
		case ctx.Err() != nil:
			t.stop = acp.StopCancelled
			if errors.Is(context.Cause(ctx), jsonrpc.ErrClosed) {
				a.over.Store(true)
			}
		default:
			t.stop = acpv2.StopReasonError
		}
		close(t.over)
	}()
	s.w.mu.Lock()
	s.w.turns = append(s.w.turns, t)
	t.killed = !s.w.held && s.dead.Load()
	s.w.mu.Unlock()
	for {
		select {
		case f := <-t.acts:
			switch err := f(turn); {
			case errors.Is(err, errFinish):
				return acp.StopEndTurn, nil
			case err != nil:
				return "", err
			}
		case blocks := <-turn.Steering():
			_ = t.says("user "+blocks[0].(*acp.TextContent).Text, nil)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// running returns the turn of the agent that runs, or nil.
func (w *world) running() *simTurn {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range slices.Backward(w.turns) {
		select {
		case <-t.over:
		default:
			return t
		}
	}
	return nil
}
