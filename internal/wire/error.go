package wire

import "strconv"

// A SyntaxError says that the input is not acceptable JSON text.
type SyntaxError struct {
	Reason string
	Offset int // bytes from the start of the input
}

func (e *SyntaxError) Error() string {
	return "invalid JSON at byte " + strconv.Itoa(e.Offset) + ": " + e.Reason
}

// A FieldError says that a value does not have the shape the schema asks for.
// Path names the field relative to the decoded value, as in
// "update.content.text" or "prompt[2].text"; it is empty for the value itself.
// Neither Path nor Reason ever holds a value from the input.
type FieldError struct {
	Path   string
	Reason string
}

func (e *FieldError) Error() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + ": " + e.Reason
}
