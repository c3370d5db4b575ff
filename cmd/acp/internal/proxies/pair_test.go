package proxies

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/jsonrpc"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestNames holds that the settings know the names of all.
func TestNames(t *testing.T) {
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
		if _, err := Parse([]string{k.Name, "--no-such-flag"}, Env{}); err == nil || !strings.Contains(err.Error(), "--no-such-flag") {
			t.Errorf("%s: %v", k.Name, err)
		}
		if _, err := Parse([]string{k.Name, "more"}, Env{}); err == nil {
			t.Errorf("%s takes an argument", k.Name)
		}
	}
	if fmt.Sprint(names) != fmt.Sprint(config.ReadyProxies) {
		t.Errorf("%v, %v", names, config.ReadyProxies)
	}
}

// An end is one end of a chain: a client or an agent that a test plays, frame by frame.
type end struct {
	t  *testing.T
	s  jsonrpc.Stream
	in chan string // closed at the end
}

func newEnd(t *testing.T, s jsonrpc.Stream) *end {
	e := &end{t: t, s: s, in: make(chan string, 100)}
	go func() {
		defer close(e.in)
		for {
			f, err := s.ReadFrame()
			if err != nil {
				return
			}
			e.in <- string(bytes.Clone(f.Data))
		}
	}()
	return e
}

// says sends a message without "jsonrpc".
func (e *end) says(text string) {
	e.t.Helper()
	if err := e.s.WriteFrame([]byte(`{"jsonrpc":"2.0",` + strings.TrimPrefix(text, "{"))); err != nil {
		e.t.Fatal(err)
	}
}

// A message is a frame.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
	text   string
}

// hears returns the next message.
func (e *end) hears() message {
	e.t.Helper()
	select {
	case text, ok := <-e.in:
		if !ok {
			e.t.Fatal("the connection has ended")
		}
		m := message{text: text}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			e.t.Fatal(err)
		}
		return m
	case <-time.After(30 * time.Second):
		e.t.Fatal("nothing has come")
	}
	return message{}
}

// answers answers a request.
func (e *end) answers(m message, result string) {
	e.t.Helper()
	e.says(fmt.Sprintf(`{"id":%s,"result":%s}`, m.ID, result))
}

// A pair is both ends of a chain with one proxy, and a session s.
type pair struct {
	client, agent *end
	version       int
	n             int
}

// newPair joins them. dir is where the session s works.
func newPair(t *testing.T, version int, dir string, env Env, argv ...string) *pair {
	t.Helper()
	ready, err := Parse(argv, env)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ready.Start()
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours := jsonrpc.Pipe()
	s, err := acp.Chain(acp.Over(theirs), r.Proxy).Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close()
		_ = ours.Close()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	p := &pair{client: newEnd(t, s), agent: newEnd(t, ours), version: version}
	init := `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}}`
	result := `{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`
	if version == 2 {
		init = `{"protocolVersion":2,"info":{"name":"c","version":"1"},"capabilities":{}}`
		result = `{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}`
	}
	p.ask(p.client, p.agent, "initialize", init, result)
	p.open("s", dir)
	return p
}

// ask has one end ask the other, and returns the answer.
func (p *pair) ask(from, to *end, method, params, result string) message {
	from.t.Helper()
	p.send(from, method, params)
	to.answers(to.hears(), result)
	return from.hears()
}

// send sends a request.
func (p *pair) send(from *end, method, params string) {
	from.t.Helper()
	p.n++
	from.says(fmt.Sprintf(`{"id":%d,"method":%q,"params":%s}`, p.n, method, params))
}

func (p *pair) open(session, dir string) {
	p.ask(p.client, p.agent, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, dir), fmt.Sprintf(`{"sessionId":%q}`, session))
}

// prompt has the client send a prompt, and returns what the agent gets.
func (p *pair) prompt(session string, blocks string) message {
	p.client.t.Helper()
	p.send(p.client, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":%s}`, session, blocks))
	return p.agent.hears()
}

// update has the agent send an update.
func (p *pair) update(session, update string) {
	p.agent.t.Helper()
	p.agent.says(fmt.Sprintf(`{"method":"session/update","params":{"sessionId":%q,"update":%s}}`, session, update))
}

// text is a block.
func text(s string) string {
	b, _ := json.Marshal(map[string]string{"type": "text", "text": s})
	return string(b)
}
