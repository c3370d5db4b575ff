package translate

import (
	"encoding/json"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/patch"
)

// What a [ToV1] remembers, at most.
const (
	maxMessages  = 4096
	maxCalls     = 4096
	maxTerminals = 256
	maxTexts     = 64       // registered edits
	maxTextBytes = 16 << 20 // of registered edits
	maxOutput    = 64 << 10 // bytes of a terminal that are shown
	maxParts     = 1024     // pieces of content of one tool call that are sent again
	maxPartBytes = 4 << 20  // of one tool call
	maxAllParts  = 16 << 20 // of all tool calls
	maxShown     = 16       // tool calls that show one terminal
	maxTitle     = 1 << 10  // bytes of a title that is remembered
)

// ToV1 serves a client of version 1 from the updates of one session of version
// 2. Caps is what the client advertises; it must be set before the first use
// and holds from then on. The zero value serves a client that advertises
// nothing. It is not safe for concurrent use.
//
// It remembers 4096 messages by the length and a hash of what was sent, 4096
// tool calls with up to 16 MiB of content altogether and 4 MiB or 1024 pieces
// each, 256 terminals with up to 128 KiB of output each, and the texts of 64
// edits or 16 MiB. What was not used for longest is forgotten: a message is then
// sent whole again if it is replaced; a tool call is announced again by its next
// update; a piece of content replaces what was shown before it; a terminal starts
// empty; an edit gets its texts from its patch.
type ToV1 struct {
	Caps acpv1.ClientCapabilities

	messages  cache[messageKey, sent]
	calls     cache[acpv2.ToolCallID, call]
	terminals cache[acpv2.TerminalID, terminal]
	texts     cache[*acpv2.Diff, []patch.File]
	textBytes int
	partBytes int // of all calls

	plan         acpv2.PlanID // the plan that the client shows
	mode         string       // the mode that the client knows
	made         int          // tool call ids generated so far
	allTerminals bool         // treat every terminal as the client's
}

var updatesOfV1 = acpv1.Updates()

// Update is [ToV1.Append] with a new list.
func (t *ToV1) Update(u acpv2.SessionUpdate) []acpv1.SessionUpdate { return t.Append(nil, u) }

// Append appends what u means in version 1 to dst; that can be nothing. The
// results share memory with u, so neither may be changed afterwards.
//
// What has no form in version 1, and what the client does not advertise, is
// left out; the package documentation lists it.
func (t *ToV1) Append(dst []acpv1.SessionUpdate, u acpv2.SessionUpdate) []acpv1.SessionUpdate {
	switch u := u.(type) {
	case *acpv2.AgentMessageChunk:
		return append(dst, (*acpv1.AgentMessageChunk)(t.chunk(agentMessage, (*acpv2.ContentChunk)(u))))
	case *acpv2.AgentThoughtChunk:
		return append(dst, (*acpv1.AgentThoughtChunk)(t.chunk(agentThought, (*acpv2.ContentChunk)(u))))
	case *acpv2.UserMessageChunk:
		return append(dst, (*acpv1.UserMessageChunk)(t.chunk(userMessage, (*acpv2.ContentChunk)(u))))
	case *acpv2.AgentMessage:
		return t.message(dst, agentMessage, u.MessageID, u.Content, u.Meta, u.Unknown)
	case *acpv2.AgentThought:
		return t.message(dst, agentThought, u.MessageID, u.Content, u.Meta, u.Unknown)
	case *acpv2.UserMessage:
		return t.message(dst, userMessage, u.MessageID, u.Content, u.Meta, u.Unknown)
	case *acpv2.ToolCallUpdate:
		return t.toolCall(dst, u)
	case *acpv2.ToolCallContentChunk:
		return t.contentChunk(dst, u)
	case *acpv2.TerminalUpdate:
		return t.terminalUpdate(dst, u)
	case *acpv2.TerminalOutputChunk:
		return t.terminalOutput(dst, u)
	case *acpv2.PlanUpdate:
		return t.planUpdate(dst, u)
	case *acpv2.PlanRemoved:
		return t.planRemoved(dst, u)
	case *acpv2.AvailableCommandsUpdate:
		return append(dst, &acpv1.AvailableCommandsUpdate{AvailableCommands: CommandsToV1(u.AvailableCommands), Meta: u.Meta, Unknown: u.Unknown})
	case *acpv2.ConfigOptionUpdate:
		return t.configOptions(dst, u)
	case *acpv2.SessionInfoUpdate:
		return append(dst, new(SessionInfoUpdateToV1(*u)))
	case *acpv2.UsageUpdate:
		return append(dst, new(UsageUpdateToV1(*u)))
	}
	return t.advertised(dst, u)
}

// advertised is the part of Append for what the client must have advertised,
// and for the unknown.
func (t *ToV1) advertised(dst []acpv1.SessionUpdate, u acpv2.SessionUpdate) []acpv1.SessionUpdate {
	session := t.Caps.Session
	compaction := session != nil && session.Compaction != nil
	switch u := u.(type) {
	case *acpv2.Notice:
		if session != nil && session.Notices != nil {
			return append(dst, new(NoticeToV1(*u)))
		}
	case *acpv2.CompactionUpdate:
		if compaction {
			return append(dst, new(CompactionToV1(*u)))
		}
	case *acpv2.CompactionSummaryChunk:
		if compaction {
			c := *u
			c.Content = closed(c.Content)
			return append(dst, new(CompactionChunkToV1(c)))
		}
	case *acpv2.SubagentUpdate:
		if t.Caps.Subagents != nil {
			return append(dst, new(SubagentToV1(*u)))
		}
	case *acpv2.SessionMessage:
		if t.Caps.Subagents != nil {
			m := *u
			if list, ok := m.Content.Get(); ok {
				m.Content = acpv2.Set(each(list, closed))
			}
			return append(dst, new(SessionMessageToV1(m)))
		}
	case *acpv2.SessionMessageChunk:
		if t.Caps.Subagents != nil {
			c := *u
			c.Content = closed(c.Content)
			return append(dst, new(SessionMessageChunkToV1(c)))
		}
	case *acpv2.PromptSuggestionsUpdate:
		if session != nil && session.PromptSuggestions != nil {
			return append(dst, new(SuggestionsToV1(*u)))
		}
	case *acpv2.CursorUpdate:
		if session != nil && session.Cursors != nil && placed(u) {
			return append(dst, new(CursorToV1(*u)))
		}
	case *acpv2.UnknownSessionUpdate:
		if _, known := updatesOfV1[u.Type]; !known && isOwn(u.Type) {
			return append(dst, &acpv1.UnknownSessionUpdate{Type: u.Type, Raw: u.Raw})
		}
	}
	return dst
}

// isOwn reports whether a variant that this library does not know is an extension. The unions of
// version 1 are closed to others, and clients of version 1 close the connection at them.
func isOwn(variant string) bool { return strings.HasPrefix(variant, "_") }

// ForgetMode has the next update of the options tell the client the mode even if it is one that it knows.
func (t *ToV1) ForgetMode() { t.mode = "" }

// Options converts the settings with which a session opens, for its result:
// without booleans unless the client advertises them, and with the modes made
// from the option of category mode, nil without one.
func (t *ToV1) Options(list []acpv2.SessionConfigOption) ([]acpv1.SessionConfigOption, *acpv1.SessionModeState) {
	modes := ModesToV1(list)
	if modes != nil {
		t.mode = string(modes.CurrentModeID)
	}
	return t.options(list), modes
}

func (t *ToV1) options(list []acpv2.SessionConfigOption) []acpv1.SessionConfigOption {
	s := t.Caps.Session
	booleans := s != nil && s.ConfigOptions != nil && s.ConfigOptions.Boolean != nil
	return OptionsToV1(slices.DeleteFunc(slices.Clone(list), func(o acpv2.SessionConfigOption) bool {
		switch k := o.Kind.(type) {
		case *acpv2.SessionConfigBoolean:
			return !booleans
		case *acpv2.UnknownSessionConfigOptionKind:
			return !isOwn(k.Type)
		}
		return false
	}))
}

func (t *ToV1) configOptions(dst []acpv1.SessionUpdate, u *acpv2.ConfigOptionUpdate) []acpv1.SessionUpdate {
	dst = append(dst, &acpv1.ConfigOptionUpdate{ConfigOptions: t.options(u.ConfigOptions), Meta: u.Meta, Unknown: u.Unknown})
	if i := optionOf(u.ConfigOptions, acpv2.SessionConfigOptionCategoryMode); i >= 0 {
		mode := string(u.ConfigOptions[i].Kind.(*acpv2.SessionConfigSelect).CurrentValue)
		if mode != t.mode {
			t.mode = mode
			dst = append(dst, &acpv1.CurrentModeUpdate{CurrentModeID: acpv1.SessionModeID(mode)})
		}
	}
	return dst
}

// planUpdate sends plans with ids to clients that know them, except the one
// that stands for the plan without id.
func (t *ToV1) planUpdate(dst []acpv1.SessionUpdate, u *acpv2.PlanUpdate) []acpv1.SessionUpdate {
	items, ok := u.Plan.(*acpv2.PlanItems)
	if t.Caps.Plan != nil && !(ok && items.PlanID == PlanID) {
		if p, ok := u.Plan.(*acpv2.UnknownPlanUpdateContent); ok && !isOwn(p.Type) {
			return dst
		}
		if v, ok := PlanUpdateToV1(*u); ok {
			dst = append(dst, &v)
		}
		return dst
	}
	if v, ok := PlanToV1(*u); ok {
		t.plan = PlanIDOf(u.Plan)
		dst = append(dst, &v)
	}
	return dst
}

func (t *ToV1) planRemoved(dst []acpv1.SessionUpdate, u *acpv2.PlanRemoved) []acpv1.SessionUpdate {
	if t.Caps.Plan != nil && u.PlanID != PlanID {
		return append(dst, &acpv1.PlanRemoved{PlanID: acpv1.PlanID(u.PlanID), Meta: u.Meta, Unknown: u.Unknown})
	}
	if u.PlanID != t.plan {
		return dst // another plan has taken its place
	}
	t.plan = ""
	return append(dst, &acpv1.Plan{Entries: []acpv1.PlanEntry{}, Meta: u.Meta, Unknown: without(u.Unknown, "entries")})
}

func (t *ToV1) newID() acpv1.ToolCallID {
	t.made++
	return acpv1.ToolCallID("v2-" + strconv.Itoa(t.made))
}

type messageKey struct {
	kind messageKind
	id   acpv2.MessageID
}

func (t *ToV1) chunk(kind messageKind, c *acpv2.ContentChunk) *acpv1.ContentChunk {
	t.sentOf(kind, c.MessageID).add(c.Content)
	return &acpv1.ContentChunk{Content: ContentToV1(closed(c.Content)), MessageID: acpv1.MessageID(c.MessageID), Meta: c.Meta, Unknown: c.Unknown}
}

// sentOf returns what was sent of a message.
func (t *ToV1) sentOf(kind messageKind, id acpv2.MessageID) *sent {
	k := messageKey{kind, id}
	m := t.messages.get(k)
	if m == nil {
		m, _ = t.messages.add(k, maxMessages)
	}
	return m
}

// message sends the part of a whole message that the client does not have; the
// first piece carries its metadata.
func (t *ToV1) message(dst []acpv1.SessionUpdate, kind messageKind, id acpv2.MessageID, content acpv2.Patch[[]acpv2.ContentBlock], meta, unknown json.RawMessage) []acpv1.SessionUpdate {
	blocks, ok := content.Get()
	if !ok {
		return dst
	}
	rest, ok := t.sentOf(kind, id).left(blocks)
	if !ok {
		return dst
	}
	meta = object(meta)
	for _, b := range rest {
		c := t.chunk(kind, &acpv2.ContentChunk{MessageID: id, Content: b, Meta: meta, Unknown: unknown})
		meta, unknown = nil, nil
		switch kind {
		case userMessage:
			dst = append(dst, (*acpv1.UserMessageChunk)(c))
		case agentMessage:
			dst = append(dst, (*acpv1.AgentMessageChunk)(c))
		case agentThought:
			dst = append(dst, (*acpv1.AgentThoughtChunk)(c))
		}
	}
	return dst
}

// sent is what a client was sent of a message: how many bytes, and a hash of
// them. Blocks of nothing but text count with their text, so that it
// does not matter how it was cut; others with their JSON. The zero value is an
// empty message. The hash need not withstand malice: who forges it garbles its
// own message.
type sent struct {
	size int
	sum  uint64 // of the words of eight bytes
	rest uint64 // the bytes after these, the first of them lowest
}

func (s *sent) write(p string) {
	at := s.size % 8
	s.size += len(p)
	for ; at > 0 && len(p) > 0; p = p[1:] {
		s.rest |= uint64(p[0]) << (8 * at)
		if at = (at + 1) % 8; at == 0 {
			s.sum, s.rest = sumOf(s.sum, s.rest), 0
		}
	}
	sum := s.sum
	for ; len(p) >= 8; p = p[8:] {
		sum = sumOf(sum, uint64(p[0])|uint64(p[1])<<8|uint64(p[2])<<16|uint64(p[3])<<24|
			uint64(p[4])<<32|uint64(p[5])<<40|uint64(p[6])<<48|uint64(p[7])<<56)
	}
	s.sum = sum
	for i := range len(p) {
		s.rest |= uint64(p[i]) << (8 * i)
	}
}

// sumOf adds a word to a hash. The words are scattered on their own, so that the
// sum, which has to be waited for, is only multiplied.
func sumOf(sum, word uint64) uint64 {
	const prime = 0x9E3779B97F4A7C55
	high, low := bits.Mul64(word^0xD6E8FEB86659FD93, prime)
	return sum*prime + (high ^ low)
}

func (s *sent) add(b acpv2.ContentBlock) {
	p, _ := spell(b)
	s.write(p)
}

// spell returns what a block counts with, and whether it is nothing but text.
func spell(b acpv2.ContentBlock) (s string, plain bool) {
	if b, ok := b.(*acpv2.TextContent); ok && b != nil && b.Annotations == nil && !hasMembers(b.Meta, b.Unknown) {
		return b.Text, true
	}
	if b == nil {
		return "", false
	}
	raw, _ := b.AppendJSON([]byte{0}) // what cannot be encoded is not sent either
	return string(raw), false
}

// left returns what is left of a message that begins with what was sent; false
// if it does not.
func (s *sent) left(blocks []acpv2.ContentBlock) (_ []acpv2.ContentBlock, ok bool) {
	var now sent
	for i, b := range blocks {
		if now.size == s.size {
			return blocks[i:], now == *s
		}
		p, plain := spell(b)
		left := s.size - now.size
		if len(p) <= left {
			now.write(p)
			continue
		}
		now.write(p[:left])
		if !plain || now != *s {
			return nil, false
		}
		return append([]acpv2.ContentBlock{acpv2.Text(p[left:])}, blocks[i+1:]...), true
	}
	return nil, now == *s
}
