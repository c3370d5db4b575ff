package ollama

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/modeltest"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func open(t *testing.T, rt http.RoundTripper) *Model {
	t.Helper()
	m, err := New(Config{Info: model.Info{Provider: "ollama", ID: "m-1", Images: true}, URL: "http://lab:11434/v1/", Client: stream.Client{HTTP: &http.Client{Transport: rt}, Retries: -1}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestStreams: what becomes of usual and odd streams.
func TestStreams(t *testing.T) {
	modeltest.Streams(t, "testdata/chat.txtar", 38, func(rt http.RoundTripper) model.Model { return open(t, rt) })
}

// TestGrowing: requests only grow.
func TestGrowing(t *testing.T) {
	modeltest.Growing(t, "],", model.Opaque{}, func(rt http.RoundTripper) model.Model { return open(t, rt) })
}

// TestRequest: a whole request.
func TestRequest(t *testing.T) {
	s := &modeltest.Server{Answers: []modeltest.Answer{{Status: 400, Body: `{"error":"registry model 'm-1' not found"}`}}}
	r := &model.Request{
		Prefix: &model.Prefix{System: "Be <brief>.", Tools: []model.Tool{{Name: "read", Description: "Reads.", Schema: json.RawMessage(`{"type":"object"}`)}}},
		Messages: []*model.Message{
			{Role: model.User, Parts: []model.Part{&model.Text{Text: "a"}, &model.Text{Text: "b"}, modeltest.Pixel()}},
			{Role: model.Assistant, Parts: []model.Part{&model.Thought{Text: "hm"}, &model.Text{Text: "I look."}, &model.ToolUse{ID: "c1", Name: "read", Input: json.RawMessage(`{"path":"a"}`)}, &model.ToolUse{ID: "c2", Name: "read", Input: json.RawMessage(`"oops"`), Malformed: true}}},
			{Role: model.User, Parts: []model.Part{&model.ToolResult{ID: "c1", Parts: []model.Part{&model.Text{Text: "x"}}}, &model.ToolResult{ID: "c2", Failed: true, Parts: []model.Part{&model.Text{Text: "no"}}}, &model.Text{Text: "Hurry."}}},
			{Role: model.Assistant},
		},
		Tail: []model.Part{&model.Text{Text: "tail"}}, Effort: "low", MaxTokens: 100,
	}
	got := modeltest.Transcript(open(t, s).Generate(t.Context(), r))
	if want := "error ollama: registry model 'm-1' not found (request, status 400)\n"; got != want {
		t.Errorf("%q", got)
	}
	url, _, body := s.Last()
	if url != "POST http://lab:11434/api/chat" {
		t.Error(url)
	}
	want := `{"model":"m-1","tools":[{"type":"function","function":{"name":"read","description":"Reads.","parameters":{"type":"object","properties":{}}}}],"messages":[` +
		`{"role":"system","content":"Be <brief>."},` +
		`{"role":"user","content":"a\n\nb","images":["` + modeltest.PixelData + `"]},` +
		`{"role":"assistant","content":"I look.","thinking":"hm","tool_calls":[{"id":"c1","function":{"name":"read","arguments":{"path":"a"}}},{"id":"c2","function":{"name":"read","arguments":{"input":"oops"}}}]},` +
		`{"role":"tool","content":"x","tool_name":"read","tool_call_id":"c1"},{"role":"tool","content":"error: no","tool_name":"read","tool_call_id":"c2"},{"role":"user","content":"Hurry."},` +
		`{"role":"assistant","content":"(no answer)"},` +
		`{"role":"user","content":"tail"}],"options":{"num_ctx":32768,"num_predict":100},"stream":true,"think":"low"}`
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
}

// TestCutOff: a line that the connection cuts off is no line.
func TestCutOff(t *testing.T) {
	s := &modeltest.Server{Answers: []modeltest.Answer{{Header: http.Header{"Content-Type": {"application/x-ndjson"}}, Body: `{"message":{"content":"a"}}` + "\n" + `{"message":{"con`}}}
	if got := modeltest.Transcript(open(t, s).Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}})); !strings.HasSuffix(got, "text \"a\"\nerror ollama: unexpected EOF (network)\n") {
		t.Error(got)
	}
}

// TestErrors: what an answer without a stream means.
func TestErrors(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":"\"m\" does not support thinking"}`: "(request, status 500)",
		`<html>no</html>`:     "(",
		`{"error":"busy"}`:    "(overloaded, status 500)",
		`{"error":{"a":"b"}}`: "status 500",
	} {
		s := &modeltest.Server{Answers: []modeltest.Answer{{Status: 500, Header: http.Header{}, Body: body}}}
		if got := modeltest.Transcript(open(t, s).Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}})); !strings.Contains(got, want) {
			t.Errorf("%s: %s", body, got)
		}
	}
	if _, err := New(Config{URL: "lab"}); err == nil {
		t.Error("a URL that is none")
	}
}

// FuzzStream: whatever comes, the answer ends once.
func FuzzStream(f *testing.F) {
	f.Add(`{"message":{"content":"a","tool_calls":[{"function":{"name":"x","arguments":{}}}]}}` + "\n" + `{"done":true}`)
	f.Fuzz(func(t *testing.T, body string) {
		s := &modeltest.Server{Answers: []modeltest.Answer{{Header: http.Header{"Content-Type": {"application/x-ndjson"}}, Body: body}}}
		modeltest.Once(t, open(t, s).Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}}))
	})
}
