package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/internal/pattern"
)

// A guest is the agent we play when a client is checked. It lives as long as a
// connection.
type guest struct {
	version  int            // that is answered, if the client asks for that or a later one
	init     *pattern.Value // the params of initialize, nil before
	session  *pattern.Value // id of the session of the turn, or the last one opened
	sessions int
	prompts  []*letter      // that were received and not taken up
	turn     *letter        // the session/prompt that is being carried out, or nil
	turns    int            // that were taken up
	used     bool           // a scenario was played in the turn
	greeting string         // how a step answered initialize, or ""
	cwd      *pattern.Value // of the last session that was opened, or nil
	messages int
	saved    string // id of a session that is listed, or ""
	reopened bool   // the client has opened a session that it did not make
	ignores  bool   // the client does not answer requests that it does not know
}

// asked returns the version the client asked for, 0 if it is none.
func (g *guest) asked() int {
	v := g.init.Get("protocolVersion")
	if v == nil {
		return 0
	}
	n, err := strconv.Atoi(v.Text)
	if err != nil {
		return 0
	}
	return n
}

// begin makes a player ready for a scenario.
func (g *guest) begin(p *player) {
	if g.init != nil {
		p.known["init"] = g.init
	}
	if g.session != nil {
		p.known["session"] = g.session
	}
	if g.turn != nil {
		p.known["prompt"] = g.turn.params()
		if id := g.turn.params().Get("sessionId"); id != nil { // it may have opened another one since
			p.known["session"] = id
		}
	}
	g.place(p)
}

// place makes known where files may be.
func (g *guest) place(p *player) {
	if g.cwd == nil || g.cwd.Kind != pattern.String {
		return
	}
	name := strings.TrimRight(g.cwd.Str, `/`) + "/acp-check.txt"
	if strings.Contains(g.cwd.Str, `\`) { // a client on Windows
		name = strings.TrimRight(g.cwd.Str, `\`) + `\acp-check.txt`
	}
	p.known["cwd"], p.known["file"] = g.cwd, pattern.Text(name)
}

// hello returns the result of initialize: all an agent may offer, with members
// put in the place of others.
func (g *guest) hello(members *pattern.Value, known pattern.Captures) string {
	version := strconv.Itoa(g.version)
	if g.version == 1 {
		return members.With(known, "protocolVersion", version, "agentInfo", checkerInfo, "authMethods", "[]", "agentCapabilities",
			`{"loadSession":true,"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},`+
				`"mcpCapabilities":{"http":true,"sse":true},"sessionCapabilities":{"list":{},"delete":{},"resume":{},"close":{}}}`)
	}
	return members.With(known, "protocolVersion", version, "info", checkerInfo, "authMethods", "[]", "capabilities",
		`{"session":{"prompt":{"image":{},"audio":{},"embeddedContext":{}},"mcp":{"stdio":{},"http":{}},"delete":{}}}`)
}

// auto answers what the client asks for as a simple agent does.
func (g *guest) auto(p *player, m *letter) string {
	switch m.method {
	case "initialize":
		if p.sc.verbs["initialize"] && g.init == nil {
			return ""
		}
		g.init = m.params()
		if g.greeting != "" { // the client asks again, for the version it was offered
			return `"result":` + g.greeting
		}
		return `"result":` + g.hello(nil, nil)
	case "session/new", "session/fork":
		if p.sc.verbs["session"] {
			return ""
		}
		return `"result":{"sessionId":` + g.open(p, m).Text + `}`
	case "session/prompt":
		g.prompts = append(g.prompts, m)
		return ""
	case "session/load", "session/resume":
		g.session, g.reopened = m.params().Get("sessionId"), true
		return `"result":{}`
	case "session/list":
		return `"result":{"sessions":[` + g.list(m) + `]}`
	case "session/set_config_option":
		return `"result":{"configOptions":[]}`
	case "session/close", "session/delete", "session/set_mode", "authenticate", "logout", "auth/login", "auth/logout":
		return `"result":{}`
	}
	return `"error":{"code":-32601,"message":"Method not found","data":{"method":` + pattern.Quote(m.method) + `}}`
}

// open returns the id of a new session.
func (g *guest) open(p *player, m *letter) *pattern.Value {
	g.sessions++
	g.cwd = m.params().Get("cwd")
	g.place(p)
	g.session = pattern.Text("check-" + strconv.Itoa(g.sessions))
	return g.session
}

// list returns the sessions of a list: the one that is saved, in the directory that
// was asked for.
func (g *guest) list(m *letter) string {
	if g.saved == "" {
		return ""
	}
	cwd := pattern.Text("/")
	if c := m.params().Get("cwd"); c != nil && c.Kind == pattern.String {
		cwd = c
	}
	return `{"sessionId":` + pattern.Quote(g.saved) + `,"cwd":` + cwd.Text + `,"title":"Check","updatedAt":"2026-11-01T00:00:00Z"}`
}

func (g *guest) saw(*player, *letter) {}

func (g *guest) step(p *player, s *step) error {
	switch s.verb {
	case "tell":
		return g.tell(p, p.fill(s.val))
	case "say":
		return g.say(p, s.val.Str)
	case "allow":
		return g.allow(p, s)
	case "stop":
		if g.turn == nil {
			return broken("line %d: there is no turn to end", s.line)
		}
		reason := s.method
		if reason == "" {
			reason = "end_turn"
		}
		return g.stop(p, reason, s.val)
	case "over":
		return g.over(p)
	case "stderr":
		return p.noise([]byte(strings.Repeat(s.val.Str, s.n)))
	case "saved":
		g.saved = s.val.Str
		return nil
	case "either":
		return g.either(p, s)
	case "pause":
		if err := p.listenFor(s.dur); !errors.Is(err, errClosed) {
			return err
		}
		return nil
	case "greet":
		return g.greet(p, s)
	case "turn":
		err := g.take(p, p.patience())
		switch {
		case err == nil || !errors.Is(err, errTimeout) && !errors.Is(err, errClosed):
			return err
		case g.turns == 0:
			return p.missing(err, "session/prompt")
		}
		return unseen("the client sent no further prompt")
	case "initialize":
		m, err := g.request(p, "initialize")
		if err != nil {
			return err
		}
		g.init = m.params()
		p.known["init"] = g.init
		g.greeting = g.hello(s.val, p.known)
		return g.grant(p, m, g.greeting)
	case "session":
		m, err := g.request(p, "session/new")
		if err != nil {
			return err
		}
		id := g.open(p, m)
		p.known["session"] = id
		return g.grant(p, m, s.val.With(p.known, "sessionId", id.Text))
	}
	return broken("line %d: %s is not for clients", s.line, s.verb)
}

// request waits for a request that is the client's to make.
func (g *guest) request(p *player, method string) (*letter, error) {
	var found *letter
	err := p.until(max(p.limit, p.patience()), func() bool {
		for _, m := range p.inbox {
			if m.method == method && m.request() && !m.done {
				found = m
				return true
			}
		}
		return g.instead(method) != nil
	})
	switch {
	case err != nil:
		return nil, p.missing(err, "%s", method)
	case found == nil:
		return nil, g.instead(method)
	}
	p.use(found)
	return found, nil
}

// What happens to scenarios about new sessions with a client that continues an old one,
// and the other way round.
var (
	errReopened = unseen("the client opened an old session in the place of a new one")
	errAnew     = unseen("the client opened a new session in the place of an old one")
)

// instead reports that the client has opened a session in another way than by a request
// of a method, so that waiting for that would be in vain.
func (g *guest) instead(method string) error {
	switch method {
	case "session/new":
		if g.reopened && g.sessions == 0 {
			return errReopened
		}
	case "session/load", "session/resume":
		if g.sessions > 0 {
			return errAnew
		}
	}
	return nil
}

// rejoin lets a client connect again that was offered an earlier version than it
// asked for, as some do to ask for that one.
func (g *guest) rejoin(p *player) bool {
	if p.reconnect == nil || g.init == nil || g.asked() <= g.version || !errors.Is(p.gone, errClosed) {
		return false
	}
	l, err := p.reconnect()
	p.reconnect = nil // once
	if err != nil {
		return false
	}
	p.link.close()
	p.link, p.gone = l, nil
	return true
}

func (g *guest) grant(p *player, m *letter, result string) error {
	m.done = true
	return p.write(`{"jsonrpc":"2.0","id":` + m.id.Text + `,"result":` + result + `}`)
}

func (g *guest) tell(p *player, update string) error {
	id := "null"
	if s := p.known["session"]; s != nil {
		id = s.Text
	}
	return p.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":` + id + `,"update":` + update + `}}`)
}

func (g *guest) say(p *player, text string) error {
	message := ""
	if g.version == 2 {
		message = `"messageId":"agent-` + strconv.Itoa(g.messages) + `",`
	}
	return g.tell(p, `{"sessionUpdate":"agent_message_chunk",`+message+`"content":{"type":"text","text":`+pattern.Quote(text)+`}}`)
}

// allow asks for permission.
func (g *guest) allow(p *player, s *step) error {
	_, err := g.question(p, s.name, s.val)
	return err
}

// question asks for permission, with members of the params.
func (g *guest) question(p *player, name string, members *pattern.Value) (*pending, error) {
	id := "null"
	if v := p.known["session"]; v != nil {
		id = v.Text
	}
	options := `[{"optionId":"yes","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"Reject","kind":"reject_once"}]`
	params := members.With(p.known, "sessionId", id, "title", `"May this be done?"`, "options", options)
	if g.version == 1 {
		g.messages++
		params = members.With(p.known, "sessionId", id, "options", options,
			"toolCall", fmt.Sprintf(`{"toolCallId":"call-%d","title":"May this be done?"}`, g.messages))
	}
	return p.call(name, "session/request_permission", params)
}

// greet answers initialize. A client that was offered an earlier version than it
// asked for may ask once more.
func (g *guest) greet(p *player, s *step) error {
	m := p.asked[s.name]
	if m == nil || m.done || m.method != "initialize" {
		return broken("line %d: $%s is no initialize that can be answered", s.line, s.name)
	}
	g.init = m.params()
	p.known["init"] = g.init
	if g.greeting = g.hello(nil, nil); s.val != nil {
		g.greeting = s.val.Fill(p.known)
	}
	sc := *p.sc
	sc.uses = maps.Clone(sc.uses)
	delete(sc.uses, "initialize")
	p.sc = &sc
	return g.grant(p, m, g.greeting)
}

// over waits until the client continues after a turn.
func (g *guest) over(p *player) error {
	c, err := p.ping()
	if err == nil && c == nil { // it has nothing to answer
		return g.idles(p)
	}
	if err == nil {
		err = p.until(p.limit, func() bool { return c.reply != nil || len(g.prompts) > 0 })
	}
	if err == nil && c.reply == nil { // it should not come to another scenario
		err = p.until(min(p.limit, settleTime), func() bool { return c.reply != nil })
		if errors.Is(err, errTimeout) {
			err = nil
		}
	}
	switch {
	case err == nil, p.link.dead() && p.banned == nil && p.ctx.Err() == nil:
		return nil
	case errors.Is(err, errTimeout):
		return failed("the client neither answered, prompted nor left within %v", p.limit)
	}
	return err
}

// either waits for something, or for the end of the connection.
func (g *guest) either(p *player, s *step) error {
	var found *letter
	var near error
	p.reconnect = nil
	err := p.until(p.limit, func() bool { found, near = p.find(s.what); return found != nil })
	switch {
	case err == nil:
		p.use(found)
		if s.what.name != "" {
			p.asked[s.what.name], p.known[s.what.name] = found, found.id
		}
		p.spend(s.what)
		return nil
	case errors.Is(err, errClosed) && near == nil:
		return nil
	case errors.Is(err, errTimeout) && near == nil:
		return failed("the client neither sent %s nor closed the connection within %v", s.what, p.limit)
	case near != nil:
		return failed("%s did not come; what came instead: %s", s.what, near)
	}
	return err
}

// left reports whether the client has gone away in good order when its turns were
// over. Its process may take until the limit to end.
func (g *guest) left(p *link, limit time.Duration) bool {
	if g.turn != nil || g.turns == 0 || !p.dead() {
		return false
	}
	if p.peer.Wait == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	status, err := p.peer.Wait(ctx)
	return err == nil && status == 0
}

// stop ends the turn. members are of the result, or of the update that ends it.
func (g *guest) stop(p *player, reason string, members *pattern.Value) error {
	turn := g.turn
	g.turn, g.used = nil, false
	if g.version == 1 {
		return g.grant(p, turn, members.With(p.known, "stopReason", pattern.Quote(reason)))
	}
	return g.tell(p, members.With(p.known, "sessionUpdate", `"state_update"`, "state", `"idle"`, "stopReason", pattern.Quote(reason)))
}

// take waits for a prompt and begins its turn.
func (g *guest) take(p *player, limit time.Duration) error {
	if err := p.until(limit, func() bool { return len(g.prompts) > 0 }); err != nil {
		return err
	}
	g.turn, g.used = g.prompts[0], false
	g.turns++
	g.prompts = slices.Delete(g.prompts, 0, 1)
	params := g.turn.params()
	if id := params.Get("sessionId"); id != nil {
		g.session = id
		p.known["session"] = id
	}
	p.known["prompt"] = params
	p.cursor = len(p.inbox)
	if g.version == 1 {
		return nil
	}
	g.messages++
	id := pattern.Quote("user-" + strconv.Itoa(g.messages))
	if err := g.grant(p, g.turn, `{"messageId":`+id+`}`); err != nil {
		return err
	}
	content := "[]"
	if v := params.Get("prompt"); v != nil {
		content = v.Fill(nil)
	}
	if err := g.tell(p, `{"sessionUpdate":"user_message","messageId":`+id+`,"content":`+content+`}`); err != nil {
		return err
	}
	return g.tell(p, `{"sessionUpdate":"state_update","state":"running"}`)
}

// leave answers what a scenario left open, and reports whether the connection can
// be used again.
func (g *guest) leave(p *player) bool {
	p.link.listen(true)
	p.sc = &scenario{}
	for _, m := range p.inbox {
		if m.request() && m.method != "session/prompt" {
			p.reply(m)
		}
	}
	return true
}

// patience is how long a client may take to send a prompt.
func (p *player) patience() time.Duration {
	if p.opt.Patience > 0 {
		return p.opt.Patience
	}
	return p.opt.timeout()
}
