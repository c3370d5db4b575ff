package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

// step takes a step, and often waits until nothing more follows from it.
func (w *world) step() {
	if w.server.dead.Load() {
		w.restart()
	}
	switch n := w.random.IntN(100); {
	case n < 20:
		w.promptStep()
	case n < 60:
		w.actStep()
	case n < 72:
		w.answerStep()
	case n < 75:
		w.cancelStep()
	case n < 78:
		w.steerStep()
	case n < 81:
		if len(w.all) < 4 {
			c := w.join(1 + w.random.IntN(2))
			w.note("client %d of version %d joins", len(w.all)-1, c.version)
			if c.conn != nil {
				w.enter(c, true)
			}
		}
	case n < 88:
		w.comeOrGoStep()
	case n < 93:
		w.server.left.Store(1 + w.random.Int64N(8))
		w.note("the server is killed after %d records", w.server.left.Load())
	case n < 95:
		w.note("the server is killed")
		w.server.kill()
	case n < 96:
		w.server.once.Do(func() { w.server.after = w.server.dir }) // it is not killed while it ends
		w.note("the server ends")
		w.restart()
	case n < 97:
		w.agentDies()
	default:
		d := time.Duration(w.random.IntN(2000)) * time.Millisecond
		w.note("%v pass", d)
		time.Sleep(d)
	}
	if w.random.IntN(3) > 0 {
		synctest.Wait()
	}
}

func (w *world) promptStep() {
	i := w.random.IntN(len(w.all))
	c := w.all[i]
	if c.session == nil || c.waits() {
		return
	}
	p := &simPrompt{text: w.name("p")}
	w.sent = append(w.sent, p)
	w.note("client %d prompts %s", i, p.text)
	c.send(p)
}

// waits reports whether a client has a prompt that has not ended, as far as it knows, and notes if it has.
func (c *simClient) waits() bool {
	p := c.prompt
	if p == nil {
		return false
	}
	select {
	case <-p.reply.Done():
	default:
		return true
	}
	res, err := p.reply.Wait()
	if errors.Is(err, jsonrpc.ErrClosed) || errors.Is(err, acp.ErrOutcomeUnknown) {
		return true // it is sent again
	}
	if err != nil {
		c.w.note("%sfails: %v", p.text, err)
	} else if p.ran = res.StopReason != acp.StopCancelled; !p.ran {
		c.w.note("%swas cancelled", p.text)
	}
	p.ended = true
	c.prompt = nil
	return false
}

func (w *world) actStep() {
	t := w.running()
	if t == nil {
		return
	}
	if len(t.acts) > cap(t.acts)/2 {
		return
	}
	name := w.name("a")
	switch n := w.random.IntN(20); {
	case n < 9:
		w.note("the agent says %s", name)
		t.acts <- func(turn *acp.Turn) error {
			return t.says("agent "+name, turn.Say(name))
		}
	case n < 11:
		w.note("the agent thinks %s", name)
		t.acts <- func(turn *acp.Turn) error {
			return t.says("thought "+name, turn.Think(name))
		}
	case n < 14:
		w.note("the agent calls %s", name)
		t.acts <- func(turn *acp.Turn) error {
			call := turn.ToolCall(acp.ToolCall{Title: name, Kind: acp.ToolKindExecute, Status: acpv2.ToolCallStatusInProgress})
			if err := turn.Err(); err != nil {
				return err
			}
			i := t.calls(name)
			t.status(i, name, acpv2.ToolCallStatusCompleted)
			return call.Complete()
		}
	case n < 17:
		w.note("the agent asks %s", name)
		t.acts <- func(turn *acp.Turn) error {
			call := turn.ToolCall(acp.ToolCall{Title: name, Kind: acp.ToolKindExecute})
			if err := turn.Err(); err != nil {
				return err
			}
			i := t.calls(name)
			answer, err := call.Ask(acp.Permission{Title: name})
			if err != nil {
				return err
			}
			t.mu.Lock()
			t.asks = append(t.asks, name+string(answer.Option.OptionID))
			t.mu.Unlock()
			if answer.Cancelled {
				return nil
			}
			t.status(i, name, acpv2.ToolCallStatusCompleted)
			return call.Complete()
		}
	case n < 19:
		w.note("the turn ends")
		t.acts <- func(*acp.Turn) error { return errFinish }
	default:
		w.note("the turn fails")
		t.acts <- func(*acp.Turn) error { return errors.New(name) }
	}
}

func (w *world) answerStep() {
	for _, i := range w.random.Perm(len(w.all)) {
		if w.all[i].answer(w.random.IntN(2) == 0) {
			w.note("client %d answers", i)
			return
		}
	}
}

// answer answers a question, if there is one.
func (c *simClient) answer(allow bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) == 0 {
		return false
	}
	a := c.asked[0]
	c.asked = c.asked[1:]
	if allow {
		a.answer <- a.request.Allow()
	} else {
		a.answer <- a.request.Reject()
	}
	return true
}

func (w *world) cancelStep() {
	i := w.random.IntN(len(w.all))
	if c := w.all[i]; c.session != nil {
		w.cancelled = true
		w.note("client %d cancels", i)
		_ = c.session.Cancel(context.Background())
	}
}

// steerStep has a client say something to the turn that runs.
func (w *world) steerStep() {
	i := w.random.IntN(len(w.all))
	s := w.all[i].session
	if s == nil || w.running() == nil {
		return
	}
	text := w.name("s")
	w.note("client %d says %s", i, text)
	w.steer.Go(func() { _, _ = s.Steer(context.Background(), acp.Text(text)) })
}

func (w *world) comeOrGoStep() {
	i := w.random.IntN(len(w.all))
	switch c := w.all[i]; {
	case c.conn == nil:
		w.note("client %d comes back", i)
		w.back(c)
	case w.random.IntN(2) == 0:
		w.note("client %d leaves", i)
		c.leave()
	default:
		w.note("client %d is cut off, and comes back", i)
		c.leave()
		w.back(c)
	}
}

// back has a client come back, which sends its prompt again.
func (w *world) back(c *simClient) {
	if c.connect(); c.conn == nil {
		return
	}
	if w.enter(c, w.random.IntN(4) == 0) && c.waits() {
		c.again = true
		c.send(c.prompt)
	}
}

// enter has a client enter the session. It fails if the server dies.
func (w *world) enter(c *simClient, anew bool) bool {
	err := c.enter(anew)
	if err != nil {
		c.leave()
		if !w.server.dead.Load() {
			w.note("that fails: %v", err)
			w.t.Errorf("a client cannot enter: %v", err)
		}
	}
	return err == nil
}

// agentDies has the agent end that was started last.
func (w *world) agentDies() {
	w.mu.Lock()
	n := len(w.agents)
	w.mu.Unlock()
	if n == 0 {
		return
	}
	w.note("the agent dies")
	w.lose()
	w.agents[n-1].over.Store(true)
	_ = w.agents[n-1].conn.Close()
}

// lose notes that the turns that run come to no end, and perhaps not all is kept that the agent says in them.
func (w *world) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.turns {
		select {
		case <-t.over:
		default:
			t.killed = true
		}
	}
}

// stop takes the server from its clients, in an orderly way unless it is dead.
func (w *world) stop() {
	s := w.server
	if !w.held || !s.dead.Load() {
		w.lose()
	}
	for _, c := range w.all {
		c.waits()
		if c.conn != nil {
			c.leave()
		}
	}
	if s.dead.Load() {
		w.dead = append(w.dead, s)
		return
	}
	if err := s.g.Close(); err != nil {
		w.t.Error(err)
	}
	if err := s.log.Close(); err != nil {
		w.t.Error(err)
	}
}

// begin starts a server, and has some clients come back.
func (w *world) begin(dir string) {
	w.serve(dir)
	for i, c := range w.all {
		if w.server.dead.Load() {
			return
		}
		if w.random.IntN(4) > 0 {
			w.note("client %d comes back", i)
			w.back(c)
		}
	}
}

func (w *world) restart() {
	if w.server.dead.Load() {
		w.server.kill() // which may be under way
	}
	w.note("another server takes its place")
	w.stop()
	w.begin(w.server.after)
}

// settle has everything come to its end.
func (w *world) settle() {
	w.note("everything comes to its end")
	for range 1000 {
		w.server.left.Store(0)
		synctest.Wait()
		if w.server.dead.Load() {
			w.restart()
			continue
		}
		waits := false
		for _, c := range w.all {
			if c.conn == nil {
				w.back(c)
			}
			if c.waits() {
				waits = true
			}
			for c.answer(true) {
			}
		}
		t := w.running()
		if t == nil && !waits {
			return
		}
		if t != nil && len(t.acts) == 0 {
			t.acts <- func(*acp.Turn) error { return errFinish }
		}
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
	}
	for _, p := range w.sent {
		if !p.ended {
			w.t.Errorf("%s has no end", p.text)
		}
	}
}

// A simView is what a client knows of the session.
type simView struct {
	version int
	mu      sync.Mutex
	at      string // its position
	said    *transcript.Conversation
}

func newSimView(version int) *simView {
	return &simView{version: version, said: transcript.New(transcript.Config{})}
}

func (v *simView) position() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at
}

func (v *simView) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at, v.said = "", transcript.New(transcript.Config{})
}

func (v *simView) update(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if u.Synthetic {
		return
	}
	var said struct {
		Own json.RawMessage `json:"github.com/goacp/acp"`
	}
	if u.V1 != nil {
		_ = json.Unmarshal(u.V1.Meta, &said)
	} else {
		_ = json.Unmarshal(u.V2.Meta, &said)
	}
	if len(said.Own) > 0 {
		v.at = string(said.Own)
	}
	if u.V1 != nil {
		v.said.ApplyV1(u.V1.Update)
		return
	}
	v.said.Apply(u.V2.Update)
	if idle, ok := u.V2.Update.(*acp.IdleStateUpdate); ok && idle.StopReason != "" {
		v.said.TurnEnded(&transcript.TurnEnd{StopReason: idle.StopReason})
	}
}

var simName = regexp.MustCompile(`[pas][0-9]+ `)

// lines returns what is known, a line for each thing. What version 1 does not show is left out if less is set. So is that a
// turn begins once more for a client that has sent its prompt again, with a message that is not among the prompts of the log,
// and that it ends once more.
func (v *simView) lines(less bool, prompts map[string]string) (all []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	add := func(kind, text string) {
		if n := len(all); n > 0 && strings.HasPrefix(all[n-1], kind+" ") && (kind == "agent" || kind == "thought") {
			all[n-1] += text
		} else {
			all = append(all, kind+" "+text)
		}
	}
	began := map[string]bool{} // what the log has prompts of
	for _, text := range prompts {
		began[text] = true
	}
	ended := map[string]bool{} // turns by their prompts
	turn, other := "", ""      // the one that the client is in, and that which goes on meanwhile
	for e := range v.said.Snapshot().Entries() {
		switch e := e.(type) {
		case *transcript.Message:
			text := strings.Join(simName.FindAllString(e.Text(), -1), "")
			switch {
			case e.Role == transcript.RoleUser && prompts[string(e.ID)] != "":
				if turn = text; !less {
					add("user", text)
				}
			case e.Role == transcript.RoleUser && strings.HasPrefix(text, "s"):
				if !less {
					add("user", text)
				}
			case e.Role == transcript.RoleUser && text != "":
				turn, other = text, turn
			case text == "":
			case e.Role == transcript.RoleAgent:
				add("agent", text)
			default:
				add("thought", text)
			}
		case *transcript.ToolCall:
			status := e.Status
			if less && status == acpv2.ToolCallStatusCancelled {
				status = acpv2.ToolCallStatusFailed
			}
			add("call", e.Title+string(status))
		case *transcript.TurnEnd:
			if ended[turn] || !began[turn] {
				turn = other
				continue
			}
			if ended[turn] = true; !less {
				add("end", string(e.StopReason))
			}
		}
	}
	return all
}

// compare compares what everybody knows.
func (w *world) compare() {
	if w.t.Failed() {
		return
	}
	late := [3]*simClient{1: w.join(1), 2: w.join(2)}
	for _, c := range late[1:] {
		w.enter(c, true)
	}
	synctest.Wait()
	prompts := w.compareLog()
	for i, c := range w.all {
		got := c.view.lines(c.version == 1, prompts)
		want := w.forgives(late[2].view.lines(c.version == 1, prompts), got)
		if c.again { // the end of a turn that has begun once more may come in the next one
			isEnd := func(line string) bool { return strings.HasPrefix(line, "end ") }
			want, got = slices.DeleteFunc(want, isEnd), slices.DeleteFunc(got, isEnd)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.t.Errorf("client %d of version %d knows something else than a client that comes now:\n%s", i, c.version, diff)
		}
	}
	w.compareTurns(late[2].view.lines(false, prompts))
	w.steer.Wait()
}

// forgives returns what a client has to know, but for what it is told of a prompt that it cancels as the turn begins or ends:
// then that it has never run (S42), or was cancelled (S40), whatever has become of it by then.
func (w *world) forgives(want, got []string) []string {
	if !w.cancelled {
		return want
	}
	want = slices.Clone(want)
	for i := 0; i < len(want); i++ {
		same := i < len(got) && got[i] == want[i]
		switch {
		case same:
		case i < len(got) && got[i] == "end cancelled" && strings.HasPrefix(want[i], "end "):
			want[i] = got[i]
		case i+1 < len(want) && strings.HasPrefix(want[i], "user p") && want[i+1] == "end cancelled" && !slices.Contains(got, want[i]):
			want = slices.Delete(want, i, i+2)
			i--
		}
	}
	return want
}

// calls notes that a tool is called, and status what has become of that.
func (t *simTurn) calls(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, "call "+name)
	return len(t.said) - 1
}

func (t *simTurn) status(i int, name string, s acpv2.ToolCallStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said[i] = "call " + name + string(s)
}

// compareTurns compares what is known with what the agent has said.
func (w *world) compareTurns(all []string) {
	ran := map[string][]string{} // what was said, by prompts
	prompt := ""
	for _, line := range all {
		kind, text, _ := strings.Cut(line, " ")
		switch {
		case kind == "user" && strings.HasPrefix(text, "s"):
			ran[prompt] = append(ran[prompt], line)
		case kind == "user":
			if prompt = text; ran[prompt] != nil {
				w.t.Errorf("%sis there twice", prompt)
			}
			ran[prompt] = []string{}
		case kind == "end":
			ran[prompt] = append(ran[prompt], line)
		case kind == "call":
			if !strings.HasSuffix(line, string(acpv2.ToolCallStatusCompleted)) { // the agent has left it open
				line = "call " + simName.FindString(line)
			}
			ran[prompt] = append(ran[prompt], line)
		default:
			for _, name := range simName.FindAllString(text, -1) {
				ran[prompt] = append(ran[prompt], kind+" "+name)
			}
		}
	}
	had := map[string]bool{}
	for _, t := range w.turns {
		if had[t.prompt] {
			w.t.Errorf("%shas run twice", t.prompt)
		}
		had[t.prompt] = true
		said, known := ran[t.prompt]
		if !known {
			w.t.Errorf("%shas run, and is not there", t.prompt)
			continue
		}
		if n := len(said); n == 0 || !strings.HasPrefix(said[n-1], "end ") || slices.ContainsFunc(said[:n-1], func(l string) bool { return strings.HasPrefix(l, "end ") }) {
			w.t.Errorf("%sdoes not have one end: %q", t.prompt, said)
			continue
		}
		end := said[len(said)-1]
		said = said[:len(said)-1]
		want := t.said
		// What it has said last was perhaps on its way.
		killed := t.killed || (t.agent.over.Load() || !w.held && len(w.dead) > 0) && end != "end end_turn"
		if end != "end "+string(t.stop) && !killed && !(w.cancelled && end == "end cancelled") { // which counts, whatever the agent says then
			w.t.Errorf("the turn of %shas ended with %s, and not with %s", t.prompt, end, t.stop)
		}
		if killed {
			want, said = withoutStatus(want[:min(len(said), len(want))]), withoutStatus(said)
		}
		if diff := cmp.Diff(append([]string{}, want...), append([]string{}, said...)); diff != "" {
			w.t.Errorf("in the turn of %sthe agent has said something else than is known (killed: %v):\n%s", t.prompt, t.killed, diff)
		}
	}
}

// withoutStatus returns lines without what has become of tool calls.
func withoutStatus(lines []string) []string {
	lines = slices.Clone(lines)
	for i, line := range lines {
		if name := simName.FindString(line); strings.HasPrefix(line, "call ") {
			lines[i] = "call " + name
		}
	}
	return lines
}

// compareLog looks whether the log has one end for each turn, and one decision for each question, which is what the agent
// has heard. It returns what was prompted, by the ids of the prompts.
func (w *world) compareLog() (prompts map[string]string) {
	prompts = map[string]string{}
	titles, decided, operations := map[string]string{}, map[string]string{}, map[string]int{}
	if err := w.server.log.Read(w.t.Context(), string(w.id), 0, func(r engine.Record) error {
		switch r.Kind {
		case kindPrompt:
			p, err := records.DecodePrompt(r.Data)
			prompts[p.ID] = p.Operation + " "
			if operations[p.Operation]++; operations[p.Operation] > 1 {
				err = errors.Join(err, fmt.Errorf("%s is in the log twice", p.Operation))
			}
			return err
		case kindAsk:
			var a records.Asked
			err := json.Unmarshal(r.Data, &a)
			titles[a.ID] = simName.FindString(string(r.Data))
			return err
		case kindAnswer:
			var d records.Decided
			err := json.Unmarshal(r.Data, &d)
			if _, was := decided[d.ID]; was || titles[d.ID] == "" {
				err = errors.Join(err, fmt.Errorf("question %s is decided twice, or was not asked", d.ID))
			}
			decided[d.ID] = string(d.Outcome)
			return err
		}
		return nil
	}); err != nil {
		w.t.Error(err)
	}
	outcomes := map[string]string{}
	for id, title := range titles {
		if decided[id] == "" {
			w.t.Errorf("%shas no answer", title)
		}
		outcomes[title] = decided[id]
	}
	for _, t := range w.turns {
		for _, line := range t.asks {
			name, heard, _ := strings.Cut(line, " ")
			if was := outcomes[name+" "]; was != heard && heard != "" { // or the turn has ended meanwhile
				w.t.Errorf("the agent has heard %q to %s, and the log says %q", heard, name, was)
			}
		}
	}
	for _, p := range w.sent {
		if p.ran && operations[strings.TrimSpace(p.text)] != 1 {
			w.t.Errorf("%swas run, and is not in the log", p.text)
		}
	}
	return prompts
}
