package told

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// heard decodes updates and requests about the call c, and has calls hear them.
func heard(t *testing.T, version int, messages ...string) *Calls {
	t.Helper()
	k := new(Calls)
	for _, m := range messages {
		var params interface{ UnmarshalJSON([]byte) error }
		switch asks := strings.HasPrefix(m, "ask "); {
		case version == 1 && asks:
			params, m = new(acpv1.RequestPermissionRequest), fmt.Sprintf(`{"sessionId":"s","options":[],"toolCall":{"toolCallId":"c"%s}}`, m[4:])
		case version == 1:
			kind, fields, _ := strings.Cut(m, " ")
			params, m = new(acpv1.SessionNotification), fmt.Sprintf(`{"sessionId":"s","update":{"sessionUpdate":%q,"toolCallId":"c"%s}}`, kind, fields)
		case asks:
			params, m = new(acpv2.RequestPermissionRequest), fmt.Sprintf(`{"sessionId":"s","title":"","options":[{"optionId":"y","name":"Y","kind":"allow_once"}],"subject":{"type":"tool_call","toolCall":{"toolCallId":"c"%s}}}`, m[4:])
		default:
			_, fields, _ := strings.Cut(m, " ")
			params, m = new(acpv2.UpdateSessionNotification), fmt.Sprintf(`{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c"%s}}`, fields)
		}
		if err := params.UnmarshalJSON([]byte(m)); err != nil {
			t.Fatal(m, err)
		}
		k.See(params)
	}
	return k
}

// TestEarlier: what a call's id has announced stays known, whatever takes it away; what only adds to
// it, and a new call under the id of one that has ended, is no reason to keep it.
func TestEarlier(t *testing.T) {
	const run = `tool_call ,"title":"T","kind":"execute","rawInput":{"command":"rm x"}`
	for _, tt := range []struct {
		messages []string
		want     string
	}{
		{[]string{run}, ``},
		{[]string{run, `ask ,"title":"U"`}, ``},
		{[]string{run, `ask ,"kind":"other","rawInput":{}`}, ``},
		{[]string{run, `tool_call_update ,"kind":"other","rawInput":{}`, `ask ,"title":"U"`}, `execute {"command":"rm x"}`},
		{[]string{run, `tool_call_update ,"rawInput":{"command":"rm xyz","cwd":"/w"}`}, ``},
		{[]string{run, `tool_call_update ,"rawInput":{"command":"ls"}`, `ask ,"kind":"edit"`}, `execute {"command":"rm x"}; execute {"command":"ls"}`},
		{[]string{run, `tool_call_update ,"status":"completed"`, `tool_call ,"title":"T","status":"pending","kind":"read","rawInput":{"path":"/a"}`}, ``},
		{[]string{run, `tool_call_update ,"status":"completed"`, `ask ,"status":"pending","kind":"read"`}, `execute {"command":"rm x"}`},
		{[]string{`tool_call ,"title":"T","kind":"other","rawInput":{"content":"a"}`, `ask ,"kind":"edit","rawInput":{"content":"ab","n":1}`}, ``},
		{[]string{`tool_call ,"title":"T","kind":"edit","locations":[{"path":"/a"}]`, `ask ,"locations":[{"path":"/a"},{"path":"/b"}]`}, ``},
		{[]string{`tool_call ,"title":"T","kind":"edit","locations":[{"path":"/a"}]`, `ask ,"locations":[]`}, `edit  @/a`},
		{[]string{`tool_call ,"title":"T","kind":"execute","content":[{"type":"content","content":{"type":"text","text":"Running: rm x"}}]`, `ask ,"content":[]`}, `execute  text`},
	} {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprint(version, " ", strings.Join(tt.messages, "; ")), func(t *testing.T) {
				list, more := heard(t, version, tt.messages...).Earlier("c")
				var said []string
				for _, e := range list {
					text := fmt.Sprintf("%s %s", e.Kind.Or(""), e.RawInput)
					for _, l := range e.Locations.Or(nil) {
						text += " @" + l.Path
					}
					if len(e.Content.Or(nil)) > 0 {
						text += " text"
					}
					said = append(said, text)
				}
				want(t, "earlier", strings.Join(said, "; "), tt.want)
				want(t, "more", more, false)
			})
		}
	}
}

// TestEarlierBounds: beyond the bounds nothing is dropped in silence.
func TestEarlierBounds(t *testing.T) {
	var messages []string
	for i := range maxEarlier + 2 {
		messages = append(messages, fmt.Sprintf(`tool_call_update ,"rawInput":{"command":"run %d"}`, i))
	}
	list, more := heard(t, 1, messages...).Earlier("c")
	want(t, "kept", len(list), maxEarlier)
	want(t, "more", more, true)
	for i := range messages {
		messages[i] += `,"content":[]`
	}
	messages = append(messages[:maxEarlier+1:maxEarlier+1], `tool_call_update ,"content":[{"type":"content","content":{"type":"text","text":"Running: rm x"}}]`, `tool_call_update ,"content":[]`)
	if _, more = heard(t, 1, messages...).Earlier("c"); !more {
		t.Error("a text that does not fit is not reported")
	}
	long, _ := json.Marshal(strings.Repeat("x", maxKnownCall*3/4))
	var k = heard(t, 2, `u ,"rawInput":{"a":`+string(long)+`}`, `u ,"rawInput":{"b":`+string(long)+`}`, `u ,"rawInput":{}`)
	list, more = k.Earlier("c")
	want(t, "kept of large ones", len(list), 1)
	want(t, "more of large ones", more, true)
	if k.bytes > 2*maxKnownCall {
		t.Errorf("%d bytes", k.bytes)
	}
	deep := strings.Repeat("[", maxSays+1) + strings.Repeat("]", maxSays+1)
	if saysAll([]byte(deep), []byte(deep+" ")) {
		t.Error("inputs are compared without a bound")
	}
}
