package translate

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/google/go-cmp/cmp"
)

func spell1(t *testing.T, v json.Marshaler) string {
	t.Helper()
	raw, err := v.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestSessionOptionsFromV1(t *testing.T) {
	const (
		mode  = `{"configId":"mode","name":"Mode","category":"mode","type":"select","currentValue":"a","options":[{"value":"a","name":"A","description":"d"},{"value":"b","name":"B"}],"_meta":{"k":1}}`
		model = `{"configId":"model","name":"Model","category":"model","type":"select","currentValue":"m","options":[{"value":"m","name":"M"},{"value":"n","name":"n","description":"N"}]}`
		modes = `"modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A","description":"d"},{"id":"b","name":"B"}],"_meta":{"k":1}}`
		list  = `"models":{"currentModelId":"m","availableModels":[{"modelId":"m","name":"M"},{"modelId":"n","description":"N"}]}`
	)
	option := func(category string) string {
		return `"configOptions":[{"id":"x","name":"X","category":"` + category + `","type":"select","currentValue":"v","options":[{"value":"v","name":"V"}]}]`
	}
	converted := func(category string) string {
		return `{"configId":"x","name":"X","category":"` + category + `","type":"select","currentValue":"v","options":[{"value":"v","name":"V"}]}`
	}
	tests := []struct{ name, in, want string }{
		{"nothing", ``, `[]`},
		{"modes", `,` + modes, `[` + mode + `]`},
		{"models", `,` + list, `[` + model + `]`},
		{"all", `,` + option("other") + `,` + modes + `,` + list, `[` + converted("other") + `,` + mode + `,` + model + `]`},
		{"an option is the modes", `,` + option("mode") + `,` + modes, `[` + converted("mode") + `]`},
		{"an option is the models", `,` + option("model") + `,` + list, `[` + converted("model") + `]`},
		{"no modes to choose from", `,"modes":{"currentModeId":"a","availableModes":[]}`,
			`[{"configId":"mode","name":"Mode","category":"mode","type":"select","currentValue":"a","options":[{"value":"a","name":"a"}]}]`},
		{"malformed models", `,"models":5`, `[]`},
		{"no current model", `,"models":{"availableModels":[]}`, `[]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r acpv1.NewSessionResponse
			if err := r.UnmarshalJSON([]byte(`{"sessionId":"s"` + tt.in + `}`)); err != nil {
				t.Fatal(err)
			}
			got := spell1(t, acpv2.ConfigOptionUpdate{ConfigOptions: SessionOptionsFromV1(r.ConfigOptions, r.Modes, r.Unknown)})
			if diff := cmp.Diff(`{"sessionUpdate":"config_option_update","configOptions":`+tt.want+`}`, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSessionOptionsToV1(t *testing.T) {
	grouped := v2Update(t, `{"sessionUpdate":"config_option_update","configOptions":[
		{"configId":"q","name":"Q","category":"mode","type":"boolean","currentValue":true},
		{"configId":"x","name":"X","category":"mode","type":"select","currentValue":"a","options":[{"groupId":"g","name":"G","options":[{"value":"a","name":"A","id":1}]},{"groupId":"h","name":"H","options":[{"value":"b","name":"B"}]}]},
		{"configId":"y","name":"Y","category":"model","type":"select","currentValue":"m","options":[{"value":"m","name":"M","description":"d"}]}]}`).(*acpv2.ConfigOptionUpdate).ConfigOptions
	var to ToV1
	options, modes := to.Options(grouped)
	if len(options) != 2 {
		t.Errorf("%d options for a client without booleans", len(options))
	}
	if got, want := spell1(t, modes), `{"currentModeId":"a","availableModes":[{"id":"a","name":"A"},{"id":"b","name":"B"}]}`; got != want {
		t.Error(got)
	}
	if id, ok := ModeOptionID(grouped); id != "x" || !ok {
		t.Errorf("mode option %q", id)
	}
	if id, ok := ModelOptionID(grouped); id != "y" || !ok {
		t.Errorf("model option %q", id)
	}
	got := string(ModelsToV1(grouped, json.RawMessage(`{"models":1,"k":2}`)))
	if want := `{"models":{"currentModelId":"m","availableModels":[{"modelId":"m","name":"M","description":"d"}]},"k":2}`; got != want {
		t.Error(got)
	}
	// The client knows the mode from the result, so only a change is told.
	same := &acpv2.ConfigOptionUpdate{ConfigOptions: grouped}
	if n := len(to.Update(same)); n != 1 {
		t.Errorf("%d updates for the same mode", n)
	}
	changed := WithValue(grouped, "x", "b")
	if n := len(to.Update(&acpv2.ConfigOptionUpdate{ConfigOptions: changed})); n != 2 {
		t.Errorf("%d updates for another mode", n)
	}
	if v := grouped[1].Kind.(*acpv2.SessionConfigSelect).CurrentValue; v != "a" {
		t.Errorf("the argument has changed to %q", v)
	}
	if ModesToV1(nil) != nil || ModelsToV1(nil, nil) != nil {
		t.Error("modes or models out of nothing")
	}
	if _, ok := ModelOptionID(nil); ok {
		t.Error("a model option out of nothing")
	}
	// Reading what was written gives the same.
	back, ok := ModelFromV1(json.RawMessage(got))
	if !ok || back.Kind.(*acpv2.SessionConfigSelect).CurrentValue != "m" {
		t.Errorf("%+v", back)
	}
}

func TestOptionValue(t *testing.T) {
	for _, v := range []acpv1.SessionConfigOptionValue{nil, &acpv1.SessionConfigOptionValueID{Value: "x"}, &acpv1.SessionConfigOptionValueBoolean{Value: true}} {
		w := OptionValueFromV1(v)
		back, err := OptionValueToV1(w)
		if v == nil {
			if w != nil || !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("nil became %v, %v", w, err)
			}
			continue
		}
		if diff := cmp.Diff(v, back); diff != "" || err != nil {
			t.Error(diff, err)
		}
	}
	if _, err := OptionValueToV1(&acpv2.UnknownSessionConfigOptionValue{Type: "_x"}); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

func TestCapabilities(t *testing.T) {
	t.Run("agent from v1", func(t *testing.T) {
		tests := []struct{ name, in, want string }{
			{"nothing", `{}`, `{"session":{"mcp":{"stdio":{}}}}`},
			{"all", `{"loadSession":true,"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true,"_meta":{"k":1}},"mcpCapabilities":{"http":true,"sse":true,"acp":true,"_meta":{"k":2}},` +
				`"sessionCapabilities":{"list":{},"delete":{},"additionalDirectories":{},"systemPrompt":{"mode":{"override":{}}},"fork":{},"archive":{},"status":{},"title":{},"resume":{},"close":{},"_meta":{"k":3}},` +
				`"auth":{"status":{},"logout":{}},"providers":{},"_meta":{"k":4},"future":5}`,
				`{"session":{"prompt":{"image":{},"audio":{},"embeddedContext":{},"_meta":{"k":1}},"mcp":{"stdio":{},"http":{},"acp":{},"_meta":{"k":2}},` +
					`"delete":{},"additionalDirectories":{},"systemPrompt":{"mode":{"override":{}}},"fork":{},"archive":{},"status":{},"title":{},"_meta":{"k":3}},` +
					`"auth":{"status":{}},"providers":{},"_meta":{"k":4},"future":5}`},
		}
		for _, tt := range tests {
			var c acpv1.AgentCapabilities
			if err := c.UnmarshalJSON([]byte(tt.in)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, spell1(t, AgentCapabilitiesFromV1(c))); diff != "" {
				t.Errorf("%s: %s", tt.name, diff)
			}
		}
	})
	t.Run("agent to v1", func(t *testing.T) {
		tests := []struct{ name, in, want string }{
			{"no sessions", `{"providers":{}}`, `{"loadSession":false,"promptCapabilities":{"image":false,"audio":false,"embeddedContext":false},"mcpCapabilities":{"http":false,"sse":false,"acp":false},"sessionCapabilities":{},"auth":{},"providers":{}}`},
			{"all", `{"session":{"prompt":{"image":{},"audio":{},"embeddedContext":{}},"mcp":{"stdio":{},"http":{},"acp":{}},"delete":{},"additionalDirectories":{},"systemPrompt":{"mode":{"override":{}}},"fork":{},"archive":{},"status":{},"title":{}},"auth":{"status":{}}}`,
				`{"loadSession":true,"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":false,"acp":true},"sessionCapabilities":{"list":{},"delete":{},"additionalDirectories":{},"systemPrompt":{"mode":{"override":{}}},"fork":{},"archive":{},"status":{},"title":{},"resume":{},"close":{}},"auth":{"status":{}}}`},
		}
		for _, tt := range tests {
			var c acpv2.AgentCapabilities
			if err := c.UnmarshalJSON([]byte(tt.in)); err != nil {
				t.Fatal(err)
			}
			got := AgentCapabilitiesToV1(c)
			var want acpv1.AgentCapabilities
			if err := want.UnmarshalJSON([]byte(tt.want)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", tt.name, diff)
			}
		}
	})
	t.Run("client", func(t *testing.T) { // S64
		var c acpv2.ClientCapabilities
		if err := c.UnmarshalJSON([]byte(`{"auth":{"terminal":{},"_meta":{"k":1}},"elicitation":{"form":{},"url":{}},"_meta":{"k":2},"future":3,"fs":4}`)); err != nil {
			t.Fatal(err)
		}
		var want acpv1.ClientCapabilities
		if err := want.UnmarshalJSON([]byte(`{"session":{"compaction":{},"configOptions":{"boolean":{}},"notices":{}},"subagents":{},"plan":{},"auth":{"terminal":true,"_meta":{"k":1}},"elicitation":{"form":{},"url":{}},"_meta":{"k":2},"future":3}`)); err != nil {
			t.Fatal(err)
		}
		got := ClientCapabilitiesToV1(c)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if got, want := spell1(t, ClientCapabilitiesFromV1(got)), `{"auth":{"terminal":{},"_meta":{"k":1}},"elicitation":{"form":{},"url":{}},"_meta":{"k":2},"future":3}`; got != want {
			t.Error(got)
		}
	})
}

func TestImplementation(t *testing.T) {
	if got := ImplementationFromV1(nil); got.Name != "unknown" || got.Version != "unknown" { // S57
		t.Errorf("%+v", got)
	}
}

func TestStopReason(t *testing.T) {
	for _, r := range []acpv1.StopReason{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"} {
		if back, ok := StopReasonToV1(StopReasonFromV1(r)); back != r || !ok {
			t.Errorf("%s became %q, %v", r, back, ok)
		}
	}
	for _, r := range []acpv2.StopReason{"error", "_x", ""} {
		if v, ok := StopReasonToV1(r); v != "" || ok {
			t.Errorf("%s became %q, %v", r, v, ok)
		}
	}
}

func TestMCPServers(t *testing.T) {
	in := `{"type":"sse","name":"n","url":"u","headers":[{"name":"a","value":"b"}],"_meta":{"k":1}}`
	s, err := acpv1.UnmarshalMCPServer([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	v2, err := MCPServersFromV1([]acpv1.MCPServer{s})
	if err != nil {
		t.Fatal(err)
	}
	u, ok := v2[0].(*acpv2.UnknownMCPServer)
	if !ok || u.Type != "sse" || string(u.Raw) != in {
		t.Errorf("%T %+v", v2[0], v2[0])
	}
	v1, err := MCPServersToV1(v2)
	if diff := cmp.Diff([]acpv1.MCPServer{s}, v1); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if list, err := MCPServersToV1([]acpv2.MCPServer{&acpv2.UnknownMCPServer{Type: "sse", Raw: json.RawMessage(`{"type":"sse"}`)}}); err == nil || list != nil {
		t.Errorf("a malformed server: %v, %v", list, err)
	}
	if list, err := MCPServersFromV1([]acpv1.MCPServer{&acpv1.MCPServerSSE{Meta: json.RawMessage(`5`)}}); err == nil || list != nil {
		t.Errorf("a server that cannot be encoded: %v, %v", list, err)
	}
	if list, err := MCPServersFromV1(nil); list != nil || err != nil {
		t.Errorf("nil became %v, %v", list, err)
	}
}

func TestAuthMethods(t *testing.T) {
	tests := []struct{ name, in, v2, back string }{
		{"no type", `{"id":"a","name":"A","methodId":1}`, `{"type":"agent","methodId":"a","name":"A"}`, `{"id":"a","name":"A"}`},
		{"variables", `{"type":"terminal","id":"a","name":"A","env":{"z":"1","b":"2"}}`,
			`{"type":"terminal","methodId":"a","name":"A","env":[{"name":"b","value":"2"},{"name":"z","value":"1"}]}`,
			`{"type":"terminal","id":"a","name":"A","env":{"b":"2","z":"1"}}`},
		{"unknown", `{"type":"_x","name":"A","id":"a","n":1.0}`, `{"methodId":"a","type":"_x","name":"A","n":1.0}`, `{"id":"a","type":"_x","name":"A","n":1.0}`},
		{"unknown without id", `{"type":"_x","name":"A"}`, ``, ``},
		{"unknown with both ids", `{"type":"_x","name":"A","id":"a","methodId":"b"}`, ``, ``},
		{"unknown with a malformed id", `{"type":"_x","name":"A","id":5}`, ``, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := acpv1.UnmarshalAuthMethod([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			v2 := AuthMethodsFromV1([]acpv1.AuthMethod{m})
			if got := spelled(t, v2); got != tt.v2 {
				t.Errorf("%s", got)
			}
			if got := spelled(t, AuthMethodsToV1(v2)); got != tt.back {
				t.Errorf("back %s", got)
			}
		})
	}
	twice := &acpv2.AuthMethodTerminal{Env: []acpv2.EnvVariable{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}}}
	if env := AuthMethodsToV1([]acpv2.AuthMethod{twice})[0].(*acpv1.AuthMethodTerminal).Env; len(env) != 1 || env["a"] != "2" {
		t.Error(env)
	}
}

// TestElicitationErrors: what nobody could answer is refused.
func TestElicitationErrors(t *testing.T) {
	form := func(field string) string {
		return `{"message":"m","mode":"form","sessionId":"s","requestedSchema":{"type":"object","properties":{"f":` + field + `}}}`
	}
	tests := []struct{ name, in string }{
		{"enum", form(`{"type":"string","enum":[]}`)},
		{"oneOf", form(`{"type":"string","oneOf":[]}`)},
		{"items", form(`{"type":"array","items":{"type":"string","enum":[]}}`)},
		{"titled items", form(`{"type":"array","items":{"anyOf":[]}}`)},
		{"request null", `{"message":"m","mode":"url","requestId":null,"elicitationId":"e","url":"https://x"}`},
		{"request null of an unknown mode", `{"message":"m","mode":"_x","requestId":null}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r acpv1.CreateElicitationRequest
			if err := r.UnmarshalJSON([]byte(tt.in)); err != nil {
				t.Fatal(err)
			}
			if v, err := ElicitationFromV1(r); !errors.Is(err, errors.ErrUnsupported) || v.Mode != nil {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

// TestTwoScopes: of a session and a request the session counts (S77).
func TestTwoScopes(t *testing.T) {
	for _, mode := range []string{`"mode":"url","elicitationId":"e","url":"https://x"`, `"mode":"_x"`} {
		var r acpv1.CreateElicitationRequest
		if err := r.UnmarshalJSON([]byte(`{"message":"m",` + mode + `,"sessionId":"s","requestId":1}`)); err != nil {
			t.Fatal(err)
		}
		v, err := ElicitationFromV1(r)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := v.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		var again acpv2.CreateElicitationRequest
		if err := again.UnmarshalJSON(raw); err != nil {
			t.Errorf("%v: %s", err, raw)
		}
	}
}

// TestNil: values that are not there are nothing on the other side, and no
// conversion panics on them.
func TestNil(t *testing.T) {
	if ContentFromV1(nil) != nil || ContentToV1(nil) != nil || StateFromV1(nil) != nil || StateToV1(nil) != nil ||
		PermissionOutcomeFromV1(nil) != nil || PermissionOutcomeToV1(nil) != nil || SystemPromptFromV1(nil) != nil ||
		SystemPromptToV1(nil) != nil || UsageFromV1(nil) != nil || UsageToV1(nil) != nil || ErrorFromV1(nil) != nil || ErrorToV1(nil) != nil {
		t.Error("something out of nothing")
	}
	if _, ok := PlanUpdateFromV1(acpv1.PlanUpdate{}); ok {
		t.Error("a plan out of nothing")
	}
	if _, ok := PlanUpdateToV1(acpv2.PlanUpdate{}); ok {
		t.Error("a plan out of nothing")
	}
	if got := AuthMethodsFromV1([]acpv1.AuthMethod{nil}); len(got) != 0 {
		t.Error(got)
	}
	if got := AuthMethodsToV1([]acpv2.AuthMethod{nil}); len(got) != 0 {
		t.Error(got)
	}
	if got := CommandsToV1([]acpv2.AvailableCommand{nil}); len(got) != 0 {
		t.Error(got)
	}
	if _, err := ElicitationFromV1(acpv1.CreateElicitationRequest{}); err != nil {
		t.Error(err)
	}
	ElicitationToV1(acpv2.CreateElicitationRequest{})
	OptionsFromV1([]acpv1.SessionConfigOption{{Kind: &acpv1.SessionConfigSelect{}}, {}})
	OptionsToV1([]acpv2.SessionConfigOption{{Kind: &acpv2.SessionConfigSelect{}}, {}})
	ToolContentFromV1([]acpv1.ToolCallContent{nil})
	ToolContentToV1([]acpv2.ToolCallContent{nil})
	var to ToV1
	to.Update(&acpv2.ToolCallContentChunk{})
	to.Update(&acpv2.AgentMessageChunk{})
	to.Update(&acpv2.PlanUpdate{})
	new(FromV1).Update(&acpv1.AgentMessageChunk{})
}
