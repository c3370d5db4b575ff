package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// maxRecord bounds what is kept in one record, in bytes.
const maxRecord = engine.MaxData - 64<<10

// Kinds of records.
const (
	kindPrompt = journal.KindPrompt  // records.Prompt: a client's prompt, as its turn begins
	kindUpdate = journal.KindUpdate  // a session update of version 2
	kindChild  = journal.KindChild   // the same of the session of a subagent
	kindEnd    = journal.KindEnd     // records.End
	kindAsk    = journal.KindAsked   // records.Asked: the agent asks
	kindAnswer = journal.KindDecided // records.Decided: and has an answer
	kindLate   = journal.KindLate    // records.Decided: an answer that came when there was a decision, and counts for nothing
	kindNotice = journal.KindNotice  // records.Notice: what the gateway has to say
	kindShare  = journal.KindShared  // shareRecord
	kindOutput = journal.KindOutput  // records.Output

	kindDropped  = journal.KindDropped  // droppedRecord: a prompt that was cancelled before it began
	kindFork     = journal.KindFork     // forkRecord: what the session was forked from
	kindStart    = journal.KindStart    // an agent is started that outlives the gateway
	kindSent     = journal.KindSent     // sentRecord: what it is sent next
	kindAccepted = journal.KindAccepted // acceptedRecord: its answer to a prompt, in version 2
	kindMark     = journal.KindMark     // records.Stamp: of events without a record
)

// Says returns what a record says about its session: see [engine.Options].
func Says(r *engine.Record) (said engine.Said) {
	switch r.Kind {
	case kindPrompt:
		said.State = records.StateRunning
	case kindEnd:
		if end, err := records.DecodeEnd(r.Data); err == nil {
			said.State = end.State()
		}
	case kindShare:
		var s shareRecord
		if json.Unmarshal(r.Data, &s) == nil && s.User != "" {
			if s.Role == RoleNone {
				s.Role = ""
			}
			said.Share = &engine.Share{User: s.User, Role: s.Role}
		}
	}
	return said
}

// sentRecord is a frame for such an agent, before it is sent.
type sentRecord struct {
	Frame uint64 `json:"frame"`
	Wire  string `json:"wire,omitempty"` // the id of the request, which is a prompt
	Ask   string `json:"ask,omitempty"`  // or the question that is answered
	// Steer is the message of a user, as it is kept once the agent has it, if the request is one with that for the turn that
	// runs. Ask is its id then.
	Steer json.RawMessage `json:"steer,omitempty"`
}

// acceptedRecord is the answer to a prompt in version 2.
type acceptedRecord struct {
	Result json.RawMessage `json:"result"`
	records.Stamp
}

// droppedRecord is a prompt with a name that never began, since its client has cancelled it.
type droppedRecord struct {
	ID        string `json:"id"`
	By        string `json:"by"`
	Operation string `json:"op"`
	Sum       string `json:"sum"` // of what it says
}

// encode returns a record's data. It cannot fail for the types of this file.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("gateway: encode a record: %v", err)) // a defect of this package
	}
	return data
}

// maxEndMeta bounds the metadata of a turn that is kept, in bytes. More of it is left out.
const maxEndMeta = 16 << 10

// outcomeOfEnd returns how a turn has ended. seq is the number of the record.
func outcomeOfEnd(e *records.End, seq uint64) turnEnd {
	end := turnEnd{stop: cmp.Or(e.Stop, acp.StopEndTurn), seq: seq, by: e.By, meta: e.Meta}
	if why := e.Why(); why != "" {
		end.err = &jsonrpc.Failure{Message: why, Reason: records.ReasonAgent}
	}
	return end
}

// plainNotice returns the text of a notice for a client of version 1, which has no notices.
func plainNotice(title, description string) string {
	return strings.TrimSpace(title + " " + description)
}
