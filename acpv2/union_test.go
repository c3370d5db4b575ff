package acpv2_test

import (
	"encoding/json"
	"testing"

	"github.com/goacp/acp/acpv2"
)

// TestUnknownVariants: every open union keeps what it does not know, a known
// tag with a bad payload is an error, and so is a missing tag (S81–S83).
func TestUnknownVariants(t *testing.T) {
	tests := []struct {
		name        string
		unknown     string
		bad         string // a known tag with a malformed payload
		unmarshal   func([]byte) (any, error)
		wantUnknown func(any) bool
	}{
		{"update", `{"sessionUpdate":"_x","a":1.0}`, `{"sessionUpdate":"plan_update"}`, boxed(acpv2.UnmarshalSessionUpdate), is[*acpv2.UnknownSessionUpdate]},
		{"state", `{"sessionUpdate":"state_update","state":"_x","a":[1]}`, `{"state":5}`, boxed(acpv2.UnmarshalStateUpdate), is[*acpv2.UnknownStateUpdate]},
		{"content", `{"type":"_x","text":7}`, `{"type":"text","text":7}`, boxed(acpv2.UnmarshalContentBlock), is[*acpv2.UnknownContentBlock]},
		{"tool content", `{"type":"_x"}`, `{"type":"terminal"}`, boxed(acpv2.UnmarshalToolCallContent), is[*acpv2.UnknownToolCallContent]},
		{"plan", `{"type":"_x","planId":"p","deep":{"a":[{}]}}`, `{"type":"_x"}`, boxed(acpv2.UnmarshalPlanUpdateContent), is[*acpv2.UnknownPlanUpdateContent]},
		{"command", `{"type":"_x","name":"n","description":"d"}`, `{"type":"_x","name":"n"}`, boxed(acpv2.UnmarshalAvailableCommand), is[*acpv2.UnknownAvailableCommand]},
		{"auth method", `{"type":"_x","methodId":"m","name":"n"}`, `{"type":"_x","methodId":"m"}`, boxed(acpv2.UnmarshalAuthMethod), is[*acpv2.UnknownAuthMethod]},
		{"mcp server", `{"type":"_x"}`, `{"type":"stdio","name":"n"}`, boxed(acpv2.UnmarshalMCPServer), is[*acpv2.UnknownMCPServer]},
		{"replay", `{"type":"_x"}`, `{}`, boxed(acpv2.UnmarshalReplayFrom), is[*acpv2.UnknownReplayFrom]},
		{"background", `{"type":"_x"}`, `{"type":"terminal"}`, boxed(acpv2.UnmarshalBackgroundWork), is[*acpv2.UnknownBackgroundWork]},
		{"permission", `{"outcome":"_x","optionId":"allow"}`, `{"outcome":"selected"}`, boxed(acpv2.UnmarshalRequestPermissionOutcome), is[*acpv2.UnknownRequestPermissionOutcome]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := tt.unmarshal([]byte(tt.unknown))
			if err != nil {
				t.Fatal(err)
			}
			if !tt.wantUnknown(v) {
				t.Errorf("decoded as %T", v)
			}
			if out, err := v.(json.Marshaler).MarshalJSON(); err != nil || string(out) != tt.unknown {
				t.Errorf("sent again as %s, %v", out, err)
			}
			for _, bad := range []string{tt.bad, `{"no":"tag"}`, `5`, `null`} {
				if v, err := tt.unmarshal([]byte(bad)); err == nil {
					t.Errorf("%s was taken for %T", bad, v)
				}
			}
		})
	}
}

func boxed[T any](f func([]byte) (T, error)) func([]byte) (any, error) {
	return func(b []byte) (any, error) { return f(b) }
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// TestBackground: one malformed item makes the whole snapshot of background
// work count as not reported; an empty one says that nothing runs (S72).
func TestBackground(t *testing.T) {
	for in, want := range map[string]int{
		`{"state":"running","background":[{"type":"_x"},{"type":"terminal","terminalId":"t"}]}`: 2,
		`{"state":"running","background":[{"type":"_x"},{"type":"terminal"}]}`:                  -1,
		`{"state":"running","background":[]}`:                                                   0,
		`{"state":"running","background":null}`:                                                 -1,
		`{"state":"running"}`:                                                                   -1,
	} {
		s, err := acpv2.UnmarshalStateUpdate([]byte(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		got := s.(*acpv2.RunningStateUpdate).Background
		if want < 0 && got != nil || want >= 0 && (got == nil || len(got) != want) {
			t.Errorf("%s: background %v", in, got)
		}
	}
}

// TestThreeStates: absent, null and a value are three things where the schema
// says so, and a malformed value leaves things as they are (S67, S78).
func TestThreeStates(t *testing.T) {
	var u acpv2.ToolCallUpdate
	in := `{"toolCallId":"t","title":null,"kind":"edit","content":[],"locations":7,"_meta":null}`
	if err := u.UnmarshalJSON([]byte(in)); err != nil {
		t.Fatal(err)
	}
	title, kind := "before", acpv2.ToolKindRead
	u.Title.Apply(&title)
	u.Kind.Apply(&kind)
	content, set := u.Content.Get()
	if title != "" || kind != acpv2.ToolKindEdit || !set || content == nil || len(content) != 0 {
		t.Errorf("title %q, kind %q, content %v %t", title, kind, content, set)
	}
	if !u.Locations.IsZero() || !u.Status.IsZero() || string(u.Meta) != "null" {
		t.Errorf("locations %+v, status %+v, meta %s", u.Locations, u.Status, u.Meta)
	}
	u.Content = acpv2.Set([]acpv2.ToolCallContent{&acpv2.Content{Content: acpv2.Text("x")}})
	u.Name = acpv2.Clear[string]()
	want := `{"sessionUpdate":"tool_call_update","toolCallId":"t","name":null,"title":null,"kind":"edit",` +
		`"content":[{"type":"content","content":{"type":"text","text":"x"}}],"_meta":null}`
	if out, err := u.MarshalJSON(); err != nil || string(out) != want {
		t.Errorf("%s, %v; want %s", out, err, want)
	}
}

// TestRepeatedTag: a discriminator that comes twice is an error, whether the
// variant below it is known or not (S80).
func TestRepeatedTag(t *testing.T) {
	for _, state := range []string{"running", "_paused"} {
		for _, text := range []string{
			`{"sessionUpdate":"state_update","state":"` + state + `","sessionUpdate":"state_update"}`,
			`{"state":"` + state + `","sessionUpdate":"state_update","sessionUpdate":"state_update"}`,
			`{"sessionUpdate":"state_update","state":"` + state + `","sessionUpdate":"plan_update"}`,
		} {
			if u, err := acpv2.UnmarshalSessionUpdate([]byte(text)); err == nil {
				t.Errorf("%s: %#v", text, u)
			}
		}
		if _, err := acpv2.UnmarshalSessionUpdate([]byte(`{"sessionUpdate":"state_update","state":"` + state + `"}`)); err != nil {
			t.Error(err)
		}
	}
}
