package acp

import "github.com/goacp/acp/acpv2"

// The vocabulary of this package is that of protocol version 2, whatever
// version the peer speaks: these are the types of package acpv2 under shorter
// names. What is not here is rare; use it as acpv2.Name.

// Identifiers are opaque strings that the agent makes, request ids and option ids aside.
type (
	// SessionID identifies one conversation with its own context, history and
	// state. See [acpv2.SessionID].
	SessionID = acpv2.SessionID
	// MessageID identifies a message within a session among those of its kind: a
	// user message and an agent message with the same id are two messages. See
	// [acpv2.MessageID].
	MessageID = acpv2.MessageID
	// ToolCallID identifies a tool call within a session. See
	// [acpv2.ToolCallID].
	ToolCallID = acpv2.ToolCallID
	// TerminalID identifies a terminal of the agent's within a session. See
	// [acpv2.TerminalID].
	TerminalID = acpv2.TerminalID
	// PlanID identifies a plan within a session. See [acpv2.PlanID].
	PlanID = acpv2.PlanID
	// CompactionID identifies one compaction of the context within a session.
	// See [acpv2.CompactionID].
	CompactionID = acpv2.CompactionID
	// ElicitationID identifies an elicitation that sends the user to a page, so
	// that its end can be reported. See [acpv2.ElicitationID].
	ElicitationID = acpv2.ElicitationID
	// AuthMethodID identifies one of the sign-in methods in the agent's
	// initialize response. See [acpv2.AuthMethodID].
	AuthMethodID = acpv2.AuthMethodID
	// SessionConfigID identifies a setting within a session. See
	// [acpv2.SessionConfigID].
	SessionConfigID = acpv2.SessionConfigID
	// SessionConfigValueID identifies one of the values of a setting. See
	// [acpv2.SessionConfigValueID].
	SessionConfigValueID = acpv2.SessionConfigValueID
	// SessionConfigGroupID identifies a group of values within a setting. See
	// [acpv2.SessionConfigGroupID].
	SessionConfigGroupID = acpv2.SessionConfigGroupID
	// PermissionOptionID identifies an option within a permission request. See
	// [acpv2.PermissionOptionID].
	PermissionOptionID = acpv2.PermissionOptionID
	// ProviderID identifies a model provider that the client may configure. See
	// [acpv2.ProviderID].
	ProviderID = acpv2.ProviderID
	// MCPServerACPID identifies an MCP server behind the ACP connection. See
	// [acpv2.MCPServerACPID].
	MCPServerACPID = acpv2.MCPServerACPID
	// MCPRequestID identifies an MCP request while it is running. See
	// [acpv2.MCPRequestID].
	MCPRequestID = acpv2.MCPRequestID
)

// What a message is made of.
type (
	// ContentBlock is a piece of text, an image, a sound or a resource, wherever
	// prompts, messages or tool output have content. See [acpv2.ContentBlock].
	ContentBlock = acpv2.ContentBlock
	// TextContent is text, to be shown as Markdown. See [acpv2.TextContent].
	TextContent = acpv2.TextContent
	// ImageContent is a picture sent inline. See [acpv2.ImageContent].
	ImageContent = acpv2.ImageContent
	// AudioContent is a recording sent inline. See [acpv2.AudioContent].
	AudioContent = acpv2.AudioContent
	// ResourceLink points at a resource without its contents. See
	// [acpv2.ResourceLink].
	ResourceLink = acpv2.ResourceLink
	// EmbeddedResource carries a resource together with its contents, which
	// spares the agent a read and reaches things only the client can see. See
	// [acpv2.EmbeddedResource].
	EmbeddedResource = acpv2.EmbeddedResource
	// EmbeddedResourceResource is the contents of a resource: text or bytes,
	// whichever field is present. See [acpv2.EmbeddedResourceResource].
	EmbeddedResourceResource = acpv2.EmbeddedResourceResource
	// TextResourceContents is a resource whose contents are text. See
	// [acpv2.TextResourceContents].
	TextResourceContents = acpv2.TextResourceContents
	// BlobResourceContents is a resource whose contents are bytes. See
	// [acpv2.BlobResourceContents].
	BlobResourceContents = acpv2.BlobResourceContents
	// UnknownContentBlock is a ContentBlock of a kind that this package does not
	// know; Raw keeps it byte for byte. See [acpv2.UnknownContentBlock].
	UnknownContentBlock = acpv2.UnknownContentBlock
	// Annotations advises the receiver how to route, rank and show a piece of
	// content. See [acpv2.Annotations].
	Annotations = acpv2.Annotations
	// Role is a party to the conversation. See [acpv2.Role].
	Role = acpv2.Role
	// Icon is a picture that stands for something in a user interface. See
	// [acpv2.Icon].
	Icon = acpv2.Icon
)

// What an agent tells about a session. A SessionUpdate is read with a type switch.
type (
	// SessionUpdate is something that happened in a session: a message or a
	// piece of one, a tool call, a change of state and so on. See
	// [acpv2.SessionUpdate].
	SessionUpdate = acpv2.SessionUpdate
	// UserMessage puts a message of the user's into the conversation, or changes
	// the one with the same id. See [acpv2.UserMessage].
	UserMessage = acpv2.UserMessage
	// UserMessageChunk carries a piece of the user's message, echoed or replayed
	// by the agent. See [acpv2.UserMessageChunk].
	UserMessageChunk = acpv2.UserMessageChunk
	// AgentMessage puts a message of the agent's into the conversation, or
	// changes the one with the same id. See [acpv2.AgentMessage].
	AgentMessage = acpv2.AgentMessage
	// AgentMessageChunk carries a piece of the agent's reply. See
	// [acpv2.AgentMessageChunk].
	AgentMessageChunk = acpv2.AgentMessageChunk
	// AgentThought puts a piece of reasoning into the conversation, or changes
	// the one with the same id. See [acpv2.AgentThought].
	AgentThought = acpv2.AgentThought
	// AgentThoughtChunk carries a piece of the agent's reasoning. See
	// [acpv2.AgentThoughtChunk].
	AgentThoughtChunk = acpv2.AgentThoughtChunk
	// ContentChunk appends a block to a message. See [acpv2.ContentChunk].
	ContentChunk = acpv2.ContentChunk
	// ToolCallUpdate reports a tool call, or changes the one with the same id;
	// an id not seen before creates it (S90). See [acpv2.ToolCallUpdate].
	ToolCallUpdate = acpv2.ToolCallUpdate
	// ToolCallContentChunk appends a part to what a tool call shows. See
	// [acpv2.ToolCallContentChunk].
	ToolCallContentChunk = acpv2.ToolCallContentChunk
	// TerminalUpdate reports a terminal, or changes the one with the same id; an
	// id not seen before creates it (S90). See [acpv2.TerminalUpdate].
	TerminalUpdate = acpv2.TerminalUpdate
	// TerminalOutputChunk appends bytes to the output of a terminal. See
	// [acpv2.TerminalOutputChunk].
	TerminalOutputChunk = acpv2.TerminalOutputChunk
	// PlanUpdate puts a plan in place, or replaces the one with the same id. See
	// [acpv2.PlanUpdate].
	PlanUpdate = acpv2.PlanUpdate
	// PlanRemoved takes a plan away. See [acpv2.PlanRemoved].
	PlanRemoved = acpv2.PlanRemoved
	// AvailableCommandsUpdate replaces the list of commands the user can invoke
	// in the session. See [acpv2.AvailableCommandsUpdate].
	AvailableCommandsUpdate = acpv2.AvailableCommandsUpdate
	// ConfigOptionUpdate replaces what the client knows about the settings of
	// the session. See [acpv2.ConfigOptionUpdate].
	ConfigOptionUpdate = acpv2.ConfigOptionUpdate
	// SessionInfoUpdate changes what the client knows about the session; what it
	// does not set stays. See [acpv2.SessionInfoUpdate].
	SessionInfoUpdate = acpv2.SessionInfoUpdate
	// UsageUpdate reports how full the context window is and what the session
	// has cost. See [acpv2.UsageUpdate].
	UsageUpdate = acpv2.UsageUpdate
	// CompactionUpdate reports a compaction of the context at this point of the
	// session, or changes the one with the same id. See
	// [acpv2.CompactionUpdate].
	CompactionUpdate = acpv2.CompactionUpdate
	// CompactionSummaryChunk appends a block to what is shown in place of
	// condensed messages. See [acpv2.CompactionSummaryChunk].
	CompactionSummaryChunk = acpv2.CompactionSummaryChunk
	// SubagentUpdate reports a child session that this session has created,
	// before anything else about it, or changes what is known of the child. See
	// [acpv2.SubagentUpdate].
	SubagentUpdate = acpv2.SubagentUpdate
	// SessionMessage puts a message between two sessions into this session's
	// transcript, or changes the one with the same id. See
	// [acpv2.SessionMessage].
	SessionMessage = acpv2.SessionMessage
	// SessionMessageChunk appends a block to a message between two sessions. See
	// [acpv2.SessionMessageChunk].
	SessionMessageChunk = acpv2.SessionMessageChunk
	// UnknownSessionUpdate is a SessionUpdate of a kind that this package does
	// not know; Raw keeps it byte for byte. See [acpv2.UnknownSessionUpdate].
	UnknownSessionUpdate = acpv2.UnknownSessionUpdate
	// StateUpdate is a snapshot of what a session is doing in the foreground,
	// that is, on its current task. See [acpv2.StateUpdate].
	StateUpdate = acpv2.StateUpdate
	// IdleStateUpdate reports that nothing runs in the foreground. See
	// [acpv2.IdleStateUpdate].
	IdleStateUpdate = acpv2.IdleStateUpdate
	// RunningStateUpdate reports that work is under way in the foreground. See
	// [acpv2.RunningStateUpdate].
	RunningStateUpdate = acpv2.RunningStateUpdate
	// RequiresActionStateUpdate reports that the foreground work cannot go on at
	// all until the user does something. See [acpv2.RequiresActionStateUpdate].
	RequiresActionStateUpdate = acpv2.RequiresActionStateUpdate
	// StateUnknownUpdate reports that the agent can no longer tell whether work
	// is under way. See [acpv2.StateUnknownUpdate].
	StateUnknownUpdate = acpv2.StateUnknownUpdate
	// UnknownStateUpdate is a StateUpdate of a kind that this package does not
	// know; Raw keeps it byte for byte. See [acpv2.UnknownStateUpdate].
	UnknownStateUpdate = acpv2.UnknownStateUpdate
)

type (
	// StopReason says why a turn ended. See [acpv2.StopReason].
	StopReason = acpv2.StopReason
	// Usage counts the tokens of the work that has just ended, not those of the
	// session. See [acpv2.Usage].
	Usage = acpv2.Usage
	// Cost is a price with its unit. See [acpv2.Cost].
	Cost = acpv2.Cost
	// BackgroundWork is something that goes on independently of the foreground:
	// a terminal, a tool call or a child session, which the client has been told
	// about before. See [acpv2.BackgroundWork].
	BackgroundWork = acpv2.BackgroundWork
	// BackgroundTerminal is a command that runs on by itself, until its terminal
	// has an exit status. See [acpv2.BackgroundTerminal].
	BackgroundTerminal = acpv2.BackgroundTerminal
	// BackgroundToolCall is a tool call that goes on without a process, such as
	// a timer. See [acpv2.BackgroundToolCall].
	BackgroundToolCall = acpv2.BackgroundToolCall
	// BackgroundSubagent is a child session left to itself in which something
	// runs, or may run. See [acpv2.BackgroundSubagent].
	BackgroundSubagent = acpv2.BackgroundSubagent
	// ToolKind says what sort of thing a tool does, so that a client can pick an
	// icon. See [acpv2.ToolKind].
	ToolKind = acpv2.ToolKind
	// ToolCallStatus is the state of a tool call. See [acpv2.ToolCallStatus].
	ToolCallStatus = acpv2.ToolCallStatus
	// ToolCallContent is a part of a tool call's output: content, changes to
	// files, or a terminal. See [acpv2.ToolCallContent].
	ToolCallContent = acpv2.ToolCallContent
	// UnknownToolCallContent is a ToolCallContent of a kind that this package
	// does not know; Raw keeps it byte for byte. See
	// [acpv2.UnknownToolCallContent].
	UnknownToolCallContent = acpv2.UnknownToolCallContent
	// ToolCallLocation is a place in a file that a tool call touches, so that a
	// client can follow along. See [acpv2.ToolCallLocation].
	ToolCallLocation = acpv2.ToolCallLocation
	// ToolCallCapabilities lists what the client may do to a tool call at
	// present. See [acpv2.ToolCallCapabilities].
	ToolCallCapabilities = acpv2.ToolCallCapabilities
	// Diff reports changes to files. See [acpv2.Diff].
	Diff = acpv2.Diff
	// DiffChange is a change to one file. See [acpv2.DiffChange].
	DiffChange = acpv2.DiffChange
	// DiffPatch is a patch as text. See [acpv2.DiffPatch].
	DiffPatch = acpv2.DiffPatch
	// DiffOperation is what happened to a file. See [acpv2.DiffOperation].
	DiffOperation = acpv2.DiffOperation
	// DiffAdd says that a file has come into being. See [acpv2.DiffAdd].
	DiffAdd = acpv2.DiffAdd
	// DiffDelete says that a file is gone. See [acpv2.DiffDelete].
	DiffDelete = acpv2.DiffDelete
	// DiffModify says that a file has other contents under the same path. See
	// [acpv2.DiffModify].
	DiffModify = acpv2.DiffModify
	// DiffMove says that a file has another path. See [acpv2.DiffMove].
	DiffMove = acpv2.DiffMove
	// DiffCopy says that a file now exists under another path as well. See
	// [acpv2.DiffCopy].
	DiffCopy = acpv2.DiffCopy
	// TerminalExitStatus says how a command ended. See
	// [acpv2.TerminalExitStatus].
	TerminalExitStatus = acpv2.TerminalExitStatus
	// TerminalOutput is all the output of a terminal up to now. See
	// [acpv2.TerminalOutput].
	TerminalOutput = acpv2.TerminalOutput
	// TerminalSize is the size of a terminal in characters. See
	// [acpv2.TerminalSize].
	TerminalSize = acpv2.TerminalSize
	// PlanUpdateContent is a plan in one of several forms. See
	// [acpv2.PlanUpdateContent].
	PlanUpdateContent = acpv2.PlanUpdateContent
	// PlanItems is a plan as a list of steps. See [acpv2.PlanItems].
	PlanItems = acpv2.PlanItems
	// PlanMarkdown is a plan written as a Markdown text. See
	// [acpv2.PlanMarkdown].
	PlanMarkdown = acpv2.PlanMarkdown
	// PlanFile is a plan kept in a file. See [acpv2.PlanFile].
	PlanFile = acpv2.PlanFile
	// PlanEntry is one step of a plan. See [acpv2.PlanEntry].
	PlanEntry = acpv2.PlanEntry
	// PlanEntryPriority ranks the steps of a plan. See
	// [acpv2.PlanEntryPriority].
	PlanEntryPriority = acpv2.PlanEntryPriority
	// PlanEntryStatus is the state of one step of a plan. See
	// [acpv2.PlanEntryStatus].
	PlanEntryStatus = acpv2.PlanEntryStatus
	// CompactionStatus is the state of a compaction. See
	// [acpv2.CompactionStatus].
	CompactionStatus = acpv2.CompactionStatus
	// NoticeSeverity grades a notice. See [acpv2.NoticeSeverity].
	NoticeSeverity = acpv2.NoticeSeverity
	// SubagentSessionCapabilities lists what the client may do to one child
	// session. See [acpv2.SubagentSessionCapabilities].
	SubagentSessionCapabilities = acpv2.SubagentSessionCapabilities
)

// What a session is opened and configured with.
type (
	// Implementation names the program at one end of the connection. See
	// [acpv2.Implementation].
	Implementation = acpv2.Implementation
	// MCPServer says how to reach an MCP server. See [acpv2.MCPServer].
	MCPServer = acpv2.MCPServer
	// MCPServerStdio is an MCP server that the agent starts as a program and
	// talks to over its standard streams. See [acpv2.MCPServerStdio].
	MCPServerStdio = acpv2.MCPServerStdio
	// MCPServerHTTP is an MCP server reached by streamable HTTP. See
	// [acpv2.MCPServerHTTP].
	MCPServerHTTP = acpv2.MCPServerHTTP
	// MCPServerACP is an MCP server that lives behind the ACP connection itself
	// and is reached with mcp/message. See [acpv2.MCPServerACP].
	MCPServerACP = acpv2.MCPServerACP
	// UnknownMCPServer is a MCPServer of a kind that this package does not know;
	// Raw keeps it byte for byte. See [acpv2.UnknownMCPServer].
	UnknownMCPServer = acpv2.UnknownMCPServer
	// EnvVariable sets one variable in the environment of a process to be
	// started. See [acpv2.EnvVariable].
	EnvVariable = acpv2.EnvVariable
	// HTTPHeader is one header to send with every request to an MCP server. See
	// [acpv2.HTTPHeader].
	HTTPHeader = acpv2.HTTPHeader
	// SystemPrompt carries instructions of the client's for the model. See
	// [acpv2.SystemPrompt].
	SystemPrompt = acpv2.SystemPrompt
	// SystemPromptMode says how a client's instructions relate to the agent's
	// own. See [acpv2.SystemPromptMode].
	SystemPromptMode = acpv2.SystemPromptMode
	// AvailableCommand is something the user can invoke by name. See
	// [acpv2.AvailableCommand].
	AvailableCommand = acpv2.AvailableCommand
	// AvailableCommandInput describes what can follow the name of a command. See
	// [acpv2.AvailableCommandInput].
	AvailableCommandInput = acpv2.AvailableCommandInput
	// TextCommandInput says that any text can follow the name of a command. See
	// [acpv2.TextCommandInput].
	TextCommandInput = acpv2.TextCommandInput
	// SessionConfigOption is a setting of the session that the user can change.
	// See [acpv2.SessionConfigOption].
	SessionConfigOption = acpv2.SessionConfigOption
	// SessionConfigOptionKind is the part of a configuration option that depends
	// on its type. See [acpv2.SessionConfigOptionKind].
	SessionConfigOptionKind = acpv2.SessionConfigOptionKind
	// SessionConfigSelect is a setting with one value out of several. See
	// [acpv2.SessionConfigSelect].
	SessionConfigSelect = acpv2.SessionConfigSelect
	// SessionConfigBoolean is a setting that is on or off. See
	// [acpv2.SessionConfigBoolean].
	SessionConfigBoolean = acpv2.SessionConfigBoolean
	// SessionConfigSelectOptions is the list of values of a setting, either flat
	// or in groups. See [acpv2.SessionConfigSelectOptions].
	SessionConfigSelectOptions = acpv2.SessionConfigSelectOptions
	// SessionConfigSelectOptionList is a SessionConfigSelectOptions of
	// SessionConfigSelectOption items. See
	// [acpv2.SessionConfigSelectOptionList].
	SessionConfigSelectOptionList = acpv2.SessionConfigSelectOptionList
	// SessionConfigSelectGroupList is a SessionConfigSelectOptions of
	// SessionConfigSelectGroup items. See [acpv2.SessionConfigSelectGroupList].
	SessionConfigSelectGroupList = acpv2.SessionConfigSelectGroupList
	// SessionConfigSelectOption is one value a setting can take. See
	// [acpv2.SessionConfigSelectOption].
	SessionConfigSelectOption = acpv2.SessionConfigSelectOption
	// SessionConfigSelectGroup is a run of values under a heading. See
	// [acpv2.SessionConfigSelectGroup].
	SessionConfigSelectGroup = acpv2.SessionConfigSelectGroup
	// SessionConfigOptionCategory says what a setting is about, for placement,
	// icons and key bindings only. See [acpv2.SessionConfigOptionCategory].
	SessionConfigOptionCategory = acpv2.SessionConfigOptionCategory
	// SessionConfigOptionValue is the value chosen for a configuration option.
	// See [acpv2.SessionConfigOptionValue].
	SessionConfigOptionValue = acpv2.SessionConfigOptionValue
	// SessionConfigOptionValueID sets a setting to one of its values. See
	// [acpv2.SessionConfigOptionValueID].
	SessionConfigOptionValueID = acpv2.SessionConfigOptionValueID
	// SessionConfigOptionValueBoolean switches a setting on or off. See
	// [acpv2.SessionConfigOptionValueBoolean].
	SessionConfigOptionValueBoolean = acpv2.SessionConfigOptionValueBoolean
	// SessionInfo describes a session in a list. See [acpv2.SessionInfo].
	SessionInfo = acpv2.SessionInfo
	// SessionStatus says whether the agent has a session in memory. See
	// [acpv2.SessionStatus].
	SessionStatus = acpv2.SessionStatus
	// SessionArchiveFilter selects sessions by archive state. See
	// [acpv2.SessionArchiveFilter].
	SessionArchiveFilter = acpv2.SessionArchiveFilter
	// AgentCapabilities lists what the agent can do beyond the minimum. See
	// [acpv2.AgentCapabilities].
	AgentCapabilities = acpv2.AgentCapabilities
	// ClientCapabilities lists what the client can do for the agent. See
	// [acpv2.ClientCapabilities].
	ClientCapabilities = acpv2.ClientCapabilities
	// PromptRequest gives the agent a message to work on. See
	// [acpv2.PromptRequest].
	PromptRequest = acpv2.PromptRequest
)

// Permissions, elicitation and authentication.
type (
	// PermissionOption is one of the answers the user may give to a permission
	// request. See [acpv2.PermissionOption].
	PermissionOption = acpv2.PermissionOption
	// PermissionOptionKind says what choosing an option means. See
	// [acpv2.PermissionOptionKind].
	PermissionOptionKind = acpv2.PermissionOptionKind
	// RequestPermissionSubject is an operation that needs permission: a tool
	// call or a command. See [acpv2.RequestPermissionSubject].
	RequestPermissionSubject = acpv2.RequestPermissionSubject
	// ToolCallPermissionSubject says that a tool call needs permission. See
	// [acpv2.ToolCallPermissionSubject].
	ToolCallPermissionSubject = acpv2.ToolCallPermissionSubject
	// CommandPermissionSubject says that a command needs permission. See
	// [acpv2.CommandPermissionSubject].
	CommandPermissionSubject = acpv2.CommandPermissionSubject
	// ElicitationSchema describes a form as a JSON Schema: an object with
	// properties of simple types. See [acpv2.ElicitationSchema].
	ElicitationSchema = acpv2.ElicitationSchema
	// ElicitationProperty is one member of ElicitationSchema.Properties, which
	// keeps the order of the wire. See [acpv2.ElicitationProperty].
	ElicitationProperty = acpv2.ElicitationProperty
	// ElicitationPropertySchema describes one field of a form by the JSON type
	// of its value. See [acpv2.ElicitationPropertySchema].
	ElicitationPropertySchema = acpv2.ElicitationPropertySchema
	// ElicitationAction is what the user did with an elicitation. See
	// [acpv2.ElicitationAction].
	ElicitationAction = acpv2.ElicitationAction
	// ElicitationAcceptAction says that the user agreed, and what was entered.
	// See [acpv2.ElicitationAcceptAction].
	ElicitationAcceptAction = acpv2.ElicitationAcceptAction
	// ElicitationDeclineAction says that the user refused to answer. See
	// [acpv2.ElicitationDeclineAction].
	ElicitationDeclineAction = acpv2.ElicitationDeclineAction
	// ElicitationCancelAction says that the question went away unanswered,
	// dismissed or withdrawn. See [acpv2.ElicitationCancelAction].
	ElicitationCancelAction = acpv2.ElicitationCancelAction
	// AuthMethod is a way for the user to sign in. See [acpv2.AuthMethod].
	AuthMethod = acpv2.AuthMethod
	// AuthMethodAgent is a way to sign in that the agent carries out when
	// auth/login names it. See [acpv2.AuthMethodAgent].
	AuthMethodAgent = acpv2.AuthMethodAgent
	// AuthMethodTerminal is a way to sign in for which the client starts the
	// agent's program once more, in a terminal the user can type in. See
	// [acpv2.AuthMethodTerminal].
	AuthMethodTerminal = acpv2.AuthMethodTerminal
	// AuthState says whether the agent can open sessions as things stand. See
	// [acpv2.AuthState].
	AuthState = acpv2.AuthState
	// AuthAccount describes an account or key the agent has been given, for
	// display only. See [acpv2.AuthAccount].
	AuthAccount = acpv2.AuthAccount
	// ProviderInfo describes a model provider and how it is set up now. See
	// [acpv2.ProviderInfo].
	ProviderInfo = acpv2.ProviderInfo
	// ProviderCurrentConfig is the setup of a provider in use, without its
	// secrets. See [acpv2.ProviderCurrentConfig].
	ProviderCurrentConfig = acpv2.ProviderCurrentConfig
	// LLMProtocol names the API that a model provider speaks. See
	// [acpv2.LLMProtocol].
	LLMProtocol = acpv2.LLMProtocol
	// StringPropertySchema describes a text field, or a choice of one when enum
	// or oneOf is set. See [acpv2.StringPropertySchema].
	StringPropertySchema = acpv2.StringPropertySchema
	// NumberPropertySchema describes a field for any number. See
	// [acpv2.NumberPropertySchema].
	NumberPropertySchema = acpv2.NumberPropertySchema
	// IntegerPropertySchema describes a field for a whole number. See
	// [acpv2.IntegerPropertySchema].
	IntegerPropertySchema = acpv2.IntegerPropertySchema
	// BooleanPropertySchema describes a box to tick. See
	// [acpv2.BooleanPropertySchema].
	BooleanPropertySchema = acpv2.BooleanPropertySchema
	// MultiSelectPropertySchema describes a choice of several values. See
	// [acpv2.MultiSelectPropertySchema].
	MultiSelectPropertySchema = acpv2.MultiSelectPropertySchema
	// EnumOption is a value to choose, with its label. See [acpv2.EnumOption].
	EnumOption = acpv2.EnumOption
)

// SlashCommand is a command the user can type: Name, Description and Input, which
// may be a [*TextCommandInput]. [AgentSession.SetCommands] announces them; in
// [ClientSession.Commands] they are *SlashCommand. See [acpv2.Command].
type SlashCommand = acpv2.Command

// Notice is a message to the user that is not part of the conversation:
// Severity, Title and Description. See [acpv2.Notice].
type Notice = acpv2.Notice

// TerminalContent shows a terminal inside a tool call.
type TerminalContent = acpv2.Terminal

// BlockContent shows a content block inside a tool call.
type BlockContent = acpv2.Content

// Patch is a field of an update with three states: unchanged, cleared and set.
// Read it with p.Get() (value, ok), p.Or(fallback), p.Apply(&field), p.IsZero()
// and p.IsClear(); make one with [Set] and [Clear]. See [acpv2.Patch].
type Patch[T any] = acpv2.Patch[T]

// Set returns a patch that replaces a field by v.
func Set[T any](v T) Patch[T] { return acpv2.Set(v) }

// Clear returns a patch that removes a field's value.
func Clear[T any]() Patch[T] { return acpv2.Clear[T]() }

// Text returns a text block.
func Text(s string) *TextContent { return acpv2.Text(s) }
