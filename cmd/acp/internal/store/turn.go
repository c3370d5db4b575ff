package store

import (
	"encoding/json"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// TurnEnd is the data of a [journal.KindEnd].
type TurnEnd struct {
	StopReason string `json:"stopReason,omitempty"` // as the agent has reported it
	By         string `json:"by,omitempty"`         // who ended it: a [transcript.EndedBy]
	Who        string `json:"who,omitempty"`        // the name of the user who ended it, if that is known
	Said       string `json:"said,omitempty"`       // why the turn failed, in the words of the agent
	Error      string `json:"error,omitempty"`      // the same in the words of the program
	Others     int    `json:"others,omitempty"`     // turns of the session that continue
}

// Apply applies the end of the turn to a conversation, which is idle afterwards unless other turns
// run. It returns what changed. Several processes that find the same turn interrupted may each have
// recorded that: the first record counts.
func (t *TurnEnd) Apply(c *transcript.Conversation) (changes []transcript.Change) {
	if t.interrupted() && endsInterrupted(c.Snapshot()) {
		return nil
	}
	// An agent that has ended cannot say that it is idle.
	if state := c.Snapshot().Session().State; t.Others == 0 && !state.Idle() {
		changes = append(changes, c.Apply(&acpv2.IdleStateUpdate{StopReason: acpv2.StopReason(t.StopReason), Background: state.Background}))
	}
	return append(changes, c.TurnEnded(&transcript.TurnEnd{
		StopReason: acpv2.StopReason(t.StopReason), By: transcript.EndedBy(t.By), Who: t.Who, Said: t.Said, Error: t.Error, Others: t.Others,
	}))
}

// interrupted reports whether all that is known of the end is that the program was killed.
func (t *TurnEnd) interrupted() bool { return *t == TurnEnd{By: string(transcript.EndedByClient)} }

// endsInterrupted reports whether a conversation ends with an interrupted turn.
func endsInterrupted(s *transcript.Snapshot) bool {
	for e := range s.Backward() {
		end, ok := e.(*transcript.TurnEnd)
		return ok && end.By == transcript.EndedByClient && end.StopReason == "" && end.Said == "" && end.Error == "" && end.Others == 0
	}
	return false
}

// turnEnded applies the data of a [journal.KindEnd].
func (f *folder) turnEnded(data json.RawMessage) {
	var t TurnEnd
	if json.Unmarshal(data, &t) == nil {
		t.Apply(f.conversation)
	}
}

// Output is the data of a [journal.KindOutput].
type Output struct {
	TerminalID string `json:"terminalId"`
	At         uint64 `json:"at"`   // place of the first byte in the whole output
	Data       []byte `json:"data"` // in base64
}

// output applies the data of a [journal.KindOutput].
func (f *folder) output(data json.RawMessage) {
	var o Output
	if json.Unmarshal(data, &o) == nil && o.TerminalID != "" {
		f.conversation.OutputAt(acpv2.TerminalID(o.TerminalID), o.At, o.Data)
	}
}
