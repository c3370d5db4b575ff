// Package openai is a language model behind the Responses or the Chat Completions
// interface. OpenAI offers both; many other servers offer the second one, each in a dialect
// of its own, which a [Dialect] describes.
//
// What a request ends with varies from one to the next, and everything before that only
// grows: model, tools, instructions, messages. Nothing is stored by the provider: reasoning
// that it wants to have back is kept here, as it came.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// DefaultURL is where OpenAI itself answers.
const DefaultURL = "https://api.openai.com/v1"

// Config says which model is asked, and where.
type Config struct {
	Info model.Info // ID is what the interface is asked for
	// URL is the base, to which the name of the interface is added; "" is DefaultURL.
	URL     string
	Key     string      // sent as a bearer, unless it is empty
	Header  http.Header // sent as well
	Dialect Dialect     // of Chat Completions; Responses has none
	Client  stream.Client
}

// An endpoint is what the models of this package have in common.
type endpoint struct {
	c      Config
	url    string
	header http.Header
}

func newEndpoint(c Config, path string) (*endpoint, error) {
	u, err := stream.BaseURL(cmp.Or(c.URL, DefaultURL))
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	e := &endpoint{c: c, url: u.String(), header: c.Header.Clone()}
	if e.header == nil {
		e.header = http.Header{}
	}
	e.header.Set("Content-Type", "application/json")
	e.header.Set("Accept", "text/event-stream")
	if c.Key != "" {
		e.header.Set("Authorization", "Bearer "+c.Key)
	}
	e.c.Client.Provider, e.c.Client.Model = c.Info.Provider, c.Info.ID
	e.c.Client.Explain, e.c.Client.Limits = explain, limits
	return e, nil
}

// generate sends a body, or reports why there is none.
func (e *endpoint) generate(ctx context.Context, body []byte, err error, decoder func() stream.Decoder) iter.Seq2[model.Event, error] {
	if err != nil {
		return func(yield func(model.Event, error) bool) {
			yield(nil, fmt.Errorf("encode a request: %w", err))
		}
	}
	return e.c.Client.Generate(ctx, &stream.Call{URL: e.url, Header: e.header, Body: body}, decoder)
}

// dataURL returns an image as an address.
func dataURL(i *model.Image) (string, error) {
	data, err := json.Marshal(i.Data) // base64
	if err != nil {
		return "", err
	}
	return "data:" + i.MIMEType + ";base64," + strings.Trim(string(data), `"`), nil
}

// arguments returns the input of a tool as the interface wants it: as the text of an
// object.
func arguments(u *model.ToolUse) string {
	if u.Malformed {
		var s string
		if json.Unmarshal(u.Input, &s) == nil {
			u = &model.ToolUse{Input: must(stream.AppendJSON(nil, map[string]string{"input": s}))}
		}
	}
	in := strings.TrimSpace(string(u.Input))
	switch {
	case !json.Valid([]byte(in)):
		return "{}"
	case in[0] != '{':
		return `{"input":` + in + `}`
	}
	return in
}

// must returns the JSON text of strings, which always have one.
func must(b []byte, _ error) []byte { return b }

// toolName returns a name that the interface takes. A model can ask for a tool that does
// not exist by any name; the answer to that names it.
func toolName(name string) string {
	name = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name[:min(len(name), 64)])
	if name == "" {
		return "unknown"
	}
	return name[:min(len(name), 64)]
}

// flatten returns the texts of a tool's result, and its images.
func (e *endpoint) flatten(r *model.ToolResult) (text string, images []*model.Image) {
	var texts []string
	for _, p := range e.c.Info.Pictured(r.Parts) {
		switch p := p.(type) {
		case *model.Text:
			texts = append(texts, p.Text)
		case *model.Image:
			images = append(images, p)
		}
	}
	text = strings.Join(texts, "\n")
	if r.Failed { // the interfaces have no field for it
		text = strings.TrimRight("error: "+text, " ")
	}
	return text, images
}

// inputOf returns the input of a tool that has come in pieces.
func inputOf(text string) (input json.RawMessage, malformed bool) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return json.RawMessage("{}"), false
	case json.Valid([]byte(text)):
		return json.RawMessage(text), false
	}
	return must(stream.AppendJSON(nil, text)), true
}

// senseless is the error for what is not as the interface says.
func senseless(data []byte, err error) error {
	return &model.Error{Kind: model.KindAnswer, Message: fmt.Sprintf("an event is not what the interface says: %v", err), Raw: data[:min(len(data), 4<<10)], Err: err}
}

// limits reads what the provider says is left.
func limits(h http.Header) *model.Limits {
	l := &model.Limits{Requests: -1, Tokens: -1}
	said := false
	number := func(to *int, name string) {
		var n int
		if _, err := fmt.Sscan(h.Get("X-Ratelimit-Remaining-"+name), &n); err == nil && n >= 0 {
			*to, said = n, true
		}
	}
	number(&l.Requests, "Requests")
	number(&l.Tokens, "Tokens")
	if !said {
		return nil
	}
	if d, err := time.ParseDuration(h.Get("X-Ratelimit-Reset-Tokens")); err == nil && d > 0 {
		l.Reset = time.Now().Add(d)
	}
	return l
}
