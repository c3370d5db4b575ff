package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/jsonrpc"
)

const (
	// maxTail bounds the records of a history that is sent in part.
	maxTail = 5000
	// maxBegin bounds the further records that are sent with it, so that it begins with a whole message.
	maxBegin = 256
	// block is how many records are read at a time by those who read backwards.
	block = 500
)

// checkTail returns why a request is refused that asks for the end of a history, or nil.
func (m *meta) checkTail() error {
	if m.Tail != nil && (*m.Tail < 0 || *m.Tail > maxTail) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "a tail of %d records: 0 to %d can be sent", *m.Tail, maxTail)
	}
	return nil
}

// resumeTail sends the end of a session whose last record is last, and what a client must know of the rest; or nothing
// to a client that has a position in it, which is sent what follows later. It returns after which record the history of
// the client begins, and where what follows begins.
func (g *Gateway) resumeTail(ctx context.Context, as *acp.AgentSession, m *meta, last uint64, pos *position) (from *uint64, after uint64, err error) {
	id := string(as.ID())
	if err := m.checkTail(); err != nil {
		return nil, 0, err
	}
	if m.hasCursor {
		cursor, skip, err := g.from(ctx, id, m, last)
		switch {
		case errors.Is(err, engine.ErrCompacted): // it is sent the end, which it can tell by where that begins
		case err != nil:
			return nil, 0, err
		case last-cursor <= uint64(*m.Tail):
			pos.resume(cursor, skip, m.Mark)
			return &cursor, cursor, g.recall(ctx, as, cursor, pos)
		}
	}
	start, err := g.tailOf(ctx, id, last, *m.Tail)
	if err != nil {
		return nil, 0, err
	}
	if err := g.sendBackdrop(ctx, as, last); err != nil {
		return nil, 0, err
	}
	after, err = g.replay(ctx, id, start, as, pos)
	return &start, after, err
}

// tailOf returns after which record the last n ones begin, and some more if a message began shortly before.
func (g *Gateway) tailOf(ctx context.Context, id string, last uint64, n int) (uint64, error) {
	if last <= uint64(n) {
		return 0, nil
	}
	at, err := g.cfg.Log.Anchor(ctx, id, last-uint64(n))
	if err != nil || at == 0 || n == 0 {
		return at, err
	}
	start, err := g.cfg.Log.Anchor(ctx, id, at-min(at, maxBegin))
	if err != nil {
		return 0, err
	}
	begin, before, message := at, start, acp.MessageID("")
	if start > 0 {
		message = unknownMessage
	}
	err = g.cfg.Log.Fold(ctx, id, start, func(r engine.Record) error {
		if before > at {
			return errRead
		}
		var begins bool
		if begins, message = beginsAt(r, message); begins {
			begin = before
		}
		before = r.Seq // the next one may stand for several
		return nil
	})
	return begin, ignoring(err, errRead)
}

// unknownMessage is the message of records of which nothing is known. No message has this id.
const unknownMessage acp.MessageID = "\x00"

// beginsAt reports whether something begins with a record that follows a piece of a message, and of which message the
// record is a piece.
func beginsAt(r engine.Record, before acp.MessageID) (begins bool, message acp.MessageID) {
	switch r.Kind {
	case kindPrompt, kindNotice:
		return true, ""
	case kindUpdate:
	default:
		return false, before
	}
	u, err := records.DecodeUpdate(r.Data)
	if err != nil {
		return false, before
	}
	switch u := u.(type) {
	case *acp.AgentMessageChunk:
		message = u.MessageID
	case *acp.AgentThoughtChunk:
		message = u.MessageID
	case *acp.AgentMessage:
		message = u.MessageID
	case *acp.AgentThought:
		message = u.MessageID
	case *acp.ToolCallUpdate:
		_, titled := u.Title.Get() // what comes later about a call has none, as a rule
		return titled, ""
	default:
		return false, before
	}
	return message != before && before != unknownMessage, message
}

// turnAt returns the record of the prompt whose turn runs after a record, or 0 if none does. That is exact where the state
// of the session is not, which follows the record of the end.
func (g *Gateway) turnAt(ctx context.Context, id string, seq uint64) (prompt uint64, err error) {
	for end, size := seq, uint64(block); end > 0; size = min(2*size, 16*block) {
		start, err := g.cfg.Log.Anchor(ctx, id, end-min(end, size))
		if err != nil {
			return 0, err
		}
		found := false
		err = g.cfg.Log.Fold(ctx, id, start, func(r engine.Record) error {
			switch {
			case r.Seq > end:
				return errRead
			case r.Kind == kindPrompt:
				found, prompt = true, r.Seq
			case r.Kind == kindEnd:
				found, prompt = true, 0
			}
			return nil
		})
		if errors.Is(err, engine.ErrCompacted) { // since then
			continue
		}
		if err != nil && !errors.Is(err, errRead) || found {
			return prompt, ignoring(err, errRead)
		}
		end = start
	}
	return 0, nil
}

// maxRecalled bounds the records of a turn that are recalled for a client that resumes.
const maxRecalled = 20_000

// recall has what translates the session for a client of version 1 know what the client has of the turn that runs after a
// record: the tool calls and terminals that continue, and the messages that it may repeat as a whole. The client is
// sent nothing. Of a long turn that is the end.
func (g *Gateway) recall(ctx context.Context, as *acp.AgentSession, after uint64, pos *position) error {
	id := string(as.ID())
	if as.Conn().Version() > 1 || after == 0 || pos.children.pos == nil { // it has the session twice, and knows it
		return nil
	}
	from, err := g.turnAt(ctx, id, after)
	if err != nil || from == 0 {
		return err
	}
	if after-from > maxRecalled {
		if from, err = g.cfg.Log.Anchor(ctx, id, after-maxRecalled); err != nil {
			return err
		}
	}
	pos.recall(true)
	defer pos.recall(false)
	err = g.cfg.Log.Fold(ctx, id, from, func(r engine.Record) error {
		if r.Seq > after {
			return errRead
		}
		if r.Kind != kindUpdate && r.Kind != kindChild {
			return nil
		}
		child, u, err := records.DecodeChild(r.Data)
		switch u.(type) {
		case *acp.ConfigOptionUpdate, *acp.AvailableCommandsUpdate, *acp.SessionInfoUpdate, *acp.UsageUpdate, *acpv2.PromptSuggestionsUpdate:
			return nil // the client is sent what counts now
		}
		if err != nil {
			return err
		}
		if r.Kind == kindChild {
			return pos.children.of(child).Send(u)
		}
		return as.Send(u)
	})
	return ignoring(err, errRead)
}

// ignoring returns an error unless it is one that is expected.
func ignoring(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// A backdrop is what a client must know of a session that is sent only its end, beyond its options, commands, title and
// state.
type backdrop struct {
	upTo  uint64 // the last record that was looked at
	plans []plan // that are there, in the order in which they came
	usage *acp.UsageUpdate
}

type plan struct {
	id   acp.PlanID
	size int // in bytes
	sent *acp.PlanUpdate
}

const (
	// maxBackdrop bounds the records that are looked at for a backdrop.
	maxBackdrop = 100_000
	// maxPlans bounds the plans of a backdrop, and maxPlanBytes their size in all: those that have not changed for long
	// are left out.
	maxPlans     = 8
	maxPlanBytes = 256 << 10
	// maxBackdrops bounds the sessions whose backdrop is remembered, and backdropFor for how long that is since it was asked
	// for.
	maxBackdrops = 256
	backdropFor  = time.Hour
)

// backdrops remembers the backdrops of sessions, which grow with them. The zero value is ready for use.
type backdrops struct {
	making flights

	mu   sync.Mutex
	by   map[string]*remembered
	ring []string // in the order in which they came
}

// A remembered backdrop is one that was asked for.
type remembered struct {
	backdrop
	at time.Time
}

func (b *backdrops) get(id string) (d backdrop) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.by[id]; r != nil {
		r.at = time.Now()
		return r.backdrop
	}
	return backdrop{}
}

func (b *backdrops) put(making *flight, d backdrop) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if making.stale.Load() {
		return
	}
	if b.by == nil {
		b.by = make(map[string]*remembered)
	}
	id := making.id
	if b.by[id] == nil {
		if len(b.ring) == maxBackdrops {
			delete(b.by, b.ring[0])
			b.ring = slices.Delete(b.ring, 0, 1)
		}
		b.ring = append(b.ring, id)
	}
	b.by[id] = &remembered{d, time.Now()}
}

// forget drops those that are to go.
func (b *backdrops) forget(goes func(id string, r *remembered) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ring = slices.DeleteFunc(b.ring, func(id string) bool {
		if !goes(id, b.by[id]) {
			return false
		}
		delete(b.by, id)
		return true
	})
}

// drop drops that of a session that was deleted.
func (b *backdrops) drop(id string) {
	b.making.spoil(id)
	b.forget(func(other string, _ *remembered) bool { return other == id })
}

// expire drops those that were not asked for lately.
func (b *backdrops) expire() {
	b.forget(func(_ string, r *remembered) bool { return time.Since(r.at) >= backdropFor })
}

// backdrop returns that of a session after a record. One is made of a session at a time.
func (g *Gateway) backdrop(ctx context.Context, id string, last uint64) (backdrop, error) {
	making, err := g.backdrops.making.begin(ctx, id)
	if err != nil {
		return backdrop{}, err
	}
	defer making.end()
	d := g.backdrops.get(id)
	if d.upTo == last {
		return d, nil
	}
	keep := true
	if d.upTo > last { // somebody else was faster, or the log has lost its end
		head, err := g.cfg.Log.Head(ctx, id)
		keep = err == nil && d.upTo > head.Seq
		d = backdrop{}
	}
	for range 2 {
		start, err := g.cfg.Log.Anchor(ctx, id, max(d.upTo, last-min(last, maxBackdrop)))
		if err != nil {
			return d, err
		}
		d.plans = slices.Clone(d.plans)
		err = g.cfg.Log.Fold(ctx, id, start, func(r engine.Record) error {
			if r.Seq > last {
				return errRead
			}
			d.add(r)
			d.upTo = r.Seq
			return nil
		})
		if errors.Is(err, engine.ErrCompacted) {
			d = backdrop{}
			continue
		}
		if err != nil && !errors.Is(err, errRead) {
			return d, err
		}
		break
	}
	if keep {
		g.backdrops.put(making, d)
	}
	return d, nil
}

// add looks at the next record.
func (d *backdrop) add(r engine.Record) {
	if r.Kind != kindUpdate || !bytes.Contains(r.Data, []byte(`"plan_`)) && !bytes.Contains(r.Data, []byte(`"usage_update"`)) {
		return
	}
	u, err := records.DecodeUpdate(r.Data)
	if err != nil {
		return
	}
	switch u := u.(type) {
	case *acp.PlanUpdate:
		d.plan(u)
	case *acp.PlanRemoved:
		d.plans = slices.DeleteFunc(d.plans, func(p plan) bool { return p.id == u.PlanID })
	case *acp.UsageUpdate:
		d.usage = usageAfter(d.usage, u)
	}
}

// usageAfter returns the usage of a session after an update, which may leave out the cost, and metadata such as a limit. before
// may be nil.
func usageAfter(before, u *acp.UsageUpdate) *acp.UsageUpdate {
	next := *u
	if before != nil && next.Cost.IsZero() {
		next.Cost = before.Cost
	}
	if before != nil && len(before.Meta) > 0 && len(before.Meta)+len(next.Meta) <= maxEndMeta {
		var all map[string]json.RawMessage
		if json.Unmarshal(before.Meta, &all) == nil && (len(next.Meta) == 0 || json.Unmarshal(next.Meta, &all) == nil) && len(all) > 0 {
			next.Meta = encode(all)
		}
	}
	return &next
}

// plan notes a plan, instead of an earlier one with its id.
func (d *backdrop) plan(u *acp.PlanUpdate) {
	id := translate.PlanIDOf(u.Plan)
	d.plans = slices.DeleteFunc(d.plans, func(p plan) bool { return p.id == id })
	raw, err := json.Marshal(u)
	if err != nil || len(raw) > maxPlanBytes {
		return
	}
	d.plans = append(d.plans, plan{id, len(raw), u})
	size := 0
	for i := len(d.plans) - 1; i >= 0; i-- {
		if size += d.plans[i].size; size > maxPlanBytes || len(d.plans)-i > maxPlans {
			d.plans = slices.Delete(d.plans, 0, i+1)
			return
		}
	}
}

// sendBackdrop sends a client the plans and the usage of a session, as they are after a record.
func (g *Gateway) sendBackdrop(ctx context.Context, as *acp.AgentSession, last uint64) error {
	d, err := g.backdrop(ctx, string(as.ID()), last)
	if err != nil {
		return err
	}
	for _, p := range d.plans {
		if err := as.Send(p.sent); err != nil {
			return err
		}
	}
	if d.usage != nil {
		return as.Send(d.usage)
	}
	return nil
}
