//go:build unix

package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// askedClient is a client on the official SDK that is asked together with others.
type askedClient struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Scanner
}

// share starts a client, which begins a session or opens one.
func share(ctx context.Context, t *testing.T, version, transport, url string, session ...string) *askedClient {
	t.Helper()
	client := exec.CommandContext(ctx, "node", append([]string{"gateway_asked.mjs", version, transport, url}, session...)...)
	in, err := client.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	client.Stderr = os.Stderr
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = client.Wait()
	})
	return &askedClient{t, in, bufio.NewScanner(out)}
}

func (c *askedClient) next() string {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("a client has ended: %v", c.out.Err())
	}
	return c.out.Text()
}

func (c *askedClient) want(line string) {
	c.t.Helper()
	if got := c.next(); got != line {
		c.t.Fatalf("%q instead of %q", got, line)
	}
}

func (c *askedClient) tell(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// TestGatewayAsks: two clients on the official SDK, as they are, are both asked what the agent asks. One of them answers, by turns,
// and the request of the other one is cancelled. Both see the whole turn.
func TestGatewayAsks(t *testing.T) {
	need(t)
	g := newGateway(t)
	url, err := os.ReadFile(g.urls)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.TrimSpace(string(url))
	for _, v := range []string{"11", "12", "21", "22"} {
		t.Run(fmt.Sprintf("v%c over HTTP and v%c over a WebSocket", v[0], v[1]), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // only against hanging
			defer cancel()
			one := share(ctx, t, v[:1], "http", at)
			id, ok := strings.CutPrefix(one.next(), "session ")
			if !ok {
				t.Fatal(id)
			}
			two := share(ctx, t, v[1:], "ws", at, id)
			two.want("session " + id)
			one.tell("prompt")
			const questions = countTo / 50
			for i := 1; i <= questions; i++ {
				one.want(fmt.Sprint("asked ", i))
				two.want(fmt.Sprint("asked ", i))
				answers, other := one, two
				if i%2 == 0 {
					answers, other = two, one
				}
				answers.tell("answer")
				other.want(fmt.Sprint("withdrawn ", i))
			}
			for _, c := range []*askedClient{one, two} {
				var got struct {
					All   []string
					Asked int
				}
				if err := json.Unmarshal([]byte(c.next()), &got); err != nil {
					t.Fatal(err)
				}
				if len(got.All) != countTo+1 || got.Asked != questions {
					t.Errorf("%d questions and %d updates: %q", got.Asked, len(got.All), got.All)
				}
			}
		})
	}
}
