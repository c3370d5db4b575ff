package history

import (
	"fmt"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/transcript"
)

// InTurn reports whether the last turn of a conversation has not ended: it runs, or the program was
// killed in the middle of it.
func InTurn(s *transcript.Snapshot) bool {
	if state := s.Session().State; state.Idle() {
		return false
	}
	for e := range s.Backward() {
		if s.TurnOver(e.Seq()) {
			return false
		}
		if end, ok := e.(*transcript.TurnEnd); ok && end.Others == 0 {
			return false
		}
		if !IsNews(e) && !IsHeading(e) {
			return true
		}
	}
	return false
}

// Unfinished reports whether a tool call, a command or a subagent has not ended and never will,
// since its turn has.
func Unfinished(s *transcript.Snapshot, e transcript.Entry) bool {
	switch e := e.(type) {
	case *transcript.ToolCall:
		return s.Abandoned(e) || !e.Ended() && IsNews(e)
	case *transcript.Terminal:
		if e.Exited() {
			return false
		}
	case *transcript.Subagent:
		if e.State == nil || e.State.Idle() {
			return false
		}
	default:
		return false
	}
	return s.TurnOver(e.Seq()) || IsNews(e)
}

// Titles of [Ending].
const (
	NotEnded = "The turn has not ended"
	Failed   = "The turn failed"
)

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// maxReason bounds what is said of the end of a turn, in cells.
const maxReason = 500

// Ending returns how a turn ended, in one line that is safe for a terminal: "" if the agent was
// done, and otherwise a title and the reason, if there is one. The reason is in the words of the
// agent if said is set.
func Ending(t *transcript.TurnEnd) (title, reason string, said bool) {
	if t.IsClean() {
		return "", "", false
	}
	reason, said = safetext.Line(t.Error, maxReason), false
	if t.Said != "" {
		reason, said = safetext.Line(t.Said, maxReason), true
	}
	switch t.By {
	case transcript.EndedByUser:
		if who := safetext.Line(t.Who, maxAuthor); who != "" {
			return "Cancelled by " + who, reason, said
		}
		return "Cancelled", reason, said
	case transcript.EndedByTimeout:
		return "Cancelled, because the time was up", reason, said
	case transcript.EndedByCrash:
		return NotEnded, first(reason, "the agent ended in the middle"), said
	case transcript.EndedByClient:
		if t.StopReason == "" && reason == "" {
			return NotEnded, "the program ended in the middle", false
		}
		return "Cancelled", reason, said
	}
	switch t.StopReason {
	case acpv2.StopReasonCancelled:
		return "Cancelled", reason, said
	case acpv2.StopReasonRefusal:
		return "The agent refused to continue", reason, said
	case acpv2.StopReasonMaxTokens:
		return "The agent stopped at its limit of tokens", reason, said
	case acpv2.StopReasonMaxTurnRequests:
		return "The agent stopped at its limit of requests in a turn", reason, said
	case acpv2.StopReasonEndTurn, "", "error":
		return Failed, reason, said
	}
	return fmt.Sprintf("The agent stopped: %s", safetext.Line(string(t.StopReason), 100)), reason, said
}

// EndingLine is Ending as one line.
func EndingLine(t *transcript.TurnEnd) string {
	title, reason, said := Ending(t)
	switch {
	case reason == "":
		return title
	case said:
		return title + "; the agent said: " + reason
	}
	return title + ": " + reason
}
