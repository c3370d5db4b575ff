package relay

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/jsonrpc"
)

// gateways returns a way to peers, one for each connection.
func gateways() (open func(context.Context) (jsonrpc.Stream, error), peers chan jsonrpc.Stream) {
	peers = make(chan jsonrpc.Stream, 10)
	return func(context.Context) (jsonrpc.Stream, error) {
		a, b := jsonrpc.Pipe()
		peers <- b
		return a, nil
	}, peers
}

// next reads a message and returns it.
func next(t *testing.T, s jsonrpc.Stream) (m message) {
	t.Helper()
	f, err := s.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(f.Data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// replyTo answers the next message, which must be of a method, and returns it.
func replyTo(t *testing.T, s jsonrpc.Stream, method, result string) message {
	t.Helper()
	m := next(t, s)
	if m.Method != method {
		t.Fatalf("%s %s, want %s", m.Method, m.Params, method)
	}
	send(t, s, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+`}`)
	return m
}

const aSession = `{"sessionId":"s","_meta":{"github.com/goacp/acp":{"cursor":0}}}`

// TestSteady: the near side does not notice that the connection breaks in the middle of a turn, while a question is open.
func TestSteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, peers := gateways()
		client, _, done := between(t, Steady(open, nil), Options{})
		send(t, client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
		one := <-peers
		replyTo(t, one, "initialize", `{}`)
		next(t, client)
		send(t, client, `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`)
		replyTo(t, one, "session/new", aSession)
		next(t, client)
		send(t, client, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`)
		first := next(t, one)
		if !strings.Contains(string(first.Params), `"operationId":"connect_`) {
			t.Errorf("a prompt without a name: %s", first.Params)
		}
		update := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"x"},"_meta":{"github.com/goacp/acp":{"cursor":7,"mark":"ab"}}}}`
		send(t, one, update)
		expect(t, client, update)
		ask := `"method":"session/request_permission","params":{"sessionId":"s","options":[]}}`
		send(t, one, `{"jsonrpc":"2.0","id":5,`+ask)
		expect(t, client, `{"jsonrpc":"2.0","id":5,`+ask)
		send(t, client, `{"jsonrpc":"2.0","id":4,"method":"_other","params":{}}`)
		next(t, one)
		_ = one.Close()

		two := <-peers
		replyTo(t, two, "initialize", `{}`)
		resume := next(t, two)
		if resume.Method != "session/resume" || !strings.Contains(string(resume.Params), `{"cursor":7,"mark":"ab"}`) || !strings.Contains(string(resume.Params), `"cwd":"/w"`) {
			t.Errorf("%s %s", resume.Method, resume.Params)
		}
		send(t, two, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle"}}}`)
		send(t, two, `{"jsonrpc":"2.0","id":`+string(resume.ID)+`,"result":`+aSession+`}`)
		if again := next(t, two); again.Method != "session/prompt" || string(again.Params) != string(first.Params) {
			t.Errorf("%s %s, want %s", again.Method, again.Params, first.Params)
		}
		if m := next(t, client); string(m.ID) != "4" || !strings.Contains(string(m.Error), "is not known") {
			t.Errorf("%s %s", m.ID, m.Error)
		}
		// The question is asked again under another id; the client has it already.
		send(t, two, `{"jsonrpc":"2.0","id":1,`+ask)
		synctest.Wait()
		send(t, client, `{"jsonrpc":"2.0","id":5,"result":{"outcome":"yes"}}`)
		expect(t, two, `{"jsonrpc":"2.0","id":1,"result":{"outcome":"yes"}}`)
		// Another one gets an id that the client does not have.
		send(t, two, `{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":{"sessionId":"s","options":[1]}}`)
		expect(t, client, `{"jsonrpc":"2.0","id":"acp-1-5","method":"session/request_permission","params":{"sessionId":"s","options":[1]}}`)
		send(t, two, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":5}}`)
		expect(t, client, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"acp-1-5"}}`)
		send(t, two, `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`)
		expect(t, client, `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`)
		_ = client.Close()
		ends(t, done, Near, nil)
	})
}

// TestSteadyCancel: a cancellation is sent again after the prompt, unless the turn has ended.
func TestSteadyCancel(t *testing.T) {
	idle := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle"},"_meta":{"github.com/goacp/acp":{"cursor":7}}}}`
	for _, ended := range []string{"", idle, `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`} {
		synctest.Test(t, func(t *testing.T) {
			open, peers := gateways()
			client, _, done := between(t, Steady(open, nil), Options{})
			one := begins(t, client, peers)
			send(t, client, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`)
			next(t, one)
			send(t, client, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`)
			next(t, one)
			if ended != "" {
				send(t, one, ended)
				expect(t, client, ended)
			}
			_ = one.Close()
			two := <-peers
			replyTo(t, two, "initialize", aGateway)
			replyTo(t, two, "session/resume", aSession)
			send(t, client, `{"jsonrpc":"2.0","method":"last"}`)
			var got []string
			for len(got) == 0 || got[len(got)-1] != "last" {
				got = append(got, next(t, two).Method)
			}
			want := map[string][]string{"": {"session/prompt", "session/cancel", "last"}, idle: {"session/prompt", "last"}}[ended]
			if want == nil {
				want = []string{"last"}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", ended, got, want)
			}
			_ = client.Close()
			ends(t, done, Near, nil)
		})
	}
}

// TestSteadyAnswer: what the near side answers while there is no connection arrives once it is asked again.
func TestSteadyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, peers := gateways()
		client, _, done := between(t, Steady(open, nil), Options{})
		send(t, client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
		one := <-peers
		replyTo(t, one, "initialize", `{}`)
		next(t, client)
		send(t, client, `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w"}}`)
		replyTo(t, one, "session/new", aSession)
		next(t, client)
		send(t, one, `{"jsonrpc":"2.0","id":"a","method":"ask","params":{"sessionId":"s"}}`)
		next(t, client)
		_ = one.Close()
		synctest.Wait()
		send(t, client, `{"jsonrpc":"2.0","id":"a","result":1}`)
		two := <-peers
		replyTo(t, two, "initialize", `{}`)
		replyTo(t, two, "session/resume", aSession)
		send(t, two, `{"jsonrpc":"2.0","id":"b","method":"ask","params":{"sessionId":"s"}}`)
		expect(t, two, `{"jsonrpc":"2.0","id":"b","result":1}`)
		_ = client.Close()
		ends(t, done, Near, nil)
	})
}

// TestSteadyOthers: a peer that is no gateway, and one that has become none, end the connection.
func TestSteadyOthers(t *testing.T) {
	for _, is := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			open, peers := gateways()
			client, _, done := between(t, Steady(open, nil), Options{})
			send(t, client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
			one := <-peers
			replyTo(t, one, "initialize", `{}`)
			next(t, client)
			send(t, client, `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{}}`)
			if is {
				replyTo(t, one, "session/new", aSession)
			} else {
				replyTo(t, one, "session/new", `{"sessionId":"s"}`)
			}
			next(t, client)
			send(t, client, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s"}}`)
			next(t, one)
			_ = one.Close()
			if is {
				two := <-peers
				replyTo(t, two, "initialize", `{}`)
				replyTo(t, two, "session/resume", `{}`)
			}
			if m := next(t, client); string(m.ID) != "3" || len(m.Error) == 0 {
				t.Errorf("%s %s", m.ID, m.Error)
			}
			if r := <-done; r.side != Far || is != (r.err != nil) {
				t.Error(r)
			}
		})
	}
}

// TestSteadyGivesUp: a peer that does not come back is given up.
func TestSteadyGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, peers := gateways()
		gone := &net.OpError{Op: "dial", Err: errors.New("nobody is there")}
		opened := 0
		client, _, done := between(t, Steady(func(ctx context.Context) (jsonrpc.Stream, error) {
			if opened++; opened > 1 {
				return nil, gone
			}
			return open(ctx)
		}, nil), Options{})
		send(t, client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
		one := <-peers
		replyTo(t, one, "initialize", `{"_meta":`+`{"github.com/goacp/acp":{"cursor":0}}}`)
		next(t, client)
		_ = one.Close()
		if _, err := client.ReadFrame(); err != io.EOF {
			t.Error(err)
		}
		if r := <-done; r.side != Far || !errors.Is(r.err, gone) || opened < 100 {
			t.Error(r, opened)
		}
	})
}

const aGateway = `{"_meta":{"github.com/goacp/acp":{"gateway":true}}}`

// begins has a client say initialize and open a session at a gateway, and returns the gateway's end.
func begins(t *testing.T, client jsonrpc.Stream, peers <-chan jsonrpc.Stream) jsonrpc.Stream {
	t.Helper()
	send(t, client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	one := <-peers
	replyTo(t, one, "initialize", aGateway)
	next(t, client)
	send(t, client, `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w"}}`)
	replyTo(t, one, "session/new", aSession)
	next(t, client)
	return one
}

// TestSteadyPasses: what may pass is tried again, for as long as it may, and what does not ends the connection.
func TestSteadyPasses(t *testing.T) {
	wrong := &acphttp.StatusError{Status: http.StatusUnauthorized}
	for _, tt := range []struct {
		name  string
		err   error         // of opening another connection
		passe time.Duration // when it has passed; 0: never
		least time.Duration // how long it is tried
		most  time.Duration
	}{
		{"a token that is wrong for a moment", wrong, 2 * time.Second, 0, 0},
		{"a token that is wrong", wrong, 0, 5 * time.Second, 10 * time.Second},
		{"a server that starts", &acphttp.StatusError{Status: http.StatusServiceUnavailable}, time.Minute, 0, 0},
		{"anything else", io.ErrUnexpectedEOF, time.Minute, 0, 0},
		{"a refusal", &acphttp.StatusError{Status: http.StatusMisdirectedRequest}, 0, 0, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				open, peers := gateways()
				var broke time.Time
				var told []error
				client, _, done := between(t, Steady(func(ctx context.Context) (jsonrpc.Stream, error) {
					if !broke.IsZero() && (tt.passe == 0 || time.Since(broke) < tt.passe) {
						return nil, tt.err
					}
					return open(ctx)
				}, func(err error) { told = append(told, err) }), Options{})
				one := begins(t, client, peers)
				broke = time.Now()
				_ = one.Close()
				if tt.passe == 0 {
					r := <-done
					if took := time.Since(broke); r.side != Far || !errors.Is(r.err, tt.err) || took < tt.least || took > tt.most {
						t.Errorf("%v after %v", r, took)
					}
					return
				}
				two := <-peers
				replyTo(t, two, "initialize", aGateway)
				replyTo(t, two, "session/resume", aSession)
				synctest.Wait()
				if n := len(told); n < 2 || !errors.Is(told[0], tt.err) || told[n-1] != nil {
					t.Errorf("%v", told)
				}
				_ = client.Close()
				ends(t, done, Near, nil)
			})
		})
	}
}

// TestSteadyLater: a gateway that refuses for a time that it says is asked again.
func TestSteadyLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, peers := gateways()
		client, _, done := between(t, Steady(open, nil), Options{})
		one := begins(t, client, peers)
		_ = one.Close()
		two := <-peers
		replyTo(t, two, "initialize", aGateway)
		m := next(t, two)
		send(t, two, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32001,"message":"no place","data":{"reason":"moving","retryAfter":5}}}`)
		three := <-peers
		replyTo(t, three, "initialize", aGateway)
		m = next(t, three)
		send(t, three, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32001,"message":"deleted","data":{"reason":"deleted"}}}`)
		if r := <-done; r.side != Far || r.err == nil || !strings.Contains(r.err.Error(), "deleted") {
			t.Error(r)
		}
	})
}

// An unanswering stream says of a request that it has no answer, once.
type unanswering struct {
	jsonrpc.Stream
	say chan error
}

func (u *unanswering) ReadFrame() (jsonrpc.Frame, error) {
	select {
	case err := <-u.say:
		return jsonrpc.Frame{}, err
	default:
	}
	return u.Stream.ReadFrame()
}

// TestSteadyUnanswered: a request that has no answer because the connection is not known any more is sent again on another
// one. What the gateway refuses otherwise fails.
func TestSteadyUnanswered(t *testing.T) {
	for status, again := range map[int]bool{http.StatusNotFound: true, http.StatusUnauthorized: true, http.StatusRequestEntityTooLarge: false} {
		synctest.Test(t, func(t *testing.T) {
			open, peers := gateways()
			say := make(chan error, 1)
			client, _, done := between(t, Steady(func(ctx context.Context) (jsonrpc.Stream, error) {
				s, err := open(ctx)
				return &unanswering{s, say}, err
			}, nil), Options{})
			one := begins(t, client, peers)
			send(t, client, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`)
			first := next(t, one)
			synctest.Wait() // for the reader
			say <- &jsonrpc.UnansweredError{ID: []byte("3"), Err: &acphttp.StatusError{Status: status}}
			send(t, one, `{"jsonrpc":"2.0","method":"wakes","params":{}}`) // the reader
			next(t, client)
			if !again {
				if m := next(t, client); string(m.ID) != "3" || len(m.Error) == 0 {
					t.Errorf("%d: %s %s", status, m.ID, m.Error)
				}
				_ = one.Close()
				two := <-peers
				replyTo(t, two, "initialize", aGateway)
				replyTo(t, two, "session/resume", aSession)
				send(t, client, `{"jsonrpc":"2.0","method":"last"}`)
				if m := next(t, two); m.Method != "last" {
					t.Errorf("%d: %s is sent again", status, m.Method)
				}
			} else {
				two := <-peers
				replyTo(t, two, "initialize", aGateway)
				replyTo(t, two, "session/resume", aSession)
				if m := next(t, two); m.Method != first.Method || string(m.Params) != string(first.Params) {
					t.Errorf("%d: %s %s", status, m.Method, m.Params)
				}
				send(t, two, `{"jsonrpc":"2.0","id":3,"result":{}}`)
				expect(t, client, `{"jsonrpc":"2.0","id":3,"result":{}}`)
			}
			_ = client.Close()
			ends(t, done, Near, nil)
		})
	}
}

// TestSteadyUnansweredEnds: if it is not possible to return after such an error, the connection ends.
func TestSteadyUnansweredEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, peers := gateways()
		say := make(chan error, 1)
		refusal := &acphttp.StatusError{Status: http.StatusMisdirectedRequest}
		broke := false
		client, _, done := between(t, Steady(func(ctx context.Context) (jsonrpc.Stream, error) {
			if broke {
				return nil, refusal
			}
			s, err := open(ctx)
			return &unanswering{s, say}, err
		}, nil), Options{})
		one := begins(t, client, peers)
		send(t, client, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`)
		next(t, one)
		broke = true
		synctest.Wait() // for the reader
		say <- &jsonrpc.UnansweredError{ID: []byte("3"), Err: &acphttp.StatusError{Status: http.StatusNotFound}}
		send(t, one, `{"jsonrpc":"2.0","method":"wakes","params":{}}`)
		next(t, client)
		if m := next(t, client); string(m.ID) != "3" || len(m.Error) == 0 {
			t.Errorf("%s %s", m.ID, m.Error)
		}
		if r := <-done; r.side != Far || !errors.Is(r.err, refusal) {
			t.Error(r)
		}
	})
}

// TestSteadyFirst: goroutines that write before there is a connection open one, together; and closing meanwhile is no harm.
func TestSteadyFirst(t *testing.T) {
	for _, closes := range []bool{false, true} {
		for range 50 {
			opened, begin := 0, make(chan struct{})
			near, far := jsonrpc.Pipe()
			s := Steady(func(context.Context) (jsonrpc.Stream, error) {
				<-begin
				opened++
				return near, nil
			}, nil)
			reads := make(chan struct{})
			go func() {
				defer close(reads)
				for {
					if _, err := far.ReadFrame(); err != nil {
						return
					}
				}
			}()
			var writers sync.WaitGroup
			for range 4 {
				writers.Go(func() { _ = s.WriteFrame([]byte(`{"jsonrpc":"2.0","method":"x"}`)) })
			}
			if closes {
				_ = s.Close()
			}
			close(begin)
			writers.Wait()
			_ = s.Close()
			_ = near.Close()
			_ = far.Close()
			<-reads
			if opened > 1 {
				t.Fatalf("%d connections", opened)
			}
		}
	}
}
