package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// A source is a provider in the data of charm.land/catwalk.
type source struct {
	ID     string `json:"id"`
	Models []struct {
		ID   string  `json:"id"`
		Name string  `json:"name"`
		In   float64 `json:"cost_per_1m_in"`
		Out  float64 `json:"cost_per_1m_out"`
		// These two are what is put into a cache and what is read from one, or the latter and something else: see cached.
		InCached  float64 `json:"cost_per_1m_in_cached"`
		OutCached float64 `json:"cost_per_1m_out_cached"`

		Context int      `json:"context_window"`
		Output  int      `json:"default_max_tokens"`
		Levels  []string `json:"reasoning_levels"`
		Reasons bool     `json:"can_reason"`
		Images  bool     `json:"supports_attachments"`
	} `json:"models"`
}

// Convert makes a catalogue of the data of charm.land/catwalk, a list of providers, and
// counts its models. Providers that package catalog does not know are left out.
func Convert(data []byte, from string, at time.Time) (made []byte, models int, err error) {
	var all []source
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, 0, fmt.Errorf("this is no list of providers: %w", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"source\":%q,\"licence\":\"MIT, see models.LICENSE\",\"date\":%q,\"providers\":{", from, at.UTC().Format(time.DateOnly))
	first := true
	for _, p := range Providers() {
		i := slices.IndexFunc(all, func(s source) bool { return s.ID == p.Name })
		if i < 0 {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		fmt.Fprintf(&b, "\n%q:[", p.Name)
		var known []Known
		for _, m := range all[i].Models {
			read, write := cached(p.Name, m.ID, m.In, m.InCached, m.OutCached)
			k := Known{
				ID: m.ID, Name: m.Name, Context: m.Context, Output: m.Output, Images: m.Images, Reasons: m.Reasons, Efforts: m.Levels,
				Price: [4]float64{m.In, m.Out, read, write}, Long: tierOf(p.Name, m.ID, m.Context),
			}
			if err := k.check(p.Name); err != nil {
				return nil, 0, err
			}
			known = append(known, k)
		}
		sort.Slice(known, func(i, j int) bool { return known[i].ID < known[j].ID })
		for j, k := range known {
			line, err := json.Marshal(k)
			if err != nil {
				return nil, 0, err
			}
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
			b.Write(line)
			models++
		}
		b.WriteString("\n]")
	}
	b.WriteString("\n}}\n")
	if models == 0 {
		return nil, 0, errors.New("it has no model of a provider that is known")
	}
	return b.Bytes(), models, nil
}

// half is the largest share of the usual price that a token costs that is read from a provider's own cache.
const half = 0.5

// cached returns what it costs to read from a cache, and to put into one; 0 stands for the usual price. In the source the
// first of two numbers is the latter and the second one the former, or the first is the former and the second is nothing,
// the price of what is written, or that of keeping something for an hour. What is cheaper to put there than to read at all
// is the price of reading, or that of keeping.
func cached(provider, id string, in, first, second float64) (read, write float64) {
	switch {
	case second > 0 && (second <= half*in || provider == aggregator && second <= in):
		read = second
	case first > 0 && first <= half*in:
		read = first
	default:
		read = published[provider+"/"+id]
	}
	if first >= in && first <= 2*in {
		write = first
	}
	return read, write
}

// aggregator is the provider whose models are served by many others, each with its own prices.
const aggregator = "openrouter"

// published are prices of what is read from a cache where the source has another price in their place.
var published = map[string]float64{
	"gemini/gemini-3.5-flash": 0.15, // the source has what it costs to keep something
}

// check returns what makes no sense in what is known of a model of a provider, or nil.
func (k *Known) check(provider string) error {
	in, out, read, write := k.Price[0], k.Price[1], k.Price[2], k.Price[3]
	most := half * in
	if provider == aggregator {
		most = in
	}
	switch {
	case k.ID == "" || k.Context <= 0:
		return fmt.Errorf("%s/%s: it has no name or no window", provider, k.ID)
	case in < 0 || in > 1000 || out < 0 || out > 10_000:
		return fmt.Errorf("%s/%s: the prices %v make no sense", provider, k.ID, k.Price)
	case read < 0 || read > most:
		return fmt.Errorf("%s/%s: it costs %v to read from a cache, and %v otherwise", provider, k.ID, read, in)
	case write != 0 && (write < in || write > 2*in || write < read):
		return fmt.Errorf("%s/%s: it costs %v to put something into a cache, and %v to read it", provider, k.ID, write, in)
	case k.Long != nil && (k.Long.Above < 100_000 || k.Long.Above >= k.Context || k.Long.Input < 1 || k.Long.Output < 1):
		return fmt.Errorf("%s/%s: the tier %+v makes no sense", provider, k.ID, *k.Long)
	}
	return nil
}

// tiers are the prices of long requests, by what the names of models are like. The source has none. Each was compared with
// two collections of what the providers publish, as they were in July 2026, which agree on everything both of them have:
// github.com/anomalyco/models.dev (f3fc6922) and github.com/Wei-Shaw/model-price-repo (f9ff1473). They have a price of their
// own for what is read from a cache in a long request, and for what is put into one, which are as many times the usual one
// as that of the rest of what is read. Grok 4 is as openrouter.ai has it, Grok 4.5 and 4.6 are as docs.apiyi.com has them.
var tiers = []struct {
	names string // of the provider and the model: a pattern of package path
	tier  model.Tier
}{
	{"openai/gpt-5.[456]*", model.Tier{Above: 272_000, Input: 2, Output: 1.5}},
	{"gemini/gemini-2.5-pro*", model.Tier{Above: 200_000, Input: 2, Output: 1.5}},
	{"gemini/gemini-3*-pro*", model.Tier{Above: 200_000, Input: 2, Output: 1.5}},
	{"x-ai/grok-4", model.Tier{Above: 128_000, Input: 2, Output: 2}},
	{"x-ai/grok-4.*", model.Tier{Above: 200_000, Input: 2, Output: 2}},
	{"x-ai/grok-build-*", model.Tier{Above: 200_000, Input: 2, Output: 2}},
	{"anthropic/claude-sonnet-4", model.Tier{Above: 200_000, Input: 2, Output: 1.5}},
	{"anthropic/claude-sonnet-4.5*", model.Tier{Above: 200_000, Input: 2, Output: 1.5}},
}

// tierOf returns the price of long requests of a model; nil if there is none, or no request is that long.
func tierOf(provider, id string, context int) *model.Tier {
	name := provider + "/" + id
	if provider == aggregator {
		name = strings.Replace(id, "google/", "gemini/", 1)
	}
	if strings.Contains(name, "-mini") || strings.Contains(name, "-nano") {
		return nil
	}
	for _, t := range tiers {
		if is, _ := path.Match(t.names, name); is && context > t.tier.Above {
			return &t.tier
		}
	}
	return nil
}
