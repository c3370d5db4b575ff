// Package modeltest tests implementations of a language model against servers in memory.
package modeltest

import (
	"flag"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

var update = flag.Bool("update", false, "write what the models make of the streams in testdata")

// An Answer is what a [Server] answers.
type Answer struct {
	Status int         // 0 is 200
	Header http.Header // nil is that of a stream of events
	Body   string
	Bytes  bool // the body comes byte by byte
}

// A Server is a transport that answers requests, one after the other; the last answer is
// repeated.
type Server struct {
	Answers []Answer

	mu      sync.Mutex
	bodies  []string
	headers []http.Header
	urls    []string
}

// Bodies returns the bodies of all requests.
func (s *Server) Bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

// Last returns address, header and body of the last request.
func (s *Server) Last() (url string, header http.Header, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.bodies) - 1
	return s.urls[n], s.headers[n], s.bodies[n]
}

// RoundTrip implements [http.RoundTripper].
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	s.bodies = append(s.bodies, string(body))
	s.headers = append(s.headers, r.Header)
	s.urls = append(s.urls, r.Method+" "+r.URL.String())
	a := s.Answers[min(len(s.bodies), len(s.Answers))-1]
	s.mu.Unlock()
	if a.Header == nil {
		a.Header = http.Header{"Content-Type": {"text/event-stream"}}
	}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	var rd io.Reader = strings.NewReader(a.Body)
	if a.Bytes {
		rd = iotest.OneByteReader(rd)
	}
	return &http.Response{StatusCode: a.Status, Header: a.Header, Body: io.NopCloser(rd), Request: r}, nil
}

// Transcript returns the events of an answer, one per line, with the parts of the whole
// answer below its end.
func Transcript(answer iter.Seq2[model.Event, error]) string {
	var b strings.Builder
	alive := 0
	for e, err := range answer {
		if _, ok := e.(*model.Alive); ok {
			alive++
			continue
		}
		if alive > 0 {
			fmt.Fprintf(&b, "alive %d\n", alive)
			alive = 0
		}
		if err != nil {
			fmt.Fprintf(&b, "error %v\n", err)
			break
		}
		event(&b, e)
	}
	if alive > 0 {
		fmt.Fprintf(&b, "alive %d\n", alive)
	}
	return randomID.ReplaceAllString(b.String(), "call_RANDOM")
}

// randomID is an id that the client made itself.
var randomID = regexp.MustCompile(`call_[A-Z2-7]{26}`)

func event(b *strings.Builder, e model.Event) {
	switch e := e.(type) {
	case *model.Began:
		fmt.Fprintf(b, "began %s %s\n", e.ID, e.Model)
	case *model.TextDelta:
		fmt.Fprintf(b, "text %q\n", e.Text)
	case *model.ThoughtDelta:
		fmt.Fprintf(b, "thought %q\n", e.Text)
	case *model.ToolUseBegan:
		fmt.Fprintf(b, "tool %s %s ...\n", e.ID, e.Name)
	case *model.ToolInputDelta:
		fmt.Fprintf(b, "input %s %q\n", e.ID, e.JSON)
	case *model.ToolUse:
		part(b, "", e)
	case *model.Limits:
		fmt.Fprintf(b, "limits %d %d\n", e.Requests, e.Tokens)
	case *model.Retrying:
		fmt.Fprintf(b, "retrying %d discarded=%t: %v\n", e.Attempt, e.Discarded, e.Err)
	case *model.Done:
		fmt.Fprintf(b, "done %s %s", e.Reason, strconv.Quote(e.Detail))
		if u := e.Usage; u.Known {
			fmt.Fprintf(b, " input=%d read=%d write=%d output=%d reasoning=%d", u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning)
		}
		b.WriteByte('\n')
		for _, p := range e.Message.Parts {
			part(b, "  ", p)
		}
	}
}

func part(b *strings.Builder, indent string, p model.Part) {
	b.WriteString(indent)
	var o model.Opaque
	switch p := p.(type) {
	case *model.Text:
		fmt.Fprintf(b, "text %q", p.Text)
		o = p.Opaque
	case *model.Thought:
		fmt.Fprintf(b, "thought %q", p.Text)
		o = p.Opaque
	case *model.ToolUse:
		fmt.Fprintf(b, "tool %s %s %s", p.ID, p.Name, p.Input)
		if p.Malformed {
			b.WriteString(" malformed")
		}
		o = p.Opaque
	default:
		fmt.Fprintf(b, "%T", p)
	}
	if o.API != "" {
		fmt.Fprintf(b, " opaque %s %s", o.API, o.Data)
	}
	b.WriteByte('\n')
}

// Streams holds what a model makes of each stream in a txtar file: NAME.sse is the
// stream, NAME.want its transcript. In a stream called NAME.esc, Go's escapes in strings are
// carried out, and lines end only where they say so. Each stream is read at once and byte
// by byte. Retries are to be switched off in the model.
//
// With -update the file is written anew.
func Streams(t *testing.T, file string, least int, open func(http.RoundTripper) model.Model) {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	var streams []txtar.File
	for _, f := range a.Files {
		if name, ok := strings.CutSuffix(f.Name, ".want"); ok {
			want[name] = string(f.Data)
		} else {
			streams = append(streams, f)
		}
	}
	if len(streams) < least {
		t.Errorf("%s has %d streams, want %d", file, len(streams), least)
	}
	var out []txtar.File
	for _, f := range streams {
		name, kind, _ := strings.Cut(f.Name, ".")
		body := string(f.Data)
		if kind == "esc" {
			body, err = strconv.Unquote(`"` + strings.ReplaceAll(strings.ReplaceAll(body, "\n", ""), `"`, `\"`) + `"`)
			if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
		}
		header := http.Header{"Content-Type": {"text/event-stream"}}
		if kind == "ndjson" {
			header.Set("Content-Type", "application/x-ndjson")
		}
		t.Run(name, func(t *testing.T) {
			r := &model.Request{Prefix: &model.Prefix{}, Messages: []*model.Message{{Role: model.User, Parts: []model.Part{&model.Text{Text: "hi"}}}}}
			got := ""
			for _, slow := range []bool{false, true} {
				s := &Server{Answers: []Answer{{Header: header, Body: body, Bytes: slow}}}
				now := Transcript(open(s).Generate(t.Context(), r))
				if slow && now != got {
					t.Errorf("byte by byte:\n%s\nat once:\n%s", now, got)
				}
				got = now
			}
			out = append(out, f, txtar.File{Name: name + ".want", Data: []byte(got)})
			if !*update && got != want[name] {
				t.Errorf("(-want +got)\n%s", cmp.Diff(want[name], got))
			}
		})
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(&txtar.Archive{Comment: a.Comment, Files: out}), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Once holds that an answer ends once, with Done or with an error, that tools are asked
// for once each, and that what is whole is what the pieces said.
func Once(t *testing.T, answer iter.Seq2[model.Event, error]) {
	t.Helper()
	ends, text, uses := 0, "", 0
	for e, err := range answer {
		if ends > 0 {
			t.Fatalf("%T, %v after the end", e, err)
		}
		if err != nil {
			ends++
			continue
		}
		switch e := e.(type) {
		case *model.TextDelta:
			text += e.Text
		case *model.ToolUse:
			uses++
		case *model.Done:
			ends++
			whole, asked := "", 0
			for _, p := range e.Message.Parts {
				switch p := p.(type) {
				case *model.Text:
					whole += p.Text
				case *model.ToolUse:
					asked++
				}
			}
			if len(whole) != len(text) || asked != uses {
				t.Fatalf("the pieces have %q and %d tools, the whole %q and %d", text, uses, whole, asked)
			}
		}
	}
	if ends != 1 {
		t.Fatalf("it ended %d times", ends)
	}
}
