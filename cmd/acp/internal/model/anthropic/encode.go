package anthropic

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// budgets are the tokens that models think with whose requests say a number.
var budgets = map[string]int{"low": 4096, "medium": 10000, "high": 24000, "max": 31999}

// minAnswer is what is left of an answer's tokens after thinking, at least.
const minAnswer = 4096

type mark struct {
	Type string `json:"type"`
}

var ephemeral = &mark{"ephemeral"}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	Mark        *mark           `json:"cache_control,omitempty"`
}

// A block is any piece of content that is sent.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Source    *source         `json:"source,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   []any           `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Mark      *mark           `json:"cache_control,omitempty"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// body returns the request. What varies between the requests of a conversation follows
// the messages.
func (m *Model) body(r *model.Request) ([]byte, error) {
	prefix, err := r.Prefix.Encoded(m.form, m.prefix)
	if err != nil {
		return nil, err
	}
	b := append(bytes.Clone(prefix), `,"messages":[`...)
	for i, msg := range r.Messages {
		if len(r.Tail) > 0 && i == len(r.Messages)-1 {
			// The automatic mark would be on the tail, which the next request does not have.
			form, err := m.message(msg, !m.c.Unmarked)
			if err != nil {
				return nil, err
			}
			b = stream.Append(b, form)
			continue
		}
		form, err := msg.Encoded(m.form, func(msg *model.Message) ([]byte, error) { return m.message(msg, false) })
		if err != nil {
			return nil, err
		}
		b = stream.Append(b, form)
	}
	if len(r.Tail) > 0 {
		form, err := m.message(&model.Message{Role: model.User, Parts: r.Tail}, false)
		if err != nil {
			return nil, err
		}
		b = stream.Append(b, form)
	}
	return stream.AppendFields(append(b, ']'), m.ending(r))
}

// prefix returns what each request of a conversation begins with, without its end.
func (m *Model) prefix(p *model.Prefix) ([]byte, error) {
	head := struct {
		Model  string  `json:"model"`
		Tools  []tool  `json:"tools,omitempty"`
		System []block `json:"system,omitempty"`
	}{Model: m.c.Info.ID}
	for _, t := range m.c.Info.Tools(p.Tools) {
		head.Tools = append(head.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema})
	}
	if p.System != "" {
		head.System = []block{{Type: "text", Text: p.System}}
	}
	if !m.c.Unmarked {
		if n := len(head.Tools); n > 0 {
			head.Tools[n-1].Mark = ephemeral
		}
		if len(head.System) > 0 {
			head.System[0].Mark = ephemeral
		}
	}
	b, err := stream.AppendJSON(nil, head)
	if err != nil {
		return nil, err
	}
	return b[:len(b)-1], nil
}

// An ending is what follows the messages.
type ending struct {
	Mark       *mark       `json:"cache_control,omitempty"`
	Thinking   *thinking   `json:"thinking,omitempty"`
	Output     *output     `json:"output_config,omitempty"`
	ToolChoice *toolChoice `json:"tool_choice,omitempty"`
	MaxTokens  int         `json:"max_tokens"`
	Stream     bool        `json:"stream"`
}

type thinking struct {
	Type    string `json:"type"`
	Budget  int    `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

type output struct {
	Effort string `json:"effort"`
}

type toolChoice struct {
	Type string `json:"type"`
}

func (m *Model) ending(r *model.Request) *ending {
	e := &ending{MaxTokens: r.MaxTokens, Stream: true}
	if e.MaxTokens == 0 {
		e.MaxTokens = m.c.Info.Output
	}
	if e.MaxTokens == 0 {
		e.MaxTokens = DefaultOutput
	}
	if !m.c.Unmarked && len(r.Tail) == 0 {
		e.Mark = ephemeral
	}
	if len(r.Prefix.Tools) > 0 {
		switch r.Choice {
		case model.ToolAny:
			e.ToolChoice = &toolChoice{"any"}
		case model.ToolNone:
			e.ToolChoice = &toolChoice{"none"}
		}
	}
	// A model that must use a tool cannot think before.
	if r.Choice != model.ToolAny {
		m.think(e, r.Effort)
	}
	return e
}

func (m *Model) think(e *ending, effort string) {
	switch m.c.Thinking {
	case ThinkAdaptive:
		switch effort {
		case "none":
			e.Thinking = &thinking{Type: "disabled"}
			return
		case "":
		default:
			e.Output = &output{effort}
		}
		e.Thinking = &thinking{Type: "adaptive", Display: "summarized"}
	case ThinkBudget:
		if budget := min(budgets[effort], e.MaxTokens-minAnswer); budget >= 1024 {
			e.Thinking = &thinking{Type: "enabled", Budget: budget}
		}
	}
}

// message returns a message as it is sent, or nothing if it has no content that the
// interface takes.
func (m *Model) message(msg *model.Message, marked bool) ([]byte, error) {
	var results, content []any
	for _, p := range msg.Parts {
		switch p := p.(type) {
		case *model.ToolResult:
			results = append(results, m.result(p))
		case *model.Thought:
			if p.Opaque.API == m.form {
				content = append(content, p.Opaque.Data)
			}
		case *model.ToolUse:
			content = append(content, &block{Type: "tool_use", ID: toolID(p.ID), Name: toolName(p.Name), Input: object(p)})
		default:
			content = m.appendContent(content, p)
		}
	}
	// The interface wants results before anything else.
	content = slices.Concat(results, content)
	if msg.Role == model.Assistant {
		content = withoutLastThoughts(content)
	}
	if len(content) == 0 {
		return nil, nil
	}
	if last, ok := content[len(content)-1].(*block); ok && marked {
		last.Mark = ephemeral
	}
	return stream.AppendJSON(nil, struct {
		Role    model.Role `json:"role"`
		Content []any      `json:"content"`
	}{msg.Role, content})
}

// withoutLastThoughts cuts thoughts at the end of an answer, which the interface refuses.
// They are there if the answer was cut off.
func withoutLastThoughts(content []any) []any {
	for len(content) > 0 {
		if _, ok := content[len(content)-1].(json.RawMessage); !ok {
			break
		}
		content = content[:len(content)-1]
	}
	return content
}

func (m *Model) result(r *model.ToolResult) *block {
	b := &block{Type: "tool_result", ToolUseID: toolID(r.ID), IsError: r.Failed}
	for _, p := range r.Parts {
		b.Content = m.appendContent(b.Content, p)
	}
	if r.Failed && len(b.Content) == 0 { // which the interface refuses
		b.Content = []any{&block{Type: "text", Text: "failed"}}
	}
	return b
}

// appendContent appends a text or an image. The interface refuses texts that are blank.
func (m *Model) appendContent(content []any, p model.Part) []any {
	if i, ok := p.(*model.Image); ok {
		p = m.c.Info.Picture(i)
	}
	switch p := p.(type) {
	case *model.Text:
		if strings.TrimSpace(p.Text) != "" {
			content = append(content, &block{Type: "text", Text: p.Text})
		}
	case *model.Image:
		content = append(content, &block{Type: "image", Source: &source{"base64", p.MIMEType, p.Data}})
	}
	return content
}

// object returns the input of a tool, which the interface wants to be an object.
func object(u *model.ToolUse) json.RawMessage {
	if raw := bytes.TrimSpace(u.Input); len(raw) > 0 && raw[0] == '{' && json.Valid(raw) {
		return raw
	}
	if len(u.Input) == 0 || !json.Valid(u.Input) {
		return json.RawMessage("{}")
	}
	return slices.Concat(json.RawMessage(`{"input":`), u.Input, json.RawMessage(`}`))
}

// toolID returns an id that the interface takes; another provider may have made it.
func toolID(id string) string {
	if valid(id, 256) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "toolu_" + hex.EncodeToString(sum[:12])
}

// toolName returns a name that the interface takes. A model can ask for a tool that does
// not exist by any name; the answer to that names it.
func toolName(name string) string {
	if valid(name, 128) {
		return name
	}
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && valid(string(r), 1) {
			return r
		}
		return '_'
	}, name[:min(len(name), 128)])
	if name == "" {
		return "unknown"
	}
	return name[:min(len(name), 128)]
}

func valid(s string, most int) bool {
	if s == "" || len(s) > most {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}
