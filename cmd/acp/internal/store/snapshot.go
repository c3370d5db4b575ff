package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/journal"
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
	asked        map[string]uint64 // entries of questions without an answer, by their ids
}

func newFolder(cfg transcript.Config) *folder {
	return &folder{cfg: cfg, conversation: transcript.New(cfg), asked: map[string]uint64{}}
}

// apply folds a record into the conversation.
func (f *folder) apply(r *journal.Record) {
	switch r.Kind {
	case journal.KindUpdate, journal.KindPrompt:
		if u, err := acpv2.UnmarshalSessionUpdate(r.Data); err == nil {
			f.conversation.Apply(u)
		}
	case journal.KindAsked:
		var a Asked
		var req acpv2.RequestPermissionRequest
		if json.Unmarshal(r.Data, &a) == nil && json.Unmarshal(a.Request, &req) == nil {
			f.asked[a.ID], _ = f.conversation.Asked(&req)
		}
	case journal.KindDecided:
		var d Decided
		if json.Unmarshal(r.Data, &d) != nil {
			return
		}
		outcome, err := acpv2.UnmarshalRequestPermissionOutcome(d.Outcome)
		if entry, ok := f.asked[d.ID]; ok && err == nil {
			f.conversation.Answered(entry, outcome)
			delete(f.asked, d.ID)
		}
	case journal.KindEnd:
		f.turnEnded(r.Data)
	case journal.KindOutput:
		f.output(r.Data)
	case journal.KindReset:
		f.conversation, f.asked = transcript.New(f.cfg), map[string]uint64{}
	}
}
