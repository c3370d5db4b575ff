// Package model says what the built-in agent wants of a language model: a conversation
// goes in, pieces of an answer come out.
//
// The packages below it implement it for the interfaces of providers: model/anthropic
// (Messages), model/openai (Responses and Chat Completions) and model/script (scripts and
// recorded traffic). What they share is in model/stream.
//
// A conversation only grows. Its beginning, a [Prefix], never changes; a [Message] that
// was sent once is sent again byte for byte, since each keeps its encoded form for each
// interface. Requests that follow each other therefore share all bytes but the last ones,
// which is what providers' caches are made of.
package model

import (
	"context"
	"encoding/json"
	"iter"
	"sync"
)

// A Model is a language model that streams its answers and can ask for tools. Its
// methods may be called from any goroutine, also at once.
type Model interface {
	// Info describes the model. It may change once the provider has said more than was
	// known, such as how large the window is.
	Info() Info
	// Generate answers a conversation. Nothing is sent before the sequence is read, and
	// it can be read once. It ends with a [Done], or with an error, after which nothing
	// follows; leaving the loop ends the answer and its connection. When ctx is done the
	// sequence ends with the cause of that. Errors of the provider, and of the way to it, are
	// *[Error]; any other error happened on this side.
	Generate(ctx context.Context, r *Request) iter.Seq2[Event, error]
}

// Info describes a model.
type Info struct {
	Provider string // who serves it, as in settings
	API      API    // what it is asked by; set by whoever asks
	ID       string // what the provider calls it
	Name     string // for people
	Context  int    // how many tokens fit into it, answer included; 0 is unknown
	Verified bool   // the provider has confirmed Context
	Output   int    // how many tokens an answer may have; 0 is unknown
	// Local says that the server is the user's own. Such servers may leave out the beginning
	// of a conversation that does not fit, without a word.
	Local    bool
	Images   bool // messages may hold images
	Parallel bool // one answer may ask for several tools
	Efforts  []string
	Edit     EditFormat
	Texts    bool  // tools may take their input as a text: see TextForm
	CacheMin int   // a request with fewer tokens is never cached; 0 is unknown
	Price    Price // zero if it is not known
}

// An EditFormat is the form in which a model was trained to change files.
type EditFormat string

// The formats. The zero value is the first.
const (
	EditReplace EditFormat = ""      // old text and new text
	EditPatch   EditFormat = "patch" // a V4A patch
)

// A Price is what a million tokens cost.
type Price struct {
	Input, Output         float64
	CacheRead, CacheWrite float64 // the latter for what is kept for some minutes
	Long                  Tier    // of requests that are long
	Currency              string  // "" if the price is not known
}

// A Tier says how many times the usual price all tokens of a long request cost. The zero value says that there is one price
// for all.
type Tier struct {
	Above  int     `json:"above"`  // requests that read more tokens are long
	Input  float64 `json:"input"`  // for what is read, from a cache or not, and for what is put into one
	Output float64 `json:"output"` // for what is written
}

// hour is how many times as much it costs to keep something in a cache for an hour as for some minutes: twice the price of
// what is read instead of 1.25 times. Only Anthropic has both; see tiers of package catalog for where that was looked up.
const hour = 2 / 1.25

// Of returns what one answer costs that has used u, and whether that is known. Sums of several answers have another
// cost where there are tiers.
func (p Price) Of(u Usage) (cost float64, known bool) {
	if p.Currency == "" {
		return 0, false
	}
	kept := float64(u.CacheWrite-u.CacheHour) + float64(u.CacheHour)*hour
	read := float64(u.Input)*p.Input + float64(u.CacheRead)*p.CacheRead + kept*p.CacheWrite
	written := float64(u.Output) * p.Output
	if p.Long.Above > 0 && u.Read() > p.Long.Above {
		read, written = read*p.Long.Input, written*p.Long.Output
	}
	return (read + written) / 1e6, true
}

// A Request is a conversation that is to be continued.
type Request struct {
	Prefix   *Prefix    // what never changes; not nil
	Messages []*Message // append-only; the last one is the user's
	// Tail is said after the last message, and in no later request: it must not be worth
	// caching.
	Tail []Part
	// Effort is one of [Info.Efforts], or "" for what the provider thinks best.
	Effort string
	// CacheKey is the same for all requests of a conversation. Providers that want to know
	// which requests belong together receive it; it must not identify the user.
	CacheKey  string
	MaxTokens int // of the answer; 0 leaves it to the provider, or is Info.Output where one must be said
	Choice    ToolChoice
}

// A ToolChoice says whether the model may, must or must not ask for a tool.
type ToolChoice string

// The choices.
const (
	ToolAuto ToolChoice = ""
	ToolNone ToolChoice = "none"
	ToolAny  ToolChoice = "any"
)

// A Prefix is how each request of a conversation begins: instructions and tools. It is
// made once, is never changed after it was first sent, and may be used from any
// goroutine.
type Prefix struct {
	System string
	Tools  []Tool

	encoded encodings
}

// A Tool is described to the model.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // the JSON schema of its input, an object
	Text        *TextForm       // nil if the input is always an object
}

// A TextForm is the input of a tool as one text instead of an object, under a name that
// models were trained on. Interfaces and models that have no such form use the schema; a
// [ToolUse] is the same in both.
type TextForm struct {
	Name    string
	About   string // instead of the description
	Member  string // of the object that is the text
	Grammar string // of the text, as Lark writes it
}

// Encoded returns the prefix in the form of an interface, which encode makes the first
// time.
func (p *Prefix) Encoded(api string, encode func(*Prefix) ([]byte, error)) ([]byte, error) {
	return p.encoded.get(api, func() ([]byte, error) { return encode(p) })
}

// encodings keeps the encoded forms of a value. The zero value has none.
type encodings struct {
	mu    sync.Mutex
	forms map[string][]byte // by interface
}

func (e *encodings) get(api string, encode func() ([]byte, error)) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if form, ok := e.forms[api]; ok {
		return form, nil
	}
	form, err := encode()
	if err != nil {
		return nil, err
	}
	if e.forms == nil {
		e.forms = map[string][]byte{}
	}
	e.forms[api] = form
	return form, nil
}
