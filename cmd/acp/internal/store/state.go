package store

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
)

// attributes are the data of a [journal.KindSession]. Each has everything that is known; the last one counts.
type attributes struct {
	Agent    string    `json:"agent,omitempty"`
	Session  string    `json:"session,omitempty"` // the agent's id
	Command  []string  `json:"command,omitempty"`
	Cwd      string    `json:"cwd,omitempty"`
	Title    string    `json:"title,omitempty"`
	Protocol int       `json:"protocol,omitempty"`
	Parent   string    `json:"parent,omitempty"` // a conversation
	By       string    `json:"by,omitempty"`     // the command that runs it, if not a conversation with a person
	Created  time.Time `json:"created,omitzero"` // if not the time of this record
	Updated  time.Time `json:"updated,omitzero"` // before the first event that is kept
	Turns    int       `json:"turns,omitempty"`  // that ended before the first event that is kept
}

// attributesOf returns what is kept of a session, within bounds.
func attributesOf(v Session) attributes {
	return attributes{
		Agent: cut(v.Agent, MaxID), Session: cut(v.ID, MaxID), Command: v.Command, Cwd: v.Cwd,
		Title: cut(strings.ToValidUTF8(v.Title, "\uFFFD"), MaxTitle), Protocol: v.Protocol, Parent: v.Parent, By: cut(v.By, MaxID), Created: v.Created,
	}
}

// cut returns the beginning of s, of max bytes at most, without half a character.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// idLetters are the letters of ids of conversations.
const idLetters = "abcdefghijklmnopqrstuvwxyz234567"

// idLength is their length: 80 random bits.
const idLength = 16

// newID returns an id for a conversation.
func newID() string { return strings.ToLower(rand.Text()[:idLength]) }

func validID(id string) bool {
	return len(id) == idLength && strings.Trim(id, idLetters) == ""
}

// unknownAgent is the agent of conversations for which the log names none.
const unknownAgent = "unknown"

// A state derives the Session of a conversation from its records.
type state struct {
	Session
	known bool // a record has described it
}

// maxEarlier bounds the ids that a conversation had before.
const maxEarlier = 16

// renamed records that the agent has given another id.
func (s *state) renamed(now string) {
	list := slices.DeleteFunc(slices.Clone(s.Earlier), func(id string) bool { return id == now || id == s.ID })
	if s.ID != "" {
		list = append(list, s.ID)
	}
	s.Earlier = list[max(0, len(list)-maxEarlier):]
}

// The beginnings of updates that say whether a turn runs.
const (
	userMessage = `{"sessionUpdate":"user_message",`
	userChunk   = `{"sessionUpdate":"user_message_chunk",`
	idleUpdate  = `{"sessionUpdate":"state_update","state":"idle"`
)

// KindOf returns the kind of the event of an update: [journal.KindPrompt] if it is a message of the user's, and not history
// that the agent has replayed, which has a mark.
func KindOf(update []byte) journal.Kind {
	if bytes.HasPrefix(update, []byte(userMessage)) && !marked(update) {
		return journal.KindPrompt
	}
	return journal.KindUpdate
}

func marked(update []byte) bool { return bytes.Contains(update, []byte(`"`+ownmeta.Key+`"`)) }

// apply applies a record.
func (s *state) apply(r *journal.Record) {
	switch r.Kind {
	case journal.KindSession:
		var a attributes
		if json.Unmarshal(r.Data, &a) != nil {
			return
		}
		if s.known && s.ID != a.Session {
			s.renamed(a.Session)
		}
		s.Agent, s.ID, s.Command, s.Cwd, s.Title = a.Agent, a.Session, a.Command, a.Cwd, a.Title
		s.Protocol, s.Parent, s.By = a.Protocol, a.Parent, a.By
		if a.Created.IsZero() {
			a.Created = r.At
		}
		if !s.known || a.Created.Before(s.Created) {
			s.Created = a.Created
		}
		s.known = true
		s.Turns += a.Turns
		if a.Updated.IsZero() {
			a.Updated = a.Created
		}
		if a.Updated.After(s.Updated) {
			s.Updated = a.Updated
		}
		return
	case journal.KindReset:
		s.Events, s.Open = 0, false
	case journal.KindEnd:
		s.Turns++
		var t TurnEnd
		s.Open = json.Unmarshal(r.Data, &t) == nil && t.Others > 0
	case journal.KindPrompt:
		s.Open = true
	case journal.KindUpdate:
		switch {
		case bytes.HasPrefix(r.Data, []byte(userChunk)) && !marked(r.Data):
			s.Open = true
		case bytes.HasPrefix(r.Data, []byte(idleUpdate)):
			s.Open = false
		}
	}
	if s.Events++; !s.known {
		// The record that described it is damaged. What was said can be read all the same.
		s.Agent, s.ID = unknownAgent, s.Conversation
	}
	if r.At.After(s.Updated) {
		s.Updated = r.At
	}
}
