package gateway

import (
	"bytes"
	"encoding/json"
	"sync/atomic"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// A spot is where a client is in a session, as _meta of an update says it. The zero value is nowhere.
type spot struct {
	known  bool
	cursor uint64
	mark   string
	part   int
}

// meta returns it as _meta has it.
func (s *spot) meta() json.RawMessage { return positionMeta(s.cursor, s.mark, s.part) }

// shared is what clients of one version are sent of an update.
type shared struct {
	asked atomic.Bool // one was sent it
	kept  atomic.Pointer[encoded]
}

// second reports whether another client was sent the update before.
func (s *shared) second() bool { return s.asked.Load() || s.asked.Swap(true) }

// An encoded is the params of a notification as clients of one version were sent them. It must not be modified.
type encoded struct {
	session acp.SessionID
	at      spot
	v1      acpv1.SessionUpdate // of the two versions
	json    []byte
}

// AppendJSON appends the params.
func (e *encoded) AppendJSON(dst []byte) ([]byte, error) { return append(dst, e.json...), nil }

// InSession implements [acp.SessionParams].
func (e *encoded) InSession() acp.SessionID { return e.session }

// once returns the params of a notification that a client is to be sent with a position, if it is about a remembered
// update. The second client of a version keeps them, which shows that clients are sent it at about the same time; others
// are sent the same bytes if all that went into them is the same. It returns nil if the notification has to be encoded on
// its own.
//
// What an update is in version 1 can depend on what the client was sent before. So it is the result that is compared, and
// shared only if it is text.
func (c *decodedUpdates) once(d *decoded, params any, at spot) *encoded {
	switch n := params.(type) {
	case *acpv1.SessionNotification:
		session := acp.SessionID(n.SessionID)
		if e := d.v1.kept.Load(); e != nil {
			if e.session == session && e.at == at && len(n.Unknown) == 0 && sameText(e.v1, n.Update) {
				return e
			}
			return nil
		}
		if len(n.Unknown) > 0 || !sameText(n.Update, n.Update) || !d.v1.second() {
			return nil
		}
		n.Meta = at.meta()
		return c.keep(d, &d.v1.kept, &encoded{session: session, at: at, v1: n.Update}, n)
	case *acpv2.UpdateSessionNotification:
		if len(n.Unknown) > 0 || n.Update != d.update {
			return nil
		}
		if e := d.v2.kept.Load(); e != nil {
			if e.session == n.SessionID && e.at == at {
				return e
			}
			return nil
		}
		if !d.v2.second() {
			return nil
		}
		n.Meta = at.meta()
		return c.keep(d, &d.v2.kept, &encoded{session: n.SessionID, at: at}, n)
	}
	return nil
}

const (
	// encodedMore is how many bytes the params of a notification usually have beyond the record. What is kept beside the
	// params is about as much.
	encodedMore = 192
	// maxEncoded is how large a record may be whose params are kept: few are larger, and they would push out many others.
	maxEncoded = maxDecodedBytes / 16
)

// keep encodes the params of a notification, for others as well if the update is remembered still.
func (c *decodedUpdates) keep(d *decoded, where *atomic.Pointer[encoded], e *encoded, n interface {
	AppendJSON([]byte) ([]byte, error)
}) *encoded {
	var err error
	if e.json, err = n.AppendJSON(make([]byte, 0, d.size+encodedMore)); err != nil {
		return nil // as it will when it is sent
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.in.by[d.seq] == d && where.CompareAndSwap(nil, e) {
		c.grow(d, cap(e.json)+encodedMore)
	}
	return e
}

// sameText reports whether two updates of version 1 are pieces of a message, of nothing but text, with the same encoding.
func sameText(a, b acpv1.SessionUpdate) bool {
	switch a := a.(type) {
	case *acpv1.AgentMessageChunk:
		b, ok := b.(*acpv1.AgentMessageChunk)
		return ok && sameChunk((*acpv1.ContentChunk)(a), (*acpv1.ContentChunk)(b))
	case *acpv1.AgentThoughtChunk:
		b, ok := b.(*acpv1.AgentThoughtChunk)
		return ok && sameChunk((*acpv1.ContentChunk)(a), (*acpv1.ContentChunk)(b))
	case *acpv1.UserMessageChunk:
		b, ok := b.(*acpv1.UserMessageChunk)
		return ok && sameChunk((*acpv1.ContentChunk)(a), (*acpv1.ContentChunk)(b))
	}
	return false
}

func sameChunk(a, b *acpv1.ContentChunk) bool {
	s, ok1 := a.Content.(*acpv1.TextContent)
	t, ok2 := b.Content.(*acpv1.TextContent)
	return ok1 && ok2 && s.Annotations == nil && t.Annotations == nil && s.Text == t.Text && a.MessageID == b.MessageID &&
		bytes.Equal(s.Meta, t.Meta) && bytes.Equal(s.Unknown, t.Unknown) && bytes.Equal(a.Meta, b.Meta) && bytes.Equal(a.Unknown, b.Unknown)
}
