package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
)

const flapText = "A proxy between client and server ends all connections and refuses others for 5 s, while the agent sends 100 updates of 500 bytes a second. The client is ours, with its defaults; it does not notice but for the delay. The time is from when the proxy lets connections pass again to the first update; the bytes are those that the proxy passes to the client for as long as it catches up, beside those of the updates that it lacked."

// A proxy passes connections on, or does not.
type proxy struct {
	l     net.Listener
	to    string
	work  sync.WaitGroup
	down  atomic.Bool
	bytes atomic.Int64 // to the client

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newProxy(url string) (*proxy, string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/acp")
	p := &proxy{l: l, to: host, conns: make(map[net.Conn]bool)}
	p.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.pass(c) })
		}
	})
	return p, "http://" + l.Addr().String() + "/acp", nil
}

func (p *proxy) pass(c net.Conn) {
	defer c.Close()
	if p.down.Load() || !p.add(c) {
		return
	}
	defer p.remove(c)
	s, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer s.Close()
	if !p.add(s) {
		return
	}
	defer p.remove(s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(s, c)
		_ = s.Close()
	}()
	_, _ = io.Copy(counted{c, &p.bytes}, s)
	_ = c.Close()
	<-done
}

type counted struct {
	io.Writer
	n *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return c.Writer.Write(b)
}

func (p *proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil || p.down.Load() {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *proxy) remove(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// cut ends all connections, and refuses others.
func (p *proxy) cut() {
	p.down.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) close() {
	_ = p.l.Close()
	p.cut()
	p.work.Wait()
}

func flap(ctx context.Context, b *bench) (rows []row, err error) {
	for _, kind := range []string{"HTTP", "WebSocket"} {
		var backs, extras []float64
		for range b.pick(3, 1) {
			back, extra, err := flapOnce(ctx, b, kind, time.Duration(b.pick(5, 1))*time.Second)
			if err != nil {
				return rows, fmt.Errorf("%s: %w", kind, err)
			}
			backs, extras = append(backs, ms(back)), append(extras, extra)
		}
		back, extra := spreadOf(backs), spreadOf(extras)
		rows = append(rows,
			row{what: kind + ": the next update comes", value: "after " + back.text(" ms"), target: "≤ 1 s", met: back.mid <= 1000},
			row{what: kind + ": bytes beside the tail", value: extra.text(" kB"), note: "with everything that " + map[string]string{"HTTP": "HTTP adds", "WebSocket": "the handshake and the frames add"}[kind] + " to the updates"})
	}
	return rows, nil
}

func flapOnce(ctx context.Context, b *bench, kind string, gap time.Duration) (back time.Duration, extra float64, err error) {
	home, err := b.home()
	if err != nil {
		return 0, 0, err
	}
	p, err := b.serve(ctx, home)
	if err != nil {
		return 0, 0, err
	}
	defer stop(&p, &err)
	link, url, err := newProxy(p.url)
	if err != nil {
		return 0, 0, err
	}
	defer link.close()
	var t acp.Transport = &acphttp.Transport{URL: url}
	if kind == "WebSocket" {
		t = &acpws.Transport{URL: "ws" + strings.TrimPrefix(url, "http")}
	}
	type seen struct {
		n    int
		when time.Time
	}
	updates := make(chan seen, 10_000)
	d, err := drive(ctx, t, "/tmp", func(c *acp.Client) {
		c.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			if n, _, ok := saidText([]byte(u.Text())); ok {
				updates <- seen{n, time.Now()}
			}
		}
	})
	if err != nil {
		return 0, 0, err
	}
	defer d.close()
	n := int(gap/time.Second)*100 + 400
	ended := make(chan error, 1)
	go func() { ended <- d.prompt(ctx, task{N: n, Size: 500, Every: 10_000}) }()
	next := 0
	until := func(stop func(seen) bool) error {
		for {
			select {
			case s := <-updates:
				if s.n != next {
					return fmt.Errorf("update %d came, and %d was next", s.n, next)
				}
				if next++; stop(s) {
					return nil
				}
			case err := <-ended:
				ended <- err
				if err != nil {
					return err
				}
				if len(updates) == 0 {
					return fmt.Errorf("the turn has ended after %d updates", next)
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	if err := until(func(s seen) bool { return s.n == 100 }); err != nil {
		return 0, 0, err
	}
	link.cut()
	time.Sleep(gap)
	for len(updates) > 0 { // those that had come before
		if s := <-updates; s.n != next {
			return 0, 0, fmt.Errorf("update %d came, and %d was next", s.n, next)
		}
		next++
	}
	had, sent := next, link.bytes.Load()
	up := time.Now()
	link.down.Store(false)
	if err := until(func(s seen) bool { back = s.when.Sub(up); return true }); err != nil {
		return 0, 0, err
	}
	if err := until(func(s seen) bool { return s.n == n-1 }); err != nil {
		return 0, 0, err
	}
	extra = float64(link.bytes.Load()-sent-int64(n-had)*500) / 1e3
	return back, extra, <-ended
}

const restartText = "The server is ended in an orderly way and started again at the same address, between turns. The pause is from the interrupt to the answer to the next prompt; the client connects again as soon as it can, and resumes the session. A drain to another node is measured by `make bench-cluster`, below if it was; an upgrade that keeps agents is in the tests of package gateway (`TestHeldTakenOver`)."

func restart(ctx context.Context, b *bench) (rows []row, err error) {
	var pauses []float64
	home, p, err := b.fresh(ctx)
	if err != nil {
		return nil, err
	}
	defer stop(&p, &err)
	d, err := drive(ctx, over("http", p.url), "/tmp", nil)
	if err != nil {
		return nil, err
	}
	defer func() { d.close() }()
	failed := 0
	for range b.pick(10, 2) {
		if err := d.prompt(ctx, task{N: 10, Size: 500}); err != nil {
			failed++
		}
		id, start := d.session.ID(), time.Now()
		if err := p.stop(); err != nil {
			return nil, err
		}
		address := strings.TrimSuffix(strings.TrimPrefix(p.url, "http://"), "/acp")
		if p, err = b.serveAt(ctx, home, address); err != nil {
			return nil, err
		}
		d.close()
		c := &acp.Client{MaxVersion: 1}
		conn, err := c.Connect(ctx, over("http", p.url))
		if err != nil {
			return nil, err
		}
		s, err := conn.Resume(ctx, id, acp.SessionConfig{Cwd: "/tmp"})
		if err != nil {
			return nil, err
		}
		d = &driver{conn, s}
		if err := d.prompt(ctx, task{N: 10, Size: 500}); err != nil {
			failed++
		}
		pauses = append(pauses, ms(time.Since(start)))
	}
	s := spreadOf(pauses)
	return []row{
		{what: "pause, with a new agent that resumes", value: s.text(" ms"), target: "≤ 2 s", met: s.mid <= 2000},
		{what: "requests that failed", value: fmt.Sprint(failed), target: "0", met: failed == 0},
	}, nil
}

const droppedText = "WebSockets are opened, initialized and dropped without a word, and as many connections over HTTP whose stream is read. A client can come back to its connection for a minute, so all of them are there at the same time; the server's bound is 4,096. What is left is counted once the server has reported the end of all."

func dropped(ctx context.Context, b *bench) (rows []row, err error) {
	total := b.pick(4000, 100)
	_, p, err := b.fresh(ctx)
	if err != nil {
		return nil, err
	}
	defer stop(&p, &err)
	files := p.files()
	before, _ := p.memory()
	opened := 0
	start := time.Now()
	for opened < total {
		link, url, err := newProxy(p.url) // whose end is that of the network
		if err != nil {
			return nil, err
		}
		var all []*raw
		for i := 0; i < 500 && opened < total; i++ {
			kind := []string{"ws", "http"}[opened%2]
			r, err := dialRaw(ctx, over(kind, url))
			if err != nil {
				link.close()
				return nil, fmt.Errorf("connection %d: %w", opened, err)
			}
			all = append(all, r)
			opened++
		}
		link.close()
		closeAll(all)
	}
	took := time.Since(start)
	dropped := time.Now()
	left := func() int {
		text := p.log.String()
		return strings.Count(text, " has begun") - strings.Count(text, " has ended")
	}
	for limit := time.Now().Add(time.Duration(b.pick(90, 75)) * time.Second); left() > 0 && time.Now().Before(limit); {
		time.Sleep(100 * time.Millisecond)
	}
	reaped := time.Since(dropped)
	now, peak := p.memory()
	n := left()
	return []row{
		{what: "opened and dropped", value: fmt.Sprintf("%d in %s", opened, took.Round(time.Second))},
		{what: "left", value: fmt.Sprintf("%d, %s after the last one", n, reaped.Round(100*time.Millisecond)), target: "0, 61 s after", met: n == 0 && reaped <= 61*time.Second},
		{what: "descriptors more than before", value: fmt.Sprint(p.files() - files), target: "0", met: p.files() <= files},
		{what: "memory before, now, at most", value: fmt.Sprintf("%s, %s, %s", mb(before), mb(now), mb(peak))},
	}, nil
}
