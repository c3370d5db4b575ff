package transcript

import (
	"encoding/json"
	"strings"

	"github.com/goacp/acp/acpv2"
)

// This file folds messages and what is built like them.

func (c *Conversation) message(role Role, id acpv2.MessageID) (*Message, Op) {
	m, op := upsert(c, key{role.space(), string(id)}, func() *Message { return &Message{Role: role, ID: acpv2.MessageID(strings.Clone(string(id)))} })
	if op == OpCreated && role == RoleUser && c.sess.State.Idle() {
		c.turns++ // in a history nothing else marks the beginning of a turn
	}
	return m, op
}

// addText appends text to a content, as far as there is room.
func (c *Conversation) addText(e Entry, op Op, body *content, text string) Change {
	ch := appended(e, op)
	b := e.base()
	n := b.sizes[partContent]
	if !body.open {
		n += itemCost
	}
	room := c.room(b, partContent) - n
	if room < len(text) {
		kept := cut(text, max(room, 0))
		c.dropped(b, len(text)-len(kept))
		text = kept
		if room < 0 {
			return ch
		}
	}
	body.addText(c, text)
	c.charge(b, partContent, n+len(text))
	ch.Text = text
	return ch
}

// addBlock appends a block to a content, if there is room for it.
func (c *Conversation) addBlock(e Entry, op Op, body *content, block acpv2.ContentBlock) Change {
	if text, ok := plainText(block); ok {
		return c.addText(e, op, body, text)
	}
	b := e.base()
	n, size := b.sizes[partContent], c.size(block)
	if n+size > c.room(b, partContent) {
		c.dropped(b, size)
		return appended(e, op)
	}
	body.addBlock(c, block)
	c.charge(b, partContent, n+size)
	return appended(e, op)
}

// patchBody patches a content.
func (c *Conversation) patchBody(e *core, body *content, p acpv2.Patch[[]acpv2.ContentBlock]) {
	if p.IsZero() {
		return
	}
	blocks := fit(c, e, partContent, p.Or(nil), func(b *acpv2.ContentBlock) int {
		if text, ok := plainText(*b); ok {
			return len(text) + itemCost
		}
		return c.size(*b)
	})
	*body = contentOf(blocks)
}

func (c *Conversation) applyChunk(role Role, u *acpv2.ContentChunk) Change {
	m, op := c.message(role, u.MessageID)
	if m == nil {
		return Change{}
	}
	return c.addBlock(m, op, &m.body, u.Content)
}

func (c *Conversation) applyMessage(role Role, id acpv2.MessageID, p acpv2.Patch[[]acpv2.ContentBlock], meta json.RawMessage) Change {
	m, op := c.message(role, id)
	if m == nil {
		return Change{}
	}
	c.patchBody(&m.core, &m.body, p)
	c.applyMeta(&m.core, &m.Meta, meta)
	return changed(m, op)
}

func (c *Conversation) sessionMessage(id acpv2.MessageID) (*SessionMessage, Op) {
	return upsert(c, key{spaceSessionMessage, string(id)}, func() *SessionMessage { return &SessionMessage{ID: id} })
}

func (c *Conversation) applySessionMessage(u *acpv2.SessionMessage) Change {
	m, op := c.sessionMessage(u.MessageID)
	if m == nil {
		return Change{}
	}
	patchShort(c, &m.core, u.SenderSessionID, &m.Sender)
	patchShort(c, &m.core, u.RecipientSessionID, &m.Recipient)
	patchShort(c, &m.core, u.SenderMessageID, &m.SenderMessageID)
	patchShort(c, &m.core, u.RecipientMessageID, &m.RecipientMessageID)
	c.patchBody(&m.core, &m.body, u.Content)
	c.applyMeta(&m.core, &m.Meta, u.Meta)
	return changed(m, op)
}

func (c *Conversation) applySessionMessageChunk(u *acpv2.SessionMessageChunk) Change {
	m, op := c.sessionMessage(u.MessageID)
	if m == nil {
		return Change{}
	}
	return c.addBlock(m, op, &m.body, u.Content)
}

func (c *Conversation) compaction(id acpv2.CompactionID) (*Compaction, Op) {
	return upsert(c, key{spaceCompaction, string(id)}, func() *Compaction {
		return &Compaction{ID: id, Status: acpv2.CompactionStatusInProgress}
	})
}

func (c *Conversation) applyCompaction(u *acpv2.CompactionUpdate) Change {
	x, op := c.compaction(u.CompactionID)
	if x == nil {
		return Change{}
	}
	patchShort(c, &x.core, acpv2.Set(u.Status), &x.Status)
	patchShort(c, &x.core, u.Error, &x.Error)
	c.patchBody(&x.core, &x.body, u.Summary)
	c.applyMeta(&x.core, &x.Meta, u.Meta)
	return changed(x, op)
}

func (c *Conversation) applySummaryChunk(u *acpv2.CompactionSummaryChunk) Change {
	x, op := c.compaction(u.CompactionID)
	if x == nil {
		return Change{}
	}
	return c.addBlock(x, op, &x.body, u.Content)
}

func (c *Conversation) applyNotice(u *acpv2.Notice) Change {
	n := &Notice{}
	c.add(n, 0)
	patchShort(c, &n.core, acpv2.Set(u.Severity), &n.Severity)
	patchShort(c, &n.core, acpv2.Set(u.Title), &n.Title)
	n.Description = short(c, &n.core, u.Description)
	c.charge(&n.core, partContent, len(n.Description))
	c.applyMeta(&n.core, &n.Meta, u.Meta)
	return changed(n, OpCreated)
}

func (c *Conversation) applySubagent(u *acpv2.SubagentUpdate) Change {
	s, op := upsert(c, key{spaceSubagent, string(u.SessionID)}, func() *Subagent { return &Subagent{ID: u.SessionID} })
	if s == nil {
		return Change{}
	}
	patchShort(c, &s.core, u.Title, &s.Title)
	patchShort(c, &s.core, u.Description, &s.Description)
	patchShort(c, &s.core, u.Cwd, &s.Cwd)
	patchCapabilities(c, &s.core, u.Capabilities, &s.Capabilities)
	switch state, set := u.State.Get(); {
	case set:
		kept := c.keepState(&s.core, partContent, stateOf(state))
		s.State = &kept
	case u.State.IsClear():
		s.State = nil
		c.charge(&s.core, partContent, 0)
	}
	if !u.AdditionalDirectories.IsZero() {
		s.AdditionalDirectories = fit(c, &s.core, partLocations, u.AdditionalDirectories.Or(nil),
			func(d *string) int { return len(*d) + itemCost })
	}
	c.applyMeta(&s.core, &s.Meta, u.Meta)
	return changed(s, op)
}

// patchCapabilities replaces capabilities as a whole; null withdraws them (S90).
func patchCapabilities[T any, P interface {
	*T
	codec
}](c *Conversation, e *core, p acpv2.Patch[T], v *P) {
	if p.IsZero() {
		return
	}
	*v = nil
	n := 0
	if next, set := p.Get(); set {
		if n = c.size(P(&next)); n > c.room(e, partOther) {
			c.dropped(e, n) // what is not kept must not allow anything
			n = 0
		} else {
			*v = &next
		}
	}
	c.charge(e, partOther, n)
}

func (c *Conversation) applyUnknown(u *acpv2.UnknownSessionUpdate) Change {
	if len(u.Type) > idBytes {
		c.loss.Updates++
		return Change{}
	}
	x := &Unknown{Type: u.Type}
	c.add(x, len(u.Type))
	if x.Raw = c.fitRaw(&x.core, partContent, u.Raw); x.Raw == nil {
		x.strip()
	}
	return changed(x, OpCreated)
}
