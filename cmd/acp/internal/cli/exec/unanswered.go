package exec

import (
	"errors"
	"slices"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/transcript"
)

// errUnanswered is the error of a turn in which nobody could answer.
var errUnanswered = errors.New("the agent has no language model, so nothing has answered the prompt: " +
	"acp models lists the keys and servers that are looked for; --agent names another agent")

// answers returns the changes without those in which the agent says that it has no language model: such a text does
// not answer the prompt. nil, which stands for a replaced history, stays nil.
func answers(snap *transcript.Snapshot, changes []transcript.Change) []transcript.Change {
	unanswered := func(ch transcript.Change) bool { return isUnanswered(snap, ch) }
	if !slices.ContainsFunc(changes, unanswered) {
		return changes
	}
	return slices.DeleteFunc(slices.Clone(changes), unanswered)
}

// isUnanswered reports whether a change is that the built-in agent says it has no language model.
func isUnanswered(snap *transcript.Snapshot, ch transcript.Change) bool {
	if ch.Op == transcript.OpSession || ch.Text != "" { // which a chunk with _meta does not have
		return false
	}
	m, ok := snap.Entry(ch.Seq).(*transcript.Message)
	return ok && m.Role == transcript.RoleAgent && slices.ContainsFunc(m.Content(), func(b acp.ContentBlock) bool {
		var is ownmeta.Unanswered
		text, ok := b.(*acp.TextContent)
		return ok && len(text.Meta) > 0 && ownmeta.Read(text.Meta, &is) && is.Unanswered
	})
}
