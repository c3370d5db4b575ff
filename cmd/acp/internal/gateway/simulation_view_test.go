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
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/transcript"
)

// A simView is what a client knows of the session.
type simView struct {
	version int
	mu      sync.Mutex
	at      string // its position
	said    *transcript.Conversation
	stops   map[string]acp.StopReason // by turns that have ended
}

func newSimView(version int) *simView {
	v := &simView{version: version}
	v.clear()
	return v
}

func (v *simView) position() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at
}

func (v *simView) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at, v.said, v.stops = "", transcript.New(transcript.Config{}), map[string]acp.StopReason{}
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
		var end history.End
		ownmeta.Read(idle.Meta, &end)
		if v.stops[end.Turn] == "" { // otherwise the client has sent its prompt again, and is told once more
			v.said.TurnEnded(&transcript.TurnEnd{StopReason: idle.StopReason, Who: end.Turn})
		}
		v.stops[end.Turn] = idle.StopReason
	}
}

var simName = regexp.MustCompile(`[pas][0-9]+ `)

// lines returns what is known, a line for each thing. What version 1 does not show is left out if less is set.
func (v *simView) lines(less bool) (all []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	add := func(kind, text string) {
		if n := len(all); n > 0 && strings.HasPrefix(all[n-1], kind+" ") && (kind == "agent" || kind == "thought") {
			all[n-1] += text
		} else {
			all = append(all, kind+" "+text)
		}
	}
	for e := range v.said.Snapshot().Entries() {
		switch e := e.(type) {
		case *transcript.Message:
			text := strings.Join(simName.FindAllString(e.Text(), -1), "")
			switch {
			case e.Role == transcript.RoleUser:
				if !less && text != "" {
					add("user", text)
				}
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
			if !less {
				add("end", string(v.stops[e.Who]))
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
	w.compareLog()
	for i, c := range w.all {
		got, want := c.view.lines(c.version == 1), late[2].view.lines(c.version == 1)
		if diff := cmp.Diff(want, got); diff != "" {
			w.t.Errorf("client %d of version %d knows something else than a client that comes now:\n%s", i, c.version, diff)
		}
	}
	w.compareTurns(late[2].view.lines(false))
	w.steer.Wait()
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
// has heard.
func (w *world) compareLog() {
	titles, decided, operations, ends := map[string]string{}, map[string]string{}, map[string]string{}, map[string]acp.StopReason{}
	if err := w.server.log.Read(w.t.Context(), string(w.id), 0, func(r engine.Record) error {
		switch r.Kind {
		case kindPrompt:
			p, err := records.DecodePrompt(r.Data)
			if operations[p.Operation] != "" {
				err = errors.Join(err, fmt.Errorf("%s is in the log twice", p.Operation))
			}
			operations[p.Operation] = p.ID
			return err
		case kindEnd:
			end, err := records.DecodeEnd(r.Data)
			ends[end.Prompt] = end.Update().StopReason
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
		stop, ran := ends[operations[strings.TrimSpace(p.text)]]
		if !ran {
			stop = acp.StopCancelled // before it began
		}
		if p.stop != "" && p.stop != stop {
			w.t.Errorf("%shas ended with %s, as its client was answered, and with %s, as the log says (has it run: %t)", p.text, p.stop, stop, ran)
		}
	}
}
