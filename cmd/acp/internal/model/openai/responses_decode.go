package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// A responseEvent is any event of a stream. Events and items of types that are not known
// are ignored.
type responseEvent struct {
	Type     string          `json:"type"`
	Index    int             `json:"output_index"`
	Delta    json.RawMessage `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Response *struct {
		ID         string            `json:"id"`
		Model      string            `json:"model"`
		Status     string            `json:"status"`
		Output     []json.RawMessage `json:"output"`
		Usage      *responseUsage    `json:"usage"`
		Error      *errorBody        `json:"error"`
		Incomplete *struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
	} `json:"response"`
	// Of an event "error", which some servers nest.
	Error   *errorBody      `json:"error"`
	Code    json.RawMessage `json:"code"`
	Message string          `json:"message"`
}

type responseUsage struct {
	Input        int `json:"input_tokens"`
	Output       int `json:"output_tokens"`
	Total        int `json:"total_tokens"`
	InputDetails struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

func (u *responseUsage) usage() model.Usage {
	read := max(u.Input, 0)
	cached := min(max(u.InputDetails.Cached, 0), read)
	written := min(max(u.InputDetails.Written, 0), read-cached)
	return model.Usage{
		Input: read - cached - written, CacheRead: cached, CacheWrite: written,
		Output: writtenOf(u.Output, u.OutputDetails.Reasoning, u.Total-read), Reasoning: max(u.OutputDetails.Reasoning, 0), Known: true,
	}
}

// maxItems bounds the pieces of one answer.
const maxItems = 4096

// A responseDecoder makes an answer of the events of a stream.
type responseDecoder struct {
	form  string
	tools []model.Tool
	ids   stream.IDs
	items []*outputItem
	open  map[int]*outputItem
	began bool
	usage model.Usage
}

// An outputItem is a piece of the answer.
type outputItem struct {
	kind    string
	text    strings.Builder
	input   strings.Builder
	joiner  stream.Joiner
	parts   int // of a summary
	phase   string
	raw     json.RawMessage // of a thought that is complete
	use     *model.ToolUse
	custom  *model.TextForm // of the tool, if its input is a text
	passed  bool
	refused bool
}

// Event decodes an event.
func (d *responseDecoder) Event(_ string, data []byte, pass func(model.Event)) error {
	if string(data) == "[DONE]" { // as other interfaces end their streams
		return d.End(pass)
	}
	var e responseEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return senseless(data, err)
	}
	if e.Response != nil && e.Response.Usage != nil { // also of an answer that has failed
		d.usage = e.Response.Usage.usage()
	}
	switch e.Type {
	case "response.created", "response.in_progress", "response.queued":
		if d.began || e.Response == nil {
			pass(&model.Alive{})
			return nil
		}
		d.began = true
		pass(&model.Began{ID: e.Response.ID, Model: e.Response.Model})
	case "response.output_item.added":
		return d.begin(&e, pass)
	case "response.output_item.done":
		return d.close(&e, pass)
	case "response.completed", "response.incomplete", "response.done":
		return d.finish(&e, pass)
	case "response.failed":
		b := &errorBody{}
		if e.Response != nil && e.Response.Error != nil {
			b = e.Response.Error
		}
		return b.failure()
	case "error":
		if e.Error == nil {
			e.Error = &errorBody{Message: e.Message, Code: e.Code}
		}
		return e.Error.failure()
	default:
		d.delta(&e, pass)
	}
	return nil
}

// rawItem is an item of the answer as it comes.
type rawItem struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Input     string `json:"input"`
	Phase     string `json:"phase"`
	Content   []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
	Summary []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"summary"`
	Encrypted string `json:"encrypted_content"`
}

func (d *responseDecoder) begin(e *responseEvent, pass func(model.Event)) error {
	var raw rawItem
	if err := json.Unmarshal(e.Item, &raw); err != nil {
		return senseless(e.Item, err)
	}
	if len(d.items) == maxItems {
		return &model.Error{Kind: model.KindAnswer, Message: fmt.Sprintf("the answer has more than %d pieces", maxItems)}
	}
	it := &outputItem{kind: raw.Type, phase: raw.Phase}
	d.items = append(d.items, it)
	if d.open == nil {
		d.open = map[int]*outputItem{}
	}
	d.open[e.Index] = it
	if raw.Type != "function_call" && raw.Type != "custom_tool_call" {
		pass(&model.Alive{})
		return nil
	}
	id := raw.CallID
	if id == "" {
		id = raw.ID
	}
	it.use = &model.ToolUse{ID: d.ids.Next(id), Name: raw.Name}
	if raw.Type == "custom_tool_call" {
		d.beginText(it, raw.Name)
	}
	pass(&model.ToolUseBegan{ID: it.use.ID, Name: it.use.Name})
	if it.custom != nil {
		pass(&model.ToolInputDelta{ID: it.use.ID, JSON: `{"` + it.custom.Member + `":"`})
	}
	return nil
}

func (d *responseDecoder) delta(e *responseEvent, pass func(model.Event)) {
	it := d.open[e.Index]
	if it == nil {
		pass(&model.Alive{})
		return
	}
	switch {
	case it.kind == "message" && (e.Type == "response.output_text.delta" || e.Type == "response.refusal.delta"):
		it.refused = it.refused || e.Type == "response.refusal.delta"
		if s := it.joiner.Next(e.Delta); s != "" {
			it.text.WriteString(s)
			pass(&model.TextDelta{Text: s})
		}
	case it.kind == "reasoning" && e.Type == "response.reasoning_summary_part.added":
		if it.parts++; it.parts > 1 {
			it.text.WriteString("\n\n")
			pass(&model.ThoughtDelta{Text: "\n\n"})
			return
		}
		pass(&model.Alive{})
	case it.kind == "reasoning" && (e.Type == "response.reasoning_summary_text.delta" || e.Type == "response.reasoning_text.delta"):
		if s := it.joiner.Next(e.Delta); s != "" {
			it.text.WriteString(s)
			pass(&model.ThoughtDelta{Text: s})
		}
	case it.custom != nil && e.Type == "response.custom_tool_call_input.delta":
		if s := it.joiner.Next(e.Delta); s != "" {
			it.addText(s, pass)
		}
	case it.custom == nil && it.use != nil && e.Type == "response.function_call_arguments.delta":
		if s := it.joiner.Next(e.Delta); s != "" {
			it.input.WriteString(s)
			pass(&model.ToolInputDelta{ID: it.use.ID, JSON: s})
		}
	default:
		pass(&model.Alive{})
	}
}

// close ends an item. Its event holds all of it, which completes what the pieces left
// out.
func (d *responseDecoder) close(e *responseEvent, pass func(model.Event)) error {
	var raw rawItem
	if err := json.Unmarshal(e.Item, &raw); err != nil {
		return senseless(e.Item, err)
	}
	// Some servers say only the end, and the end counts.
	if it := d.open[e.Index]; it == nil || it.kind != raw.Type {
		if err := d.begin(e, pass); err != nil {
			return err
		}
	}
	it := d.open[e.Index]
	delete(d.open, e.Index)
	switch it.kind {
	case "message":
		it.phase = raw.Phase
		whole := ""
		for _, c := range raw.Content {
			whole += c.Text + c.Refusal
			it.refused = it.refused || c.Refusal != ""
		}
		if rest, ok := strings.CutPrefix(whole, it.text.String()); ok && rest != "" {
			it.text.WriteString(rest)
			pass(&model.TextDelta{Text: rest})
		}
	case "reasoning":
		if it.text.Len() == 0 {
			for i, s := range raw.Summary {
				if i > 0 {
					it.text.WriteString("\n\n")
				}
				it.text.WriteString(s.Text)
			}
			if it.text.Len() > 0 {
				pass(&model.ThoughtDelta{Text: it.text.String()})
			}
		}
		if raw.Encrypted != "" {
			it.raw = keptThought(e.Item)
		}
	case "function_call":
		if raw.Name != "" {
			it.use.Name = raw.Name
		}
		in := raw.Arguments
		if in == "" {
			in = it.input.String()
		}
		it.use.Input, it.use.Malformed = inputOf(in)
		if in != "" && !it.use.Malformed {
			it.passed = true
			pass(it.use)
		}
	case "custom_tool_call":
		endText(it, &raw, pass)
	}
	return nil
}

// keptThought returns what of a thought the provider takes back.
func keptThought(data json.RawMessage) json.RawMessage {
	var fields struct {
		Type      string          `json:"type"`
		ID        string          `json:"id,omitempty"`
		Summary   json.RawMessage `json:"summary"`
		Content   json.RawMessage `json:"content,omitempty"`
		Encrypted string          `json:"encrypted_content"`
	}
	if json.Unmarshal(data, &fields) != nil {
		return nil
	}
	if len(fields.Summary) == 0 || string(fields.Summary) == "null" {
		fields.Summary = json.RawMessage("[]")
	}
	if string(fields.Content) == "null" {
		fields.Content = nil
	}
	return must(stream.AppendJSON(nil, fields))
}

// End reports that the answer is not complete: this interface always says when it is.
func (d *responseDecoder) End(func(model.Event)) error { return nil }

// Used implements [stream.Decoder].
func (d *responseDecoder) Used() model.Usage { return d.usage }

func (d *responseDecoder) finish(e *responseEvent, pass func(model.Event)) error {
	done := &model.Done{Reason: model.EndTurn}
	if r := e.Response; r != nil {
		if len(d.items) == 0 { // some servers say all of it at the end
			for i, raw := range r.Output {
				if err := d.close(&responseEvent{Index: i, Item: raw}, pass); err != nil {
					return err
				}
			}
		}
		if r.Incomplete != nil || r.Status == "incomplete" {
			done.Reason = model.MaxTokens
			if r.Incomplete != nil && r.Incomplete.Reason != "max_output_tokens" {
				done.Detail = r.Incomplete.Reason
			}
			if done.Detail == "content_filter" {
				done.Reason = model.Refused
			}
		}
	}
	done.Usage = d.usage
	done.Message = &model.Message{Role: model.Assistant}
	for _, it := range d.items {
		if part := d.part(it, done, pass); part != nil {
			done.Message.Parts = append(done.Message.Parts, part)
		}
	}
	pass(done)
	return nil
}

// part returns what an item is in the whole answer; nil if nothing. A tool whose input is
// not complete was cut off if the answer was.
func (d *responseDecoder) part(it *outputItem, done *model.Done, pass func(model.Event)) model.Part {
	switch {
	case it.use != nil:
		if !it.passed {
			if done.Reason == model.MaxTokens || done.Reason == model.Refused {
				return nil
			}
			switch {
			case it.use.Input != nil:
			case it.custom != nil:
				it.setText()
			default:
				it.use.Input, it.use.Malformed = inputOf(it.input.String())
			}
			pass(it.use)
		}
		if done.Reason == model.EndTurn {
			done.Reason = model.WantsTool
		}
		return it.use
	case it.kind == "message" && it.text.Len() > 0:
		if it.refused && done.Reason == model.EndTurn {
			done.Reason = model.Refused
		}
		t := &model.Text{Text: it.text.String()}
		if it.phase != "" {
			t.Opaque = model.Opaque{API: d.form, Data: must(stream.AppendJSON(nil, phase{it.phase}))}
		}
		return t
	case it.kind == "reasoning" && (it.raw != nil || it.text.Len() > 0):
		t := &model.Thought{Text: it.text.String()}
		if it.raw != nil {
			t.Opaque = model.Opaque{API: d.form, Data: it.raw}
		}
		return t
	}
	return nil
}
