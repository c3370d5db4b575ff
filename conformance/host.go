package conformance

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/goacp/acp/internal/pattern"
)

// A host is the client we play when an agent is checked. It lives as long as a
// connection; what belongs to a scenario is reset by begin.
type host struct {
	version  int
	cwd      string
	init     *pattern.Value // the result of initialize, nil before
	session  *pattern.Value // id of the session that scenarios share, nil before
	scripted bool           // the agent follows the script of our test suites

	files     map[string]string
	file      string // the last one of the scenario
	terminals int
	turns     []*promptTurn
	asked     bool            // a step was about a question for permission
	granted   bool            // and gave it
	stopped   map[string]bool // texts of the ids of sessions whose last turn was cancelled
	server    *MCPProbe       // that the scenario has started, or nil
}

// A promptTurn is a prompt of the scenario.
type promptTurn struct {
	call *pending
	next int             // the place of the next letter to look at
	text strings.Builder // that the agent said
	// of version 2
	running bool
	idle    *pattern.Value // the state that ended the turn
}

func newHost(version int, cwd string) *host {
	return &host{version: version, cwd: cwd, files: map[string]string{}}
}

// begin makes the host ready for a scenario.
func (h *host) begin(p *player) {
	h.turns, h.file = nil, ""
	h.asked, h.granted, h.stopped = false, false, map[string]bool{}
	clear(h.files)
	p.known["cwd"] = pattern.Text(h.cwd)
	v, err := pattern.Parse(h.hello(nil, nil))
	if err == nil {
		p.known["hello"] = v
	}
	if h.init != nil {
		p.known["init"] = h.init
	}
}

const checkerInfo = `{"name":"acp-check","version":"1"}`

const suggestions = `{"image":{},"audio":{},"embeddedContext":{}}`

// hello returns the params of initialize: all a client may offer, with members
// put in the place of others.
func (h *host) hello(members *pattern.Value, known pattern.Captures) string {
	if h.version == 1 {
		return members.With(known, "protocolVersion", "1", "clientInfo", checkerInfo, "clientCapabilities",
			`{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"elicitation":{"form":{},"url":{}},`+
				`"subagents":{},"session":{"configOptions":{"boolean":{}},"notices":{},"compaction":{},"cursors":{},`+
				`"promptSuggestions":`+suggestions+`}}`)
	}
	return members.With(known, "protocolVersion", "2", "info", checkerInfo, "capabilities", `{"elicitation":{"form":{},"url":{}},`+
		`"session":{"promptSuggestions":`+suggestions+`,"commands":{"skill":{}}}}`)
}

// greeted keeps the result of initialize.
func (h *host) greeted(result *pattern.Value) {
	h.init = result
	if s := result.Get("_meta").Get("tspeer").Get("script"); s != nil {
		h.scripted = true
	}
}

func (h *host) step(p *player, s *step) error {
	switch s.verb {
	case "initialize":
		return h.initialize(p, s)
	case "session":
		return h.newSession(p, s)
	case "file":
		name := path.Join(strings.ReplaceAll(h.cwd, `\`, "/"), fmt.Sprintf("acp-check-%d.txt", len(h.files)))
		if strings.Contains(h.cwd, `\`) { // an agent on Windows
			name = strings.ReplaceAll(name, "/", `\`)
		}
		h.files[name], h.file = s.val.Str, name
		p.known[s.name] = pattern.Text(name)
		return nil
	case "list":
		return h.list(p, s)
	case "restart":
		return h.restart(p, s)
	case "login", "logout":
		return h.sign(p, s)
	case "probe":
		return h.probe(p, s)
	case "connected":
		return h.connected(p, s)
	case "prompt":
		return h.prompt(p, s)
	case "ended":
		return h.ended(p, s)
	case "done":
		return h.done(p, s)
	case "busy":
		return h.busy(p, s)
	case "said":
		return h.said(p, s)
	case "counted":
		return h.counted(p, s)
	}
	return broken("line %d: %s is not for agents", s.line, s.verb)
}

func (h *host) initialize(p *player, s *step) error {
	c, err := p.call(s.name, "initialize", h.hello(s.val, p.known))
	if err != nil || s.name != "" {
		return err
	}
	result, refused, err := p.outcome(c)
	switch {
	case err != nil:
		return err
	case refused != nil:
		return broken("initialize failed: %s", describeError(refused))
	}
	h.greeted(result)
	p.known["init"] = result
	return nil
}

// newSession opens a session, or takes the one that is shared.
func (h *host) newSession(p *player, s *step) error {
	name := "session"
	own := s.method == "new" || s.name != "" || s.val != nil
	if s.name != "" {
		name = s.name
	}
	if !own && h.session != nil {
		p.known[name] = h.session
		return nil
	}
	id, err := h.open(p, s.val)
	if err != nil {
		return err
	}
	p.known[name] = id
	if !own {
		h.session = id
	}
	return nil
}

// open makes a session.
func (h *host) open(p *player, members *pattern.Value) (*pattern.Value, error) {
	c, err := p.call("", "session/new", members.With(p.known, "cwd", pattern.Quote(h.cwd), "mcpServers", "[]"))
	if err != nil {
		return nil, err
	}
	result, refused, err := p.outcome(c)
	if err != nil {
		return nil, err
	}
	if refused != nil {
		if code := refused.Get("code"); code != nil && code.Text == "-32000" {
			return nil, broken("the agent wants a login before it opens a session")
		}
		return nil, broken("session/new failed: %s", describeError(refused))
	}
	id := result.Get("sessionId")
	if id == nil || id.Kind != pattern.String {
		return nil, broken("session/new was answered without a sessionId")
	}
	return id, nil
}

// noWords is how it begins why a scenario was not seen whose purpose has no prompt.
const noWords = "no prompt is configured that makes the agent do this: "

// prompt sends a prompt for a purpose.
func (h *host) prompt(p *player, s *step) error {
	session := p.known["session"]
	if s.other != "" {
		session = p.known[s.other]
	}
	if session == nil {
		return broken("line %d: there is no session to prompt", s.line)
	}
	text := p.opt.promptText(s.method, h.version, h.scripted, h.file)
	if text == "" {
		return unseen(noWords+"%s (%s)", s.method, purposes[s.method].About)
	}
	c, err := p.call(s.name, "session/prompt",
		`{"sessionId":`+session.Text+`,"prompt":[{"type":"text","text":`+pattern.Quote(text)+`}]}`)
	h.track(p, c)
	return err
}

// stops notes that the client cancels what a session does.
func (h *host) stops(p *player, s *step) {
	if v, err := pattern.Parse(p.fill(s.val)); err == nil && v.Get("sessionId") != nil {
		h.stopped[v.Get("sessionId").Text] = true
	}
}

// track follows the turn of a prompt.
func (h *host) track(p *player, c *pending) *promptTurn {
	for _, t := range h.turns {
		if t.call == c {
			return t
		}
	}
	t := &promptTurn{call: c}
	h.turns = append(h.turns, t)
	for _, m := range p.inbox[min(c.at, len(p.inbox)):] {
		t.update(m)
	}
	return t
}

// saw follows the turns.
func (h *host) saw(p *player, m *letter) {
	for _, c := range p.calls { // prompts that were made with call
		if c.method == "session/prompt" {
			h.track(p, c)
		}
	}
	for _, t := range h.turns {
		t.update(m)
	}
}

// update looks at an update of the turn's session.
func (t *promptTurn) update(m *letter) {
	if m.method != "session/update" || m.at < max(t.call.at, t.next) {
		return
	}
	t.next = m.at + 1
	params := m.params()
	if id := params.Get("sessionId"); id == nil || id.Text != t.call.session {
		return
	}
	u := params.Get("update")
	switch u.StringAt("sessionUpdate") {
	case "agent_message_chunk":
		t.text.WriteString(u.Get("content").StringAt("text"))
	case "agent_message":
		if content := u.Get("content"); content != nil {
			for _, block := range content.Elems {
				t.text.WriteString(block.StringAt("text"))
			}
		}
	case "state_update":
		switch u.StringAt("state") {
		case "running", "requires_action":
			t.running, t.idle = true, nil
		case "idle":
			if t.running || u.Get("stopReason") != nil {
				t.idle = u
			}
		}
	}
}

// over reports whether every turn has ended, and there was one.
func (h *host) over(p *player) bool {
	for _, t := range h.turns {
		if t.call.reply == nil || h.version == 2 && t.idle == nil && t.call.reply.val.Get("error") == nil {
			return false
		}
	}
	return len(h.turns) > 0
}

func (h *host) turn(p *player, s *step) (*promptTurn, error) {
	c := p.calls[s.name]
	if c == nil || c.method != "session/prompt" {
		return nil, broken("line %d: $%s is no prompt", s.line, s.name)
	}
	return h.track(p, c), nil
}

// ended waits for the end of a turn.
func (h *host) ended(p *player, s *step) error {
	t, err := h.turn(p, s)
	if err != nil {
		return err
	}
	result, refused, err := p.outcome(t.call)
	switch {
	case err != nil:
		return err
	case refused != nil:
		return failed("session/prompt was answered with the error %s, expected the turn to end", describeError(refused))
	}
	end := result
	if h.version == 2 {
		if err := p.until(p.limit, func() bool { return t.idle != nil }); err != nil {
			return p.missing(err, "the idle state that ends the turn")
		}
		end = t.idle
	}
	if s.val == nil {
		return nil
	}
	reason := end.Get("stopReason")
	if reason == nil {
		return failed("the turn ended without a stopReason, expected %s", clip(s.val.Text, 100))
	}
	if bad := pattern.Match(s.val, reason, p.known); bad != nil {
		return failed("the turn ended with stopReason %s, expected %s", clip(reason.Text, 100), clip(s.val.Text, 100))
	}
	return nil
}

// done waits until a prompt was refused or its turn has ended.
func (h *host) done(p *player, s *step) error {
	t, err := h.turn(p, s)
	if err == nil {
		err = p.answered(t.call)
	}
	if err != nil || h.version == 1 || t.call.reply.val.Get("error") != nil {
		return err
	}
	if err := p.until(p.limit, func() bool { return t.idle != nil }); err != nil {
		return p.missing(err, "the idle state that ends the turn")
	}
	return nil
}

// busy watches a turn that must not end for a while.
func (h *host) busy(p *player, s *step) error {
	t, err := h.turn(p, s)
	if err != nil {
		return err
	}
	over := func() bool { return t.idle != nil || h.version == 1 && t.call.reply != nil }
	switch err = p.silence(s.dur, over); {
	case errors.Is(err, errTimeout):
		return nil
	case err == nil:
		return failed("the turn ended where it had to continue")
	}
	return p.gap(err)
}

// heard returns what the agent said in a turn, up to now.
func (h *host) heard(p *player, s *step) (string, error) {
	t, err := h.turn(p, s)
	if err != nil {
		return "", err
	}
	if err := p.pull(); err != nil {
		return "", err
	}
	return t.text.String(), nil
}

// said looks at what the agent said in a turn, up to now.
func (h *host) said(p *player, s *step) error {
	text, err := h.heard(p, s)
	if err != nil {
		return err
	}
	if bad := pattern.Match(s.val, pattern.Text(text), p.known); bad != nil {
		return failed("the agent said %s, expected %s", strconv.Quote(clip(text, 200)), clip(s.val.Text, 200))
	}
	return nil
}

// counted looks at an agent that was to count from 0 on, in whatever pieces and with
// whatever between the numbers: each has to be there, once and in order.
func (h *host) counted(p *player, s *step) error {
	text, err := h.heard(p, s)
	if err != nil {
		return err
	}
	return countsUpTo(text, s.n)
}

// countsUpTo looks at a text that must be the numbers from 0 to n-1, with whatever between
// them.
func countsUpTo(text string, n int) error {
	for next := range n {
		text = strings.TrimLeftFunc(text, func(c rune) bool { return c < '0' || c > '9' })
		rest, ok := strings.CutPrefix(text, strconv.Itoa(next))
		switch {
		case ok:
			text = rest
		case next == 0:
			return unseen("the agent did not count")
		case text == "":
			return failed("the agent counted to %d, expected %d", next-1, n-1)
		default:
			return failed("the agent counted to %d, and then %s", next-1, clip(text, 20))
		}
	}
	return nil
}

// auto answers what the agent asks for as a client does that has nobody to ask
// and everything to offer. Files and terminals are not real.
func (h *host) auto(p *player, m *letter) string {
	params := m.params()
	file := params.StringAt("path")
	switch m.method {
	case "session/request_permission":
		if id := params.Get("sessionId"); id != nil && h.stopped[id.Text] { // S40
			return `"result":{"outcome":{"outcome":"cancelled"}}`
		}
		kind := "allow"
		if h.asked && !h.granted {
			kind = "reject"
		}
		return `"result":{"outcome":` + choose(params, kind) + `}`
	case "fs/read_text_file":
		text, ok := h.files[file]
		if !ok {
			return refusal(-32002, "there is no such file")
		}
		return `"result":{"content":` + pattern.Quote(lines(text, params)) + `}`
	case "fs/write_text_file":
		h.files[file] = params.StringAt("content")
		return `"result":{}`
	case "terminal/create":
		h.terminals++
		return `"result":{"terminalId":"term-` + strconv.Itoa(h.terminals) + `"}`
	case "terminal/output":
		return `"result":{"output":"hello\n","truncated":false,"exitStatus":{"exitCode":0}}`
	case "terminal/wait_for_exit":
		return `"result":{"exitCode":0}`
	case "terminal/kill", "terminal/release":
		return `"result":{}`
	case "elicitation/create":
		return `"result":{"action":"decline"}`
	}
	return `"error":{"code":-32601,"message":"Method not found","data":{"method":` + pattern.Quote(m.method) + `}}`
}

func refusal(code int, message string) string {
	return `"error":{"code":` + strconv.Itoa(code) + `,"message":` + pattern.Quote(message) + `}`
}

// choose selects an option of a permission request whose kind is allow or reject:
// once, if that is offered.
func choose(params *pattern.Value, kind string) string {
	var options []*pattern.Value
	if list := params.Get("options"); list != nil {
		options = list.Elems
	}
	for _, kind := range []string{kind + "_once", kind + "_always"} {
		for _, o := range options {
			if id := o.Get("optionId"); id != nil && o.StringAt("kind") == kind {
				return `{"outcome":"selected","optionId":` + id.Text + `}`
			}
		}
	}
	return `{"outcome":"cancelled"}`
}

// answers notes what a step answers to a question for permission. What else the agent
// asks for is then answered likewise.
func (h *host) answers(m *letter, outcome *pattern.Value) {
	h.granted = false
	id, options := outcome.Get("optionId"), m.params().Get("options")
	if outcome.StringAt("outcome") != "selected" || id == nil || options == nil {
		return
	}
	for _, o := range options.Elems {
		if have := o.Get("optionId"); have != nil && have.Text == id.Text {
			h.granted = h.granted || strings.HasPrefix(o.StringAt("kind"), "allow")
		}
	}
}

// lines returns the part of a text that params ask for.
func lines(text string, params *pattern.Value) string {
	all := strings.SplitAfter(text, "\n")
	from, count := 1, len(all)
	if v := params.Get("line"); v != nil {
		from, _ = strconv.Atoi(v.Text)
	}
	if v := params.Get("limit"); v != nil {
		if n, err := strconv.Atoi(v.Text); err == nil {
			count = n
		}
	}
	from = min(max(from, 1), len(all)+1)
	return strings.Join(all[from-1:min(len(all), from-1+max(count, 0))], "")
}
