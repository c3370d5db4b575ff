package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

const (
	// probePatience is how long a server on this machine may take to say which models it
	// has: one that does not run refuses at once.
	probePatience = 250 * time.Millisecond
	// windowPatience is how long one may take to say how large a window is.
	windowPatience = 2 * time.Second
	// maxProbe bounds what is read of such an answer, in bytes.
	maxProbe = 1 << 20
	// maxListed bounds the models of a provider that are listed.
	maxListed = 12
)

// Generate asks for the key first.
func (k *keyed) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		k.mu.Lock()
		made := k.made
		var err error
		if made == nil {
			if made, err = k.make(ctx); err == nil {
				k.made = made
			}
		}
		k.mu.Unlock()
		if err != nil {
			yield(nil, err)
			return
		}
		made.Generate(ctx, r)(yield)
	}
}

// A local model is one of a server of the user's own, which is asked how large the window
// is. Some know only once the model is loaded, so they are asked after the first answer,
// too.
type local struct {
	model.Model
	window func(context.Context) int // 0 if the server does not say

	mu   sync.Mutex
	size int
}

// Info says how large the window is, as soon as the server has said that.
func (l *local) Info() model.Info {
	info := l.Model.Info()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 {
		info.Context, info.Verified = l.size, true
	}
	return info
}

// Generate implements [model.Model].
func (l *local) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		l.verify(ctx)
		for e, err := range l.Model.Generate(ctx, r) {
			if _, ok := e.(*model.Done); ok {
				l.verify(ctx)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (l *local) verify(ctx context.Context) {
	l.mu.Lock()
	known := l.size > 0
	l.mu.Unlock()
	if known {
		return
	}
	size := l.window(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.size = size
}

// get reads a JSON answer of a server.
func (m *Models) get(ctx context.Context, p *Provider, url string, patience time.Duration, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if key, _, _ := m.key(p); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	client := http.Client{}
	if m.s.HTTP != nil {
		client = *m.s.HTTP
	}
	// A key is sent to no other host.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxProbe)).Decode(into)
}

// root returns the address of a server without the part that belongs to an interface.
func root(base string) string {
	return strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")
}

// served returns the models that a server says it has, without those that cannot talk.
func (m *Models) served(ctx context.Context, p *Provider, patience time.Duration) ([]string, error) {
	base := m.base(p)
	if p.API == Ollama {
		base = root(base) + "/v1"
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := m.get(ctx, p, strings.TrimSuffix(base, "/")+"/models", patience, &list); err != nil {
		return nil, err
	}
	var ids []string
	for _, d := range list.Data {
		if d.ID != "" && !strings.Contains(strings.ToLower(d.ID), "embed") {
			ids = append(ids, d.ID)
		}
	}
	return ids, nil
}

// window asks a server how large the window of a model is; 0 if it does not say.
func (m *Models) window(ctx context.Context, p *Provider, id string) int {
	base := m.base(p)
	type entry struct {
		ID     string `json:"id"`
		Name   string `json:"name"`
		Model  string `json:"model"`
		Length int    `json:"context_length"`
		Max    int    `json:"max_model_len"`
		Loaded int    `json:"loaded_context_length"`
	}
	var list struct {
		Data     []entry `json:"data"`
		Models   []entry `json:"models"`
		Settings struct {
			Ctx int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	url := strings.TrimSuffix(base, "/") + "/models"
	switch p.Dialect {
	case "ollama":
		url = root(base) + "/api/ps"
	case "llamacpp":
		url = root(base) + "/props"
	case "lmstudio":
		url = root(base) + "/api/v0/models"
	}
	if err := m.get(ctx, p, url, windowPatience, &list); err != nil {
		return 0
	}
	if list.Settings.Ctx > 0 {
		return list.Settings.Ctx
	}
	for _, e := range append(list.Data, list.Models...) {
		name := cmp.Or(e.ID, e.Model, e.Name)
		if name == id || name == id+":latest" {
			return max(cmp.Or(e.Loaded, e.Max, e.Length), 0)
		}
	}
	return 0
}

// List returns the models that can be chosen: that of the settings, then those of
// providers for which there is a key. With look, those of servers on this machine follow.
func (m *Models) List(ctx context.Context, look bool) []model.Choice {
	if m.s.Use == None {
		return nil
	}
	var all []model.Choice
	add := func(ref string) {
		if !slices.ContainsFunc(all, func(c model.Choice) bool { return c.Ref == ref }) {
			all = append(all, m.choice(ref))
		}
	}
	if m.s.Use != "" {
		add(m.s.Use)
	}
	for i := range m.providers {
		p := &m.providers[i]
		if !m.ready(p) {
			continue
		}
		for _, id := range m.ids(p) {
			add(p.Name + "/" + id)
		}
	}
	if look {
		m.look(ctx)
	}
	m.mu.Lock()
	found := m.found
	m.mu.Unlock()
	for _, c := range found {
		add(c.Ref)
	}
	return all
}

// ids returns the models of a provider that are worth listing, the default first.
func (m *Models) ids(p *Provider) []string {
	var ids []string
	if p.own != nil {
		ids = append(ids, p.own.Models...)
	}
	if p.Model != "" && !slices.Contains(ids, p.Model) {
		ids = append(ids, p.Model)
	}
	known := m.known().Providers[p.Name]
	if len(known) > 100 {
		return ids // all the models of the world: whoever wants one names it
	}
	for _, k := range slices.Backward(known) { // the newest, by their names
		if len(ids) == maxListed {
			break
		}
		if !slices.Contains(ids, k.ID) {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// choice describes a model for a list.
func (m *Models) choice(ref string) model.Choice {
	c := model.Choice{Ref: ref, Name: ref}
	if kind, file, ok := strings.Cut(ref, ":"); ok && (kind == "script" || kind == "cassette") {
		c.Name, c.About = kind+" "+filepath.Base(file), "no model; what it says is in the file"
		return c
	}
	p, id, err := m.find(ref)
	if err != nil {
		return c
	}
	info := m.info(p, id)
	if info.Name != id {
		c.Name = info.Name
	}
	var about []string
	if info.Context > 0 {
		about = append(about, fmt.Sprintf("%dk tokens", info.Context/1000))
	}
	if info.Price.Currency != "" {
		about = append(about, fmt.Sprintf("%g/%g %s per million", info.Price.Input, info.Price.Output, info.Price.Currency))
	}
	if p.Local {
		about = append(about, "on this machine")
	}
	c.About = strings.Join(about, ", ")
	return c
}

// look asks the servers of the user's own which models they have, all at once.
func (m *Models) look(ctx context.Context) {
	lists := make([][]string, len(m.providers))
	var wg sync.WaitGroup
	for i := range m.providers {
		if p := &m.providers[i]; p.Local {
			wg.Go(func() {
				ids, err := m.served(ctx, p, probePatience)
				if err == nil {
					lists[i] = ids[:min(len(ids), maxListed)]
				}
			})
		}
	}
	wg.Wait()
	var found []model.Choice
	for i, ids := range lists {
		for _, id := range ids {
			found = append(found, m.choice(m.providers[i].Name+"/"+id))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found = found
}

// A Status says what there is of a provider.
type Status struct {
	Provider string   `json:"provider"`
	URL      string   `json:"url"`
	Key      string   `json:"key"`             // where it is from; "" if there is none
	Needs    string   `json:"needs,omitempty"` // the variable that is missing
	Local    bool     `json:"local,omitempty"`
	Models   []string `json:"models,omitempty"` // that it says it has, or that are known
	Err      error    `json:"-"`                // why it does not answer
}

// examinePatience is how long a provider may take to say which models it has.
const examinePatience = 5 * time.Second

// Examine asks each provider of the user's own, and says of the others whether there is a
// key for them. No key is sent anywhere.
func (m *Models) Examine(ctx context.Context) []Status {
	all := make([]Status, len(m.providers))
	var wg sync.WaitGroup
	for i := range m.providers {
		p := &m.providers[i]
		_, from, _ := m.key(p)
		all[i] = Status{Provider: p.Name, URL: cmp.Or(m.base(p), "its own"), Key: from, Local: p.Local}
		switch {
		case p.Local:
			wg.Go(func() { all[i].Models, all[i].Err = m.served(ctx, p, examinePatience) })
		case from == "" && len(p.Keys) > 0:
			all[i].Needs = p.Keys[0]
		default:
			all[i].Models = m.ids(p)
		}
	}
	wg.Wait()
	return all
}
