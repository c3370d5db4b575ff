//go:build unix

package torture

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/postgres"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	said "github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
)

// A line is what a record is to a client.
type line struct {
	seq  uint64
	text string
	ends bool // a turn, which clients of version 1 are sent unless it was their own
}

// A history is what the log says.
type history struct {
	lines   []line
	runs    map[string]int    // of prompts, by operation
	ends    map[string]string // how they have ended
	asks    map[string]string // the id of each question, by its title
	answers map[string]int    // records of answers, by the id

	outcomes map[string]string // what they say, by the id
	decided  map[string]string // the options that were chosen, by the title
}

func newHistory() *history {
	return &history{runs: make(map[string]int), ends: make(map[string]string), asks: make(map[string]string), answers: make(map[string]int), outcomes: make(map[string]string), decided: make(map[string]string)}
}

// history reads the log, after verifying it. The server has ended.
func (r *rig) history() *history {
	r.t.Helper()
	ctx := r.t.Context()
	open := func() (*engine.Engine, error) {
		return sqlite.Open(ctx, r.logs(), "test", engine.Options{Says: gateway.Says})
	}
	if r.db != "" {
		heads := filepath.Join(r.t.TempDir(), "heads.db")
		open = func() (*engine.Engine, error) { return postgres.Open(ctx, r.db, heads, engine.Options{}) }
	}
	log, err := open()
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	if err := log.Verify(ctx, r.session); err != nil {
		r.t.Fatal(err)
	}
	h := newHistory()
	ops := make(map[string]string)
	err = log.Read(ctx, r.session, 0, func(rec engine.Record) error { return h.read(rec, ops) })
	if err != nil {
		r.t.Fatal(err)
	}
	for title, id := range h.asks {
		if outcome, ok := h.outcomes[id]; !ok {
			r.t.Errorf("the question %s is open still", title)
		} else if outcome != "cancelled" {
			h.decided[title] = outcome
		}
	}
	return h
}

// read takes a record. ops has the operations of prompts.
func (h *history) read(rec engine.Record, ops map[string]string) error {
	var data struct {
		ID      string          `json:"id"`
		Op      string          `json:"op"`
		Prompt  string          `json:"prompt"`
		Stop    string          `json:"stop"`
		Error   string          `json:"error"`
		Title   string          `json:"title"`
		Outcome string          `json:"outcome"`
		Content json.RawMessage `json:"content"`
		Update  json.RawMessage `json:"update"`
		said.End
	}
	if err := json.Unmarshal(rec.Data, &data); err != nil {
		return err
	}
	say := func(text string) { h.lines = append(h.lines, line{seq: rec.Seq, text: text}) }
	switch rec.Kind {
	case "prompt":
		var p acpv2.PromptRequest
		if err := json.Unmarshal(data.Content, &p); err != nil {
			return err
		}
		say("user: " + p.Prompt[0].(*acp.TextContent).Text)
		h.runs[data.Op]++
		ops[data.ID] = data.Op
	case "end":
		h.ends[ops[data.Prompt]] = data.Stop + data.Error
		u := &acp.IdleStateUpdate{StopReason: acp.StopReason(data.Stop), Meta: ownmeta.Of(data.End)}
		if data.Error != "" {
			u.StopReason, u.Error = acp.StopError, &acpv2.Error{Message: data.Error}
		}
		if end := said.EndOf(u); end != nil && !data.Noted && said.EndingLine(end) != "" {
			h.lines = append(h.lines, line{seq: rec.Seq, text: notice(said.EndingLine(end)), ends: true})
		}
	case "update":
		u, err := acpv2.UnmarshalSessionUpdate(data.Update)
		if err != nil {
			return err
		}
		if c, ok := u.(*acp.AgentMessageChunk); ok {
			say("agent: " + c.Content.(*acp.TextContent).Text)
		}
	case "notice":
		say(notice(data.Title))
	case "asked":
		if h.asks[data.Title] != "" {
			return fmt.Errorf("the question %s was put twice", data.Title)
		}
		h.asks[data.Title] = data.ID
	case "decided":
		h.answers[data.ID]++
		h.outcomes[data.ID] = data.Outcome
	}
	return nil
}

// after returns what a client sees that follows a record. Its own prompts are left out for one that sends
// them.
func (h *history) after(seq uint64, prompts bool) (lines []line) {
	for _, l := range h.lines {
		if l.seq > seq && !(prompts && strings.HasPrefix(l.text, "user: ")) {
			lines = append(lines, l)
		}
	}
	return lines
}

// seen compares what a client has seen, on each of its connections, with the log. It returns how much that was.
func (r *rig) seen(h *history, name string) (n int) {
	r.t.Helper()
	prompts := slices.ContainsFunc(r.events[name], func(e event) bool { return e.Kind == evBegin })
	var want []line
	at, connection := 0, 0
	skip := func(text string) { // ends of turns that it was not sent
		for at < len(want) && want[at].ends && want[at].text != text {
			at++
		}
	}
	open := false
	for _, e := range r.events[name] {
		switch e.Kind {
		case evOpen:
			want, at, open = h.after(e.After, prompts), 0, true
			connection++
		case evSaid:
			if prompts && strings.HasPrefix(e.Text, "user: ") {
				continue
			}
			n++
			skip(e.Text)
			if r.loses && (at == len(want) || want[at].text != e.Text) {
				if e.Text == notice("This session is shown from its beginning.") {
					want, at = h.after(0, prompts), 0
					continue
				}
				if strings.HasPrefix(e.Text, "agent: ") && (at == len(want) || !strings.HasPrefix(want[at].text, "agent: ")) {
					continue // a piece that was lost with all that followed it
				}
			}
			switch {
			case !open:
				r.t.Fatalf("%s has seen %q without a connection", name, e.Text)
			case at == len(want):
				r.t.Fatalf("%s, connection %d: %q was seen, and is not in the log", name, connection, e.Text)
			case want[at].text != e.Text:
				r.t.Fatalf("%s, connection %d, %d: %q was seen, the log has %q; around it: %v", name, connection, at, e.Text, want[at].text, want[max(0, at-3):min(len(want), at+4)])
			}
			at++
		}
	}
	skip("")
	if slices.Contains(r.names, name) && at != len(want) {
		r.t.Errorf("%s has seen %d of %d in the end", name, at, len(want))
	}
	return n
}

// check compares everything, once the server has ended.
func (r *rig) check(s *summary) {
	r.t.Helper()
	h := r.history()
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Records += len(h.lines)
	for name := range r.events {
		s.Seen += r.seen(h, name)
	}
	lines, err := entries(r.ledger)
	if err != nil {
		r.t.Fatal(err)
	}
	ran, told, responses := make(map[string]int), make(map[string]int), make(map[string]int)
	for _, l := range lines {
		switch l[0] {
		case "failed":
			if text := strings.Join(l, " "); !strings.Contains(text, "connection closed") { // its holder was killed
				r.t.Errorf("the agent: %s", text)
			}
		case "run":
			ran[l[1]]++
		case "response":
			if responses[l[1]+" "+l[2]]++; responses[l[1]+" "+l[2]] > 1 {
				r.t.Errorf("the agent %s was answered %s twice", l[1], l[2])
				s.Doubled++
			}
		case "answer":
			option := ""
			if len(l) > 2 {
				option = l[2]
			}
			if told[l[1]]++; told[l[1]] > 1 {
				r.t.Errorf("the agent was told twice what was decided on %s", l[1])
				s.Doubled++
			}
			if decided, ok := h.decided[l[1]]; !ok && option != "" || decided != option { // "" is that nobody decides
				r.t.Errorf("the agent was told %q on %s, decided was %q", option, l[1], decided)
			}
		}
	}
	for op, n := range ran {
		if n > 1 || h.runs[op] != 1 {
			r.t.Errorf("%s ran %d times, and is %d times in the log", op, n, h.runs[op])
			s.Doubled++
		}
	}
	for title, id := range h.asks {
		if n := h.answers[id]; n > 1 {
			r.t.Errorf("%s has %d answers in the log", title, n)
			s.Doubled++
		}
	}
	s.Prompts += len(ran)
	s.Asked += len(h.asks)
	s.Told += len(told)
	for _, e := range slices.Concat(slices.Collect(maps.Values(r.events))...) {
		if e.Kind != evEnd {
			continue
		}
		switch {
		case e.Result == string(acp.StopEndTurn):
			s.Ended++
			if ran[e.Text] != 1 {
				r.t.Errorf("%s has ended, and ran %d times", e.Text, ran[e.Text])
			}
		case strings.Contains(e.Result, "not known"):
			s.Unknown++
		case e.Result == string(acp.StopCancelled), strings.HasPrefix(e.Result, "error: "):
			s.Cut++
			text, _, _ := strings.Cut(e.Result, " /") // without the path of a socket
			if text, _, _ = strings.Cut(text, "@"); !slices.Contains(s.Errors, text) {
				s.Errors = append(s.Errors, text)
			}
		default:
			r.t.Errorf("%s: %q", e.Text, e.Result)
		}
	}
}
