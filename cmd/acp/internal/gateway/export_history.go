package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// ExportHistory is [Export] for a client of a gateway, of version 2, which asks it for the history: page is
// [HistoryMethod]. A session may be compacted meanwhile. What is momentary, such as notices of the agent, is not in the
// recording, nor is a question without an answer.
func ExportHistory(ctx context.Context, id acp.SessionID, cwd, tool string, w io.Writer, page func(*HistoryRequest) (*HistoryAnswer, error)) error {
	pages := &pastPages{id: id, page: page}
	first, err := pages.next()
	if err != nil {
		return err
	}
	x := &export{id: string(id), cwd: cwd, at: time.Now()}
	if len(first.Updates) > 0 {
		x.at = first.Updates[0].Time
	}
	x.read = func(yield func(engine.Record) error) error {
		damaged := false
		for res := first; ; {
			for i := range res.Updates {
				all, err := res.Updates[i].records()
				if err != nil {
					return err
				}
				for _, r := range all {
					if err := yield(r); err != nil {
						return err
					}
				}
			}
			damaged = damaged || res.Damaged
			switch {
			case pages.over && damaged:
				return errDamaged
			case pages.over:
				return nil
			}
			var err error
			if res, err = pages.next(); err != nil {
				return err
			}
		}
	}
	return x.write(ctx, tool, w)
}

// errDamaged is the error of an export that lacks something.
var errDamaged = errors.New("part of the session is damaged, and left out")

// Past calls f with what is in the history of a session, in order, for a client that asks for it with page, as
// [ExportHistory] does. It ends with the first error. What is damaged is left out.
func Past(id acp.SessionID, page func(*HistoryRequest) (*HistoryAnswer, error), f func(*PastUpdate) error) error {
	return eachPage(&pastPages{id: id, page: page}, f)
}

func eachPage(pages *pastPages, f func(*PastUpdate) error) error {
	for !pages.over {
		res, err := pages.next()
		if err != nil {
			return err
		}
		for i := range res.Updates {
			if err := f(&res.Updates[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// PastRecords is [Past] with the records themselves, if the client may have them: see [PastUpdate.Kept]. It calls
// begin before the first update, and again if it has to start over because the session was compacted meanwhile.
func PastRecords(id acp.SessionID, page func(*HistoryRequest) (*HistoryAnswer, error), begin func(), f func(*PastUpdate) error) error {
	for again := 0; ; again++ {
		begin()
		if err := eachPage(&pastPages{id: id, page: page, raw: true}, f); !wasCompacted(err) || again == maxAgain {
			return err
		}
	}
}

// wasCompacted reports whether a page is missing since the session was compacted meanwhile.
func wasCompacted(err error) bool {
	f, ok := errors.AsType[*jsonrpc.Failure](err)
	return ok && f.Reason == reasonCompacted
}

// records returns records that say what an update of a history does.
func (u *PastUpdate) records() ([]engine.Record, error) {
	r := engine.Record{Seq: u.Cursor, From: u.Cursor, At: u.Time, Kind: kindUpdate, Data: (&records.Update{Update: u.Update, Child: u.Child}).Encode()}
	switch {
	case u.Child != "":
		r.Kind = kindChild
	case u.Kind == PastPrompt:
		said, err := acpv2.UnmarshalSessionUpdate(u.Update)
		if err != nil {
			return nil, err
		}
		m, ok := said.(*acp.UserMessage)
		if !ok {
			return nil, fmt.Errorf("a prompt is a %T", said)
		}
		content, _ := m.Content.Get()
		r.Kind = kindPrompt
		p := records.Prompt{ID: string(m.MessageID), From: u.Author, Content: content}
		if r.Data, err = p.Encode(); err != nil {
			return nil, err
		}
	case u.Kind == PastEnd:
		r.Kind, r.Data = kindEnd, encode(u.end())
	case u.Kind == PastDecided && u.Update == nil && u.Decided != nil:
		r.Kind, r.Data = kindAnswer, encode(records.Decided{ID: u.Decided.Ask, By: u.Decided.By, Outcome: records.Outcome(u.Decided.Outcome)})
		if u.Decided.Title == "" {
			break
		}
		asked := r // which the history does not have
		asked.Kind, asked.Data = kindAsk, encode(records.Asked{ID: u.Decided.Ask, Title: u.Decided.Title})
		return []engine.Record{asked, r}, nil
	}
	return []engine.Record{r}, nil
}

// end returns how a turn has ended.
func (u *PastUpdate) end() *records.End {
	end := &records.End{Stop: u.StopReason, Error: u.Error}
	said, err := acpv2.UnmarshalSessionUpdate(u.Update)
	idle, ok := said.(*acp.IdleStateUpdate)
	if err != nil || !ok {
		return end
	}
	var more history.End
	ownmeta.Read(idle.Meta, &more)
	end.By, end.Lost, end.Noted, end.Ended, end.Said, end.Others = more.By, more.Lost, more.Noted, more.Ended, more.Said, more.Others
	if more.Turn != history.LastTurn {
		end.Prompt = more.Turn
	}
	return end
}

// pastPages reads a history page by page. When the session is compacted meanwhile, which takes away the position after
// which the next page begins, it reads from the beginning again and leaves out what it has returned.
type pastPages struct {
	id   acp.SessionID
	page func(*HistoryRequest) (*HistoryAnswer, error)
	raw  bool // of records as they are
	over bool // there are no further pages

	after uint64 // the last record that was looked at
	done  uint64 // the last one that was returned
	tail  pieces // what the next record may have been merged with

	again int    // how often it has begun again
	skip  uint64 // up to this record, everything was returned before
	prev  uint64 // the last record that was left out
	cut   bool   // the next record may have something that was returned before
}

// maxAgain is how often a history is read from the beginning at most.
const maxAgain = 10

// next returns the next page.
func (p *pastPages) next() (*HistoryAnswer, error) {
	for {
		res, err := p.page(&HistoryRequest{SessionID: p.id, After: &p.after, Limit: maxHistory, Raw: p.raw})
		if wasCompacted(err) && p.again < maxAgain && !p.raw {
			p.again++
			p.after, p.skip, p.prev, p.cut = 0, p.done, 0, true
			continue
		}
		if err != nil {
			return nil, err
		}
		p.over, p.after = res.Last || res.To <= p.after, res.To
		if !p.raw {
			res.Updates, err = p.rest(res.Updates)
		}
		return res, err
	}
}

// rest returns the updates that were not returned before.
func (p *pastPages) rest(all []PastUpdate) (rest []PastUpdate, err error) {
	for _, u := range all {
		if u.Cursor <= p.skip {
			p.prev = u.Cursor
			continue
		}
		if p.cut {
			p.cut = false
			if u.Update, err = p.tail.remove(&u, p.prev); err != nil {
				return nil, err
			}
		}
		p.tail.add(&u)
		p.done = u.Cursor
		rest = append(rest, u)
	}
	return rest, nil
}

// pieces are the last pieces of a message, which become one when the session is compacted.
type pieces struct {
	of   piece
	all  []piece
	size int // of the texts
}

// A piece is a part of a message that consists of text.
type piece struct {
	child   acp.SessionID
	message acp.MessageID
	thought bool

	cursor uint64
	text   string
}

// isOf reports whether two pieces are of the same message.
func (p piece) isOf(o piece) bool {
	return p.child == o.child && p.message == o.message && p.thought == o.thought
}

// pieceOf returns an update as a piece of a message, if it is one.
func pieceOf(u *PastUpdate) (p piece, ok bool) {
	if u.Kind != PastUpdated {
		return p, false
	}
	said, err := acpv2.UnmarshalSessionUpdate(u.Update)
	if err != nil {
		return p, false
	}
	p = piece{child: u.Child, cursor: u.Cursor}
	var content acp.ContentBlock
	switch m := said.(type) {
	case *acp.AgentMessageChunk:
		p.message, content = m.MessageID, m.Content
	case *acp.AgentThoughtChunk:
		p.message, content, p.thought = m.MessageID, m.Content, true
	}
	text, ok := content.(*acp.TextContent)
	if !ok || p.message == "" {
		return p, false
	}
	p.text = text.Text
	return p, true
}

// update returns a piece as an update.
func (p piece) update() (json.RawMessage, error) {
	if p.thought {
		return json.Marshal(&acp.AgentThoughtChunk{MessageID: p.message, Content: acp.Text(p.text)})
	}
	return json.Marshal(&acp.AgentMessageChunk{MessageID: p.message, Content: acp.Text(p.text)})
}

// add adds an update. It keeps as much as may be merged.
func (ps *pieces) add(u *PastUpdate) {
	p, ok := pieceOf(u)
	if !ok || !p.isOf(ps.of) {
		*ps = pieces{of: p}
	}
	if !ok {
		return
	}
	ps.all = append(ps.all, p)
	ps.size += len(p.text)
	for ps.size > maxMerged && len(ps.all) > 1 {
		ps.size -= len(ps.all[0].text)
		ps.all = ps.all[1:]
	}
}

// remove returns an update without the pieces after a record, which were merged into it.
func (ps *pieces) remove(u *PastUpdate, after uint64) (json.RawMessage, error) {
	var gone strings.Builder
	for _, p := range ps.all {
		if p.cursor > after {
			gone.WriteString(p.text)
		}
	}
	if gone.Len() == 0 {
		return u.Update, nil
	}
	merged, ok := pieceOf(u)
	rest, has := strings.CutPrefix(merged.text, gone.String())
	if !ok || !has || !merged.isOf(ps.of) {
		return nil, errors.New("the session was compacted while it was read: export it again")
	}
	merged.text = rest
	return merged.update()
}
