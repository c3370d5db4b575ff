package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// TestOwnTurns: a client may have a bounded number of prompts that wait, and learns that it has too many. Those of others
// are not affected.
func TestOwnTurns(t *testing.T) {
	for version := 1; version <= 2; version++ {
		goOn := make(chan struct{})
		r := newRig(t, talking(goOn))
		c := r.connect(version)
		s := c.new(t)
		running := s.Prompt(t.Context(), acp.Text("wait"))
		c.seen.until(t, "agent: waiting")
		var waiting []*acp.Reply
		refused := 0
		for range maxOwnTurns + 4 {
			waiting = append(waiting, s.Prompt(t.Context(), acp.Text("x")))
		}
		other := r.connect(version).load(t, s.ID()).Prompt(t.Context(), acp.Text("y"))
		for _, reply := range waiting[maxOwnTurns:] { // they are refused while the first one runs
			_, _ = reply.Wait()
		}
		close(goOn)
		for _, reply := range append(waiting, running, other) {
			_, err := reply.Wait()
			if busy := (*acp.Failure)(nil); errors.As(err, &busy) && busy.Reason == "busy" {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		if refused != 4 {
			t.Errorf("%d prompts were refused", refused)
		}
	}
}

// TestWatchersBound: a session has a bounded number of clients.
func TestWatchersBound(t *testing.T) {
	r := newRig(t, talking(nil))
	s := r.connect(1).new(t)
	gs := r.g.session(string(s.ID()))
	gs.mu.Lock()
	for len(gs.watchers) < maxWatchers {
		gs.watchers[new(watcher)] = true
	}
	gs.mu.Unlock()
	many := (*acp.Failure)(nil)
	if _, err := r.connect(1).conn.Load(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project"}); !errors.As(err, &many) || many.Reason != "clients" {
		t.Error(err)
	}
}

// TestQuestionsBound: an agent may ask a bounded number of questions at once.
func TestQuestionsBound(t *testing.T) {
	r := newRig(t, &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		errs := make(chan error, maxQuestions+1)
		for range maxQuestions + 1 {
			go func() {
				_, err := t.Ask(acp.Permission{Title: "Really?"})
				errs <- err
			}()
		}
		if err := <-errs; err == nil { // the others wait
			return "", errors.New("all questions were put")
		}
		return acp.StopEndTurn, t.Say("too many")
	}})
	s := r.connect(1, asking(func(ctx context.Context, _ *acp.PermissionRequest) (acp.PermissionDecision, error) {
		<-ctx.Done()
		return acp.CancelPermission(), ctx.Err()
	})).new(t)
	if got := answer(t, s, "x"); got != "too many" {
		t.Error(got)
	}
}

// TestLate: an answer that comes when there is a decision is noted as late, and changes nothing.
func TestLate(t *testing.T) {
	r := newRig(t, talking(nil))
	c := r.connect(2, asking(func(ctx context.Context, _ *acp.PermissionRequest) (acp.PermissionDecision, error) {
		<-ctx.Done()
		return acp.CancelPermission(), ctx.Err()
	}))
	s := c.new(t)
	reply := s.Prompt(t.Context(), acp.Text("ask"))
	gs := r.g.session(string(s.ID()))
	var a *ask
	for a == nil {
		for _, open := range gs.questions(1 << 60) {
			a = open
		}
	}
	first, second := decision{Option: a.permission.Options[0].OptionID, by: local}, decision{Option: a.permission.Options[2].OptionID, by: "bob"}
	gs.answered(a, first)
	gs.answered(a, second)
	if text, _, err := reply.Text(); err != nil || text != string(first.Option)+"true" {
		t.Error(text, err)
	}
	var late []records.Decided
	var err error
	for len(late) == 0 && err == nil { // it is written when there is time
		err = r.log.Read(t.Context(), string(s.ID()), 0, func(rec engine.Record) error {
			if rec.Kind != kindLate {
				return nil
			}
			late = append(late, records.Decided{})
			return json.Unmarshal(rec.Data, &late[len(late)-1])
		})
	}
	if err != nil || len(late) != 1 || late[0].ID != a.id || late[0].By != "bob" || late[0].Outcome != records.Outcome(second.Option) {
		t.Errorf("%+v, %v", late, err)
	}
}

// post posts a message to a server.
func post(t *testing.T, url, conn, session, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if conn != "" {
		req.Header.Set("Acp-Connection-Id", conn)
	}
	if session != "" {
		req.Header.Set("Acp-Session-Id", session)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// TestStalled: a client that does not read what happens in its session holds nobody, and is cut off rather than missing
// something.
func TestStalled(t *testing.T) {
	r := newRig(t, talking(nil))
	server := &acphttp.Server{Serve: r.g.Serve, Limits: acphttp.Limits{StallTimeout: 200 * time.Millisecond, MaxUnsentSession: 32 << 10}}
	web := httptest.NewServer(server)
	defer web.Close()
	defer func() { _ = server.Close(context.Background()) }()
	c := r.connect(2)
	s := c.new(t)

	res := post(t, web.URL, "", "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`)
	id := res.Header.Get("Acp-Connection-Id")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Acp-Connection-Id", id)
	events, err := http.DefaultClient.Do(req)
	if err != nil || events.StatusCode != http.StatusOK {
		t.Fatal(err, events.Status)
	}
	defer func() { _ = events.Body.Close() }()
	post(t, web.URL, id, string(s.ID()), fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":%q,"cwd":"/project","mcpServers":[]}}`, s.ID()))
	gs := r.g.session(string(s.ID()))
	for n := 0; n < 2; {
		gs.mu.Lock()
		n = len(gs.watchers)
		gs.mu.Unlock()
	}
	for range 20 {
		say(t, s, strings.Repeat("x", 4<<10))
	}
	// Its connection ends, although it reads that.
	if _, err := io.Copy(io.Discard, bufio.NewReader(events.Body)); err != nil && t.Context().Err() != nil {
		t.Error(err)
	}
	say(t, s, "still here")
}

// TestAskedAgain: a client that comes back is asked again what is open, in another request, and the agent gets one answer.
func TestAskedAgain(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, talking(nil))
		r.max = agent
		asked := make(chan struct{}, 8)
		never := asking(func(ctx context.Context, _ *acp.PermissionRequest) (acp.PermissionDecision, error) {
			asked <- struct{}{}
			<-ctx.Done()
			return acp.CancelPermission(), ctx.Err()
		})
		c := r.connect(version, never)
		s := c.new(t)
		s.Prompt(t.Context(), acp.Text("ask"))
		for range 3 {
			<-asked
			_ = c.conn.Close()
			c = r.connect(version, never)
			c.load(t, s.ID())
		}
		<-asked
		last := r.connect(version, asking(func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
			return req.Allow(), nil
		}))
		last.load(t, s.ID())
		gs := r.g.session(string(s.ID()))
		for len(gs.questions(1<<60)) > 0 {
		}
		answers := 0
		err := r.log.Read(t.Context(), string(s.ID()), 0, func(rec engine.Record) error {
			if rec.Kind == kindAsk || rec.Kind == kindAnswer {
				answers++
			}
			return nil
		})
		if err != nil || answers > 2 {
			t.Error(answers, err)
		}
	})
}
