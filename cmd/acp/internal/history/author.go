package history

import (
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/transcript"
)

// maxAuthor bounds the name of an author, in cells.
const maxAuthor = 40

// Author returns who has sent a message of the user, if a gateway says it in _meta, or "". It is safe to be shown.
func Author(m *transcript.Message) string {
	if m.Role != transcript.RoleUser || len(m.Meta) == 0 {
		return ""
	}
	var said struct{ Author string }
	if !ownmeta.Read(m.Meta, &said) {
		return ""
	}
	return safetext.Line(said.Author, maxAuthor)
}
