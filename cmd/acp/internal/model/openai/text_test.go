package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/modeltest"
)

var patchPrefix = &model.Prefix{Tools: []model.Tool{
	{Name: "read", Description: "R.", Schema: json.RawMessage(`{"type":"object"}`)},
	{
		Name: "patch", Description: "P.", Schema: json.RawMessage(`{"type":"object"}`),
		Text: &model.TextForm{Name: "apply_patch", About: "A.", Member: "patch", Grammar: `start: "<a>"`},
	},
}}

func openTexts(t *testing.T, rt http.RoundTripper, id string) *Responses {
	t.Helper()
	c := config(rt)
	c.Info.Texts, c.Info.ID = true, id
	m, err := NewResponses(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// textStream is an answer with a call whose input is a text, and how it ends.
func textStream(end string) string {
	var b strings.Builder
	for _, e := range []string{
		`{"type":"response.created","response":{"id":"r"}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"ctc_1","type":"custom_tool_call","status":"in_progress","call_id":"c1","name":"apply_patch","input":""}}`,
		`{"type":"response.custom_tool_call_input.delta","output_index":0,"item_id":"ctc_1","delta":"*** Begin Patch\n"}`,
		`{"type":"response.custom_tool_call_input.delta","output_index":0,"item_id":"ctc_1","delta":"*** \"End\" Patch"}`,
		`{"type":"response.custom_tool_call_input.done","output_index":0,"item_id":"ctc_1","input":"*** Begin Patch\n*** \"End\" Patch"}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"c1","name":"apply_patch","input":"*** Begin Patch\n*** \"End\" Patch"}}`,
		end,
	} {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

const completed = `{"type":"response.completed","response":{"status":"completed"}}`

// said returns the answer to a request.
func said(t *testing.T, m model.Model, r *model.Request) *model.Message {
	t.Helper()
	for e, err := range m.Generate(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.(*model.Done); ok {
			return d.Message
		}
	}
	return nil
}

// TestTextTools: a tool that takes a text is sent as such, its calls come and go back as they
// were, and so does what came of them, also to another model of the interface. Elsewhere, and
// where a server does not know such tools, all are functions.
func TestTextTools(t *testing.T) {
	s := &modeltest.Server{Answers: []modeltest.Answer{{Body: textStream(completed)}}}
	m := openTexts(t, s, "m-1")
	r := &model.Request{Prefix: patchPrefix, Messages: []*model.Message{user(text("hi"))}}
	got := modeltest.Transcript(m.Generate(t.Context(), r))
	want := `began r ` + "\n" + `tool c1 patch ...
input c1 "{\"patch\":\""
input c1 "*** Begin Patch\\n"
input c1 "*** \\\"End\\\" Patch"
alive 1
input c1 "\"}"
tool c1 patch {"patch":"*** Begin Patch\n*** \"End\" Patch"} opaque responses/text {"name":"apply_patch"}
done tool_use ""
  tool c1 patch {"patch":"*** Begin Patch\n*** \"End\" Patch"} opaque responses/text {"name":"apply_patch"}
`
	same(t, want, got)

	answered := said(t, m, r)
	data, err := json.Marshal(answered) // as a journal keeps it
	if err != nil {
		t.Fatal(err)
	}
	kept := &model.Message{}
	if err := json.Unmarshal(data, kept); err != nil {
		t.Fatal(err)
	}
	kept.Parts = append(kept.Parts, &model.ToolUse{ID: "c2", Name: "patch", Input: json.RawMessage(`{"patch":"x"}`)})
	next := &model.Request{Prefix: patchPrefix, Messages: append(r.Messages, kept, user(
		&model.ToolResult{ID: "c1", Parts: []model.Part{text("done")}}, &model.ToolResult{ID: "c2", Parts: []model.Part{text("no")}}))}
	const head = `{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},`
	const functions = `{"type":"function_call","call_id":"c2","name":"patch","arguments":"{\"patch\":\"x\"}"},`
	const output = `{"type":"function_call_output","call_id":"c2","output":"no"}],`
	const asText = head + `{"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":"*** Begin Patch\n*** \"End\" Patch"},` + functions +
		`{"type":"custom_tool_call_output","call_id":"c1","output":"done"},` + output
	const asFunction = head + `{"type":"function_call","call_id":"c1","name":"patch","arguments":"{\"patch\":\"*** Begin Patch\\n*** \\\"End\\\" Patch\"}"},` + functions +
		`{"type":"function_call_output","call_id":"c1","output":"done"},` + output
	const read = `"tools":[{"type":"function","name":"read","description":"R.","parameters":{"type":"object","properties":{}},"strict":false},`
	const custom = read + `{"type":"custom","name":"apply_patch","description":"A.","format":{"type":"grammar","syntax":"lark","definition":"start: \"<a>\""}}],`
	const function = read + `{"type":"function","name":"patch","description":"P.","parameters":{"type":"object","properties":{}},"strict":false}],`
	last := func(m model.Model) string {
		_ = modeltest.Transcript(m.Generate(t.Context(), next))
		_, _, body := s.Last()
		return body
	}
	for name, tc := range map[string]struct {
		m     model.Model
		parts []string
	}{
		"the same model": {m, []string{custom, asText}},
		"another model":  {openTexts(t, s, "m-2"), []string{custom, asText}},
		"without texts":  {openResponses(t, s), []string{function, asFunction}},
		"chat":           {openChat(t, s, Dialect{}), []string{`"function":{"name":"patch","description":"P."`, `"arguments":"{\"patch\":\"*** Begin Patch`}},
	} {
		body := last(tc.m)
		for _, part := range tc.parts {
			if !strings.Contains(body, part) {
				t.Errorf("%s: there is no\n%s\nin\n%s", name, part, body)
			}
		}
	}
}

// TestTextCut: a text that is cut off may look complete: its call is dropped.
func TestTextCut(t *testing.T) {
	s := &modeltest.Server{Answers: []modeltest.Answer{{Body: textStream(`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`)}}}
	got := modeltest.Transcript(openTexts(t, s, "m-1").Generate(t.Context(), &model.Request{Prefix: patchPrefix, Messages: []*model.Message{user(text("hi"))}}))
	if !strings.HasSuffix(got, "done max_tokens \"\"\n") || strings.Contains(got, "tool c1 patch {") {
		t.Error(got)
	}
}

// TestTextRefused: a server that refuses such a tool is asked once more, and then only for
// functions; any other refusal stays one.
func TestTextRefused(t *testing.T) {
	refusal := func(text string) modeltest.Answer {
		return modeltest.Answer{Status: 400, Body: fmt.Sprintf(`{"error":{"message":%q}}`, text), Header: http.Header{"Content-Type": {"application/json"}}}
	}
	done := modeltest.Answer{Body: "data: " + completed + "\n\n"}
	r := &model.Request{Prefix: patchPrefix, Messages: []*model.Message{user(text("hi"))}}
	s := &modeltest.Server{Answers: []modeltest.Answer{refusal("Invalid value: 'custom'. Supported values are: 'function'."), done}}
	m := openTexts(t, s, "m-1")
	for range 2 {
		if got := modeltest.Transcript(m.Generate(t.Context(), r)); got != "done end_turn \"\"\n" {
			t.Error(got)
		}
	}
	bodies := s.Bodies()
	if len(bodies) != 3 || !strings.Contains(bodies[0], `"custom"`) || strings.Contains(bodies[1]+bodies[2], `"custom"`) {
		t.Errorf("%q", bodies)
	}
	s = &modeltest.Server{Answers: []modeltest.Answer{refusal("no such thing"), done}}
	if got := modeltest.Transcript(openTexts(t, s, "m-1").Generate(t.Context(), r)); len(s.Bodies()) != 1 || !strings.Contains(got, "no such thing") {
		t.Errorf("%d requests: %s", len(s.Bodies()), got)
	}
}

// TestTextCallsOnce: calls that came as texts are read when they are encoded, not for each request again.
func TestTextCallsOnce(t *testing.T) {
	const calls = 300
	m := openTexts(t, &modeltest.Server{}, "m-1")
	r := &model.Request{Prefix: patchPrefix, Messages: []*model.Message{user(text("hi"))}}
	for i := range calls {
		id := fmt.Sprint("c", i)
		use := &model.ToolUse{ID: id, Name: "patch", Input: json.RawMessage(`{"patch":"x"}`), Opaque: model.Opaque{API: textForm, Data: json.RawMessage(`{"name":"apply_patch"}`)}}
		r.Messages = append(r.Messages, &model.Message{Role: model.Assistant, Parts: []model.Part{use}}, user(&model.ToolResult{ID: id}))
	}
	body, err := m.body(r, true)
	if n := strings.Count(string(body), `"custom_tool_call_output"`); err != nil || n != calls {
		t.Fatalf("%d calls, %v", n, err)
	}
	if n := testing.AllocsPerRun(3, func() { _, err = m.body(r, true) }); err != nil || n >= calls {
		t.Errorf("a request that was encoded before takes %.0f allocations for %d calls, %v", n, calls, err)
	}
}
