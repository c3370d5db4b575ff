package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/jsonrpc"
)

// HistoryMethod returns a part of what was said in a session, to whoever may see the session. The session need not be
// open.
var HistoryMethod = jsonrpc.Method[HistoryRequest, HistoryAnswer]{Name: ownmeta.Method + "history"}

// A HistoryRequest asks for the records up to a position, or for those that follow one. Positions are numbers of records,
// as the cursor of an update is; without one the last records are meant.
type HistoryRequest struct {
	SessionID acp.SessionID `json:"sessionId"`
	Before    *uint64       `json:"before,omitempty"` // the last record that is wanted
	After     *uint64       `json:"after,omitempty"`  // or the one before the first that is
	Limit     int           `json:"limit,omitempty"`  // how many records are looked at; 0 means 500
	// Raw asks for the records as they are kept. Only the owner of a session gets them.
	Raw bool `json:"raw,omitempty"`
}

const (
	// maxHistory bounds the records of an answer, and pageHistory is how many there are by default.
	maxHistory  = 2000
	pageHistory = 500
	// maxHistoryBytes bounds the updates of an answer, in bytes, unless the first record alone has more.
	maxHistoryBytes = 4 << 20
	// pastCost is what an update in an answer counts beyond itself.
	pastCost = 160
)

// A HistoryAnswer has what was said, in order.
type HistoryAnswer struct {
	Updates []PastUpdate `json:"updates"`
	From    uint64       `json:"from"`  // the record before the first that was looked at: what is before is "before" this
	To      uint64       `json:"to"`    // the last one that was looked at: what follows is "after" this
	First   bool         `json:"first"` // there is nothing before
	Last    bool         `json:"last"`  // there was nothing after, when this was read
	Damaged bool         `json:"damaged,omitempty"`
}

// A PastUpdate is what a client is sent that loads the session, or that was there: an update, the end of a turn or the
// answer to a question.
type PastUpdate struct {
	Cursor     uint64          `json:"cursor"` // the number of its record
	Mark       string          `json:"mark"`   // with which a client may resume after the record
	Time       time.Time       `json:"time"`
	Kind       PastKind        `json:"kind"`
	Child      acp.SessionID   `json:"child,omitempty"`      // the session of the subagent that the update is about
	Author     string          `json:"author,omitempty"`     // of a prompt
	Update     json.RawMessage `json:"update,omitempty"`     // as session/update has it, in the version of the client
	StopReason acp.StopReason  `json:"stopReason,omitempty"` // of the end of a turn
	Error      string          `json:"error,omitempty"`      // instead of that
	Decided    *Decided        `json:"decided,omitempty"`    // an answer
	// Record is the record as it is kept, in place of everything but Cursor and Time.
	Record *PastRecord `json:"record,omitempty"`
}

// A PastRecord is a record without what is about the agent that runs.
type PastRecord struct {
	Kind engine.Kind     `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// reasonCompacted is why there are no records after a position, which a client may have had from an earlier answer.
const reasonCompacted = "compacted"

// A PastKind is what a PastUpdate is.
type PastKind string

// The kinds.
const (
	PastPrompt  PastKind = "prompt"
	PastUpdated PastKind = "update" // of the agent
	PastNotice  PastKind = "notice" // of the gateway
	PastEnd     PastKind = "end"
	PastDecided PastKind = "decided"
)

// history serves [HistoryMethod].
func (g *Gateway) history(ctx context.Context, p *HistoryRequest) (*HistoryAnswer, error) {
	who, info, err := g.lookUp(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	limit := p.Limit
	switch {
	case p.Before != nil && p.After != nil:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "before and after exclude each other")
	case limit < 0 || limit > maxHistory:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "a limit of %d records: 1 to %d can be asked for", limit, maxHistory)
	case limit == 0:
		limit = pageHistory
	}
	past := past{g: g, id: info.ID, raw: p.Raw && who.owns()}
	if c := acp.AgentConnFrom(ctx); c != nil {
		past.caps = c.CapabilitiesV1()
	}
	head := info.Head.Seq
	var res *HistoryAnswer
	if p.After != nil {
		res, err = past.forwards(ctx, *p.After, uint64(limit), head)
	} else {
		end := head
		if p.Before != nil {
			end = *p.Before
		}
		if end > head {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the position %d is after the end, which is %d", end, head)
		}
		res, err = past.backwards(ctx, end, uint64(limit))
	}
	switch {
	case errors.Is(err, engine.ErrBeyond):
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the position is after the end, which is %d", head)
	case errors.Is(err, engine.ErrCompacted):
		return nil, &jsonrpc.Failure{Message: "the session was compacted, and has no such position any more: load it again", Reason: reasonCompacted}
	case err != nil:
		return nil, err
	}
	res.First, res.Last = res.From == 0, res.To >= head
	return res, nil
}

// A past is a part of a history that is being read.
type past struct {
	g       *Gateway
	id      string
	raw     bool                      // records are returned as they are
	caps    *acpv1.ClientCapabilities // of a client of version 1; nil for another one
	records []pastRecord              // what was read, without those that were dropped since there are too many bytes
	later   [][]pastRecord            // what follows that, the last part first
	bytes   int                       // of all of these
	dropped uint64                    // the last record that was
	damaged bool
}

// A pastRecord is what a client gets of a record, which may be nothing.
type pastRecord struct {
	seq    uint64
	update *PastUpdate
	bytes  int
}

func (p *past) record(r *engine.Record) (pastRecord, error) {
	of := pastOf
	if p.raw {
		of = rawOf
	}
	u, err := of(p.id, r)
	if err != nil {
		return pastRecord{}, fmt.Errorf("record %d: %w", r.Seq, err)
	}
	next := pastRecord{seq: r.Seq, update: u}
	if u != nil {
		if next.bytes = len(u.Update) + pastCost; u.Record != nil {
			next.bytes += len(u.Record.Data)
		}
	}
	return next, nil
}

// rawOf returns a record as the owner of its session gets it: without secrets, without names that only the server
// knows, and without what is about the running agent. It returns nothing for a kind that is not part of the
// conversation, and for data of the wrong form.
func rawOf(_ string, r *engine.Record) (*PastUpdate, error) {
	u := &PastUpdate{Cursor: r.Seq, Time: r.At, Record: &PastRecord{r.Kind, r.Data}}
	var err error
	switch r.Kind {
	case kindUpdate, kindChild, kindNotice, kindEnd, kindOutput, kindDropped, journal.KindReset, journal.KindLost:
		return u, nil
	case kindPrompt:
		var p records.Prompt
		if p, err = records.DecodePrompt(r.Data); err == nil {
			p.From, p.By, p.Operation = p.Author(), "", ""
			u.Record.Data, err = p.Encode()
		}
	case kindAsk:
		var a records.Asked
		err = json.Unmarshal(r.Data, &a)
		a.Raw, a.Stamp = nil, records.Stamp{}
		u.Record.Data = encode(a)
	case kindAnswer:
		var d records.Decided
		err = json.Unmarshal(r.Data, &d)
		d.By, d.Key, d.Content = "", "", nil
		u.Record.Data = encode(d)
	case journal.KindSession:
		var d records.Description
		err = json.Unmarshal(r.Data, &d)
		d.Attributes, d.Owner = nil, ""
		u.Record.Data = encode(d)
	default:
		return nil, nil
	}
	if err != nil { // which those who read a file leave out, too
		return nil, nil
	}
	return u, nil
}

// pastOf returns what a client of version 2 gets of a record, which may be nothing.
func pastOf(id string, r *engine.Record) (u *PastUpdate, err error) {
	u = &PastUpdate{Cursor: r.Seq, Mark: markOf(r), Time: r.At.UTC().Truncate(time.Millisecond)}
	var say acp.SessionUpdate
	switch r.Kind {
	case kindChild:
		child, said, err := records.DecodeChild(r.Data)
		if err != nil || isPassing(said) {
			return nil, err
		}
		u.Kind, u.Child = PastUpdated, child
		u.Update, err = records.RawUpdate(r.Data)
		return u, err
	case kindUpdate:
		var raw json.RawMessage
		if raw, err = records.RawUpdate(r.Data); err != nil {
			return nil, err
		}
		said, err := acpv2.UnmarshalSessionUpdate(raw)
		if err != nil || isPassing(said) {
			return nil, err
		}
		u.Kind, u.Update = PastUpdated, raw
		return u, nil
	case kindPrompt:
		p, err := records.DecodePrompt(r.Data)
		if err != nil {
			return nil, err
		}
		u.Kind, u.Author = PastPrompt, p.Author()
		say = p.Message("")
	case kindNotice:
		var n records.Notice
		if err = json.Unmarshal(r.Data, &n); err != nil {
			return nil, err
		}
		u.Kind = PastNotice
		say = n.Update()
	case kindEnd:
		end, err := records.DecodeEnd(r.Data)
		if err != nil {
			return nil, err
		}
		u.Kind, u.StopReason, u.Error = PastEnd, end.Stop, end.Why()
		say = end.Update()
	case kindAnswer:
		var a records.Decided
		if err = json.Unmarshal(r.Data, &a); err != nil {
			return nil, err
		}
		u.Kind, u.Decided, u.Child = PastDecided, decidedIn(id, &a), a.Child
		if say = a.Update(r); say == nil {
			return u, nil
		}
	case kindOutput:
		var o records.Output
		if err = json.Unmarshal(r.Data, &o); err != nil {
			return nil, err
		}
		u.Kind = PastUpdated
		say = o.Update()
	default:
		return nil, nil
	}
	u.Update, err = json.Marshal(say)
	return u, err
}

// isPassing reports whether an update is not in the history. Notices are, as they are in lists of what was said.
func isPassing(u acp.SessionUpdate) bool {
	_, ok := u.(*acp.Notice)
	return acp.IsMomentary(u) && !ok
}

// isMomentary reports whether a client that loads a session is not sent an update. A notice of this program is sent: it
// can be all that is known of something.
func isMomentary(u acp.SessionUpdate) bool {
	n, ok := u.(*acp.Notice)
	return acp.IsMomentary(u) && (!ok || !ownmeta.Read(n.Meta, new(any)))
}

// backwards reads the records up to a position.
func (p *past) backwards(ctx context.Context, end, limit uint64) (*HistoryAnswer, error) {
	log := p.g.cfg.Log
	if at, err := log.Anchor(ctx, p.id, end); err != nil {
		return nil, err
	} else if at != end {
		return nil, engine.ErrCompacted
	}
	from := end
	for from > 0 && limit > 0 && p.dropped == 0 {
		start, err := log.Anchor(ctx, p.id, from-min(from, limit, block))
		if err != nil {
			return nil, err
		}
		if err := p.read(ctx, start, from); err != nil {
			return nil, err
		}
		p.later, p.records = append(p.later, p.records), nil
		limit -= min(limit, from-start)
		from = max(start, p.dropped)
	}
	slices.Reverse(p.later)
	p.records = slices.Concat(p.later...)
	return p.answer(from, end)
}

// read reads the records between two positions.
func (p *past) read(ctx context.Context, start, end uint64) error {
	at := start
	err := p.reading(p.g.cfg.Log.Read(ctx, p.id, start, func(r engine.Record) error {
		if r.From > end {
			return errRead
		}
		p.follows(&at, &r)
		next, err := p.record(&r)
		if err != nil {
			return err
		}
		p.records = append(p.records, next)
		p.bytes += next.bytes
		for p.bytes > maxHistoryBytes && len(p.records)+len(p.later) > 1 && len(p.records) > 0 {
			p.dropped = p.records[0].seq
			p.bytes -= p.records[0].bytes
			p.records = p.records[1:]
		}
		return nil
	}))
	p.damaged = p.damaged || err == nil && at < end
	return err
}

// follows notes that records are missing between a position and a record, and moves the position. A page that ends before the
// log does not learn of damage in another way.
func (p *past) follows(at *uint64, r *engine.Record) {
	p.damaged = p.damaged || r.From != *at+1
	*at = r.Seq
}

// reading returns why something cannot be read. Damage is no reason: what is before it was read.
func (p *past) reading(err error) error {
	if damage := (*engine.DamageError)(nil); errors.As(err, &damage) {
		p.damaged = true
		return nil
	}
	return ignoring(err, errRead)
}

// forwards reads the records after a position.
func (p *past) forwards(ctx context.Context, after, limit, head uint64) (*HistoryAnswer, error) {
	to, at, cut := after, after, false
	err := p.reading(p.g.cfg.Log.Read(ctx, p.id, after, func(r engine.Record) error {
		if cut = uint64(len(p.records)) == limit; cut {
			return errRead
		}
		next, err := p.record(&r)
		if err != nil {
			return err
		}
		p.bytes += next.bytes
		if cut = p.bytes > maxHistoryBytes && len(p.records) > 0; cut {
			return errRead
		}
		p.follows(&at, &r)
		p.records, to = append(p.records, next), r.Seq
		return nil
	}))
	if err != nil {
		return nil, err
	}
	if !cut && to < head { // what follows cannot be read
		to, p.damaged = head, true
	}
	return p.answer(after, to)
}

// answer returns what was read.
func (p *past) answer(from, to uint64) (*HistoryAnswer, error) {
	res := &HistoryAnswer{Updates: make([]PastUpdate, 0, len(p.records)), From: from, To: to, Damaged: p.damaged}
	v1 := make(map[acp.SessionID]*translate.ToV1) // of the session itself, and of each subagent
	for _, r := range p.records {
		switch {
		case r.update == nil || p.caps != nil && r.update.Record == nil && p.caps.Subagents == nil && r.update.Child != "": // it knows no subagents
		case p.caps == nil || r.update.Update == nil:
			res.Updates = append(res.Updates, *r.update)
		default:
			to := v1[r.update.Child]
			if to == nil {
				to = &translate.ToV1{Caps: *p.caps}
				v1[r.update.Child] = to
			}
			all, err := r.update.toV1(to)
			if err != nil {
				return nil, err
			}
			res.Updates = append(res.Updates, all...)
		}
	}
	return res, nil
}

// toV1 returns what a client of version 1 gets: some updates, or one.
func (u PastUpdate) toV1(v1 *translate.ToV1) (all []PastUpdate, err error) {
	said, err := acpv2.UnmarshalSessionUpdate(u.Update)
	if err != nil {
		return nil, err
	}
	switch n := said.(type) {
	case *acp.Notice:
		if u.Kind == PastDecided { // nor such a message
			u.Update = nil
			return []PastUpdate{u}, nil
		}
		said = lineOf(u.Cursor, plainNotice(n.Title, n.Description))
	case *acp.IdleStateUpdate: // version 1 has no such update
		u.Update = nil
		if text := lineOfEnd(n); text != "" {
			if u.Update, err = json.Marshal(lineOf(u.Cursor, text)); err != nil {
				return nil, err
			}
		}
		return []PastUpdate{u}, nil
	}
	for _, v := range v1.Append(nil, said) {
		if u.Update, err = json.Marshal(v); err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}
