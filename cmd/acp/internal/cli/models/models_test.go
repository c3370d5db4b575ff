package models

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// try runs the command with a server that imitates Ollama.
func try(t *testing.T, o Options, handler http.HandlerFunc) (string, error) {
	t.Helper()
	s := httptest.NewServer(handler)
	defer s.Close()
	home := t.TempDir()
	var out bytes.Buffer
	o.App = &app.App{Out: &out, Err: &out, Cwd: home, Environ: []string{
		"HOME=" + home, "XDG_DATA_HOME=" + home, "OLLAMA_HOST=" + s.URL,
		"LLAMACPP_BASE_URL=http://127.0.0.1:1", "LMSTUDIO_BASE_URL=http://127.0.0.1:1", "VLLM_BASE_URL=http://127.0.0.1:1",
	}}
	err := o.run(t.Context())
	return out.String(), err
}

func ollama(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/models":
		_, _ = w.Write([]byte(`{"data":[{"id":"qwen3:8b"}]}`))
	case "/api/ps":
		_, _ = w.Write([]byte(`{"models":[{"name":"qwen3:8b","context_length":4096}]}`))
	case "/api/chat":
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = w.Write([]byte(`{"message":{"content":"ready"}}` + "\n" + `{"done":true,"done_reason":"stop","prompt_eval_count":30,"eval_count":2}` + "\n"))
	default:
		http.NotFound(w, r)
	}
}

func has(t *testing.T, got string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}

// TestTest: a server on this machine is found and tried, and its window is small.
func TestTest(t *testing.T) {
	got, err := try(t, Options{Verb: verbTest}, ollama)
	if err != nil {
		t.Error(err)
	}
	has(t, got, "ollama/qwen3:8b: asking", `✓ it says "ready" after `, "tokens: 30 read, 2 written\n", "window: 4096 tokens, as the server says", "! that is little")
	got, err = try(t, Options{Verb: verbTest, Ref: "ollama/x"}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	})
	if exitcode.Of(err) != exitcode.Auth {
		t.Errorf("%s, %v", got, err)
	}
	got, err = try(t, Options{Verb: verbTest, Ref: "ollama/x"}, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<html>\x1b[31m"))
	})
	if exitcode.Of(err) != exitcode.Protocol || strings.ContainsRune(err.Error(), 0x1b) {
		t.Errorf("%s, %v", got, err)
	}
}

// TestFound: what the list and the explanation say of such a server.
func TestFound(t *testing.T) {
	got, err := try(t, Options{Verb: verbList}, ollama)
	if err != nil {
		t.Error(err)
	}
	has(t, got, "ollama/qwen3:8b *", "(your own server)")
	got, err = try(t, Options{Verb: verbDoctor}, ollama)
	if err != nil {
		t.Error(err)
	}
	has(t, got, "✓ ollama      it runs at http://127.0.0.1", "qwen3:8b", "The built-in agent uses ollama/qwen3:8b")
	got, err = try(t, Options{Verb: verbDoctor, JSON: true}, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"data":[]}`))
	})
	if err != nil {
		t.Error(err)
	}
	has(t, got, `"provider":"ollama"`, `"ok":false`, `"error":"`)
}

// TestUpdate: a catalogue comes from a URL.
func TestUpdate(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/list" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`[{"id":"openai","models":[{"id":"gpt-9","context_window":5}]},{"id":"nobody","models":[]}]`))
	}))
	defer s.Close()
	got, err := try(t, Options{Verb: verbUpdate, Source: s.URL + "/list"}, ollama)
	if err != nil {
		t.Error(err)
	}
	has(t, got, "1 models are in ")
	if _, err := try(t, Options{Verb: verbUpdate, Source: s.URL + "/none"}, ollama); err == nil || !strings.Contains(err.Error(), "status 404") {
		t.Error(err)
	}
}
