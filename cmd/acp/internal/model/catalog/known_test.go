package catalog

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// TestBuiltin: the catalogue can be read, says where it is from, and what it says makes
// sense.
func TestBuiltin(t *testing.T) {
	var c Catalog
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
			if k.ID == "" || k.Context <= 0 || k.Price[0] < 0 || k.Price[0] > 1000 || k.Price[1] > 10_000 {
				t.Errorf("%s: %+v", provider, k)
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
