package model

import "time"

// An Event is a piece of an answer, or of the wait for it: a *[Began], *[TextDelta],
// *[ThoughtDelta], *[ToolUseBegan], *[ToolInputDelta], *[ToolUse], *[Alive], *[Limits],
// *[Spent], *[Retrying] or *[Done]. Events of kinds that a reader does not know are passed over.
type Event interface{ event() }

// Began says that the provider has begun to answer.
type Began struct {
	ID    string // of the answer, for support; may be empty
	Model string // which model answers, if the provider says so
}

// TextDelta is the next piece of the text. It is not empty, and is valid UTF-8.
type TextDelta struct{ Text string }

// ThoughtDelta is the next piece of the reasoning that may be shown.
type ThoughtDelta struct{ Text string }

// ToolUseBegan says that a tool is going to be asked for, before its input is complete;
// the [ToolUse] with the same id follows, or the answer fails.
type ToolUseBegan struct{ ID, Name string }

// ToolInputDelta is the next piece of the JSON text of a tool's input.
type ToolInputDelta struct{ ID, JSON string }

// Alive says that the provider has sent something that means nothing else: it still works
// on the answer.
type Alive struct{}

// Limits is how much the provider will answer before it refuses to, as its headers say.
// What it did not say is negative.
type Limits struct {
	Requests, Tokens int       // that are left
	Reset            time.Time // when there are more; zero if it did not say
}

// Spent says that an answer has ended before it was complete, whatever the reason is, and is billed nevertheless. It comes
// before the [Retrying] or the error that says so, for each request that the provider had begun to answer.
type Spent struct {
	// Usage is what the provider has said of it so far, which may be less than is billed, or nothing.
	Usage   Usage
	Written int // bytes of text, thoughts and inputs of tools that had come
}

// Retrying says that the request failed and is sent again after a while. It occurs only
// before the first piece of an answer, or with Discarded set.
type Retrying struct {
	Err     *Error
	Attempt int           // the one that follows; the first request was 1
	After   time.Duration // how long the wait is
	// Discarded says that pieces of the failed answer were passed on, which are void: the
	// answer begins anew. That is never done once a ToolUse was passed on.
	Discarded bool
}

// Done ends an answer.
type Done struct {
	Reason StopReason
	Usage  Usage
	// Message is the whole answer in the order of the provider, with what it wants to
	// have back. It is the caller's.
	Message *Message
	// Detail is what the provider calls the reason, or says of it; may be empty.
	Detail string
}

func (*Began) event()          {}
func (*TextDelta) event()      {}
func (*ThoughtDelta) event()   {}
func (*ToolUseBegan) event()   {}
func (*ToolInputDelta) event() {}
func (*ToolUse) event()        {}
func (*Alive) event()          {}
func (*Limits) event()         {}
func (*Spent) event()          {}
func (*Retrying) event()       {}
func (*Done) event()           {}

// A StopReason says why an answer ended.
type StopReason string

// The reasons.
const (
	EndTurn   StopReason = "end_turn"
	WantsTool StopReason = "tool_use"
	MaxTokens StopReason = "max_tokens"
	Refused   StopReason = "refused"
	Paused    StopReason = "paused" // the provider wants the conversation sent again as it is
)

// Usage counts the tokens of one answer. The four numbers are apart: their sum is what
// was read and written in all.
type Usage struct {
	Input      int  // read, and neither from a cache nor into one
	CacheRead  int  // read from the provider's cache
	CacheWrite int  // read, and put into the cache
	Output     int  // written, reasoning included
	Reasoning  int  // part of Output; 0 also if it is not known
	CacheHour  int  // part of CacheWrite: what is kept for an hour, which costs more
	Known      bool // the provider has said so; otherwise all of it is 0
}

// Read returns how many tokens the request had.
func (u Usage) Read() int { return u.Input + u.CacheRead + u.CacheWrite }

// Plus returns the sum of both. It is known if one of them is.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		Output: u.Output + v.Output, Reasoning: u.Reasoning + v.Reasoning, CacheHour: u.CacheHour + v.CacheHour, Known: u.Known || v.Known,
	}
}
