package openai

import "github.com/goacp/acp/cmd/acp/internal/model"

// A Dialect says how a server of Chat Completions differs from what most do. The zero
// value asks for as little as possible. What servers answer is read liberally, whatever
// the dialect.
type Dialect struct {
	// MaxTokens is the field that bounds an answer; "" is max_tokens.
	MaxTokens string
	// Effort is the field that says how much to think, with a dot if it is within another
	// one; "" leaves it out.
	Effort string
	// Thoughts is the field in which the server wants to have back what it thought; ""
	// leaves that out. What is in reasoning_details goes back as it came.
	Thoughts string
	// Tag is the element, such as think, that surrounds thoughts at the beginning of the
	// text; "" means that there is no such element.
	Tag string
	// CacheKey sends prompt_cache_key.
	CacheKey bool
	// NoUsage leaves out the request for usage, which servers may refuse.
	NoUsage bool
	// Role is whose the instructions are; "" is system.
	Role string
	// API is what the server takes of tools and images; "" is [model.APIChat].
	API model.API
}

// Dialects are those of servers that are known, by their names in settings.
var Dialects = map[string]Dialect{
	"openai":     {MaxTokens: "max_completion_tokens", Effort: "reasoning_effort", CacheKey: true, API: model.APIOpenAI},
	"ollama":     {Effort: "reasoning_effort", Tag: "think"},
	"llamacpp":   {Thoughts: "reasoning_content", Tag: "think"},
	"vllm":       {Effort: "reasoning_effort", Tag: "think"},
	"lmstudio":   {Effort: "reasoning_effort", Tag: "think"},
	"openrouter": {Effort: "reasoning.effort"},
	"gemini":     {Effort: "reasoning_effort", Tag: "thought"},
	"deepseek":   {Effort: "reasoning_effort", Thoughts: "reasoning_content"},
}
