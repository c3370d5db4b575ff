package jsonrpc

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// TestAnswer: a handler that is given up is answered for, once, and no longer in
// anybody's way; what it does later concerns nobody.
func TestAnswer(t *testing.T) {
	for name, later := range map[string]func() (*reply, error){
		"returns": func() (*reply, error) { return &reply{"late"}, nil },
		"fails":   func() (*reply, error) { return nil, ErrAuthRequired },
		"panics":  func() (*reply, error) { panic("boom") },
		"exits":   func() (*reply, error) { exit(); return nil, nil },
	} {
		for _, refuse := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", refuse), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var mux Mux
					release := make(chan struct{})
					requests := map[string]*Request{}
					var did []string
					prompt.Handle(&mux, func(ctx context.Context, n *note) (*reply, error) {
						r := RequestFrom(ctx)
						requests[n.Text] = r
						if n.Text == "next" {
							return &reply{"in time"}, nil
						}
						r.AfterAnswer(func() { did = append(did, fmt.Sprint("after, ", r.Context().Err())) })
						<-release
						return later()
					})
					update.Handle(&mux, func(ctx context.Context, _ *note) error {
						if RequestFrom(ctx).Answer(&reply{}, nil) {
							t.Error("a notification was answered")
						}
						return nil
					})
					p := newRawPeer(Config{Mux: &mux, MaxRequests: 1})
					p.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}` + "\n")
					p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","text":"stuck"}}` + "\n")
					p.write(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","text":"next"}}` + "\n")
					if got := p.take(); len(got) != 0 {
						t.Fatalf("%q", got)
					}
					var err error
					if refuse {
						err = ErrRequestCancelled
					}
					stuck := requests["stuck"]
					if !stuck.Answer(&reply{"for it"}, err) {
						t.Error("it was not answered")
					}
					if stuck.Answer(&reply{"again"}, nil) {
						t.Error("it was answered twice")
					}
					if stuck.Context().Err() == nil {
						t.Error("its context is not done")
					}
					want := `"for it"`
					if refuse {
						want = `-32800`
					}
					got := strings.Join(p.take(), "")
					if !strings.Contains(got, `"id":1`) || !strings.Contains(got, want) || !strings.Contains(got, "in time") {
						t.Errorf("%q", got)
					}
					if diff := cmp.Diff([]string{"after, <nil>"}, did); diff != "" {
						t.Error(diff)
					}
					if requests["next"].Answer(&reply{}, nil) {
						t.Error("what has been answered was answered again")
					}
					// Nobody waits for it.
					_ = p.conn.Close()
					<-p.conn.Done()
					close(release)
					p.close()
					if got := p.take(); len(got) != 0 {
						t.Errorf("behind the end: %q", got)
					}
				})
				noLeaks(t)
			})
		}
	}
}

// TestAnswerRace: when a handler returns while it is given up there is one
// answer, and the next request of the id finds it free.
func TestAnswerRace(t *testing.T) {
	var mux Mux
	var giving sync.WaitGroup
	prompt.Handle(&mux, func(ctx context.Context, _ *note) (*reply, error) {
		r := RequestFrom(ctx)
		giving.Go(func() { r.Answer(&reply{"for it"}, nil) })
		return &reply{"by itself"}, nil
	})
	agent, client := pair(Config{Mux: &mux, Lane: laneOf, MaxRequests: 2}, Config{Lane: laneOf})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 2000 {
				if _, err := prompt.Call(bg, client, &note{Session: fmt.Sprint(i)}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	giving.Wait()
	agent.mu.Lock()
	if agent.running != 0 || agent.answering != 0 || len(agent.inbound) != 0 {
		t.Error("left:", agent.running, agent.answering, agent.inbound)
	}
	agent.mu.Unlock()
	closeBoth(agent, client)
	noLeaks(t)
}
