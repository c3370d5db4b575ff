package openai

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// Tools of the Responses interface may take a text instead of an object; the interface calls
// them custom. The items of their calls, and of what came of these, are of types of their
// own, and one of each kind belongs together. A call is kept as that of any other tool: with
// an object that has the text, and a mark that it came as a text. So the conversation can be
// sent to any model, and to this interface as it was.

// textForm marks such calls. Any model of the interface takes them.
const textForm = "responses/text"

// plainForm is added to the name of the form in which all tools are functions.
const plainForm = "/functions"

// textMark is what is kept with such a call.
type textMark struct {
	Name string `json:"name"` // that the interface knows
}

// A functionTool is a tool that takes an object.
type functionTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// A customTool is a tool that takes a text.
type customTool struct {
	Type        string     `json:"type"`
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Format      textFormat `json:"format"`
}

type textFormat struct {
	Type       string `json:"type"`
	Syntax     string `json:"syntax,omitempty"`
	Definition string `json:"definition,omitempty"`
}

// responseTool returns a tool as the interface wants it.
func responseTool(t model.Tool, texts bool) any {
	if t.Text == nil || !texts {
		return functionTool{Type: "function", Name: t.Name, Description: t.Description, Parameters: t.Schema}
	}
	f := textFormat{Type: "text"}
	if t.Text.Grammar != "" {
		f = textFormat{Type: "grammar", Syntax: "lark", Definition: t.Text.Grammar}
	}
	return customTool{Type: "custom", Name: t.Text.Name, Description: t.Text.About, Format: f}
}

// texts reports whether the model takes tools whose input is a text, and the server has not
// refused one.
func (m *Responses) texts() bool { return m.c.Info.Texts && !m.plain.Load() }

// refusesTexts reports whether a server may have refused a request for its tools that take a
// text. Servers that speak the interface after OpenAI often know functions only.
func refusesTexts(err error, r *model.Request) bool {
	e, ok := errors.AsType[*model.Error](err)
	has := slices.ContainsFunc(r.Prefix.Tools, func(t model.Tool) bool { return t.Text != nil })
	if !ok || !has || e.Kind != model.KindRequest {
		return false
	}
	said := strings.ToLower(e.Message)
	return strings.Contains(said, "tool") || strings.Contains(said, "custom") || strings.Contains(said, "grammar")
}

// isTextCall reports whether the call with an id came as a text. Only what encodes a message asks, which is once for
// each: a conversation may have many such calls, which are long.
func isTextCall(messages []*model.Message, id string) bool {
	u := stream.UseOf(messages, id)
	return u != nil && textCall(u) != nil
}

// textCall returns a call as the item that it came as; nil if it did not come as a text.
func textCall(u *model.ToolUse) *item {
	if u.Opaque.API != textForm {
		return nil
	}
	var mark textMark
	var in map[string]string
	if json.Unmarshal(u.Opaque.Data, &mark) != nil || json.Unmarshal(u.Input, &in) != nil || len(in) != 1 {
		return nil
	}
	text := slices.Collect(maps.Values(in))[0]
	return &item{Type: "custom_tool_call", CallID: u.ID, Name: toolName(mark.Name), Input: &text}
}

// beginText begins a call whose input is a text.
func (d *responseDecoder) beginText(it *outputItem, name string) {
	it.custom = &model.TextForm{Name: name, Member: "input"} // a tool that nobody has offered
	for _, t := range d.tools {
		if t.Text != nil && t.Text.Name == name {
			it.custom, it.use.Name = t.Text, t.Name
		}
	}
	it.use.Opaque = model.Opaque{API: textForm, Data: must(stream.AppendJSON(nil, textMark{name}))}
}

// addText adds a piece of the text of a call, and passes it on as a piece of an object.
func (it *outputItem) addText(s string, pass func(model.Event)) {
	it.input.WriteString(s)
	piece := must(stream.AppendJSON(nil, s))
	pass(&model.ToolInputDelta{ID: it.use.ID, JSON: string(piece[1 : len(piece)-1])})
}

// endText ends a call whose input is a text. Whether the text is complete is known only when
// the answer is: it is passed on then.
func endText(it *outputItem, raw *rawItem, pass func(model.Event)) {
	if rest, ok := strings.CutPrefix(raw.Input, it.input.String()); ok && rest != "" {
		it.addText(rest, pass)
	} else if !ok && raw.Input != "" { // the end counts
		it.input.Reset()
		it.input.WriteString(raw.Input)
	}
	it.setText()
	pass(&model.ToolInputDelta{ID: it.use.ID, JSON: `"}`})
}

func (it *outputItem) setText() {
	it.use.Input = must(stream.AppendJSON(nil, map[string]string{it.custom.Member: it.input.String()}))
}
