package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// A Retention says for how long sessions are kept, and how. They count from the last change of a session.
type Retention struct {
	// Raw is how long everything is kept as it was said. After that, pieces of a message are kept as one, and what an
	// agent of version 1 has sent is kept in the words of version 2 only. 0 means for ever.
	Raw time.Duration
	// Sessions is how long a session is kept at all; 0 means for ever.
	Sessions time.Duration
}

// Bounds of the work of one round, which there is once a minute.
const (
	retainAgain    = time.Minute
	retainSessions = 100     // that are looked at
	retainWork     = 10      // that are deleted, or compacted in part
	compactRecords = 5000    // that are replaced at a time
	maxMerged      = 1 << 20 // of a message that is kept as one, in bytes
)

// retain compacts and deletes what is old, until the gateway closes.
func (g *Gateway) retain() {
	again := time.NewTicker(retainAgain)
	defer again.Stop()
	cursor := ""
	for {
		select {
		case <-again.C:
		case <-g.ctx.Done():
			return
		}
		next, err := g.retainOnce(g.ctx, cursor, time.Now())
		if err != nil && g.ctx.Err() == nil {
			g.cfg.Logger.Warn("gateway: what is old cannot be removed", "error", err)
		}
		cursor = next
	}
}

// retainOnce looks at some sessions, and returns where to continue.
func (g *Gateway) retainOnce(ctx context.Context, cursor string, now time.Time) (next string, err error) {
	if g.isDraining() {
		return cursor, nil
	}
	page, err := g.cfg.Log.List(ctx, engine.Query{Limit: retainSessions, Cursor: cursor})
	if err != nil {
		return "", err
	}
	work := 0
	for i := range page.Sessions {
		info := &page.Sessions[i]
		if info.State == records.StateRunning || records.ByChat(info.ID) {
			continue
		}
		worked, err := g.retainSession(ctx, info, now)
		switch {
		case err == nil, errors.Is(err, engine.ErrOwned), errors.Is(err, engine.ErrFenced), errors.Is(err, engine.ErrNotFound):
		case ctx.Err() != nil:
			return "", err
		default:
			g.logger(info.ID).Warn("gateway: an old session is kept as it is", "error", err)
		}
		if worked {
			work++
		}
		if work == retainWork {
			return cursor, nil // the same page again
		}
	}
	return page.Next, nil
}

// retainSession deletes or compacts a session that is old and that nobody uses. It reports whether that was work.
func (g *Gateway) retainSession(ctx context.Context, info *engine.Session, now time.Time) (worked bool, err error) {
	p, age := g.cfg.Retention, now.Sub(info.Updated)
	if p.Sessions > 0 && age > p.Sessions {
		free, err := g.alone(ctx, info.ID, func(context.Context, *engine.Owned) error { return nil }) // nobody else has it
		if err != nil || !free {
			return false, err
		}
		if err := g.remove(ctx, info.ID); err != nil {
			return true, err
		}
		g.cfg.Observer.Happened(Event{Kind: EventDelete, Why: "retention"})
		return true, nil
	}
	if p.Raw == 0 || age <= p.Raw {
		return false, nil
	}
	var known attributes
	if err := known.decode(info.Attributes); err != nil {
		return false, err
	}
	if more, err := g.compactable(ctx, info.ID, known.Compacted); err != nil || !more {
		return false, err
	}
	_, err = g.alone(ctx, info.ID, func(ctx context.Context, own *engine.Owned) error {
		worked = true
		return g.compact(ctx, info, own, known.Compacted)
	})
	return worked, err
}

// compactable reports whether anything follows a record up to which a session is compacted. That it is, is a record, too.
func (g *Gateway) compactable(ctx context.Context, id string, after uint64) (bool, error) {
	err := g.cfg.Log.Fold(ctx, id, after, func(r engine.Record) error {
		if r.Kind != journal.KindSession {
			return errRead
		}
		return nil
	})
	return errors.Is(err, errRead), ignoring(err, errRead)
}

// alone calls f with a session that is not open, here or elsewhere. Who opens it meanwhile here waits. It reports whether
// f was called.
func (g *Gateway) alone(ctx context.Context, id string, f func(context.Context, *engine.Owned) error) (called bool, err error) {
	s, first, err := g.entry(id)
	if err != nil || !first {
		return false, err
	}
	defer func() {
		g.forget(s)
		s.cancel(errGone)
		close(s.opened)
	}()
	own, err := g.cfg.Log.Claim(ctx, id, g.Lease())
	if err != nil {
		return false, err
	}
	err = f(ctx, own)
	if e := g.release(own); err == nil {
		err = e
	}
	return true, err
}

// compact compacts what follows a record, as much as is done at a time, and keeps how far that is.
func (g *Gateway) compact(ctx context.Context, info *engine.Session, own *engine.Owned, after uint64) error {
	f := folder{upTo: after}
	errEnough := errors.New("that is all for now")
	err := g.cfg.Log.Fold(ctx, info.ID, after, func(r engine.Record) error {
		if err := f.add(r); err != nil {
			return err
		}
		if f.full() {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	f.close()
	err = own.Compact(ctx, f.gaps)
	if errors.As(err, new(*engine.DamageError)) { // then it stays as it is
		f.replaced, err = 0, nil
	}
	if err != nil {
		return err
	}
	upTo := f.upTo
	if _, err = g.cfg.Log.Update(ctx, info.ID, func(v *engine.Session) error {
		var known attributes
		if err := known.decode(v.Attributes); err != nil {
			return err
		}
		// What an agent in a holder needs is gone, as that is.
		known.Compacted, known.Held = upTo, nil
		v.Attributes = encode(known)
		v.Updated = v.Updated.Add(time.Nanosecond) // it was not used: others do not see it as new
		return nil
	}); err != nil {
		return err
	}
	g.cfg.Observer.Happened(Event{Kind: EventCompact, N: f.replaced})
	return nil
}

// reload sends the whole history to a client whose position is gone, and says so.
func (g *Gateway) reload(ctx context.Context, id string, as *acp.AgentSession, pos *position) (last uint64, err error) {
	pos.skip = 0
	if err := as.Notice(acp.NoticeSeverityInfo, "This session is shown from its beginning.", "The position that this client has is not in the session any more: it was compacted, or what was said last was lost."); err != nil && as.Conn().Version() > 1 {
		return 0, err
	}
	return g.replay(ctx, id, 0, as, pos)
}

// A folder finds out which records can be replaced by fewer or smaller ones.
type folder struct {
	gaps     []engine.Gap
	upTo     uint64 // the last record that was looked at
	replaced int    // records that are not there any more

	open engine.Gap // what is being merged; To is 0 if nothing is
	n    int        // of how many records
	less bool       // it is smaller than what it replaces
	text acp.SessionUpdate
	of   acp.SessionID // the subagent whose text that is, or ""
	size int
}

// full reports whether that is enough for one time.
func (f *folder) full() bool {
	n := 0
	for _, g := range f.gaps {
		n += int(g.To - g.From + 1)
	}
	return n >= compactRecords-1 || len(f.gaps) >= compactRecords
}

// add looks at the next record.
func (f *folder) add(r engine.Record) error {
	if r.Seq != f.upTo+1 { // it is a gap already
		f.close()
		f.upTo = r.Seq
		return nil
	}
	f.upTo = r.Seq
	switch r.Kind {
	case kindUpdate, kindChild:
		return f.update(r)
	case kindStart, kindSent, kindAccepted, kindMark: // for an agent that is gone
		if f.open.To == 0 || f.open.Left.Kind != "" || f.text != nil {
			f.close()
			f.open, f.less = engine.Gap{From: r.Seq}, true
		}
		f.open.To = r.Seq
		f.n++
	default:
		f.close()
	}
	return nil
}

// update looks at an update, of the session or of a subagent.
func (f *folder) update(r engine.Record) error {
	var record records.Update
	if err := json.Unmarshal(r.Data, &record); err != nil {
		return err
	}
	u, err := acpv2.UnmarshalSessionUpdate(record.Update)
	if err != nil {
		return err
	}
	less := record.Stamp != records.Stamp{}
	if merged, ok := join(f.text, u); ok && record.Child == f.of && f.size+len(record.Update) <= maxMerged {
		f.open.To, f.text, f.less = r.Seq, merged, true
		f.size += len(record.Update)
		f.n++
		return nil
	}
	f.close()
	if isPassing(u) {
		f.open, f.n, f.less = engine.Gap{From: r.Seq, To: r.Seq}, 1, true
		return nil
	}
	f.open, f.n, f.less = engine.Gap{From: r.Seq, To: r.Seq, Left: journal.Draft{Kind: r.Kind, Data: (&records.Update{Update: record.Update, Child: record.Child}).Encode()}}, 1, less
	f.text, f.of, f.size = u, record.Child, len(record.Update)
	return nil
}

// close ends what is being merged.
func (f *folder) close() {
	if f.open.To > 0 && f.less {
		if f.n > 1 && f.text != nil {
			if raw, err := json.Marshal(f.text); err == nil {
				f.open.Left.Data = (&records.Update{Update: raw, Child: f.of}).Encode()
			}
		}
		f.gaps = append(f.gaps, f.open)
		f.replaced += f.n
		if f.open.Left.Kind != "" {
			f.replaced--
		}
	}
	f.open, f.n, f.less, f.text, f.of, f.size = engine.Gap{}, 0, false, nil, "", 0
}

// join returns two pieces of one message as one, if they are that and are nothing but text.
func join(a, b acp.SessionUpdate) (acp.SessionUpdate, bool) {
	switch a := a.(type) {
	case *acp.AgentMessageChunk:
		if b, ok := b.(*acp.AgentMessageChunk); ok && a.MessageID != "" && a.MessageID == b.MessageID && a.Meta == nil && b.Meta == nil && a.Unknown == nil && b.Unknown == nil {
			text, ok := joinText(a.Content, b.Content)
			return &acp.AgentMessageChunk{MessageID: a.MessageID, Content: text}, ok
		}
	case *acp.AgentThoughtChunk:
		if b, ok := b.(*acp.AgentThoughtChunk); ok && a.MessageID != "" && a.MessageID == b.MessageID && a.Meta == nil && b.Meta == nil && a.Unknown == nil && b.Unknown == nil {
			text, ok := joinText(a.Content, b.Content)
			return &acp.AgentThoughtChunk{MessageID: a.MessageID, Content: text}, ok
		}
	}
	return nil, false
}

func joinText(a, b acp.ContentBlock) (acp.ContentBlock, bool) {
	x, ok := a.(*acp.TextContent)
	y, also := b.(*acp.TextContent)
	if !ok || !also || x.Annotations != nil || y.Annotations != nil || x.Meta != nil || y.Meta != nil || x.Unknown != nil || y.Unknown != nil {
		return nil, false
	}
	return acp.Text(x.Text + y.Text), true
}

// compacted returns up to which record the session is compacted, of those up to last.
func (s *session) compacted(last uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(s.known.Compacted, last)
}
