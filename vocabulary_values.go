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
