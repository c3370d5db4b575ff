package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A piece is what a server sends after a pause.
type piece struct {
	after time.Duration
	text  string
}

// An answer is what a server does with one request.
type answer struct {
	status int // 200 if it is 0
	header http.Header
	pieces []piece
	wait   time.Duration // before the header
	fail   error         // in place of an answer
	cut    error         // in place of the end
	ends   chan struct{} // closed when the body is
}

// A server answers requests in memory, one after the other; the last answer is repeated.
type server struct {
	answers  []answer
	requests []*http.Request
	bodies   []string
}

// RoundTrip implements [http.RoundTripper].
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
	a := s.answers[min(len(s.requests), len(s.answers))-1]
	if a.wait > 0 {
		select {
		case <-time.After(a.wait):
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
	}
	if a.fail != nil {
		return nil, a.fail
	}
	h := a.header
	if h == nil {
		h = http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}
	}
	status := a.status
	if status == 0 {
		status = http.StatusOK
	}
	return &http.Response{StatusCode: status, Header: h, Body: &stubBody{a: a, ctx: r.Context()}, Request: r}, nil
}

// stubBody is the body of an answer.
type stubBody struct {
	a    answer
	ctx  context.Context
	rest string
}

func (b *stubBody) Read(p []byte) (int, error) {
	for b.rest == "" {
		if len(b.a.pieces) == 0 {
			if b.a.cut != nil {
				return 0, b.a.cut
			}
			return 0, io.EOF
		}
		next := b.a.pieces[0]
		b.a.pieces = b.a.pieces[1:]
		if next.after > 0 {
			select {
			case <-time.After(next.after):
			case <-b.ctx.Done():
				return 0, context.Cause(b.ctx)
			}
		}
		b.rest = next.text
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *stubBody) Close() error {
	if b.a.ends != nil {
		close(b.a.ends)
	}
	return nil
}

// words decodes streams of the test: each event is a text, but for some.
type words struct{ seen strings.Builder }

func (w *words) Event(name string, data []byte, pass func(model.Event)) error {
	switch string(data) {
	case "done":
		pass(&model.Done{Reason: model.EndTurn})
	case "tool":
		pass(&model.ToolUse{ID: "1", Name: "t", Input: []byte("{}")})
	case "alive":
		pass(&model.Alive{})
	case "overloaded":
		return &model.Error{Kind: model.KindOverloaded, Message: "later"}
	case "bad":
		return &model.Error{Kind: model.KindAnswer, Message: "not that"}
	default:
		w.seen.Write(data)
		pass(&model.TextDelta{Text: name + ":" + string(data)})
	}
	return nil
}

func (*words) Used() model.Usage { return model.Usage{} }

func (w *words) End(pass func(model.Event)) error {
	if strings.HasSuffix(w.seen.String(), "fin") {
		pass(&model.Done{Reason: model.MaxTokens})
	}
	return nil
}

// run asks the server once, and returns what came, a line for each event.
func run(ctx context.Context, c *Client, limit int) (lines []string) {
	call := &Call{URL: "https://example.org/v1/x", Header: http.Header{"X-Api-Key": {"secret"}}, Body: []byte("{}")}
	for e, err := range c.Generate(ctx, call, func() Decoder { return new(words) }) {
		switch e := e.(type) {
		case *model.TextDelta:
			lines = append(lines, e.Text)
		case *model.ToolUse:
			lines = append(lines, "tool")
		case *model.Alive:
			lines = append(lines, "alive")
		case *model.Retrying:
			lines = append(lines, fmt.Sprintf("again %d: %s discarded %t", e.Attempt, e.Err.Kind, e.Discarded))
		case *model.Spent:
			continue // TestSpent
		case *model.Limits:
			lines = append(lines, fmt.Sprintf("limits %d", e.Requests))
		case *model.Done:
			lines = append(lines, "done "+string(e.Reason))
		}
		if err != nil {
			lines = append(lines, "error "+err.Error())
		}
		if len(lines) == limit {
			return lines
		}
	}
	return lines
}

func event(data string) string { return "data: " + data + "\n\n" }

// TestGenerate: what becomes of answers, good and bad.
func TestGenerate(t *testing.T) {
	text := func(s ...string) []piece {
		var all []piece
		for _, x := range s {
			all = append(all, piece{text: x})
		}
		return all
	}
	plain := http.Header{"Content-Type": {"application/json"}}
	for _, tt := range []struct {
		name    string
		answers []answer
		retries int
		want    []string
	}{
		{name: "whole", answers: []answer{{pieces: text(event("a"), event("done"), event("after"))}}, want: []string{":a", "done end_turn"}},
		{name: "odd stream", answers: []answer{{pieces: text("\ufeff: hello\r\n\r\nevent: x\r\nid: 7\r\nfoo: bar\r\ndata: a\r\ndata: b\r\n\r\n", ":\n\n", event("d\xc3"+"\xb6"), event("done"))}},
			want: []string{"x:a\nb", ":dö", "done end_turn"}},
		{name: "split in characters", answers: []answer{{pieces: text("da", "ta: \xe4\xb8", "\x96\n", "\nda", "ta: done\n\n")}}, want: []string{":世", "done end_turn"}},
		{name: "end without a last word", answers: []answer{{pieces: text(event("fin"))}}, want: []string{":fin", "done max_tokens"}},
		{name: "breaks off", answers: []answer{{pieces: text(event("a"))}}, retries: -1,
			want: []string{":a", "error p: the stream ended in the middle of the answer (network)"}},
		{name: "connection breaks, then well", answers: []answer{{pieces: text(event("a")), cut: io.ErrUnexpectedEOF}, {pieces: text(event("b"), event("done"))}},
			want: []string{":a", "again 2: network discarded true", ":b", "done end_turn"}},
		{name: "never after a tool", answers: []answer{{pieces: text(event("tool"), event("overloaded"))}, {pieces: text(event("done"))}},
			want: []string{"tool", "error p: later (overloaded)"}},
		{name: "before anything came", answers: []answer{{fail: errors.New("no route")}, {pieces: text(event("done"))}},
			want: []string{"again 2: network discarded false", "done end_turn"}},
		{name: "not again", answers: []answer{{pieces: text(event("bad"))}, {pieces: text(event("done"))}}, want: []string{"error p: not that (answer)"}},
		{name: "as often as allowed", answers: []answer{{status: 529, header: plain}}, retries: 2,
			want: []string{"again 2: overloaded discarded false", "again 3: overloaded discarded false", "error p: an empty answer (overloaded, status 529)"}},
		{name: "wrong key", answers: []answer{{status: 401, header: plain, pieces: text(`{"error":"no"}`)}}, want: []string{`error p: {"error":"no"} (auth, status 401)`}},
		{name: "web page", answers: []answer{{header: http.Header{"Content-Type": {"text/html"}}, pieces: text("<html>hi</html>")}},
			want: []string{"error p: a web page (OK) instead of an answer (answer, status 200)"}},
		{name: "not a stream", answers: []answer{{header: plain, pieces: text("{}")}}, want: []string{"error p: not a stream of events (answer, status 200)"}},
		{name: "redirect", answers: []answer{{status: 307, header: http.Header{"Location": {"https://elsewhere.example/"}}}},
			want: []string{`error p: the answer leads to another address, "https://elsewhere.example/", which is not followed (answer, status 307)`}},
		{name: "left alone for too long", answers: []answer{{status: 429, header: http.Header{"Retry-After": {"3600"}}, pieces: text("slow down")}},
			want: []string{"error p: slow down (rate, status 429)"}},
		{name: "event too large", answers: []answer{{pieces: text("data: " + strings.Repeat("x", MaxEvent+1) + "\n\n")}}, retries: -1,
			want: []string{"error p: bufio.Scanner: token too long (network)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answers: tt.answers}
				got := run(t.Context(), &Client{Provider: "p", Model: "m", HTTP: &http.Client{Transport: s}, Retries: tt.retries}, 0)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
				for _, r := range s.requests {
					if r.URL.Host != "example.org" {
						t.Errorf("a request went to %s", r.URL.Host)
					}
				}
			})
		})
	}
}

// TestStall: a request is ended when no byte comes for too long, also before the first
// one; keep-alives are bytes, and a slow reader of the answer does not count.
func TestStall(t *testing.T) {
	const limit = time.Minute
	ping := piece{limit - time.Second, ": ping\n\n"}
	for _, tt := range []struct {
		name   string
		answer answer
		slow   time.Duration
		want   []string
	}{
		{"no header", answer{wait: time.Hour}, 0, []string{"error p: nothing came for 1m0s (stalled)"}},
		{"in the middle", answer{pieces: []piece{{0, event("a")}, {time.Hour, event("done")}}}, 0, []string{":a", "error p: nothing came for 1m0s (stalled)"}},
		{"keep-alives", answer{pieces: []piece{ping, ping, ping, ping, {limit - time.Second, event("done")}}}, 0, []string{"done end_turn"}},
		{"slow reader", answer{pieces: []piece{{0, event("a")}, {0, event("done")}}}, time.Hour, []string{":a", "done end_turn"}},
		{"error body", answer{status: 500, header: http.Header{}, pieces: []piece{{time.Hour, "x"}}}, 0, []string{"error p: nothing came for 1m0s (stalled)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.answer.ends = make(chan struct{})
				c := &Client{Provider: "p", HTTP: &http.Client{Transport: &server{answers: []answer{tt.answer}}}, Stall: limit, Retries: -1}
				var got []string
				call := &Call{URL: "https://example.org/", Body: []byte("{}")}
				for e, err := range c.Generate(t.Context(), call, func() Decoder { return new(words) }) {
					time.Sleep(tt.slow)
					switch e := e.(type) {
					case *model.TextDelta:
						got = append(got, e.Text)
					case *model.Done:
						got = append(got, "done "+string(e.Reason))
					}
					if err != nil {
						got = append(got, "error "+err.Error())
					}
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestRetryAfter: the wait is as long as the provider wants, and grows otherwise.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: []answer{
			{status: 429, header: http.Header{"Retry-After": {"40"}}},
			{status: 503, header: http.Header{"Retry-After-Ms": {"1500"}}},
			{status: 503, header: http.Header{"Retry-After": {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}}},
		}}
		c := &Client{Provider: "p", HTTP: &http.Client{Transport: s}}
		began := time.Now()
		got := run(t.Context(), c, 0)
		if took := time.Since(began); took < 41500*time.Millisecond || took > 45*time.Second {
			t.Errorf("waited %v", took)
		}
		if len(s.requests) != 3 || !strings.HasPrefix(got[len(got)-1], "error") {
			t.Errorf("%d requests, %q", len(s.requests), got)
		}
	})
}

// TestCancel: cancelling ends the answer, a wait and a request that has no answer yet, with
// the cause; leaving the loop closes the connection.
func TestCancel(t *testing.T) {
	why := errors.New("the user said so")
	for name, a := range map[string]answer{
		"answer":  {pieces: []piece{{0, event("a")}, {time.Hour, event("b")}}},
		"request": {wait: time.Hour},
		"wait":    {status: 529, header: http.Header{"Retry-After": {"100"}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(why) })
				got := run(ctx, &Client{Provider: "p", HTTP: &http.Client{Transport: &server{answers: []answer{a}}}}, 0)
				if last := got[len(got)-1]; last != "error "+why.Error() {
					t.Errorf("%q", got)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ends := make(chan struct{})
		s := &server{answers: []answer{{pieces: []piece{{0, event("a")}, {time.Hour, event("b")}}, ends: ends}}}
		if got := run(t.Context(), &Client{HTTP: &http.Client{Transport: s}}, 1); len(got) != 1 {
			t.Errorf("%q", got)
		}
		select {
		case <-ends:
		default:
			t.Error("the connection is open")
		}
	})
}

// TestLimits: what headers say is passed on before the answer.
func TestLimits(t *testing.T) {
	h := http.Header{"Content-Type": {"text/event-stream"}, "Left": {"12"}}
	s := &server{answers: []answer{{header: h, pieces: []piece{{0, event("done")}}}}}
	c := &Client{HTTP: &http.Client{Transport: s}, Limits: func(h http.Header) *model.Limits {
		var n int
		_, _ = fmt.Sscan(h.Get("Left"), &n)
		return &model.Limits{Requests: n}
	}}
	if diff := cmp.Diff([]string{"limits 12", "done end_turn"}, run(t.Context(), c, 0)); diff != "" {
		t.Error(diff)
	}
}

// TestKeys: a key is in no error, also if the provider repeats it.
func TestKeys(t *testing.T) {
	const key = "sk-secret-key"
	for name, a := range map[string]answer{
		"refused":   {status: 401, pieces: []piece{{text: "Incorrect API key provided: " + key}}},
		"in stream": {pieces: []piece{{text: "data: fail " + key + "\n\n"}}},
		"page":      {status: 200, header: http.Header{"Content-Type": {"text/html"}}, pieces: []piece{{text: "<p>" + key}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Client{Provider: "p", HTTP: &http.Client{Transport: &server{answers: []answer{a}}}, Retries: -1}
			call := &Call{URL: "http://host/?x=1", Header: http.Header{"Authorization": {"Bearer " + key}, "X-Api-Key": {key}}}
			var got error
			for _, err := range c.Generate(t.Context(), call, func() Decoder { return failing{} }) {
				got = err
			}
			e, ok := errors.AsType[*model.Error](got)
			if !ok || strings.Contains(e.Error(), key) || strings.Contains(string(e.Raw), key) {
				t.Errorf("%v, %s", got, e.Raw)
			}
		})
	}
}

// failing is a decoder that repeats what it was given as an error.
type failing struct{}

func (failing) Event(_ string, data []byte, _ func(model.Event)) error {
	return &model.Error{Kind: model.KindRequest, Message: string(data), Raw: data}
}

func (failing) Used() model.Usage { return model.Usage{} }

func (failing) End(func(model.Event)) error { return nil }

// TestTrace: requests have the trace of their context, and nothing that is none.
func TestTrace(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, tc := range []struct{ parent, state, wantParent, wantState string }{
		{parent, "a=1,b=2", parent, "a=1,b=2"},
		{parent, "", parent, ""},
		{parent, "a=1\r\nX-Own: 1", parent, ""},
		{"00-x", "a=1", "", ""},
		{parent + "\n", "", "", ""},
		{"", "", "", ""},
	} {
		var got http.Header
		c := &Client{Retries: -1, HTTP: &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
			got = r.Header
			return nil, errors.New("enough")
		})}}
		run(model.WithTrace(t.Context(), tc.parent, tc.state), c, 0)
		if got.Get("Traceparent") != tc.wantParent || got.Get("Tracestate") != tc.wantState || got.Get("X-Api-Key") != "secret" {
			t.Errorf("%q, %q: %v", tc.parent, tc.state, got)
		}
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSpent: what an answer has used that is not complete is said before the error or the next try, once for each that the
// provider had begun.
func TestSpent(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []answer
		cancel  bool
		want    string
	}{
		{"whole", []answer{{pieces: []piece{{text: event("a")}, {text: event("done")}}}}, false, "done"},
		{"broken off twice", []answer{{pieces: []piece{{text: event("abc")}}}, {pieces: []piece{{text: event("ab")}}}, {pieces: []piece{{text: event("done")}}}}, false,
			"spent 4, again 2, spent 3, again 3, done"},
		{"refused", []answer{{status: 529, header: http.Header{"Content-Type": {"application/json"}}}, {pieces: []piece{{text: event("done")}}}}, false, "again 2, done"},
		{"an error at once", []answer{{pieces: []piece{{text: event("overloaded")}}}, {pieces: []piece{{text: event("done")}}}}, false, "again 2, done"},
		{"an error later", []answer{{pieces: []piece{{text: event("abc")}, {text: event("bad")}}}}, false, "spent 4, error"},
		{"cancelled", []answer{{pieces: []piece{{text: event("abc")}, {after: time.Hour, text: event("done")}}}}, true, "spent 4, error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := &Client{Provider: "p", Model: "m", HTTP: &http.Client{Transport: &server{answers: tt.answers}}}
				var got []string
				for e, err := range c.Generate(ctx, &Call{URL: "https://example.org/"}, func() Decoder { return new(words) }) {
					switch e := e.(type) {
					case *model.TextDelta:
						if tt.cancel {
							cancel()
						}
					case *model.Spent:
						got = append(got, fmt.Sprintf("spent %d", e.Written))
					case *model.Retrying:
						got = append(got, fmt.Sprintf("again %d", e.Attempt))
					case *model.Done:
						got = append(got, "done")
					}
					if err != nil {
						got = append(got, "error")
					}
				}
				if diff := cmp.Diff(tt.want, strings.Join(got, ", ")); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestAnyKey: a key that a server repeats is in no error, whatever header it was sent in.
func TestAnyKey(t *testing.T) {
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Cf-Aig-Authorization", "My-Own"} {
		h := http.Header{}
		h.Set(name, "Bearer secret-value-7")
		h.Set("Content-Type", "application/json")
		e := &model.Error{Message: "wrong: secret-value-7 in application/json", Code: "secret-value-7", Raw: []byte("x secret-value-7")}
		withoutKeys(e, h)
		if text := e.Message + e.Code + string(e.Raw); strings.Contains(text, "secret") || !strings.Contains(text, "application/json") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
