package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
)

// A steerPeer plays how an agent takes messages: as the most used ones do, over the wire, or as an agent of this package.
type steerPeer struct {
	mu      sync.Mutex
	got     map[string]int // the texts that it has got
	running bool
	run     int           // goose: the number of the run
	begun   chan struct{} // a turn that lasts
	release chan struct{} // and ends then
}

func newSteerPeer() *steerPeer {
	return &steerPeer{got: map[string]int{}, begun: make(chan struct{}, 1), release: make(chan struct{}, 1)}
}

func textOfPrompt(raw json.RawMessage) string {
	var p struct{ Prompt []struct{ Text string } }
	if json.Unmarshal(raw, &p) != nil || len(p.Prompt) != 1 {
		return "?"
	}
	return p.Prompt[0].Text
}

// take notes that the agent has a message.
func (p *steerPeer) take(text string) { p.got[text]++ }

// work is a turn. One whose text begins with g lasts until it is released. queued, if there is one, is where a second prompt
// waits; otherwise it is refused.
func (p *steerPeer) work(text string, queued chan struct{}) (refused bool) {
	if queued != nil {
		queued <- struct{}{}
		defer func() { <-queued }()
	}
	p.mu.Lock()
	if p.running {
		p.mu.Unlock()
		return true
	}
	p.running = true
	p.run++
	p.take(text)
	p.mu.Unlock()
	if text[0] == 'g' {
		p.begun <- struct{}{}
		<-p.release
	}
	p.mu.Lock()
	p.running = false
	p.mu.Unlock()
	return false
}

// serve answers a client of version 1 as an agent of that name does.
func (p *steerPeer) serve(t *testing.T, name string, stream jsonrpc.Stream) {
	mux := new(jsonrpc.Mux)
	raw := func(method string, f func(params json.RawMessage) (string, error)) {
		jsonrpc.Method[json.RawMessage, json.RawMessage]{Name: method}.Handle(mux, func(_ context.Context, params *json.RawMessage) (*json.RawMessage, error) {
			res, err := f(*params)
			out := json.RawMessage(res)
			return &out, err
		})
	}
	meta := `,"_meta":{"steering":{"supported":true}}`
	var queued chan struct{}
	if name == "goose" {
		meta = ""
	} else {
		queued = make(chan struct{}, 1)
	}
	raw("initialize", func(json.RawMessage) (string, error) {
		return `{"protocolVersion":1,"agentCapabilities":{}` + meta + `}`, nil
	})
	raw("session/new", func(json.RawMessage) (string, error) { return `{"sessionId":"s"}`, nil })
	var conn *jsonrpc.Conn
	goose := func(run string) {
		if name == "goose" {
			_ = conn.Notify(context.Background(), "session/update", json.RawMessage(
				`{"sessionId":"s","update":{"sessionUpdate":"session_info_update","_meta":{"goose":{"activeRunId":`+run+`}}}}`))
		}
	}
	raw("session/prompt", func(params json.RawMessage) (string, error) {
		p.mu.Lock()
		run := `"` + strconv.Itoa(p.run+1) + `"`
		busy := p.running
		p.mu.Unlock()
		if !busy && textOfPrompt(params)[0] == 'g' {
			goose(run)
		}
		if p.work(textOfPrompt(params), queued) {
			return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "busy", Data: json.RawMessage(`"session already has an active run"`)}
		}
		goose("null")
		return `{"stopReason":"end_turn"}`, nil
	})
	raw(methodSteering, func(params json.RawMessage) (string, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case p.running:
			p.take(textOfPrompt(params))
			return `{"outcome":"injected"}`, nil
		case name == "codex": // as long as it does not know idleBehavior
			p.take(textOfPrompt(params))
			return `{"outcome":"startedNewTurn"}`, nil
		}
		return `{"outcome":"promptRequired","reason":"noRunningTurn"}`, nil
	})
	raw("_goose/unstable/session/steer", func(params json.RawMessage) (string, error) {
		var r struct{ ExpectedRunID string }
		_ = json.Unmarshal(params, &r)
		p.mu.Lock()
		defer p.mu.Unlock()
		refusal := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params"}
		switch actual := strconv.Itoa(p.run); {
		case !p.running:
			refusal.Data = json.RawMessage(`"no active run to steer"`)
			return "", refusal
		case actual != r.ExpectedRunID:
			refusal.Data = fmt.Appendf(nil, `{"expectedRunId":%q,"actualRunId":%q}`, r.ExpectedRunID, actual)
			return "", refusal
		}
		p.take(textOfPrompt(params))
		return fmt.Sprintf(`{"runId":%q,"messageId":"m"}`, r.ExpectedRunID), nil
	})
	conn = jsonrpc.NewConn(stream, jsonrpc.Config{Mux: mux, Logger: logtest.New(t)})
}

// agent is the same as an agent of this package.
func (p *steerPeer) agent(t *testing.T) *Agent {
	return &Agent{Busy: BusySteer, Logger: logtest.New(t), Prompt: func(ctx context.Context, turn *Turn) (StopReason, error) {
		take := func(text string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.take(text)
		}
		take(turn.Text())
		if turn.Text()[0] != 'g' {
			return StopEndTurn, nil
		}
		p.begun <- struct{}{}
		for {
			select {
			case blocks := <-turn.Steering():
				take(blocksText(blocks))
			case <-p.release:
				return StopEndTurn, nil
			case <-ctx.Done():
				return StopCancelled, nil
			}
		}
	}}
}

// deliver does with a message what Steer says: it is put into the turn, becomes a prompt, or waits until the turn has ended.
func deliver(ctx context.Context, s *ClientSession, turn *Reply, text string) (SteerOutcome, error) {
	outcome, err := s.Steer(ctx, Text(text))
	if err == nil && (outcome == SteerPromptRequired || outcome == SteerQueued) {
		_, err = s.Prompt(ctx, Text(text)).Wait()
	}
	if IsSteerRefused(err) {
		<-turn.Done()
		_, err = s.Prompt(ctx, Text(text)).Wait()
	}
	return outcome, err
}

// TestSteerRace: a message that meets the end of the turn is delivered once, to whichever agent.
func TestSteerRace(t *testing.T) {
	const rounds = 1000
	for _, name := range []string{"claude", "codex", "goose", "ours, version 1", "ours, version 2"} {
		t.Run(name, func(t *testing.T) {
			p := newSteerPeer()
			here, there := jsonrpc.Pipe()
			version := 1
			if name == "ours, version 2" {
				version = 2
			}
			if name[0] == 'o' {
				if _, err := p.agent(t).Connect(t.Context(), Over(there)); err != nil {
					t.Fatal(err)
				}
			} else {
				p.serve(t, name, there)
			}
			known := make(chan struct{}, 1) // goose: the client knows the run
			client := &Client{MinVersion: version, MaxVersion: version, Logger: logtest.New(t), Update: func(_ context.Context, s *ClientSession, u *Update) {
				if _, ok := u.Update.(*SessionInfoUpdate); ok && s.activeRun() != "" {
					known <- struct{}{}
				}
			}}
			conn, err := client.Connect(t.Context(), Over(here))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/w"})
			if err != nil {
				t.Fatal(err)
			}
			for i := range rounds {
				turn := s.Prompt(t.Context(), Text("go "+strconv.Itoa(i)))
				<-p.begun
				if name == "goose" {
					<-known
				}
				text := "more " + strconv.Itoa(i)
				released := make(chan struct{})
				go func() {
					defer close(released)
					for range i % 32 { // a little later each time
						runtime.Gosched()
					}
					p.release <- struct{}{}
				}()
				outcome, err := deliver(t.Context(), s, turn, text)
				if err != nil {
					t.Fatalf("round %d: %q, %v", i, outcome, err)
				}
				<-released
				if _, err := turn.Wait(); err != nil {
					t.Fatalf("round %d: %v", i, err)
				}
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.got) != 2*rounds {
				t.Errorf("%d texts were delivered, of %d", len(p.got), 2*rounds)
			}
			for text, n := range p.got {
				if n != 1 {
					t.Errorf("%q was delivered %d times", text, n)
				}
			}
		})
	}
}
