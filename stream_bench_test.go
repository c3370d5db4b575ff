package acp

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// linePeer is a peer that says the same line over and over, from memory.
type linePeer struct {
	text []byte // some lines
	line int    // the length of one

	mu     sync.Mutex
	cond   *sync.Cond
	left   int // lines that may still be read
	closed bool
}

func newLines(line string, n int) *linePeer {
	l := &linePeer{text: bytes.Repeat([]byte(line), n), line: len(line)}
	l.cond = sync.NewCond(&l.mu)
	return l
}

func (l *linePeer) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.left == 0 && !l.closed {
		l.cond.Wait()
	}
	if l.closed {
		return 0, io.EOF
	}
	n := min(len(p)/l.line, l.left, len(l.text)/l.line)
	l.left -= n
	return copy(p, l.text[:n*l.line]), nil
}

// say lets n more lines be read.
func (l *linePeer) say(n int) {
	l.mu.Lock()
	l.left += n
	l.cond.Broadcast()
	l.mu.Unlock()
}

func (l *linePeer) Close() error {
	l.mu.Lock()
	l.closed = true
	l.cond.Broadcast()
	l.mu.Unlock()
	return nil
}

func (l *linePeer) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkReceive receives pieces of text in windows of 1,000, with the engine
// alone and with package acp.
func BenchmarkReceive(b *testing.B) {
	const line = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_ABCDEFGHIJKLMNOPQRSTUVWXYZ","update":{"sessionUpdate":"agent_message_chunk","messageId":"msg_1","content":{"type":"text","text":"twenty-four bytes of it."}}}}` + "\n"
	const window = 1000
	run := func(b *testing.B, l *linePeer, done chan struct{}) {
		b.ReportAllocs()
		for n := 0; n < b.N; n += window {
			l.say(window)
			<-done
		}
	}
	b.Run("engine", func(b *testing.B) {
		l := newLines(line, 500)
		done := make(chan struct{})
		seen := 0
		mux := new(jsonrpc.Mux)
		total := 0
		acpv1.NotificationSessionUpdate.Handle(mux, func(_ context.Context, n *acpv1.SessionNotification) error {
			if u, ok := n.Update.(*acpv1.AgentMessageChunk); ok {
				if t, ok := u.Content.(*acpv1.TextContent); ok {
					total += len(t.Text)
				}
			}
			if seen++; seen%window == 0 {
				done <- struct{}{}
			}
			return nil
		})
		c := jsonrpc.NewConn(jsonrpc.NewLineStream(l, l), jsonrpc.Config{Mux: mux, Lane: laneOf})
		run(b, l, done)
		b.StopTimer()
		_ = c.Close()
	})
	b.Run("acp", func(b *testing.B) {
		l := newLines(line, 500)
		done := make(chan struct{})
		seen, total := 0, 0
		client, err := (&Client{MaxVersion: 1, Update: func(_ context.Context, _ *ClientSession, u *Update) {
			total += len(u.Text())
			if seen++; seen%window == 0 {
				done <- struct{}{}
			}
		}}).ready()
		if err != nil {
			b.Fatal(err)
		}
		c := newClientConn(b.Context(), client, jsonrpc.NewLineStream(l, l), nil)
		p := c.newPeer(1)
		c.peer.Store(p)
		c.conn.SetMux(p.mux)
		s := c.known("sess_ABCDEFGHIJKLMNOPQRSTUVWXYZ", clientRoot)
		r := s.newReply(b.Context())
		r.buffer.begun, r.buffer.reader, r.call.cancel = true, readerGone, func(error) {}
		s.line.Discard(&r.call.mark) // nobody waits for its answer
		s.replies = []*Reply{r}
		run(b, l, done)
		b.StopTimer()
		_ = c.Close()
	})
}

// BenchmarkSend sends pieces of text, with the engine alone and with package acp.
func BenchmarkSend(b *testing.B) {
	const text = "twenty-four bytes of it."
	b.Run("engine", func(b *testing.B) {
		l := newScript(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"sess","prompt":[{"type":"text","text":"go"}]}}` + "\n")
		mux := new(jsonrpc.Mux)
		acpv1.MethodSessionPrompt.Handle(mux, func(ctx context.Context, p *acpv1.PromptRequest) (*acpv1.PromptResponse, error) {
			conn := jsonrpc.RequestFrom(ctx).Conn()
			n := &acpv1.SessionNotification{SessionID: "sess_ABCDEFGHIJKLMNOPQRSTUVWXYZ", Update: &acpv1.AgentMessageChunk{MessageID: "msg_1", Content: acpv1.Text(text)}}
			b.ReportAllocs()
			for b.Loop() {
				if err := acpv1.NotificationSessionUpdate.Notify(ctx, conn, n); err != nil {
					b.Error(err)
				}
			}
			l.Close()
			return &acpv1.PromptResponse{StopReason: acpv1.StopReasonEndTurn}, nil
		})
		_ = jsonrpc.NewConn(jsonrpc.NewLineStream(l, l), jsonrpc.Config{Mux: mux}).Wait()
	})
	b.Run("acp", func(b *testing.B) {
		l := newScript(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`+"\n",
			`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`+"\n",
			`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"sess","prompt":[{"type":"text","text":"go"}]}}`+"\n")
		agent := Agent{
			MaxVersion: 1,
			NewSession: func(_ context.Context, s *AgentSession) error { s.SetID("sess"); return nil },
			Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
				b.ReportAllocs()
				for b.Loop() {
					if err := t.Say(text); err != nil {
						b.Error(err)
					}
				}
				l.Close()
				return StopEndTurn, nil
			},
		}
		_ = agent.Serve(b.Context(), Over(jsonrpc.NewLineStream(l, l)))
	})
}

// scriptPeer is a peer that says its next line when it is told something.
type scriptPeer struct {
	next   chan string
	rest   []string
	mu     sync.Mutex
	closed sync.Once
}

func newScript(lines ...string) *scriptPeer {
	s := &scriptPeer{next: make(chan string, 10), rest: lines[1:]}
	s.next <- lines[0]
	return s
}

func (s *scriptPeer) Read(p []byte) (int, error) {
	l, ok := <-s.next
	if !ok {
		return 0, io.EOF
	}
	return copy(p, l), nil
}

func (s *scriptPeer) Write(p []byte) (int, error) {
	s.mu.Lock()
	if len(s.rest) > 0 {
		s.next <- s.rest[0]
		s.rest = s.rest[1:]
	}
	s.mu.Unlock()
	return len(p), nil
}

func (s *scriptPeer) Close() error { s.closed.Do(func() { close(s.next) }); return nil }
