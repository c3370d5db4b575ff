package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// Bounds are those of conversations in memory: a message of up to 32 MiB is whole, and the last 4
// MiB of the output of a command are kept. A short conversation needs little memory all the same.
func Bounds() transcript.Config {
	return transcript.Config{TotalBytes: 256 << 20, EntryBytes: 32 << 20, TerminalBytes: 4 << 20}
}

// wrap says what was attempted when an error occurred. ErrNotFound stays as it is.
func wrap(what string, err error) error {
	if err == nil || errors.Is(err, ErrNotFound) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// A folder makes a conversation of events.
type folder struct {
	cfg          transcript.Config
	conversation *transcript.Conversation
	asked        map[string]uint64 // entries of questions without an answer, by the Ref of the event that asked
}

func newFolder(cfg transcript.Config) *folder {
	return &folder{cfg: cfg, conversation: transcript.New(cfg), asked: map[string]uint64{}}
}

// apply folds an event into the conversation.
func (f *folder) apply(e *Event) {
	switch e.Kind {
	case EventUpdate:
		if u, err := acpv2.UnmarshalSessionUpdate(e.Data); err == nil {
			f.conversation.Apply(u)
		}
	case EventAsked:
		var req acpv2.RequestPermissionRequest
		if json.Unmarshal(e.Data, &req) == nil {
			f.asked[e.Ref], _ = f.conversation.Asked(&req)
		}
	case EventAnswered:
		var a Answered
		if json.Unmarshal(e.Data, &a) != nil {
			return
		}
		outcome, err := acpv2.UnmarshalRequestPermissionOutcome(a.Outcome)
		if entry, ok := f.asked[a.Asked]; ok && err == nil {
			f.conversation.Answered(entry, outcome)
			delete(f.asked, a.Asked)
		}
	case EventTurn:
		f.turnEnded(e.Data)
	case EventOutput:
		f.output(e.Data)
	case EventReset:
		f.conversation, f.asked = transcript.New(f.cfg), map[string]uint64{}
	}
}
