package catalog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/anthropic"
	"github.com/goacp/acp/cmd/acp/internal/model/cassette"
	"github.com/goacp/acp/cmd/acp/internal/model/ollama"
	"github.com/goacp/acp/cmd/acp/internal/model/openai"
	"github.com/goacp/acp/cmd/acp/internal/model/script"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// None is the reference that stands for no model.
const None = "none"

// Settings are what the user wants.
type Settings struct {
	Use    string // a reference, None, or "" for the first model that is found
	Effort string
	Own    map[string]Own // by the name of the provider
	// Record is a file to which all answers of providers are appended, as a cassette; "" is
	// no file.
	Record string
	// Catalog is a file that says more, or newer things, of models than the program knows. It
	// need not exist; "" means that there is no such file.
	Catalog string
	// Env looks a variable of the environment up.
	Env  func(name string) string
	HTTP *http.Client // nil is the usual one
}

// An Own provider is one that the user has set up, or how one that is known is to be
// used.
type Own struct {
	API API
	URL string
	// Key may name variables as ${NAME}. At most one of the three is set.
	Key        string
	KeyCommand []string // prints the key
	Keyring    string   // SERVICE/USER
	Dialect    string
	Context    int // tokens; 0 is what is known
	Models     []string
	Header     http.Header // sent as well
	Disabled   bool
}

// Models are the models that can be used. Its methods may be called from any goroutine.
type Models struct {
	s         Settings
	providers []Provider
	known     func() *Catalog
	tape      *cassette.Recorder // nil if nothing is recorded

	mu     sync.Mutex
	opened map[string]model.Model // by reference
	found  []model.Choice         // on servers of the user's own, the last time that was asked
}

// maxOpened bounds the models that are kept open.
const maxOpened = 256

// New returns the models. Nothing is sent or read. It fails if a setting makes no sense.
func New(s Settings) (*Models, error) {
	m := &Models{s: s, providers: Providers(), opened: map[string]model.Model{}}
	names := make([]string, 0, len(s.Own))
	for name := range s.Own {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := m.own(name, s.Own[name]); err != nil {
			return nil, fmt.Errorf("providers.%s: %w", name, err)
		}
	}
	if s.Record != "" {
		m.tape = cassette.Record(s.Record)
	}
	m.known = sync.OnceValue(func() *Catalog { return Builtin().With(s.Catalog) })
	return m, nil
}

// own adds a provider of the user's own, or changes one that is known.
func (m *Models) own(name string, o Own) error {
	if strings.ContainsAny(name, "/: \t") {
		return errors.New("the name has a character that references use")
	}
	if _, ok := openai.Dialects[o.Dialect]; o.Dialect != "" && !ok {
		return fmt.Errorf("the dialect %q is not known", o.Dialect)
	}
	ways := 0
	for _, set := range []bool{o.Key != "", len(o.KeyCommand) > 0, o.Keyring != ""} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		return errors.New("there is more than one of key, key_command and keyring")
	}
	if service, user, _ := strings.Cut(o.Keyring, "/"); o.Keyring != "" && (service == "" || user == "") {
		return errors.New("keyring is not SERVICE/USER")
	}
	i := slices.IndexFunc(m.providers, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		if o.API == "" || o.URL == "" {
			return errors.New("a new provider wants api and url")
		}
		m.providers = append(m.providers, Provider{Name: name, Local: o.API == Ollama || o.API == Chat, Efforts: efforts})
		i = len(m.providers) - 1
	}
	p := &m.providers[i]
	p.own = &o
	p.API = cmp.Or(o.API, p.API)
	if o.URL != "" {
		// A key of the environment is for the provider's own address, not for this one.
		p.URL, p.URLs, p.Keys = o.URL, nil, nil
	}
	if o.Dialect != "" {
		p.Dialect = o.Dialect
		p.Local = slices.Contains([]string{"ollama", "llamacpp", "vllm", "lmstudio"}, o.Dialect)
	}
	if len(o.Models) > 0 {
		p.Model = o.Models[0]
	}
	return nil
}

// Effort returns how much a model thinks in new sessions.
func (m *Models) Effort() string { return m.s.Effort }

// base returns where a provider answers.
func (m *Models) base(p *Provider) string {
	base := p.URL
	for _, name := range p.URLs {
		v := m.s.Env(name)
		if v == "" {
			continue
		}
		if name == "OLLAMA_HOST" {
			v = ollamaHost(v)
		}
		base = v
	}
	return base
}

// ollamaHost returns the base URL of what Ollama's own variable says, which may be that of a
// server that listens on all addresses.
func ollamaHost(v string) string {
	if !strings.Contains(v, "://") {
		v = "http://" + v
	}
	v = strings.TrimSuffix(strings.Replace(v, "://0.0.0.0", "://127.0.0.1", 1), "/")
	if host := v[strings.Index(v, "://")+3:]; !strings.Contains(host, ":") && !strings.Contains(host, "/") {
		v += ":11434"
	}
	return v
}

// key returns the key for a provider that is known without asking anybody, and where it
// is from; ask returns it otherwise. A provider that needs no key, or has none, returns
// nothing.
func (m *Models) key(p *Provider) (key, from string, ask func(context.Context) (string, error)) {
	if o := p.own; o != nil {
		switch {
		case o.Key != "":
			return expand(o.Key, m.s.Env), "the settings", nil
		case len(o.KeyCommand) > 0:
			return "", "a command", func(ctx context.Context) (string, error) { return m.printed(ctx, o.KeyCommand) }
		case o.Keyring != "":
			return "", "the keyring", func(context.Context) (string, error) {
				service, user, _ := strings.Cut(o.Keyring, "/")
				key, err := keyring.Get(service, user)
				if err != nil {
					return "", fmt.Errorf("the keyring, %s: %w", o.Keyring, err)
				}
				return key, nil
			}
		}
	}
	for _, name := range p.Keys {
		if v := m.s.Env(name); v != "" {
			return v, name, nil
		}
	}
	return "", "", nil
}

// expand replaces ${NAME} in a key, and a key that is $NAME. Any other dollar sign belongs to the key.
func expand(key string, env func(string) string) string {
	return variable().ReplaceAllStringFunc(key, func(v string) string { return env(strings.Trim(v, "${}")) })
}

var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}|^\$[A-Za-z_][A-Za-z0-9_]*$`)
})

// keyPatience is how long a command may take that prints a key: it may ask the user.
const keyPatience = time.Minute

// printed returns the first line that a command prints.
func (m *Models) printed(ctx context.Context, command []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, keyPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err == nil && line == "" {
		err = errors.New("it prints nothing")
	}
	if err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		return "", fmt.Errorf("the command %s for the key: %w %s", command[0], err, said)
	}
	return strings.TrimSpace(line), nil
}

// ready reports whether a provider can be asked without more ado: there is a key, or it
// needs none and is not one of those that may not even run.
func (m *Models) ready(p *Provider) bool {
	if p.own != nil && p.own.Disabled {
		return false
	}
	_, from, _ := m.key(p)
	return from != "" || p.own != nil && p.own.URL != "" && p.Model != ""
}

// find returns the provider and the model that a reference names.
func (m *Models) find(ref string) (*Provider, string, error) {
	name, id, ok := strings.Cut(ref, "/")
	if !ok || name == "" || id == "" {
		return nil, "", fmt.Errorf("a model is named PROVIDER/MODEL, such as anthropic/claude-sonnet-5, script:FILE or cassette:FILE, not %q", ref)
	}
	i := slices.IndexFunc(m.providers, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		var names []string
		for _, p := range m.providers {
			names = append(names, p.Name)
		}
		return nil, "", fmt.Errorf("there is no provider %q; there are %s", name, strings.Join(names, ", "))
	}
	return &m.providers[i], id, nil
}

// Open returns the model that a reference names, the same one each time. Nothing is sent.
// Errors say what is wrong with the reference, or which variable is missing.
func (m *Models) Open(ref string) (model.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.opened[ref]; old != nil {
		return old, nil
	}
	opened, err := m.open(ref)
	if err != nil {
		return nil, err
	}
	if len(m.opened) >= maxOpened {
		clear(m.opened)
	}
	m.opened[ref] = opened
	return opened, nil
}

func (m *Models) open(ref string) (model.Model, error) {
	if file, ok := strings.CutPrefix(ref, "script:"); ok {
		return script.Read(file)
	}
	if file, ok := strings.CutPrefix(ref, "cassette:"); ok {
		return m.played(file)
	}
	p, id, err := m.find(ref)
	if err != nil {
		return nil, err
	}
	if p.own != nil && p.own.Disabled {
		return nil, fmt.Errorf("%s was disabled by the client", p.Name)
	}
	key, from, ask := m.key(p)
	if from == "" && len(p.Keys) > 0 {
		return nil, fmt.Errorf("%s wants a key: set %s", p.Name, p.Keys[0])
	}
	info := m.info(p, id)
	made, err := m.make(p, info, key, from)
	if err != nil {
		return nil, err
	}
	if ask != nil {
		made = &keyed{Model: made, make: func(ctx context.Context) (model.Model, error) {
			key, err := ask(ctx)
			if err != nil {
				return nil, &model.Error{Kind: model.KindAuth, Provider: p.Name, Model: id, Message: err.Error(), Err: err}
			}
			return m.make(p, info, key, from)
		}}
	}
	if p.Local && !info.Verified {
		made = &local{Model: made, window: func(ctx context.Context) int { return m.window(ctx, p, id) }}
	}
	return made, nil
}

// played returns the model of a cassette.
func (m *Models) played(file string) (model.Model, error) {
	player, err := cassette.Open(file)
	if err != nil {
		return nil, err
	}
	p, id, err := m.find(player.Model)
	if err != nil {
		return nil, err
	}
	again := Models{s: Settings{HTTP: &http.Client{Transport: player}, Env: m.s.Env}, known: m.known}
	return again.make(p, m.info(p, id), "cassette", "")
}

// info says what is known of a model.
func (m *Models) info(p *Provider, id string) model.Info {
	info := model.Info{Provider: p.Name, ID: id, Name: id, Images: true, Parallel: true, Efforts: p.Efforts, Local: p.Local}
	m.known().describe(&info)
	if _, name, _ := strings.Cut("/"+id, "/openai/"); begins(patches, id, name) {
		info.Edit = model.EditPatch
		info.Texts = p.API == Responses && begins(texts, id, name)
	}
	if p.own != nil && p.own.Context > 0 {
		info.Context, info.Verified = p.own.Context, true
	}
	return info
}

// patches are the beginnings of the names of models that were trained on patches.
var patches = []string{"gpt-5", "gpt-4.1", "o3", "o4-", "codex"}

// texts are those of them for which a tool may take its input as a text.
var texts = []string{"gpt-5", "codex"}

// begins reports whether one of some names begins with one of some texts.
func begins(with []string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(with, func(w string) bool { return strings.HasPrefix(name, w) })
	})
}

// make returns a model of a provider.
func (m *Models) make(p *Provider, info model.Info, key, from string) (model.Model, error) {
	base := m.base(p)
	client := stream.Client{HTTP: m.s.HTTP}
	if m.tape != nil {
		var own http.Client
		if m.s.HTTP != nil {
			own = *m.s.HTTP
		}
		own.Transport = m.tape.For(p.Name+"/"+info.ID, own.Transport)
		client.HTTP = &own
	}
	var header http.Header
	if p.own != nil {
		header = p.own.Header
	}
	switch p.API {
	case Messages:
		c := anthropic.Config{Info: info, URL: base, Key: key, Header: header, Client: client, Thinking: thinking(m.known(), info.ID)}
		if p.Token && len(p.Keys) > 0 && from == p.Keys[len(p.Keys)-1] {
			c.Key, c.Token = "", key
		}
		return anthropic.New(c)
	case Responses:
		return openai.NewResponses(openai.Config{Info: info, URL: base, Key: key, Header: header, Client: client})
	case Ollama:
		return ollama.New(ollama.Config{Info: info, URL: base, Key: key, Client: client})
	}
	return openai.NewChat(openai.Config{Info: info, URL: base, Key: key, Header: header, Client: client, Dialect: openai.Dialects[p.Dialect]})
}

// A keyed model is one whose key is asked for when it is first used.
type keyed struct {
	model.Model // without the key
	make        func(context.Context) (model.Model, error)

	mu   sync.Mutex
	made model.Model
}

// The interfaces as the protocol calls them.
const (
	speaksAnthropic = "anthropic"
	speaksOpenAI    = "openai"
)

// Services implements [model.Source].
func (m *Models) Services() []model.Service {
	var all []model.Service
	for i := range m.providers {
		p := &m.providers[i]
		s := model.Service{Name: p.Name, Speaks: []string{speaksOpenAI}, URL: m.base(p), Enabled: m.ready(p), Local: p.Local}
		switch p.API {
		case Messages:
			s.Speaks, s.URL = []string{speaksAnthropic}, cmp.Or(s.URL, anthropic.DefaultURL)
		case Responses:
			s.URL = cmp.Or(s.URL, openai.DefaultURL)
		}
		all = append(all, s)
	}
	return all
}

// With implements [model.Source]. A provider that is set anew has none of its earlier
// keys.
func (m *Models) With(s model.Service) (model.Source, error) {
	i := slices.IndexFunc(m.providers, func(p Provider) bool { return p.Name == s.Name })
	if i < 0 {
		return nil, fmt.Errorf("there is no provider %q", s.Name)
	}
	p := &m.providers[i]
	next := m.s
	next.Own = maps.Clone(m.s.Own)
	if next.Own == nil {
		next.Own = map[string]Own{}
	}
	was := next.Own[s.Name]
	if !s.Enabled {
		was.Disabled = true
		next.Own[s.Name] = was
		return New(next)
	}
	now := Own{API: p.API, URL: s.URL, Dialect: was.Dialect, Context: was.Context, Models: was.Models, Header: http.Header{}}
	switch {
	case len(s.Speaks) != 1:
		return nil, errors.New("the interface is missing")
	case s.Speaks[0] == speaksAnthropic:
		now.API = Messages
	case s.Speaks[0] != speaksOpenAI:
		return nil, fmt.Errorf("the interface %q is not known", s.Speaks[0])
	case p.API == Messages, p.API == Ollama:
		now.API = Chat
	}
	if _, err := stream.BaseURL(s.URL); err != nil {
		return nil, err
	}
	for name, value := range s.Header {
		now.Header.Set(name, value)
	}
	next.Own[s.Name] = now
	return New(next)
}
