package acp

import "github.com/goacp/acp/acpv2"

// Why a turn ended.
const (
	StopEndTurn         = acpv2.StopReasonEndTurn
	StopMaxTokens       = acpv2.StopReasonMaxTokens
	StopMaxTurnRequests = acpv2.StopReasonMaxTurnRequests
	StopRefusal         = acpv2.StopReasonRefusal
	StopCancelled       = acpv2.StopReasonCancelled
	StopError           = acpv2.StopReasonError
)

// Kinds of tools. Others may come from newer peers and are kept.
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
)

// How far tool calls are. Others may come from newer peers and are kept.
const (
	ToolCallStatusPending    = acpv2.ToolCallStatusPending
	ToolCallStatusInProgress = acpv2.ToolCallStatusInProgress
	ToolCallStatusPaused     = acpv2.ToolCallStatusPaused
	ToolCallStatusCompleted  = acpv2.ToolCallStatusCompleted
	ToolCallStatusFailed     = acpv2.ToolCallStatusFailed
	ToolCallStatusCancelled  = acpv2.ToolCallStatusCancelled
)

// Kinds of answers to a permission request. Others may come from newer peers and are kept.
const (
	PermissionOptionKindAllowOnce    = acpv2.PermissionOptionKindAllowOnce
	PermissionOptionKindAllowAlways  = acpv2.PermissionOptionKindAllowAlways
	PermissionOptionKindRejectOnce   = acpv2.PermissionOptionKindRejectOnce
	PermissionOptionKindRejectAlways = acpv2.PermissionOptionKindRejectAlways
)

// How important plan entries are. Others may come from newer peers and are kept.
const (
	PlanEntryPriorityHigh   = acpv2.PlanEntryPriorityHigh
	PlanEntryPriorityMedium = acpv2.PlanEntryPriorityMedium
	PlanEntryPriorityLow    = acpv2.PlanEntryPriorityLow
)

// How far plan entries are. Others may come from newer peers and are kept.
const (
	PlanEntryStatusPending    = acpv2.PlanEntryStatusPending
	PlanEntryStatusInProgress = acpv2.PlanEntryStatusInProgress
	PlanEntryStatusCompleted  = acpv2.PlanEntryStatusCompleted
	PlanEntryStatusCancelled  = acpv2.PlanEntryStatusCancelled
)

// How serious notices are. Others may come from newer peers and are kept.
const (
	NoticeSeverityInfo    = acpv2.NoticeSeverityInfo
	NoticeSeverityWarning = acpv2.NoticeSeverityWarning
	NoticeSeverityError   = acpv2.NoticeSeverityError
)

// How far compactions are. Others may come from newer peers and are kept.
const (
	CompactionStatusInProgress = acpv2.CompactionStatusInProgress
	CompactionStatusCompleted  = acpv2.CompactionStatusCompleted
	CompactionStatusFailed     = acpv2.CompactionStatusFailed
	CompactionStatusCancelled  = acpv2.CompactionStatusCancelled
)

// What options are for. Others may come from newer peers and are kept.
const (
	SessionConfigOptionCategoryMode         = acpv2.SessionConfigOptionCategoryMode
	SessionConfigOptionCategoryModel        = acpv2.SessionConfigOptionCategoryModel
	SessionConfigOptionCategoryModelConfig  = acpv2.SessionConfigOptionCategoryModelConfig
	SessionConfigOptionCategoryThoughtLevel = acpv2.SessionConfigOptionCategoryThoughtLevel
)

// What happens to the system prompt. Others may come from newer peers and are kept.
const (
	SystemPromptModeAppend   = acpv2.SystemPromptModeAppend
	SystemPromptModeOverride = acpv2.SystemPromptModeOverride
)

// Where sessions are. Others may come from newer peers and are kept.
const (
	SessionStatusOpen  = acpv2.SessionStatusOpen
	SessionStatusSaved = acpv2.SessionStatusSaved
)

// Which sessions are listed. Others may come from newer peers and are kept.
const (
	SessionArchiveFilterExclude = acpv2.SessionArchiveFilterExclude
	SessionArchiveFilterInclude = acpv2.SessionArchiveFilterInclude
	SessionArchiveFilterOnly    = acpv2.SessionArchiveFilterOnly
)

// Whether somebody is logged in. Others may come from newer peers and are kept.
const (
	AuthStateAuthenticated   = acpv2.AuthStateAuthenticated
	AuthStateUnauthenticated = acpv2.AuthStateUnauthenticated
	AuthStateNotRequired     = acpv2.AuthStateNotRequired
	AuthStateUnknown         = acpv2.AuthStateUnknown
)

// Whom content is for. Others may come from newer peers and are kept.
const (
	RoleAssistant = acpv2.RoleAssistant
	RoleUser      = acpv2.RoleUser
)

// Protocols of language models. Others may come from newer peers and are kept.
const (
	LLMProtocolAnthropic = acpv2.LLMProtocolAnthropic
	LLMProtocolOpenAI    = acpv2.LLMProtocolOpenAI
	LLMProtocolAzure     = acpv2.LLMProtocolAzure
	LLMProtocolVertex    = acpv2.LLMProtocolVertex
	LLMProtocolBedrock   = acpv2.LLMProtocolBedrock
)
