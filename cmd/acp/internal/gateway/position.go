package gateway

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/jsonrpc"
)

// A position is where a client is in a session. Each session/update has it in _meta:
//
//	{"github.com/goacp/acp":{"cursor":12,"mark":"5f0a91c2","part":1}}
//
// cursor is the number of the last record of which the client has everything, mark the beginning of its hash, and part
// how many updates of the next record it has. A client that resumes with what it got last gets exactly what follows.
type position struct {
	mu      sync.Mutex
	known   bool     // whether at was called
	sending bool     // updates of the record after cursor are being sent
	update  *decoded // of that record; nil for other records
	cursor  uint64
	mark    string
	part    int // updates of the record after cursor that were sent
	skip    int // of those of the record skipOf not to send, since the client has them
	skipOf  uint64
	hidden  int                    // how often the session is being replayed, by which positions make no sense
	recalls bool                   // what is sent is what the client has
	running acp.RunningStateUpdate // of the records; others are no part of one

	children children
}

// positionKey is a session as a client has it.
type positionKey struct {
	conn    *jsonrpc.Conn
	session acp.SessionID
}

// position registers where a client is in a session. It returns the one there is, if the client has the session twice.
func (g *Gateway) position(as *acp.AgentSession) (p *position, forget func()) {
	key := positionKey{as.Conn().Conn(), as.ID()}
	p = &position{children: children{g: g, as: as}}
	if there, ok := g.positions.LoadOrStore(key, p); ok {
		there := there.(*position)
		there.hide(1)
		return p, func() { there.hide(-1) }
	}
	p.children.pos = p
	return p, func() {
		g.positions.CompareAndDelete(key, p)
		p.children.forget()
	}
}

func (p *position) recall(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recalls = is
}

func (p *position) hide(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hidden += n
}

// at is called before what a record says is sent, and past after that.
func (p *position) at(r *engine.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cursor != r.Seq-1 {
		p.cursor, p.mark = r.Seq-1, ""
	}
	p.known, p.sending, p.part, p.update = true, true, 0, nil
	if r.Seq != p.skipOf {
		p.skip = 0
	}
}

func (p *position) past(r *engine.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cursor = r.Seq
	if p.update != nil {
		p.mark = p.update.mark
	} else {
		p.mark = markOf(r)
	}
	p.known, p.sending, p.part, p.skip, p.update = true, false, 0, 0, nil
}

// says is called between at and past with the update that the record is, if it is one.
func (p *position) says(d *decoded) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.update = d
}

// resume begins at a record of which the client has everything, with some updates of the next one, skip.
func (p *position) resume(cursor uint64, skip int, mark string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cursor, p.mark, p.skip, p.skipOf = cursor, mark, skip, cursor+1
}

// has reports, between at and past, whether the client has the next update of the record.
func (p *position) has() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.part < p.skip
}

// maxMark is the length of a mark.
const maxMark = 8

func markOf(r *engine.Record) string { return hex.EncodeToString(r.Hash[:maxMark/2]) }

// next returns what the next update says of where the client is, the update of the record that is being sent, if any, or
// that the next update is not to be sent. state is that update, if it says one.
func (p *position) next(state acp.StateUpdate) (at spot, d *decoded, skip bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.recalls {
		return spot{}, nil, true
	}
	if p.hidden > 0 || !p.known {
		return spot{}, nil, false
	}
	if p.isAside(state) {
		return spot{true, p.cursor, p.mark, p.part}, nil, false
	}
	if p.sending {
		if p.part++; p.part <= p.skip {
			return spot{}, nil, true
		}
	}
	return spot{true, p.cursor, p.mark, p.part}, p.update, false
}

// isAside reports whether a state is no part of a record: the library says by itself that the client is waited for, and that it is
// not any more. The caller holds mu.
func (p *position) isAside(state acp.StateUpdate) bool {
	switch state := state.(type) {
	case *acp.RequiresActionStateUpdate:
	case *acp.RunningStateUpdate:
		if state == &p.running {
			return false
		}
	default:
		return false
	}
	return p.update == nil || p.update.update != acp.SessionUpdate(state)
}

// positionMeta returns a position as _meta has it.
func positionMeta(cursor uint64, mark string, part int) json.RawMessage {
	b := make([]byte, 0, 80)
	b = append(b, `{"`+metaKey+`":{"cursor":`...)
	b = strconv.AppendUint(b, cursor, 10)
	if mark != "" {
		b = append(append(append(b, `,"mark":"`...), mark...), '"')
	}
	if part > 0 {
		b = append(b, `,"part":`...)
		b = strconv.AppendInt(b, int64(part), 10)
	}
	return append(b, "}}"...)
}

// tellPositions adds to each update where in the session it is.
func (g *Gateway) tellPositions(next jsonrpc.Handler) jsonrpc.Handler {
	return func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		var key positionKey
		var meta *json.RawMessage
		var state acp.StateUpdate
		switch n := r.Params.(type) {
		case *acpv1.SessionNotification:
			key.session, meta = acp.SessionID(n.SessionID), &n.Meta
		case *acpv2.UpdateSessionNotification:
			key.session, meta = n.SessionID, &n.Meta
			state, _ = n.Update.(acp.StateUpdate)
		default:
			return next(ctx, r)
		}
		key.conn = r.Conn()
		there, ok := g.positions.Load(key)
		if !ok {
			return next(ctx, r)
		}
		p := there.(*position)
		at, said, skip := p.next(state)
		if skip {
			return nil, nil
		}
		if at.known && len(*meta) == 0 {
			var shared *encoded
			if said != nil && said.in != nil && said.size <= maxEncoded {
				shared = g.decoded.once(said, r.Params, at)
			}
			if shared != nil {
				r.Params = shared
			} else {
				*meta = at.meta()
			}
		}
		return next(ctx, r)
	}
}

// errNoPosition is why a client is sent a session anew that has a position in it which is gone: it was compacted, or lost with the
// end of the log when the power failed, or the log is another one since.
var errNoPosition = fmt.Errorf("the position is gone: %w", engine.ErrCompacted)

// from is where a client that resumes a session says that it is. It returns the record after which it is sent what
// follows, and how many updates it has of the next one.
func (g *Gateway) from(ctx context.Context, id string, m *meta, last uint64) (after uint64, skip int, err error) {
	after = m.Cursor
	invalid := func(format string, args ...any) (uint64, int, error) {
		return 0, 0, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, format, args...)
	}
	if after > last && m.Mark != "" {
		return 0, 0, fmt.Errorf("%w: the cursor %d is after the end, which is %d", errNoPosition, after, last)
	}
	if after > last {
		return invalid("the cursor %d is after the end, which is %d", after, last)
	}
	if m.Part < 0 {
		return invalid("the part %d is negative", m.Part)
	}
	if after > 0 { // it may be in what was compacted
		if err := g.cfg.Log.Fold(ctx, id, after, func(engine.Record) error { return errRead }); err != nil && !errors.Is(err, errRead) {
			return 0, 0, err
		}
	}
	if after > 0 && m.Mark != "" {
		errFound := errors.New("found")
		var mark string
		err := g.cfg.Log.Fold(ctx, id, after-1, func(r engine.Record) error {
			mark = markOf(&r)
			return errFound
		})
		if err != nil && !errors.Is(err, errFound) {
			return 0, 0, err
		}
		if mark != m.Mark {
			return 0, 0, fmt.Errorf("%w: the cursor %d with the mark %.16q is not one of this session", errNoPosition, after, m.Mark)
		}
	}
	return after, m.Part, nil
}
