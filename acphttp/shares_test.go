package acphttp_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
)

// TestShares: at the bound of all connections one continues that holds less than its share, and one that holds more
// waits until others have read, or have ended. None of them is over because it waits for others a moment.
func TestShares(t *testing.T) {
	const all = 200 << 10
	for name, ends := range map[string]bool{"read": false, "ended": true} {
		t.Run(name, func(t *testing.T) {
			sizes, wrote := make(chan int), make(chan error, 10)
			s := &acphttp.Server{
				Serve: func(ctx context.Context, t acp.Transport) error {
					stream, err := initialized(ctx, t)
					if err != nil {
						return err
					}
					defer stream.Close()
					note := []byte(`{"jsonrpc":"2.0","method":"_x","params":"` + strings.Repeat("x", <-sizes) + `"}`)
					wrote <- stream.WriteFrame(note)
					<-ctx.Done()
					return context.Cause(ctx)
				},
				Limits: acphttp.Limits{MaxUnsent: 2 * all, MaxUnsentAll: all},
			}
			inBubble(t, s, func(t *testing.T, c *rawClient) {
				write := func(size int) (client *rawClient, done int) {
					other := *c
					other.initialize()
					sizes <- size
					synctest.Wait()
					return &other, len(wrote)
				}
				first, done := write(all * 2 / 3)
				if done != 1 {
					t.Fatal("one alone waits")
				}
				if _, done = write(all / 2); done != 1 {
					t.Error("one with more than its share does not wait")
				}
				if _, done = write(1); done != 2 {
					t.Error("one with a byte waits for others")
				}
				time.Sleep(time.Second)
				if ends {
					if got := first.status(http.MethodDelete, ""); got != 202 {
						t.Error(got)
					}
				} else {
					first.stream().next()
				}
				synctest.Wait()
				if len(wrote) != 3 {
					t.Error("it waits although there is room")
				}
				for range len(wrote) {
					if err := <-wrote; err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}
