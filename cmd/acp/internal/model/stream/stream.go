// Package stream is what the interfaces of language models share: it sends a request,
// reads the stream of events that answers it, notices when nothing comes any more, and
// tries again where that is safe.
//
// Bounds: an event has at most [MaxEvent] bytes and an answer [MaxAnswer]; of an error's
// body [MaxError] bytes are read. Nothing is read ahead of who ranges over the answer.
package stream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/tmaxmax/go-sse"
)

// The bounds.
const (
	MaxEvent  = 8 << 20
	MaxAnswer = 256 << 20
	MaxError  = 64 << 10
)

// The defaults of a [Client].
const (
	DefaultStall   = 300 * time.Second
	DefaultRetries = 5
	// maxWait is the longest time that is waited before another try. A provider that
	// wants to be left alone for longer gets its way: the request fails.
	maxWait = 2 * time.Minute
)

// A Client sends requests to one provider. Its fields are not changed once it is used;
// it may be used from any goroutine.
type Client struct {
	Provider, Model string // for errors
	// HTTP sends the requests; nil is [http.DefaultClient]. Redirects are not followed,
	// so that keys are sent to no other host, and its Timeout does not apply.
	HTTP *http.Client
	// Stall is how long nothing may come, not even a keep-alive, before the request counts
	// as stalled; 0 is DefaultStall.
	Stall time.Duration
	// Retries is how often a request is sent again; 0 is DefaultRetries, and a negative
	// number means never.
	Retries int
	// Explain says what an answer that is not a stream means: its kind, code and message. It
	// may return nil, or leave the kind empty, where the status says enough.
	Explain func(status int, header http.Header, body []byte) *model.Error
	// Lines says that the stream consists of lines, each a JSON value, and not of
	// server-sent events.
	Lines bool
	// Limits reads the headers that say how much may still be asked; may be nil, and may
	// return nil.
	Limits func(header http.Header) *model.Limits
}

// A Call is a request.
type Call struct {
	URL    string
	Header http.Header // with the key
	Body   []byte
}

// A Decoder makes sense of the events of one answer. Its methods are called one after
// the other.
type Decoder interface {
	// Event is called with each event of the stream. It passes on what the event means. The
	// answer is complete once it has passed on a [model.Done].
	Event(name string, data []byte, pass func(model.Event)) error
	// End is called if the stream ends before that. It passes on a Done if the answer is
	// complete all the same, and otherwise returns an error, or nil for one that says that
	// the stream broke off.
	End(pass func(model.Event)) error
	// Used returns what the provider has said so far of what the answer has used.
	Used() model.Usage
}

// Generate sends a request and decodes its answer, with a new decoder for each try.
func (c *Client) Generate(ctx context.Context, call *Call, decoder func() Decoder) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		wait := &backoff.ExponentialBackOff{InitialInterval: 500 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 30 * time.Second}
		wait.Reset()
		for attempt := 1; ; attempt++ {
			t := &try{c: c, decoder: decoder(), yield: yield}
			err := t.run(ctx, call)
			if err == nil || t.left {
				return
			}
			if spent := t.spent(err); spent != nil && !yield(spent, nil) {
				return
			}
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			e, ok := errors.AsType[*model.Error](err)
			if ok {
				withoutKeys(e, call.Header)
			}
			if !ok || !e.Temporary() || t.tool || attempt > c.retries() || e.RetryAfter > maxWait {
				yield(nil, err)
				return
			}
			after := max(min(wait.NextBackOff(), maxWait), e.RetryAfter)
			if !yield(&model.Retrying{Err: e, Attempt: attempt + 1, After: after, Discarded: t.passed}, nil) {
				return
			}
			timer := time.NewTimer(after)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				yield(nil, context.Cause(ctx))
				return
			}
		}
	}
}

func (c *Client) retries() int {
	if c.Retries == 0 {
		return DefaultRetries
	}
	return max(c.Retries, 0)
}

// A try is one request and what came of it.
type try struct {
	c       *Client
	decoder Decoder
	yield   func(model.Event, error) bool
	left    bool // whoever ranges over the answer has left
	passed  bool // a piece of the answer was passed on
	tool    bool // a ToolUse was passed on, which may have begun
	done    bool
	began   bool // the provider has begun to answer
	written int  // bytes of the answer that were passed on
}

// errLeft ends the reading of an answer that nobody wants any more.
var errLeft = errors.New("left")

func (t *try) pass(e model.Event) {
	if t.left || t.done {
		return
	}
	switch e := e.(type) {
	case *model.TextDelta:
		t.passed, t.written = true, t.written+len(e.Text)
	case *model.ThoughtDelta:
		t.passed, t.written = true, t.written+len(e.Text)
	case *model.ToolInputDelta:
		t.passed, t.written = true, t.written+len(e.JSON)
	case *model.ToolUseBegan:
		t.passed = true
	case *model.Began:
		t.began = true
	case *model.ToolUse:
		t.passed, t.tool = true, true
	case *model.Done:
		t.done = true
	}
	t.left = !t.yield(e, nil)
}

// spent returns what a try has used that has failed; nil if it is not billed: the provider has answered with an error only.
func (t *try) spent(err error) *model.Spent {
	e := &model.Spent{Usage: t.decoder.Used(), Written: t.written}
	said, ok := errors.AsType[*model.Error](err)
	broke := !ok || said.Kind == model.KindNetwork || said.Kind == model.KindStalled
	if t.done || !e.Usage.Known && e.Written == 0 && !(t.began && broke) {
		return nil
	}
	return e
}

func (t *try) run(ctx context.Context, call *Call) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &watch{limit: t.c.Stall, cancel: cancel}
	if w.limit == 0 {
		w.limit = DefaultStall
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, call.URL, bytes.NewReader(call.Body))
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	req.Header = call.Header.Clone()
	model.SetTrace(ctx, req.Header)
	w.begin()
	resp, err := t.c.http().Do(req)
	w.end()
	if err != nil {
		return t.c.failed(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	w.r = resp.Body
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || !t.c.streams(kind) {
		return t.c.refused(ctx, resp, w)
	}
	if t.c.Limits != nil {
		if l := t.c.Limits(resp.Header); l != nil {
			t.pass(l)
		}
	}
	// An event that makes no sense may be one that the connection cut off: only what
	// follows tells.
	var senseless error
	for e, err := range t.c.events(io.LimitReader(w, MaxAnswer)) {
		if err != nil {
			return t.c.failed(ctx, err)
		}
		if senseless != nil {
			return senseless
		}
		if err := t.decoder.Event(e.Type, []byte(e.Data), t.pass); err != nil {
			err = t.c.complete(err)
			if e, ok := errors.AsType[*model.Error](err); !ok || e.Kind != model.KindAnswer {
				return err
			}
			senseless = err
		}
		if t.left {
			return errLeft
		}
		if t.done {
			return nil
		}
	}
	if senseless != nil {
		return senseless
	}
	if err := t.decoder.End(t.pass); err != nil {
		return t.c.complete(err)
	}
	if t.done {
		return nil
	}
	return &model.Error{Kind: model.KindNetwork, Provider: t.c.Provider, Model: t.c.Model, Message: "the stream ended in the middle of the answer", Err: io.ErrUnexpectedEOF}
}

// streams reports whether an answer of a media type is a stream.
func (c *Client) streams(kind string) bool {
	if c.Lines {
		return kind == "application/x-ndjson" || kind == "application/jsonl"
	}
	return kind == "text/event-stream"
}

// events reads a stream.
func (c *Client) events(r io.Reader) iter.Seq2[sse.Event, error] {
	if !c.Lines {
		return sse.Read(r, &sse.ReadConfig{MaxEventSize: MaxEvent})
	}
	return func(yield func(sse.Event, error) bool) {
		cut := false
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, MaxEvent)
		lines.Split(func(data []byte, end bool) (int, []byte, error) {
			n, line, err := bufio.ScanLines(data, end)
			cut = end && n == len(data) && !bytes.HasSuffix(data, []byte{'\n'}) && !json.Valid(data)
			return n, line, err
		})
		for lines.Scan() {
			text := strings.TrimSpace(lines.Text())
			if cut {
				yield(sse.Event{}, io.ErrUnexpectedEOF)
				return
			}
			if text != "" && !yield(sse.Event{Data: text}, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(sse.Event{}, err)
		}
	}
}

// withoutKeys removes keys from what a provider has said: some repeat them. Any header may have one that the user has set.
func withoutKeys(e *model.Error, h http.Header) {
	for name, values := range h {
		if slices.Contains(keyless, name) {
			continue
		}
		for _, key := range values {
			key = strings.TrimSpace(key)
			if _, after, ok := strings.Cut(key, " "); ok && (name == "Authorization" || name == "Proxy-Authorization" || strings.HasPrefix(key, "Bearer ")) {
				key = strings.TrimSpace(after)
			}
			if len(key) < minKey {
				continue
			}
			e.Message = strings.ReplaceAll(e.Message, key, "[key]")
			e.Code = strings.ReplaceAll(e.Code, key, "[key]")
			e.Raw = bytes.ReplaceAll(e.Raw, []byte(key), []byte("[key]"))
		}
	}
}

// keyless are headers that have no key: what they have may be a word of an error.
var keyless = []string{"Accept", "Content-Type", "User-Agent", "Anthropic-Version", "Anthropic-Beta", "Traceparent", "Tracestate"}

// minKey is how long a key has to be at least to be looked for: shorter ones are words.
const minKey = 8

// http returns a client that does not follow redirects.
func (c *Client) http() *http.Client {
	own := http.Client{}
	if c.HTTP != nil {
		own = *c.HTTP
	}
	own.Timeout = 0
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// complete says who failed, where the decoder left that open.
func (c *Client) complete(err error) error {
	if e, ok := errors.AsType[*model.Error](err); ok {
		if e.Provider == "" {
			e.Provider = c.Provider
		}
		if e.Model == "" {
			e.Model = c.Model
		}
	}
	return err
}

// failed explains an error of the connection.
func (c *Client) failed(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		stall := c.Stall
		if stall == 0 {
			stall = DefaultStall
		}
		return &model.Error{Kind: model.KindStalled, Provider: c.Provider, Model: c.Model, Message: fmt.Sprintf("nothing came for %v", stall), Err: errStalled}
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the address, which may hold a key
	}
	kind := model.KindNetwork
	if errors.Is(err, sse.ErrUnexpectedEOF) {
		err = io.ErrUnexpectedEOF
	}
	return &model.Error{Kind: kind, Provider: c.Provider, Model: c.Model, Message: err.Error(), Err: err}
}

// refused explains an answer that is not a stream.
func (c *Client) refused(ctx context.Context, resp *http.Response, w *watch) error {
	body, err := io.ReadAll(io.LimitReader(w, MaxError))
	if err != nil && len(body) == 0 {
		return c.failed(ctx, err)
	}
	var e *model.Error
	if c.Explain != nil {
		e = c.Explain(resp.StatusCode, resp.Header, body)
	}
	return c.complete(explain(e, resp, body))
}
