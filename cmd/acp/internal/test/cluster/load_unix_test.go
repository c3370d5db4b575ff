//go:build unix

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/jsonrpc"
)

// sessions is how many there are, each with a client that prompts and one that watches.
const sessions = 4

// A load is what clients do with the gateways, and what they have seen.
type load struct {
	r    *rig
	t    *testing.T
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup
	all  []*talk

	figures *figures // once there was a fault
}

// A talk is a session and its two clients.
type talk struct {
	id       acp.SessionID
	name     string
	prompter *viewer
	watcher  *viewer

	mu       sync.Mutex
	n        int               // of prompts so far
	outcomes map[string]string // of each prompt
	ended    chan struct{}     // closed and renewed when one has ended normally
}

// A viewer is a client, over all its connections.
type viewer struct {
	version int
	first   int // the node it tries first
	mu      sync.Mutex
	seen    []string
	err     error         // why it has left a node last
	last    time.Time     // when it was sent something new
	longest time.Duration // between two such times, since it was reset
	since   time.Time     // when it was reset
	again   time.Duration // from then until it had the session once more, if it had to connect again
}

// begin opens the sessions and starts their clients.
func begin(t *testing.T, r *rig) *load {
	l := &load{r: r, t: t}
	l.ctx, l.stop = context.WithCancel(context.Background())
	t.Cleanup(l.finish)
	r.loads++
	for i := range sessions {
		s := &talk{
			name: fmt.Sprintf("f%ds%d", r.loads, i), outcomes: map[string]string{}, ended: make(chan struct{}),
			prompter: &viewer{version: 1 + i%2, first: i % gateways, last: time.Now()}, watcher: &viewer{version: 1 + (i+i/2)%2, first: (i + 1) % gateways, last: time.Now()},
		}
		l.all = append(l.all, s)
		opened := make(chan struct{})
		l.work.Go(func() {
			l.follow(s, s.prompter, func(ctx context.Context, cs *acp.ClientSession) error {
				select {
				case <-opened:
				default:
					close(opened)
				}
				return l.prompt(ctx, s, cs)
			})
		})
		select {
		case <-opened:
		case <-time.After(time.Minute):
			l.fatal(s, "the session was not opened")
		}
		l.work.Go(func() {
			l.follow(s, s.watcher, func(ctx context.Context, cs *acp.ClientSession) error {
				select {
				case <-cs.Conn().Done():
				case <-ctx.Done():
				}
				return ctx.Err()
			})
		})
	}
	return l
}

// finish ends all clients.
func (l *load) finish() {
	l.stop()
	l.work.Wait()
}

// textOf writes an update as text; "" is nothing of interest. What users say and how turns end is left out, since a
// client sees neither of its own live in version 1.
func textOf(u *acp.Update) string {
	if v, ok := u.Update.(*acp.AgentMessageChunk); ok {
		text := v.Content.(*acp.TextContent).Text
		if strings.HasPrefix(string(v.MessageID), "notice_") && endsTurn(text) {
			return ""
		}
		if i := strings.Index(text, "."); strings.HasPrefix(text, "The ") && i > 0 {
			return text[:i+1] // what the gateway says, as in version 2
		}
		return text
	}
	if v, ok := u.Update.(*acp.Notice); ok {
		return v.Title
	}
	return ""
}

// endsTurn reports whether a line of the gateway, to a client of version 1, is the end of a turn.
func endsTurn(line string) bool {
	return strings.HasPrefix(line, history.Failed) || strings.HasPrefix(line, history.NotEnded) || strings.HasPrefix(line, "Cancelled")
}

// follow connects a client, to one node after the other, and does something with the session. What it is sent must begin
// with what it has seen before.
func (l *load) follow(s *talk, v *viewer, do func(context.Context, *acp.ClientSession) error) {
	for node := v.first; l.ctx.Err() == nil; node++ {
		url := l.r.nodes[node%gateways].address()
		if url == "" {
			l.pause()
			continue
		}
		if err := l.attach(s, v, url, do); err != nil && l.ctx.Err() == nil {
			v.mu.Lock()
			v.err = err
			v.mu.Unlock()
			l.pause()
		}
	}
}

func (l *load) pause() {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-l.ctx.Done():
	}
}

// opening bounds how long a client waits for a gateway that does not answer, before it tries another one.
const opening = 3 * time.Second

func (s *talk) session() acp.SessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

func (l *load) attach(s *talk, v *viewer, url string, do func(context.Context, *acp.ClientSession) error) error {
	var mu sync.Mutex
	var live []string
	replay := true
	client := &acp.Client{
		MinVersion: v.version, MaxVersion: v.version,
		Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			text := textOf(u)
			if text == "" || u.Synthetic {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			live = append(live, text)
			if !replay {
				v.saw(live)
			}
		},
		RequestPermission: func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			return r.Allow(), nil
		},
	}
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	late := time.AfterFunc(opening, cancel)
	conn, err := client.Connect(ctx, &acphttp.Transport{URL: url, RetryFor: -1})
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var cs *acp.ClientSession
	cfg := acp.SessionConfig{Cwd: l.r.dir}
	if id := s.session(); id == "" {
		cs, err = conn.NewSession(ctx, cfg)
	} else {
		cs, err = conn.Load(ctx, id, cfg)
	}
	if err != nil || !late.Stop() {
		return errors.Join(err, ctx.Err())
	}
	s.mu.Lock()
	s.id = cs.ID()
	s.mu.Unlock()
	mu.Lock()
	if err := v.continues(live); err != nil {
		l.t.Errorf("%s, a client of version %d: %v", s.name, v.version, err)
	}
	replay = false
	v.saw(live)
	mu.Unlock()
	v.attached()
	return do(ctx, cs)
}

// continues reports how what was sent does not begin with what was seen before.
func (v *viewer) continues(live []string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, text := range v.seen {
		if i >= len(live) {
			return fmt.Errorf("%d updates are kept of %d that were seen; the first that is missing is %q", len(live), len(v.seen), text)
		}
		if live[i] != text {
			return fmt.Errorf("update %d was %q and is %q now", i, text, live[i])
		}
	}
	return nil
}

func (v *viewer) saw(live []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(live) > len(v.seen) {
		now := time.Now()
		v.longest = max(v.longest, now.Sub(v.last))
		v.last = now
	}
	v.seen = append(v.seen[:0:0], live...)
}

// reset begins to measure anew.
func (v *viewer) reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.since = time.Now()
	v.last, v.longest, v.again = v.since, 0, 0
}

// attached notes that it has the session.
func (v *viewer) attached() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.again == 0 && !v.since.IsZero() {
		v.again = time.Since(v.since)
	}
}

// gap returns the longest time in which nothing new came.
func (v *viewer) gap() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.longest
}

// prompt returns the one that is sent now.
func (s *talk) prompt() string { return fmt.Sprintf("%s-p%d", s.name, s.n) }

// says reports whether something in its history is the agent's.
func (s *talk) says(text string) bool { return strings.HasPrefix(text, s.name+"-") }

// prompt sends one prompt after the other until the connection ends. One whose outcome is unknown is sent again, under
// the same name, before the next one.
func (l *load) prompt(ctx context.Context, s *talk, cs *acp.ClientSession) error {
	for ctx.Err() == nil {
		s.mu.Lock()
		text := s.prompt()
		s.mu.Unlock()
		res, err := cs.PromptRequest(ctx, &acpv2.PromptRequest{
			Prompt: []acp.ContentBlock{acp.Text(text)}, Meta: json.RawMessage(`{"github.com/goacp/acp":{"operationId":"` + text + `"}}`),
		}).Wait()
		failure := (*jsonrpc.Failure)(nil)
		outcome := ""
		switch {
		case err == nil:
			outcome = string(res.StopReason)
		case errors.As(err, &failure) && failure.Reason != "":
			outcome = failure.Reason
		case errors.As(err, new(*jsonrpc.Error)):
			outcome = err.Error()
			l.t.Logf("%s: %v", text, err)
		default:
			return err // to another node
		}
		s.mu.Lock()
		s.outcomes[text] = outcome
		s.n++
		if outcome == string(acp.StopEndTurn) {
			close(s.ended)
			s.ended = make(chan struct{})
		}
		s.mu.Unlock()
		if failure != nil {
			l.pause()
		}
	}
	return ctx.Err()
}

// progress waits until each session has ended some turns normally.
func (l *load) progress(t *testing.T, turns int) {
	t.Helper()
	limit := time.After(time.Minute)
	for _, s := range l.all {
		for range turns {
			s.mu.Lock()
			ended := s.ended
			s.mu.Unlock()
			select {
			case <-ended:
			case <-limit:
				l.fatal(s, "no turn has ended for a minute")
			}
		}
	}
}

// fatal ends the test, and says what the session and the gateways have come to.
func (l *load) fatal(s *talk, what string) {
	l.t.Helper()
	for _, g := range l.r.nodes {
		l.t.Logf("%s:\n%s", g.name, g.log())
	}
	if l.r.cluster != nil {
		l.t.Log(l.r.cluster.Logs())
	}
	for i, db := range l.r.db {
		l.t.Logf("%s, the primary is %s:\n%s", name(i), name(l.r.primary), db.Log())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range []*viewer{s.prompter, s.watcher} {
		v.mu.Lock()
		l.t.Logf("a client of version %d: %d updates, %v", v.version, len(v.seen), v.err)
		v.mu.Unlock()
	}
	l.t.Fatalf("session %s: %s; its prompts: %v", s.name, what, s.outcomes)
}
