package acptest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseValue(t *testing.T) {
	for _, tc := range []struct {
		text, err string
	}{
		{`{"a":[1,-2.5e3,true,false,null,"x\u00e9\"y"],"b":{}}`, ""},
		{" [ ] ", ""},
		{`{"a":1,}`, `'}' where the name of a member is expected`},
		{`{"a" 1}`, `'1' where : is expected`},
		{`{"a":1 "b":2}`, `'"' where , or } is expected`},
		{`[1 2]`, `'2' where , or ] is expected`},
		{`[1,]`, `']' where a value is expected`},
		{`{"a":1,"a":2}`, `member "a" appears twice`},
		{`"abc`, `a string that does not end`},
		{"\"a\nb\"", `a string that does not end on its line`},
		{`"\x"`, `a string with a bad escape`},
		{`01`, `'0' where a value is expected`},
		{`nul`, `'n' where a value is expected`},
		{``, `a value is missing`},
		{`{`, `end where the name of a member is expected`},
		{`1 2`, `unexpected '2' behind the value`},
		{`...`, `'.' where a value is expected`},
		{`$x`, `'$' where a value is expected`},
		{strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), ""},
		{strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), "nested more than 512 deep"},
	} {
		_, err := parse(tc.text)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tc.err {
			t.Errorf("parse(%.40q): %q, want %q", tc.text, got, tc.err)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, value, want string
	}{
		{`{"a":1,"b":[true]}`, `{"b":[true],"a":1}`, ""},
		{`{"a":1}`, `{"a":1,"b":2}`, "b is 2, expected nothing"},
		{`{"a":1,...}`, `{"a":1,"b":2}`, ""},
		{`{...}`, `{}`, ""},
		{`{"a":1,"b":2}`, `{"a":1}`, "b is missing, expected 2"},
		{`{"a":{"b":[{"c":"x"}]}}`, `{"a":{"b":[{"c":"y"}]}}`, `a.b[0].c is "y", expected "x"`},
		{`{"a":...}`, `{"a":[1,{}]}`, ""},
		{`{"a":...}`, `{}`, "a is missing, expected ..."},
		{`...`, `17`, ""},
		{`[1,2]`, `[1]`, "the frame is a list of 1, expected a list of 2"},
		{`[1,...]`, `[]`, "the frame is a list of 0, expected a list of 1 or more"},
		{`[1,...,9]`, `[1,2,3,9]`, ""},
		{`[1,...,9]`, `[1,2,3,8]`, "[3] is 8, expected 9"},
		{`[...]`, `[]`, ""},
		{`[{"a":1},...]`, `[{"a":1},2]`, ""},
		{`1`, `1.0`, ""},
		{`1e2`, `100`, ""},
		{`9007199254740993`, `9007199254740992`, "the frame is 9007199254740992, expected 9007199254740993"},
		{`null`, `false`, "the frame is false, expected null"},
		{`"1"`, `1`, `the frame is 1, expected "1"`},
		{`"\u0061"`, `"a"`, ""},
		{`[$x,$x]`, `[{"a":1},{"a":1}]`, ""},
		{`[$x,$x]`, `[1,2]`, "[1] is 2, expected $x (1)"},
		{`[$known]`, `["yes"]`, ""},
		{`[$known]`, `["no"]`, `[0] is "no", expected $known ("yes")`},
	} {
		r := &reader{text: tc.pattern, dialect: pattern}
		want, err := r.value()
		if err != nil {
			t.Fatal(tc.pattern, err)
		}
		v, err := parse(tc.value)
		if err != nil {
			t.Fatal(tc.value, err)
		}
		yes, _ := parse(`"yes"`)
		known := captures{"known": yes}
		got := ""
		if bad := match(want, v, known); bad != nil {
			got = bad.Error()
			if len(known) != 1 {
				t.Errorf("%s and %s: a mismatch captured %v", tc.pattern, tc.value, known)
			}
		}
		if got != tc.want {
			t.Errorf("%s and %s: %q, want %q", tc.pattern, tc.value, got, tc.want)
		}
	}
}

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
		{"-> [...,1,...]", 1, "line 1: a second ... in one array"},
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

func TestTemplates(t *testing.T) {
	known := captures{}
	for name, text := range map[string]string{"id": `1.0`, "s": `"x"`} {
		known[name], _ = parse(text)
	}
	for _, tc := range [][2]string{
		{`{"id":$id, "x" : [ $s, {}, [] ],` + "\n" + `"y":"\u0061"}`, `{"jsonrpc":"2.0","id":1.0,"x":["x",{},[]],"y":"\u0061"}`},
		{`{}`, `{"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"1.0","a":1,"a":2}`, `{"jsonrpc":"1.0","a":1,"a":2}`},
	} {
		r := &reader{text: tc[0], dialect: template}
		v, err := r.value()
		if err != nil {
			t.Fatal(err)
		}
		if got := v.message(known); got != tc[1] {
			t.Errorf("%s is sent as %s, want %s", tc[0], got, tc[1])
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
		known := captures{}
		null, _ := parse("null")
		var bind func(v *value)
		bind = func(v *value) {
			if v.kind == kindName {
				known[v.str] = null
			}
			for _, m := range v.members {
				bind(m.val)
			}
			for _, e := range v.elems {
				bind(e)
			}
		}
		for _, s := range steps {
			if s.val == nil || s.op == opExpect {
				continue
			}
			bind(s.val)
			if text := s.val.message(known); !jsonLine(text) {
				t.Fatalf("sends %q", text)
			}
		}
	})
}

// FuzzMatch holds that a frame matches itself, whatever it is.
func FuzzMatch(f *testing.F) {
	f.Add(`{"a":[1,{"b":"\ud800"}],"c":1e999}`)
	f.Add(`[[],{},null,"",-0]`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parse(text)
		if err != nil {
			return
		}
		if bad := match(v, v, captures{}); bad != nil {
			t.Fatalf("%q does not match itself: %v", text, bad)
		}
		all := &value{kind: kindRest}
		if bad := match(all, v, captures{}); bad != nil {
			t.Fatalf("%q does not match ...: %v", text, bad)
		}
	})
}
