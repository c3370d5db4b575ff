package history

import (
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/transcript"
)

// An End is what a gateway says, in _meta of the idle state that ends a turn, beyond the reason and the error.
type End struct {
	Turn string `json:"turn,omitempty"` // the message with which the turn began, unless it is the client's own
	By   string `json:"by,omitempty"`   // who has stopped it
	Lost bool   `json:"lost,omitempty"` // what ran it has ended in the middle
	// Noted says that a notice follows which says so.
	Noted bool `json:"noted,omitempty"`
	// Ended is who ended the turn, if the program that ran it has recorded that. Stop is the reason then, Said is why the
	// turn failed in the words of the agent, and Others is how many turns of the session continued.
	Ended  transcript.EndedBy `json:"ended,omitempty"`
	Stop   acpv2.StopReason   `json:"stop,omitempty"`
	Said   string             `json:"said,omitempty"`
	Others int                `json:"others,omitempty"`
}

// LastTurn is the Turn of an end that names none.
const LastTurn = "-"

// serverEnded is why a turn has not ended of which nothing else is known.
const serverEnded = "the server ended in the middle"

// EndOf returns how a turn has ended according to an idle state that a gateway sends, or nil if it does not end a turn.
func EndOf(u *acpv2.IdleStateUpdate) *transcript.TurnEnd {
	var said End
	ownmeta.Read(u.Meta, &said)
	if u.StopReason == "" && said.Turn == "" {
		return nil
	}
	end := &transcript.TurnEnd{StopReason: u.StopReason}
	if u.Error != nil {
		end.Error = u.Error.Message
	}
	switch {
	case said.Ended != "":
		if end.Error == said.Said {
			end.Error = ""
		}
		end.StopReason, end.By, end.Who, end.Said, end.Others = said.Stop, said.Ended, said.By, said.Said, said.Others
	case said.By != "":
		end.By, end.Who = transcript.EndedByUser, said.By
	case said.Lost && end.Error == "":
		end.By, end.Error = transcript.EndedByCrash, serverEnded
	}
	return end
}

// IsOthers reports whether an idle state is the end of a turn of another client, or of one that is in the history.
func IsOthers(u *acpv2.IdleStateUpdate) bool {
	var said End
	return ownmeta.Read(u.Meta, &said) && said.Turn != ""
}
