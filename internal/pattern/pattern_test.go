package pattern

import (
	"strings"
	"testing"
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
		{strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), ""},
		{strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), "nested more than 512 deep"},
	} {
		_, err := Parse(tc.text)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tc.err {
			t.Errorf("Parse(%.40q): %q, want %q", tc.text, got, tc.err)
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
		{`[...,2,3,...]`, `[1,2,2,3,4]`, ""},
		{`[...,{"a":1},...]`, `[{"a":1}]`, ""},
		{`[...,2,...]`, `[1,3]`, "the frame is [1,3], expected [...,2,...]"},
		{`[...,2,...]`, `[]`, "the frame is a list of 0, expected a list of 1 or more"},
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
		want, err := ParseAs(tc.pattern, Pattern)
		if err != nil {
			t.Fatal(tc.pattern, err)
		}
		v, err := Parse(tc.value)
		if err != nil {
			t.Fatal(tc.value, err)
		}
		yes, _ := Parse(`"yes"`)
		known := Captures{"known": yes}
		got := ""
		if bad := Match(want, v, known); bad != nil {
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

func TestTemplates(t *testing.T) {
	known := Captures{}
	for name, text := range map[string]string{"id": `1.0`, "s": `"x"`} {
		known[name], _ = Parse(text)
	}
	for _, tc := range [][2]string{
		{`{"id":$id, "x" : [ $s, {}, [] ],` + "\n" + `"y":"\u0061"}`, `{"jsonrpc":"2.0","id":1.0,"x":["x",{},[]],"y":"\u0061"}`},
		{`{}`, `{"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"1.0","a":1,"a":2}`, `{"jsonrpc":"1.0","a":1,"a":2}`},
	} {
		v, err := ParseAs(tc[0], Template)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Message(known); got != tc[1] {
			t.Errorf("%s is sent as %s, want %s", tc[0], got, tc[1])
		}
	}
}

// FuzzMatch holds that a frame matches itself, whatever it is.
func FuzzMatch(f *testing.F) {
	f.Add(`{"a":[1,{"b":"\ud800"}],"c":1e999}`)
	f.Add(`[[],{},null,"",-0]`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := Parse(text)
		if err != nil {
			return
		}
		if bad := Match(v, v, Captures{}); bad != nil {
			t.Fatalf("%q does not match itself: %v", text, bad)
		}
		all := &Value{Kind: Rest}
		if bad := Match(all, v, Captures{}); bad != nil {
			t.Fatalf("%q does not match ...: %v", text, bad)
		}
	})
}

// TestWords is about what patterns have beyond JSON, ... and names.
func TestWords(t *testing.T) {
	for _, tc := range []struct {
		pattern, value, want string
	}{
		{`string`, `""`, ""},
		{`string`, `1`, "the frame is 1, expected string"},
		{`number`, `1.5`, ""},
		{`number`, `null`, "the frame is null, expected number"},
		{`integer`, `-3`, ""},
		{`integer`, `1.5`, "the frame is 1.5, expected integer"},
		{`boolean`, `true`, ""},
		{`boolean`, `null`, "the frame is null, expected boolean"},
		{`object`, `{}`, ""},
		{`array`, `{}`, "the frame is {}, expected array"},
		{`{"a": string, "b": [integer, ...]}`, `{"a":"x","b":[1,"y"]}`, ""},
		{`~"^a+$"`, `"aaa"`, ""},
		{`~"^a+$"`, `"ab"`, `the frame is "ab", expected ~"^a+$"`},
		{`~"1"`, `1`, `the frame is 1, expected ~"1"`},
		{`null | string`, `null`, ""},
		{`null | string`, `3`, "the frame is 3, expected null | string"},
		{`{"a":1} | {"a":2,"b":[3]}`, `{"a":2,"b":[4]}`, "b[0] is 4, expected 3"},
		{`{"a":$x} | [$x]`, `[1]`, ""},
		{`!null`, `0`, ""},
		{`!null`, `null`, "the frame is null, expected !null"},
		{`{"a"?: string, "b": 1}`, `{"b":1}`, ""},
		{`{"a"?: string, "b": 1}`, `{"b":1,"a":2}`, "a is 2, expected string"},
		{`{"a"?: 1}`, `{"c":1}`, "c is 1, expected nothing"},
	} {
		want, err := ParseAs(tc.pattern, Pattern)
		if err != nil {
			t.Fatal(tc.pattern, err)
		}
		v, err := Parse(tc.value)
		if err != nil {
			t.Fatal(tc.value, err)
		}
		got := ""
		if bad := Match(want, v, Captures{}); bad != nil {
			got = bad.Error()
		}
		if got != tc.want {
			t.Errorf("%s and %s: %q, want %q", tc.pattern, tc.value, got, tc.want)
		}
	}
	for _, text := range []string{`strin`, `~x`, `~"("`, `!`, `a |`, `1 |`} {
		if _, err := ParseAs(text, Pattern); err == nil {
			t.Errorf("%s is a pattern", text)
		}
	}
	for _, text := range []string{`string`, `~"x"`, `!1`, `1|2`, `{"a"?:1}`} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%s is JSON", text)
		}
	}
}
