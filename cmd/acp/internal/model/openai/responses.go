package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"sync/atomic"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// A Responses is a model behind the Responses interface. Its methods may be called from
// any goroutine.
type Responses struct {
	*endpoint
	form string
	// plain is set once the server has refused a tool whose input is a text.
	plain atomic.Bool
}

// NewResponses returns a model. It fails if the URL is none.
func NewResponses(c Config) (*Responses, error) {
	c.Info.API = model.APIResponses
	e, err := newEndpoint(c, "/responses")
	if err != nil {
		return nil, err
	}
	return &Responses{endpoint: e, form: "responses/" + c.Info.ID}, nil
}

// Info describes the model.
func (m *Responses) Info() model.Info { return m.c.Info }

// Generate answers a conversation.
func (m *Responses) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	if !m.texts() {
		return m.answer(ctx, r, false)
	}
	return func(yield func(model.Event, error) bool) {
		began := false
		for e, err := range m.answer(ctx, r, true) {
			if err != nil && !began && refusesTexts(err, r) {
				m.plain.Store(true)
				m.answer(ctx, r, false)(yield)
				return
			}
			began = true
			if !yield(e, err) {
				return
			}
		}
	}
}

func (m *Responses) answer(ctx context.Context, r *model.Request, texts bool) iter.Seq2[model.Event, error] {
	body, err := m.body(r, texts)
	return m.generate(ctx, body, err, func() stream.Decoder {
		return &responseDecoder{form: m.form, tools: r.Prefix.Tools}
	})
}

// An item is a piece of the input.
type item struct {
	Type      string     `json:"type"`
	Role      model.Role `json:"role,omitempty"`
	Content   []content  `json:"content,omitempty"`
	Phase     string     `json:"phase,omitempty"`
	CallID    string     `json:"call_id,omitempty"`
	Name      string     `json:"name,omitempty"`
	Arguments string     `json:"arguments,omitempty"`
	Input     *string    `json:"input,omitempty"`
	Output    any        `json:"output,omitempty"`
}

type content struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
}

func (m *Responses) body(r *model.Request, texts bool) ([]byte, error) {
	form := m.form
	if !texts {
		form += plainForm
	}
	prefix, err := r.Prefix.Encoded(form, func(p *model.Prefix) ([]byte, error) { return m.prefix(p, texts) })
	if err != nil {
		return nil, err
	}
	cameAsText := func(id string) bool { return texts && isTextCall(r.Messages, id) }
	b, err := stream.Messages(append(bytes.Clone(prefix), `,"input":[`...), r, form, func(msg *model.Message) ([]byte, error) {
		return m.message(msg, cameAsText)
	})
	if err != nil {
		return nil, err
	}
	type reasoning struct {
		Effort  string `json:"effort,omitempty"`
		Summary string `json:"summary,omitempty"`
	}
	end := struct {
		Reasoning *reasoning `json:"reasoning,omitempty"`
		Choice    string     `json:"tool_choice,omitempty"`
		CacheKey  string     `json:"prompt_cache_key,omitempty"`
		Most      int        `json:"max_output_tokens,omitempty"`
		Stream    bool       `json:"stream"`
	}{CacheKey: r.CacheKey, Most: r.MaxTokens, Stream: true}
	if len(m.c.Info.Efforts) > 0 {
		end.Reasoning = &reasoning{Effort: r.Effort, Summary: "auto"}
	}
	if len(r.Prefix.Tools) > 0 {
		switch r.Choice {
		case model.ToolAny:
			end.Choice = "required"
		case model.ToolNone:
			end.Choice = "none"
		}
	}
	return stream.AppendFields(b, end)
}

// prefix returns what each request of a conversation begins with, without its end.
func (m *Responses) prefix(p *model.Prefix, texts bool) ([]byte, error) {
	head := struct {
		Model        string   `json:"model"`
		Tools        []any    `json:"tools,omitempty"`
		Instructions string   `json:"instructions,omitempty"`
		Store        bool     `json:"store"`
		Include      []string `json:"include,omitempty"`
	}{Model: m.c.Info.ID, Instructions: p.System}
	if len(m.c.Info.Efforts) > 0 {
		head.Include = []string{"reasoning.encrypted_content"}
	}
	for _, t := range m.c.Info.Tools(p.Tools) {
		head.Tools = append(head.Tools, responseTool(t, texts))
	}
	b, err := stream.AppendJSON(nil, head)
	if err != nil {
		return nil, err
	}
	return b[:len(b)-1], nil
}

// phase is what is kept with a text.
type phase struct {
	Phase string `json:"phase"`
}

// message returns a message as items, separated by commas; nothing if it has no content
// that the interface takes. cameAsText reports whether the input of the call with an id was a text.
func (m *Responses) message(msg *model.Message, cameAsText func(id string) bool) ([]byte, error) {
	var items []any
	var said []content
	flush := func() {
		if len(said) > 0 {
			items = append(items, &item{Type: "message", Role: msg.Role, Content: said})
		}
		said = nil
	}
	for _, p := range m.c.Info.Pictured(msg.Parts) {
		switch p := p.(type) {
		case *model.Text:
			if p.Text == "" {
				continue
			}
			if msg.Role == model.User {
				said = append(said, content{Type: "input_text", Text: p.Text})
				continue
			}
			it := &item{Type: "message", Role: model.Assistant, Content: []content{{Type: "output_text", Text: p.Text}}}
			if p.Opaque.API == m.form {
				var ph phase
				if json.Unmarshal(p.Opaque.Data, &ph) == nil {
					it.Phase = ph.Phase
				}
			}
			items = append(items, it)
		case *model.Image:
			u, err := dataURL(p)
			if err != nil {
				return nil, err
			}
			said = append(said, content{Type: "input_image", ImageURL: u})
		case *model.Thought:
			if p.Opaque.API == m.form {
				items = append(items, p.Opaque.Data)
			}
		case *model.ToolUse:
			it := &item{Type: "function_call", CallID: p.ID, Name: toolName(p.Name), Arguments: arguments(p)}
			if text := textCall(p); text != nil && cameAsText(p.ID) {
				it = text
			}
			items = append(items, it)
		case *model.ToolResult:
			flush()
			it, err := m.result(p)
			if err != nil {
				return nil, err
			}
			if cameAsText(p.ID) {
				it.Type = "custom_tool_call_output"
			}
			items = append(items, it)
		}
	}
	flush()
	return stream.Elements(withoutLastThoughts(items))
}

// withoutLastThoughts cuts thoughts that nothing follows, which the interface refuses.
// They are there if the answer was cut off.
func withoutLastThoughts(items []any) []any {
	for len(items) > 0 {
		if _, ok := items[len(items)-1].(json.RawMessage); !ok {
			break
		}
		items = items[:len(items)-1]
	}
	return items
}

func (m *Responses) result(r *model.ToolResult) (*item, error) {
	text, images := m.flatten(r)
	it := &item{Type: "function_call_output", CallID: r.ID, Output: text}
	if len(images) == 0 {
		return it, nil
	}
	var list []content
	if text != "" {
		list = append(list, content{Type: "input_text", Text: text})
	}
	for _, i := range images {
		u, err := dataURL(i)
		if err != nil {
			return nil, err
		}
		list = append(list, content{Type: "input_image", ImageURL: u})
	}
	it.Output = list
	return it, nil
}
