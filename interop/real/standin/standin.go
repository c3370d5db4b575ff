// Package standin stands in for the services that language models are reached by,
// so that coding agents can be run where there is no network: the streaming
// interfaces of OpenAI (chat completions and responses), Google (generate content)
// and Anthropic (messages), served on the loopback interface. Nothing in it models
// a language: what is answered is scripted by the prompt.
package standin

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Mark begins the line of a prompt that says what the model shall do:
//
//	standin: say WORDS      says the words
//	standin: write FILE T   calls the agent's tool that writes T into FILE
//	standin: run COMMAND    calls the agent's tool that runs a command
//	standin: wait           says "waiting" and nothing more until it is cancelled
//	standin: history        says all such lines of the conversation before this one
//	standin: fail           answers with an error of the service
//
// After the result of a tool it says "the tool said: " and the result. A request
// without such a line, such as one for a title, is answered with "ok".
const Mark = "standin: "

// maxBody bounds a request; a longer one is answered with 413.
const maxBody = 16 << 20

// maxCalls bounds how often one line calls a tool: for an agent that does not
// return the results the calls would never end.
const maxCalls = 3

// A Call is a call of a tool, by the name it was offered under. Args is a JSON
// object.
type Call struct {
	Name string
	Args any
}

// Tools says how an agent's tools are called. It gets the verb, write or run, and
// what follows it. The names that the request offers come with it.
type Tools func(verb, rest string, offered []string) (Call, error)

// A request is what the interfaces have in common.
type request struct {
	users   []string // the texts of the user, in order
	results []string // of tools, since the last of those with a Mark
	tools   []string
}

// A step is how a request is answered.
type step struct {
	text []string // piece by piece
	call *Call
	hang bool // after the text
	fail bool
	id   string // the end of ids, unlike that of any other answer: agents merge what has the same
}

// A Server serves all interfaces. It is made by New and has to be closed. Its
// methods may be called from any goroutine.
type Server struct {
	// URL is where it listens, without a slash at the end.
	URL string

	tools Tools
	http  *httptest.Server

	mu     sync.Mutex
	counts map[string]int // of requests, by method and path
	waited int            // requests that wait or waited
	left   int            // of these, the ones whose client went away
	steps  int
	calls  map[string]int // of tools, by line
	log    io.Writer
}

// New starts a server. Requests are written to log, if there is one.
func New(tools Tools, log io.Writer) *Server {
	s := &Server{tools: tools, counts: map[string]int{}, calls: map[string]int{}, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", serve(s, readChat, writeChat))
	mux.HandleFunc("POST /v1/responses", serve(s, readResponses, writeResponses))
	mux.HandleFunc("POST /v1/messages", serve(s, readMessages, writeMessages))
	mux.HandleFunc("POST /v1beta/models/{call}", serve(s, readGenerate, writeGenerate))
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, r *http.Request) {
		s.count(r, nil)
		fmt.Fprint(w, `{"input_tokens":10}`)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.count(r, nil)
		http.Error(w, `{"error":{"message":"not here","type":"not_found_error"}}`, http.StatusNotFound)
	})
	s.http = httptest.NewServer(mux)
	s.URL = s.http.URL
	return s
}

// Close ends all requests and stops the server.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Requests returns how many requests came, a line for each method and path, in
// order.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(s.counts)) {
		lines = append(lines, fmt.Sprintf("%d %s", s.counts[k], k))
	}
	return lines
}

// Waited returns how many requests were made to wait, and how many of these the
// agent gave up.
func (s *Server) Waited() (waited, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waited, s.left
}

func (s *Server) count(r *http.Request, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[r.Method+" "+r.URL.Path]++
	if s.log != nil {
		fmt.Fprintf(s.log, "%s %s\n%s\n", r.Method, r.URL, body)
	}
}

// serve handles the requests of one interface.
func serve[T any](s *Server, read func(*http.Request, T) request, write func(*stream, *http.Request, T, step)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		s.count(r, body)
		var in T
		if err := json.Unmarshal(body, &in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		st := s.decide(read(r, in))
		s.note(func() { s.steps++; st.id = strconv.Itoa(s.steps) })
		if st.fail {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"type":"error","error":{"type":"invalid_request_error","code":400,"status":"INVALID_ARGUMENT","message":"the stand-in fails as asked"}}`)
			return
		}
		write(&stream{w: w, hang: func() {
			s.note(func() { s.waited++ })
			<-r.Context().Done()
			s.note(func() { s.left++ })
		}}, r, in, st)
	}
}

func (s *Server) note(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// asked returns the line with the last Mark of a text.
func asked(text string) (line string, ok bool) {
	i := strings.LastIndex(text, Mark)
	if i < 0 {
		return "", false
	}
	line, _, _ = strings.Cut(text[i+len(Mark):], "\n")
	return strings.TrimSpace(line), true
}

// decide is the script.
func (s *Server) decide(r request) step {
	var lines []string
	for _, u := range r.users {
		if line, ok := asked(u); ok {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return step{text: []string{"ok"}}
	}
	verb, rest, _ := strings.Cut(lines[len(lines)-1], " ")
	switch verb {
	case "say":
		return step{text: strings.SplitAfter(rest, " ")}
	case "wait":
		return step{text: []string{"waiting"}, hang: true}
	case "fail":
		return step{fail: true}
	case "history":
		return step{text: []string{"before: " + strings.Join(lines[:len(lines)-1], "; ")}}
	case "write", "run":
		if len(r.results) > 0 {
			return step{text: []string{"the tool said: ", r.results[len(r.results)-1]}}
		}
		if len(r.tools) == 0 {
			return step{text: []string{"ok"}}
		}
		line, n := lines[len(lines)-1], 0
		s.note(func() { s.calls[line]++; n = s.calls[line] })
		if n > maxCalls {
			return step{text: []string{"no result came"}}
		}
		call, err := s.tools(verb, rest, r.tools)
		if err != nil {
			return step{text: []string{"no tool: " + err.Error()}}
		}
		return step{text: []string{"using a tool. "}, call: &call}
	}
	return step{text: []string{"what is " + verb + "?"}}
}

// A stream writes server-sent events.
type stream struct {
	w    http.ResponseWriter
	hang func() // returns when the client has gone
}

// begin has the answer begin.
func (s *stream) begin() {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.WriteHeader(http.StatusOK)
}

// send sends one event; most interfaces have no names for them.
func (s *stream) send(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // of literals in this package
	}
	if name != "" {
		fmt.Fprintf(s.w, "event: %s\n", name)
	}
	fmt.Fprintf(s.w, "data: %s\n\n", data)
	_ = http.NewResponseController(s.w).Flush() // a client that left is noticed by the context
}

// whole answers in one piece.
func (s *stream) whole(v any) {
	s.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(s.w).Encode(v)
}

// object is a JSON object.
type object = map[string]any

// texts returns the text in content that is a string or a list of blocks, each with
// one.
func texts(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var blocks []struct {
		Text    string
		Content json.RawMessage
	}
	_ = json.Unmarshal(raw, &blocks)
	var b strings.Builder
	for _, bl := range blocks {
		b.WriteString(bl.Text)
		if bl.Content != nil {
			b.WriteString(texts(bl.Content))
		}
	}
	return b.String()
}

// user adds a text of the user. One with a Mark begins a new turn.
func (r *request) user(text string) {
	if text == "" {
		return
	}
	r.users = append(r.users, text)
	if _, ok := asked(text); ok {
		r.results = nil
	}
}

// arguments returns those of a call as text.
func (c *Call) arguments() string {
	data, err := json.Marshal(c.Args)
	if err != nil {
		panic(err) // of literals in the tests
	}
	return string(data)
}
