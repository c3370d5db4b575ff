package transcript

import (
	"errors"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/wire"
)

// An EndedBy says who ended a turn.
type EndedBy string

// The parties that end turns.
const (
	EndedByAgent   EndedBy = "agent"   // it has said why
	EndedByUser    EndedBy = "user"    // who cancelled it
	EndedByTimeout EndedBy = "timeout" // a limit of the client's was reached
	EndedByCrash   EndedBy = "crash"   // the agent, or the connection to it, ended in the turn
	EndedByClient  EndedBy = "client"  // the client ended in the turn, or could not continue it
)

// A TurnEnd is the end of a turn as the client knows it. No update creates one.
type TurnEnd struct {
	core
	StopReason acpv2.StopReason // as the agent reported it, or empty
	By         EndedBy          // empty if not known
	Who        string           // the name of the user who ended it, if that is known and By is EndedByUser
	Said       string           // why the turn failed, as the agent said it
	Error      string           // why the turn failed, as the client said it

	// Others is the number of other turns of the session that were still running. If
	// it is 0, nothing from before this entry continues: see [Snapshot.TurnOver].
	Others int
}

// IsClean reports whether the agent ended the turn because it had finished.
func (t *TurnEnd) IsClean() bool {
	return (t.By == EndedByAgent || t.By == "") && t.Said == "" && t.Error == "" &&
		(t.StopReason == acpv2.StopReasonEndTurn || t.StopReason == "")
}

// EntryKind implements [Entry].
func (*TurnEnd) EntryKind() EntryKind { return KindTurnEnd }

// EntryID implements [Entry].
func (*TurnEnd) EntryID() string { return "" }

// Update implements [Entry].
func (*TurnEnd) Update() acpv2.SessionUpdate { return nil }

func (*TurnEnd) key() key                       { return key{} }
func (t *TurnEnd) edited(c *Conversation) Entry { return edit(c, t) }
func (t *TurnEnd) strip()                       { t.Who, t.Said, t.Error = "", "", "" }

// TurnEnded adds an entry for the end of a turn. It copies the fields of end.
func (c *Conversation) TurnEnded(end *TurnEnd) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turnEnded(end)
}

func (c *Conversation) turnEnded(end *TurnEnd) Change {
	loss := c.loss.Bytes
	t := &TurnEnd{Others: max(end.Others, 0)}
	c.add(t, 0)
	t.StopReason = acpv2.StopReason(strings.Clone(cut(string(end.StopReason), idBytes)))
	t.By = EndedBy(strings.Clone(cut(string(end.By), idBytes)))
	t.Who = strings.Clone(cut(end.Who, idBytes))
	t.Said = strings.Clone(short(c, &t.core, end.Said))
	t.Error = strings.Clone(short(c, &t.core, end.Error))
	c.charge(&t.core, partFixed, entryCost+len(t.StopReason)+len(t.By)+len(t.Who))
	c.charge(&t.core, partContent, len(t.Said)+len(t.Error))
	if t.Others == 0 {
		c.over = t.seq
		c.turns++
	}
	ch := changed(t, OpCreated)
	ch.Trimmed = c.enforce() || c.loss.Bytes != loss
	return ch
}

// TurnOver reports whether the turn of an entry is known to have ended, because a
// [TurnEnd] without other turns follows it. What has not ended by then will not continue,
// unless the agent works in the background.
func (s *Snapshot) TurnOver(seq uint64) bool { return seq < s.over }

func appendTurnEnd(dst []byte, t *TurnEnd) []byte {
	dst = appendString(dst, "stopReason", string(t.StopReason))
	dst = appendString(dst, "by", string(t.By))
	dst = appendString(dst, "who", t.Who)
	dst = appendString(dst, "said", t.Said)
	dst = appendString(dst, "error", t.Error)
	return appendCount(dst, "others", uint64(t.Others))
}

func (c *Conversation) restoreTurnEnd(data []byte) (Change, error) {
	var reason, by, who, said, failed, others []byte
	err := members(data, map[string]*[]byte{
		"stopReason": &reason, "by": &by, "who": &who, "said": &said, "error": &failed, "others": &others,
	})
	if err != nil {
		return Change{}, err
	}
	var t TurnEnd
	var n uint64
	text := func(data []byte, v *string) error {
		return readInto(data, func(d *wire.Decoder) { *v = d.Str() })
	}
	var r, b string
	err = errors.Join(text(reason, &r), text(by, &b), text(who, &t.Who), text(said, &t.Said), text(failed, &t.Error), readCount(others, &n))
	if err != nil {
		return Change{}, err
	}
	t.StopReason, t.By, t.Others = acpv2.StopReason(r), EndedBy(b), int(min(n, 1<<30))
	return c.turnEnded(&t), nil
}
