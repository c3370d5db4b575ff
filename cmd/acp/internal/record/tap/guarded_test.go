package tap

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/trace"
)

// TestAnswersAmongAnswers lets the policy answer half of the requests while the client answers the
// others, in pieces: each gets one answer, whole and with its id, and what the client writes comes in
// its order.
func TestAnswersAmongAnswers(t *testing.T) {
	for _, version := range []int{1, 2} {
		const n = 2000
		p := newPlace(t, version, acphost.Rule{Effect: acphost.EffectAllow, Kinds: []string{"edit"}})
		e := p.between()
		e.Go(func() { // the agent asks
			kinds := []string{"edit", "read"}
			for i := range n {
				_, _ = fmt.Fprintln(e.agentOut, ask(version, fmt.Sprint(i), fmt.Sprintf(`{"toolCallId":"c%d","kind":%q}`, i, kinds[i%2])))
			}
			_ = e.agentOut.Close()
		})
		e.Go(func() { // the client answers what it sees
			r := rand.New(rand.NewPCG(1, 2))
			lines := bufio.NewScanner(e.clientIn)
			for lines.Scan() {
				var q struct{ ID int }
				_ = json.Unmarshal(lines.Bytes(), &q)
				answer := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{"by":"client"}}`+"\n", q.ID)
				for len(answer) > 0 {
					k := 1 + r.IntN(len(answer))
					_, _ = e.toTap.Write(answer[:k])
					answer = answer[k:]
				}
			}
		})
		answered, last := map[int]string{}, -1
		lines := bufio.NewScanner(e.agentIn)
		for len(answered) < n && lines.Scan() {
			var a struct {
				ID     *int
				Result struct {
					By      string
					Outcome struct{ OptionID string }
				}
			}
			if err := json.Unmarshal(lines.Bytes(), &a); err != nil || a.ID == nil {
				t.Fatalf("%s: %v", lines.Bytes(), err)
			}
			if answered[*a.ID] != "" {
				t.Errorf("%d was answered twice", *a.ID)
			}
			answered[*a.ID] = a.Result.By + a.Result.Outcome.OptionID
			if a.Result.By == "client" {
				if *a.ID < last {
					t.Errorf("%d came after %d", *a.ID, last)
				}
				last = *a.ID
			}
		}
		_ = e.toTap.Close()
		e.Wait()
		for i := range n {
			if want := []string{"yes", "client"}[i%2]; answered[i] != want {
				t.Fatalf("version %d: %d was answered by %q, want %q", version, i, answered[i], want)
			}
		}
		if got := len(e.sink.frames[trace.ToClient]); got != n {
			t.Errorf("%d frames of the agent were recorded", got)
		}
		if got := len(e.sink.frames[trace.ToAgent]); got != n {
			t.Errorf("%d answers were recorded", got)
		}
		_ = e.agentIn.Close()
	}
}

// The ends of a conversation that a guard stands in the middle of. Its counter has the goroutines that
// forward.
type ends struct {
	toTap, agentOut   *io.PipeWriter // what the client and the agent write to
	agentIn, clientIn *io.PipeReader // what they read from
	sink              *taken
	sync.WaitGroup
}

// between puts the guard between a client and an agent.
func (p *place) between() *ends {
	e := &ends{sink: newTaken()}
	fromClient, toTap := io.Pipe()
	toAgent, agentIn := pipeOut()
	toClient, clientIn := pipeOut()
	agentOut, fromAgent := pipeOut()
	e.toTap, e.agentOut, e.agentIn, e.clientIn = toTap, agentOut, agentIn, clientIn
	in, out := guarded(p.Guard, toAgent, toClient, e.sink)
	e.Go(func() { _ = pump(in, fromClient) })
	e.Go(func() { _ = pump(out, fromAgent) })
	return e
}

func pipeOut() (*io.PipeWriter, *io.PipeReader) {
	r, w := io.Pipe()
	return w, r
}

// collector is the end of a route.
type collector struct {
	bytes.Buffer
	closed bool
}

func (c *collector) Close() error { c.closed = true; return nil }

// TestMidLine holds that no answer is put into a line of the client's, that those that wait come
// before the end, and that none comes after an end in the middle of a line.
func TestMidLine(t *testing.T) {
	for _, tt := range []struct{ rest, want string }{
		{"lf\n", "half\nA\n"},
		{"lf", "half"},
	} {
		to := new(collector)
		in, _ := guarded(testGuard(t, nil), to, new(collector), newTaken())
		if err := in.forward([]byte("ha")); err != nil {
			t.Fatal(err)
		}
		in.(*inlet).reply([]byte("A"))
		if err := in.forward([]byte(tt.rest)); err != nil {
			t.Fatal(err)
		}
		in.close()
		if to.String() != tt.want || !to.closed {
			t.Errorf("%q, want %q", to.String(), tt.want)
		}
		in.(*inlet).reply([]byte("late")) // does not wait, and goes nowhere
	}
}

// TestLongLines holds that a line that cannot be looked at is not let through, and that those around
// it are.
func TestLongLines(t *testing.T) {
	long := `{"method":"` + strings.Repeat("x", 200) + `"}`
	all := "before\n" + long + "\nafter\n" + long
	for size := 1; size <= len(all); size += 7 {
		to, sink, log := new(collector), newTaken(), []*Entry{}
		g := testGuard(t, func(e *Entry) { log = append(log, e) })
		in, route := guarded(g, new(collector), to, sink)
		out := route.(*outlet)
		out.most = 100
		for rest := []byte(all); len(rest) > 0; {
			n := min(size, len(rest))
			if err := out.forward(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
			if len(out.buf) > out.most {
				t.Fatalf("%d bytes are kept", len(out.buf))
			}
		}
		out.close()
		in.close()
		// What comes at once is looked at whatever its length: it is there already.
		if got := to.String(); size < 100 && got != "before\nafter\n" || !strings.HasPrefix(got, "before\n") {
			t.Errorf("in pieces of %d: %q", size, got)
		}
		if size < 100 && (len(log) != 2 || log[0].By != ByFrame || len(sink.events) != 2) {
			t.Errorf("in pieces of %d: noted %v, %q", size, log, sink.events)
		}
	}
}

// TestManyAnswers holds that answers that the agent does not read are bounded: then it waits, too.
func TestManyAnswers(t *testing.T) {
	toAgent, agentIn := pipeOut()
	in, _ := guarded(testGuard(t, nil), toAgent, new(collector), newTaken())
	const n = 4 * maxAnswers
	given := make(chan int, n)
	go func() {
		for i := range n {
			in.(*inlet).reply([]byte("A"))
			given <- i
		}
		close(given)
	}()
	for range maxAnswers {
		<-given
	}
	waiting := func() int {
		in := in.(*inlet)
		in.mu.Lock()
		defer in.mu.Unlock()
		return len(in.answers)
	}
	lines := bufio.NewScanner(agentIn)
	for range n {
		if w := waiting(); w > maxAnswers {
			t.Fatalf("%d answers wait", w)
		}
		if !lines.Scan() || lines.Text() != "A" {
			t.Fatal(lines.Text(), lines.Err())
		}
	}
	for range given {
	}
	in.close()
}
