package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/registry"
	"github.com/goacp/acp/internal/updatetest"
)

// A scene is what a scripted agent does in one turn. All IDs in it end in "?", for which the name of the scene stands.
type scene struct {
	name    string
	updates []string // of the session
	child   []string // of the session of the subagent that these announce
	asks    string   // the parameters of a permission request, without the session; or ""
	elicits string   // those of an elicitation
}

// extras are scenes beyond a sample of each update: one for each kind of content, of plans, of what a permission is asked for
// and of what else an agent asks. TestScenes fails if the schema has a kind that none of them shows.
var extras = map[int][]scene{
	1: {
		{name: "content: text", updates: []string{said(`{"type":"text","text":"word"}`)}},
		{name: "content: image", updates: []string{said(`{"type":"image","data":"aGk=","mimeType":"image/png"}`)}},
		{name: "content: audio", updates: []string{said(`{"type":"audio","data":"aGk=","mimeType":"audio/wav"}`)}},
		{name: "content: link", updates: []string{said(`{"type":"resource_link","uri":"file:///a","name":"a","size":5}`)}},
		{name: "content: resource", updates: []string{said(`{"type":"resource","resource":{"uri":"file:///a","text":"word"}}`)}},
		{name: "tool: content", updates: []string{used(`{"type":"content","content":{"type":"text","text":"word"}}`)}},
		{name: "tool: diff", updates: []string{used(`{"type":"diff","path":"/f","oldText":"old\n","newText":"new\n"}`)}},
		{name: "tool: terminal", updates: []string{used(`{"type":"terminal","terminalId":"t?"}`)}},
		{name: "tool: session", updates: []string{used(`{"type":"session","sessionId":"sub?"}`)}},
		{name: "tool: command", updates: []string{
			`{"sessionUpdate":"tool_call","toolCallId":"c?","title":"make","content":[{"type":"terminal","terminalId":"c?"}],"rawInput":{"command":"make"},"_meta":{"terminal_info":{"terminal_id":"c?","cwd":"/project"}}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c?","_meta":{"terminal_output_delta":{"terminal_id":"c?","data":"wor"}}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c?","_meta":{"terminal_output":{"terminal_id":"c?","data":"word\n"}}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c?","status":"failed","_meta":{"terminal_exit":{"terminal_id":"c?","exit_code":2,"signal":null}}}`,
		}},
		{name: "plan: items", updates: []string{planned(`{"type":"items","planId":"p?","entries":[{"content":"word","priority":"low","status":"completed"}]}`)}},
		{name: "plan: file", updates: []string{planned(`{"type":"file","planId":"p?","uri":"file:///plan.md"}`)}},
		{name: "plan: markdown", updates: []string{planned(`{"type":"markdown","planId":"p?","content":"# word"}`)}},
		{name: "message of a subagent", updates: []string{
			`{"sessionUpdate":"subagent_update","sessionId":"s?"}`, `{"sessionUpdate":"session_message","messageId":"m?","senderSessionId":"s?","content":[{"type":"text","text":"word"}]}`,
		}},
		{name: "permission", updates: []string{used(`{"type":"content","content":{"type":"text","text":"word"}}`)}, asks: `"toolCall":{"toolCallId":"c?","kind":"edit"},` + options},
		{name: "permission: unannounced", asks: `"toolCall":{"toolCallId":"c?","title":"Look"},` + options},
		{name: "form", elicits: form},
		{name: "form: of a tool call", updates: []string{used(`{"type":"content","content":{"type":"text","text":"word"}}`)}, elicits: `"toolCallId":"c?",` + form},
		{name: "link", elicits: `"mode":"url","message":"Log in","elicitationId":"e","url":"https://example.com/"`},
	},
	2: {
		{name: "content: text", updates: []string{said(`{"type":"text","text":"word"}`)}},
		{name: "content: image", updates: []string{said(`{"type":"image","data":"aGk=","mimeType":"image/png"}`)}},
		{name: "content: audio", updates: []string{said(`{"type":"audio","data":"aGk=","mimeType":"audio/wav"}`)}},
		{name: "content: link", updates: []string{said(`{"type":"resource_link","uri":"file:///a","name":"a","size":5}`)}},
		{name: "content: resource", updates: []string{said(`{"type":"resource","resource":{"uri":"file:///a","text":"word"}}`)}},
		{name: "content: skill", updates: []string{said(`{"type":"skill","name":"word"}`)}},
		{name: "tool: content", updates: []string{used(`{"type":"content","content":{"type":"text","text":"word"}}`)}},
		{name: "tool: diff", updates: []string{used(`{"type":"diff","changes":[{"fileType":"text","operation":"modify","path":"/f"}],"patch":{"format":"git_patch","text":"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new\n"}}`)}},
		{name: "tool: terminal", updates: []string{
			`{"sessionUpdate":"terminal_update","terminalId":"t?","command":"print"}`, used(`{"type":"terminal","terminalId":"t?"}`),
			`{"sessionUpdate":"terminal_output_chunk","terminalId":"t?","data":"d29yZAo="}`,
		}},
		{name: "tool: session", updates: []string{used(`{"type":"session","sessionId":"sub?"}`)}},
		{name: "plan: items", updates: []string{planned(`{"type":"items","planId":"p?","entries":[{"content":"word","priority":"low","status":"completed"}]}`)}},
		{name: "plan: file", updates: []string{planned(`{"type":"file","planId":"p?","uri":"file:///plan.md"}`)}},
		{name: "plan: markdown", updates: []string{planned(`{"type":"markdown","planId":"p?","content":"# word"}`)}},
		{name: "message of a subagent", updates: []string{
			`{"sessionUpdate":"subagent_update","sessionId":"s?"}`, `{"sessionUpdate":"session_message","messageId":"m?","senderSessionId":"s?","content":[{"type":"text","text":"word"}]}`,
		}},
		{name: "permission: tool call", updates: []string{used(`{"type":"content","content":{"type":"text","text":"word"}}`)}, asks: `"title":"Edit it?","subject":{"type":"tool_call","toolCall":{"toolCallId":"c?","kind":"edit"}},` + options},
		{name: "permission: command", asks: `"title":"Run it?","subject":{"type":"command","command":"make","cwd":"/project"},` + options},
		{name: "permission: words", asks: `"title":"May I?","description":"It is about words.",` + options},
		{name: "form", elicits: form},
		{name: "form: of a tool call", updates: []string{used(`{"type":"content","content":{"type":"text","text":"word"}}`)}, elicits: `"toolCallId":"c?",` + form},
		{name: "link", elicits: `"mode":"url","message":"Log in","elicitationId":"e","url":"https://example.com/"`},
	},
}

const options = `"options":[{"optionId":"a","name":"Allow","kind":"allow_once"},{"optionId":"b","name":"Always","kind":"allow_always"},` +
	`{"optionId":"c","name":"No","kind":"reject_once"},{"optionId":"d","name":"Never","kind":"reject_always"}]`

const form = `"mode":"form","message":"Who are you?","requestedSchema":{"type":"object","title":"You","description":"Your name","required":["name"],"properties":{` +
	`"name":{"type":"string","title":"Name","maxLength":9},"one":{"type":"string","oneOf":[{"const":"a","title":"A"}]},"size":{"type":"number","minimum":0.5},` +
	`"count":{"type":"integer","default":3},"sure":{"type":"boolean","default":true},` +
	`"some":{"type":"array","items":{"type":"string","enum":["a","b"]}},"more":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]},"maxItems":1}}}`

func said(content string) string {
	return `{"sessionUpdate":"agent_message_chunk","messageId":"m?","content":` + content + `}`
}

func used(content string) string {
	return `{"sessionUpdate":"tool_call_update","toolCallId":"c?","title":"Look","status":"completed","content":[` + content + `]}`
}

func planned(content string) string {
	return `{"sessionUpdate":"plan_update","plan":` + content + `}`
}

// idIn finds IDs in JSON. What they name is one thing in a scene, and has its own ID in another one.
var idIn = regexp.MustCompile(`("(?:messageId|toolCallId|terminalId|terminal_id|planId|compactionId|sessionId|senderSessionId|recipientSessionId)":")([^"]*)"`)

var notWord = regexp.MustCompile(`\W+`)

// named puts the name of a scene into its IDs.
func (s scene) named() scene {
	name := "-" + notWord.ReplaceAllString(s.name, "-")
	put := func(text string) string {
		return idIn.ReplaceAllStringFunc(text, func(id string) string { return strings.Replace(id, `?"`, name+`"`, 1) })
	}
	s.updates, s.child, s.asks, s.elicits = each(s.updates, put), each(s.child, put), put(s.asks), put(s.elicits)
	return s
}

func each(list []string, f func(string) string) (all []string) {
	for _, v := range list {
		all = append(all, f(v))
	}
	return all
}

// scenes returns everything that an agent of a version can say, each in a turn of its own.
func scenes(version int) (all []scene) {
	texts := updatetest.Texts(version)
	for _, kind := range slices.Sorted(maps.Keys(texts)) {
		s := scene{name: kind}
		for _, text := range texts[kind] {
			s.updates = append(s.updates, idIn.ReplaceAllString(text, `$1$2?"`))
		}
		if kind == "subagent_update" {
			s.child = []string{said(`{"type":"text","text":"of the child"}`)}
		}
		all = append(all, s)
	}
	all = append(all, scene{name: "half", updates: []string{said(`{"type":"text","text":"half"}`), said(`{"type":"text","text":" of it"}`)}})
	all = append(all, extras[version]...)
	all = append(all, scene{name: "end", updates: []string{said(`{"type":"text","text":"end"}`)}})
	for i := range all {
		all[i] = all[i].named()
	}
	return all
}

// TestScenes: scenes have every update of the schema, and every kind of content, of plans, of what a permission is asked for,
// of elicitations and of fields.
func TestScenes(t *testing.T) {
	for version, known := range map[int]map[string]bool{1: acpv1.Updates(), 2: acpv2.Updates()} {
		all := scenes(version)
		for kind := range known {
			if !slices.ContainsFunc(all, func(s scene) bool { return s.name == kind }) {
				t.Errorf("version %d: no scene has %s", version, kind)
			}
		}
	}
	shown := make(map[string]bool)
	note := func(v any) { shown[fmt.Sprintf("%T", v)] = true }
	for _, s := range scenes(1) {
		var r acpv1.CreateElicitationRequest
		if s.elicits == "" {
			continue
		}
		if err := json.Unmarshal([]byte(`{"sessionId":"s",`+s.elicits+`}`), &r); err != nil {
			t.Errorf("%s: %v", s.elicits, err)
		}
		note(r.Mode)
		if m, ok := r.Mode.(*acpv1.ElicitationFormMode); ok {
			for _, p := range m.RequestedSchema.Properties {
				note(p.Schema)
				if several, ok := p.Schema.(*acpv1.MultiSelectPropertySchema); ok {
					note(several.Items)
				}
			}
		}
	}
	for _, s := range scenes(2) {
		var r acpv2.CreateElicitationRequest
		if s.elicits == "" {
			continue
		}
		if err := json.Unmarshal([]byte(`{"sessionId":"s",`+s.elicits+`}`), &r); err != nil {
			t.Errorf("%s: %v", s.elicits, err)
		}
		note(r.Mode)
		if m, ok := r.Mode.(*acpv2.ElicitationFormMode); ok {
			for _, p := range m.RequestedSchema.Properties {
				note(p.Schema)
				if several, ok := p.Schema.(*acpv2.MultiSelectPropertySchema); ok {
					note(several.Items)
				}
			}
		}
	}
	for _, s := range scenes(1) {
		for _, text := range s.updates {
			u, err := acpv1.UnmarshalSessionUpdate([]byte(text))
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			switch u := u.(type) {
			case *acpv1.AgentMessageChunk:
				note(u.Content)
			case *acpv1.ToolCallUpdate:
				content, _ := u.Content.Get()
				for _, c := range content {
					note(c)
				}
			case *acpv1.PlanUpdate:
				note(u.Plan)
			}
		}
	}
	for _, s := range scenes(2) {
		for _, text := range s.updates {
			u, err := acpv2.UnmarshalSessionUpdate([]byte(text))
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			switch u := u.(type) {
			case *acpv2.AgentMessageChunk:
				note(u.Content)
			case *acpv2.ToolCallUpdate:
				content, _ := u.Content.Get()
				for _, c := range content {
					note(c)
				}
			case *acpv2.PlanUpdate:
				note(u.Plan)
			}
		}
		if s.asks != "" {
			var r acpv2.RequestPermissionRequest
			if err := json.Unmarshal([]byte(`{"sessionId":"s",`+s.asks+`}`), &r); err != nil {
				t.Errorf("%s: %v", s.asks, err)
			}
			note(r.Subject)
		}
	}
	for _, version := range []string{"v1", "v2"} {
		n := 0
		for _, name := range registry.Names(version) {
			v, _ := registry.New(version, name)
			switch any(v).(type) {
			case acpv1.ContentBlock, acpv1.ToolCallContent, acpv1.PlanUpdateContent,
				acpv1.ElicitationMode, acpv1.ElicitationPropertySchema, acpv1.MultiSelectItems,
				acpv2.ContentBlock, acpv2.ToolCallContent, acpv2.PlanUpdateContent, acpv2.RequestPermissionSubject,
				acpv2.ElicitationMode, acpv2.ElicitationPropertySchema, acpv2.MultiSelectItems:
				n++
				if !shown[fmt.Sprintf("%T", v)] {
					t.Errorf("no scene shows %s of %s", name, version)
				}
			}
		}
		if n < 20 {
			t.Errorf("%s: found %d kinds", version, n)
		}
	}
}
