package registry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/internal/registry"
	"github.com/goacp/acp/internal/wire"
)

// TestNotSent: what a peer would have to refuse is an error before it is sent,
// and the error names the member.
func TestNotSent(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tests := []struct {
		name string
		v    json.Marshaler
		want string // part of the error
	}{
		{"required union", acpv1.SessionNotification{SessionID: "s"}, "update: required value is missing"},
		{"nil in a list", acpv1.PromptRequest{Prompt: []acpv1.ContentBlock{acpv1.Text("a"), nil}}, "prompt[1]: required value is missing"},
		{"nil variant", acpv1.PromptRequest{Prompt: []acpv1.ContentBlock{(*acpv1.TextContent)(nil)}}, "prompt[0]: required value is missing"},
		{"empty list", acpv2.PromptRequest{SessionID: "s"}, "prompt: must not be empty"},
		{"empty string", acpv2.Notice{Severity: acpv2.NoticeSeverityInfo}, "title: must not be empty"},
		{"too small", acpv2.TerminalSize{Cols: 80}, "rows: must be at least 1"},
		{"too small, optional", acpv2.ToolCallLocation{Path: "/", Line: new(uint32(0))}, "line: must be at least 1"},
		{"meta is no object", acpv1.TextContent{Meta: raw("5")}, "_meta: expected a JSON object"},
		{"meta of an upsert", acpv2.SessionInfoUpdate{Meta: raw("5")}, "_meta: expected a JSON object"},
		{"broken raw", acpv1.ToolCall{RawInput: raw(`{"a":`)}, "rawInput: "},
		{"known among the unknown", acpv1.TextContent{Unknown: raw(`{"text":"again"}`)}, "known member"},
		{"tag among the unknown", acpv1.ToolCallUpdate{ToolCallID: "t", Unknown: raw(`{"sessionUpdate":"plan"}`)}, "discriminator"},
		{"shared payload's tag", acpv1.AgentMessageChunk{Content: acpv1.Text(""), Unknown: raw(`{"sessionUpdate":"plan"}`)}, "discriminator"},
		{"inline variant's member", acpv1.SessionConfigOption{ID: "i", Name: "n", Kind: &acpv1.SessionConfigBoolean{}, Unknown: raw(`{"currentValue":true}`)}, "known member"},
		{"scope's member", acpv2.CreateElicitationRequest{Message: "m", Mode: &acpv2.ElicitationURLMode{Scope: &acpv2.ElicitationSessionScope{}}, Unknown: raw(`{"sessionId":1}`)}, "known member"},
		{"owner's member in an inline catch-all", acpv1.SessionConfigOption{ID: "i", Name: "n", Kind: &acpv1.UnknownSessionConfigOptionKind{Type: "t", Raw: raw(`{"type":"t","id":"evil"}`)}}, "known member"},
		{"catch-all without its tag", &acpv1.UnknownContentBlock{Type: "_x", Raw: raw(`{"foo":1}`)}, "type: Raw does not have"},
		{"catch-all with another tag", &acpv1.UnknownContentBlock{Type: "_x", Raw: raw(`{"type":"_y"}`)}, "type: Raw does not have"},
		{"inline union", acpv1.SessionConfigOption{ID: "i", Name: "n"}, "type: required value is missing"},
		{"nil marker", (*acpv1.SetSessionModeResponse)(nil), ""},
		{"map key", acpv2.SetProviderRequest{Headers: map[string]string{"\xff": "a"}}, "headers: a name is not valid UTF-8"},
		{"number", acpv1.Cost{Amount: inf()}, "amount: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := appendJSON(tt.v)
			if err == nil {
				t.Fatalf("sent as %s", out)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want %q", err, tt.want)
			}
		})
	}
}

func inf() float64 {
	zero := 0.0
	return 1 / zero
}

func appendJSON(v json.Marshaler) ([]byte, error) {
	if a, ok := v.(interface {
		AppendJSON([]byte) ([]byte, error)
	}); ok {
		return a.AppendJSON(nil)
	}
	return v.MarshalJSON()
}

// TestStateOfContexts: a state that this package does not know can be moved
// between an update, where it has a second discriminator, and other places.
func TestStateOfContexts(t *testing.T) {
	u, err := acpv2.UnmarshalSessionUpdate([]byte(`{"sessionUpdate":"state_update","state":"_x","k":1.50}`))
	if err != nil {
		t.Fatal(err)
	}
	state, ok := u.(*acpv2.UnknownStateUpdate)
	if !ok {
		t.Fatalf("%T", u)
	}
	child := acpv2.SubagentUpdate{SessionID: "c", State: acpv2.Set[acpv2.StateUpdate](state)}
	got, err := child.MarshalJSON()
	want := `{"sessionUpdate":"subagent_update","sessionId":"c","state":{"state":"_x","k":1.50}}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	var again acpv2.SubagentUpdate
	if err := again.UnmarshalJSON(got); err != nil {
		t.Fatal(err)
	}
	inner, _ := again.State.Get()
	got, err = inner.AppendJSON(nil)
	want = `{"sessionUpdate":"state_update","state":"_x","k":1.50}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// TestStrayDiscriminator: where a variant stands outside its union, a member
// that is called like the discriminator is unknown, and survives.
func TestStrayDiscriminator(t *testing.T) {
	in := `{"sessionId":"s","toolCall":{"toolCallId":"t","title":"x","sessionUpdate":"tool_call_update"},"options":[]}`
	var r acpv1.RequestPermissionRequest
	if err := r.UnmarshalJSON([]byte(in)); err != nil {
		t.Fatal(err)
	}
	if out, err := r.MarshalJSON(); err != nil || string(out) != in {
		t.Errorf("%s, %v", out, err)
	}
}

// TestUnmarshalParts: catch-alls, patches and list unions work with
// encoding/json, too.
func TestUnmarshalParts(t *testing.T) {
	var v struct {
		Block acpv1.UnknownContentBlock
		Set   acpv1.Patch[string]
		Clear acpv1.Patch[string]
	}
	in := `{"Block":{"type":"_x","n":1.0},"Set":"a","Clear":null}`
	if err := json.Unmarshal([]byte(in), &v); err != nil {
		t.Fatal(err)
	}
	if out, err := json.Marshal(v); err != nil || string(out) != in {
		t.Errorf("%s, %v", out, err)
	}
	if s, ok := v.Set.Get(); !ok || s != "a" || !v.Clear.IsClear() {
		t.Errorf("patches %+v %+v", v.Set, v.Clear)
	}
	if out, err := json.Marshal(acpv1.SessionConfigSelectOptionList(nil)); err != nil || string(out) != "[]" {
		t.Errorf("%s, %v", out, err)
	}
}

// TestOwnedInput: decoding a frame that belongs to the value, where escapes are
// resolved in place and long strings alias it, gives the same as copying.
func TestOwnedInput(t *testing.T) {
	perType := 100
	if !long.All() {
		perType = 10
	}
	values, refused := 0, 0
	for _, version := range []string{"v1", "v2"} {
		s := load(t, version+".unstable")
		for _, name := range registry.Names(version) {
			rng := rand.New(rand.NewPCG(7, uint64(len(name))))
			for i := range perType {
				data := s.Valid(rng, name)
				if i%2 == 1 {
					data = s.Mutate(rng, name, data)
				}
				data = respell(rng, data)
				read := func(owned bool) string {
					v, _ := registry.New(version, name)
					var d wire.Decoder
					d.Reset(bytes.Clone(data), owned)
					if !wire.Decode(v, &d) {
						return "union" // read as part of the structs
					}
					if err := d.Finish(); err != nil {
						return "refused: " + err.Error()
					}
					out, err := v.MarshalJSON()
					return fmt.Sprintf("%s %v", out, err)
				}
				copied, owned := read(false), read(true)
				if copied != owned {
					t.Fatalf("%s %s: %.300s\ncopied %.500s\nowned  %.500s", version, name, data, copied, owned)
				}
				values++
				if strings.HasPrefix(copied, "refused") {
					refused++
				}
			}
		}
	}
	if refused == 0 || refused > values/2 {
		t.Errorf("%d of %d values were refused", refused, values)
	}
}

// respell writes some strings with more escapes and makes some values long
// enough to alias the frame.
func respell(rng *rand.Rand, in []byte) []byte {
	var out []byte
	for i := 0; i < len(in); {
		if in[i] != '"' {
			out = append(out, in[i])
			i++
			continue
		}
		end := i + 1
		for ; in[end] != '"'; end++ {
			if in[end] == '\\' {
				end++
			}
		}
		next := bytes.TrimLeft(in[end+1:], " \t\r\n")
		isKey := len(next) > 0 && next[0] == ':'
		escape := rng.IntN(3) == 0
		out = append(out, '"')
		for j := i + 1; j < end; j++ {
			switch c := in[j]; {
			case c == '\\':
				out = append(out, c, in[j+1])
				j++
			case escape && c < 0x80 && rng.IntN(3) == 0:
				out = fmt.Appendf(out, `\u%04x`, c)
			default:
				out = append(out, c)
			}
		}
		if !isKey && rng.IntN(30) == 0 {
			out = append(out, strings.Repeat(`\" \u00e9\\x]}{[,:`, 80)...)
		}
		out = append(out, '"')
		i = end + 1
	}
	return out
}
