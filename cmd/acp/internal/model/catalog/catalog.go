// Package catalog knows the providers of language models: where they answer, in which
// interface, and in which variables of the environment their keys are.
//
// A model is named by a reference, PROVIDER/MODEL, such as anthropic/claude-sonnet-5, or
// script:FILE for a script. [Models] opens them, and finds those that can be used without any
// settings: first those for whose provider there is a key in the environment, then those of
// servers on this machine.
package catalog

import (
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/model/anthropic"
)

// An API is an interface of providers.
type API string

// The interfaces.
const (
	Messages  API = "messages"
	Responses API = "responses"
	Chat      API = "chat"
	Ollama    API = "ollama"
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
	// Model is the one that is used where nobody has chosen; "" is the first that a server
	// of the user's own has.
	Model string
	Local bool // a server of the user's own

	own *Own // what the user has set
}

var efforts = []string{"low", "medium", "high"}

// Providers are those that are known, in the order in which they are looked for.
func Providers() []Provider {
	return []Provider{
		{Name: "anthropic", API: Messages, Model: "claude-sonnet-5", URLs: []string{"ANTHROPIC_BASE_URL"}, Keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}, Token: true, Efforts: append(efforts[:3:3], "max", "none")},
		{Name: "openai", API: Responses, Model: "gpt-5.5", URLs: []string{"OPENAI_BASE_URL"}, Keys: []string{"OPENAI_API_KEY"}, Efforts: append([]string{"minimal"}, efforts...)},
		{Name: "gemini", API: Chat, Model: "gemini-3.7-flash", URL: "https://generativelanguage.googleapis.com/v1beta/openai", URLs: []string{"GEMINI_BASE_URL"}, Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, Dialect: "gemini", Efforts: efforts},
		{Name: "openrouter", API: Chat, Model: "anthropic/claude-sonnet-5", URL: "https://openrouter.ai/api/v1", URLs: []string{"OPENROUTER_BASE_URL"}, Keys: []string{"OPENROUTER_API_KEY"}, Dialect: "openrouter", Efforts: efforts},
		{Name: "deepseek", API: Chat, Model: "deepseek-v4-pro", URL: "https://api.deepseek.com", URLs: []string{"DEEPSEEK_BASE_URL"}, Keys: []string{"DEEPSEEK_API_KEY"}, Dialect: "deepseek"},
		{Name: "ollama", API: Ollama, Local: true, URL: "http://127.0.0.1:11434", URLs: []string{"OLLAMA_HOST", "OLLAMA_BASE_URL"}, Dialect: "ollama", Efforts: efforts},
		{Name: "llamacpp", API: Chat, Local: true, URL: "http://127.0.0.1:8080/v1", URLs: []string{"LLAMACPP_BASE_URL"}, Dialect: "llamacpp"},
		{Name: "lmstudio", API: Chat, Local: true, URL: "http://127.0.0.1:1234/v1", URLs: []string{"LMSTUDIO_BASE_URL"}, Dialect: "lmstudio"},
		{Name: "vllm", API: Chat, Local: true, URL: "http://127.0.0.1:8000/v1", URLs: []string{"VLLM_BASE_URL"}, Dialect: "vllm"},
	}
}

// thinking returns how a model of Anthropic learns how much to think. Newer ones decide
// by themselves, within an effort.
func thinking(known *Catalog, id string) anthropic.Thinking {
	if k, ok := known.Find("anthropic", id); ok && !k.Reasons {
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
