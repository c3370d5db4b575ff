// Package model describes what the built-in agent will need of a language model. Nothing implements
// it yet, and the agent works without one.
package model

import (
	"context"
	"encoding/json"
	"iter"
)

// A Model is a language model that streams its answers and can ask for tools. Its
// methods may be called from any goroutine, also at once.
type Model interface {
	// Info returns which model it is.
	Info() Info
	// Generate answers a conversation. Nothing is sent before the sequence is read, and it can be
	// read once. It ends with a [Done], or with an error, after which nothing follows. Leaving the
	// loop ends the answer. When ctx is done, the sequence ends with the cause. Errors of the
	// service are *Error; any other error happened on this side.
	Generate(ctx context.Context, r *Request) iter.Seq2[Event, error]
}

// Info describes a model.
type Info struct {
	Provider string // who serves it
	ID       string // what the provider calls it
	Name     string // for people
	Context  int    // how many tokens fit into it, answer included; 0 is unknown
	Output   int    // how many tokens an answer may have; 0 is unknown
	Images   bool   // messages may hold images
}

// A Request is a conversation that is to be continued.
type Request struct {
	System    string    // instructions
	Messages  []Message // by turns; the last one is the user's
	Tools     []Tool    // that the model may ask for
	MaxTokens int       // of the answer; 0 leaves it to the provider
}

// A Role says who speaks.
type Role string

// The roles. What tools return is the user's.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// A Message is one contribution to a conversation.
type Message struct {
	Role  Role
	Parts []Part
}

// A Part is a piece of a message: a *Text, *Thought, *Image, *ToolUse or
// *ToolResult.
type Part interface{ part() }

// Text is what is said.
type Text struct{ Text string }

// Thought is reasoning. Signature is the provider's and goes back unchanged.
type Thought struct {
	Text      string
	Signature []byte
}

// Image is a picture that the user shows.
type Image struct {
	MIMEType string
	Data     []byte
}

// ToolUse is the assistant's wish to use a tool. Input is the JSON object that
// the tool's schema describes, which is for the caller to check.
type ToolUse struct {
	ID    string
	Name  string
	Input json.RawMessage
}

// ToolResult is what came of a ToolUse.
type ToolResult struct {
	ID     string // of the ToolUse
	Parts  []Part // *Text and *Image
	Failed bool
}

func (*Text) part()       {}
func (*Thought) part()    {}
func (*Image) part()      {}
func (*ToolUse) part()    {}
func (*ToolResult) part() {}

// A Tool is described to the model. Schema is the JSON schema of its input.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// An Event is a piece of an answer: a *TextDelta, *ThoughtDelta, *ToolUseBegan,
// *ToolUse or *Done.
type Event interface{ event() }

// TextDelta is the next piece of the text.
type TextDelta struct{ Text string }

// ThoughtDelta is the next piece of the reasoning. Signature comes with the last.
type ThoughtDelta struct {
	Text      string
	Signature []byte
}

// ToolUseBegan says that a tool is going to be used, before its input is complete; the ToolUse with
// the same id follows.
type ToolUseBegan struct{ ID, Name string }

// Done ends an answer.
type Done struct {
	Reason StopReason
	Usage  Usage
}

func (*TextDelta) event()    {}
func (*ThoughtDelta) event() {}
func (*ToolUseBegan) event() {}
func (*ToolUse) event()      {}
func (*Done) event()         {}

// A StopReason says why an answer ended.
type StopReason string

// The reasons.
const (
	EndTurn   StopReason = "end_turn"
	WantsTool StopReason = "tool_use"
	MaxTokens StopReason = "max_tokens"
	Refused   StopReason = "refused"
)

// Usage counts tokens, and what they cost as far as that is known.
type Usage struct {
	Input, Output         int
	CacheRead, CacheWrite int
	Cost                  float64
	Currency              string // "" if the cost is unknown
}

// An Error is what the service answered instead.
type Error struct {
	Provider  string
	Code      string // the provider's
	Message   string
	Temporary bool // trying again later may help
}

// Error returns the message with who said it.
func (e *Error) Error() string { return e.Provider + ": " + e.Message }
