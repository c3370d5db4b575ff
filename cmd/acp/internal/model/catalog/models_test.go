package catalog

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/modeltest"
	"github.com/goacp/acp/internal/standin"
)

func refs(all []model.Choice) []string {
	var refs []string
	for _, c := range all {
		refs = append(refs, c.Ref)
	}
	return refs
}

// TestList: what is there without settings: keys in the environment first, in the order of
// the providers, then servers on this machine, which are asked only if that is wanted.
func TestList(t *testing.T) {
	s := &server{get: map[string]string{
		"http://127.0.0.1:11434/v1/models": `{"object":"list","data":[{"id":"qwen3:8b"},{"id":"nomic-embed-text"}]}`,
		"http://127.0.0.1:8000/v1/models":  `{"data":[{"id":"meta/llama","max_model_len":9000}]}`,
		"http://127.0.0.1:1234/v1/models":  `<html>`,
	}}
	client := &http.Client{Transport: s}
	m := models(t, Settings{Env: env(), HTTP: client})
	if got := m.List(t.Context(), false); len(got) > 0 || len(s.keys) > 0 {
		t.Errorf("%v, asked %v", got, s.keys)
	}
	if diff := cmp.Diff([]string{"ollama/qwen3:8b", "vllm/meta/llama"}, refs(m.List(t.Context(), true))); diff != "" {
		t.Error(diff)
	}
	if len(s.keys) != 4 {
		t.Errorf("asked %v", s.keys)
	}
	m = models(t, Settings{Env: env("DEEPSEEK_API_KEY", "k", "ANTHROPIC_API_KEY", "k"), HTTP: client})
	got := m.List(t.Context(), true)
	if len(got) < 10 || got[0].Ref != "anthropic/claude-sonnet-5" || got[0].Name == got[0].Ref || !strings.Contains(got[0].About, "tokens") || got[len(got)-1].Ref != "vllm/meta/llama" {
		t.Errorf("%v", got)
	}
	m = models(t, Settings{Use: "gemini/x", Env: env("ANTHROPIC_API_KEY", "k")})
	if got := refs(m.List(t.Context(), false)); got[0] != "gemini/x" || got[1] != "anthropic/claude-sonnet-5" {
		t.Errorf("%v", got)
	}
	if got := models(t, Settings{Use: None, Env: env("ANTHROPIC_API_KEY", "k")}).List(t.Context(), true); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// TestDefaults: the model that is used by default is known.
func TestDefaults(t *testing.T) {
	for _, p := range Providers() {
		if p.Model == "" {
			continue
		}
		if _, ok := Builtin().Find(p.Name, p.Model); !ok {
			t.Errorf("%s/%s is not known", p.Name, p.Model)
		}
	}
}

// TestWindow: servers are asked how large the window is, in their own ways.
func TestWindow(t *testing.T) {
	for _, tc := range []struct {
		ref, url, body string
		want           int
	}{
		{"ollama/qwen3", "http://127.0.0.1:11434/api/ps", `{"models":[{"name":"x:latest","context_length":1},{"name":"qwen3:latest","model":"qwen3:latest","context_length":4096}]}`, 4096},
		{"ollama/qwen3", "http://127.0.0.1:11434/api/ps", `{"models":[]}`, 32768},
		{"llamacpp/m", "http://127.0.0.1:8080/props", `{"default_generation_settings":{"n_ctx":8192},"total_slots":1}`, 8192},
		{"lmstudio/m", "http://127.0.0.1:1234/api/v0/models", `{"data":[{"id":"m","state":"loaded","max_context_length":131072,"loaded_context_length":4096}]}`, 4096},
		{"vllm/a/m", "http://127.0.0.1:8000/v1/models", `{"data":[{"id":"a/m","max_model_len":32000}]}`, 32000},
		{"vllm/m", "http://127.0.0.1:8000/v1/models", `oops`, 0},
	} {
		s := &server{get: map[string]string{tc.url: tc.body}, Server: modeltest.Server{Answers: []modeltest.Answer{{Status: 400, Body: "{}"}}}}
		m, err := models(t, Settings{Env: env(), HTTP: &http.Client{Transport: s}}).Open(tc.ref)
		if err != nil {
			t.Fatal(err)
		}
		_ = modeltest.Transcript(m.Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}}))
		if i := m.Info(); i.Context != tc.want || !i.Local || i.Verified != (tc.want > 0 && tc.want != 32768) {
			t.Errorf("%s: %+v", tc.ref, i)
		}
	}
}

// TestOwn: providers of the user's own, with their keys from wherever they are.
func TestOwn(t *testing.T) {
	s := &server{Server: modeltest.Server{Answers: []modeltest.Answer{{Status: 400, Body: "{}"}}}}
	m := models(t, Settings{
		Env: env("LAB_KEY", "lab-key-1", "OPENAI_API_KEY", "not-for-others"), HTTP: &http.Client{Transport: s},
		Own: map[string]Own{
			"lab":       {API: Chat, URL: "http://lab/v1", Key: "${LAB_KEY}", Models: []string{"big", "small"}, Context: 64000, Dialect: "vllm"},
			"pass":      {API: Messages, URL: "http://pass", KeyCommand: []string{"echo", "lab-key-2"}, Models: []string{"m"}},
			"openai":    {URL: "http://proxy/v1"},
			"anthropic": {Key: "own"},
		},
	})
	if got := refs(m.List(t.Context(), false)); got[0] != "anthropic/claude-sonnet-5" || !strings.Contains(strings.Join(got, " "), "lab/big lab/small pass/m") {
		t.Errorf("%v", got)
	}
	for _, tc := range []struct{ ref, url, name, key string }{
		{"lab/big", "http://lab/v1/chat/completions", "Authorization", "Bearer lab-key-1"},
		{"pass/m", "http://pass/v1/messages", "X-Api-Key", "lab-key-2"},
		{"openai/m", "http://proxy/v1/responses", "Authorization", ""},
		{"anthropic/m", "https://api.anthropic.com/v1/messages", "X-Api-Key", "own"},
	} {
		opened, err := m.Open(tc.ref)
		if err != nil {
			t.Errorf("%s: %v", tc.ref, err)
			continue
		}
		_ = modeltest.Transcript(opened.Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}}))
		if url, h, _ := s.Last(); url != "POST "+tc.url || h.Get(tc.name) != tc.key {
			t.Errorf("%s: %s with %v", tc.ref, url, h)
		}
		if again, err := m.Open(tc.ref); err != nil || again != opened {
			t.Errorf("%s is another model the second time", tc.ref)
		}
	}
	if big, err := m.Open("lab/big"); err != nil || big.Info().Context != 64000 || !big.Info().Verified {
		t.Errorf("%+v, %v", big.Info(), err)
	}
}

// TestKeyCommand: a command that prints no key is an error that says so.
func TestKeyCommand(t *testing.T) {
	for _, tc := range []struct {
		command []string
		want    string
	}{
		{[]string{"true"}, "it prints nothing"},
		{[]string{"sh", "-c", "echo locked >&2; exit 3"}, "exit status 3 locked"},
		{[]string{filepath.Join(t.TempDir(), "missing")}, "no such file"},
	} {
		m := models(t, Settings{Env: env(), Own: map[string]Own{"lab": {API: Responses, URL: "http://lab", KeyCommand: tc.command}}})
		opened, err := m.Open("lab/m")
		if err != nil {
			t.Fatal(err)
		}
		got := modeltest.Transcript(opened.Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}}))
		if !strings.Contains(got, tc.want) || !strings.Contains(got, "(auth)") {
			t.Errorf("%v: %s", tc.command, got)
		}
	}
}

func TestOwnErrors(t *testing.T) {
	for want, own := range map[string]Own{
		"wants api and url":    {API: Chat},
		"more than one of key": {API: Chat, URL: "http://lab", Key: "a", Keyring: "b/c"},
		"not SERVICE/USER":     {API: Chat, URL: "http://lab", Keyring: "b"},
		`dialect "x"`:          {API: Chat, URL: "http://lab", Dialect: "x"},
	} {
		if _, err := New(Settings{Own: map[string]Own{"lab": own}}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "providers.lab: ") {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, err := New(Settings{Own: map[string]Own{"a/b": {API: Chat, URL: "http://lab"}}}); err == nil {
		t.Error("a name with a slash")
	}
}

// TestExamine: what there is of each provider. Keys are not sent.
func TestExamine(t *testing.T) {
	s := &server{get: map[string]string{"http://127.0.0.1:8080/v1/models": `{"data":[{"id":"m"}]}`}}
	all := models(t, Settings{Env: env("OPENAI_API_KEY", "k"), HTTP: &http.Client{Transport: s}}).Examine(t.Context())
	for _, st := range all {
		switch st.Provider {
		case "anthropic":
			if st.Needs != "ANTHROPIC_API_KEY" || st.Key != "" {
				t.Errorf("%+v", st)
			}
		case "openai":
			if st.Key != "OPENAI_API_KEY" || len(st.Models) == 0 {
				t.Errorf("%+v", st)
			}
		case "llamacpp":
			if st.Err != nil || len(st.Models) != 1 || !st.Local {
				t.Errorf("%+v", st)
			}
		case "ollama":
			if st.Err == nil {
				t.Errorf("%+v", st)
			}
		}
	}
	for url, key := range s.keys {
		if key != "" {
			t.Errorf("%s got %q", url, key)
		}
	}
}

// TestWith: a file says more, or newer things, than the program knows.
func TestWith(t *testing.T) {
	file := filepath.Join(t.TempDir(), "models.json")
	text := `{"source":"me","date":"2030-01-01","providers":{"openai":[{"id":"gpt-5.5","context":1},{"id":"gpt-9","context":9000000}],"lab":[{"id":"m","context":5}]}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Builtin().With(file)
	for ref, want := range map[string]int{"openai/gpt-5.5": 1, "openai/gpt-9": 9000000, "lab/m": 5} {
		p, id, _ := strings.Cut(ref, "/")
		if k, ok := c.Find(p, id); !ok || k.Context != want {
			t.Errorf("%s: %+v", ref, k)
		}
	}
	if k, ok := c.Find("openai", "gpt-5"); !ok || k.Context == 0 {
		t.Error("what the program knows is gone")
	}
	if k, _ := Builtin().Find("openai", "gpt-5.5"); k.Context == 1 {
		t.Error("the program's own catalogue was changed")
	}
	if Builtin().With(filepath.Join(t.TempDir(), "none")) != Builtin() {
		t.Error("a file that does not exist")
	}
}

// TestCassette: a conversation is recorded, and had again without a key.
func TestCassette(t *testing.T) {
	service := standin.New(standin.Options{Strict: true, Script: func(r *standin.Request) standin.Step {
		return standin.Step{Thought: "hm", Text: []string{"Hello, ", "you."}, Calls: []standin.Call{{Name: "read", Args: map[string]any{"path": "a"}}}}
	}})
	defer service.Close()
	file := filepath.Join(t.TempDir(), "cassette")
	r := &model.Request{Prefix: &model.Prefix{System: "s"}, Messages: []*model.Message{{Role: model.User, Parts: []model.Part{&model.Text{Text: "hi"}}}}}
	live, err := models(t, Settings{Env: env("ANTHROPIC_API_KEY", "key-of-mine", "ANTHROPIC_BASE_URL", service.URL), Record: file}).Open("anthropic/claude-sonnet-5")
	if err != nil {
		t.Fatal(err)
	}
	want := modeltest.Transcript(live.Generate(t.Context(), r))
	again, err := models(t, Settings{Env: env()}).Open("cassette:" + file)
	if err != nil {
		t.Fatal(err)
	}
	if i := again.Info(); i.ID != "claude-sonnet-5" || i.Context == 0 {
		t.Errorf("%+v", i)
	}
	if diff := cmp.Diff(want, modeltest.Transcript(again.Generate(t.Context(), r))); diff != "" || !strings.Contains(want, `text "Hello, "`) {
		t.Errorf("(-live +played)\n%s", diff)
	}
	if data, err := os.ReadFile(file); err != nil || strings.Contains(string(data), "key-of-mine") {
		t.Errorf("%s, %v", data, err)
	}
	if _, err := models(t, Settings{Env: env()}).Open("cassette:" + file + "x"); err == nil {
		t.Error("a cassette that there is not")
	}
}

// TestTexts: models that were trained on patches get them, and as a text where their
// interface has that and they came after it.
func TestTexts(t *testing.T) {
	m := models(t, Settings{Env: env("OPENAI_API_KEY", "k", "ANTHROPIC_API_KEY", "k", "OPENROUTER_API_KEY", "k")})
	for ref, want := range map[string]model.Info{
		"openai/gpt-5.5":            {Edit: model.EditPatch, Texts: true},
		"openai/gpt-4.1":            {Edit: model.EditPatch},
		"openai/gpt-4o":             {},
		"openai/o3":                 {Edit: model.EditPatch},
		"openai/o4-mini":            {Edit: model.EditPatch},
		"openai/codex-mini":         {Edit: model.EditPatch, Texts: true},
		"openai/o4":                 {},
		"openai/gpt-401":            {},
		"openai/my-gpt-5":           {},
		"openrouter/openai/gpt-5.5": {Edit: model.EditPatch},
		"anthropic/claude-sonnet-5": {},
	} {
		got, err := m.Open(ref)
		if err != nil {
			t.Fatal(err)
		}
		if i := got.Info(); i.Edit != want.Edit || i.Texts != want.Texts {
			t.Errorf("%s: %q, %t", ref, i.Edit, i.Texts)
		}
	}
}

// TestKeyDollar: a dollar sign in a key belongs to the key, unless it is that of ${NAME}, or the key is $NAME.
func TestKeyDollar(t *testing.T) {
	for key, want := range map[string]string{"sk-a$b": "sk-a$b", "$X": "value", "$X$": "$X$", "${X}": "value", "a${X}$$b${": "avalue$$b${", "${1}": "${1}", "${NONE}": ""} {
		m := &Models{s: Settings{Env: env("X", "value", "b", "no")}}
		if got, _, _ := m.key(&Provider{own: &Own{Key: key}}); got != want {
			t.Errorf("%s: %q", key, got)
		}
	}
}
