package exec

import (
	"errors"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/transcript"
)

// errUnanswered is the error of a turn in which nobody could answer.
var errUnanswered = errors.New("the agent has no language model, so nothing has answered the prompt: " +
	"acp models lists the keys and servers that are looked for; --agent names another agent")

// answers returns the changes without those in which the built-in agent says that there is no answer: such a text does
// not answer the prompt. nil, which stands for a replaced history, stays nil.
func answers(snap *transcript.Snapshot, changes []transcript.Change) []transcript.Change {
	standsForNone := func(ch transcript.Change) bool { return noAnswer(snap, ch) != nil }
	if !slices.ContainsFunc(changes, standsForNone) {
		return changes
	}
	return slices.DeleteFunc(slices.Clone(changes), standsForNone)
}

// noAnswer returns the error of a turn in which the built-in agent says by a change that there is no answer; nil if it says
// something else.
func noAnswer(snap *transcript.Snapshot, ch transcript.Change) error {
	if ch.Op == transcript.OpSession || ch.Text != "" { // which a chunk with _meta does not have
		return nil
	}
	m, ok := snap.Entry(ch.Seq).(*transcript.Message)
	if !ok || m.Role != transcript.RoleAgent {
		return nil
	}
	for _, b := range m.Content() {
		var is struct {
			ownmeta.Unanswered
			ownmeta.Empty
		}
		text, ok := b.(*acp.TextContent)
		switch {
		case !ok || len(text.Meta) == 0 || !ownmeta.Read(text.Meta, &is):
		case is.Unanswered.Unanswered:
			return exitcode.With(exitcode.Unanswered, errUnanswered)
		case is.Empty.Empty:
			return exitcode.Errorf(exitcode.Empty, "the turn ended without an answer: %s", safetext.Line(lower(text.Text), 300))
		}
	}
	return nil
}

// lower returns a sentence as a part of another one.
func lower(text string) string {
	text = strings.TrimSuffix(text, ".")
	if strings.HasPrefix(text, "The ") {
		return "t" + text[1:]
	}
	return text
}
