package catalog

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/anthropic"
	"github.com/goacp/acp/cmd/acp/internal/model/modeltest"
	"github.com/goacp/acp/cmd/acp/internal/model/openai"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func models(t *testing.T, s Settings) *Models {
	t.Helper()
	m, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A server answers questions about itself by URL, and all else as a [modeltest.Server].
type server struct {
	modeltest.Server
	get map[string]string

	mu   sync.Mutex
	keys map[string]string // that came with questions, by URL
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return s.Server.RoundTrip(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = map[string]string{}
	}
	s.keys[r.URL.String()] = r.Header.Get("Authorization")
	body, ok := s.get[r.URL.String()]
	if !ok {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// TestOpen: where each provider is asked, and with which key.
func TestOpen(t *testing.T) {
	for _, tc := range []struct {
		ref    string
		env    []string
		url    string
		header string // with the key
		key    string
	}{
		{"anthropic/m", []string{"ANTHROPIC_API_KEY", "k"}, "https://api.anthropic.com/v1/messages", "X-Api-Key", "k"},
		{"anthropic/m", []string{"ANTHROPIC_AUTH_TOKEN", "k", "ANTHROPIC_BASE_URL", "http://lab"}, "http://lab/v1/messages", "Authorization", "Bearer k"},
		{"openai/m", []string{"OPENAI_API_KEY", "k"}, "https://api.openai.com/v1/responses", "Authorization", "Bearer k"},
		{"openai/m", []string{"OPENAI_API_KEY", "k", "OPENAI_BASE_URL", "https://lab/v2"}, "https://lab/v2/responses", "Authorization", "Bearer k"},
		{"gemini/m", []string{"GOOGLE_API_KEY", "k"}, "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", "Authorization", "Bearer k"},
		{"openrouter/a/b:free", []string{"OPENROUTER_API_KEY", "k"}, "https://openrouter.ai/api/v1/chat/completions", "Authorization", "Bearer k"},
		{"deepseek/m", []string{"DEEPSEEK_API_KEY", "k"}, "https://api.deepseek.com/chat/completions", "Authorization", "Bearer k"},
		{"ollama/m", nil, "http://127.0.0.1:11434/api/chat", "Authorization", ""},
		{"ollama/m", []string{"OLLAMA_HOST", "0.0.0.0"}, "http://127.0.0.1:11434/api/chat", "Authorization", ""},
		{"ollama/m", []string{"OLLAMA_HOST", "gpu:99"}, "http://gpu:99/api/chat", "Authorization", ""},
		{"llamacpp/m", nil, "http://127.0.0.1:8080/v1/chat/completions", "Authorization", ""},
		{"lmstudio/m", []string{"OPENAI_API_KEY", "k"}, "http://127.0.0.1:1234/v1/chat/completions", "Authorization", ""},
		{"vllm/m", []string{"VLLM_BASE_URL", "http://gpu:8000/v1"}, "http://gpu:8000/v1/chat/completions", "Authorization", ""},
	} {
		s := &server{Server: modeltest.Server{Answers: []modeltest.Answer{{Status: 400, Body: "{}"}}}}
		m, err := models(t, Settings{Env: env(tc.env...), HTTP: &http.Client{Transport: s}}).Open(tc.ref)
		if err != nil {
			t.Errorf("%s: %v", tc.ref, err)
			continue
		}
		_ = modeltest.Transcript(m.Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}}))
		url, h, body := s.Last()
		_, id, _ := strings.Cut(tc.ref, "/")
		if url != "POST "+tc.url || h.Get(tc.header) != tc.key || !strings.Contains(body, `"model":"`+id+`"`) {
			t.Errorf("%s: %s with %q, %s", tc.ref, url, h.Get(tc.header), body)
		}
		for name, values := range h {
			if name != tc.header && strings.Contains(strings.Join(values, " "), "k") && tc.key != "" && strings.Join(values, "") == "k" {
				t.Errorf("%s: the key is in %s, too", tc.ref, name)
			}
		}
		if i := m.Info(); i.ID != id || i.Provider+"/"+i.ID != tc.ref {
			t.Errorf("%s: %+v", tc.ref, i)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	for ref, want := range map[string]string{
		"":               "a model is named PROVIDER/MODEL",
		"claude":         "a model is named PROVIDER/MODEL",
		"anthropic/":     "a model is named PROVIDER/MODEL",
		"nobody/m":       `there is no provider "nobody"; there are anthropic, openai, `,
		"anthropic/m":    "anthropic wants a key: set ANTHROPIC_API_KEY",
		"script:missing": "missing",
	} {
		if _, err := models(t, Settings{Env: env()}).Open(ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if _, err := models(t, Settings{Env: env("OLLAMA_BASE_URL", "lab")}).Open("ollama/m"); err == nil || !strings.Contains(err.Error(), `the base URL "lab"`) {
		t.Error(err)
	}
}

func TestScript(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(file, []byte("say hi"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := models(t, Settings{}).Open("script:" + file)
	if err != nil || m.Info().Provider != "script" {
		t.Error(err)
	}
}

// TestProviders: each has a dialect that is known, and a name of its own.
func TestProviders(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Providers() {
		if seen[p.Name] {
			t.Errorf("%s is there twice", p.Name)
		}
		seen[p.Name] = true
		if _, ok := openai.Dialects[p.Dialect]; ok != (p.API == Chat || p.API == Ollama) {
			t.Errorf("%s: dialect %q", p.Name, p.Dialect)
		}
	}
}

func TestThinking(t *testing.T) {
	for id, want := range map[string]anthropic.Thinking{
		"claude-3-opus-20240229": anthropic.ThinkNever, "claude-3-7-sonnet-latest": anthropic.ThinkBudget,
		"claude-3-5-haiku-latest": anthropic.ThinkNever, "claude-sonnet-4-20250514": anthropic.ThinkBudget, "claude-sonnet-4-6": anthropic.ThinkAdaptive,
		"claude-opus-4-5-20251101": anthropic.ThinkBudget, "claude-opus-4-6": anthropic.ThinkAdaptive, "claude-opus-5": anthropic.ThinkAdaptive,
		"claude-haiku-4-5": anthropic.ThinkBudget, "claude-haiku-5-5": anthropic.ThinkAdaptive,
	} {
		if got := thinking(Builtin(), id); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}
