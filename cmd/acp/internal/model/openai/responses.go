package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// A Responses is a model behind the Responses interface. Its methods may be called from
// any goroutine.
type Responses struct {
	*endpoint
	form string
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
	body, err := m.body(r)
	return m.generate(ctx, body, err, func() stream.Decoder { return &responseDecoder{form: m.form} })
}

// A responseTool is a tool as this interface wants it.
type responseTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
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
	Output    any        `json:"output,omitempty"`
}

type content struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
}

func (m *Responses) body(r *model.Request) ([]byte, error) {
	prefix, err := r.Prefix.Encoded(m.form, m.prefix)
	if err != nil {
		return nil, err
	}
	b, err := join(append(bytes.Clone(prefix), `,"input":[`...), r, m.form, m.message)
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
func (m *Responses) prefix(p *model.Prefix) ([]byte, error) {
	head := struct {
		Model        string         `json:"model"`
		Tools        []responseTool `json:"tools,omitempty"`
		Instructions string         `json:"instructions,omitempty"`
		Store        bool           `json:"store"`
		Include      []string       `json:"include,omitempty"`
	}{Model: m.c.Info.ID, Instructions: p.System}
	if len(m.c.Info.Efforts) > 0 {
		head.Include = []string{"reasoning.encrypted_content"}
	}
	for _, t := range m.c.Info.Tools(p.Tools) {
		head.Tools = append(head.Tools, responseTool{Type: "function", Name: t.Name, Description: t.Description, Parameters: t.Schema})
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
// that the interface takes.
func (m *Responses) message(msg *model.Message) ([]byte, error) {
	var items []any
	var said []content
	flush := func() {
		if len(said) > 0 {
			items = append(items, &item{Type: "message", Role: msg.Role, Content: said})
		}
		said = nil
	}
	for _, p := range m.sent(msg.Parts) {
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
			items = append(items, &item{Type: "function_call", CallID: p.ID, Name: toolName(p.Name), Arguments: arguments(p)})
		case *model.ToolResult:
			flush()
			it, err := m.result(p)
			if err != nil {
				return nil, err
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
	if raw.Type != "function_call" {
		pass(&model.Alive{})
		return nil
	}
	id := raw.CallID
	if id == "" {
		id = raw.ID
	}
	it.use = &model.ToolUse{ID: d.ids.Next(id), Name: raw.Name}
	pass(&model.ToolUseBegan{ID: it.use.ID, Name: it.use.Name})
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
	case it.use != nil && e.Type == "response.function_call_arguments.delta":
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
			if it.use.Input == nil {
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
