package main

import (
	"encoding/json"
	"strings"

	acp "github.com/coder/acp-go-sdk"
	"github.com/goacp/acp/acpv1"
)

// generated is what the types of acpv1 have.
type generated interface {
	AppendJSON([]byte) ([]byte, error)
}

// A message is the params or the result of a frame, and the types that the
// three codecs decode it into.
type message struct {
	name  string
	text  string
	ours  func() generated
	coder func() any
	plain func() any
}

func oursNote() generated { return new(acpv1.SessionNotification) }
func coderNote() any      { return new(acp.SessionNotification) }
func plainNote() any      { return new(plainNotification) }

func note(name, update string) message {
	return message{
		name: name,
		text: `{"sessionId":"sess-6f1c2a9e-000000","update":` + update + `}`,
		ours: oursNote, coder: coderNote, plain: plainNote,
	}
}

// messages are ten messages as agents and clients send them.
func messages() []message {
	before, after := diffTexts()
	entries := strings.Repeat(`,{"content":"Read the parser and its tests, then find out where the offset is lost","priority":"medium","status":"pending"}`, 8)[1:]
	commands := strings.Repeat(`,{"name":"review","description":"Review the changes of this branch","input":{"hint":"what to look at"}}`, 6)[1:]
	return []message{
		note("chunk24", `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":`+quoted(chunkText(24))+`}}`),
		note("chunk200", `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":`+quoted(strings.Repeat("if a \"b\" →\n\tdas Maß\n", 9))+`},"messageId":"6f1c2a9e-0b1d-4a53-9c56-3f7de2b8a001"}`),
		note("chunk-sorted-keys", `{"_meta":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},"content":{"text":`+quoted(chunkText(24))+`,"type":"text"},"sessionUpdate":"agent_message_chunk"}`),
		note("tool-call", `{"sessionUpdate":"tool_call","toolCallId":"toolu_01A09q90qw90lq917835lq9","title":"Read internal/window/ring.go","kind":"read","status":"in_progress","locations":[{"path":"/home/user/project/internal/window/ring.go","line":42}],"rawInput":{"path":"/home/user/project/internal/window/ring.go","offset":0,"limit":2000}}`),
		note("diff-10k", `{"sessionUpdate":"tool_call_update","toolCallId":"toolu_01A09q90qw90lq917835lq9","status":"completed","content":[{"type":"diff","path":`+quoted(diffPath)+`,"oldText":`+quoted(before)+`,"newText":`+quoted(after)+`}]}`),
		note("plan-8", `{"sessionUpdate":"plan","entries":[`+entries+`]}`),
		note("commands-6", `{"sessionUpdate":"available_commands_update","availableCommands":[`+commands+`]}`),
		{
			name: "prompt",
			text: `{"sessionId":"sess-6f1c2a9e-000000","prompt":[{"type":"text","text":"Why does this test fail?"},{"type":"resource_link","uri":"file:///home/user/project/parser_test.go","name":"parser_test.go","mimeType":"text/x-go","size":4821},{"type":"resource","resource":{"uri":"file:///home/user/project/parser.go","mimeType":"text/x-go","text":` + quoted(codeText) + `}}]}`,
			ours: func() generated { return new(acpv1.PromptRequest) }, coder: func() any { return new(acp.PromptRequest) }, plain: func() any { return new(plainPrompt) },
		},
		{
			name: "permission",
			text: `{"sessionId":"sess-6f1c2a9e-000000","toolCall":{"toolCallId":"toolu_01A09q90qw90lq917835lq9","title":"Run go test ./...","kind":"execute","status":"pending","rawInput":{"command":"go test ./..."}},"options":[{"optionId":"allow","name":"Allow once","kind":"allow_once"},{"optionId":"always","name":"Always allow go test","kind":"allow_always"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}`,
			ours: func() generated { return new(acpv1.RequestPermissionRequest) }, coder: func() any { return new(acp.RequestPermissionRequest) }, plain: func() any { return new(plainPermission) },
		},
		{
			name: "initialize",
			text: `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"embeddedContext":true},"mcpCapabilities":{"http":true},"sessionCapabilities":{"list":{},"resume":{}},"auth":{}},"authMethods":[{"id":"login","name":"Log in","description":"Open a browser to log in"}],"agentInfo":{"name":"example-agent","title":"Example Agent","version":"1.4.2"}}`,
			ours: func() generated { return new(acpv1.InitializeResponse) }, coder: func() any { return new(acp.InitializeResponse) }, plain: func() any { return new(plainInitialize) },
		},
	}
}

// The plain types are what one would write by hand for encoding/json: flat
// structs with tags, no unions, nothing kept that is unknown.
type (
	plainNotification struct {
		SessionID string      `json:"sessionId"`
		Update    plainUpdate `json:"update"`
	}
	plainUpdate struct {
		SessionUpdate     string          `json:"sessionUpdate"`
		Content           json.RawMessage `json:"content,omitempty"` // a block or a list, by the kind of update
		Block             *plainBlock     `json:"-"`
		List              []plainContent  `json:"-"`
		MessageID         string          `json:"messageId,omitempty"`
		Meta              json.RawMessage `json:"_meta,omitempty"`
		ToolCallID        string          `json:"toolCallId,omitempty"`
		Title             string          `json:"title,omitempty"`
		Kind              string          `json:"kind,omitempty"`
		Status            string          `json:"status,omitempty"`
		Locations         []plainLocation `json:"locations,omitempty"`
		RawInput          json.RawMessage `json:"rawInput,omitempty"`
		Entries           []plainEntry    `json:"entries,omitempty"`
		AvailableCommands []plainCommand  `json:"availableCommands,omitempty"`
	}
	plainBlock struct {
		Type     string         `json:"type"`
		Text     string         `json:"text,omitempty"`
		URI      string         `json:"uri,omitempty"`
		Name     string         `json:"name,omitempty"`
		MIMEType string         `json:"mimeType,omitempty"`
		Size     *int64         `json:"size,omitempty"`
		Resource *plainResource `json:"resource,omitempty"`
	}
	plainResource struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType,omitempty"`
		Text     string `json:"text"`
	}
	plainContent struct {
		Type    string  `json:"type"`
		Path    string  `json:"path,omitempty"`
		OldText *string `json:"oldText,omitempty"`
		NewText string  `json:"newText,omitempty"`
	}
	plainLocation struct {
		Path string `json:"path"`
		Line *int   `json:"line,omitempty"`
	}
	plainEntry struct {
		Content  string `json:"content"`
		Priority string `json:"priority"`
		Status   string `json:"status"`
	}
	plainCommand struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Input       *struct {
			Hint string `json:"hint"`
		} `json:"input,omitempty"`
	}
	plainPrompt struct {
		SessionID string       `json:"sessionId"`
		Prompt    []plainBlock `json:"prompt"`
	}
	plainPermission struct {
		SessionID string      `json:"sessionId"`
		ToolCall  plainUpdate `json:"toolCall"`
		Options   []struct {
			OptionID string `json:"optionId"`
			Name     string `json:"name"`
			Kind     string `json:"kind"`
		} `json:"options"`
	}
	plainInitialize struct {
		ProtocolVersion   int `json:"protocolVersion"`
		AgentCapabilities struct {
			LoadSession        bool `json:"loadSession"`
			PromptCapabilities struct {
				Image           bool `json:"image"`
				Audio           bool `json:"audio"`
				EmbeddedContext bool `json:"embeddedContext"`
			} `json:"promptCapabilities"`
			MCPCapabilities struct {
				HTTP bool `json:"http"`
				SSE  bool `json:"sse"`
			} `json:"mcpCapabilities"`
			SessionCapabilities map[string]struct{} `json:"sessionCapabilities"`
		} `json:"agentCapabilities"`
		AuthMethods []struct {
			ID          string `json:"id"`
			Name        string `json:"name"`
			Description string `json:"description,omitempty"`
		} `json:"authMethods"`
		AgentInfo struct {
			Name    string `json:"name"`
			Title   string `json:"title,omitempty"`
			Version string `json:"version"`
		} `json:"agentInfo"`
	}
)

// UnmarshalJSON decodes the content by the kind of update, the least that any
// program has to do.
func (u *plainUpdate) UnmarshalJSON(data []byte) error {
	type fields plainUpdate
	if err := json.Unmarshal(data, (*fields)(u)); err != nil || len(u.Content) == 0 {
		return err
	}
	var err error
	if strings.HasSuffix(u.SessionUpdate, "_chunk") {
		err = json.Unmarshal(u.Content, &u.Block)
	} else {
		err = json.Unmarshal(u.Content, &u.List)
	}
	u.Content = nil
	return err
}

// MarshalJSON is the reverse.
func (u plainUpdate) MarshalJSON() ([]byte, error) {
	type fields plainUpdate
	var err error
	switch {
	case u.Block != nil:
		u.Content, err = json.Marshal(u.Block)
	case u.List != nil:
		u.Content, err = json.Marshal(u.List)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(fields(u))
}
