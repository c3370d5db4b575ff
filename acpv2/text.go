package acpv2

// Text returns a text block, the commonest content there is.
func Text(s string) *TextContent { return &TextContent{Text: s} }

// Version is the protocol version this package speaks.
const Version ProtocolVersion = 2
