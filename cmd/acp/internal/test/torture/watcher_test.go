//go:build unix

package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/jsonrpc"
)

// metaKey is where _meta has what is said to the gateway.
const metaKey = "github.com/goacp/acp"

// An event is something that a client has seen or done.
type event struct {
	Kind   string `json:"kind"`            // see below
	Text   string `json:"text,omitempty"`  // what was said, the question, or the name of the operation
	Result string `json:"res,omitempty"`   // what became of the operation
	After  uint64 `json:"after,omitempty"` // the record that a connection follows
	// Version is that of the connection; whoever gathers events sets it.
	Version int `json:"-"`
}

// The kinds of events.
const (
	evOpen  = "open"  // a connection begins: everything after a record follows
	evSaid  = "said"  // an update
	evAsked = "asked" // a question
	evBegin = "begin" // an operation is sent for the first time, or again by a client that was started again
	evEnd   = "end"   // it has an outcome
)

// A watcher is a client that connects again, as often as it takes, until it is stopped.
type watcher struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
	WS      bool   `json:"ws"`   // over a WebSocket
	Load    bool   `json:"load"` // it loads the session each time; otherwise it resumes it after a cursor
	Session string `json:"session"`
	Cwd     string `json:"cwd"`
	URLs    string `json:"urls"` // the file that has the URL of the server
	Next    int    `json:"next"` // number of its first operation
	Prompts bool   `json:"prompts"`
	Retry   bool   `json:"-"` // its connections survive those of the network, if the server can do that
	Most    int    `json:"-"` // operations after which it only watches; 0 is no bound
	Tag     string `json:"-"` // what the names of its operations have

	sink   func(event)
	cursor uint64
	visits int
	done   atomic.Bool // it shall end after the operation that runs
}

// transport returns the way to the server that runs now.
func (w *watcher) transport() (acp.Transport, error) {
	data, err := os.ReadFile(w.URLs)
	if err != nil {
		return nil, err
	}
	url := strings.TrimSpace(string(data))
	retryFor := time.Duration(-1)
	if w.Retry {
		retryFor = 0
	}
	if w.WS {
		return &acpws.Transport{URL: "ws" + strings.TrimPrefix(url, "http"), RetryFor: retryFor}, nil
	}
	return &acphttp.Transport{URL: url, RetryFor: retryFor}, nil
}

// again is how long a client waits until it tries again to connect.
const again = 5 * time.Millisecond

// run connects again and again until ctx ends or, if the client prompts, it has done its last operation.
func (w *watcher) run(ctx context.Context) error {
	for ctx.Err() == nil {
		over, err := w.visit(ctx)
		if over || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
	return nil
}

// visit is one connection. It reports whether it was the last one.
func (w *watcher) visit(ctx context.Context) (over bool, err error) {
	t, err := w.transport()
	if err != nil {
		return false, err
	}
	client := &acp.Client{
		MinVersion: w.Version, MaxVersion: w.Version,
		Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			if text := describe(u, w.Version); text != "" && !u.Synthetic {
				w.sink(event{Kind: evSaid, Text: text})
			}
		},
		RequestPermission: func(ctx context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			w.sink(event{Kind: evAsked, Text: r.Title})
			select { // so that it is not always the same one who is first
			case <-time.After(time.Duration(rand.Int64N(int64(2 * time.Millisecond)))):
			case <-ctx.Done():
			}
			id := acp.PermissionOptionID(w.Name)
			if !slices.ContainsFunc(r.Options, func(o acp.PermissionOption) bool { return o.OptionID == id }) {
				id = r.Options[0].OptionID
			}
			return acp.SelectPermission(id), nil
		},
	}
	bound, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	conn, err := client.Connect(bound, t)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	s, err := w.enter(bound, conn)
	if err != nil {
		return false, err
	}
	for w.Prompts && (w.Most == 0 || w.Next < w.Most) && conn.Conn().Err() == nil && ctx.Err() == nil {
		if over, err = w.operate(ctx, s); over || err != nil {
			return over, err
		}
	}
	select {
	case <-conn.Done():
	case <-ctx.Done():
	}
	return false, nil
}

// enter opens the session.
func (w *watcher) enter(ctx context.Context, conn *acp.ClientConn) (s *acp.ClientSession, err error) {
	cfg := acp.SessionConfig{Cwd: w.Cwd}
	load := w.Load || w.cursor == 0 || w.visits%3 == 0 // which also gives it a new cursor
	w.visits++
	if load {
		w.sink(event{Kind: evOpen})
		s, err = conn.Load(ctx, acp.SessionID(w.Session), cfg)
	} else {
		cfg.Meta = fmt.Appendf(nil, `{%q:{"cursor":%d}}`, metaKey, w.cursor)
		w.sink(event{Kind: evOpen, After: w.cursor})
		s, err = conn.Resume(ctx, acp.SessionID(w.Session), cfg)
	}
	if err != nil {
		return nil, err
	}
	var meta map[string]struct{ Cursor uint64 }
	if json.Unmarshal(s.Meta(), &meta) == nil && load {
		w.cursor = meta[metaKey].Cursor
	}
	return s, nil
}

// lastOp begins the names of operations after which a client that prompts is done, once one has ended well: an agent that
// was killed just before may still take one with it.
const lastOp = "op-last"

// operate sends the next prompt, or one again of which it is not known what became.
func (w *watcher) operate(ctx context.Context, s *acp.ClientSession) (over bool, err error) {
	op := task{Op: fmt.Sprintf("op-%s%d", w.Tag, w.Next), Chunks: 20 + w.Next*37%180, Asks: 10 + w.Next%17}
	last := w.done.Load()
	if last {
		op = task{Op: lastOp + strconv.Itoa(w.Next), Chunks: 1}
	}
	text, err := json.Marshal(op)
	if err != nil {
		return false, err
	}
	w.sink(event{Kind: evBegin, Text: op.Op})
	res, err := s.PromptRequest(ctx, &acpv2.PromptRequest{
		Prompt: []acp.ContentBlock{acp.Text(string(text))}, Meta: fmt.Appendf(nil, `{%q:{"operationId":%q}}`, metaKey, op.Op),
	}).Wait()
	e := event{Kind: evEnd, Text: op.Op}
	answer := (*jsonrpc.Error)(nil)
	switch {
	case err == nil:
		e.Result = string(res.StopReason)
	case errors.As(err, &answer):
		e.Result = "error: " + answer.Error()
	default: // the connection has ended: it is sent again
		return false, err
	}
	w.sink(e)
	w.Next++
	return last && e.Result == string(acp.StopEndTurn), nil
}

// describe writes an update as text; "" is nothing of interest.
func describe(u *acp.Update, version int) string {
	switch v := u.Update.(type) {
	case *acp.UserMessage:
		if content, ok := v.Content.Get(); ok && len(content) > 0 {
			return "user: " + content[0].(*acp.TextContent).Text
		}
	case *acp.UserMessageChunk:
		return "user: " + v.Content.(*acp.TextContent).Text
	case *acp.AgentMessageChunk:
		text := v.Content.(*acp.TextContent).Text
		if version == 1 && !strings.HasPrefix(text, "op-") {
			return notice(text)
		}
		return "agent: " + text
	case *acp.Notice:
		return notice(v.Title)
	}
	return ""
}

// notice returns the first sentence of a notice: version 1 has more in the same text.
func notice(text string) string {
	text, _, _ = strings.Cut(text, ".")
	return "notice: " + text
}

// playClient is a watcher in a process of its own. It reads what it is from the first line of standard
// input, writes events to standard output, and begins its last operation at the end of the input.
func playClient() error {
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	w := new(watcher)
	if err := json.Unmarshal(line, w); err != nil {
		return err
	}
	var mu sync.Mutex
	w.sink = func(e event) {
		data, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = os.Stdout.Write(append(data, '\n'))
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		w.done.Store(true)
	}()
	return w.run(context.Background())
}
