package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/agent/loop"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
	"github.com/goacp/acp/cmd/acp/internal/agent/window"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
)

// instructions are those of the agent to the model. They never change within a
// conversation.
const instructions = `You are a coding agent. You work in the user's directory with the tools that you have. Continue until what the user asks for is done and checked; do not stop after saying what comes next. Nothing but your text reaches the user: write it in their language.

- Look before you act: search and read what matters. Several calls that only read can be made at once.
- Change files with edit or patch, in texts exactly as they are in the file, with their indentation, and enough of them to be unique. Use write for new files.
- A bug: reproduce it first, mend its cause, run the narrow test, then the wider ones. Do not bend tests.
- After a change, check it as the project does: build, test, lint. Say what you ran and what came of it. Never say that something works that you have not seen working.
- Do what was asked, and no more. Follow the style of the code around you. Add comments only where they say why.
- Nobody can type into a command, and what it leaves running is ended: what does not end goes to the background.
- Uncommitted changes that you have not made are the user's: never revert, stash, or clean them. Do not commit, push, or delete what you have not made, unless the user asks for it.
- If a call is refused, do not try to get around that: do something else, or ask.
- For work of several steps, keep a plan, and mark steps as you do them.
- Be brief. Name places as path:line. When you are done, say what has changed in a few sentences.`

// A modelTurn is a prompt that a model answers. It is the host of its loop.
type modelTurn struct {
	*scribe
	b      *builtin
	turn   *acp.Turn
	model  model.Model
	effort string
	limit  float64 // of what the session may cost; 0 is none
	drafts tool.Drafts
	guided map[string]bool // files whose guidance results of this turn have; mu of the session
}

// newTurn returns a turn with the session's model.
func (b *builtin) newTurn(t *acp.Turn, w *scribe) *modelTurn {
	m := &modelTurn{scribe: w, b: b, turn: t}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	m.model, m.effort = w.s.choice.model, w.s.choice.effort
	if b.limits.Cost > 0 {
		m.limit = w.s.talk.cost + b.limits.Cost
	}
	if b.most > 0 && (m.limit == 0 || b.most < m.limit) {
		m.limit = b.most
	}
	return m
}

// converse has the model answer a prompt.
func (b *builtin) converse(ctx context.Context, t *acp.Turn, w *scribe, said wish) (acp.StopReason, error) {
	s := w.s
	// Without a client a model would work on, and cost, for nobody.
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	w.hangUp, w.model = hangUp, true
	if t, ok := acp.TraceFrom(ctx); ok {
		ctx = model.WithTrace(ctx, t.Parent, t.State)
	}
	m := b.newTurn(t, w)
	if err := m.priced(); err != nil {
		return "", err
	}
	s.mu.Lock()
	first := len(s.talk.messages) == 0
	s.mu.Unlock()
	prefix := m.prefix(ctx)
	m.recheck()
	ask := &model.Message{Role: model.User, Parts: append(m.News(), m.parts(s.expand(typed(t), said))...)}
	if about := s.untold(); about != "" {
		ask.Parts = append([]model.Part{&model.Text{Text: about}}, ask.Parts...)
	}
	if first {
		text, left := s.surroundings(ctx)
		ask.Parts = append([]model.Part{&model.Text{Text: text}}, ask.Parts...)
		for _, l := range left {
			m.heldBack(l)
		}
	}
	if ended := s.jobs.Ended(); ended != "" {
		ask.Parts = append([]model.Part{&model.Text{Text: "(" + strings.TrimSpace(ended) + ")"}}, ask.Parts...)
	}
	if err := m.Keep(ask); err != nil {
		return "", err
	}
	s.mu.Lock()
	messages, limits := s.talk.messages, b.limits
	if m.limit > 0 {
		if limits.Cost = m.limit - s.talk.cost; limits.Cost <= 0 {
			limits.Cost = loop.Nothing
		}
	}
	s.mu.Unlock()
	end, err := loop.Run(ctx, &loop.Turn{
		Model: m.model, Prefix: prefix, Messages: messages, Effort: m.effort,
		CacheKey: string(s.acp.ID()), Limits: limits, Host: m,
	})
	m.report(end)
	if err != nil {
		return "", failure(err)
	}
	return m.stop(end), nil
}

// priced returns why the turn must not ask the model, or nil: a limit of the cost could not be kept without a price.
func (m *modelTurn) priced() error { return m.b.priced(m.model.Info()) }

func (b *builtin) priced(info model.Info) error {
	if b.limits.Cost <= 0 || info.Price.Currency != "" {
		return nil
	}
	return &acp.Failure{
		Message: fmt.Sprintf("the price of %s is not known, so the limit model.max_cost could not be kept: choose another model, or remove the limit", nameOf(info)),
		Reason:  "model_price",
	}
}

// isSpent reports whether the session has cost as much as it may, with what answers may cost that were broken off.
func (m *modelTurn) isSpent(broken []*model.Spent) bool {
	if m.limit <= 0 {
		return false
	}
	m.s.mu.Lock()
	cost := m.s.talk.cost
	m.s.mu.Unlock()
	for _, e := range broken {
		more, _ := m.model.Info().Price.Of(m.Bill(e, model.Usage{}))
		cost += more
	}
	return cost >= m.limit
}

// stop returns why the turn ended, and tells the user where that needs words.
func (m *modelTurn) stop(end *loop.End) acp.StopReason {
	switch end.Stop {
	case loop.Cancelled:
		return acp.StopCancelled
	case loop.Refused:
		return acp.StopRefusal
	case loop.MaxTokens:
		return acp.StopMaxTokens
	case loop.Requests:
		m.tell("I stopped after %d requests to the model, which is the limit for a prompt. Say “continue” to give me more.", end.Requests)
		return acp.StopMaxTurnRequests
	case loop.Cost:
		what, cost := "prompt", end.Cost
		if m.b.most > 0 && m.limit == m.b.most {
			m.s.mu.Lock()
			what, cost = "session", m.s.talk.cost
			m.s.mu.Unlock()
		}
		m.tell("I stopped because this %s has cost %.2f %s, which is the limit.", what, cost, m.model.Info().Price.Currency)
		return acp.StopMaxTurnRequests
	case loop.Empty:
		m.out.EndMessage()
		text := map[string]string{
			loop.SaidNothing: "The model has said nothing, and nothing again when it was asked to continue.",
			loop.WroteCall:   "The model has written a call of a tool as text, also when it was asked to make the call. Nothing was run.",
			loop.Announced:   "The model has announced a step and has not taken it, also when it was asked to continue.",
		}[end.Detail]
		_ = m.out.Show(&acp.TextContent{Text: text, Meta: ownmeta.Of(ownmeta.Empty{Empty: true})}) // kept by the turn
	case loop.Repeats:
		m.tell("I stopped because the same call of the tool %s has failed again and again.", prose.Inline(end.Detail))
	}
	return acp.StopEndTurn
}

// tell says something that is not the model's.
func (m *modelTurn) tell(format string, args ...any) {
	m.out.EndMessage()
	m.say(fmt.Sprintf(format, args...))
}

// report tells the client what the turn has used.
func (m *modelTurn) report(end *loop.End) {
	if u := end.Usage; u.Known {
		m.turn.SetUsage(usageOf(u))
	}
}

// usageOf returns tokens as the protocol counts them.
func usageOf(u model.Usage) acp.Usage {
	return acp.Usage{
		InputTokens: uint64(u.Input), OutputTokens: uint64(u.Output), TotalTokens: uint64(u.Read() + u.Output),
	}
}

// failure returns the error of a turn whose model has failed.
func failure(err error) error {
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		return err
	}
	advice := e.Advice()
	if e.Kind == model.KindAuth {
		advice += " The command /key asks for another one."
	}
	return &acp.Failure{
		Message: strings.TrimRight(e.Error()+". "+advice, ". "), Reason: "model_" + string(e.Kind), RetryAfter: e.RetryAfter, Scope: "model",
	}
}

// prefix returns what each request of the session begins with. It is made once: what a
// provider has cached is worth more than a tool that an MCP server adds later. Only a model
// that was trained on another form of changes gets another one: it has cached nothing.
func (m *modelTurn) prefix(ctx context.Context) *model.Prefix {
	s := m.s
	format := m.model.Info().Edit
	s.mu.Lock()
	p := s.talk.prefixes[format]
	if p == nil && len(s.talk.prefixes) > 0 {
		p = &model.Prefix{System: s.talk.system, Tools: described(s.talk.tools, format)}
		s.talk.prefixes[format] = p
	}
	s.mu.Unlock()
	if p != nil {
		return p
	}
	system, api := instructions, m.model.Info().API
	if own := s.acp.SystemPrompt(); own != nil {
		text := strings.Join(promptTexts(own.Content), "\n\n")
		if own.Mode == acpv2.SystemPromptModeAppend {
			text = instructions + "\n\n" + text
		}
		system = text
	}
	tools := append(m.ownTools(), m.mcpTools(ctx)...)
	p = &model.Prefix{System: system, Tools: described(tools, format)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil { // or else servers may not have been asked
		s.talk.prefixes = map[model.EditFormat]*model.Prefix{format: p}
	}
	s.talk.tools, s.talk.system, s.talk.api = tools, system, api
	return p
}

// The methods of [loop.Host].

func (m *modelTurn) Say(text string)   { m.say(text) }
func (m *modelTurn) Think(text string) { m.think(text) }

func (m *modelTurn) Wait(e *model.Retrying) {
	m.out.EndMessage()
	_ = m.out.Notice(acp.NoticeSeverityWarning, "The model is asked again in "+e.After.Round(time.Second).String()+".", prose.OneLine(e.Err.Error(), 300))
}

// Keep keeps a message. If it cannot be kept the conversation continues in memory, and the
// user learns of it at the end of the turn.
func (m *modelTurn) Keep(msg *model.Message) error {
	m.out.EndMessage()
	m.s.keepRecord("message", msg)
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	old := m.s.talk.messages
	m.s.talk.messages = append(old[:len(old):len(old)], msg)
	return nil
}

func (m *modelTurn) Used(u model.Usage) error {
	info, prefix := m.model.Info(), m.prefix(m.ctx)
	m.s.mu.Lock()
	doubt, before := u.Known && info.Local && (window.Cut(prefix, m.s.talk.messages, u) || m.s.talk.meter.Shrunk(u)), m.s.talk.doubt
	cut := doubt && window.Filled(u.Read(), before, info.Context)
	if m.s.talk.doubt = 0; doubt {
		m.s.talk.doubt = u.Read()
	}
	m.s.talk.cache.see(u, nameOf(info), info.CacheMin, time.Now())
	if !doubt { // a part of the request teaches nothing about the whole
		m.s.talk.meter.Saw(prefix, m.s.talk.messages, u)
	}
	m.s.mu.Unlock()
	m.bill(u, false)
	switch {
	case cut:
		return &model.Error{
			Kind: model.KindOverflow, Provider: info.Provider, Model: info.ID,
			Message: fmt.Sprintf("the server has read only %d tokens of a longer conversation, and left out the rest without a word: its context window is too small. Start it with a larger one", u.Read()),
		}
	case doubt && before == 0:
		m.out.EndMessage()
		_ = m.out.Notice(acp.NoticeSeverityWarning, "The server may not have read the whole conversation.",
			fmt.Sprintf("It says that it has read %d tokens, which is less than was sent. Either it counts only what was not in its cache, or its context window is too small.", u.Read()))
	}
	return nil
}

// bill counts what an answer has used: in the journal, in what the session has cost, and for the client. lost says that it
// was broken off, so that it says nothing about the conversation.
func (m *modelTurn) bill(u model.Usage, lost bool) {
	info := m.model.Info()
	if u.Known {
		r := usedBy(info, u)
		r.Lost = lost
		m.s.keepRecord("usage", r)
	}
	m.s.mu.Lock()
	was := m.s.talk.window
	m.s.talk.count(u)
	cost, priced := info.Price.Of(u)
	m.s.talk.cost += cost
	cost = m.s.talk.cost
	if lost {
		m.s.talk.window = was
	}
	window := m.s.talk.window
	m.s.mu.Unlock()
	if !u.Known {
		return
	}
	var c *acp.Cost
	if priced {
		c = &acp.Cost{Amount: cost, Currency: info.Price.Currency}
	}
	_ = m.out.Usage(uint64(window), uint64(info.Context), c)
}

// Bill estimates what the provider has not said of an answer that was broken off. The request is that of an answer which
// followed, or has as many tokens as the meter says; what the one before has read is in the cache, if there is one.
func (m *modelTurn) Bill(e *model.Spent, like model.Usage) model.Usage {
	u, prefix := e.Usage, m.prefix(m.ctx)
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	meter := &m.s.talk.meter
	if !u.Known || u.Read() == 0 {
		u.Input = meter.Estimate(prefix, m.s.talk.messages)
		switch cache := &m.s.talk.cache; {
		case like.Known && like.Read() > 0:
			u.Input, u.CacheRead, u.CacheWrite, u.CacheHour = like.Input, like.CacheRead, like.CacheWrite, like.CacheHour
		case cache.works && time.Since(cache.at) < cacheLife:
			u.CacheRead = min(cache.read, u.Input)
			u.Input -= u.CacheRead
		}
	}
	u.Known = true
	u.Output = max(u.Output, window.Written(e.Written))
	return u
}

// Lost counts what Bill has returned.
func (m *modelTurn) Lost(u model.Usage) { m.bill(u, true) }

// ownTools returns the agent's own tools that the client can use.
func (m *modelTurn) ownTools() []modelTool {
	asks := m.s.acp.Conn().Capabilities().Elicitation != nil
	var all []modelTool
	for _, t := range modelTools() {
		if t.Name != tool.Ask.Name || asks {
			all = append(all, t)
		}
	}
	return all
}

// tools returns the tools of the session.
func (m *modelTurn) tools() []modelTool {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.s.talk.tools
}

// find returns a tool of the session, also one that the model is not offered: before another
// one it may have been.
func (m *modelTurn) find(name string) (modelTool, bool) {
	for _, t := range m.tools() {
		if t.Name == name || t.Text != nil && t.Text.Name == name {
			return t, true
		}
	}
	return modelTool{}, false
}

func (m *modelTurn) Reads(name string) bool {
	t, ok := m.find(name)
	return ok && t.Tool.Reads && t.Name != tool.Plan.Name
}

// Use runs a tool. What is wrong with the call is said to the model.
func (m *modelTurn) Use(ctx context.Context, u *model.ToolUse) *model.ToolResult {
	m.out.EndMessage()
	return m.use(ctx, u)
}

func (m *modelTurn) Came(res *model.ToolResult) { m.s.keepRecord("result", res) }

func (m *modelTurn) Draft(id, name, piece string) {
	if piece == "" {
		m.out.EndMessage()
	}
	m.drafts.Write(&modelEnv{scribe: m.scribe, id: id, drafts: &m.drafts}, id, name, piece)
}

func (m *modelTurn) Drop() { m.drafts.Drop() }

func (m *modelTurn) use(ctx context.Context, u *model.ToolUse) *model.ToolResult {
	t, ok := m.find(u.Name)
	if !ok {
		var names []string
		for _, t := range described(m.tools(), m.model.Info().Edit) {
			names = append(names, t.Name)
		}
		return m.misused(u, "There is no tool %q. The tools are: %s.", prose.OneLine(u.Name, 60), strings.Join(names, ", "))
	}
	input, err := t.read(u)
	if patch, ok := tool.AsPatch(t.Tool, u.Input); err != nil && ok {
		t.Tool, input, err = tool.Patch, patch, nil
	}
	if err != nil {
		return m.misused(u, "%s.", prose.Sentence(prose.Error(err)))
	}
	env := &modelEnv{scribe: m.scribe, id: u.ID, drafts: &m.drafts}
	got, err := t.Run(ctx, env, input)
	if err != nil {
		return m.misused(u, "%s.", prose.Sentence(prose.Error(err)))
	}
	if ctx.Err() != nil && got.Text == "" {
		return failed(u, "The user has cancelled this.")
	}
	out := &model.ToolResult{ID: u.ID, Failed: got.Status != acp.ToolCallStatusCompleted}
	text := got.Text
	if text == "" {
		text = got.Said
	}
	if text != "" {
		out.Parts = append(out.Parts, &model.Text{Text: text})
	}
	if text := m.guidance(append(env.files, got.File)); text != "" {
		out.Parts = append(out.Parts, &model.Text{Text: text})
	}
	for _, i := range got.Images {
		out.Parts = append(out.Parts, &model.Image{MIMEType: i.MIMEType, Data: i.Data})
	}
	return out
}

// misused returns the result of a call that cannot be made, and shows the user that the
// model has tried.
func (m *modelTurn) misused(u *model.ToolUse, format string, args ...any) *model.ToolResult {
	res := failed(u, format, args...)
	h := m.drafts.Take(u.ID)
	if h == nil {
		h = m.out.ToolCall(acp.ToolCall{Name: prose.OneLine(u.Name, 60), Title: "Call of " + prose.OneLine(u.Name, 60), Kind: acp.ToolKindOther, Status: acp.ToolCallStatusPending})
	}
	tool.Fail(h, errors.New(res.Parts[0].(*model.Text).Text))
	return res
}

// failed returns the result of a call that was not made.
func failed(u *model.ToolUse, format string, args ...any) *model.ToolResult {
	return &model.ToolResult{ID: u.ID, Failed: true, Parts: []model.Part{&model.Text{Text: fmt.Sprintf(format, args...)}}}
}

// A modelEnv is what a session lends to a tool that a model uses.
type modelEnv struct {
	*scribe
	id     string // of the wish
	drafts *tool.Drafts
	files  []string // that were to be changed
}

func (e *modelEnv) Drafted() *acp.ToolCallHandle { return e.drafts.Take(e.id) }

func (e *modelEnv) Served() *served.Record { return &e.s.served }

// Intend keeps what is about to happen, and writes it to disk, so that it is known after a
// crash.
func (e *modelEnv) Intend(i tool.Intent) error {
	in := &intent{ID: e.id, Path: i.Path, Command: i.Command, Made: i.Made}
	if i.Path != "" {
		e.files = append(e.files, i.Path)
		if !i.Deleted {
			in.After = hashText(i.After)
		}
		if !i.Created {
			in.Before = hashText(i.Before)
		}
		e.s.mu.Lock()
		e.s.talk.change(i.Path, in.After)
		e.s.mu.Unlock()
	}
	e.s.keepRecord("intent", in) // a failure is in lost: the user learns of it at the end of the turn
	return nil
}

func (e *modelEnv) Hints() tool.Hints {
	return tool.Hints{
		ReadOn:     func(_ string, line uint32) string { return fmt.Sprintf("read on with from: %d", line) },
		ReadLine:   func(line, column uint32) string { return fmt.Sprintf("from: %d, column: %d shows more", line, column) },
		ReplaceAll: "set all",
		Ignored:    "ignored: true",
		ReadAsks:   "read",
	}
}
