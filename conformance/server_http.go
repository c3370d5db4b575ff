package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/internal/pattern"
)

const (
	connectionHeader = "Acp-Connection-Id"
	// maxResponse bounds what is read of the body of a response.
	maxResponse = 1 << 20
	// reopenPause is how long is waited before a stream is asked for again.
	reopenPause = 50 * time.Millisecond
)

// client returns a client for one trial.
func (s *site) client() *http.Client {
	transport := &http.Transport{
		DialContext: s.at.Dial, DisableCompression: true, ForceAttemptHTTP2: true, Proxy: http.ProxyFromEnvironment,
		MaxIdleConnsPerHost: 16, ExpectContinueTimeout: time.Second,
	}
	if s.at.TLS != nil {
		transport.TLSClientConfig = s.at.TLS.Clone()
	}
	jar, _ := cookiejar.New(nil) // it fails on a bad list of suffixes only
	return &http.Client{
		Transport: transport, Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// newRequest makes a request. A header is "Name: value"; one without a value is left
// out.
func (t *netTrial) newRequest(ctx context.Context, method, body string, headers []string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.site.url.String(), strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	switch method {
	case http.MethodPost:
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	case http.MethodGet:
		req.Header.Set("Accept", "text/event-stream")
	}
	if id := t.known["connection"]; id != nil {
		req.Header.Set(connectionHeader, id.Str)
	}
	for name, values := range t.site.at.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(t.expand(h), ":")
		switch value = strings.TrimSpace(value); {
		case name == "Host":
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

// A response is that to the last request.
type response struct {
	status int
	header http.Header
	proto  string
	body   string
	close  func() // of a body that is a stream
}

func (r *response) String() string {
	return fmt.Sprintf("%d %s", r.status, http.StatusText(r.status))
}

// value returns the response as a value: its status, protocol and body, which is a
// string unless it is JSON.
func (r *response) value() *pattern.Value {
	body := r.bodyValue()
	v, err := pattern.Parse(`{"status":` + strconv.Itoa(r.status) + `,"proto":` + pattern.Quote(r.proto) + `,"body":` + body.Text + `}`)
	if err != nil {
		return pattern.Text(r.body)
	}
	return v
}

func (r *response) bodyValue() *pattern.Value {
	if v, err := pattern.Parse(r.body); err == nil {
		return v
	}
	return pattern.Text(strings.ToValidUTF8(r.body, "\ufffd"))
}

// request makes a request and waits for its response, of which it reads the body unless
// that is a stream of events. The response is $response.
func (t *netTrial) request(method, body string, headers []string) error {
	resp, stop, err := t.do(method, body, headers)
	if err != nil {
		return err
	}
	r := &response{status: resp.StatusCode, header: resp.Header, proto: resp.Proto, close: stop}
	if t.response != nil {
		t.response.close()
	}
	t.response = r
	if method != http.MethodGet || resp.StatusCode != http.StatusOK {
		timer := time.AfterFunc(t.limit, stop)
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
		if !timer.Stop() && err != nil {
			return &verdict{status: Fail, late: true, why: fmt.Sprintf("the response to %s did not end within %v", method, t.limit)}
		}
		_ = resp.Body.Close()
		stop()
		r.body = string(data)
	} else {
		r.close = func() { stop(); _ = resp.Body.Close() }
	}
	t.see(false, "%s", strings.TrimRight(fmt.Sprintf("%s; %s\n%s", r, headerText(r.header), r.body), "\n; "))
	if id := resp.Header.Get(connectionHeader); id != "" && len(t.opened) < 64 {
		t.opened = append(t.opened, id)
	}
	t.known["response"] = r.value()
	return nil
}

// do makes a request and waits for the head of the response. stop ends it.
func (t *netTrial) do(method, body string, headers []string) (resp *http.Response, stop context.CancelFunc, err error) {
	ctx, stop := context.WithCancel(t.ctx)
	req, err := t.newRequest(ctx, method, body, headers)
	if err != nil {
		stop()
		return nil, nil, err
	}
	host := ""
	if req.Host != t.site.url.Host {
		host = " to the host " + req.Host
	}
	t.see(true, "%s", strings.TrimRight(fmt.Sprintf("%s%s; %s\n%s", method, host, headerText(req.Header), shorten([]byte(body))), "\n; "))
	timer := time.AfterFunc(t.limit, stop)
	resp, err = t.client.Do(req)
	late := !timer.Stop()
	switch {
	case err == nil && !late:
		return resp, stop, nil
	case err == nil:
		_ = resp.Body.Close()
	}
	stop()
	switch {
	case t.ctx.Err() != nil:
		return nil, nil, cause(t.ctx)
	case late:
		return nil, nil, &verdict{status: Fail, late: true, why: fmt.Sprintf("%s was not answered within %v", method, t.limit)}
	}
	return nil, nil, failed("%s was not answered: %s", method, clip(unwrapped(err), 200))
}

// unwrapped returns the text of an error without the URL, which may be long.
func unwrapped(err error) string {
	for e := errors.Unwrap(err); e != nil; e = errors.Unwrap(e) {
		return e.Error()
	}
	return err.Error()
}

// judge looks at the last response.
func (t *netTrial) judge(s *step) error {
	r := t.response
	if r == nil {
		return broken("line %d: there is no response", s.line)
	}
	switch s.verb {
	case "status":
		for _, code := range s.codes {
			if code == r.status {
				return nil
			}
		}
		return failed("the status is %s, expected %s", r, codeList(s.codes))
	case "optional":
		if got := r.header.Values(s.method); len(got) > 0 {
			t.known[s.name] = pattern.Text(strings.Join(got, ", "))
		}
	case "without":
		if got := r.header.Get(s.method); got != "" {
			return failed("the header %s is %s, expected none", http.CanonicalHeaderKey(s.method), clip(got, 100))
		}
	case "header":
		got := r.header.Values(s.method)
		if len(got) == 0 {
			return failed("the header %s is missing", http.CanonicalHeaderKey(s.method))
		}
		v := pattern.Text(strings.Join(got, ", "))
		if pattern.Match(s.val, v, t.known) != nil {
			return failed("the header %s is %s, expected %s", http.CanonicalHeaderKey(s.method), clip(v.Str, 100), clip(s.val.Text, 200))
		}
	case "body":
		if bad := pattern.Match(s.val, r.bodyValue(), t.known); bad != nil {
			return failed("the body: %s", strings.Replace(bad.Error(), "the frame", "it", 1))
		}
	}
	return nil
}

// An eventStream is a stream of events that is being read. The trial's mu guards all but
// stop.
type eventStream struct {
	stop    func()
	events  []event
	bytes   int
	comment bool // one was received
	over    bool
}

// An event is one of a stream.
type event struct {
	name, data string
	val        *pattern.Value // nil if the data is not a JSON object
	used       bool
}

// reopen begins to read a stream whose reader has just left, which the server may not
// have seen yet.
func (t *netTrial) reopen(name string, headers []string) error {
	for deadline := time.Now().Add(t.limit); ; {
		err := t.stream(name, headers)
		if v, ok := errors.AsType[*verdict](err); !ok || v.late || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(reopenPause):
		case <-t.ctx.Done():
			return cause(t.ctx)
		}
	}
}

// stream begins to read a stream, which must be possible.
func (t *netTrial) stream(name string, headers []string) error {
	resp, stop, err := t.do(http.MethodGet, "", headers)
	if err != nil {
		return err
	}
	t.see(false, "%d %s; %s", resp.StatusCode, http.StatusText(resp.StatusCode), headerText(resp.Header))
	e := &eventStream{stop: stop}
	if resp.StatusCode != http.StatusOK {
		stop()
		_ = resp.Body.Close()
		return failed("GET was answered with %d %s, expected 200 OK and events", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	t.streams[name] = e
	t.known[name] = pattern.Text(name)
	t.readers.Go(func() {
		t.read(e, bufio.NewReader(resp.Body))
		stop()
		_ = resp.Body.Close()
	})
	return nil
}

// read reads a stream to its end.
func (t *netTrial) read(e *eventStream, r *bufio.Reader) {
	var ev event
	begun := false
	for {
		line, err := readEventLine(r)
		if err != nil {
			t.mu.Lock()
			e.over = true
			t.mu.Unlock()
			signal(t.ready)
			return
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && begun:
			if v, err := pattern.Parse(ev.data); err == nil && v.Kind == pattern.Object {
				ev.val = v
			}
			t.see(false, "event %s%s", ev.name, ev.data)
			t.mu.Lock()
			e.events = append(e.events, ev)
			full := len(e.events) > maxWaiting
			if e.bytes += len(ev.data); e.bytes > maxWaitingBytes || full {
				e.stop()
			}
			t.mu.Unlock()
			ev, begun = event{}, false
		case strings.HasPrefix(line, ":"):
			t.mu.Lock()
			e.comment = true
			t.mu.Unlock()
		case field == "data":
			if begun {
				ev.data += "\n"
			}
			ev.data, begun = ev.data+value, true
		case field == "event":
			ev.name = value
		}
		signal(t.ready)
	}
}

// readEventLine reads a line, which ends with CR, LF or both, of up to maxWaitingBytes.
func readEventLine(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		c, err := r.ReadByte()
		switch {
		case err != nil:
			return "", err
		case c == '\n':
			return b.String(), nil
		case c == '\r':
			// Waiting for the next byte could hold up an event, so a line feed must be
			// here already to belong to it.
			if r.Buffered() > 0 {
				if next, err := r.Peek(1); err == nil && next[0] == '\n' {
					_, _ = r.Discard(1)
				}
			}
			return b.String(), nil
		case b.Len() > maxWaitingBytes:
			return "", errors.New("conformance: a line of a stream is too long")
		}
		b.WriteByte(c)
	}
}

// find waits for an event that fits a pattern, among those that no step was about.
func (t *netTrial) find(e *eventStream, want *pattern.Value) (found *pattern.Value, err error) {
	over := false
	err = t.until(func() bool {
		for i := range e.events {
			ev := &e.events[i]
			if !ev.used && ev.val != nil && t.matches(want, ev.val) {
				ev.used, found = true, ev.val
				return true
			}
		}
		over = e.over
		return over
	})
	if err == nil && found == nil {
		return nil, failed("the stream ended where an event was due")
	}
	return found, err
}

// anywhere waits for an event on any stream. The rule is unseen without it.
func (t *netTrial) anywhere(s *step) error {
	err := t.until(func() bool {
		for _, e := range t.streams {
			for i := range e.events {
				if ev := &e.events[i]; ev.val != nil && t.matches(s.val, ev.val) {
					return true
				}
			}
		}
		return false
	})
	if errors.Is(err, errTimeout) {
		return unseen("the event %s did not come within %v", clip(s.val.Text, 200), t.limit)
	}
	return err
}

// onStream plays a step about a stream.
func (t *netTrial) onStream(e *eventStream, s *step) error {
	switch s.verb {
	case "event", "await":
		_, err := t.find(e, s.val)
		if s.verb == "await" && errors.Is(err, errTimeout) {
			return unseen("the event %s did not come within %v", clip(s.val.Text, 200), t.limit)
		}
		return t.missing(err, "the event %s", clip(s.val.Text, 200))
	case "leave":
		e.stop()
		_ = t.until(func() bool { return e.over })
		return nil
	case "ended":
		return t.missing(t.until(func() bool { return e.over }), "the end of the stream")
	case "comment":
		err := t.until(func() bool { return e.comment || e.over })
		if errors.Is(err, errTimeout) {
			return unseen("no keep-alive came within %v", t.limit)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if err == nil && !e.comment {
			return failed("the stream ended where it had to be kept open")
		}
		return err
	case "arrives":
		return t.missing(t.until(func() bool { return len(e.events) >= s.n || e.over }), "an event")
	case "counting":
		return t.counting(e, s.n)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ev := range e.events {
		switch {
		case s.verb == "wellformed" && ev.val == nil:
			return failed("an event is not one JSON object: %s", clip(ev.data, 200))
		case s.verb == "unnamed" && ev.name != "" && ev.name != "message":
			return failed("an event has the name %s, which hides it from readers", clip(ev.name, 40))
		case s.verb == "never" && !ev.used && ev.val != nil && t.matches(s.val, ev.val):
			return failed("%s came where it must not: %s", clip(ev.data, 200), s.text)
		}
	}
	return nil
}

// counting waits for an agent that counts in its messages, in order.
func (t *netTrial) counting(e *eventStream, n int) error {
	var text strings.Builder
	seen := 0
	var bad error
	err := t.until(func() bool {
		for ; seen < len(e.events); seen++ {
			u := e.events[seen].val.Get("params").Get("update")
			if u.StringAt("sessionUpdate") == "agent_message_chunk" {
				text.WriteString(u.Get("content").StringAt("text"))
			}
		}
		bad = countsUpTo(text.String(), n)
		return bad == nil || e.over
	})
	if bad != nil && (err == nil || errors.Is(err, errTimeout)) {
		return bad
	}
	return err
}
