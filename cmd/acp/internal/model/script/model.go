package script

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// A Model answers as a script says. Its fields are not changed once it is used; its
// methods may be called from any goroutine.
type Model struct {
	Is model.Info // what Info returns; where Provider is empty, what a script is by default

	answers []*answer
	price   model.Price
	window  int // 0 is defaultWindow

	mu     sync.Mutex
	failed map[string]int // answers that failed, by conversation and number of messages
	size   map[string]int // tokens of the last request, by conversation
}

// defaultWindow is how large the window of a script is, in tokens.
const defaultWindow = 200_000

// maxConversations bounds the conversations whose last requests are remembered.
const maxConversations = 4096

// Info describes the model.
func (m *Model) Info() model.Info {
	if m.Is.Provider != "" {
		return m.Is
	}
	return model.Info{
		Provider: "script", ID: "script", Name: "Script", Context: cmp.Or(m.window, defaultWindow), Verified: true, Output: 32_000,
		Images: true, Parallel: true, Price: m.price,
	}
}

// Generate answers a conversation.
func (m *Model) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		a, err := m.choose(r)
		if err != nil {
			yield(nil, err)
			return
		}
		g := &generation{m: m, r: r, ctx: ctx, yield: yield}
		g.run(a)
	}
}

// choose returns the answer to a request.
func (m *Model) choose(r *model.Request) (*answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := map[*answer]bool{}
	said, answered := "", 0
	for _, msg := range r.Messages {
		if msg.Role == model.User {
			said = textOf(msg)
			continue
		}
		answered++
		m.use(used, said)
	}
	if len(r.Tail) > 0 {
		said = textOf(&model.Message{Parts: r.Tail})
	}
	key := fmt.Sprintf("%s/%d", r.CacheKey, answered)
	a := m.next(used, said)
	for range m.failed[key] {
		if a == nil {
			break
		}
		used[a] = true
		a = m.next(used, said)
	}
	if a == nil {
		return nil, &model.Error{Kind: model.KindRequest, Provider: m.Info().Provider, Model: m.Info().ID, Message: fmt.Sprintf("the script has no answer to this: %q", head(said, 80))}
	}
	if !a.always && fails(a) {
		if m.failed == nil || len(m.failed) >= maxConversations {
			m.failed = map[string]int{}
		}
		m.failed[key]++
	}
	return a, nil
}

// use marks the answer that made a message as used, and those before it that failed
// without a word: they made none.
func (m *Model) use(used map[*answer]bool, said string) {
	for i, a := range m.answers {
		if silent(a) || used[a] && !a.always || !fits(a, said) {
			continue
		}
		used[a] = true
		for _, before := range m.answers[:i] {
			used[before] = used[before] || silent(before)
		}
		return
	}
}

// next returns the first answer that fits and is not used up.
func (m *Model) next(used map[*answer]bool, said string) *answer {
	for _, a := range m.answers {
		if (!used[a] || a.always) && fits(a, said) {
			return a
		}
	}
	return nil
}

func fits(a *answer, said string) bool {
	for _, w := range a.when {
		if !strings.Contains(said, w) {
			return false
		}
	}
	return true
}

// silent reports whether an answer fails before it has said anything.
func silent(a *answer) bool {
	for _, s := range a.steps {
		switch s.word {
		case "fail":
			return true
		case "say":
			return false
		}
	}
	return false
}

func fails(a *answer) bool {
	for _, s := range a.steps {
		if s.word == "fail" {
			return true
		}
	}
	return false
}

// textOf returns what a message says, results of tools included.
func textOf(m *model.Message) string {
	var b strings.Builder
	var add func(parts []model.Part)
	add = func(parts []model.Part) {
		for _, p := range parts {
			switch p := p.(type) {
			case *model.Text:
				b.WriteString(p.Text)
				b.WriteByte('\n')
			case *model.ToolResult:
				add(p.Parts)
			}
		}
	}
	add(m.Parts)
	return b.String()
}

// head returns the beginning of a text.
func head(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// A generation is an answer that is given.
type generation struct {
	m     *Model
	r     *model.Request
	ctx   context.Context
	yield func(model.Event, error) bool
	pace  time.Duration
	uses  int
	msg   model.Message
}

// run gives the answer. It stops when whoever ranges over it leaves, or ctx is done.
func (g *generation) run(a *answer) {
	g.msg.Role = model.Assistant
	if !g.yield(&model.Began{ID: fmt.Sprintf("line-%d", a.line), Model: g.m.Info().ID}, nil) {
		return
	}
	for _, s := range a.steps {
		if !g.step(s) {
			return
		}
	}
	done := &model.Done{Reason: a.stop, Message: &g.msg, Usage: g.usage(a)}
	if done.Reason == "" {
		done.Reason = model.EndTurn
		if g.uses > 0 {
			done.Reason = model.WantsTool
		}
	}
	g.yield(done, nil)
}

// step does a line of an answer, and reports whether the answer continues.
func (g *generation) step(s step) bool {
	switch s.word {
	case "pace":
		g.pace = s.wait
	case "wait":
		return g.sleep(s.wait)
	case "fail":
		i := g.m.Info()
		g.yield(nil, &model.Error{Kind: model.Kind(s.name), Provider: i.Provider, Model: i.ID, Message: s.text})
		return false
	case "think":
		g.msg.Parts = append(g.msg.Parts, &model.Thought{Text: s.text})
		return g.words(s.text, func(w string) model.Event { return &model.ThoughtDelta{Text: w} })
	case "say":
		g.msg.Parts = append(g.msg.Parts, &model.Text{Text: s.text})
		return g.words(s.text, func(w string) model.Event { return &model.TextDelta{Text: w} })
	case "use":
		return g.use(s)
	}
	return true
}

func (g *generation) use(s step) bool {
	g.uses++
	u := &model.ToolUse{ID: fmt.Sprintf("call_%d_%d", len(g.r.Messages), g.uses), Name: s.name, Input: s.json}
	if !json.Valid(s.json) {
		text, err := json.Marshal(string(s.json))
		if err != nil {
			g.yield(nil, err)
			return false
		}
		u.Input, u.Malformed = text, true
	}
	g.msg.Parts = append(g.msg.Parts, u)
	if !g.yield(&model.ToolUseBegan{ID: u.ID, Name: u.Name}, nil) {
		return false
	}
	if !g.words(string(s.json), func(w string) model.Event { return &model.ToolInputDelta{ID: u.ID, JSON: w} }) {
		return false
	}
	return g.yield(u, nil)
}

// words passes a text on, word by word if there is a pace.
func (g *generation) words(text string, event func(string) model.Event) bool {
	for text != "" {
		n := len(text)
		if g.pace > 0 {
			if i := strings.IndexAny(text[1:], " \n"); i >= 0 {
				n = i + 1
			}
		}
		if !g.yield(event(text[:n]), nil) {
			return false
		}
		text = text[n:]
		if !g.sleep(g.pace) {
			return false
		}
	}
	return g.sleep(0)
}

// sleep waits, and reports whether ctx is still open.
func (g *generation) sleep(d time.Duration) bool {
	if g.ctx.Err() == nil && d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-g.ctx.Done():
		}
	}
	if g.ctx.Err() != nil {
		g.yield(nil, context.Cause(g.ctx))
		return false
	}
	return true
}

// usage returns what the script says that an answer has used, or an estimate.
func (g *generation) usage(a *answer) model.Usage {
	total := tokens(g.r.Prefix.System)
	for _, t := range g.r.Prefix.Tools {
		total += tokens(t.Name) + tokens(t.Description) + tokens(string(t.Schema))
	}
	for _, m := range g.r.Messages {
		total += size(m)
	}
	total += size(&model.Message{Parts: g.r.Tail})
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.size == nil || len(m.size) >= maxConversations {
		m.size = map[string]int{}
	}
	cached := min(m.size[g.r.CacheKey], total)
	m.size[g.r.CacheKey] = total
	if a.usage != nil {
		return *a.usage
	}
	u := model.Usage{CacheRead: cached, CacheWrite: total - cached, Output: size(&g.msg), Known: true}
	for _, p := range g.msg.Parts {
		if t, ok := p.(*model.Thought); ok {
			u.Reasoning += tokens(t.Text)
		}
	}
	return u
}

func tokens(s string) int { return (len(s) + 3) / 4 }

// size estimates the tokens of a message.
func size(m *model.Message) int {
	n := 0
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *model.Text:
			n += tokens(p.Text)
		case *model.Thought:
			n += tokens(p.Text)
		case *model.ToolUse:
			n += tokens(p.Name) + tokens(string(p.Input))
		case *model.Image:
			n += 1000
		case *model.ToolResult:
			n += size(&model.Message{Parts: p.Parts})
		}
	}
	return n
}
