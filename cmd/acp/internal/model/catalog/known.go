package catalog

import (
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

//go:generate go run ./generate

// packed is models.json, what is known of models: see generate. Its licence is in models.LICENSE.
//
//go:embed models.json.gz
var packed string

// A Known is what is known of a model.
type Known struct {
	ID      string   `json:"id"`
	Name    string   `json:"name,omitempty"`
	Context int      `json:"context,omitempty"`
	Output  int      `json:"output,omitempty"`
	Images  bool     `json:"images,omitempty"`
	Reasons bool     `json:"reasons,omitempty"`
	Efforts []string `json:"efforts,omitempty"`
	// Price is what a million tokens cost: read, written, read from a cache, put into one. The last two are 0 where they cost
	// what is read otherwise.
	Price [4]float64  `json:"price"`
	Long  *model.Tier `json:"long,omitempty"` // of long requests; nil if they cost the same
}

// A Catalog is what is known of all models, as of a date.
type Catalog struct {
	Source    string             `json:"source"`
	Date      string             `json:"date"`
	Providers map[string][]Known `json:"providers"`
}

// Builtin returns the catalogue of the program. It is read once, when it is first wanted.
var Builtin = sync.OnceValue(func() *Catalog {
	c := new(Catalog)
	// A test holds that it can be read.
	if r, err := gzip.NewReader(strings.NewReader(packed)); err == nil {
		_ = json.NewDecoder(r).Decode(c)
	}
	return c
})

// With returns a catalogue in which what a file says counts more. A file that cannot be
// read changes nothing.
func (c *Catalog) With(file string) *Catalog {
	if file == "" {
		return c
	}
	data, err := os.ReadFile(file)
	var more Catalog
	if err != nil || json.Unmarshal(data, &more) != nil {
		return c
	}
	both := &Catalog{Source: more.Source, Date: more.Date, Providers: maps.Clone(c.Providers)}
	for name, models := range more.Providers {
		all := slices.Clone(models)
		for i := range all {
			all[i].mend(name)
		}
		for _, k := range c.Providers[name] {
			if !slices.ContainsFunc(models, func(n Known) bool { return n.ID == k.ID }) {
				all = append(all, k)
			}
		}
		sort.Slice(all, func(i, j int) bool { return all[i].ID < all[j].ID })
		both.Providers[name] = all
	}
	return both
}

// mend corrects the prices of a file that an earlier program has made of the source, which had some in the wrong places. Prices
// that make no sense are not known then.
func (k *Known) mend(provider string) {
	k.Price[2], k.Price[3] = cached(provider, k.ID, k.Price[0], k.Price[3], k.Price[2])
	if k.Long == nil {
		k.Long = tierOf(provider, k.ID, k.Context)
	}
	if k.check(provider) != nil {
		k.Price, k.Long = [4]float64{}, nil
	}
}

// dated is a name with the date of a version at its end.
var dated = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-(20\d{2}-?\d{2}-?\d{2}|latest)$`) })

// Find returns what is known of a model. Versions with a date count as the model without
// one, if only that is known.
func (c *Catalog) Find(provider, id string) (Known, bool) {
	all := c.Providers[provider]
	for _, name := range []string{id, dated().ReplaceAllString(id, "")} {
		if i := slices.IndexFunc(all, func(k Known) bool { return k.ID == name }); i >= 0 {
			return all[i], true
		}
	}
	return Known{}, false
}

// describe completes what is said of a model by what is known of it.
func (c *Catalog) describe(i *model.Info) {
	k, ok := c.Find(i.Provider, i.ID)
	if !ok {
		return
	}
	i.Context, i.Output, i.Images = k.Context, k.Output, k.Images
	if k.Name != "" {
		i.Name = k.Name
	}
	switch {
	case !k.Reasons:
		i.Efforts = nil
	case len(k.Efforts) > 0:
		i.Efforts = k.Efforts
	}
	if k.Price != [4]float64{} {
		i.Price = model.Price{Input: k.Price[0], Output: k.Price[1], CacheRead: k.Price[2], CacheWrite: k.Price[3], Currency: "USD"}
		if k.Long != nil {
			i.Price.Long = *k.Long
		}
	}
	// What a provider has no price of its own for is read, or put into the cache, at the
	// usual one.
	if i.Price.CacheRead == 0 {
		i.Price.CacheRead = i.Price.Input
	}
	if i.Price.CacheWrite == 0 {
		i.Price.CacheWrite = i.Price.Input
	}
}
