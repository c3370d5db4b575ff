package model

import (
	"fmt"
	"time"
)

// A Kind says what kind of trouble an [Error] is.
type Kind string

// The kinds.
const (
	KindAuth       Kind = "auth"       // no key, a wrong one, or one without the right to this model
	KindQuota      Kind = "quota"      // no money left
	KindRate       Kind = "rate"       // too many requests
	KindOverloaded Kind = "overloaded" // the provider has too much to do, or an error of its own
	KindOverflow   Kind = "overflow"   // the conversation does not fit into the window
	KindRequest    Kind = "request"    // the provider does not accept the request
	KindRefused    Kind = "refused"    // the provider does not want to answer this
	KindNetwork    Kind = "network"    // the provider was not reached, or the connection broke
	KindStalled    Kind = "stalled"    // nothing came for too long
	KindAnswer     Kind = "answer"     // what came is not what the interface says
)

// An Error is what a provider answered instead, or what happened on the way to it.
type Error struct {
	Kind     Kind
	Provider string
	Model    string
	Status   int    // of HTTP; 0 if there was none, or the stream said it later
	Code     string // the provider's word for it; may be empty
	Message  string // the provider's, or what happened; one line, without keys
	// Once says that the provider has a word for it that is not known, so that sending the same again may cost as much and help
	// as little.
	Once bool
	// RetryAfter is how long the provider wants to be left alone; 0 if it did not say.
	RetryAfter time.Duration
	// Raw is the beginning of what the provider said, at most 4 KiB.
	Raw []byte
	// Err is what failed on the way, if anything did.
	Err error
}

// Error returns who said what.
func (e *Error) Error() string {
	who := e.Provider
	if who == "" {
		who = "the provider"
	}
	if e.Status != 0 {
		return fmt.Sprintf("%s: %s (%s, status %d)", who, e.Message, e.Kind, e.Status)
	}
	return fmt.Sprintf("%s: %s (%s)", who, e.Message, e.Kind)
}

// Unwrap returns what failed on the way.
func (e *Error) Unwrap() error { return e.Err }

// Temporary reports whether sending the same request again may help.
func (e *Error) Temporary() bool {
	switch e.Kind {
	case KindRate, KindOverloaded, KindNetwork, KindStalled:
		return !e.Once
	}
	return false
}

// Advice returns what the user can do, as one sentence.
func (e *Error) Advice() string {
	switch e.Kind {
	case KindAuth:
		return "Check the key in the environment, and that it is one for this provider."
	case KindQuota:
		return "The account has no credit left: add some, or choose another model."
	case KindRate:
		return "The provider limits how much may be asked: wait, or choose another model."
	case KindOverloaded:
		return "The provider is overloaded: try again later, or choose another model."
	case KindOverflow:
		return "The conversation is too long for this model: begin a new session."
	case KindRequest:
		return "Check the name of the model, and that the base URL is of this interface."
	case KindRefused:
		return "The provider does not answer this: say it in another way."
	case KindNetwork:
		return "The provider was not reached: check the network and the base URL."
	case KindStalled:
		return "The provider stopped in the middle: try again."
	case KindAnswer:
		return "What answers there does not speak this interface: check the base URL."
	}
	return ""
}
