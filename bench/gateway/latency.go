package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
)

const latencyText = "An agent sends 500 bytes every 2 ms. Each update has the time at which it was sent, by the clock of the machine, which both processes share. “Added” is the difference from the median of a client that has started the agent itself, over its standard output."

// A way is a way from the agent to a client.
type way struct {
	name    string
	open    func(ctx context.Context) (acp.Transport, func() error, error)
	watcher bool // the client that prompts does not count, but another one that watches
}

func (b *bench) ways() []way {
	server := func(kind string, args ...string) func(context.Context) (acp.Transport, func() error, error) {
		return func(ctx context.Context) (acp.Transport, func() error, error) {
			home, err := b.home()
			if err != nil {
				return nil, nil, err
			}
			p, err := b.serve(ctx, home, args...)
			if err != nil {
				return nil, nil, err
			}
			return over(kind, p.url), p.stop, nil
		}
	}
	all := []way{
		{"standard output, no server", func(context.Context) (acp.Transport, func() error, error) {
			return acp.Command(b.self, "agent"), func() error { return nil }, nil
		}, false},
		{"`acp serve --stateless`, HTTP", server("http", "--stateless"), false},
		{"`acp serve --stateless`, WebSocket", server("ws", "--stateless"), false},
		{"`acp serve`, HTTP, a watcher", server("http"), true},
		{"`acp serve`, WebSocket, a watcher", server("ws"), true},
	}
	if b.node == "" {
		all = append(all, way{"TypeScript SDK, agent in the server, HTTP", func(ctx context.Context) (acp.Transport, func() error, error) {
			p, err := b.peer(ctx)
			if err != nil {
				return nil, nil, err
			}
			return &acphttp.Transport{URL: p.url, RetryFor: -1}, p.stop, nil
		}, false})
	}
	return all
}

// peer starts the server on the TypeScript SDK, with the agent in the same process.
func (b *bench) peer(ctx context.Context) (*process, error) {
	cmd := exec.CommandContext(ctx, "node", "ts_agent.mjs")
	cmd.Dir = filepath.Join(b.root, "bench/gateway")
	return begin(cmd)
}

func latency(ctx context.Context, b *bench) (rows []row, err error) {
	n, rounds := b.pick(1000, 50), b.pick(5, 1)
	medians := make(map[string][]float64)
	tails := make(map[string][]float64)
	ways := b.ways()
	for range rounds { // in turns, so that a noisy minute is everybody's
		for _, w := range ways {
			all, err := measureWay(ctx, w, n)
			if err != nil {
				return rows, fmt.Errorf("%s: %w", w.name, err)
			}
			medians[w.name] = append(medians[w.name], ms(quantile(all, 0.5)))
			tails[w.name] = append(tails[w.name], ms(quantile(all, 0.99)))
		}
	}
	base := spreadOf(medians[ways[0].name]).mid
	peer := spreadOf(medians["TypeScript SDK, agent in the server, HTTP"]).mid
	for i, w := range ways {
		mid, p99 := spreadOf(medians[w.name]), spreadOf(tails[w.name])
		r := row{what: w.name, value: fmt.Sprintf("p50 %s, p99 %s", mid.text(" ms"), p99.text(" ms"))}
		switch {
		case w.watcher:
			r.target, r.met = "p50 added ≤ 0.6 ms, p99 ≤ 10 ms", mid.mid-base <= 0.6 && p99.mid <= 10
		case i == 1, i == 2:
			r.target, r.met = "p50 added ≤ 0.3 ms, p99 ≤ 2 ms", mid.mid-base <= 0.3 && p99.mid <= 2
		}
		if r.target != "" {
			r.note = fmt.Sprintf("added %s ms", number(mid.mid-base))
			if peer > 0 {
				r.note += fmt.Sprintf("; %s of the TypeScript server's", number(mid.mid/peer))
			}
		}
		rows = append(rows, r)
	}
	if b.node != "" {
		rows = append(rows, row{what: "TypeScript SDK", value: "not measured", note: b.node})
	}
	return rows, nil
}

// measureWay returns how long updates take.
func measureWay(ctx context.Context, w way, n int) (all []time.Duration, err error) {
	t, stop, err := w.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := stop(); err == nil {
			err = e
		}
	}()
	driver, err := dialRaw(ctx, t)
	if err != nil {
		return nil, err
	}
	defer driver.stream.Close()
	session, err := driver.begin("/tmp")
	if err != nil {
		return nil, err
	}
	watcher := driver
	if w.watcher {
		if watcher, err = dialRaw(ctx, t); err != nil {
			return nil, err
		}
		defer watcher.stream.Close()
		if err := watcher.load(session, "/tmp", nil); err != nil {
			return nil, err
		}
	}
	const warm = 20
	if err := driver.promptRaw(session, task{N: n + warm, Size: 500, Every: 2000}); err != nil {
		return nil, err
	}
	if w.watcher {
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_ = driver.watch(n+warm-1, func(int, int64) {})
		}()
		defer func() { <-drained }()
	}
	err = watcher.watch(n+warm-1, func(i int, at int64) {
		if i >= warm {
			all = append(all, since(at))
		}
	})
	return all, err
}

// begin makes a session.
func (r *raw) begin(cwd string) (string, error) {
	data, err := r.call("session/new", map[string]any{"cwd": cwd, "mcpServers": []any{}}, nil)
	if err != nil {
		return "", err
	}
	return stringOf(data, "sessionId")
}

// promptRaw sends a prompt, and does not wait for its answer.
func (r *raw) promptRaw(session string, w task) error {
	_, err := r.send("session/prompt", map[string]any{"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": w.text()}}})
	return err
}
