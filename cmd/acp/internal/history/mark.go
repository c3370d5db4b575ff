package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/transcript"
)

// This file marks what an agent has replayed.

// An ownMeta is the program's part of the metadata of an entry.
type ownMeta struct {
	// History says that the agent replayed the entry; it is a fingerprint of what was replayed.
	History string `json:"history,omitempty"`
	Heading bool   `json:"heading,omitempty"`
	Unseen  bool   `json:"unseen,omitempty"`  // see Unseen
	Untaken bool   `json:"untaken,omitempty"` // see Untaken
}

// IsNews reports whether an entry was added because the agent replayed it: see [Piece.Update].
// Plans and updates of unknown kinds have no metadata, and are never recognized.
func IsNews(e transcript.Entry) bool { return mark(e) != "" }

// mark returns the fingerprint of the replayed entry, or "".
func mark(e transcript.Entry) string { return ownOf(e).History }

// ownOf returns the program's part of metadata; the zero value if there is none.
func ownOf(e transcript.Entry) (own ownMeta) {
	raw := meta(e)
	if len(raw) == 0 || !bytes.Contains(raw, []byte(ownmeta.Key)) {
		return own
	}
	if !ownmeta.Read(raw, &own) {
		return ownMeta{}
	}
	return own
}

// meta returns the metadata of an update that can have a mark.
func meta(e transcript.Entry) json.RawMessage {
	switch e := e.(type) {
	case *transcript.Message:
		return e.Meta
	case *transcript.ToolCall:
		return e.Meta
	case *transcript.Terminal:
		return e.Meta
	case *transcript.Notice:
		return e.Meta
	case *transcript.Compaction:
		return e.Meta
	case *transcript.Subagent:
		return e.Meta
	case *transcript.SessionMessage:
		return e.Meta
	}
	return nil
}

// Fingerprint returns a text that is equal for entries that say the same.
func Fingerprint(e transcript.Entry) string {
	text := whole(e)
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Update returns the update that adds the news to the kept conversation, or nil if there is none.
// If asHistory is set, it is marked as replayed: see [IsNews].
func (p Piece) Update(asHistory bool) acpv2.SessionUpdate {
	var add json.RawMessage
	if asHistory {
		add = ownmeta.Of(ownMeta{History: Fingerprint(p.Entry)})
	}
	u := p.Entry.Update()
	if m, ok := p.Entry.(*transcript.Message); ok && p.Rest != "" {
		content := acpv2.Set([]acpv2.ContentBlock{&acpv2.TextContent{Text: strings.TrimLeftFunc(p.Rest, unicode.IsSpace)}})
		switch m.Role {
		case transcript.RoleThought:
			u = &acpv2.AgentThought{MessageID: m.ID, Content: content, Meta: m.Meta}
		case transcript.RoleAgent:
			u = &acpv2.AgentMessage{MessageID: m.ID, Content: content, Meta: m.Meta}
		}
	}
	if add == nil {
		return u
	}
	switch u := u.(type) {
	case *acpv2.UserMessage:
		u.Meta = with(u.Meta, add)
	case *acpv2.AgentMessage:
		u.Meta = with(u.Meta, add)
	case *acpv2.AgentThought:
		u.Meta = with(u.Meta, add)
	case *acpv2.ToolCallUpdate:
		u.Meta = with(u.Meta, add)
	case *acpv2.TerminalUpdate:
		u.Meta = with(u.Meta, add)
	case *acpv2.Notice:
		u.Meta = with(u.Meta, add)
	case *acpv2.CompactionUpdate:
		u.Meta = with(u.Meta, add)
	case *acpv2.SubagentUpdate:
		u.Meta = with(u.Meta, add)
	case *acpv2.SessionMessage:
		u.Meta = with(u.Meta, add)
	}
	return u
}

// with adds a member to metadata.
func with(meta, add json.RawMessage) json.RawMessage {
	if len(meta) == 0 {
		return add
	}
	var all map[string]json.RawMessage
	var own map[string]json.RawMessage
	if json.Unmarshal(meta, &all) != nil || all == nil || json.Unmarshal(add, &own) != nil {
		return add
	}
	all[ownmeta.Key] = own[ownmeta.Key]
	b, err := json.Marshal(all)
	if err != nil {
		return add
	}
	return b
}

// Heading returns the notice that is put above the news.
func Heading() *acpv2.Notice {
	meta := ownmeta.Of(ownMeta{Heading: true})
	return &acpv2.Notice{
		Severity:    acpv2.NoticeSeverityInfo,
		Title:       "From the agent's history",
		Description: "The agent has told the following when the session was continued. It was not kept before.",
		Meta:        meta,
	}
}

// IsHeading reports whether an entry is a notice of [Heading].
func IsHeading(e transcript.Entry) bool { return ownOf(e).Heading }

// Untaken returns the notice that keeps a prompt which was cancelled before the agent took it.
func Untaken(prompt []acpv2.ContentBlock) *acpv2.Notice {
	return &acpv2.Notice{
		Severity:    acpv2.NoticeSeverityInfo,
		Title:       "The agent has not taken this prompt: it was cancelled before",
		Description: Text(prompt),
		Meta:        ownmeta.Of(ownMeta{Untaken: true}),
	}
}

// Unseen returns the notice that is put where a conversation continues in a session in which the agent has not seen what is above.
func Unseen() *acpv2.Notice {
	return &acpv2.Notice{
		Severity: acpv2.NoticeSeverityWarning,
		Title:    "The agent no longer knows this session: it continues as a new one, and the agent has not seen what is above",
		Meta:     ownmeta.Of(ownMeta{Unseen: true}),
	}
}

// IsUnseen reports whether an entry is a notice of [Unseen].
func IsUnseen(e transcript.Entry) bool { return ownOf(e).Unseen }

// IsUntaken reports whether an entry is a notice of [Untaken].
func IsUntaken(e transcript.Entry) bool { return ownOf(e).Untaken }

// Begins reports whether words of the user are the same as what was said, or its beginning. It
// ignores white space and what agents add to the user's words.
func Begins(words, said string) bool {
	told := unwrap(words)
	if letters(told, 1) == 0 || letters(said, 1) == 0 {
		return false
	}
	if x := unwrap(said); letters(x, 1) > 0 {
		said = x
	}
	_, ok := after(said, told)
	return ok
}

// Text returns the text in a message.
func Text(blocks []acpv2.ContentBlock) string {
	var b strings.Builder
	for _, x := range blocks {
		if t, ok := x.(*acpv2.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}
