package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
					p := newRawPeer(Config{Mux: &mux, Settings: Settings{MaxRequests: 1}})
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
	agent, client := pair(Config{Mux: &mux, Lane: laneOf, Settings: Settings{MaxRequests: 2}}, Config{Lane: laneOf})
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
	closeBoth(agent, client) // a handler ends its turn behind its answer
	agent.mu.Lock()
	if agent.work.running != 0 || agent.work.answering != 0 || len(agent.work.inbound) != 0 {
		t.Error("left:", agent.work.running, agent.work.answering, agent.work.inbound)
	}
	agent.mu.Unlock()
	noLeaks(t)
}

// TestOnDone: what Preempt registers runs once, with the cause of the request's
// context, in every ending, unless it is forgotten.
func TestOnDone(t *testing.T) {
	req := `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}` + "\n"
	stopped := errors.New("stopped")
	for name, tt := range map[string]struct {
		end  func(p *rawPeer, r *Request, release chan struct{})
		want error // nil: what was registered is forgotten
	}{
		"answered":       {func(_ *rawPeer, _ *Request, release chan struct{}) { close(release) }, context.Canceled},
		"cancelled":      {func(p *rawPeer, _ *Request, _ chan struct{}) { p.write(cancelReq(`,"params":{"requestId":1}`)) }, ErrRequestCancelled},
		"cancelled here": {func(_ *rawPeer, r *Request, _ chan struct{}) { r.Cancel(stopped); r.Cancel(nil) }, stopped},
		"answered for":   {func(_ *rawPeer, r *Request, _ chan struct{}) { r.Answer(&reply{}, nil) }, context.Canceled},
		"closed": {func(p *rawPeer, _ *Request, _ chan struct{}) {
			go func() { _ = p.conn.Close() }()
			time.Sleep(2 * DefaultGrace) // virtual
		}, ErrClosed},
		"forgotten":       {func(_ *rawPeer, r *Request, release chan struct{}) { close(release) }, nil},
		"refused":         {func(*rawPeer, *Request, chan struct{}) {}, context.Canceled},
		"ended before it": {func(*rawPeer, *Request, chan struct{}) {}, stopped},
	} {
		for _, looked := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", looked), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					release := make(chan struct{})
					var mux Mux
					prompt.Handle(&mux, func(ctx context.Context, _ *note) (*reply, error) {
						if looked {
							<-ctx.Done()
						} else {
							<-release
						}
						return &reply{}, nil
					})
					var mu sync.Mutex
					var got []error
					var req1 *Request
					p := newRawPeer(Config{Mux: &mux, Preempt: func(r *Request) error {
						req1 = r
						if name == "ended before it" {
							r.Cancel(stopped)
						}
						forget := r.OnDone(func(cause error) {
							mu.Lock()
							got = append(got, cause)
							mu.Unlock()
							if name != "refused" && context.Cause(r.Context()) != cause && !looked {
								t.Errorf("the cause of the context is %v, not %v", context.Cause(r.Context()), cause)
							}
						})
						if name == "forgotten" && (!forget() || forget()) {
							t.Error("it can be forgotten once")
						}
						if name == "refused" {
							return ErrAuthRequired
						}
						return nil
					}})
					p.write(req)
					synctest.Wait()
					tt.end(p, req1, release)
					synctest.Wait()
					mu.Lock()
					switch {
					case tt.want == nil && len(got) != 0:
						t.Error("it was not forgotten:", got)
					case tt.want == nil:
					case looked && (name == "answered" || name == "forgotten"): // the handler waits for its context
					case len(got) != 1 || !errors.Is(got[0], tt.want):
						t.Errorf("%v, want %v", got, tt.want)
					}
					mu.Unlock()
					req1.Cancel(nil)
					select {
					case <-release:
					default:
						close(release)
					}
					p.close()
					if n := len(got); n > 1 {
						t.Errorf("called %d times", n)
					}
				})
				noLeaks(t)
			})
		}
	}
}

// TestAnswerAccounting: whatever handlers do that are answered at any time, they
// leave nothing behind.
func TestAnswerAccounting(t *testing.T) {
	var agentMux, clientMux Mux
	var giving sync.WaitGroup
	prompt.Handle(&agentMux, func(ctx context.Context, n *note) (*reply, error) {
		r := RequestFrom(ctx)
		mode := rand.IntN(6)
		early := rand.IntN(3)
		answered := make(chan struct{})
		giving.Go(func() {
			defer close(answered)
			for range early * 200 {
				runtime.Gosched()
			}
			r.Answer(&reply{"for it"}, nil)
		})
		switch mode {
		case 0, 1, 2:
			if mode == 0 {
				ctx = context.WithoutCancel(ctx)
			}
			for range 3 {
				_, _ = prompt.Call(ctx, r.Conn(), n)
			}
		case 3:
			<-answered
		case 4:
			exit()
		case 5:
			panic("boom")
		}
		return &reply{"by itself"}, nil
	})
	prompt.Handle(&clientMux, func(context.Context, *note) (*reply, error) { return &reply{}, nil })
	agent, client := pair(Config{Mux: &agentMux, Lane: laneOf, Settings: Settings{MaxRequests: 2}}, Config{Mux: &clientMux, Lane: laneOf})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 300 {
				_, _ = prompt.Call(bg, client, &note{Session: fmt.Sprint(i)})
			}
		})
	}
	wg.Wait()
	giving.Wait()
	closeBoth(agent, client)
	agent.mu.Lock()
	left := []int{agent.work.running, agent.work.answering, len(agent.work.inbound), agent.work.yielded, agent.room.inHandler, agent.room.queued, agent.room.outWaits, len(agent.calls.pending)}
	agent.mu.Unlock()
	if diff := cmp.Diff(make([]int, len(left)), left); diff != "" {
		t.Error(diff)
	}
	noLeaks(t)
}

// TestAnswerLater: an answer that cannot be encoded is an error, and what is left
// to be done behind an answer that was given is done at once.
func TestAnswerLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		var requests []*Request
		release := make(chan struct{})
		mux.Fallback(func(_ context.Context, r *Request) (any, error) {
			requests = append(requests, r)
			<-release
			return nil, nil
		})
		p := newRawPeer(Config{Mux: &mux})
		p.write(`{"jsonrpc":"2.0","id":1,"method":"x","params":{}}` + "\n")
		p.take()
		go requests[0].Answer(exitJSON{}, nil)
		if got := p.take(); len(got) != 1 || !strings.Contains(got[0], "-32603") || requests[0].Context().Err() == nil {
			t.Errorf("%q, %v", got, requests[0].Context().Err())
		}
		did := false
		requests[0].AfterAnswer(func() { did = true })
		if !did {
			t.Error("what is left to be done was not done")
		}
		close(release)
		p.close()
	})
	noLeaks(t)
}
