package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// An event is any event of a stream. Events and blocks of types that are not known are
// ignored, as the interface asks for.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message *struct {
		ID    string `json:"id"`
		Model string `json:"model"`
		Usage usage  `json:"usage"`
	} `json:"message"`
	Block *struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking string          `json:"thinking"`
		Data     string          `json:"data"`
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Input    json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta *struct {
		Type        string          `json:"type"`
		Text        json.RawMessage `json:"text"`
		Thinking    json.RawMessage `json:"thinking"`
		Signature   string          `json:"signature"`
		PartialJSON json.RawMessage `json:"partial_json"`
		StopReason  string          `json:"stop_reason"`
		StopDetails *struct {
			Category    string `json:"category"`
			Explanation string `json:"explanation"`
		} `json:"stop_details"`
	} `json:"delta"`
	Usage *usage     `json:"usage"`
	Error *errorBody `json:"error"`
}

// A usage counts tokens. Each event says some of it; later numbers replace earlier ones.
type usage struct {
	Input      *int `json:"input_tokens"`
	CacheWrite *int `json:"cache_creation_input_tokens"`
	CacheRead  *int `json:"cache_read_input_tokens"`
	Output     *int `json:"output_tokens"`
	Kept       *struct {
		Hour int `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"` // CacheWrite, by how long it is kept
	Details *struct {
		Thinking int `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// maxBlocks bounds the pieces of one answer.
const maxBlocks = 4096

// A decoder makes an answer of the events of a stream.
type decoder struct {
	form   string // what opaque parts are marked with
	blocks []*part
	open   map[int]*part
	ids    stream.IDs
	usage  model.Usage
	reason string // of stopping, once it was said
	detail string
}

// A part is a block of the answer.
type part struct {
	kind      string
	text      strings.Builder // of a text or a thought, or the input of a tool
	joiner    stream.Joiner
	signature string
	data      string // of a thought that is redacted
	use       *model.ToolUse
	passed    bool // use was
	closed    bool
}

// Event decodes an event.
func (d *decoder) Event(_ string, data []byte, pass func(model.Event)) error {
	if string(data) == "[DONE]" { // as other interfaces end their streams
		d.finish(pass)
		return nil
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return &model.Error{Kind: model.KindAnswer, Message: fmt.Sprintf("an event is not what the interface says: %v", err), Raw: data[:min(len(data), 4<<10)], Err: err}
	}
	switch e.Type {
	case "message_start":
		if e.Message != nil {
			d.count(&e.Message.Usage)
			pass(&model.Began{ID: e.Message.ID, Model: e.Message.Model})
		}
	case "content_block_start":
		return d.begin(&e, pass)
	case "content_block_delta":
		d.delta(&e, pass)
	case "content_block_stop":
		if p := d.open[e.Index]; p != nil {
			delete(d.open, e.Index)
			d.close(p, pass)
		}
	case "message_delta":
		d.count(e.Usage)
		if e.Delta != nil && e.Delta.StopReason != "" {
			d.reason = e.Delta.StopReason
			if s := e.Delta.StopDetails; s != nil {
				d.detail = strings.TrimSpace(s.Category + " " + s.Explanation)
			}
		}
	case "message_stop":
		d.finish(pass)
	case "error":
		if e.Error == nil {
			e.Error = &errorBody{}
		}
		return e.Error.explain()
	default: // ping, and what is not known yet
		pass(&model.Alive{})
	}
	return nil
}

func (d *decoder) begin(e *event, pass func(model.Event)) error {
	if e.Block == nil {
		return nil
	}
	if len(d.blocks) == maxBlocks {
		return &model.Error{Kind: model.KindAnswer, Message: fmt.Sprintf("the answer has more than %d pieces", maxBlocks)}
	}
	p := &part{kind: e.Block.Type}
	d.blocks = append(d.blocks, p)
	if d.open == nil {
		d.open = map[int]*part{}
	}
	d.open[e.Index] = p
	switch p.kind {
	case "text":
		d.text(p, e.Block.Text, pass)
	case "thinking":
		d.thought(p, e.Block.Thinking, pass)
	case "redacted_thinking":
		p.data = e.Block.Data
	case "tool_use":
		p.use = &model.ToolUse{ID: d.ids.Next(e.Block.ID), Name: e.Block.Name}
		if in := strings.TrimSpace(string(e.Block.Input)); in != "" && in != "{}" && in != "null" {
			p.text.WriteString(in) // some servers say it at once
		}
		pass(&model.ToolUseBegan{ID: p.use.ID, Name: p.use.Name})
	default:
		pass(&model.Alive{})
	}
	return nil
}

func (d *decoder) text(p *part, s string, pass func(model.Event)) {
	if s != "" {
		p.text.WriteString(s)
		pass(&model.TextDelta{Text: s})
	}
}

func (d *decoder) thought(p *part, s string, pass func(model.Event)) {
	if s != "" {
		p.text.WriteString(s)
		pass(&model.ThoughtDelta{Text: s})
	}
}

func (d *decoder) delta(e *event, pass func(model.Event)) {
	p := d.open[e.Index]
	if p == nil || e.Delta == nil {
		pass(&model.Alive{})
		return
	}
	switch {
	case e.Delta.Type == "text_delta" && p.kind == "text":
		d.text(p, p.joiner.Next(e.Delta.Text), pass)
	case e.Delta.Type == "thinking_delta" && p.kind == "thinking":
		d.thought(p, p.joiner.Next(e.Delta.Thinking), pass)
	case e.Delta.Type == "signature_delta" && p.kind == "thinking":
		p.signature += e.Delta.Signature
		pass(&model.Alive{})
	case e.Delta.Type == "input_json_delta" && p.use != nil:
		if s := p.joiner.Next(e.Delta.PartialJSON); s != "" {
			p.text.WriteString(s)
			pass(&model.ToolInputDelta{ID: p.use.ID, JSON: s})
		}
	default:
		pass(&model.Alive{})
	}
}

// close ends a block. A tool whose input is empty or broken waits for the reason of
// stopping: the answer may have been cut off there.
func (d *decoder) close(p *part, pass func(model.Event)) {
	p.closed = true
	if p.use == nil {
		return
	}
	in := strings.TrimSpace(p.text.String())
	switch {
	case in == "":
		p.use.Input = json.RawMessage("{}")
	case json.Valid([]byte(in)):
		p.use.Input = json.RawMessage(in)
		p.passed = true
		pass(p.use)
	default:
		p.use.Input, _ = stream.AppendJSON(nil, in)
		p.use.Malformed = true
	}
}

// End completes an answer whose stream ended early, if it was complete but for the event
// that says so.
func (d *decoder) End(pass func(model.Event)) error {
	if d.reason != "" {
		d.finish(pass)
	}
	return nil
}

// Used implements [stream.Decoder].
func (d *decoder) Used() model.Usage { return d.usage }

func (d *decoder) finish(pass func(model.Event)) {
	reason, detail := reasonOf(d.reason), d.detail
	if reason == model.MaxTokens && d.reason != "max_tokens" && detail == "" {
		detail = d.reason
	}
	msg := &model.Message{Role: model.Assistant}
	for _, p := range d.blocks {
		if !p.closed && reason != model.MaxTokens {
			d.close(p, pass) // some servers do not say that a block ends
		}
		switch {
		case p.use != nil:
			if !p.passed {
				if reason == model.MaxTokens {
					continue // cut off in the middle of its input
				}
				pass(p.use)
			}
			msg.Parts = append(msg.Parts, p.use)
			if reason == model.EndTurn {
				reason = model.WantsTool
			}
		case p.kind == "text" && p.text.Len() > 0:
			msg.Parts = append(msg.Parts, &model.Text{Text: p.text.String()})
		case p.kind == "thinking", p.kind == "redacted_thinking":
			msg.Parts = append(msg.Parts, d.thoughtOf(p))
		}
	}
	pass(&model.Done{Reason: reason, Detail: detail, Usage: d.usage, Message: msg})
}

func (d *decoder) thoughtOf(p *part) *model.Thought {
	t := &model.Thought{Text: p.text.String()}
	var form any
	switch {
	case p.kind == "redacted_thinking" && p.data != "":
		form = struct {
			Type string `json:"type"`
			Data string `json:"data"`
		}{p.kind, p.data}
	case p.signature != "":
		form = struct {
			Type      string `json:"type"`
			Thinking  string `json:"thinking"`
			Signature string `json:"signature"`
		}{p.kind, t.Text, p.signature}
	default:
		return t
	}
	if data, err := stream.AppendJSON(nil, form); err == nil {
		t.Opaque = model.Opaque{API: d.form, Data: data}
	}
	return t
}

func (d *decoder) count(u *usage) {
	if u == nil {
		return
	}
	set := func(to *int, from *int) {
		if from != nil && *from >= 0 {
			*to, d.usage.Known = *from, true
		}
	}
	set(&d.usage.Input, u.Input)
	set(&d.usage.CacheRead, u.CacheRead)
	set(&d.usage.CacheWrite, u.CacheWrite)
	set(&d.usage.Output, u.Output)
	if u.Kept != nil {
		d.usage.CacheHour = u.Kept.Hour
	}
	d.usage.CacheHour = min(max(d.usage.CacheHour, 0), d.usage.CacheWrite)
	if u.Details != nil {
		d.usage.Reasoning = u.Details.Thinking
	}
}

func reasonOf(reason string) model.StopReason {
	switch reason {
	case "tool_use":
		return model.WantsTool
	case "max_tokens", "model_context_window_exceeded":
		return model.MaxTokens
	case "refusal":
		return model.Refused
	case "pause_turn":
		return model.Paused
	}
	return model.EndTurn
}
