// Command rawagent is an agent on standard input and output, written on the
// wire types and the engine alone: it echoes what it is asked, in pieces, and
// stops when it is cancelled.
//
//	rawagent [-protocol 1|2]
//
// It shows what the layers below the application interface ask of their user:
// the session's lane, the cancel scope of a prompt, and the order of updates
// and answers. For anything else start from package acp.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"

	"github.com/goacp/acp/jsonrpc"
)

func main() {
	protocol := flag.Int("protocol", 1, "protocol `version` to speak, 1 or 2")
	flag.Parse()
	if flag.NArg() > 0 || *protocol != 1 && *protocol != 2 {
		fmt.Fprintln(os.Stderr, "usage: rawagent [-protocol 1|2]")
		os.Exit(2)
	}
	// Ctrl-C in a terminal reaches the client and us. It is for the client to
	// cancel the turn, or to end our input, which ends us.
	signal.Ignore(os.Interrupt)
	conn := serve(jsonrpc.Stdio(), *protocol, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err := conn.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "rawagent:", err)
		os.Exit(1)
	}
}

// serve runs the agent on a stream.
func serve(stream jsonrpc.Stream, protocol int, log *slog.Logger) *jsonrpc.Conn {
	mux := &jsonrpc.Mux{StrictIDs: protocol == 2}
	a := &agent{sessions: map[string]bool{}, turns: map[string][]*turn{}}
	if protocol == 1 {
		a.handleV1(mux)
	} else {
		a.handleV2(mux)
	}
	return jsonrpc.NewConn(stream, jsonrpc.Config{
		Mux:      mux,
		Lane:     lane,
		Preempt:  a.preempt,
		Logger:   log,
		Settings: jsonrpc.Settings{Incoming: []jsonrpc.Middleware{a.gate}},
	})
}

// errCancelled is the cause a turn is cancelled with by session/cancel.
var errCancelled = errors.New("session/cancel")

// An agent keeps which turns run in which session.
type agent struct {
	mu       sync.Mutex
	hello    chan struct{} // closed when initialize was handled; nil before it arrived
	open     bool          // it succeeded
	sessions map[string]bool
	messages int
	turns    map[string][]*turn
}

// A turn is a prompt from its arrival to its end.
type turn struct {
	req    *jsonrpc.Request
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func notInitialized(method string) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "ACP connection must be initialized before %q", method)
}

// arrive holds the rule that the first request is initialize (S48). It sees the
// requests in the order they arrive in.
func (a *agent) arrive(req *jsonrpc.Request) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case req.IsNotification():
	case req.Method == "initialize":
		a.hello, a.open = make(chan struct{}), false
	case a.hello == nil:
		return notInitialized(req.Method)
	}
	return nil
}

// gate holds what arrived behind initialize until that was handled.
func (a *agent) gate(next jsonrpc.Handler) jsonrpc.Handler {
	return func(ctx context.Context, req *jsonrpc.Request) (any, error) {
		a.mu.Lock()
		hello := a.hello
		a.mu.Unlock()
		if req.IsNotification() {
			return next(ctx, req)
		}
		if req.Method == "initialize" {
			res, err := next(ctx, req)
			a.mu.Lock()
			a.open = err == nil
			a.mu.Unlock()
			close(hello)
			return res, err
		}
		select {
		case <-hello:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		a.mu.Lock()
		open := a.open
		a.mu.Unlock()
		if !open {
			return nil, notInitialized(req.Method)
		}
		return next(ctx, req)
	}
}

// absolute refuses a working directory that is not absolute.
func absolute(cwd string) error {
	if filepath.IsAbs(cwd) {
		return nil
	}
	e := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params")
	e.Data = []byte(`{"path":"params.cwd","reason":"must be absolute"}`)
	return e
}

// serverRefused refuses the MCP server at an index, whose kind was not offered or
// is not known (S85, S86).
func serverRefused(i int) error {
	e := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params")
	e.Data = fmt.Appendf(nil, `{"path":"params.mcpServers[%d]","reason":"this agent takes no MCP servers of this kind"}`, i)
	return e
}

func (a *agent) newSession() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := fmt.Sprintf("session-%d", len(a.sessions)+1)
	a.sessions[id] = true
	return id
}

func (a *agent) newMessage() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.messages++
	return fmt.Sprintf("message-%d", a.messages)
}

// begin notes a prompt of a session. It runs before the prompt is queued, so
// that a cancel behind it in the same write finds it. A session nobody opened
// is refused (S30).
func (a *agent) begin(session string, req *jsonrpc.Request) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.sessions[session] {
		e := jsonrpc.Errorf(jsonrpc.CodeResourceNotFound, "Resource not found")
		e.Data, _ = json.Marshal(map[string]string{"sessionId": session}) // strings always encode
		return e
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	a.turns[session] = append(a.turns[session], &turn{req, ctx, cancel})
	return nil
}

// turn returns what begin noted for the request that ctx belongs to.
func (a *agent) turn(session string, ctx context.Context) *turn {
	req := jsonrpc.RequestFrom(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.turns[session] {
		if t.req.ID == req.ID {
			return t
		}
	}
	panic("a prompt that preempt did not see")
}

// end forgets a turn.
func (a *agent) end(session string, t *turn) {
	t.cancel(nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	left := a.turns[session][:0]
	for _, o := range a.turns[session] {
		if o != t {
			left = append(left, o)
		}
	}
	if a.turns[session] = left; len(left) == 0 {
		delete(a.turns, session)
	}
}

// cancel cancels the turns of a session that arrived so far (S40, S42).
func (a *agent) cancel(session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.turns[session] {
		t.cancel(errCancelled)
	}
}

// echo sends text word by word until it is done or the turn is cancelled. The
// word "wait" waits for that.
func (t *turn) echo(ctx context.Context, text string, say func(string) error) (cancelled bool, err error) {
	for _, word := range strings.SplitAfter(text, " ") {
		if strings.TrimSpace(word) == "wait" {
			select {
			case <-t.ctx.Done():
			case <-ctx.Done():
				return false, context.Cause(ctx)
			}
		}
		if t.ctx.Err() != nil {
			return true, nil
		}
		if err := say(word); err != nil {
			return false, err
		}
	}
	return false, nil
}
