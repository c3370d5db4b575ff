package main

import "maps"

// envelopes are the messages around the payloads: package jsonrpc's business.
var envelopes = []string{
	"AgentRequest", "AgentResponse", "AgentNotification",
	"ClientRequest", "ClientResponse", "ClientNotification",
	"ProxyRequest", "ProxyResponse", "ProxyNotification",
}

const (
	scopeDoc  = "tells what an elicitation belongs to: a session or a pending request."
	modeDoc   = "is the way an elicitation reaches the user."
	actionDoc = "is what the user did with an elicitation."
	kindDoc   = "is the part of a configuration option that depends on its type."
	valueDoc  = "is the value chosen for a configuration option."
)

func commonInline() map[string]inlineSpec {
	scope := inlineSpec{"Scope", "ElicitationScope", scopeDoc, "What the elicitation belongs to; required."}
	return map[string]inlineSpec{
		"CreateElicitationRequest":      {"Mode", "ElicitationMode", modeDoc, "How to ask; required."},
		"CreateElicitationRequest=*":    scope,
		"ElicitationFormMode":           scope,
		"ElicitationUrlMode":            scope,
		"CreateElicitationResponse":     {"Action", "ElicitationAction", actionDoc, "What the user did; required."},
		"SessionConfigOption":           {"Kind", "SessionConfigOptionKind", kindDoc, "The value and what can be chosen; required."},
		"SetSessionConfigOptionRequest": {"Value", "SessionConfigOptionValue", valueDoc, "The new value; required."},
		"InitialSessionConfigOption":    {"Value", "SessionConfigOptionValue", valueDoc, "The value to begin with; required."},
	}
}

func commonNames() map[string]string {
	return map[string]string{
		"CreateElicitationResponse=decline":     "ElicitationDeclineAction",
		"CreateElicitationResponse=cancel":      "ElicitationCancelAction",
		"SetSessionConfigOptionRequest=id":      "SessionConfigOptionValueID",
		"SetSessionConfigOptionRequest=boolean": "SessionConfigOptionValueBoolean",
		"UnknownStateUpdate":                    "StateUnknownUpdate", // the state is called unknown
		"CursorAnchor=user_message":             "CursorUserMessageAnchor",
		"CursorAnchor=agent_message":            "CursorAgentMessageAnchor",
		"CursorAnchor=agent_thought":            "CursorAgentThoughtAnchor",
		"CursorAnchor=session_message":          "CursorSessionMessageAnchor",
	}
}

func commonValues() map[string]string {
	return map[string]string{
		"ErrorCode=-32700":   "ErrorCodeParseError",
		"ErrorCode=-32600":   "ErrorCodeInvalidRequest",
		"ErrorCode=-32601":   "ErrorCodeMethodNotFound",
		"ErrorCode=-32602":   "ErrorCodeInvalidParams",
		"ErrorCode=-32603":   "ErrorCodeInternalError",
		"ErrorCode=-32800":   "ErrorCodeRequestCancelled",
		"ErrorCode=-32000":   "ErrorCodeAuthRequired",
		"ErrorCode=-32002":   "ErrorCodeResourceNotFound",
		"LlmProtocol=openai": "LLMProtocolOpenAI",
	}
}

func commonByMember() map[string][]string {
	return map[string][]string{
		"EmbeddedResourceResource": {"text", "blob"},
		"ElicitationScope":         {"sessionId", "requestId"},
	}
}

func with[V any](m map[string]V, extra map[string]V) map[string]V {
	maps.Copy(m, extra)
	return m
}

var properties1 = orderedSpec{element: "ElicitationProperty"}

// tableV1 decides for protocol version 1.
func tableV1() *table {
	return &table{
		skip: names("skip", envelopes...),
		names: entries("name", with(commonNames(), map[string]string{
			"RequestPermissionOutcome=cancelled": "CancelledPermissionOutcome",
		})),
		values:  entries("value", commonValues()),
		aliases: entries("alias", map[string]string{"RequestId": "jsonrpc.ID", "ProtocolVersion": "uint16", "AvailableCommandInput": "UnstructuredCommandInput", "ElicitationContentValue": "json.RawMessage"}),
		// Version 1 says of a tool call update only that what changed is sent;
		// keeping null apart from absent loses nothing of either reading.
		patch: properties("patch",
			"ToolCallUpdate: kind status title content locations",
			"SessionInfoUpdate: title updatedAt",
			"CompactionUpdate: summary error",
			"CursorUpdate: capabilities",
			"SubagentUpdate: title description capabilities state cwd additionalDirectories",
			"SessionMessage: senderSessionId recipientSessionId senderMessageId recipientMessageId content",
		),
		metaPatch:  names("meta patch", "CompactionUpdate", "SubagentUpdate", "SessionMessage", "CursorUpdate"),
		pointers:   properties("pointer", "Diff: oldText", "StringPropertySchema: default"),
		constants:  entries("constant", map[string]string{"ElicitationSchema.type": "object"}),
		inline:     entries("inline", commonInline()),
		merge:      entries("merge", map[string]mergeSpec{"IdleStateUpdate": {"stopReason", "IdleStopReason", "tells why the foreground work of a subagent stopped."}, "MessageMcpResponse": {}}),
		untagged:   entries("untagged", map[string]untaggedSpec{"McpServer": {tag: "stdio"}, "AuthMethod": {tag: "agent"}, "SetSessionConfigOptionRequest": {tag: "id", anyTag: true}, "MultiSelectItems": {}}),
		byMember:   entries("by member", commonByMember()),
		lists:      entries("list", map[string]listSpec{"SessionConfigSelectOptions": {[]string{"SessionConfigSelectOptionList", "SessionConfigSelectGroupList"}, []string{"value", "group"}}}),
		ordered:    entries("ordered", map[string]orderedSpec{"ElicitationSchema.properties": properties1}),
		coalloc:    entries("coalloc", map[string]coalloc{"ContentChunk": {"content", "TextContent", "text"}}),
		fuse:       names("fuse", "SessionNotification"),
		formValues: names("form value", "ElicitationContentValue"),
		closed:     names("closed", "ElicitationSchemaType"),
		files: []fileRule{
			{"content", []string{"ContentBlock", "Annotations", "Role", "TextContent", "ImageContent", "AudioContent", "ResourceLink", "EmbeddedResource*", "TextResourceContents", "BlobResourceContents"}},
			{"tool", []string{"SessionReference", "ToolCall*", "ToolKind", "Content", "Diff", "Terminal", "TerminalId"}},
			{"permission", []string{"RequestPermission*", "PermissionOption*", "SelectedPermissionOutcome"}},
			{"file", []string{"ReadTextFile*", "WriteTextFile*"}},
			{"terminal", []string{"CreateTerminal*", "TerminalOutput*", "ReleaseTerminal*", "WaitForTerminalExit*", "KillTerminal*", "TerminalExitStatus", "EnvVariable"}},
			{"elicitation", []string{"CreateElicitation*", "CompleteElicitationNotification", "ElicitationContentValue", "ElicitationAcceptAction", "ElicitationFormMode", "ElicitationUrlMode", "ElicitationId", "ElicitationSessionScope", "ElicitationRequestScope"}},
			{"form", []string{"ElicitationSchema*", "ElicitationPropertySchema", "String*", "Number*", "Integer*", "Boolean*"}},
			{"form_choice", []string{"EnumOption", "MultiSelect*", "TitledMultiSelectItems", "StringMultiSelectItems"}},
			{"mcp", []string{"Mcp*", "MessageMcp*", "HttpHeader"}},
			{"initialize", []string{"Initialize*", "ProtocolVersion", "Implementation"}},
			{"capability_agent", []string{"AgentCapabilities", "PromptCapabilities", "McpCapabilities", "SessionCapabilities", "SessionOptionsCapabilities", "SessionListCapabilities", "SessionDeleteCapabilities", "SessionAdditionalDirectoriesCapabilities", "SessionSystemPrompt*", "SessionForkCapabilities", "SessionArchiveCapabilities", "SessionStatusCapabilities", "SessionTitleCapabilities", "SessionResumeCapabilities", "SessionCloseCapabilities", "AgentAuthCapabilities", "AuthStatusCapabilities", "LogoutCapabilities", "ProvidersCapabilities"}},
			{"capability_client", []string{"ClientCapabilities", "SessionCursorsCapabilities", "PromptSuggestions*", "FileSystemCapabilities", "ClientSessionCapabilities", "CompactionCapabilities", "SessionConfigOptionsCapabilities", "BooleanConfigOptionCapabilities", "NoticeCapabilities", "SubagentCapabilities", "PlanCapabilities", "AuthCapabilities", "ElicitationCapabilities", "ElicitationFormCapabilities", "ElicitationUrlCapabilities"}},
			{"auth", []string{"Auth*", "Logout*"}},
			{"provider", []string{"ListProviders*", "Provider*", "SetProvider*", "DisableProvider*", "LlmProtocol"}},
			{"options", []string{"InitialSessionConfigOption", "SessionOptions*"}},
			{"config", []string{"SessionConfig*", "SetSessionConfigOption*", "SessionMode*", "SetSessionMode*", "SessionModeState"}},
			{"session_open", []string{"NewSession*", "LoadSession*", "ForkSession*", "ResumeSession*", "SystemPrompt*", "SessionId"}},
			{"session", []string{"ListSessions*", "SessionInfo", "SessionArchiveFilter", "DeleteSession*", "ArchiveSession*", "UnarchiveSession*", "SessionStatus*", "SetSessionTitle*", "CloseSession*"}},
			{"prompt", []string{"PromptRequest", "PromptResponse", "StopReason", "Usage", "CancelNotification", "CancelRequestNotification", "RequestId"}},
			{"update", []string{"SessionNotification", "SessionUpdate", "ContentChunk", "MessageId", "CurrentModeUpdate", "ConfigOptionUpdate", "SessionInfoUpdate", "Cost", "UsageUpdate", "Notice*"}},
			{"cursor", []string{"Cursor*"}},
			{"suggestion", []string{"PromptSuggestionsUpdate", "PromptSuggestion"}},
			{"compaction", []string{"CompactionUpdate", "CompactionStatus", "CompactionId", "CompactionSummaryChunk"}},
			{"plan", []string{"Plan*"}},
			{"command", []string{"AvailableCommand*", "UnstructuredCommandInput"}},
			{"subagent", []string{"Subagent*", "SessionCancelCapabilities", "SessionMessage*", "StateUpdate", "RunningStateUpdate", "IdleStateUpdate", "ErrorStopReason", "RequiresActionStateUpdate", "UnknownStateUpdate"}},
			{"error", []string{"Error", "ErrorCode"}},
			{"extension", []string{"Ext*"}},
			{"proxy", []string{"InitializeProxyRequest", "InitializeProxyResponse", "ProxySuccessor*"}},
		},
	}
}

// tableV2 decides for the draft of protocol version 2.
func tableV2() *table {
	return &table{
		skip: names("skip", envelopes...),
		names: entries("name", with(commonNames(), map[string]string{
			"DiffChange=add": "DiffAdd", "DiffChange=delete": "DiffDelete", "DiffChange=modify": "DiffModify",
			"DiffChange=move": "DiffMove", "DiffChange=copy": "DiffCopy",
		})),
		values:  entries("value", with(commonValues(), map[string]string{"ErrorCode=-32022": "ErrorCodeUnsupportedProtocolVersion"})),
		aliases: entries("alias", map[string]string{"RequestId": "jsonrpc.ID", "ProtocolVersion": "uint16", "AbsolutePath": "string", "MediaType": "string", "ErrorData": "json.RawMessage", "ElicitationContentValue": "json.RawMessage"}),
		patch: properties("patch",
			"ToolCallUpdate: name title kind status content locations capabilities",
			"UserMessage: content", "AgentMessage: content", "AgentThought: content",
			"TerminalUpdate: command cwd output exitStatus size capabilities",
			"SessionInfoUpdate: title updatedAt",
			"UsageUpdate: cost",
			"CompactionUpdate: summary error",
			"CursorUpdate: capabilities",
			"SubagentUpdate: title description capabilities state cwd additionalDirectories",
			"SessionMessage: senderSessionId recipientSessionId senderMessageId recipientMessageId content",
		),
		metaPatch: names("meta patch", "ToolCallUpdate", "UserMessage", "AgentMessage", "AgentThought", "TerminalUpdate",
			"SessionInfoUpdate", "CompactionUpdate", "SubagentUpdate", "SessionMessage", "CursorUpdate"),
		pointers:  properties("pointer", "StringPropertySchema: default", "ListSessionsRequest: cursor", "ListSessionsResponse: nextCursor"),
		constants: entries("constant", map[string]string{"ElicitationSchema.type": "object"}),
		inline: entries("inline", with(commonInline(), map[string]inlineSpec{
			"DiffChange": {"Operation", "DiffOperation", "is what happened to a file.", "What happened to the file; required."},
		})),
		merge:      entries("merge", map[string]mergeSpec{"IdleStateUpdate": {"stopReason", "StopReason", "tells why foreground work stopped."}, "MessageMcpResponse": {}}),
		untagged:   entries("untagged", map[string]untaggedSpec{"MultiSelectItems": {}}),
		byMember:   entries("by member", commonByMember()),
		lists:      entries("list", map[string]listSpec{"SessionConfigSelectOptions": {[]string{"SessionConfigSelectOptionList", "SessionConfigSelectGroupList"}, []string{"value", "groupId"}}}),
		ordered:    entries("ordered", map[string]orderedSpec{"ElicitationSchema.properties": properties1}),
		coalloc:    entries("coalloc", map[string]coalloc{"ContentChunk": {"content", "TextContent", "text"}}),
		fuse:       names("fuse", "UpdateSessionNotification"),
		formValues: names("form value"),
		closed:     names("closed", "ElicitationSchemaType"),
		files: []fileRule{
			{"content", []string{"ContentBlock", "Annotations", "Role", "TextContent", "MediaType", "ImageContent", "AudioContent", "Icon*", "ResourceLink", "EmbeddedResource*", "TextResourceContents", "BlobResourceContents"}},
			{"tool", []string{"SessionReference", "ToolCall*", "ToolKind", "Content", "Terminal", "TerminalId", "CancelToolCall*"}},
			{"diff", []string{"Diff*", "AbsolutePath"}},
			{"permission", []string{"RequestPermission*", "PermissionOption*", "ToolCallPermissionSubject", "CommandPermissionSubject", "CancelledPermissionOutcome", "SelectedPermissionOutcome"}},
			{"terminal", []string{"TerminalOutput*", "TerminalExitStatus", "TerminalSize", "TerminalCapabilities", "TerminalCancelCapabilities", "TerminalUpdate", "CancelTerminal*"}},
			{"elicitation", []string{"CreateElicitation*", "CompleteElicitationNotification", "ElicitationContentValue", "ElicitationAcceptAction", "ElicitationFormMode", "ElicitationUrlMode", "ElicitationId", "ElicitationSessionScope", "ElicitationRequestScope"}},
			{"form", []string{"ElicitationSchema*", "ElicitationPropertySchema", "String*", "Number*", "Integer*", "Boolean*"}},
			{"form_choice", []string{"EnumOption", "MultiSelect*", "TitledMultiSelectItems", "StringMultiSelectItems"}},
			{"mcp", []string{"Mcp*", "MessageMcp*", "HttpHeader", "EnvVariable"}},
			{"initialize", []string{"Initialize*", "ProtocolVersion", "Implementation"}},
			{"capability_agent", []string{"AgentCapabilities", "Prompt*", "McpCapabilities", "McpStdioCapabilities", "McpHttpCapabilities", "McpAcpCapabilities", "SessionCapabilities", "SessionOptionsCapabilities", "SessionDeleteCapabilities", "SessionAdditionalDirectoriesCapabilities", "SessionSystemPrompt*", "SessionForkCapabilities", "SessionArchiveCapabilities", "SessionStatusCapabilities", "SessionTitleCapabilities", "AgentAuthCapabilities", "AuthStatusCapabilities", "ProvidersCapabilities"}},
			{"capability_client", []string{"ClientCapabilities", "ClientSessionCapabilities", "PromptSuggestionsCapabilities", "PromptSuggestionsImageCapabilities", "PromptSuggestionsAudioCapabilities", "PromptSuggestionsEmbeddedContextCapabilities", "Commands*", "ClientAuthCapabilities", "TerminalAuthCapabilities", "ElicitationCapabilities", "ElicitationFormCapabilities", "ElicitationUrlCapabilities"}},
			{"auth", []string{"Auth*", "LoginAuth*", "LogoutAuth*"}},
			{"provider", []string{"ListProviders*", "Provider*", "SetProvider*", "DisableProvider*", "LlmProtocol"}},
			{"options", []string{"InitialSessionConfigOption", "SessionOptions*"}},
			{"config", []string{"SessionConfig*", "SetSessionConfigOption*"}},
			{"session_open", []string{"NewSession*", "ForkSession*", "ResumeSession*", "ReplayFrom*", "SystemPrompt*", "SessionId"}},
			{"session", []string{"ListSessions*", "SessionInfo", "SessionListCursor", "SessionArchiveFilter", "DeleteSession*", "ArchiveSession*", "UnarchiveSession*", "SessionStatus*", "SetSessionTitle*", "CloseSession*"}},
			{"prompt", []string{"PromptRequest", "PromptResponse", "Usage", "CancelSessionNotification", "CancelRequestNotification", "RequestId"}},
			{"state", []string{"StateUpdate", "RunningStateUpdate", "IdleStateUpdate", "ErrorStopReason", "RequiresActionStateUpdate", "UnknownStateUpdate", "Background*"}},
			{"message", []string{"ContentChunk", "MessageId", "UserMessage", "AgentMessage", "AgentThought"}},
			{"update", []string{"UpdateSessionNotification", "ReplayComplete", "SessionUpdate", "ConfigOptionUpdate", "SessionInfoUpdate", "Cost", "UsageUpdate", "Notice*"}},
			{"cursor", []string{"Cursor*"}},
			{"suggestion", []string{"PromptSuggestionsUpdate", "PromptSuggestion"}},
			{"compaction", []string{"CompactionUpdate", "CompactionStatus", "CompactionId", "CompactionSummaryChunk"}},
			{"plan", []string{"Plan*"}},
			{"command", []string{"AvailableCommand*", "TextCommandInput", "Command", "Skill*"}},
			{"subagent", []string{"Subagent*", "SessionCancelCapabilities", "SessionMessage*"}},
			{"error", []string{"Error", "ErrorCode", "ErrorData", "UnsupportedProtocolVersionErrorData", "SessionNotFoundErrorData"}},
			{"extension", []string{"Ext*"}},
			{"proxy", []string{"InitializeProxyRequest", "InitializeProxyResponse", "ProxySuccessor*"}},
		},
	}
}
