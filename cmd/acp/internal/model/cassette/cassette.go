// Package cassette records what a provider answers and plays it back, so that a
// conversation with a model can be had again without a key and without a network.
//
// A cassette is a file of JSON lines, one for each request:
//
//	{"model":"anthropic/claude-sonnet-5","path":"/v1/messages","request":{…},"status":200,"type":"text/event-stream","body":"…"}
//
// It has no headers of requests, and so no keys; but it has the conversation. Answers are
// played in their order. What is asked need not be what was asked when the cassette was
// recorded: a changed instruction does not make it useless.
package cassette

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

// Bounds.
const (
	MaxFile = 256 << 20 // bytes of a cassette
	maxBody = 64 << 20  // of a request or an answer; more is cut off
)

// A take is a request and what came of it.
type take struct {
	Model   string          `json:"model"`
	Path    string          `json:"path"`
	Request json.RawMessage `json:"request,omitempty"`
	Status  int             `json:"status"`
	Type    string          `json:"type"`
	Body    string          `json:"body"`
	// Cut says that the answer was not read to its end.
	Cut bool `json:"cut,omitempty"`
}

// A Recorder writes what passes to a file. It is made by Record. It may be used from any
// goroutine.
type Recorder struct {
	file string
	mu   sync.Mutex
}

// Record returns a recorder that appends to a file, which it creates with the first
// answer. Only the user can read it.
func Record(file string) *Recorder { return &Recorder{file: file} }

// For returns a transport that records the requests of a model. next is the usual one if
// it is nil.
func (r *Recorder) For(model string, next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &recording{r, model, next}
}

type recording struct {
	r     *Recorder
	model string
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *recording) RoundTrip(req *http.Request) (*http.Response, error) {
	one := &take{Model: t.model, Path: req.URL.Path}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		_ = req.Body.Close() // it was read
		if err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
		if len(body) <= maxBody && json.Valid(body) {
			one.Request = body
		}
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	one.Status, one.Type = resp.StatusCode, resp.Header.Get("Content-Type")
	resp.Body = &tape{ReadCloser: resp.Body, r: t.r, take: one}
	return resp, nil
}

// A tape is the body of an answer that is recorded.
type tape struct {
	io.ReadCloser
	r    *Recorder
	take *take
	b    bytes.Buffer
	once sync.Once
}

// Read implements [io.Reader].
func (t *tape) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if t.b.Len()+n <= maxBody {
		t.b.Write(p[:n])
	}
	if errors.Is(err, io.EOF) {
		t.end(false)
	}
	return n, err
}

// Close implements [io.Closer].
func (t *tape) Close() error {
	t.end(true)
	return t.ReadCloser.Close()
}

// end writes the take. A failure is not the conversation's: the cassette lacks a line.
func (t *tape) end(cut bool) {
	t.once.Do(func() {
		t.take.Body, t.take.Cut = t.b.String(), cut
		_ = t.r.write(t.take)
	})
}

func (r *Recorder) write(one *take) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(one); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := os.OpenFile(r.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	return errors.Join(err, f.Close())
}

// A Player plays a cassette. It may be used from any goroutine.
type Player struct {
	Model string // of which the cassette is

	mu    sync.Mutex
	takes []*take
	next  int
}

// Open reads a cassette. It fails if the file is none, or is of more than one model.
func Open(file string) (*Player, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > MaxFile {
		return nil, fmt.Errorf("%s: a cassette has at most %d MiB", file, MaxFile>>20)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	p := new(Player)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 2*maxBody+1<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		one := new(take)
		if err := json.Unmarshal(lines.Bytes(), one); err != nil || one.Model == "" || one.Status == 0 {
			return nil, fmt.Errorf("%s:%d: this is not a line of a cassette", file, n)
		}
		if p.Model != "" && one.Model != p.Model {
			return nil, fmt.Errorf("%s:%d: the cassette is of more than one model: %s and %s", file, n, p.Model, one.Model)
		}
		p.Model = one.Model
		p.takes = append(p.takes, one)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if p.Model == "" {
		return nil, fmt.Errorf("%s: the cassette is empty", file)
	}
	return p, nil
}

// ErrEnd says that the cassette has been played to its end.
var ErrEnd = errors.New("the cassette has no further answer")

// RoundTrip implements [http.RoundTripper]: it answers with what comes next for the path of
// the request.
func (p *Player) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body) // the answer does not depend on it
		_ = req.Body.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; p.next < len(p.takes); p.next++ {
		one := p.takes[p.next]
		if !strings.HasSuffix(one.Path, last(req.URL.Path)) {
			continue
		}
		p.next++
		return &http.Response{
			StatusCode: one.Status, Status: http.StatusText(one.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {one.Type}}, Body: io.NopCloser(strings.NewReader(one.Body)), Request: req,
		}, nil
	}
	return nil, ErrEnd
}

// last returns the last element of a path: what is before it differs with the base URL.
func last(path string) string {
	parts := strings.Split(path, "/")
	return strings.Join(parts[len(parts)-1:], "/")
}
