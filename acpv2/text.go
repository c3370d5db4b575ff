package acpv2

import "encoding/base64"

// Text returns a text block, the commonest content there is.
func Text(s string) *TextContent { return &TextContent{Text: s} }

// Version is the protocol version this package speaks.
const Version ProtocolVersion = 2

// Bytes returns what the terminal printed. It fails if Data is not base64.
func (c *TerminalOutputChunk) Bytes() ([]byte, error) { return base64.StdEncoding.DecodeString(c.Data) }

// Bytes returns what the terminal printed. It fails if Data is not base64.
func (o *TerminalOutput) Bytes() ([]byte, error) { return base64.StdEncoding.DecodeString(o.Data) }
