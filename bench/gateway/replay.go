package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
)

const replayText = "A session with 10,000 updates of 500 bytes is loaded after the server was started again, and the system has dropped its pages of the log (posix_fadvise). The times are from the request, over a connection that is open, to the first update and to the answer, which follows the last one. The peer has the history in its memory."

// fill makes a session with so many updates.
func fill(ctx context.Context, t acp.Transport, n int) (string, error) {
	d, err := drive(ctx, t, "/tmp", nil)
	if err != nil {
		return "", err
	}
	defer d.close()
	return d.id(), d.prompt(ctx, task{N: n, Size: 500})
}

// timeLoad loads a session and returns when the first update came, and the answer.
func timeLoad(ctx context.Context, t acp.Transport, session string, n int) (first, all time.Duration, err error) {
	r, err := dialRaw(ctx, t)
	if err != nil {
		return 0, 0, err
	}
	defer r.stream.Close()
	count := 0
	start := time.Now()
	err = r.load(session, "/tmp", func(frame []byte) {
		if _, _, ok := said(frame); ok {
			if count == 0 {
				first = time.Since(start)
			}
			count++
		}
	})
	all = time.Since(start)
	if err == nil && count != n {
		err = fmt.Errorf("%d updates of %d came", count, n)
	}
	return first, all, err
}

func replay(ctx context.Context, b *bench) (rows []row, err error) {
	n, rounds := b.pick(10_000, 300), b.pick(5, 1)
	home, p, err := b.fresh(ctx)
	if err != nil {
		return nil, err
	}
	session, err := fill(ctx, over("ws", p.url), n)
	if err := errorsOf(err, p.stop()); err != nil {
		return nil, err
	}
	var served [][2]float64 // the medians of both
	for _, kind := range []string{"ws", "http"} {
		var firsts, alls []float64
		for range rounds {
			if err := forget(filepath.Join(home, "acp", "gateway")); err != nil {
				return nil, err
			}
			if p, err = b.serve(ctx, home); err != nil {
				return nil, err
			}
			first, all, err := timeLoad(ctx, over(kind, p.url), session, n)
			if err := errorsOf(err, p.stop()); err != nil {
				return nil, err
			}
			firsts, alls = append(firsts, ms(first)), append(alls, ms(all))
		}
		rows = append(rows, replayRow(map[string]string{"ws": "`acp serve`, WebSocket", "http": "`acp serve`, HTTP"}[kind], firsts, alls, true))
		served = append(served, [2]float64{spreadOf(firsts).mid, spreadOf(alls).mid})
	}
	if b.node != "" {
		return append(rows, row{what: "TypeScript SDK", value: "not measured", note: b.node}), nil
	}
	var firsts, alls []float64
	if p, err = b.peer(ctx); err != nil {
		return rows, err
	}
	defer stop(&p, &err)
	t := &acphttp.Transport{URL: p.url, RetryFor: -1}
	if session, err = fill(ctx, t, n); err != nil {
		return rows, err
	}
	for range rounds {
		first, all, err := timeLoad(ctx, t, session, n)
		if err != nil {
			return rows, err
		}
		firsts, alls = append(firsts, ms(first)), append(alls, ms(all))
	}
	more := max(1, spreadOf(alls).mid/peerReplay)
	for i, mid := range served {
		rows[i].scaled = scaled{fmt.Sprintf("%s ms / %s ms", number(50*more), number(150*more)), mid[0] <= 50*more && mid[1] <= 150*more}
	}
	return append(rows, replayRow("TypeScript SDK, HTTP", firsts, alls, false)), nil
}

func replayRow(what string, firsts, alls []float64, target bool) row {
	f, a := spreadOf(firsts), spreadOf(alls)
	r := row{what: what, value: "first " + f.text(" ms") + ", all " + a.text(" ms")}
	if target {
		r.target, r.met = "50 ms / 150 ms", f.mid <= 50 && a.mid <= 150
	}
	return r
}

const slowText = "A session with 100,000 updates of 500 bytes is loaded by a client that takes 1 ms for each, while the server's memory is watched."

func slow(ctx context.Context, b *bench) (rows []row, err error) {
	n := b.pick(100_000, 1000)
	home, p, err := b.fresh(ctx)
	if err != nil {
		return nil, err
	}
	session, err := fill(ctx, over("ws", p.url), n)
	if err := errorsOf(err, p.stop()); err != nil {
		return nil, err
	}
	if p, err = b.serve(ctx, home); err != nil {
		return nil, err
	}
	defer stop(&p, &err)
	r, err := dialRaw(ctx, over("ws", p.url))
	if err != nil {
		return nil, err
	}
	defer r.stream.Close()
	before, _ := p.memory()
	most := before
	next := 0
	bad := error(nil)
	start := time.Now()
	err = r.load(session, "/tmp", func(frame []byte) {
		i, _, ok := said(frame)
		if !ok {
			return
		}
		if i != next && bad == nil {
			bad = fmt.Errorf("update %d came, and %d was next", i, next)
		}
		if next++; next%100 == 0 {
			now, _ := p.memory()
			most = max(most, now)
			// The reader is as slow as it says, whatever the timer can do.
			time.Sleep(time.Until(start.Add(time.Duration(next) * time.Millisecond)))
		}
	})
	if err = errorsOf(err, bad); err == nil && next != n {
		err = fmt.Errorf("%d updates of %d came", next, n)
	}
	if err != nil {
		return nil, err
	}
	return []row{
		{what: "lost, doubled, out of order", value: fmt.Sprintf("0 of %d, in %s", n, time.Since(start).Round(time.Second)), target: "0", met: true},
		{what: "growth of the server's memory", value: mb(most - before), target: "≤ 16.8 MB (16 MiB)", met: most-before <= 16*mib},
		{what: "TypeScript SDK", value: "cannot do it", note: "it ends a connection for which 64 MiB wait, or that takes nothing for 60 s"},
	}, nil
}

func errorsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

const sizeText = "The server has nothing to do and no sessions. The program is built as releases are, without symbols (`-trimpath -ldflags \"-s -w\"`)."

// baseCommit is what the size of the program is compared with: the commit before the gateway.
const baseCommit = "847ffcaf"

func size(ctx context.Context, b *bench) (rows []row, err error) {
	b.load = procValue("/proc/loadavg", "") // before it compiles; what was measured before leaves a processor idle
	var all []float64
	for range b.pick(5, 1) {
		home, err := b.home()
		if err != nil {
			return nil, err
		}
		p, err := b.serve(ctx, home)
		if err != nil {
			return nil, err
		}
		time.Sleep(time.Duration(b.pick(3, 1)) * time.Second)
		now, _ := p.memory()
		if err := p.stop(); err != nil {
			return nil, err
		}
		all = append(all, float64(now)/1e6)
	}
	s := spreadOf(all)
	rows = append(rows, row{what: "resident, idle, after 3 s", value: s.text(" MB"), target: "≤ 45 MB", met: s.mid <= 45})
	now, err := fileSize(b.acp)
	if err != nil {
		return rows, err
	}
	r := row{what: "the program", value: mb(now)}
	if !b.quick {
		before, err := b.baseSize(ctx)
		if err != nil {
			r.note = "not compared: " + err.Error()
		} else {
			r.target, r.met = "≤ 10 MB more than at "+baseCommit, now-before <= 10e6
			r.note = fmt.Sprintf("%.1f MB more than %s", float64(now-before)/1e6, mb(before))
		}
	}
	return append(rows, r), nil
}

// baseSize returns the size of the program at the base commit.
func (b *bench) baseSize(ctx context.Context) (int64, error) {
	root := filepath.Join(b.dir, "base")
	add := exec.CommandContext(ctx, "git", "worktree", "add", "--detach", "--quiet", root, baseCommit)
	add.Dir = b.root
	if out, err := add.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("git worktree: %w: %s", err, out)
	}
	defer func() {
		remove := exec.Command("git", "worktree", "remove", "--force", root)
		remove.Dir = b.root
		_ = remove.Run()
	}()
	old := filepath.Join(b.dir, "acp.base")
	if err := build(ctx, root, old); err != nil {
		return 0, err
	}
	return fileSize(old)
}

const storedText = "10,000 sessions with ten records each are in the log. The server is started, the list is read to its end, and 500 sessions have a watcher each. No agent runs."

func stored(ctx context.Context, b *bench) (rows []row, err error) {
	count, watching := b.pick(10_000, 100), b.pick(500, 10)
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(home, "acp", "gateway")
	seed := exec.CommandContext(ctx, "go", "run", "./internal/test/seed", dir, fmt.Sprint(count), "10")
	seed.Dir = filepath.Join(b.root, "cmd/acp")
	seed.Env = append(os.Environ(), "GOWORK=") // the one of the repository
	if out, err := seed.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("seed: %w: %s", err, out)
	}
	var starts []float64
	var p *process
	for i := range b.pick(5, 2) {
		if i > 0 {
			if err := p.stop(); err != nil {
				return nil, err
			}
		}
		if err := forget(dir); err != nil {
			return nil, err
		}
		start := time.Now()
		if p, err = b.serve(ctx, home); err != nil {
			return nil, err
		}
		starts = append(starts, ms(time.Since(start)))
	}
	defer stop(&p, &err)
	time.Sleep(2 * time.Second)
	idle, _ := p.memory()
	s := spreadOf(starts)
	rows = append(rows, row{what: "start, to the URL", value: s.text(" ms"), target: "≤ 2 s", met: s.mid <= 2000},
		row{what: "memory with the sessions, no client", value: mb(idle)})
	conn, err := (&acp.Client{MaxVersion: 1}).Connect(ctx, over("ws", p.url))
	if err != nil {
		return rows, err
	}
	defer conn.Close()
	var ids []string
	start := time.Now()
	for info, err := range conn.ListSessions(ctx, acp.ListOptions{}) {
		if err != nil {
			return rows, err
		}
		ids = append(ids, string(info.SessionID))
	}
	rows = append(rows, row{what: fmt.Sprintf("the list of %d", len(ids)), value: fmt.Sprintf("%s ms", number(ms(time.Since(start))))})
	if len(ids) != count {
		return rows, fmt.Errorf("%d sessions are listed of %d", len(ids), count)
	}
	var mu sync.Mutex
	var all []*raw
	defer func() { closeAll(all) }()
	for _, id := range ids[:watching] {
		w, err := dialRaw(ctx, over("ws", p.url))
		if err != nil {
			return rows, err
		}
		mu.Lock()
		all = append(all, w)
		mu.Unlock()
		if err := w.load(id, "/tmp", nil); err != nil {
			return rows, err
		}
	}
	now, peak := p.memory()
	return append(rows,
		row{what: fmt.Sprintf("memory with %d watchers", watching), value: fmt.Sprintf("%s, at most %s", mb(now), mb(peak)), target: "≤ 300 MB", met: peak <= 300e6},
		row{what: "for each session with a watcher", value: fmt.Sprintf("%.0f kB", float64(now-idle)/float64(watching)/1e3), note: "a session that nobody watches is not in memory"}), nil
}
