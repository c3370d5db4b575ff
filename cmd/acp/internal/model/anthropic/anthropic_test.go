package anthropic

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

// open returns a model that is asked through rt, with settings of its own.
func open(t *testing.T, rt http.RoundTripper, with ...func(*Config)) *Model {
	t.Helper()
	c := Config{Info: model.Info{Provider: "anthropic", ID: "m-1", Images: true}, Key: "the-key", Client: stream.Client{HTTP: &http.Client{Transport: rt}, Retries: -1}}
	for _, f := range with {
		f(&c)
	}
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestStreams: what becomes of usual and odd streams.
func TestStreams(t *testing.T) {
	modeltest.Streams(t, "testdata/streams.txtar", 60, func(rt http.RoundTripper) model.Model { return open(t, rt) })
}

// TestGrowing: requests only grow.
func TestGrowing(t *testing.T) {
	thought := model.Opaque{API: "messages/m-1", Data: json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"c2ln"}`)}
	modeltest.Growing(t, "],", thought, func(rt http.RoundTripper) model.Model { return open(t, rt) })
}

func user(parts ...model.Part) *model.Message {
	return &model.Message{Role: model.User, Parts: parts}
}

func answer(parts ...model.Part) *model.Message {
	return &model.Message{Role: model.Assistant, Parts: parts}
}

func text(s string) *model.Text { return &model.Text{Text: s} }

// TestBody: what is sent.
func TestBody(t *testing.T) {
	tools := []model.Tool{{Name: "a", Description: "A.", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "b", Schema: json.RawMessage(`{"type":"object"}`)}}
	signed := model.Opaque{API: "messages/m-1", Data: json.RawMessage(`{"type":"thinking","thinking":"t","signature":"s"}`)}
	for _, tc := range []struct {
		name string
		with func(*Config)
		r    model.Request
		want string
	}{
		{
			name: "least",
			r:    model.Request{Prefix: &model.Prefix{}, Messages: []*model.Message{user(text("hi"))}},
			want: `{"model":"m-1","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"cache_control":{"type":"ephemeral"},"thinking":{"type":"adaptive","display":"summarized"},"max_tokens":32000,"stream":true}`,
		},
		{
			name: "prefix",
			r:    model.Request{Prefix: &model.Prefix{System: "S", Tools: tools}, Messages: []*model.Message{user(text("hi"))}, Effort: "high", MaxTokens: 10},
			want: `{"model":"m-1","tools":[{"name":"a","description":"A.","input_schema":{"type":"object","properties":{}}},{"name":"b","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}],"system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"cache_control":{"type":"ephemeral"},"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"},"max_tokens":10,"stream":true}`,
		},
		{
			name: "tools must be used",
			r:    model.Request{Prefix: &model.Prefix{Tools: tools[:1]}, Messages: []*model.Message{user(text("hi"))}, Choice: model.ToolAny},
			want: `{"model":"m-1","tools":[{"name":"a","description":"A.","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"cache_control":{"type":"ephemeral"},"tool_choice":{"type":"any"},"max_tokens":32000,"stream":true}`,
		},
		{
			name: "budget",
			with: func(c *Config) { c.Thinking = ThinkBudget; c.Unmarked = true; c.Info.Output = 9000 },
			r:    model.Request{Prefix: &model.Prefix{System: "S"}, Messages: []*model.Message{user(text("hi"))}, Effort: "high"},
			want: `{"model":"m-1","system":[{"type":"text","text":"S"}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"thinking":{"type":"enabled","budget_tokens":4904},"max_tokens":9000,"stream":true}`,
		},
		{
			name: "no thoughts",
			r:    model.Request{Prefix: &model.Prefix{}, Messages: []*model.Message{user(text("hi"))}, Effort: "none"},
			want: `{"model":"m-1","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"cache_control":{"type":"ephemeral"},"thinking":{"type":"disabled"},"max_tokens":32000,"stream":true}`,
		},
		{
			name: "results come first, and ids of others are made to fit",
			with: func(c *Config) { c.Thinking = ThinkNever },
			r: model.Request{Prefix: &model.Prefix{}, Messages: []*model.Message{
				user(text("hi")),
				answer(&model.Thought{Text: "t", Opaque: signed}, &model.Thought{Text: "of another"}, &model.ToolUse{ID: "call:1", Name: "a b/ü", Input: json.RawMessage(`[1]`)}, &model.ToolUse{ID: "ok_1", Name: "", Input: json.RawMessage(`"x"`), Malformed: true}),
				user(text("and now?"), &model.ToolResult{ID: "call:1", Failed: true}, &model.ToolResult{ID: "ok_1", Parts: []model.Part{text(" \n"), modeltest.Pixel(), &model.Image{MIMEType: "image/tiff"}}}),
				answer(text(" "), &model.Thought{Text: "t", Opaque: signed}),
				user(text("well?")),
			}},
			want: `{"model":"m-1","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},` +
				`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"toolu_0af6315558b41599b4a0fbfa","name":"a_b__","input":{"input":[1]}},{"type":"tool_use","id":"ok_1","name":"unknown","input":{"input":"x"}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0af6315558b41599b4a0fbfa","content":[{"type":"text","text":"failed"}],"is_error":true},{"type":"tool_result","tool_use_id":"ok_1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + modeltest.PixelData + `"}},{"type":"text","text":"(An image is not here: it is empty.)"}]},{"type":"text","text":"and now?"}]},` +
				`{"role":"user","content":[{"type":"text","text":"well?"}]}],"cache_control":{"type":"ephemeral"},"max_tokens":32000,"stream":true}`,
		},
		{
			name: "a tail is not marked",
			with: func(c *Config) { c.Thinking = ThinkNever },
			r:    model.Request{Prefix: &model.Prefix{}, Messages: []*model.Message{user(text("hi"))}, Tail: []model.Part{text("now")}},
			want: `{"model":"m-1","messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":[{"type":"text","text":"now"}]}],"max_tokens":32000,"stream":true}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &modeltest.Server{Answers: []modeltest.Answer{{Status: 400, Body: "{}"}}}
			var with []func(*Config)
			if tc.with != nil {
				with = append(with, tc.with)
			}
			_ = modeltest.Transcript(open(t, s, with...).Generate(t.Context(), &tc.r))
			_, _, body := s.Last()
			if diff := cmp.Diff(strings.ReplaceAll(tc.want, `},{`, "},\n{"), strings.ReplaceAll(body, `},{`, "},\n{")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestHeaders: where requests go, and with which key.
func TestHeaders(t *testing.T) {
	for base, want := range map[string]string{
		"":                          "POST https://api.anthropic.com/v1/messages",
		"http://127.0.0.1:8080/":    "POST http://127.0.0.1:8080/v1/messages",
		"http://lab/v1":             "POST http://lab/v1/messages",
		"https://host/a/v1/?beta=1": "POST https://host/a/v1/messages?beta=1",
	} {
		s := &modeltest.Server{Answers: []modeltest.Answer{{Status: 400}}}
		m := open(t, s, func(c *Config) { c.URL = base; c.Token = "the-token"; c.Header = http.Header{"X-Own": {"1"}} })
		_ = modeltest.Transcript(m.Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}}))
		url, h, _ := s.Last()
		if url != want {
			t.Errorf("%q: %s, want %s", base, url, want)
		}
		if h.Get("X-Api-Key") != "the-key" || h.Get("Authorization") != "Bearer the-token" || h.Get("Anthropic-Version") != "2023-06-01" || h.Get("X-Own") != "1" {
			t.Errorf("headers %v", h)
		}
	}
	for _, base := range []string{"lab", "ftp://lab", "http://", "http://\x00"} {
		if _, err := New(Config{URL: base}); err == nil {
			t.Errorf("%q is taken for a URL", base)
		}
	}
}

// TestRefusals: what answers that are no streams mean.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"key", 401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, "error anthropic: invalid x-api-key (auth, status 401)\n"},
		{"right", 403, `{"type":"error","error":{"type":"permission_error","message":"not yours"}}`, "error anthropic: not yours (auth, status 403)\n"},
		{"credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, "error anthropic: Your credit balance is too low to access the Anthropic API. (quota, status 400)\n"},
		{"billing", 402, `{"type":"error","error":{"type":"billing_error","message":"pay"}}`, "error anthropic: pay (quota, status 402)\n"},
		{"too long", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, "error anthropic: prompt is too long: 210000 tokens > 200000 maximum (overflow, status 400)\n"},
		{"too large", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, "error anthropic: Request exceeds the maximum size (overflow, status 413)\n"},
		{"model", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: m-1"}}`, "error anthropic: model: m-1 (request, status 404)\n"},
		{"rate", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow\n down"}}`, "error anthropic: slow down (rate, status 429)\n"},
		{"overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "error anthropic: Overloaded (overloaded, status 529)\n"},
		{"new word", 422, `{"type":"error","error":{"type":"new_error","message":"what"}}`, "error anthropic: what (request, status 422)\n"},
		{"page", 502, `<html>bad gateway</html>`, "error anthropic: a web page (Bad Gateway) instead of an answer (overloaded, status 502)\n"},
		{"nothing", 500, ``, "error anthropic: an empty answer (overloaded, status 500)\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &modeltest.Server{Answers: []modeltest.Answer{{Status: tc.status, Body: tc.body, Header: http.Header{}}}}
			got := modeltest.Transcript(open(t, s).Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}}))
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestLimits: headers that say how much is left.
func TestLimits(t *testing.T) {
	h := http.Header{"Content-Type": {"text/event-stream"}}
	h.Set("anthropic-ratelimit-requests-remaining", "7")
	h.Set("anthropic-ratelimit-tokens-remaining", "many")
	h.Set("anthropic-ratelimit-tokens-reset", "2026-11-23T10:00:00Z")
	s := &modeltest.Server{Answers: []modeltest.Answer{{Header: h, Body: "data: {\"type\":\"message_stop\"}\n\n"}}}
	got := modeltest.Transcript(open(t, s).Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}}))
	if want := "limits 7 -1\ndone end_turn \"\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzStream: whatever comes, an answer ends once, with Done or with an error.
func FuzzStream(f *testing.F) {
	f.Add("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"a\"}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\",\"input\":{}}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		s := &modeltest.Server{Answers: []modeltest.Answer{{Body: body}}}
		modeltest.Once(t, open(t, s).Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}}))
	})
}

// TestOnce: what the provider has an unknown word for is not sent again.
func TestOnce(t *testing.T) {
	for word, again := range map[string]bool{"overloaded_error": true, "api_error": true, "": true, "something_new": false, "invalid_request_error": false} {
		if e := (&errorBody{Type: word}).explain(); e.Temporary() != again {
			t.Errorf("%q: %+v", word, e)
		}
	}
}

// TestHour: what is kept in the cache for an hour is counted apart.
func TestHour(t *testing.T) {
	var u usage
	text := `{"input_tokens":1,"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":40,"ephemeral_1h_input_tokens":60}}`
	if err := json.Unmarshal([]byte(text), &u); err != nil {
		t.Fatal(err)
	}
	d := new(decoder)
	d.count(&u)
	if got, want := d.Used(), (model.Usage{Input: 1, CacheWrite: 100, CacheHour: 60, Known: true}); got != want {
		t.Errorf("%+v", got)
	}
}
