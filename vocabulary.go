package acp

import "github.com/goacp/acp/acpv2"

// The vocabulary of this package is that of protocol version 2, whatever
// version the peer speaks: these are the types of package acpv2 under shorter
// names. What is not here is rare; use it as acpv2.Name.

// Identifiers are opaque strings that the agent makes, request ids and option ids aside.
type (
	SessionID            = acpv2.SessionID
	MessageID            = acpv2.MessageID
	ToolCallID           = acpv2.ToolCallID
	TerminalID           = acpv2.TerminalID
	PlanID               = acpv2.PlanID
	CompactionID         = acpv2.CompactionID
	ElicitationID        = acpv2.ElicitationID
	AuthMethodID         = acpv2.AuthMethodID
	SessionConfigID      = acpv2.SessionConfigID
	SessionConfigValueID = acpv2.SessionConfigValueID
	SessionConfigGroupID = acpv2.SessionConfigGroupID
	PermissionOptionID   = acpv2.PermissionOptionID
	ProviderID           = acpv2.ProviderID
	MCPServerACPID       = acpv2.MCPServerACPID
)

// What a message is made of.
type (
	ContentBlock             = acpv2.ContentBlock
	TextContent              = acpv2.TextContent
	ImageContent             = acpv2.ImageContent
	AudioContent             = acpv2.AudioContent
	ResourceLink             = acpv2.ResourceLink
	EmbeddedResource         = acpv2.EmbeddedResource
	EmbeddedResourceResource = acpv2.EmbeddedResourceResource
	TextResourceContents     = acpv2.TextResourceContents
	BlobResourceContents     = acpv2.BlobResourceContents
	UnknownContentBlock      = acpv2.UnknownContentBlock
	Annotations              = acpv2.Annotations
	Role                     = acpv2.Role
	Icon                     = acpv2.Icon
)

// What an agent tells about a session. A SessionUpdate is read with a type switch.
type (
	SessionUpdate             = acpv2.SessionUpdate
	UserMessage               = acpv2.UserMessage
	UserMessageChunk          = acpv2.UserMessageChunk
	AgentMessage              = acpv2.AgentMessage
	AgentMessageChunk         = acpv2.AgentMessageChunk
	AgentThought              = acpv2.AgentThought
	AgentThoughtChunk         = acpv2.AgentThoughtChunk
	ContentChunk              = acpv2.ContentChunk
	ToolCallUpdate            = acpv2.ToolCallUpdate
	ToolCallContentChunk      = acpv2.ToolCallContentChunk
	TerminalUpdate            = acpv2.TerminalUpdate
	TerminalOutputChunk       = acpv2.TerminalOutputChunk
	PlanUpdate                = acpv2.PlanUpdate
	PlanRemoved               = acpv2.PlanRemoved
	AvailableCommandsUpdate   = acpv2.AvailableCommandsUpdate
	ConfigOptionUpdate        = acpv2.ConfigOptionUpdate
	SessionInfoUpdate         = acpv2.SessionInfoUpdate
	UsageUpdate               = acpv2.UsageUpdate
	CompactionUpdate          = acpv2.CompactionUpdate
	CompactionSummaryChunk    = acpv2.CompactionSummaryChunk
	SubagentUpdate            = acpv2.SubagentUpdate
	SessionMessage            = acpv2.SessionMessage
	SessionMessageChunk       = acpv2.SessionMessageChunk
	UnknownSessionUpdate      = acpv2.UnknownSessionUpdate
	StateUpdate               = acpv2.StateUpdate
	IdleStateUpdate           = acpv2.IdleStateUpdate
	RunningStateUpdate        = acpv2.RunningStateUpdate
	RequiresActionStateUpdate = acpv2.RequiresActionStateUpdate
	StateUnknownUpdate        = acpv2.StateUnknownUpdate
	UnknownStateUpdate        = acpv2.UnknownStateUpdate
)

// The parts of updates.
type (
	StopReason                  = acpv2.StopReason
	Usage                       = acpv2.Usage
	Cost                        = acpv2.Cost
	BackgroundWork              = acpv2.BackgroundWork
	BackgroundTerminal          = acpv2.BackgroundTerminal
	BackgroundToolCall          = acpv2.BackgroundToolCall
	BackgroundSubagent          = acpv2.BackgroundSubagent
	ToolKind                    = acpv2.ToolKind
	ToolCallStatus              = acpv2.ToolCallStatus
	ToolCallContent             = acpv2.ToolCallContent
	ToolCallLocation            = acpv2.ToolCallLocation
	ToolCallCapabilities        = acpv2.ToolCallCapabilities
	Diff                        = acpv2.Diff
	DiffChange                  = acpv2.DiffChange
	DiffPatch                   = acpv2.DiffPatch
	TerminalExitStatus          = acpv2.TerminalExitStatus
	TerminalSize                = acpv2.TerminalSize
	PlanUpdateContent           = acpv2.PlanUpdateContent
	PlanItems                   = acpv2.PlanItems
	PlanMarkdown                = acpv2.PlanMarkdown
	PlanFile                    = acpv2.PlanFile
	PlanEntry                   = acpv2.PlanEntry
	PlanEntryPriority           = acpv2.PlanEntryPriority
	PlanEntryStatus             = acpv2.PlanEntryStatus
	CompactionStatus            = acpv2.CompactionStatus
	NoticeSeverity              = acpv2.NoticeSeverity
	SubagentSessionCapabilities = acpv2.SubagentSessionCapabilities
)

// What a session is opened and configured with.
type (
	Implementation                  = acpv2.Implementation
	MCPServer                       = acpv2.MCPServer
	MCPServerStdio                  = acpv2.MCPServerStdio
	MCPServerHTTP                   = acpv2.MCPServerHTTP
	MCPServerACP                    = acpv2.MCPServerACP
	UnknownMCPServer                = acpv2.UnknownMCPServer
	EnvVariable                     = acpv2.EnvVariable
	HTTPHeader                      = acpv2.HTTPHeader
	SystemPrompt                    = acpv2.SystemPrompt
	SystemPromptMode                = acpv2.SystemPromptMode
	AvailableCommand                = acpv2.AvailableCommand
	AvailableCommandInput           = acpv2.AvailableCommandInput
	TextCommandInput                = acpv2.TextCommandInput
	SessionConfigOption             = acpv2.SessionConfigOption
	SessionConfigOptionKind         = acpv2.SessionConfigOptionKind
	SessionConfigSelect             = acpv2.SessionConfigSelect
	SessionConfigBoolean            = acpv2.SessionConfigBoolean
	SessionConfigSelectOptions      = acpv2.SessionConfigSelectOptions
	SessionConfigSelectOptionList   = acpv2.SessionConfigSelectOptionList
	SessionConfigSelectGroupList    = acpv2.SessionConfigSelectGroupList
	SessionConfigSelectOption       = acpv2.SessionConfigSelectOption
	SessionConfigSelectGroup        = acpv2.SessionConfigSelectGroup
	SessionConfigOptionCategory     = acpv2.SessionConfigOptionCategory
	SessionConfigOptionValue        = acpv2.SessionConfigOptionValue
	SessionConfigOptionValueID      = acpv2.SessionConfigOptionValueID
	SessionConfigOptionValueBoolean = acpv2.SessionConfigOptionValueBoolean
	SessionInfo                     = acpv2.SessionInfo
	SessionStatus                   = acpv2.SessionStatus
	SessionArchiveFilter            = acpv2.SessionArchiveFilter
	AgentCapabilities               = acpv2.AgentCapabilities
	ClientCapabilities              = acpv2.ClientCapabilities
)

// Permissions, elicitation and authentication.
type (
	PermissionOption          = acpv2.PermissionOption
	PermissionOptionKind      = acpv2.PermissionOptionKind
	RequestPermissionSubject  = acpv2.RequestPermissionSubject
	ToolCallPermissionSubject = acpv2.ToolCallPermissionSubject
	CommandPermissionSubject  = acpv2.CommandPermissionSubject
	ElicitationSchema         = acpv2.ElicitationSchema
	ElicitationProperty       = acpv2.ElicitationProperty
	ElicitationPropertySchema = acpv2.ElicitationPropertySchema
	ElicitationAction         = acpv2.ElicitationAction
	ElicitationAcceptAction   = acpv2.ElicitationAcceptAction
	ElicitationDeclineAction  = acpv2.ElicitationDeclineAction
	ElicitationCancelAction   = acpv2.ElicitationCancelAction
	AuthMethod                = acpv2.AuthMethod
	AuthMethodAgent           = acpv2.AuthMethodAgent
	AuthMethodTerminal        = acpv2.AuthMethodTerminal
	AuthState                 = acpv2.AuthState
	AuthAccount               = acpv2.AuthAccount
	ProviderInfo              = acpv2.ProviderInfo
	ProviderCurrentConfig     = acpv2.ProviderCurrentConfig
	LLMProtocol               = acpv2.LLMProtocol
)

// SlashCommand is a command the user can type; [AgentSession.SetCommands]
// announces them.
type SlashCommand = acpv2.Command

// Notice is a message to the user that is not part of the conversation.
type Notice = acpv2.Notice

// TerminalContent shows a terminal inside a tool call.
type TerminalContent = acpv2.Terminal

// BlockContent shows a content block inside a tool call.
type BlockContent = acpv2.Content

// Patch is a field of an update with three states: see [acpv2.Patch].
type Patch[T any] = acpv2.Patch[T]

// Set returns a patch that replaces a field by v.
func Set[T any](v T) Patch[T] { return acpv2.Set(v) }

// Clear returns a patch that removes a field's value.
func Clear[T any]() Patch[T] { return acpv2.Clear[T]() }

// Text returns a text block.
func Text(s string) *TextContent { return acpv2.Text(s) }

// Why a turn ended.
const (
	StopEndTurn         = acpv2.StopReasonEndTurn
	StopMaxTokens       = acpv2.StopReasonMaxTokens
	StopMaxTurnRequests = acpv2.StopReasonMaxTurnRequests
	StopRefusal         = acpv2.StopReasonRefusal
	StopCancelled       = acpv2.StopReasonCancelled
	StopError           = acpv2.StopReasonError
)

// The values of the enums above; others may come from newer peers and are kept.
const (
	ToolKindRead       = acpv2.ToolKindRead
	ToolKindEdit       = acpv2.ToolKindEdit
	ToolKindDelete     = acpv2.ToolKindDelete
	ToolKindMove       = acpv2.ToolKindMove
	ToolKindSearch     = acpv2.ToolKindSearch
	ToolKindExecute    = acpv2.ToolKindExecute
	ToolKindThink      = acpv2.ToolKindThink
	ToolKindFetch      = acpv2.ToolKindFetch
	ToolKindSwitchMode = acpv2.ToolKindSwitchMode
	ToolKindOther      = acpv2.ToolKindOther

	ToolCallStatusPending    = acpv2.ToolCallStatusPending
	ToolCallStatusInProgress = acpv2.ToolCallStatusInProgress
	ToolCallStatusPaused     = acpv2.ToolCallStatusPaused
	ToolCallStatusCompleted  = acpv2.ToolCallStatusCompleted
	ToolCallStatusFailed     = acpv2.ToolCallStatusFailed
	ToolCallStatusCancelled  = acpv2.ToolCallStatusCancelled

	PermissionOptionKindAllowOnce    = acpv2.PermissionOptionKindAllowOnce
	PermissionOptionKindAllowAlways  = acpv2.PermissionOptionKindAllowAlways
	PermissionOptionKindRejectOnce   = acpv2.PermissionOptionKindRejectOnce
	PermissionOptionKindRejectAlways = acpv2.PermissionOptionKindRejectAlways

	PlanEntryPriorityHigh   = acpv2.PlanEntryPriorityHigh
	PlanEntryPriorityMedium = acpv2.PlanEntryPriorityMedium
	PlanEntryPriorityLow    = acpv2.PlanEntryPriorityLow

	PlanEntryStatusPending    = acpv2.PlanEntryStatusPending
	PlanEntryStatusInProgress = acpv2.PlanEntryStatusInProgress
	PlanEntryStatusCompleted  = acpv2.PlanEntryStatusCompleted
	PlanEntryStatusCancelled  = acpv2.PlanEntryStatusCancelled

	NoticeSeverityInfo    = acpv2.NoticeSeverityInfo
	NoticeSeverityWarning = acpv2.NoticeSeverityWarning
	NoticeSeverityError   = acpv2.NoticeSeverityError

	CompactionStatusInProgress = acpv2.CompactionStatusInProgress
	CompactionStatusCompleted  = acpv2.CompactionStatusCompleted
	CompactionStatusFailed     = acpv2.CompactionStatusFailed
	CompactionStatusCancelled  = acpv2.CompactionStatusCancelled

	SessionConfigOptionCategoryMode         = acpv2.SessionConfigOptionCategoryMode
	SessionConfigOptionCategoryModel        = acpv2.SessionConfigOptionCategoryModel
	SessionConfigOptionCategoryModelConfig  = acpv2.SessionConfigOptionCategoryModelConfig
	SessionConfigOptionCategoryThoughtLevel = acpv2.SessionConfigOptionCategoryThoughtLevel

	SystemPromptModeAppend   = acpv2.SystemPromptModeAppend
	SystemPromptModeOverride = acpv2.SystemPromptModeOverride

	SessionStatusOpen  = acpv2.SessionStatusOpen
	SessionStatusSaved = acpv2.SessionStatusSaved

	SessionArchiveFilterExclude = acpv2.SessionArchiveFilterExclude
	SessionArchiveFilterInclude = acpv2.SessionArchiveFilterInclude
	SessionArchiveFilterOnly    = acpv2.SessionArchiveFilterOnly

	AuthStateAuthenticated   = acpv2.AuthStateAuthenticated
	AuthStateUnauthenticated = acpv2.AuthStateUnauthenticated
	AuthStateNotRequired     = acpv2.AuthStateNotRequired
	AuthStateUnknown         = acpv2.AuthStateUnknown

	RoleAssistant = acpv2.RoleAssistant
	RoleUser      = acpv2.RoleUser

	LLMProtocolAnthropic = acpv2.LLMProtocolAnthropic
	LLMProtocolOpenAI    = acpv2.LLMProtocolOpenAI
	LLMProtocolAzure     = acpv2.LLMProtocolAzure
	LLMProtocolVertex    = acpv2.LLMProtocolVertex
	LLMProtocolBedrock   = acpv2.LLMProtocolBedrock
)
