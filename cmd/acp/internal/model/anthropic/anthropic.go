// Package anthropic is a language model behind the Messages interface, which Anthropic
// and a number of compatible servers offer.
//
// What a request ends with varies from one to the next, and everything before that only
// grows: model, tools, instructions, messages. The provider caches up to the end of the
// last message, of the instructions and of the tools.
package anthropic

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

const (
	// DefaultURL is where Anthropic itself answers.
	DefaultURL = "https://api.anthropic.com"
	// DefaultOutput is how long an answer may be if neither the request nor what is known
	// of the model says so. The interface wants a number.
	DefaultOutput = 32000
	// stall is how long nothing may come: the provider sends a keep-alive every few seconds.
	stall   = 60 * time.Second
	version = "2023-06-01"
	api     = "messages"
)

// Thinking says in which form a model learns how much to think.
type Thinking string

// The ways.
const (
	ThinkAdaptive Thinking = ""       // the model decides, within an effort
	ThinkBudget   Thinking = "budget" // a number of tokens
	ThinkNever    Thinking = "never"  // the model cannot think, or the server takes no such setting
)

// Config says which model is asked, and where.
type Config struct {
	Info model.Info // ID is what the interface is asked for
	// URL is the base, with or without /v1 at its end; "" is DefaultURL.
	URL string
	// Key is sent as x-api-key, Token as a bearer. Either may be empty.
	Key, Token string
	Header     http.Header // sent as well
	Thinking   Thinking
	// Unmarked leaves cache marks out, for servers that refuse them.
	Unmarked bool
	Client   stream.Client // Provider, Model, Explain and Limits are set by New
}

// A Model is one model. Its methods may be called from any goroutine.
type Model struct {
	c      Config
	url    string
	header http.Header
	form   string // which encoded forms of messages are its own
}

// New returns a model. It fails if the URL is none.
func New(c Config) (*Model, error) {
	u, err := stream.BaseURL(cmp.Or(c.URL, DefaultURL))
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") + "/v1/messages"
	m := &Model{c: c, url: u.String(), header: c.Header.Clone(), form: api + "/" + c.Info.ID}
	if m.header == nil {
		m.header = http.Header{}
	}
	m.header.Set("Content-Type", "application/json")
	m.header.Set("Accept", "text/event-stream")
	m.header.Set("Anthropic-Version", version)
	if c.Key != "" {
		m.header.Set("X-Api-Key", c.Key)
	}
	if c.Token != "" {
		m.header.Set("Authorization", "Bearer "+c.Token)
	}
	m.c.Info.API = model.APIMessages
	m.c.Client.Provider, m.c.Client.Model = c.Info.Provider, c.Info.ID
	m.c.Client.Explain, m.c.Client.Limits = explain, limits
	if m.c.Client.Stall == 0 {
		m.c.Client.Stall = stall
	}
	return m, nil
}

// Info describes the model.
func (m *Model) Info() model.Info { return m.c.Info }

// Generate answers a conversation.
func (m *Model) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		body, err := m.body(r)
		if err != nil {
			yield(nil, fmt.Errorf("encode a request: %w", err))
			return
		}
		call := &stream.Call{URL: m.url, Header: m.header, Body: body}
		m.c.Client.Generate(ctx, call, func() stream.Decoder { return &decoder{form: m.form} })(yield)
	}
}
