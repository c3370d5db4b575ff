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

// A Request is what the interfaces have in common.
type Request struct {
	API     string // chat, responses, messages, ollama or generate
	Body    []byte
	Users   []string                   // the texts of the user, in order
	Results []string                   // of tools: all of them, or since the last text with a Mark
	Tools   []string                   // that are offered
	Schemas map[string]json.RawMessage // of their inputs, where they have one
	Answers int                        // of the model so far
}

// A Step is how a request is answered.
type Step struct {
	Thought string   // with a signature, in the interfaces that have such
	Text    []string // piece by piece
	Calls   []Call
	Hang    bool // after the text, until the client goes away
	Fail    bool
	Refuse  string // as a request that cannot be answered, for this reason
	// Input and Output are the tokens that are reported; 0 is 10 and 5.
	Input, Output int

	id string // the end of ids, unlike that of any other answer: agents merge what has the same
}

// Options say how a server answers. Either Tools or Script is set.
type Options struct {
	// Tools says how the tools of an agent are called, for scripts in the prompt.
	Tools Tools
	// Script answers instead. It is called from several goroutines.
	Script func(*Request) Step
	// Strict refuses what the services refuse.
	Strict bool
	// Plain is a service of Chat Completions that knows little of JSON Schema.
	Plain bool
	// Log receives all requests; may be nil.
	Log io.Writer
}

// A Server serves all interfaces. It is made by New and has to be closed. Its
// methods may be called from any goroutine.
type Server struct {
	// URL is where it listens, without a slash at the end.
	URL string

	o    Options
	http *httptest.Server

	mu     sync.Mutex
	counts map[string]int // of requests, by method and path
	waited int            // requests that wait or waited
	left   int            // of these, the ones whose client went away
	steps  int
	calls  map[string]int    // of tools, by line
	signed map[string]string // thoughts by their signatures
	faults []string
	bodies [][]byte
	images map[string]error // why an image is refused, by what it is
}

// New starts a server.
func New(o Options) *Server {
	s := &Server{o: o, counts: map[string]int{}, calls: map[string]int{}, signed: map[string]string{}, images: map[string]error{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", serve(s, "chat", readChat, writeChat))
	mux.HandleFunc("POST /v1/responses", serve(s, "responses", readResponses, writeResponses))
	mux.HandleFunc("POST /v1/messages", serve(s, "messages", readMessages, writeMessages))
	mux.HandleFunc("POST /api/chat", serve(s, "ollama", readOllama, writeOllama))
	mux.HandleFunc("POST /v1beta/models/{call}", serve(s, "generate", readGenerate, writeGenerate))
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
	if body != nil {
		s.bodies = append(s.bodies, body)
	}
	if s.o.Log != nil {
		fmt.Fprintf(s.o.Log, "%s %s\n%s\n", r.Method, r.URL, body)
	}
}

// Faults returns why requests were refused.
func (s *Server) Faults() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.faults)
}

// Bodies returns what was asked, in order.
func (s *Server) Bodies() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

// serve handles the requests of one interface.
func serve[T any](s *Server, api string, read func(*http.Request, T) Request, write func(*stream, *http.Request, T, Step)) http.HandlerFunc {
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
		if s.o.Strict {
			if err := s.judge(api, body); err != nil {
				s.note(func() { s.faults = append(s.faults, api+": "+err.Error()) })
				reject(w, api, err.Error())
				return
			}
		}
		req := read(r, in)
		req.API, req.Body = api, body
		var st Step
		if s.o.Script != nil {
			st = s.o.Script(&req)
		} else {
			st = s.decide(req)
		}
		s.note(func() {
			s.steps++
			st.id = strconv.Itoa(s.steps)
			if st.Thought != "" {
				s.signed[signature(st.id)] = st.Thought
			}
		})
		if st.Input == 0 {
			st.Input = 10
		}
		if st.Output == 0 {
			st.Output = 5
		}
		if st.Refuse != "" {
			reject(w, api, st.Refuse)
			return
		}
		if st.Fail {
			reject(w, api, "the stand-in fails as asked")
			return
		}
		write(&stream{w: w, hang: func() {
			s.note(func() { s.waited++ })
			<-r.Context().Done()
			s.note(func() { s.left++ })
		}}, r, in, st)
	}
}

// signature returns that of the thought of an answer.
func signature(id string) string { return "c2lnbmF0dXJl" + id }

// reject refuses a request in the words of an interface.
func reject(w http.ResponseWriter, api, why string) {
	if api == "ollama" {
		refuseOllama(w, why)
		return
	}
	refuse(w, why)
}

// refuse answers with an error of the service.
func refuse(w http.ResponseWriter, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(object{"type": "error", "error": object{"type": "invalid_request_error", "code": 400, "status": "INVALID_ARGUMENT", "message": why}})
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
func (s *Server) decide(r Request) Step {
	var lines []string
	for _, u := range r.Users {
		if line, ok := asked(u); ok {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return Step{Text: []string{"ok"}}
	}
	verb, rest, _ := strings.Cut(lines[len(lines)-1], " ")
	switch verb {
	case "say":
		return Step{Text: strings.SplitAfter(rest, " ")}
	case "wait":
		return Step{Text: []string{"waiting"}, Hang: true}
	case "fail":
		return Step{Fail: true}
	case "history":
		return Step{Text: []string{"before: " + strings.Join(lines[:len(lines)-1], "; ")}}
	case "write", "run":
		if len(r.Results) > 0 {
			return Step{Text: []string{"the tool said: ", r.Results[len(r.Results)-1]}}
		}
		if len(r.Tools) == 0 {
			return Step{Text: []string{"ok"}}
		}
		line, n := lines[len(lines)-1], 0
		s.note(func() { s.calls[line]++; n = s.calls[line] })
		if n > maxCalls {
			return Step{Text: []string{"no result came"}}
		}
		call, err := s.o.Tools(verb, rest, r.Tools)
		if err != nil {
			return Step{Text: []string{"no tool: " + err.Error()}}
		}
		return Step{Text: []string{"using a tool. "}, Calls: []Call{call}}
	}
	return Step{Text: []string{"what is " + verb + "?"}}
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
func (r *Request) user(text string) {
	if text == "" {
		return
	}
	r.Users = append(r.Users, text)
	if _, ok := asked(text); ok {
		r.Results = nil
	}
}

// offer adds a tool.
func (r *Request) offer(name string, schema json.RawMessage) {
	r.Tools = append(r.Tools, name)
	if r.Schemas == nil {
		r.Schemas = map[string]json.RawMessage{}
	}
	r.Schemas[name] = schema
}

// arguments returns those of a call as text.
func (c *Call) arguments() string {
	data, err := json.Marshal(c.Args)
	if err != nil {
		panic(err) // of literals in the tests
	}
	return string(data)
}

// callID returns the id of a call of an answer.
func callID(answer string, i int) string {
	if i == 0 {
		return "call_" + answer
	}
	return fmt.Sprintf("call_%s_%d", answer, i)
}
