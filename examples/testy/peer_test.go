package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// A peer is a client made of the wire types and the engine alone, so that what
// it sees is what is on the wire.
type peer struct {
	t       *testing.T
	version int
	conn    *jsonrpc.Conn
	session string

	mu      sync.Mutex
	changed *sync.Cond
	updates []seen
	text    strings.Builder
	idles   []*acpv2.IdleStateUpdate
	asked   chan struct{} // gets one for each permission that is asked for
	answer  string        // to permissions; "" waits until the question is withdrawn
}

// seen is an update.
type seen struct {
	kind  string
	value any
}

// dial starts the agent and a client that offers everything.
func dial(t *testing.T, version int, stable bool) *peer {
	t.Helper()
	return dialWith(t, version, stable,
		`{"fs":{"readTextFile":true,"writeTextFile":true},"session":{"configOptions":{"boolean":{}},"notices":{},"compaction":{}},`+
			`"elicitation":{"form":{},"url":{}},"plan":{},"subagents":{}}`)
}

func dialWith(t *testing.T, version int, stable bool, capsV1 string) *peer {
	t.Helper()
	p := &peer{t: t, version: version, asked: make(chan struct{}, 100), answer: "allow"}
	p.changed = sync.NewCond(&p.mu)
	ours, theirs := jsonrpc.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- serve(context.Background(), theirs, options{stable: stable}, slog.New(slog.DiscardHandler))
	}()
	mux := new(jsonrpc.Mux)
	p.handle(mux)
	p.conn = jsonrpc.NewConn(ours, jsonrpc.Config{Mux: mux, Lane: func(string, any) string { return "" }})
	t.Cleanup(func() {
		_ = p.conn.Close()
		if err := <-served; err != nil {
			t.Errorf("agent: %v", err)
		}
	})
	if version == 1 {
		p.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+capsV1+`}`)
	} else {
		p.call("initialize", `{"protocolVersion":2,"info":{"name":"peer","version":"0"},"capabilities":{"elicitation":{"form":{},"url":{}}}}`)
	}
	var s struct{ SessionID string }
	p.decode(p.call("session/new", `{"cwd":"/","mcpServers":[]}`), &s)
	p.session = s.SessionID
	return p
}

func (p *peer) decode(data json.RawMessage, v any) {
	p.t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		p.t.Fatalf("%s: %v", data, err)
	}
}

// try calls a method. In params $ stands for the session's id.
func (p *peer) try(method, params string) (result json.RawMessage, err error) {
	params = strings.ReplaceAll(params, "$", p.session)
	err = p.conn.Call(p.t.Context(), method, json.RawMessage(params), &result)
	return result, err
}

func (p *peer) call(method, params string) json.RawMessage {
	p.t.Helper()
	result, err := p.try(method, params)
	if err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
	return result
}

func (p *peer) notify(method, params string) {
	p.t.Helper()
	if err := p.conn.Notify(p.t.Context(), method, json.RawMessage(strings.ReplaceAll(params, "$", p.session))); err != nil {
		p.t.Fatal(err)
	}
}

// say prompts the agent, waits for the turn's end, and returns what was said in
// between and why it ended. The updates of the turn are kept.
func (p *peer) say(prompt string) (text, stop string, err error) {
	block, _ := json.Marshal(map[string]string{"type": "text", "text": prompt}) // always encodes
	return p.prompt(string(block))
}

func (p *peer) prompt(blocks string) (text, stop string, err error) {
	p.mu.Lock()
	p.updates, p.idles = nil, nil
	p.text.Reset()
	p.mu.Unlock()
	result, err := p.try("session/prompt", `{"sessionId":"$","prompt":[`+blocks+`],"_meta":{"k":1}}`)
	if err != nil {
		return "", "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.version == 1 {
		var r acpv1.PromptResponse
		p.decode(result, &r)
		return p.text.String(), string(r.StopReason), nil
	}
	idle := p.awaitIdle(1)
	return p.text.String(), string(idle.StopReason), nil
}

// awaitIdle waits for the nth idle state since the prompt. It is called with mu
// held.
func (p *peer) awaitIdle(n int) *acpv2.IdleStateUpdate {
	for len(p.idles) < n {
		p.changed.Wait()
	}
	return p.idles[n-1]
}

// await waits until something is so that changes with updates.
func (p *peer) await(f func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !f() {
		p.changed.Wait()
	}
}

// kinds are the kinds of the turn's updates, each once.
func (p *peer) kinds() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	kinds := map[string]bool{}
	for _, u := range p.updates {
		kinds[u.kind] = true
	}
	return kinds
}

func (p *peer) saw(kind string, value any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.updates = append(p.updates, seen{kind, value})
	switch u := value.(type) {
	case *acpv1.AgentMessageChunk:
		if text, ok := u.Content.(*acpv1.TextContent); ok {
			p.text.WriteString(text.Text)
		}
	case *acpv2.AgentMessageChunk:
		if text, ok := u.Content.(*acpv2.TextContent); ok {
			p.text.WriteString(text.Text)
		}
	case *acpv2.IdleStateUpdate:
		p.idles = append(p.idles, u)
	}
	p.changed.Broadcast()
}

func (p *peer) handle(mux *jsonrpc.Mux) {
	jsonrpc.Notification[json.RawMessage]{Name: "session/update"}.Handle(mux, func(_ context.Context, raw *json.RawMessage) error {
		var tag struct {
			Update struct{ SessionUpdate string }
		}
		if err := json.Unmarshal(*raw, &tag); err != nil {
			return err
		}
		if p.version == 1 {
			var n acpv1.SessionNotification
			if err := n.UnmarshalJSON(*raw); err != nil {
				return nil // some are meant to be malformed
			}
			p.saw(tag.Update.SessionUpdate, n.Update)
			return nil
		}
		var n acpv2.UpdateSessionNotification
		if err := n.UnmarshalJSON(*raw); err != nil {
			return nil
		}
		p.saw(tag.Update.SessionUpdate, n.Update)
		return nil
	})
	jsonrpc.Method[json.RawMessage, json.RawMessage]{Name: "session/request_permission"}.Handle(mux,
		func(ctx context.Context, raw *json.RawMessage) (*json.RawMessage, error) {
			p.saw("permission", slices.Clone(*raw))
			p.mu.Lock()
			answer := p.answer
			p.mu.Unlock()
			p.asked <- struct{}{}
			if answer == "" {
				<-ctx.Done()
				return new(json.RawMessage(`{"outcome":{"outcome":"cancelled"}}`)), nil
			}
			return new(json.RawMessage(`{"outcome":{"outcome":"selected","optionId":"` + answer + `"}}`)), nil
		})
	echo := func(name string, f func(params json.RawMessage) string) {
		jsonrpc.Method[json.RawMessage, json.RawMessage]{Name: name}.Handle(mux, func(_ context.Context, raw *json.RawMessage) (*json.RawMessage, error) {
			return new(json.RawMessage(f(*raw))), nil
		})
	}
	echo("_tspeer/client_echo", func(params json.RawMessage) string { return `{"echoed":` + string(params) + `}` })
	echo("fs/read_text_file", func(json.RawMessage) string { return `{"content":"read from the client"}` })
	echo("fs/write_text_file", func(json.RawMessage) string { return `{}` })
	echo("elicitation/create", func(params json.RawMessage) string {
		if strings.Contains(string(params), `"mode":"form"`) {
			return `{"action":"accept","content":{"ok":true,"name":"Ada"}}`
		}
		return `{"action":"accept"}`
	})
	note := func(name string) {
		jsonrpc.Notification[json.RawMessage]{Name: name}.Handle(mux, func(_ context.Context, raw *json.RawMessage) error {
			p.saw(name, slices.Clone(*raw))
			return nil
		})
	}
	note("elicitation/complete")
	note("_tspeer/client_note")
	p.handleMCP(mux)
}

// handleMCP serves the MCP server "toy".
func (p *peer) handleMCP(mux *jsonrpc.Mux) {
	jsonrpc.Method[acpv2.MessageMCPRequest, json.RawMessage]{Name: "mcp/message"}.Handle(mux,
		func(ctx context.Context, r *acpv2.MessageMCPRequest) (*json.RawMessage, error) {
			switch {
			case r.ServerID != "toy":
				return nil, jsonrpc.Errorf(-33001, "unknown server").WithData(map[string]any{"serverId": r.ServerID})
			case strings.Contains(string(r.Params), `"slow"`):
				<-ctx.Done()
				return nil, ctx.Err()
			case r.Method == "nope":
				return new(json.RawMessage(`{"error":{"code":-32601,"message":"no"}}`)), nil
			}
			for range 2 {
				if err := acpv2.NotificationMCPMessage.Notify(ctx, p.conn, &acpv2.MessageMCPNotification{
					ServerID: r.ServerID, RequestID: r.RequestID, Method: "progress",
				}); err != nil {
					return nil, err
				}
			}
			return new(json.RawMessage(`{"result":{"tools":[]}}`)), nil
		})
}

// lines is a client that reads and writes frames, for what depends on their
// order.
type lines struct {
	t      *testing.T
	stream jsonrpc.Stream
}

func dialLines(t *testing.T) *lines {
	ours, theirs := jsonrpc.Pipe()
	served := make(chan error, 1)
	go func() { served <- serve(context.Background(), theirs, options{}, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		if err := errors.Join(ours.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return &lines{t, ours}
}

// write writes a request, or a notification if its id is negative.
func (l *lines) write(id int, method, params string) {
	frame := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	if id < 0 {
		frame = fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
	}
	if err := l.stream.WriteFrame(frame); err != nil {
		l.t.Error(err)
	}
}

// read tells what the next frame is, if it is of interest.
func (l *lines) read() string {
	l.t.Helper()
	frame, err := l.stream.ReadFrame()
	if err != nil {
		l.t.Fatal(err)
	}
	var m struct {
		ID     *int
		Error  *jsonrpc.Error
		Params struct {
			Update struct {
				SessionUpdate string
				Content       json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(frame.Data, &m); err != nil {
		l.t.Fatal(err)
	}
	switch {
	case m.Error != nil:
		return fmt.Sprintf("answer %d, error %d", *m.ID, m.Error.Code)
	case m.ID != nil:
		return fmt.Sprintf("answer %d", *m.ID)
	case m.Params.Update.SessionUpdate == "available_commands_update":
		return "commands"
	case m.Params.Update.SessionUpdate == "agent_message_chunk":
		var text struct{ Text string }
		if err := json.Unmarshal(m.Params.Update.Content, &text); err != nil {
			l.t.Fatal(err)
		}
		return text.Text
	}
	return ""
}
