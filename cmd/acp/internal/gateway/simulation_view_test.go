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

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/transcript"
)

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
