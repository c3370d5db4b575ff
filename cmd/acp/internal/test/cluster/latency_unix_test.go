//go:build unix

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
)

// timed is the prompt that has the agent say when it says something.
const timed = "the time"

// Of a turn with the times.
const (
	times    = 2000
	beat     = 5 * time.Millisecond // between two of them
	sentence = 500                  // bytes of each
)

// sayTimes says what time it is, by the clock of the machine, which all processes share.
func sayTimes(t *acp.Turn) error {
	ticks := time.NewTicker(beat)
	defer ticks.Stop()
	for range times {
		<-ticks.C
		if err := t.Say(fmt.Sprintf("%-*d\n", sentence-1, time.Now().UnixNano())); err != nil {
			return err
		}
	}
	return nil
}

// A delay is how long updates take from the agent to a client. Times are in milliseconds.
type delay struct {
	Latency string  `json:"latency"` // to whom
	Updates int     `json:"updates"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
}

// TestLatency measures how long an update takes that two synchronous standbys may confirm, of which one must. It judges
// only that all come, once and in order.
func TestLatency(t *testing.T) {
	if !*run {
		t.Skip("this takes half a minute: use -cluster")
	}
	r := newRig(t)
	there := &acphttp.Transport{URL: r.nodes[0].address(), RetryFor: -1}
	ws := func(g *gateway) *acpws.Transport {
		return &acpws.Transport{URL: "ws" + strings.TrimPrefix(g.address(), "http"), RetryFor: -1}
	}
	first := &clock{}
	conn := first.connect(t, there)
	s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: r.dir})
	if err != nil {
		t.Fatal(err)
	}
	var owner *gateway
	for _, g := range r.nodes {
		if g.name == r.owners(t.Context(), r.primary)[s.ID()] {
			owner = g
		}
	}
	if owner == nil {
		t.Fatal("the session belongs to nobody")
	}
	other := r.nodes[0]
	if other == owner {
		other = r.nodes[1]
	}
	watchers := []struct {
		name  string
		way   acp.Transport
		clock *clock
	}{
		{"HTTP", &acphttp.Transport{URL: owner.address(), RetryFor: -1}, &clock{}},
		{"WebSocket", ws(owner), &clock{}},
		{"WebSocket, at another gateway", ws(other), &clock{}},
	}
	for _, w := range watchers {
		if _, err := w.clock.connect(t, w.way).Load(t.Context(), s.ID(), acp.SessionConfig{Cwd: r.dir}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Prompt(t.Context(), acp.Text(timed)).Wait(); err != nil {
		t.Fatal(err)
	}
	for _, w := range watchers {
		select {
		case <-w.clock.all():
		case <-time.After(time.Minute):
			t.Fatalf("%s: not everything has come", w.name)
		}
		d := w.clock.delay(t)
		d.Latency = w.name
		note(t, d)
	}
}

// A clock notes how long updates take.
type clock struct {
	mu    sync.Mutex
	last  int64 // when the latest one was said
	took  []time.Duration
	wrong int // that came twice or out of order
	done  chan struct{}
}

// all returns what is closed when all have come.
func (c *clock) all() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if len(c.took) >= times {
			close(c.done)
		}
	}
	return c.done
}

// connect connects a client.
func (c *clock) connect(t *testing.T, way acp.Transport) *acp.ClientConn {
	t.Helper()
	client := &acp.Client{Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
		now := time.Now()
		chunk, ok := u.Update.(*acp.AgentMessageChunk)
		if !ok || u.Synthetic {
			return
		}
		at, err := strconv.ParseInt(strings.TrimSpace(chunk.Content.(*acp.TextContent).Text), 10, 64)
		if err != nil {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if at <= c.last {
			c.wrong++
		}
		c.last = at
		c.took = append(c.took, now.Sub(time.Unix(0, at)))
		if len(c.took) == times && c.done != nil {
			close(c.done)
		}
	}}
	conn, err := client.Connect(t.Context(), way)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// delay returns what was noted.
func (c *clock) delay(t *testing.T) delay {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.took) != times || c.wrong > 0 {
		t.Errorf("%d updates have come of %d, %d twice or out of order", len(c.took), times, c.wrong)
	}
	slices.Sort(c.took)
	at := func(part float64) float64 {
		return c.took[min(len(c.took)-1, int(part*float64(len(c.took))))].Seconds() * 1e3
	}
	return delay{Updates: len(c.took), P50: at(0.5), P99: at(0.99), Max: at(1)}
}
