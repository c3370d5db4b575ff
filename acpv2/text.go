package acpv2

import (
	"encoding/base64"
	"strconv"
)

// Text returns a text block, the commonest content there is.
func Text(s string) *TextContent { return &TextContent{Text: s} }

// Version is the protocol version this package speaks.
const Version ProtocolVersion = 2

// Bytes returns what the terminal printed. It fails if Data is not base64.
func (c *TerminalOutputChunk) Bytes() ([]byte, error) { return base64.StdEncoding.DecodeString(c.Data) }

// Bytes returns what the terminal printed. It fails if Data is not base64.
func (o *TerminalOutput) Bytes() ([]byte, error) { return base64.StdEncoding.DecodeString(o.Data) }

// String returns the id of the value, for logs.
func (v *SessionConfigOptionValueID) String() string { return string(v.Value) }

// String returns "true" or "false", for logs.
func (v *SessionConfigOptionValueBoolean) String() string { return strconv.FormatBool(v.Value) }

// String returns the JSON text of the value, for logs.
func (v *UnknownSessionConfigOptionValue) String() string { return string(v.Value) }
