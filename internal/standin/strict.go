package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// judge says why a service refuses a conversation; nil if it does not.
func (s *Server) judge(api string, body []byte) error {
	if err := s.judgeContent(api, body); err != nil {
		return err
	}
	switch api {
	case "messages":
		return s.judgeMessages(body)
	case "responses":
		return s.judgeResponses(body)
	case "chat":
		return s.judgeChat(body)
	case "ollama":
		return s.judgeOllama(body)
	}
	return nil
}

// thought returns the thought of a signature.
func (s *Server) thought(signature string) (text string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok = s.signed[signature]
	return text, ok
}

var (
	useID    = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

// pairs checks that each wish has one result, in the next message.
type pairs struct {
	open []string
	seen map[string]bool
}

func (p *pairs) wish(id string) error {
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	if p.seen[id] {
		return fmt.Errorf("the id %q is there twice", id)
	}
	p.seen[id] = true
	p.open = append(p.open, id)
	return nil
}

func (p *pairs) result(id string) error {
	i := slices.Index(p.open, id)
	if i < 0 {
		return fmt.Errorf("the result of %q has no wish before it", id)
	}
	p.open = slices.Delete(p.open, i, i+1)
	return nil
}

// settled fails if there are wishes without results.
func (p *pairs) settled() error {
	if len(p.open) > 0 {
		return fmt.Errorf("wishes for tools without a result right after them: %q", p.open)
	}
	return nil
}

// strictMessages is a request for a message, as far as it is judged.
type strictMessages struct {
	Model     string `json:"model"`
	MaxTokens int    `json:"max_tokens"`
	Messages  []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
}

func (s *Server) judgeMessages(body []byte) error {
	var in strictMessages
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	switch {
	case in.Model == "", in.MaxTokens <= 0:
		return errors.New("model or max_tokens is missing")
	case len(in.Messages) == 0 || in.Messages[0].Role != "user":
		return errors.New("the first message is not the user's")
	}
	for _, t := range in.Tools {
		if !toolName.MatchString(t.Name) || !isObject(t.Schema) {
			return fmt.Errorf("the tool %q is not one", t.Name)
		}
	}
	var p pairs
	for i, m := range in.Messages {
		var blocks []struct {
			Type      string          `json:"type"`
			Text      string          `json:"text"`
			ID        string          `json:"id"`
			Name      string          `json:"name"`
			Input     json.RawMessage `json:"input"`
			UseID     string          `json:"tool_use_id"`
			Thinking  string          `json:"thinking"`
			Signature string          `json:"signature"`
		}
		var text string
		if json.Unmarshal(m.Content, &text) == nil {
			if text == "" {
				return fmt.Errorf("message %d is empty", i)
			}
		} else if err := json.Unmarshal(m.Content, &blocks); err != nil || len(blocks) == 0 {
			return fmt.Errorf("message %d has no content", i)
		}
		if m.Role == "assistant" {
			if err := p.settled(); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
		}
		others := false
		for j, b := range blocks {
			var err error
			switch {
			case b.Type == "tool_result" && m.Role == "user":
				if err = p.result(b.UseID); err == nil && others {
					err = errors.New("a result after something else")
				}
			case b.Type == "tool_use" && m.Role == "assistant":
				if err = p.wish(b.ID); err == nil && (!useID.MatchString(b.ID) || !toolName.MatchString(b.Name) || !isObject(b.Input)) {
					err = fmt.Errorf("the wish %q for %q is not one", b.ID, b.Name)
				}
			case b.Type == "thinking" && m.Role == "assistant":
				if said, ok := s.thought(b.Signature); !ok || said != b.Thinking {
					err = fmt.Errorf("the thought %q has a signature that is not its own", b.Thinking)
				}
				if err == nil && j > 0 && blocks[j-1].Type != "thinking" {
					err = errors.New("a thought is not at the beginning")
				}
			case b.Type == "text":
				if b.Text == "" {
					err = errors.New("a text is empty")
				}
			case b.Type == "image" && m.Role == "user":
			default:
				err = fmt.Errorf("a part of the type %q of the %s", b.Type, m.Role)
			}
			if err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
			others = others || b.Type != "tool_result"
		}
		if m.Role == "user" {
			if err := p.settled(); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
		}
	}
	return nil
}

// strictTool is a tool of a request for a response.
type strictTool struct {
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
	Format     *struct {
		Type       string `json:"type"`
		Syntax     string `json:"syntax"`
		Definition string `json:"definition"`
	} `json:"format"`
}

func (t *strictTool) judge() error {
	f, ok := t.Format, toolName.MatchString(t.Name)
	switch t.Type {
	case "function":
		ok = ok && isObject(t.Parameters) && f == nil
	case "custom":
		ok = ok && t.Parameters == nil && (f == nil || f.Type == "text" && f.Definition == "" ||
			f.Type == "grammar" && (f.Syntax == "lark" || f.Syntax == "regex") && f.Definition != "")
	default:
		return nil // one that the service has itself
	}
	if !ok {
		return fmt.Errorf("the tool %q is not one", t.Name)
	}
	return nil
}

func (s *Server) judgeResponses(body []byte) error {
	var in struct {
		Model string `json:"model"`
		Input []struct {
			Type      string          `json:"type"`
			Role      string          `json:"role"`
			Content   json.RawMessage `json:"content"`
			CallID    string          `json:"call_id"`
			Name      string          `json:"name"`
			Arguments *string         `json:"arguments"`
			Text      *string         `json:"input"`
			Output    json.RawMessage `json:"output"`
			Encrypted string          `json:"encrypted_content"`
		} `json:"input"`
		Tools []strictTool `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	if in.Model == "" || len(in.Input) == 0 {
		return errors.New("model or input is missing")
	}
	for _, t := range in.Tools {
		if err := t.judge(); err != nil {
			return err
		}
	}
	var p pairs
	texts := map[string]bool{} // the calls whose input is a text
	for i, item := range in.Input {
		var err error
		switch {
		case item.Type == "custom_tool_call":
			texts[item.CallID] = true
			if err = p.wish(item.CallID); err == nil && (!toolName.MatchString(item.Name) || item.Text == nil || item.Arguments != nil) {
				err = fmt.Errorf("the call of %q is not one", item.Name)
			}
		case strings.HasSuffix(item.Type, "_call_output") && texts[item.CallID] != (item.Type == "custom_tool_call_output"):
			err = fmt.Errorf("no output of its kind for the call %q", item.CallID)
		case item.Type == "function_call":
			if err = p.wish(item.CallID); err == nil && (!toolName.MatchString(item.Name) || item.Arguments == nil || !isObject([]byte(*item.Arguments))) {
				err = fmt.Errorf("the call of %q is not one", item.Name)
			}
		case item.Type == "function_call_output", item.Type == "custom_tool_call_output":
			if err = p.result(item.CallID); err == nil && len(item.Output) == 0 {
				err = errors.New("a call without an output")
			}
		case item.Type == "reasoning":
			if _, ok := s.thought(item.Encrypted); !ok {
				err = fmt.Errorf("reasoning that is not of this service: %q", item.Encrypted)
			} else if i+1 == len(in.Input) || in.Input[i+1].Role == "user" || strings.HasSuffix(in.Input[i+1].Type, "_call_output") {
				err = errors.New("reasoning without the item that it is for")
			}
		case item.Role == "user":
			err = p.settled()
		case item.Role == "assistant", item.Role == "system", item.Role == "developer":
		default:
			err = fmt.Errorf("an item of the type %q", item.Type)
		}
		if err != nil {
			return fmt.Errorf("input %d: %w", i, err)
		}
	}
	return p.settled()
}

func (s *Server) judgeChat(body []byte) error {
	var in struct {
		Model    string `json:"model"`
		Messages []struct {
			Role      string          `json:"role"`
			Content   json.RawMessage `json:"content"`
			ToolID    string          `json:"tool_call_id"`
			ToolCalls []struct {
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct {
					Name      string  `json:"name"`
					Arguments *string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	if in.Model == "" || len(in.Messages) == 0 {
		return errors.New("model or messages is missing")
	}
	var p pairs
	for i, m := range in.Messages {
		err := error(nil)
		if m.Role != "tool" {
			err = p.settled()
		}
		empty := len(m.Content) == 0 || string(m.Content) == "null" || string(m.Content) == `""` || string(m.Content) == "[]"
		switch {
		case err != nil:
		case m.Role == "tool":
			if err = p.result(m.ToolID); err == nil && len(m.Content) == 0 {
				err = errors.New("a result without content")
			}
		case m.Role == "assistant":
			if empty && len(m.ToolCalls) == 0 {
				err = errors.New("the assistant says nothing")
			}
			for _, c := range m.ToolCalls {
				if err == nil {
					err = p.wish(c.ID)
				}
				if err == nil && (c.ID == "" || c.Type != "function" || !toolName.MatchString(c.Function.Name) || c.Function.Arguments == nil || !isObject([]byte(*c.Function.Arguments))) {
					err = fmt.Errorf("the call of %q is not one", c.Function.Name)
				}
			}
		case m.Role == "user" && empty:
			err = errors.New("the user says nothing")
		case m.Role != "user" && m.Role != "system" && m.Role != "developer":
			err = fmt.Errorf("the role %q", m.Role)
		}
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return p.settled()
}

func isObject(data []byte) bool {
	var o map[string]any
	return json.Unmarshal(data, &o) == nil && o != nil
}
