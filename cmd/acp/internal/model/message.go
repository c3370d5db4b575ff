package model

import "encoding/json"

// A Role says who speaks.
type Role string

// The roles. What tools return is the user's.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// A Message is one contribution to a conversation. It is not changed once it was sent,
// and may then be used from any goroutine.
type Message struct {
	Role  Role
	Parts []Part

	encoded encodings
}

// Encoded returns the message in the form of an interface, which encode makes the first
// time. The form is never changed, so that what was sent once is sent again byte for byte.
func (m *Message) Encoded(api string, encode func(*Message) ([]byte, error)) ([]byte, error) {
	return m.encoded.get(api, func() ([]byte, error) { return encode(m) })
}

// A Part is a piece of a message: a *[Text], *[Thought], *[Image], *[ToolUse] or
// *[ToolResult]. The order of the parts counts.
type Part interface{ part() }

// Text is what is said.
type Text struct {
	Text   string
	Opaque Opaque // what the provider wants to have back with it
}

// Thought is reasoning.
type Thought struct {
	Text   string // what may be shown of it; may be empty
	Opaque Opaque // without it the thought is not sent back
}

// Opaque is what a provider wants to have back byte for byte: signatures, encrypted
// reasoning. Interfaces other than API leave it out. The zero value is none.
type Opaque struct {
	API  string          // the interface, and the model if it must be the same
	Data json.RawMessage // in a form that only the package of the interface knows
}

// Image is a picture.
type Image struct {
	MIMEType string
	Data     []byte
}

// ToolUse is the assistant's wish to use a tool. Input is a JSON value; whether it fits
// the tool's schema is for the caller to check. What is not JSON at all is a JSON string
// here, and Malformed is set.
type ToolUse struct {
	ID        string
	Name      string
	Input     json.RawMessage
	Malformed bool
	Opaque    Opaque
}

// ToolResult is what came of a [ToolUse].
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
