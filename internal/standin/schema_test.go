package standin

import "testing"

// TestJudgeSchema: what services refuse of the schema of a tool.
func TestJudgeSchema(t *testing.T) {
	for _, tt := range []struct {
		api, schema string
		ok          bool
	}{
		{"messages", `{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x"]},"b":{"type":"array","items":{"$ref":"#/$defs/n"}},"c":true},"required":["a"],"$defs":{"n":{"anyOf":[{"type":"number","minimum":1}]}},"additionalProperties":false}`, true},
		{"messages", `[]`, false}, {"messages", `{"type":"string"}`, false}, {"messages", `{"type":"object"}`, false},
		{"messages", `{"type":"object","oneOf":[],"properties":{}}`, false}, {"messages", `{"type":"object","properties":{"a b":{}}}`, false},
		{"messages", `{"type":"object","properties":{"a":{"type":"odd"}}}`, false}, {"messages", `{"type":"object","properties":{"a":1}}`, false},
		{"messages", `{"type":"object","properties":{"a":{"anyOf":[]}}}`, false}, {"messages", `{"type":"object","properties":{"a":{"properties":[]}}}`, false},
		{"messages", `{"type":"object","properties":{"a":{"minimum":true}}}`, false}, {"messages", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`, false},
		{"messages", `{"type":"object","properties":{"a":{"type":"array"}}}`, false}, {"messages", `{"type":"object","properties":{},"required":"a"}`, false},
		{"messages", `{"type":"object","properties":{"a":{"enum":[]}}}`, false},
		{"plain", `{"type":"object","properties":{"a":{"type":"string","enum":["x"]}},"required":["a"]}`, true},
		{"plain", `{"type":"object","properties":{"a":{"type":["string","null"]}}}`, false}, {"plain", `{"type":"object","properties":{"a":true}}`, false},
		{"plain", `{"type":"object","properties":{},"required":["a"]}`, false}, {"plain", `{"type":"object","properties":{"a":{"type":"integer","enum":[1]}}}`, false},
		{"plain", `{"type":"object","properties":{"a":{"type":"object","anyOf":[{"type":"string"}]}}}`, false}, {"plain", `{"type":"object","properties":{"a":{"pattern":"x"}}}`, false},
		{"ollama", `{"type":"object","properties":{"a":{"type":"string"}}}`, true}, {"ollama", `{"type":"object","properties":{"a":true}}`, false},
	} {
		if err := JudgeSchema(tt.api, []byte(tt.schema)); (err == nil) != tt.ok {
			t.Errorf("%s %s: %v", tt.api, tt.schema, err)
		}
	}
}
