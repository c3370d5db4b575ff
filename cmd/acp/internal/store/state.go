package store

import (
	"bytes"

	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// attributesOf returns what is kept of a session, within bounds.
func attributesOf(v Session) records.Description {
	return records.Description{
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

func validID(id string) bool {
	return records.ByChat(id) || strings.HasPrefix(id, records.GatewayID) && journal.CheckID(id) == nil && !strings.Contains(id, ".")
}

// unknownAgent is the agent of conversations for which the log names none.
const unknownAgent = "unknown"

// A state derives the Session of a conversation from its records.
type state struct {
	Session
	known bool // a record has described it
	// hosted says that a gateway has begun the last turn: then only records of turns say that it runs.
	hosted bool
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
	userChunk  = `{"sessionUpdate":"user_message_chunk",`
	idleUpdate = `{"sessionUpdate":"state_update","state":"idle"`
)

func marked(update []byte) bool { return bytes.Contains(update, []byte(`"`+ownmeta.Key+`"`)) }

// apply applies a record.
func (s *state) apply(r *journal.Record) {
	switch r.Kind {
	case journal.KindSession:
		var a records.Description
		if json.Unmarshal(r.Data, &a) != nil {
			return
		}
		if s.known && s.ID != a.Session {
			s.renamed(a.Session)
		}
		s.Agent, s.ID, s.Cwd, s.Title = a.Agent, a.Session, a.Cwd, a.Title
		if a.State == nil { // a gateway leaves the rest as it is
			s.Command, s.Protocol, s.Parent, s.By = a.Command, a.Protocol, a.Parent, a.By
		} else {
			s.Owner = a.Owner
		}
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
		s.Events, s.State = 0, ""
	case journal.KindEnd:
		s.Turns++
		end, err := records.DecodeEnd(r.Data)
		if s.State = end.State(); err != nil {
			s.State = records.StateIdle
		}
	case journal.KindPrompt:
		p, err := records.DecodePrompt(r.Data)
		s.State, s.hosted = records.StateRunning, err == nil && p.By != ""
	case journal.KindUpdate:
		switch u, _ := records.RawUpdate(r.Data); {
		case bytes.HasPrefix(u, []byte(userChunk)) && !marked(u):
			s.State = records.StateRunning
		case bytes.HasPrefix(u, []byte(idleUpdate)) && s.State == records.StateRunning:
			s.State = records.StateIdle
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
