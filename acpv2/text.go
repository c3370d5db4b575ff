package acpv2

// Text returns a text block, the commonest content there is.
func Text(s string) *TextContent { return &TextContent{Text: s} }
