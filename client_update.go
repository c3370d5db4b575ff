package acp

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Text returns the text that the update adds to the agent's answer, or "".
// Thoughts are no part of the answer.
//
// Agents of version 2 may also tell whole messages. One that is new adds all of
// its text, and one that replaces what was told of it before adds what goes
// beyond that in length: that it repeats the rest is taken for granted, and the
// session remembers the lengths of its last 16 messages. It is said where the
// update is delivered: an Update of your own with a whole message has no text.
func (u *Update) Text() string {
	if m, ok := u.Update.(*AgentMessageChunk); ok {
		if t, ok := m.Content.(*TextContent); ok {
			return t.Text
		}
	}
	return u.added
}

const maxSaid = 16

// clientSaid are the lengths of the last messages of an agent of version 2, the
// latest last.
type clientSaid []clientMessage

type clientMessage struct {
	id    MessageID
	bytes int
}

// of returns the entry of a message.
func (s *clientSaid) of(id MessageID) *clientMessage {
	list := *s
	if n := len(list); n > 0 && list[n-1].id == id { // nearly always
		return &list[n-1]
	}
	entry := clientMessage{id: id}
	if i := slices.IndexFunc(list, func(m clientMessage) bool { return m.id == id }); i >= 0 {
		entry = list[i]
		list = slices.Delete(list, i, i+1)
	} else if len(list) >= maxSaid {
		list = slices.Delete(list, 0, 1)
	}
	*s = append(list, entry)
	return &(*s)[len(*s)-1]
}

// chunk takes in a piece of a message.
func (s *clientSaid) chunk(c *AgentMessageChunk) {
	if t, ok := c.Content.(*TextContent); ok {
		s.of(c.MessageID).bytes += len(t.Text)
	}
}

// whole takes in a whole message and returns the text that is new.
func (s *clientSaid) whole(u *AgentMessage) string {
	if u.Content.IsZero() {
		return "" // it stays as it is
	}
	var all strings.Builder
	for _, b := range u.Content.Or(nil) {
		if t, ok := b.(*TextContent); ok {
			all.WriteString(t.Text)
		}
	}
	text := all.String()
	m := s.of(u.MessageID)
	before := m.bytes
	m.bytes = len(text)
	if before >= len(text) || !utf8.RuneStart(text[before]) {
		return ""
	}
	return text[before:]
}
