package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// saved is what is kept of a session, also when it is closed, as long as the
// process lives.
type saved struct {
	number  int
	info    acp.SessionInfo
	history []acp.SessionUpdate
	cursors map[acpv2.CursorID]int // how much of the history is before them
}

// tspeer is what the test suite puts under _meta.
type tspeer[T any] struct {
	TSPeer T `json:"tspeer"`
}

func (a *testy) newSession(ctx context.Context, s *acp.AgentSession) error {
	var meta tspeer[struct{ AuthRequired bool }]
	_ = json.Unmarshal(s.Meta(), &meta) // anything else asks for nothing
	a.mu.Lock()
	defer a.mu.Unlock()
	if meta.TSPeer.AuthRequired && !a.loggedIn {
		return jsonrpc.ErrAuthRequired
	}
	if err := a.add(s, nil); err != nil {
		return err
	}
	was := whatWasAsked(ctx)
	if s.Conn().Version() == 1 && a.script == 2 {
		was.MCPServers = s.MCPServers() // in the words of that script
	}
	seen, err := json.Marshal(tspeer[asked]{was})
	s.SetAnswerMeta(seen)
	return err
}

// add saves a new session and gives it its options.
func (a *testy) add(s *acp.AgentSession, history []acp.SessionUpdate) error {
	a.made++
	s.SetID(acp.SessionID("sess-" + strconv.Itoa(a.made)))
	a.saved[s.ID()] = &saved{number: a.made, history: history, info: acp.SessionInfo{
		SessionID: s.ID(), Cwd: s.Cwd(), AdditionalDirectories: s.AdditionalDirectories(), Title: "untitled",
		UpdatedAt: "2026-11-01T00:00:00Z",
	}}
	return a.equip(s)
}

// equip gives a session its options and commands, and a skill.
func (a *testy) equip(s *acp.AgentSession) error {
	err := errors.Join(s.SetOptions(firstOptions()...), s.SetCommands(planCommand))
	if err != nil || a.stable {
		return err
	}
	return s.SetSkills(acpv2.Skill{Name: "review", Description: "review a change", Path: "/testy/review/SKILL.md"})
}

// firstOptions are those that a session begins with.
func firstOptions() []acp.SessionConfigOption {
	return []acp.SessionConfigOption{
		choice("model", "Model", acp.SessionConfigOptionCategoryModel, "fast", "smart"),
		choice("mode", "Mode", acp.SessionConfigOptionCategoryMode, "ask", "code"),
		{ConfigID: "web", Name: "Web search", Kind: &acp.SessionConfigBoolean{}},
	}
}

// sessionOptions tells what a session would begin with.
func (a *testy) sessionOptions(_ context.Context, _ *acp.AgentConn, q *acp.OptionsQuery) (*acp.OptionsPreview, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.SessionID != "" && a.saved[q.SessionID] == nil {
		return nil, acp.SessionNotFound(q.SessionID)
	}
	return &acp.OptionsPreview{ConfigOptions: firstOptions()}, nil
}

var planCommand = acp.SlashCommand{
	Name: "plan", Description: "make a plan", Input: &acp.TextCommandInput{Hint: "what"},
}

// choice is an option with the first of its values chosen.
func choice(id acp.SessionConfigID, name string, category acp.SessionConfigOptionCategory, values ...acp.SessionConfigValueID) acp.SessionConfigOption {
	var list acp.SessionConfigSelectOptionList
	for _, v := range values {
		list = append(list, acp.SessionConfigSelectOption{Value: v, Name: string(v)})
	}
	return acp.SessionConfigOption{ConfigID: id, Name: name, Category: category,
		Kind: &acp.SessionConfigSelect{CurrentValue: values[0], Options: list}}
}

// asked is what a client asked for in its own words.
type asked struct {
	MCPServers            any      `json:"mcpServers"`
	AdditionalDirectories []string `json:"additionalDirectories"`
	SystemPrompt          any      `json:"systemPrompt,omitempty"`
}

func whatWasAsked(ctx context.Context) asked {
	switch r := jsonrpc.RequestFrom(ctx).Params.(type) {
	case *acpv1.NewSessionRequest:
		a := asked{MCPServers: r.MCPServers, AdditionalDirectories: r.AdditionalDirectories}
		if r.SystemPrompt != nil {
			a.SystemPrompt = r.SystemPrompt
		}
		return a
	case *acpv2.NewSessionRequest:
		a := asked{MCPServers: r.MCPServers, AdditionalDirectories: r.AdditionalDirectories}
		if r.SystemPrompt != nil {
			a.SystemPrompt = r.SystemPrompt
		}
		return a
	}
	return asked{}
}

func (a *testy) resumeSession(_ context.Context, s *acp.AgentSession, replay bool) error {
	a.mu.Lock()
	old := a.saved[s.ID()]
	if old == nil {
		a.mu.Unlock()
		return acp.SessionNotFound(s.ID())
	}
	history := old.history
	a.mu.Unlock()
	if replay {
		for _, u := range history {
			if err := s.Send(u); err != nil {
				return err
			}
		}
	}
	if len(s.Options()) > 0 {
		return nil // it is open
	}
	return a.equip(s)
}

// forkSessionAt is forkSession up to a cursor.
func (a *testy) forkSessionAt(_ context.Context, s *acp.AgentSession, from acp.SessionID, at acpv2.CursorID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.saved[from]
	if old == nil {
		return acp.SessionNotFound(from)
	}
	n, ok := old.cursors[at]
	if !ok {
		return jsonrpc.ErrInvalidParams.WithData(map[string]acpv2.CursorID{"cursorId": at})
	}
	return a.add(s, slices.Clone(old.history[:n]))
}

func (a *testy) forkSession(_ context.Context, s *acp.AgentSession, from acp.SessionID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.saved[from]
	if old == nil {
		return acp.SessionNotFound(from)
	}
	return a.add(s, slices.Clone(old.history))
}

// pageSize is small, so that lists have pages.
const pageSize = 2

func (a *testy) listSessions(_ context.Context, _ *acp.AgentConn, q *acp.SessionQuery) (*acp.SessionPage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []*saved
	for _, s := range a.saved {
		archived := s.info.Archived != nil && *s.info.Archived
		switch {
		case q.Cwd != "" && q.Cwd != s.info.Cwd:
		case q.Archived == acp.SessionArchiveFilterOnly && !archived:
		case q.Archived != acp.SessionArchiveFilterOnly && q.Archived != acp.SessionArchiveFilterInclude && archived:
		default:
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y *saved) int { return cmp.Compare(x.number, y.number) })
	start := 0
	if q.Cursor != nil {
		var err error
		if start, err = strconv.Atoi(string(*q.Cursor)); err != nil || start < 0 || start > len(all) {
			return nil, jsonrpc.ErrInvalidParams.WithData(map[string]string{"cursor": "unknown"})
		}
	}
	page := new(acp.SessionPage)
	end := min(start+pageSize, len(all))
	for _, s := range all[start:end] {
		page.Sessions = append(page.Sessions, s.info)
	}
	if end < len(all) {
		page.NextCursor = new(acpv2.SessionListCursor(strconv.Itoa(end)))
	}
	return page, nil
}

// change changes what is saved of a session.
func (a *testy) change(id acp.SessionID, f func(*saved)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.saved[id]
	if s == nil {
		return acp.SessionNotFound(id)
	}
	f(s)
	return nil
}

func (a *testy) deleteSession(_ context.Context, _ *acp.AgentConn, id acp.SessionID) error {
	return a.change(id, func(*saved) { delete(a.saved, id) })
}

func (a *testy) archiveSession(_ context.Context, _ *acp.AgentConn, id acp.SessionID, archived bool) error {
	return a.change(id, func(s *saved) { s.info.Archived = &archived })
}

func (a *testy) sessionStatus(_ context.Context, _ *acp.AgentConn, id acp.SessionID) (acp.SessionStatus, error) {
	return acp.SessionStatusSaved, a.change(id, func(*saved) {})
}

func (a *testy) setTitle(_ context.Context, _ *acp.AgentConn, id acp.SessionID, title string) (string, error) {
	return title, a.change(id, func(s *saved) { s.info.Title = title })
}

// answerID is the id of the answer in what is replayed.
func answerID(t *acp.Turn) acp.MessageID {
	return acp.MessageID(fmt.Sprintf("%s_answer", t.PromptID()))
}

// remember saves a turn for later replay, and a cursor behind it, if there is one.
func (a *testy) remember(t *acp.Turn, said string, cursor *acpv2.CursorUpdate) {
	history := []acp.SessionUpdate{&acp.UserMessage{MessageID: t.PromptID(), Content: acp.Set(t.Blocks())}}
	if said != "" {
		history = append(history, &acp.AgentMessage{MessageID: answerID(t), Content: acp.Set([]acp.ContentBlock{acp.Text(said)})})
	}
	_ = a.change(t.Session().ID(), func(s *saved) { // it may have been deleted
		s.history = append(s.history, history...)
		if cursor == nil {
			return
		}
		if s.cursors == nil {
			s.cursors = map[acpv2.CursorID]int{}
		}
		s.cursors[cursor.CursorID] = len(s.history)
		s.history = append(s.history, cursor)
	})
}
