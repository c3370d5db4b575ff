package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// A chunk is an event of a stream.
type chunk struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Index   int        `json:"index"`
		Delta   delta      `json:"delta"`
		Message *delta     `json:"message"` // of servers that do not stream although we ask for it
		Finish  string     `json:"finish_reason"`
		Error   *errorBody `json:"error"`
	} `json:"choices"`
	Usage *chatUsage `json:"usage"`
	Error *errorBody `json:"error"`
	// Of servers that do not wrap their errors.
	Object  string          `json:"object"`
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
}

type delta struct {
	Content  json.RawMessage   `json:"content"` // a string, or a list of parts
	Refusal  json.RawMessage   `json:"refusal"`
	Thoughts json.RawMessage   `json:"reasoning_content"`
	Thought  json.RawMessage   `json:"reasoning"`
	Details  []json.RawMessage `json:"reasoning_details"`
	Calls    []callDelta       `json:"tool_calls"`
	Function *calledFunction   `json:"function_call"` // what tool_calls has replaced
}

type calledFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // text; some servers send the object itself
}

type callDelta struct {
	Index    *int            `json:"index"`
	ID       string          `json:"id"`
	Function calledFunction  `json:"function"`
	Extra    json.RawMessage `json:"extra_content"`
}

type chatUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Hit int `json:"prompt_cache_hit_tokens"` // DeepSeek's
}

func (u *chatUsage) usage() model.Usage {
	cached := min(max(u.Details.Cached, u.Hit, 0), max(u.Prompt, 0))
	written := min(max(u.Details.Written, 0), max(u.Prompt, 0)-cached)
	return model.Usage{
		Input: max(u.Prompt, 0) - cached - written, CacheRead: cached, CacheWrite: written,
		Output: writtenOf(u.Completion, u.CompletionDetails.Reasoning, u.Total-max(u.Prompt, 0)), Reasoning: max(u.CompletionDetails.Reasoning, 0), Known: true,
	}
}

// writtenOf returns how many tokens were written: some servers leave thoughts out of what they call the completion, and have
// them in the total, or apart.
func writtenOf(completion, reasoning, rest int) int {
	if reasoning > completion {
		completion += reasoning
	}
	return max(completion, rest, 0)
}

// maxCalls bounds the tools that one answer asks for.
const maxCalls = 1024

// A chatDecoder makes an answer of the events of a stream.
type chatDecoder struct {
	form     string
	dialect  Dialect
	began    bool
	ids      stream.IDs
	text     strings.Builder
	thoughts strings.Builder
	details  []map[string]json.RawMessage
	calls    []*call
	last     *call
	said     stream.Joiner
	thought  stream.Joiner
	tag      tagged
	usage    model.Usage
	reason   string // of stopping, once it was said
	refused  bool
}

// A call is the wish for a tool.
type call struct {
	index  int
	given  string // the id that the server gave
	input  strings.Builder
	joiner stream.Joiner
	use    *model.ToolUse
	passed bool
}

func newChatDecoder(form string, d Dialect) *chatDecoder {
	return &chatDecoder{form: form, dialect: d, tag: tagged{name: d.Tag}}
}

// Event decodes an event.
func (d *chatDecoder) Event(_ string, data []byte, pass func(model.Event)) error {
	if string(data) == "[DONE]" {
		d.finish(pass)
		return nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return senseless(data, err)
	}
	if c.Usage != nil {
		d.usage = c.Usage.usage()
	}
	if c.Error == nil && (c.Object == "error" || c.Type == "error") {
		c.Error = &errorBody{Message: c.Message, Type: c.Type, Code: c.Code}
	}
	if c.Error != nil {
		return c.Error.failure()
	}
	if !d.began {
		d.began = true
		pass(&model.Began{ID: c.ID, Model: c.Model})
	}
	passed := false
	heard := func(e model.Event) { passed = true; pass(e) }
	for i := range c.Choices {
		if c.Choices[i].Index != 0 {
			continue // we ask for one
		}
		if c.Choices[i].Error != nil {
			return c.Choices[i].Error.failure()
		}
		delta := &c.Choices[i].Delta
		if c.Choices[i].Message != nil {
			delta = c.Choices[i].Message
		}
		if err := d.delta(delta, heard); err != nil {
			return err
		}
		if f := c.Choices[i].Finish; f != "" {
			d.reason = f
		}
	}
	switch d.reason {
	case "error", "insufficient_system_resource", "network_error":
		return &model.Error{Kind: model.KindOverloaded, Code: d.reason, Message: "the provider broke the answer off: " + d.reason}
	}
	if !passed {
		pass(&model.Alive{})
	}
	return nil
}

func (d *chatDecoder) delta(delta *delta, pass func(model.Event)) error {
	d.think(d.thought.Next(delta.Thoughts), pass)
	if len(delta.Thoughts) == 0 || string(delta.Thoughts) == "null" {
		d.think(d.thought.Next(delta.Thought), pass) // servers that rename the field send both
	}
	d.detail(delta.Details)
	if s := d.said.Next(delta.Refusal); s != "" {
		d.refused = true
		d.say(s, pass)
	}
	thought, said := d.tag.next(d.content(delta.Content))
	d.think(thought, pass)
	d.say(said, pass)
	for i := range delta.Calls {
		if err := d.call(&delta.Calls[i], pass); err != nil {
			return err
		}
	}
	if delta.Function == nil {
		return nil
	}
	zero := 0
	return d.call(&callDelta{Index: &zero, Function: *delta.Function}, pass)
}

// content returns the text of content.
func (d *chatDecoder) content(raw json.RawMessage) string {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '[' {
		return d.said.Next(raw)
	}
	var parts []struct {
		Text json.RawMessage `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	text := ""
	for _, p := range parts {
		text += d.said.Next(p.Text)
	}
	return text
}

func (d *chatDecoder) say(s string, pass func(model.Event)) {
	if s != "" {
		d.text.WriteString(s)
		pass(&model.TextDelta{Text: s})
	}
}

func (d *chatDecoder) think(s string, pass func(model.Event)) {
	if s != "" {
		d.thoughts.WriteString(s)
		pass(&model.ThoughtDelta{Text: s})
	}
}

// maxDetails bounds the pieces of reasoning that go back.
const maxDetails = 4096

// detail puts the pieces of reasoning together that go back as they came.
func (d *chatDecoder) detail(details []json.RawMessage) {
	for _, raw := range details {
		var piece map[string]json.RawMessage
		if json.Unmarshal(raw, &piece) != nil || len(piece) == 0 {
			continue
		}
		n := len(d.details)
		if n > 0 && bytes.Equal(d.details[n-1]["index"], piece["index"]) && bytes.Equal(d.details[n-1]["type"], piece["type"]) && len(piece["index"]) > 0 {
			for k, v := range piece {
				last := d.details[n-1][k]
				var a, b string
				switch k {
				case "text", "summary", "data":
					if json.Unmarshal(last, &a) == nil && json.Unmarshal(v, &b) == nil {
						v = must(stream.AppendJSON(nil, a+b))
					}
				}
				if string(v) != "null" || last == nil {
					d.details[n-1][k] = v
				}
			}
			continue
		}
		if n < maxDetails {
			d.details = append(d.details, piece)
		}
	}
}

// call adds to the wish for a tool. Servers differ in how they tell where one ends: by an
// index, by an id, or not at all because each comes whole.
func (d *chatDecoder) call(delta *callDelta, pass func(model.Event)) error {
	c := d.find(delta)
	if c == nil {
		if len(d.calls) == maxCalls {
			return &model.Error{Kind: model.KindAnswer, Message: fmt.Sprintf("the answer asks for more than %d tools", maxCalls)}
		}
		if d.last != nil {
			d.pass(d.last, pass)
		}
		c = &call{index: len(d.calls), given: delta.ID, use: &model.ToolUse{ID: d.ids.Next(delta.ID), Name: delta.Function.Name}}
		if delta.Index != nil {
			c.index = *delta.Index
		}
		d.calls = append(d.calls, c)
		pass(&model.ToolUseBegan{ID: c.use.ID, Name: c.use.Name})
	}
	d.last = c
	if c.use.Name == "" {
		c.use.Name = delta.Function.Name
	}
	if len(delta.Extra) > 0 && string(delta.Extra) != "null" {
		c.use.Opaque = model.Opaque{API: d.form, Data: bytes.Clone(delta.Extra)}
	}
	if c.passed {
		return nil
	}
	args := c.joiner.Next(delta.Function.Arguments)
	if raw := bytes.TrimSpace(delta.Function.Arguments); len(raw) > 0 && raw[0] == '{' {
		args = string(raw)
	}
	if args != "" {
		c.input.WriteString(args)
		pass(&model.ToolInputDelta{ID: c.use.ID, JSON: args})
	}
	return nil
}

// find returns the wish that a piece belongs to; nil if it begins one.
func (d *chatDecoder) find(delta *callDelta) *call {
	if delta.Index == nil {
		if d.last == nil || delta.ID != "" && delta.ID != d.last.given || delta.ID == "" && delta.Function.Name != "" {
			return nil
		}
		return d.last
	}
	for i := len(d.calls) - 1; i >= 0; i-- {
		if c := d.calls[i]; c.index == *delta.Index {
			if delta.ID != "" && c.given != "" && delta.ID != c.given {
				return nil
			}
			return c
		}
	}
	return nil
}

// pass passes a wish on, if its input is complete.
func (d *chatDecoder) pass(c *call, pass func(model.Event)) {
	if c.passed {
		return
	}
	c.use.Input, c.use.Malformed = inputOf(c.input.String())
	if c.input.Len() > 0 && !c.use.Malformed {
		c.passed = true
		pass(c.use)
	}
}

// End completes an answer whose stream ended without saying so, if the answer had.
func (d *chatDecoder) End(pass func(model.Event)) error {
	if d.reason != "" {
		d.finish(pass)
	}
	return nil
}

// Used implements [stream.Decoder].
func (d *chatDecoder) Used() model.Usage { return d.usage }

func (d *chatDecoder) finish(pass func(model.Event)) {
	if rest := d.tag.rest(); d.tag.state == tagOpen {
		d.think(rest, pass)
	} else {
		d.say(rest, pass)
	}
	done := &model.Done{Reason: model.EndTurn, Usage: d.usage, Message: &model.Message{Role: model.Assistant}}
	switch d.reason {
	case "tool_calls", "function_call":
		done.Reason = model.WantsTool
	case "length", "max_tokens":
		done.Reason = model.MaxTokens
	case "content_filter", "refusal":
		done.Reason = model.Refused
		done.Detail = d.reason
	}
	if d.refused && done.Reason == model.EndTurn {
		done.Reason = model.Refused
	}
	m := done.Message
	if d.thoughts.Len() > 0 || len(d.details) > 0 {
		m.Parts = append(m.Parts, d.kept())
	}
	if d.text.Len() > 0 {
		m.Parts = append(m.Parts, &model.Text{Text: d.text.String()})
	}
	for _, c := range d.calls {
		d.pass(c, pass)
		if !c.passed {
			if done.Reason == model.MaxTokens || done.Reason == model.Refused {
				continue // cut off in the middle of its input
			}
			c.passed = true
			pass(c.use)
		}
		m.Parts = append(m.Parts, c.use)
	}
	switch asks := len(d.calls) > 0; {
	case asks && done.Reason == model.EndTurn:
		done.Reason = model.WantsTool
	case !asks && done.Reason == model.WantsTool:
		done.Reason = model.EndTurn
	}
	pass(done)
}

// kept returns the thoughts, with what the server wants to have back of them.
func (d *chatDecoder) kept() *model.Thought {
	t := &model.Thought{Text: d.thoughts.String()}
	switch {
	case len(d.details) > 0:
		if data, err := stream.AppendJSON(nil, d.details); err == nil {
			t.Opaque = model.Opaque{API: d.form, Data: data}
		}
	case d.dialect.Thoughts != "":
		t.Opaque = model.Opaque{API: d.form, Data: must(stream.AppendJSON(nil, t.Text))}
	}
	return t
}

// A tagged reader parts thoughts from a text that begins with them in an element. The zero
// value knows no element.
type tagged struct {
	name  string
	held  string // what may be the beginning of a tag
	state int
}

// The states of a tagged reader.
const (
	tagAwaited = iota // nothing but blanks has come
	tagOpen
	tagOver
)

// next returns what a piece adds to the thoughts and to the text.
func (t *tagged) next(s string) (thought, said string) {
	if s == "" {
		return "", ""
	}
	if t.name == "" {
		return "", s
	}
	open, end := "<"+t.name+">", "</"+t.name+">"
	if t.state == tagAwaited {
		s, t.held = t.held+s, ""
		trimmed := strings.TrimLeft(s, " \t\r\n")
		switch {
		case strings.HasPrefix(trimmed, open):
			t.state, s = tagOpen, trimmed[len(open):]
		case strings.HasPrefix(open, trimmed):
			t.held = s
			return "", ""
		default:
			t.state = tagOver
		}
	}
	if t.state == tagOver {
		return "", s
	}
	s, t.held = t.held+s, ""
	if before, after, ok := strings.Cut(s, end); ok {
		t.state = tagOver
		return before, strings.TrimLeft(after, "\r\n")
	}
	for n := min(len(end)-1, len(s)); n > 0; n-- {
		if strings.HasPrefix(end, s[len(s)-n:]) {
			t.held = s[len(s)-n:]
			return s[:len(s)-n], ""
		}
	}
	return s, ""
}

// rest returns what was held back and is no tag after all.
func (t *tagged) rest() string {
	s := t.held
	t.held = ""
	return s
}
