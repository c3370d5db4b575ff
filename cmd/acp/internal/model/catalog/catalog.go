// Package catalog knows the providers of language models: where they answer, in which
// interface, and in which variables of the environment their keys are.
//
// A model is named by a reference, PROVIDER/MODEL, such as anthropic/claude-sonnet-5, or
// script:FILE for a script.
package catalog

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/anthropic"
	"github.com/goacp/acp/cmd/acp/internal/model/openai"
	"github.com/goacp/acp/cmd/acp/internal/model/script"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// An API is an interface of providers.
type API string

// The interfaces.
const (
	Messages  API = "messages"
	Responses API = "responses"
	Chat      API = "chat"
)

// A Provider is a service, or a kind of server, that has models.
type Provider struct {
	Name string // in references
	API  API
	URL  string   // the base; "" is that of the interface itself
	URLs []string // variables of the environment that replace it
	Keys []string // variables that may hold the key; without any, no key is needed
	// Token says that the last of Keys is sent as a bearer, to a Messages interface.
	Token   bool
	Dialect string // of Chat
	Efforts []string
}

var efforts = []string{"low", "medium", "high"}

// Providers are those that are known, in the order in which they are looked for.
func Providers() []Provider {
	return []Provider{
		{Name: "anthropic", API: Messages, URLs: []string{"ANTHROPIC_BASE_URL"}, Keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}, Token: true, Efforts: append(efforts[:3:3], "max", "none")},
		{Name: "openai", API: Responses, URLs: []string{"OPENAI_BASE_URL"}, Keys: []string{"OPENAI_API_KEY"}, Efforts: append([]string{"minimal"}, efforts...)},
		{Name: "gemini", API: Chat, URL: "https://generativelanguage.googleapis.com/v1beta/openai", URLs: []string{"GEMINI_BASE_URL"}, Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, Dialect: "gemini", Efforts: efforts},
		{Name: "openrouter", API: Chat, URL: "https://openrouter.ai/api/v1", URLs: []string{"OPENROUTER_BASE_URL"}, Keys: []string{"OPENROUTER_API_KEY"}, Dialect: "openrouter", Efforts: efforts},
		{Name: "deepseek", API: Chat, URL: "https://api.deepseek.com", URLs: []string{"DEEPSEEK_BASE_URL"}, Keys: []string{"DEEPSEEK_API_KEY"}, Dialect: "deepseek"},
		{Name: "ollama", API: Chat, URL: "http://127.0.0.1:11434/v1", URLs: []string{"OLLAMA_BASE_URL"}, Dialect: "ollama", Efforts: efforts},
		{Name: "llamacpp", API: Chat, URL: "http://127.0.0.1:8080/v1", URLs: []string{"LLAMACPP_BASE_URL"}, Dialect: "llamacpp"},
		{Name: "lmstudio", API: Chat, URL: "http://127.0.0.1:1234/v1", URLs: []string{"LMSTUDIO_BASE_URL"}, Dialect: "lmstudio"},
		{Name: "vllm", API: Chat, URL: "http://127.0.0.1:8000/v1", URLs: []string{"VLLM_BASE_URL"}, Dialect: "vllm"},
	}
}

// Options are what a model is opened with.
type Options struct {
	// Env looks a variable of the environment up.
	Env  func(name string) string
	HTTP *http.Client // nil is the usual one
}

// Open returns the model that a reference names. Nothing is sent. Errors say what is
// wrong with the reference, or which variable is missing.
func Open(ref string, o Options) (model.Model, error) {
	if file, ok := strings.CutPrefix(ref, "script:"); ok {
		return script.Read(file)
	}
	name, id, ok := strings.Cut(ref, "/")
	if !ok || name == "" || id == "" {
		return nil, fmt.Errorf("a model is named PROVIDER/MODEL, such as anthropic/claude-sonnet-5, or script:FILE, not %q", ref)
	}
	all := Providers()
	i := slices.IndexFunc(all, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		var names []string
		for _, p := range all {
			names = append(names, p.Name)
		}
		return nil, fmt.Errorf("there is no provider %q; there are %s", name, strings.Join(names, ", "))
	}
	return all[i].open(id, o)
}

// open returns a model of the provider.
func (p *Provider) open(id string, o Options) (model.Model, error) {
	base := p.URL
	for _, name := range p.URLs {
		if v := o.Env(name); v != "" {
			base = v
		}
	}
	key, from := "", ""
	for _, name := range p.Keys {
		if v := o.Env(name); v != "" {
			key, from = v, name
			break
		}
	}
	if key == "" && len(p.Keys) > 0 {
		return nil, fmt.Errorf("%s wants a key: set %s", p.Name, p.Keys[0])
	}
	info := model.Info{Provider: p.Name, ID: id, Name: id, Images: true, Parallel: true, Efforts: p.Efforts}
	Builtin().describe(&info)
	client := stream.Client{HTTP: o.HTTP}
	switch p.API {
	case Messages:
		c := anthropic.Config{Info: info, URL: base, Key: key, Client: client, Thinking: thinking(id)}
		if p.Token && from == p.Keys[len(p.Keys)-1] {
			c.Key, c.Token = "", key
		}
		return anthropic.New(c)
	case Responses:
		return openai.NewResponses(openai.Config{Info: info, URL: base, Key: key, Client: client})
	}
	return openai.NewChat(openai.Config{Info: info, URL: base, Key: key, Client: client, Dialect: openai.Dialects[p.Dialect]})
}

// thinking returns how a model of Anthropic learns how much to think. Newer ones decide
// by themselves, within an effort.
func thinking(id string) anthropic.Thinking {
	if k, ok := Builtin().Find("anthropic", id); ok && !k.Reasons {
		return anthropic.ThinkNever
	}
	longest, way := "", anthropic.ThinkAdaptive
	for old, w := range fixed {
		if strings.HasPrefix(id, old) && len(old) > len(longest) {
			longest, way = old, w
		}
	}
	return way
}

// fixed are the models of before, by the beginnings of their names.
var fixed = map[string]anthropic.Thinking{
	"claude-2":          anthropic.ThinkNever,
	"claude-3":          anthropic.ThinkNever,
	"claude-3-7":        anthropic.ThinkBudget,
	"claude-haiku-4":    anthropic.ThinkBudget,
	"claude-opus-4-0":   anthropic.ThinkBudget,
	"claude-opus-4-1":   anthropic.ThinkBudget,
	"claude-opus-4-2":   anthropic.ThinkBudget, // with a date
	"claude-opus-4-5":   anthropic.ThinkBudget,
	"claude-sonnet-4-0": anthropic.ThinkBudget,
	"claude-sonnet-4-2": anthropic.ThinkBudget, // with a date
	"claude-sonnet-4-5": anthropic.ThinkBudget,
}
