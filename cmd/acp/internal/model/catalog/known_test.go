package catalog

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// TestBuiltin: the catalogue can be read, says where it is from, and what it says makes
// sense.
func TestBuiltin(t *testing.T) {
	var c Catalog
	data, err := os.ReadFile("models.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.DateOnly, c.Date); err != nil || c.Source == "" {
		t.Errorf("%q of %q", c.Source, c.Date)
	}
	n := 0
	for provider, all := range c.Providers {
		for _, k := range all {
			n++
			if err := k.check(provider); err != nil {
				t.Error(err)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d models", n)
	}
	if len(data) > 256<<10 {
		t.Errorf("%d bytes", len(data))
	}
}

func TestFind(t *testing.T) {
	c := Builtin()
	for _, id := range []string{"claude-sonnet-4-6", "claude-sonnet-4-6-20260101", "claude-sonnet-4-6-latest"} {
		if k, ok := c.Find("anthropic", id); !ok || k.ID != "claude-sonnet-4-6" {
			t.Errorf("%s: %+v, %t", id, k, ok)
		}
	}
	if _, ok := c.Find("anthropic", "nobody"); ok {
		t.Error("a model that there is not")
	}
	if _, ok := c.Find("nobody", "claude-sonnet-4-6"); ok {
		t.Error("a provider that there is not")
	}
}

// TestDescribe: what is known of a model is in its Info, with a price for everything.
func TestDescribe(t *testing.T) {
	i := model.Info{Provider: "anthropic", ID: "claude-sonnet-4-6", Efforts: []string{"x"}}
	Builtin().describe(&i)
	if i.Context < 200_000 || i.Output == 0 || !i.Images || i.Price.Currency != "USD" || i.Price.Output <= i.Price.Input || i.Price.CacheRead >= i.Price.Input || i.Price.CacheWrite <= i.Price.Input {
		t.Errorf("%+v", i)
	}
	i = model.Info{Provider: "ollama", ID: "m", Efforts: []string{"x"}}
	Builtin().describe(&i)
	if i.Context != 0 || i.Price.Currency != "" || len(i.Efforts) != 1 {
		t.Errorf("%+v", i)
	}
	if cost, ok := i.Price.Of(model.Usage{Input: 1}); ok || cost != 0 {
		t.Error("a price that is not known")
	}
}

// TestPrices: prices of models that were wrong, and of those that are used by default.
func TestPrices(t *testing.T) {
	for _, tt := range []struct {
		provider, model       string
		in, out, read, write  float64
		above                 int
		longInput, longOutput float64
	}{
		{"openai", "gpt-5.5", 5, 30, 0.5, 5, 272_000, 2, 1.5},
		{"openai", "gpt-5.4", 2.5, 15, 0.25, 2.5, 272_000, 2, 1.5},
		{"openai", "gpt-5.4-mini", 0.75, 4.5, 0.075, 0.75, 0, 0, 0},
		{"openai", "gpt-5.2", 1.75, 14, 0.175, 1.75, 0, 0, 0},
		{"openai", "gpt-5.6-sol", 5, 30, 0.5, 6.25, 272_000, 2, 1.5},
		{"deepseek", "deepseek-v4-pro", 0.435, 0.87, 0.003625, 0.435, 0, 0, 0},
		{"deepseek", "deepseek-v4-flash", 0.14, 0.28, 0.0028, 0.14, 0, 0, 0},
		{"gemini", "gemini-3.7-flash", 0.75, 3.75, 0.075, 0.75, 0, 0, 0},
		{"gemini", "gemini-3.5-flash", 1.5, 9, 0.15, 1.5, 0, 0, 0},
		{"gemini", "gemini-3-pro-preview", 2, 12, 0.2, 2, 200_000, 2, 1.5},
		{"gemini", "gemini-2.5-pro", 1.25, 10, 0.125, 1.25, 200_000, 2, 1.5},
		{"anthropic", "claude-sonnet-5", 2, 10, 0.2, 2.5, 0, 0, 0},
		{"openrouter", "google/gemini-3.7-flash", 0.75, 3.75, 0.075, 0.75, 0, 0, 0},
		{"gemini", "gemini-3.1-pro-preview-customtools", 2, 12, 0.2, 2, 200_000, 2, 1.5},
		{"gemini", "gemini-3-flash-preview", 0.5, 3, 0.05, 0.5, 0, 0, 0},
		{"openai", "gpt-5.6-luna", 1, 6, 0.1, 1.25, 272_000, 2, 1.5},
		{"openrouter", "x-ai/grok-4.3", 1.25, 2.5, 0.2, 1.25, 200_000, 2, 2},
		{"openrouter", "x-ai/grok-build-0.1", 1, 2, 0.2, 1, 200_000, 2, 2},
		{"openrouter", "anthropic/claude-sonnet-4", 3, 15, 0.3, 3.75, 200_000, 2, 1.5},
		{"openrouter", "anthropic/claude-sonnet-4.6", 3.3, 16.5, 0.33, 4.125, 0, 0, 0},
		{"openrouter", "anthropic/claude-sonnet-4.5", 3, 15, 0.3, 3.75, 200_000, 2, 1.5},
	} {
		i := model.Info{Provider: tt.provider, ID: tt.model}
		Builtin().describe(&i)
		want := model.Price{Input: tt.in, Output: tt.out, CacheRead: tt.read, CacheWrite: tt.write, Currency: "USD"}
		if tt.above > 0 {
			want.Long = model.Tier{Above: tt.above, Input: tt.longInput, Output: tt.longOutput}
		}
		if i.Price != want {
			t.Errorf("%s/%s: %+v, want %+v", tt.provider, tt.model, i.Price, want)
		}
	}
	for _, p := range Providers() {
		if k, ok := Builtin().Find(p.Name, p.Model); p.Model != "" && (!ok || k.Price[2] <= 0 || k.Price[2] > k.Price[0]/2) {
			t.Errorf("the default model %s of %s has the prices %v", p.Model, p.Name, k.Price)
		}
	}
}

// TestConvertChecks: a catalogue whose prices make no sense is not made.
func TestConvertChecks(t *testing.T) {
	for _, tt := range []struct{ fields, want string }{
		{`"cost_per_1m_in":5,"cost_per_1m_out":30,"cost_per_1m_in_cached":0.5,"cost_per_1m_out_cached":0`, `"price":[5,30,0.5,0]`},
		{`"cost_per_1m_in":2,"cost_per_1m_out":10,"cost_per_1m_in_cached":2.5,"cost_per_1m_out_cached":0.2`, `"price":[2,10,0.2,2.5]`},
		{`"cost_per_1m_in":0.75,"cost_per_1m_out":3.75,"cost_per_1m_in_cached":0.075,"cost_per_1m_out_cached":3.75`, `"price":[0.75,3.75,0.075,0]`},
		{`"cost_per_1m_in":-1,"cost_per_1m_out":30`, "make no sense"},
		{`"cost_per_1m_in":5000,"cost_per_1m_out":30`, "make no sense"},
		{`"cost_per_1m_in":5,"cost_per_1m_out":30,"context_window":0`, "no window"},
	} {
		data := `[{"id":"openai","models":[{"id":"m","context_window":1000,` + tt.fields + `}]}]`
		got, _, err := Convert([]byte(data), "test", time.Now())
		if err != nil {
			got = []byte(err.Error())
		}
		if !strings.Contains(string(got), tt.want) {
			t.Errorf("%s: %s", tt.fields, got)
		}
	}
	for _, k := range []Known{
		{ID: "m", Context: 1000, Price: [4]float64{5, 30, 4, 0}}, {ID: "m", Context: 1000, Price: [4]float64{5, 30, 0.5, 0.4}},
		{ID: "m", Context: 1000, Price: [4]float64{5, 30, 0.5, 30}}, {ID: "m", Context: 1000, Price: [4]float64{5, 30, -1, 0}},
		{ID: "m", Context: 1000, Price: [4]float64{5, 30, 0.5, 0}, Long: &model.Tier{Above: 200_000, Input: 2, Output: 1.5}},
	} {
		if k.check("openai") == nil {
			t.Errorf("%+v makes sense", k)
		}
	}
}

// TestMend: prices of a file that an earlier program has made are corrected.
func TestMend(t *testing.T) {
	file := filepath.Join(t.TempDir(), "models.json")
	old := `{"source":"s","date":"2026-11-01","providers":{"openai":[
		{"id":"gpt-5.5","context":1050000,"price":[5,30,0,0.5]},{"id":"odd","context":1000,"price":[5000,30,0,0]}],
		"anthropic":[{"id":"m","context":1000,"price":[2,10,0.2,2.5]}]}}`
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Builtin().With(file)
	for name, want := range map[string][4]float64{"openai/gpt-5.5": {5, 30, 0.5, 0}, "openai/odd": {}, "anthropic/m": {2, 10, 0.2, 2.5}} {
		provider, id, _ := strings.Cut(name, "/")
		if k, ok := c.Find(provider, id); !ok || k.Price != want {
			t.Errorf("%s: %v", name, k.Price)
		}
	}
	if k, _ := c.Find("openai", "gpt-5.5"); k.Long == nil {
		t.Error("no price of long requests")
	}
}

// TestPacked: what the program has is models.json, which people read.
func TestPacked(t *testing.T) {
	want, err := os.ReadFile("models.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != string(want) {
		t.Errorf("models.json.gz has %d bytes of %d, %v: run go generate in cmd/acp/internal/model/catalog", len(got), len(want), err)
	}
}
