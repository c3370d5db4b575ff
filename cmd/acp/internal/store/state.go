package store

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
)

// format is the version of the records: docs/records.md.
const format = 1

// eventSession is the kind of the records that describe a conversation. Callers see them as a
// [Session].
const eventSession EventKind = "session"

// attributes are the data of an eventSession. Each has everything that is known; the last one
// counts.
type attributes struct {
	Format       int       `json:"format,omitempty"`       // in the first record of a part
	Conversation string    `json:"conversation,omitempty"` // likewise
	Agent        string    `json:"agent,omitempty"`
	Session      string    `json:"session,omitempty"` // the agent's id
	Command      []string  `json:"command,omitempty"`
	Cwd          string    `json:"cwd,omitempty"`
	Title        string    `json:"title,omitempty"`
	Protocol     int       `json:"protocol,omitempty"`
	Parent       string    `json:"parent,omitempty"` // a conversation
	By           string    `json:"by,omitempty"`     // the command that runs it, if not a conversation with a person
	Created      time.Time `json:"created,omitzero"` // if not the time of this record
	Updated      time.Time `json:"updated,omitzero"` // before the first event that is kept
	Turns        int       `json:"turns,omitempty"`  // that ended before the first event that is kept
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
	userUpdate = `{"sessionUpdate":"user_message`
	idleUpdate = `{"sessionUpdate":"state_update","state":"idle"`
)

// isPrompt reports whether an update is what the user said, and not history that the agent
// replayed, which has a mark.
func isPrompt(data []byte) bool {
	return bytes.HasPrefix(data, []byte(userUpdate)) && !bytes.Contains(data, []byte(`"`+ownmeta.Key+`"`))
}

// apply applies a record.
func (s *state) apply(e *Event) {
	switch e.Kind {
	case eventSession:
		var a attributes
		if json.Unmarshal(e.Data, &a) != nil {
			return
		}
		if s.known && s.ID != a.Session {
			s.renamed(a.Session)
		}
		s.Agent, s.ID, s.Command, s.Cwd, s.Title = a.Agent, a.Session, a.Command, a.Cwd, a.Title
		s.Protocol, s.Parent, s.By = a.Protocol, a.Parent, a.By
		if a.Created.IsZero() {
			a.Created = e.Time
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
	case EventReset:
		s.Events, s.Open = 0, false
	case EventTurn:
		s.Turns++
		var t TurnEnd
		s.Open = json.Unmarshal(e.Data, &t) == nil && t.Others > 0
	case EventUpdate:
		switch {
		case isPrompt(e.Data):
			s.Open = true
		case bytes.HasPrefix(e.Data, []byte(idleUpdate)):
			s.Open = false
		}
	}
	if s.Events++; !s.known {
		// The record that described it is damaged. What was said can be read all the same.
		s.Agent, s.ID = unknownAgent, s.Conversation
	}
	if e.Time.After(s.Updated) {
		s.Updated = e.Time
	}
}
