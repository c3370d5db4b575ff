// Package ollama is a language model behind Ollama's own interface, /api/chat.
//
// Ollama's imitation of Chat Completions cannot say how large the context window shall be,
// and leaves out the beginning of a conversation that does not fit. Here each request says
// it, always the same, since another size would load the model anew.
package ollama

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

const (
	// DefaultURL is where Ollama answers on this machine.
	DefaultURL = "http://127.0.0.1:11434"
	// DefaultWindow is how large the window shall be, in tokens, if Info does not say it.
	DefaultWindow = 32768
)

// Config says which model is asked, and where.
type Config struct {
	Info   model.Info // ID is what the interface is asked for, Context the size of the window
	URL    string     // the base, with or without /v1 at its end; "" is DefaultURL
	Key    string     // sent as a bearer, unless it is empty
	Client stream.Client
}

// A Model is one model. Its methods may be called from any goroutine.
type Model struct {
	c      Config
	url    string
	header http.Header
	form   string
}

// New returns a model. It fails if the URL is none.
func New(c Config) (*Model, error) {
	u, err := stream.BaseURL(cmp.Or(c.URL, DefaultURL))
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") + "/api/chat"
	if c.Info.Context == 0 {
		c.Info.Context = DefaultWindow
	}
	c.Info.API = model.APIOllama
	m := &Model{c: c, url: u.String(), header: http.Header{}, form: "ollama/" + c.Info.ID}
	m.header.Set("Content-Type", "application/json")
	m.header.Set("Accept", "application/x-ndjson")
	if c.Key != "" {
		m.header.Set("Authorization", "Bearer "+c.Key)
	}
	m.c.Client.Provider, m.c.Client.Model = c.Info.Provider, c.Info.ID
	m.c.Client.Explain, m.c.Client.Lines = explain, true
	return m, nil
}

// Info describes the model.
func (m *Model) Info() model.Info { return m.c.Info }

// Generate answers a conversation.
func (m *Model) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	body, err := m.body(r)
	if err != nil {
		return func(yield func(model.Event, error) bool) {
			yield(nil, fmt.Errorf("encode a request: %w", err))
		}
	}
	return m.c.Client.Generate(ctx, &stream.Call{URL: m.url, Header: m.header, Body: body}, func() stream.Decoder {
		return &decoder{form: m.form, text: &model.Text{}, thought: &model.Thought{}}
	})
}

// A message is one that is sent, and one that comes.
type message struct {
	Role     string   `json:"role"`
	Content  string   `json:"content"`
	Thinking string   `json:"thinking,omitempty"`
	Images   [][]byte `json:"images,omitempty"`
	Calls    []call   `json:"tool_calls,omitempty"`
	ToolName string   `json:"tool_name,omitempty"`
	ToolID   string   `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// body returns a request. What varies is at its end.
func (m *Model) body(r *model.Request) ([]byte, error) {
	prefix, err := r.Prefix.Encoded(m.form, m.prefix)
	if err != nil {
		return nil, err
	}
	b, err := stream.Messages(bytes.Clone(prefix), r, m.form, func(msg *model.Message) ([]byte, error) {
		return m.encode(msg, r.Messages)
	})
	if err != nil {
		return nil, err
	}
	options := map[string]int{"num_ctx": m.c.Info.Context}
	if r.MaxTokens > 0 {
		options["num_predict"] = r.MaxTokens
	}
	end := map[string]any{"stream": true, "options": options}
	switch r.Effort {
	case "":
	case "none":
		end["think"] = false
	default:
		end["think"] = r.Effort
	}
	return stream.AppendFields(b, end)
}

// prefix returns what each request of a conversation begins with.
func (m *Model) prefix(p *model.Prefix) ([]byte, error) {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	type tool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	head := struct {
		Model string `json:"model"`
		Tools []tool `json:"tools,omitempty"`
	}{Model: m.c.Info.ID}
	for _, t := range m.c.Info.Tools(p.Tools) {
		head.Tools = append(head.Tools, tool{"function", function{t.Name, t.Description, t.Schema}})
	}
	b, err := stream.AppendJSON(nil, head)
	if err != nil {
		return nil, err
	}
	b = append(b[:len(b)-1], `,"messages":[`...)
	if p.System == "" {
		return b, nil
	}
	return stream.AppendJSON(b, message{Role: "system", Content: p.System})
}

// encode returns a message of a conversation as the interface wants it: results of tools are
// messages of their own, before what the user says.
func (m *Model) encode(msg *model.Message, messages []*model.Message) ([]byte, error) {
	var all []message
	own := message{Role: string(msg.Role)}
	var texts []string
	for _, p := range m.c.Info.Pictured(msg.Parts) {
		switch p := p.(type) {
		case *model.Text:
			texts = append(texts, p.Text)
		case *model.Thought:
			own.Thinking += p.Text
		case *model.Image:
			own.Images = append(own.Images, p.Data)
		case *model.ToolUse:
			c := call{ID: p.ID}
			c.Function.Name, c.Function.Arguments = p.Name, object(p)
			own.Calls = append(own.Calls, c)
		case *model.ToolResult:
			all = append(all, m.result(p, stream.UseOf(messages, p.ID)))
		}
	}
	sep := "\n\n"
	if msg.Role == model.Assistant {
		sep = ""
	}
	own.Content = strings.Join(texts, sep)
	if own.Content != "" || own.Thinking != "" || len(own.Images) > 0 || len(own.Calls) > 0 {
		all = append(all, own)
	}
	return stream.Elements(all)
}

// result returns what came of a wish for a tool, which is nil if it is not known.
func (m *Model) result(r *model.ToolResult, u *model.ToolUse) message {
	msg := message{Role: "tool", ToolID: r.ID}
	if u != nil {
		msg.ToolName = u.Name
	}
	var texts []string
	for _, p := range m.c.Info.Pictured(r.Parts) {
		switch p := p.(type) {
		case *model.Text:
			texts = append(texts, p.Text)
		case *model.Image:
			msg.Images = append(msg.Images, p.Data)
		}
	}
	msg.Content = strings.Join(texts, "\n")
	if r.Failed { // the interface has no field for it
		msg.Content = strings.TrimRight("error: "+msg.Content, " ")
	}
	return msg
}

// object returns the input of a tool, which has to be an object here.
func object(u *model.ToolUse) json.RawMessage {
	in := bytes.TrimSpace(u.Input)
	switch {
	case !json.Valid(in):
		return json.RawMessage("{}")
	case in[0] != '{':
		return json.RawMessage(`{"input":` + string(in) + `}`)
	}
	return in
}

// A line is one of the stream.
type line struct {
	Model   string  `json:"model"`
	Message message `json:"message"`
	Done    bool    `json:"done"`
	Reason  string  `json:"done_reason"`
	Read    int     `json:"prompt_eval_count"`
	Written int     `json:"eval_count"`
	Error   string  `json:"error"`
}

// A decoder makes sense of one answer. The order in which the interface says things is
// thoughts, text, tools.
type decoder struct {
	form    string
	began   bool
	text    *model.Text
	thought *model.Thought
	uses    []model.Part
	ids     stream.IDs
}

// Event implements [stream.Decoder].
func (d *decoder) Event(_ string, data []byte, pass func(model.Event)) error {
	var l line
	if err := json.Unmarshal(data, &l); err != nil {
		return &model.Error{Kind: model.KindAnswer, Message: fmt.Sprintf("a line is not what the interface says: %v", err), Raw: data[:min(len(data), 4<<10)], Err: err}
	}
	if l.Error != "" {
		return &model.Error{Kind: kindOf(0, l.Error), Message: l.Error, Raw: data[:min(len(data), 4<<10)]}
	}
	if !d.began {
		d.began = true
		pass(&model.Began{Model: l.Model})
	}
	if t := l.Message.Thinking; t != "" {
		d.thought.Text += t
		pass(&model.ThoughtDelta{Text: t})
	}
	if t := l.Message.Content; t != "" {
		d.text.Text += t
		pass(&model.TextDelta{Text: t})
	}
	for _, c := range l.Message.Calls {
		u := &model.ToolUse{ID: d.ids.Next(c.ID), Name: c.Function.Name, Input: json.RawMessage("{}")}
		if a := bytes.TrimSpace(c.Function.Arguments); len(a) > 0 && string(a) != "null" {
			u.Input = bytes.Clone(a)
		}
		var text string
		if json.Unmarshal(u.Input, &text) == nil && json.Valid([]byte(text)) {
			u.Input = json.RawMessage(text) // models that write the object as a text
		}
		pass(&model.ToolUseBegan{ID: u.ID, Name: u.Name})
		pass(&model.ToolInputDelta{ID: u.ID, JSON: string(u.Input)})
		pass(u)
		d.uses = append(d.uses, u)
	}
	if l.Done {
		pass(d.done(&l))
	}
	return nil
}

// End implements [stream.Decoder].
func (d *decoder) End(func(model.Event)) error { return nil }

// Used implements [stream.Decoder]: the last line alone says it.
func (d *decoder) Used() model.Usage { return model.Usage{} }

func (d *decoder) done(l *line) *model.Done {
	m := &model.Message{Role: model.Assistant}
	if d.thought.Text != "" {
		m.Parts = append(m.Parts, d.thought)
	}
	if d.text.Text != "" {
		m.Parts = append(m.Parts, d.text)
	}
	m.Parts = append(m.Parts, d.uses...)
	done := &model.Done{Message: m, Reason: model.EndTurn, Detail: l.Reason}
	switch {
	case l.Reason == "length":
		done.Reason = model.MaxTokens
	case len(d.uses) > 0:
		done.Reason = model.WantsTool
	}
	if l.Read > 0 || l.Written > 0 {
		done.Usage = model.Usage{Input: max(l.Read, 0), Output: max(l.Written, 0), Known: true}
	}
	return done
}

// explain says what an answer that is not a stream means.
func explain(status int, _ http.Header, body []byte) *model.Error {
	var e struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil || e.Error == "" {
		return nil
	}
	return &model.Error{Kind: kindOf(status, e.Error), Message: e.Error}
}

// kindOf says what kind of trouble the server reports; "" leaves it to the status.
func kindOf(status int, text string) model.Kind {
	text = strings.ToLower(text)
	switch {
	case stream.Overflow(text):
		return model.KindOverflow
	case strings.Contains(text, "not found"), strings.Contains(text, "does not support"),
		strings.Contains(text, "image"): // also with the status of an error of its own
		return model.KindRequest
	case status == 0:
		return model.KindOverloaded
	}
	return ""
}
