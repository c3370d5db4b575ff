package translate

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// FromV1 shows the updates of one session of version 1 in the vocabulary of
// version 2. The zero value is ready. It is not safe for concurrent use. It
// remembers the settings of the session, which message is being written, and
// of the last 256 tool calls which terminal they show.
type FromV1 struct {
	// OutputAppends says that terminal_output of this agent is a piece of the
	// output, as its first form was, and not all of it.
	OutputAppends bool

	options []acpv2.SessionConfigOption
	kind    messageKind // of the message being written, if its id is generated
	id      acpv2.MessageID
	made    int // message ids generated so far

	reported cache[acpv2.ToolCallID, reported]
}

// messageKind tells the three sorts of messages apart; zero is none.
type messageKind uint8

const (
	userMessage messageKind = 1 + iota
	agentMessage
	agentThought
)

var updatesOfV2 = acpv2.Updates()

// SetOptions tells the settings with which a session opens, as
// [SessionOptionsFromV1] gives them. The list must not be changed afterwards.
func (f *FromV1) SetOptions(list []acpv2.SessionConfigOption) { f.options = list }

// Options returns the settings after the last update. The list must not be
// changed.
func (f *FromV1) Options() []acpv2.SessionConfigOption { return f.options }

// Boundary says that what comes next belongs to no message before it, for
// instance because a prompt begins.
func (f *FromV1) Boundary() { f.kind = 0 }

// Update is [FromV1.Append] with a new list.
func (f *FromV1) Update(u acpv1.SessionUpdate) []acpv2.SessionUpdate { return f.Append(nil, u) }

// Append appends what u means in version 2 to dst; that can be nothing. The
// results share memory with u, so neither may be changed afterwards.
//
// A piece of a message without an id gets a generated one, "v1-1" and so on,
// which it shares with the pieces of the same kind before it; a piece of
// another kind, a tool call and [FromV1.Boundary] begin a new message. A change
// of mode is shown as the settings with another value for the mode. An update
// of a kind that this library does not know keeps its raw form, unless version
// 2 has a meaning for its name: that is dropped, because version 1 does not
// have it and it might be taken for a statement about the session's state.
//
// A command that the agent runs itself is reported in the metadata of its tool call:
// terminal_info, terminal_output, terminal_output_delta and terminal_exit. They become
// updates of a terminal, and leave the metadata. If the tool call does not show the
// terminal, the terminal is added to its content and ends with the call.
func (f *FromV1) Append(dst []acpv2.SessionUpdate, u acpv1.SessionUpdate) []acpv2.SessionUpdate {
	switch u := u.(type) {
	case *acpv1.AgentMessageChunk:
		return append(dst, (*acpv2.AgentMessageChunk)(f.chunk(agentMessage, (*acpv1.ContentChunk)(u))))
	case *acpv1.AgentThoughtChunk:
		return append(dst, (*acpv2.AgentThoughtChunk)(f.chunk(agentThought, (*acpv1.ContentChunk)(u))))
	case *acpv1.UserMessageChunk:
		return append(dst, (*acpv2.UserMessageChunk)(f.chunk(userMessage, (*acpv1.ContentChunk)(u))))
	case *acpv1.ToolCall:
		f.Boundary()
		return f.toolCall(dst, new(ToolCallFromV1(*u)), true)
	case *acpv1.ToolCallUpdate:
		return f.toolCall(dst, new(ToolUpdateFromV1(*u)), false)
	case *acpv1.Plan:
		return append(dst, new(PlanFromV1(*u)))
	case *acpv1.PlanUpdate:
		if v, ok := PlanUpdateFromV1(*u); ok {
			dst = append(dst, &v)
		}
		return dst
	case *acpv1.PlanRemoved:
		return append(dst, &acpv2.PlanRemoved{PlanID: acpv2.PlanID(u.PlanID), Meta: u.Meta, Unknown: u.Unknown})
	case *acpv1.AvailableCommandsUpdate:
		return append(dst, &acpv2.AvailableCommandsUpdate{AvailableCommands: CommandsFromV1(u.AvailableCommands), Meta: u.Meta, Unknown: u.Unknown})
	case *acpv1.CurrentModeUpdate:
		f.setMode(acpv2.SessionConfigValueID(u.CurrentModeID))
		return append(dst, f.settings(u.Meta, without(u.Unknown, "configOptions")))
	case *acpv1.ConfigOptionUpdate:
		f.replaceOptions(OptionsFromV1(u.ConfigOptions))
		return append(dst, f.settings(u.Meta, u.Unknown))
	case *acpv1.SessionInfoUpdate:
		return append(dst, new(SessionInfoUpdateFromV1(*u)))
	case *acpv1.UsageUpdate:
		return append(dst, new(UsageUpdateFromV1(*u)))
	case *acpv1.Notice:
		return append(dst, new(NoticeFromV1(*u)))
	case *acpv1.CompactionUpdate:
		return append(dst, new(CompactionFromV1(*u)))
	case *acpv1.CompactionSummaryChunk:
		return append(dst, new(CompactionChunkFromV1(*u)))
	case *acpv1.SubagentUpdate:
		return append(dst, new(SubagentFromV1(*u)))
	case *acpv1.SessionMessage:
		return append(dst, new(SessionMessageFromV1(*u)))
	case *acpv1.SessionMessageChunk:
		return append(dst, new(SessionMessageChunkFromV1(*u)))
	case *acpv1.PromptSuggestionsUpdate:
		return append(dst, new(SuggestionsFromV1(*u)))
	case *acpv1.CursorUpdate:
		return append(dst, new(CursorFromV1(*u)))
	case *acpv1.UnknownSessionUpdate:
		if _, known := updatesOfV2[u.Type]; !known {
			dst = append(dst, &acpv2.UnknownSessionUpdate{Type: u.Type, Raw: u.Raw})
		}
		return dst
	}
	return dst
}

func (f *FromV1) chunk(kind messageKind, c *acpv1.ContentChunk) *acpv2.ContentChunk {
	return &acpv2.ContentChunk{MessageID: f.message(kind, c.MessageID), Content: ContentFromV1(c.Content), Meta: c.Meta, Unknown: c.Unknown}
}

// message returns the id of the message a piece is of.
func (f *FromV1) message(kind messageKind, told acpv1.MessageID) acpv2.MessageID {
	switch {
	case told != "":
		f.kind = 0
		return acpv2.MessageID(told)
	case f.kind != kind:
		f.made++
		f.kind, f.id = kind, acpv2.MessageID("v1-"+strconv.Itoa(f.made))
	}
	return f.id
}

// A TextChunk is a piece of the agent's answer and its text, which make up
// nearly all of a session. Both are parts of one value because that costs one
// allocation instead of two.
type TextChunk struct {
	acpv2.AgentMessageChunk
	text acpv2.TextContent
}

// Text is [FromV1.Append] for a piece of the agent's answer that is text; any
// other update it leaves alone and returns false.
func (f *FromV1) Text(dst *TextChunk, u acpv1.SessionUpdate) bool {
	c, ok := u.(*acpv1.AgentMessageChunk)
	if !ok {
		return false
	}
	t, ok := c.Content.(*acpv1.TextContent)
	if !ok {
		return false
	}
	// Field by field: a whole value would be made elsewhere and copied.
	dst.MessageID, dst.Content = f.message(agentMessage, c.MessageID), &dst.text
	dst.Meta, dst.Unknown = c.Meta, c.Unknown
	dst.text.Text, dst.text.Meta, dst.text.Unknown = t.Text, t.Meta, t.Unknown
	dst.text.Annotations = annotationsFromV1(t.Annotations)
	return true
}

// setMode gives the mode another value, and makes an option for it if none is
// known.
func (f *FromV1) setMode(mode acpv2.SessionConfigValueID) {
	if id, ok := ModeOptionID(f.options); ok {
		f.options = WithValue(f.options, id, mode)
		return
	}
	o := selectOption(ModeOption, "Mode", acpv2.SessionConfigOptionCategoryMode, mode, nil)
	f.options = append(slices.Clip(f.options), o)
}

// replaceOptions takes a full list of settings. It speaks of options only, so
// what was made from modes and legacy models stays.
func (f *FromV1) replaceOptions(list []acpv2.SessionConfigOption) {
	if list == nil {
		list = []acpv2.SessionConfigOption{}
	}
	for _, o := range f.options {
		made := o.ConfigID == ModeOption && o.Category == acpv2.SessionConfigOptionCategoryMode ||
			o.ConfigID == ModelOption && o.Category == acpv2.SessionConfigOptionCategoryModel
		if made && !hasCategory(list, o.Category) {
			list = append(list, o)
		}
	}
	f.options = list
}

func (f *FromV1) settings(meta, unknown json.RawMessage) *acpv2.ConfigOptionUpdate {
	return &acpv2.ConfigOptionUpdate{ConfigOptions: f.options, Meta: meta, Unknown: unknown}
}
