package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// A Chat is a model behind the Chat Completions interface. Its methods may be called from
// any goroutine.
type Chat struct {
	*endpoint
	form string
}

// NewChat returns a model. It fails if the URL is none.
func NewChat(c Config) (*Chat, error) {
	c.Info.API = cmp.Or(c.Dialect.API, model.APIChat)
	e, err := newEndpoint(c, "/chat/completions")
	if err != nil {
		return nil, err
	}
	return &Chat{endpoint: e, form: "chat/" + c.Info.Provider + "/" + c.Info.ID}, nil
}

// Info describes the model.
func (m *Chat) Info() model.Info { return m.c.Info }

// Generate answers a conversation.
func (m *Chat) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	body, err := m.body(r)
	return m.generate(ctx, body, err, func() stream.Decoder { return newChatDecoder(m.form, m.c.Dialect) })
}

// A chatTool is a tool as this interface wants it.
type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// A chatMessage is a message that is sent. Content is a string, a list, or nil.
type chatMessage struct {
	Role      string     `json:"role"`
	Content   any        `json:"content"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
	ToolID    string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

type chatPart struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

func (m *Chat) body(r *model.Request) ([]byte, error) {
	prefix, err := r.Prefix.Encoded(m.form, m.prefix)
	if err != nil {
		return nil, err
	}
	b, err := stream.Messages(bytes.Clone(prefix), r, m.form, m.message)
	if err != nil {
		return nil, err
	}
	d, end := m.c.Dialect, map[string]any{"stream": true}
	if r.Effort != "" && d.Effort != "" {
		if outer, inner, ok := strings.Cut(d.Effort, "."); ok {
			end[outer] = map[string]string{inner: r.Effort}
		} else {
			end[d.Effort] = r.Effort
		}
	}
	if len(r.Prefix.Tools) > 0 {
		switch r.Choice {
		case model.ToolAny:
			end["tool_choice"] = "required"
		case model.ToolNone:
			end["tool_choice"] = "none"
		}
	}
	if r.MaxTokens > 0 {
		field := d.MaxTokens
		if field == "" {
			field = "max_tokens"
		}
		end[field] = r.MaxTokens
	}
	if d.CacheKey && r.CacheKey != "" {
		end["prompt_cache_key"] = r.CacheKey
	}
	if !d.NoUsage {
		end["stream_options"] = map[string]bool{"include_usage": true}
	}
	return stream.AppendFields(b, end)
}

// prefix returns what each request of a conversation begins with, up to its first message.
func (m *Chat) prefix(p *model.Prefix) ([]byte, error) {
	head := struct {
		Model string     `json:"model"`
		Tools []chatTool `json:"tools,omitempty"`
	}{Model: m.c.Info.ID}
	for _, t := range m.c.Info.Tools(p.Tools) {
		head.Tools = append(head.Tools, chatTool{"function", chatFunction{t.Name, t.Description, t.Schema}})
	}
	b, err := stream.AppendJSON(nil, head)
	if err != nil {
		return nil, err
	}
	b = append(b[:len(b)-1], `,"messages":[`...)
	if p.System == "" {
		return b, nil
	}
	role := m.c.Dialect.Role
	if role == "" {
		role = "system"
	}
	return stream.AppendJSON(b, &chatMessage{Role: role, Content: p.System})
}

// message returns a message as those of the interface, separated by commas; nothing if it
// has no content that the interface takes.
func (m *Chat) message(msg *model.Message) ([]byte, error) {
	if msg.Role == model.Assistant {
		return m.answer(msg)
	}
	var all []any
	var said []chatPart
	for _, p := range m.c.Info.Pictured(msg.Parts) {
		switch p := p.(type) {
		case *model.ToolResult:
			text, images := m.flatten(p)
			all = append(all, &chatMessage{Role: "tool", Content: text, ToolID: p.ID})
			if len(images) == 0 {
				continue
			}
			// Results hold texts only: images follow, as the user's.
			said = append(said, chatPart{Type: "text", Text: "The images that " + p.ID + " returned:"})
			for _, i := range images {
				part, err := picture(i)
				if err != nil {
					return nil, err
				}
				said = append(said, part)
			}
		case *model.Text:
			if p.Text != "" {
				said = append(said, chatPart{Type: "text", Text: p.Text})
			}
		case *model.Image:
			part, err := picture(p)
			if err != nil {
				return nil, err
			}
			said = append(said, part)
		}
	}
	if len(said) > 0 {
		all = append(all, &chatMessage{Role: "user", Content: plain(said)})
	}
	return stream.Elements(all)
}

func picture(i *model.Image) (chatPart, error) {
	u, err := dataURL(i)
	return chatPart{Type: "image_url", ImageURL: &imageURL{u}}, err
}

// plain returns content as one string where it has only texts: some servers know no lists.
func plain(parts []chatPart) any {
	var texts []string
	for _, p := range parts {
		if p.Type != "text" {
			return parts
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n\n")
}

// answer returns a message of the assistant.
func (m *Chat) answer(msg *model.Message) ([]byte, error) {
	out := &chatMessage{Role: "assistant"}
	text := ""
	var thoughts, details json.RawMessage
	for _, p := range msg.Parts {
		switch p := p.(type) {
		case *model.Text:
			text += p.Text
		case *model.Thought:
			switch {
			case p.Opaque.API != m.form || len(p.Opaque.Data) == 0:
			case p.Opaque.Data[0] == '[':
				details = p.Opaque.Data
			default:
				thoughts = p.Opaque.Data
			}
		case *model.ToolUse:
			c := chatCall{ID: p.ID, Type: "function"}
			c.Function.Name, c.Function.Arguments = toolName(p.Name), arguments(p)
			if p.Opaque.API == m.form {
				c.Extra = p.Opaque.Data
			}
			out.ToolCalls = append(out.ToolCalls, c)
		}
	}
	if text != "" {
		out.Content = text
	} else if len(out.ToolCalls) == 0 {
		return nil, nil
	}
	b, err := stream.AppendJSON(nil, out)
	if err != nil {
		return nil, err
	}
	extra := map[string]json.RawMessage{}
	if len(details) > 0 {
		extra["reasoning_details"] = details
	}
	if len(thoughts) > 0 && m.c.Dialect.Thoughts != "" {
		extra[m.c.Dialect.Thoughts] = thoughts
	}
	return stream.AppendFields(b[:len(b)-1], extra)
}
