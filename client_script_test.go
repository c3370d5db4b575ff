package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
)

// clientScript is an agent that does nothing but what a test tells it to, frame
// by frame. It works in synctest bubbles only.
type clientScript struct {
	t      *testing.T
	stream jsonrpc.Stream

	mu   sync.Mutex
	got  []clientFrame
	left bool // the client has closed the connection
}

type clientFrame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code int
		Data json.RawMessage
	} `json:"error"`
}

func newClientScript(t *testing.T, stream jsonrpc.Stream) *clientScript {
	a := &clientScript{t: t, stream: stream}
	go func() {
		for {
			f, err := stream.ReadFrame()
			a.mu.Lock()
			if err != nil {
				a.left = true
				a.mu.Unlock()
				return
			}
			var frame clientFrame
			if err := json.Unmarshal(f.Data, &frame); err != nil {
				t.Errorf("the client wrote %s: %v", f.Data, err)
			}
			a.got = append(a.got, frame)
			a.mu.Unlock()
		}
	}()
	return a
}

// next returns the next frame the client wrote, once nothing moves any more.
func (a *clientScript) next(method string) clientFrame {
	a.t.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.got) == 0 {
		a.t.Fatalf("the client wrote nothing; want %s", method)
	}
	f := a.got[0]
	a.got = a.got[1:]
	if f.Method != method {
		a.t.Fatalf("the client wrote %s %s; want %s", f.Method, f.Params, method)
	}
	return f
}

// response returns the next frame, which must be an answer: its result, or its
// error's code and data.
func (a *clientScript) response() string {
	a.t.Helper()
	f := a.next("")
	if f.Error != nil {
		return fmt.Sprintf("%d %s", f.Error.Code, f.Error.Data)
	}
	return string(f.Result)
}

// silent fails if the client wrote anything.
func (a *clientScript) silent() {
	a.t.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.got {
		a.t.Errorf("the client wrote %s %s", f.Method, f.Params)
	}
}

func (a *clientScript) send(format string, args ...any) {
	a.t.Helper()
	if err := a.stream.WriteFrame(fmt.Appendf(nil, format, args...)); err != nil {
		a.t.Fatal(err)
	}
}

func (a *clientScript) answer(f clientFrame, result string) {
	a.t.Helper()
	a.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, f.ID, result)
}

func (a *clientScript) refuse(f clientFrame, code int, data string) {
	a.t.Helper()
	a.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no","data":%s}}`, f.ID, code, data)
}

func (a *clientScript) request(id int, method, params string) {
	a.t.Helper()
	a.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}

func (a *clientScript) notify(method, params string) {
	a.t.Helper()
	a.send(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}

// update sends an update of session s; fields are the members of the update.
func (a *clientScript) update(kind, fields string) {
	a.t.Helper()
	a.updateOf("s", kind, fields)
}

func (a *clientScript) updateOf(session, kind, fields string) {
	a.t.Helper()
	if fields != "" {
		fields = "," + fields
	}
	a.notify("session/update", fmt.Sprintf(`{"sessionId":%q,"update":{"sessionUpdate":%q%s}}`, session, kind, fields))
}

// say sends a piece of the agent's message.
func (a *clientScript) say(text string) {
	a.t.Helper()
	a.update("agent_message_chunk", fmt.Sprintf(`"messageId":"m","content":{"type":"text","text":%q}`, text))
}

func (a *clientScript) state(state, fields string) {
	a.t.Helper()
	if fields != "" {
		fields = "," + fields
	}
	a.update("state_update", fmt.Sprintf(`"state":%q%s`, state, fields))
}

const (
	clientAllV1 = `{"loadSession":true,"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},
		"mcpCapabilities":{"http":true,"sse":true,"acp":true},"auth":{"logout":{},"status":{}},"providers":{},
		"sessionCapabilities":{"list":{},"delete":{},"additionalDirectories":{},"resume":{},"close":{},"fork":{},
		"archive":{},"status":{},"title":{},"systemPrompt":{"mode":{"override":{}}}}}`
	clientAllV2 = `{"session":{"prompt":{"image":{},"audio":{},"embeddedContext":{}},"mcp":{"stdio":{},"http":{},"acp":{}},
		"delete":{},"additionalDirectories":{},"fork":{},"archive":{},"status":{},"title":{},
		"systemPrompt":{"mode":{"override":{}}}},"auth":{"status":{}},"providers":{}}`
)

func clientAll(version int) string {
	if version == 1 {
		return clientAllV1
	}
	return clientAllV2
}

// clientHelloResult is the answer to initialize.
func clientHelloResult(version int, caps string) string {
	if version == 1 {
		return fmt.Sprintf(`{"protocolVersion":1,"agentCapabilities":%s,"authMethods":[{"id":"a","name":"A"},{"type":"terminal","id":"t","name":"T"}]}`, caps)
	}
	return fmt.Sprintf(`{"protocolVersion":2,"info":{"name":"agent","version":"1"},"capabilities":%s,
		"authMethods":[{"type":"agent","methodId":"a","name":"A"},{"type":"terminal","methodId":"t","name":"T"}]}`, caps)
}

// clientLink connects a client with a scripted agent of the given version.
func clientLink(t *testing.T, c Client, version int, caps string) (*ClientConn, *clientScript) {
	t.Helper()
	ours, theirs := jsonrpc.Pipe()
	a := newClientScript(t, ours)
	c.MaxVersion = version
	c.Logger = cmp.Or(c.Logger, logtest.New(t))
	type result struct {
		conn *ClientConn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := c.Connect(t.Context(), Over(theirs))
		done <- result{conn, err}
	}()
	a.answer(a.next("initialize"), clientHelloResult(version, caps))
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	t.Cleanup(func() {
		if err := r.conn.Close(); err != nil {
			t.Error(err)
		}
		<-r.conn.Done()
		if err := r.conn.Wait(); err != nil {
			t.Error(err)
		}
		_ = ours.Close()
	})
	return r.conn, a
}

// later runs f and returns what gives its result.
func later[T any](f func() (T, error)) func() (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	return func() (T, error) { r := <-done; return r.v, r.err }
}

func laterErr(f func() error) func() error {
	get := later(func() (struct{}, error) { return struct{}{}, f() })
	return func() error { _, err := get(); return err }
}

const clientRoot = "/w"

// session opens session s.
func (a *clientScript) session(c *ClientConn) *ClientSession {
	a.t.Helper()
	get := later(func() (*ClientSession, error) { return c.NewSession(a.t.Context(), SessionConfig{Cwd: clientRoot}) })
	a.answer(a.next("session/new"), `{"sessionId":"s"}`)
	s, err := get()
	if err != nil {
		a.t.Fatal(err)
	}
	return s
}

// both runs a test for either version, in a bubble, with a session that is open.
func both(t *testing.T, c Client, f func(t *testing.T, s *ClientSession, a *clientScript)) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) { single(t, c, version, f) })
	}
}

func single(t *testing.T, c Client, version int, f func(t *testing.T, s *ClientSession, a *clientScript)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		conn, a := clientLink(t, c, version, clientAll(version))
		f(t, a.session(conn), a)
	})
	clientNoLeaks(t)
}

// clientNoLeaks fails if goroutines of the client are left that no bubble has
// caught.
func clientNoLeaks(t *testing.T) {
	t.Helper()
	var left string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); runtime.Gosched() {
		buf := make([]byte, 1<<20)
		left = ""
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "acp.(*ClientConn)") || strings.Contains(g, "acp.(*Reply)") {
				left += g + "\n\n"
			}
		}
		if left == "" {
			return
		}
	}
	t.Error("goroutines left behind:\n" + left)
}

// short describes an update in a few words.
func (u *Update) short() string {
	block := func(b ContentBlock) string {
		if t, ok := b.(*TextContent); ok {
			return t.Text
		}
		return fmt.Sprintf("%T", b)
	}
	mark := ""
	if u.Replayed {
		mark += "replayed "
	}
	if u.Synthetic {
		mark += "made-up "
	}
	switch v := u.Update.(type) {
	case *AgentMessageChunk:
		return mark + "say " + block(v.Content)
	case *UserMessage:
		content, _ := v.Content.Get()
		text := ""
		for _, b := range content {
			text += block(b)
		}
		return mark + "user " + text
	case *UserMessageChunk:
		return mark + "user+ " + block(v.Content)
	case *RunningStateUpdate:
		return mark + "running"
	case *RequiresActionStateUpdate:
		return mark + "requires action"
	case *IdleStateUpdate:
		return strings.TrimSuffix(mark+"idle "+string(v.StopReason), " ")
	case *ToolCallUpdate:
		return mark + "tool " + string(v.ToolCallID) + " " + v.Title.Or("")
	case *UnknownSessionUpdate:
		return mark + "unknown " + v.Type
	}
	return mark + strings.TrimPrefix(fmt.Sprintf("%T", u.Update), "*acpv2.")
}

// collect reads a reply to its end.
func (r *Reply) collect() (list []string, err error) {
	for u, err := range r.Updates() {
		if err != nil {
			if errors.Is(err, ErrUpdatesLost) {
				list = append(list, "lost")
				continue
			}
			return list, err
		}
		list = append(list, u.short())
	}
	return list, nil
}

// gather reads a reply in the background.
func (r *Reply) gather() func() ([]string, error) {
	return later(r.collect)
}

// clientTold collects what an Update hook is told.
type clientTold struct {
	mu   sync.Mutex
	list []string
}

func (s *clientTold) hook(_ context.Context, _ *ClientSession, u *Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, u.short())
}

func (s *clientTold) take() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}
