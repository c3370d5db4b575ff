package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
)

const askText = "The agent asks, and each of five clients answers after a random time of up to 10 ms, with an option of its own. The decision is what the agent says that it heard. A client whose question is withdrawn before it has answered does not answer; the times are from the answer of the client that won to that, so they contain the commit. Random kills of every part, at the same time, are in `cmd/acp/internal/test/torture`."

// A round is one question.
type round struct {
	answered [answerers]time.Time
	withdrew [answerers]time.Time
}

func ask(ctx context.Context, b *bench) (rows []row, err error) {
	n := b.pick(10_000, 50)
	_, p, err := b.fresh(ctx)
	if err != nil {
		return nil, err
	}
	defer stop(&p, &err)
	var mu sync.Mutex
	rounds := make(map[string]*round)
	winners := make(map[string][]string) // what the agent has heard, by the question
	of := func(title string) *round {
		if rounds[title] == nil {
			rounds[title] = new(round)
		}
		return rounds[title]
	}
	client := func(i int) func(*acp.Client) {
		return func(c *acp.Client) {
			c.MinVersion, c.MaxVersion = 1+i%2, 1+i%2
			c.RequestPermission = func(ctx context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
				timer := time.NewTimer(time.Duration(rand.Int64N(int64(10 * time.Millisecond))))
				defer timer.Stop()
				select {
				case <-timer.C:
					mu.Lock()
					of(r.Title).answered[i] = time.Now()
					mu.Unlock()
					return acp.SelectPermission(acp.PermissionOptionID(fmt.Sprint(i))), nil
				case <-ctx.Done():
					mu.Lock()
					of(r.Title).withdrew[i] = time.Now()
					mu.Unlock()
					return acp.CancelPermission(), context.Cause(ctx)
				}
			}
			if i == 0 {
				c.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
					if title, option, ok := strings.Cut(u.Text(), " "); ok {
						mu.Lock()
						winners[title] = append(winners[title], option)
						mu.Unlock()
					}
				}
			}
		}
	}
	d, err := drive(ctx, over("ws", p.url), "/tmp", client(0))
	if err != nil {
		return nil, err
	}
	defer d.close()
	for i := 1; i < answerers; i++ {
		c := new(acp.Client)
		client(i)(c)
		conn, err := c.Connect(ctx, over([]string{"ws", "http"}[i%2], p.url))
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		if _, err := conn.Load(ctx, d.session.ID(), acp.SessionConfig{Cwd: "/tmp"}); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	if err := d.prompt(ctx, task{Asks: n}); err != nil {
		return nil, err
	}
	took := time.Since(start)
	time.Sleep(500 * time.Millisecond) // what is withdrawn last
	mu.Lock()
	defer mu.Unlock()
	return askRows(n, took, rounds, winners)
}

func askRows(n int, took time.Duration, rounds map[string]*round, winners map[string][]string) ([]row, error) {
	wrong, late, unasked := 0, 0, 0
	var times []time.Duration
	for i := range n {
		title := fmt.Sprint(i)
		heard, r := winners[title], rounds[title]
		if len(heard) != 1 || r == nil {
			wrong++
			continue
		}
		var w int
		if _, err := fmt.Sscan(heard[0], &w); err != nil || w < 0 || w >= answerers || r.answered[w].IsZero() {
			wrong++
			continue
		}
		for i := range answerers {
			switch {
			case i == w:
			case !r.withdrew[i].IsZero():
				times = append(times, r.withdrew[i].Sub(r.answered[w]))
			case !r.answered[i].IsZero():
				late++
			default:
				unasked++ // it was decided before
			}
		}
	}
	worst := ms(quantile(times, 1))
	return []row{
		{what: "questions", value: fmt.Sprintf("%d in %s", n, took.Round(time.Second))},
		{what: "decided otherwise than once", value: fmt.Sprint(wrong), target: "0", met: wrong == 0},
		{what: "withdrawn from the others", value: fmt.Sprintf("%d times: p50 %s ms, p99 %s ms, at most %s ms", len(times), number(ms(quantile(times, 0.5))), number(ms(quantile(times, 0.99))), number(worst)), target: "≤ 200 ms", met: worst <= 200},
		{what: "not asked any more", value: fmt.Sprint(unasked), note: "decided before the question came to them"},
		{what: "answers that came too late", value: fmt.Sprint(late), note: "they change nothing"},
	}, nil
}
