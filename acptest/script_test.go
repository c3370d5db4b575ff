package acptest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/pattern"
)

func TestParseScript(t *testing.T) {
	steps, err := parseScript(`
		# a comment

		-> {"id":$id,"method":"session/prompt","params":{
			"prompt":[...],
			...
		}}  # behind a frame of several lines
		...
		<- {"id":$id,"result":{}}
		!raw  not JSON # at all
		!initialize 2
		!initialize 1 {"agentCapabilities":{"loadSession":true}}
		!session s1
		!sleep 10ms
		!timeout 1m
		!close
		!reopen
		!stall
	`)
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		Op   op
		Line int
		Text string
	}
	var got []line
	for _, s := range steps {
		got = append(got, line{s.op, s.line, s.text})
	}
	want := []line{
		{opExpect, 4, "-> {\"id\":$id,\"method\":\"session/prompt\",\"params\":{\n\t\t\t\"prompt\":[...],\n\t\t\t...\n\t\t}}"},
		{opSkip, 8, "..."},
		{opSend, 9, `<- {"id":$id,"result":{}}`},
		{opRaw, 10, "!raw  not JSON # at all"},
		{opInitialize, 11, "!initialize 2"},
		{opInitialize, 12, `!initialize 1 {"agentCapabilities":{"loadSession":true}}`},
		{opSession, 13, "!session s1"},
		{opSleep, 14, "!sleep 10ms"},
		{opTimeout, 15, "!timeout 1m"},
		{opClose, 16, "!close"},
		{opReopen, 17, "!reopen"},
		{opStall, 18, "!stall"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if steps[3].arg != "not JSON # at all" {
		t.Errorf("raw text %q", steps[3].arg)
	}
}

func TestParseScriptErrors(t *testing.T) {
	for _, tc := range []struct {
		script string
		line   int
		reason string
	}{
		{"hello", 1, "a line begins with ->, <-, !, # or ..."},
		{"\n\n-> {\"a\":\n\n2 3}", 3, "line 5: '3' where , or } is expected"},
		{"-> {\"a\":1}\n<- 17", 2, "what is sent has to be an object; use !raw for anything else"},
		{"<- {\"id\":$id}", 1, "nothing was captured as $id before"},
		{"<- {\"a\":[{\"id\":$id}]}", 1, "nothing was captured as $id before"},
		{"<- {...}", 1, "line 1: '.' where the name of a member is expected"},
		{"-> {\"id\":$}", 1, "line 1: '}' where the name of a capture is expected"},
		{"-> {...,...}", 1, "line 1: a second ... in one object"},
		{"-> [...,1,...,2]", 1, "line 1: a second ... in one array"},
		{"-> {} extra", 1, `unexpected "extra" at the end of the line`},
		{"... extra", 1, `unexpected "extra" at the end of the line`},
		{"!nothing", 1, "there is no !nothing"},
		{"!raw", 1, "!raw needs a text"},
		{"!sleep", 1, "!sleep needs a duration, such as 10ms"},
		{"!timeout -1s", 1, "!timeout needs a duration, such as 10ms"},
		{"!initialize", 1, "!initialize needs a protocol version"},
		{"!initialize 65536", 1, "!initialize needs a protocol version"},
		{"!initialize 1 {", 1, "line 1: end where the name of a member is expected"},
		{"!initialize 1 2", 1, `unexpected "2" at the end of the line`},
		{"!session", 1, "!session needs a name of letters, digits and _"},
		{"!session é", 1, "!session needs a name of letters, digits and _"},
		{"!session a\n!session a", 2, "$a stands for something else already"},
		{"!close now", 1, `unexpected "now" at the end of the line`},
		{"!close\n-> {}", 2, "nothing but !reopen can follow !close"},
		{"!eof\n!close", 2, "nothing but !reopen can follow !eof"},
		{"!stall\n<- {}", 2, "nothing but !reopen can follow !stall"},
	} {
		_, err := parseScript(tc.script)
		bad, ok := errors.AsType[*ScriptError](err)
		if !ok {
			t.Errorf("%q: %v", tc.script, err)
			continue
		}
		if bad.Line != tc.line || bad.Reason != tc.reason {
			t.Errorf("%q: line %d: %q, want line %d: %q", tc.script, bad.Line, bad.Reason, tc.line, tc.reason)
		}
	}
}

// FuzzScript holds that no script harms the parser, that errors say where, and
// that what is sent is one line of JSON.
func FuzzScript(f *testing.F) {
	f.Add("-> {\"id\":$id,...}\n<- {\"id\":$id,\"x\":[1,\n2]}\n!close")
	f.Add("!initialize 1 {\"a\":{}}\n!session s\n...\n!raw x\n!stall")
	f.Add("\f\n\u00a0")
	f.Add("# x\n-> [...,$a]\n!sleep 1ms\n!timeout 1s\n!eof\n!reopen\n-> ...")
	f.Fuzz(func(t *testing.T, script string) {
		steps, err := parseScript(script)
		if err != nil {
			bad, ok := errors.AsType[*ScriptError](err)
			if !ok || bad.Line < 1 || bad.Line > 1+strings.Count(script, "\n") || bad.Reason == "" {
				t.Fatalf("error %#v", err)
			}
			return
		}
		known := pattern.Captures{}
		null, _ := pattern.Parse("null")
		var bind func(v *pattern.Value)
		bind = func(v *pattern.Value) {
			if v.Kind == pattern.Name {
				known[v.Str] = null
			}
			for _, m := range v.Members {
				bind(m.Val)
			}
			for _, e := range v.Elems {
				bind(e)
			}
		}
		for _, s := range steps {
			if s.val == nil || s.op == opExpect {
				continue
			}
			bind(s.val)
			if text := s.val.Message(known); !jsonLine(text) {
				t.Fatalf("sends %q", text)
			}
		}
	})
}
