package registry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/registry"
	"github.com/goacp/acp/internal/wire"
)

// TestPaths: an error names the member and never holds its value (S26 and our
// rule in §1 of the behaviour).
func TestPaths(t *testing.T) {
	const secret = "hunter2"
	tests := []struct{ version, name, in, path, reason string }{
		{"v1", "PromptRequest", `{"sessionId":"s","prompt":[{"type":"text","text":"a"},{"type":"text","text":5}]}`, "prompt[1].text", "expected a string"},
		{"v1", "PromptRequest", `{"prompt":[]}`, "sessionId", "missing"},
		{"v1", "PromptRequest", `{"sessionId":"a","prompt":[],"sessionId":"hunter2"}`, "sessionId", "duplicate member"},
		{"v1", "SessionNotification", `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"text":{"hunter2":1},"type":"text"}}}`, "update.content.text", "expected a string"},
		{"v1", "SessionNotification", `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk"}}`, "update.content", "missing"},
		{"v1", "SessionNotification", `{"sessionId":"s","update":{"no":"tag"}}`, "update", "expected an object with a string sessionUpdate"},
		{"v1", "ReadTextFileRequest", `{"sessionId":"s","path":"/hunter2","line":-1}`, "line", "integer out of range"},
		{"v1", "ReadTextFileRequest", `{"sessionId":"s","path":"/hunter2","line":1.5}`, "line", "expected an integer"},
		{"v1", "NewSessionRequest", `{"cwd":"/","mcpServers":[{"name":"x","command":"c","args":[],"env":[{"name":"TOKEN","value":7}]}]}`, "mcpServers[0].env[0].value", "expected a string"},
		{"v1", "InitializeRequest", `{"protocolVersion":65536}`, "protocolVersion", "integer out of range"},
		{"v2", "PromptRequest", `{"sessionId":"s","prompt":[]}`, "prompt", "must not be empty"},
		{"v2", "CreateElicitationRequest", `{"mode":"form","message":"m","sessionId":"s","requestId":1,"requestedSchema":{"type":"object","properties":{}}}`, "", "expected exactly one of sessionId and requestId"},
		{"v2", "AvailableCommand", `{"type":"vendor","name":"n"}`, "description", "missing"},
		{"v2", "SetProviderRequest", `{"providerId":"p","apiType":"openai","baseUrl":"u","headers":{"Authorization":7}}`, "headers.Authorization", "expected a string"},
	}
	for _, tt := range tests {
		v, ok := registry.New(tt.version, tt.name)
		if !ok {
			t.Fatal(tt.name)
		}
		err := v.UnmarshalJSON([]byte(tt.in))
		var fe *wire.FieldError
		if !errors.As(err, &fe) {
			t.Errorf("%s: %v, want a FieldError\n\t%s", tt.name, err, tt.in)
			continue
		}
		if fe.Path != tt.path || fe.Reason != tt.reason {
			t.Errorf("%s: %q %q, want %q %q\n\t%s", tt.name, fe.Path, fe.Reason, tt.path, tt.reason, tt.in)
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error holds a value: %v", tt.name, err)
		}
	}
}

// TestErrorsHoldNoValues breaks values of every type in every way the sampler
// knows, with a marker in every string.
func TestErrorsHoldNoValues(t *testing.T) {
	const marker = "s3cr3t"
	for _, version := range []string{"v1", "v2"} {
		s := load(t, version+".unstable")
		rng := rand.New(rand.NewPCG(3, 3))
		refused := 0
		for _, name := range registry.Names(version) {
			for range 40 {
				in := mark(t, s.Mutate(rng, name, s.Valid(rng, name)), marker)
				v, _ := registry.New(version, name)
				err := v.UnmarshalJSON(in)
				if err == nil {
					continue
				}
				refused++
				if strings.Contains(err.Error(), marker) {
					t.Fatalf("%s %s: %v\n\t%s", version, name, err, in)
				}
			}
		}
		if refused < 1000 {
			t.Errorf("%s: only %d values were refused", version, refused)
		}
	}
}

// mark appends the marker to every string value.
func mark(t *testing.T, data []byte, marker string) []byte {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return v + marker
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for k := range v {
				// Discriminators stay, or every union would be unknown.
				if k != "type" && k != "sessionUpdate" && k != "state" && k != "outcome" && k != "mode" && k != "action" && k != "operation" {
					v[k] = walk(v[k])
				}
			}
		}
		return v
	}
	out, err := json.Marshal(walk(v))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
