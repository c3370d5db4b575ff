package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestRaw: raw values keep their spelling, and can neither end a frame early
// nor break it.
func TestRaw(t *testing.T) {
	long := strings.Repeat("x", 2*aliasMin)
	for _, x := range []struct {
		name, in, want string
		replaced       int
	}{
		{"number spelling", `1.50e+02`, `1.50e+02`, 0},
		{"64 bits", `9007199254740993`, `9007199254740993`, 0},
		{"string spelling", `"\u0041\/\ud83d"`, `"\u0041\/\ud83d"`, 0},
		{"spaces kept", `{ "a" :	1 }`, `{ "a" :	1 }`, 0},
		{"order and repeated members kept", `{"b":1,"a":2,"b":3}`, `{"b":1,"a":2,"b":3}`, 0},
		{"line breaks between tokens", "{\n\"a\"\r\n:\r[1,\n2]}", `{ "a"  : [1, 2]}`, 0},
		{"escaped line breaks stay", `"a\nb\r"`, `"a\nb\r"`, 0},
		{"invalid UTF-8", "[\"\xff\xfe\",\"é\x80\"]", "[\"\uFFFD\uFFFD\",\"é\uFFFD\"]", 3},
		{"invalid UTF-8 in a key", "{\"\xff\":1}", "{\"\uFFFD\":1}", 1},
		{"separators", "\"\u2028\u2029\"", "\"\u2028\u2029\"", 0},
		{"long", `["` + long + "\",\n\"\xff\"]", `["` + long + "\", \"\uFFFD\"]", 1},
		{"long and clean", "[\"" + long + "\",\n1]", `["` + long + `", 1]`, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			for how, d := range reading("[ " + x.in + " ,1]") {
				d.FirstElem()
				got := d.RawCopy()
				if string(got) != x.want || d.Replaced() != x.replaced {
					t.Errorf("%s: %.80q with %d replaced, want %.80q", how, got, d.Replaced(), x.want)
				}
				if !d.NextElem() || d.Int64() != 1 || d.NextElem() {
					t.Errorf("%s: the next value is lost", how)
				}
				check(t, d, "")
			}
			d := reading(" " + x.in + " ")["copied"]
			if got := d.Raw(); string(got) != x.in {
				t.Errorf("Raw: %.80q", got)
			}
			check(t, d, "")
			got, err := AppendRaw([]byte("pre:"), []byte(x.in))
			if err != nil || string(got) != "pre:"+x.want {
				t.Errorf("AppendRaw: %.80q, %v", got, err)
			}
			var unknown json.RawMessage
			d = reading(`{"known":1,"other":` + x.in + `,"more":` + x.in + `}`)["owned"]
			for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
				if string(k) == "known" {
					d.Skip()
				} else {
					d.Keep(&unknown)
				}
			}
			check(t, d, "")
			if want := `{"other":` + x.want + `,"more":` + x.want + `}`; string(unknown) != want {
				t.Errorf("Keep: %.80q, want %.80q", unknown, want)
			}
			members, err := AppendMembers([]byte("{"), []byte(`{"m":`+x.in+` }`), "known")
			if err != nil || string(CloseObject(members)) != `{"m":`+x.want+`}` {
				t.Errorf("AppendMembers: %.80q, %v", members, err)
			}
		})
	}
}

func TestRawMalformed(t *testing.T) {
	for _, in := range []string{``, ` `, `{`, `[1,]`, `"`, `tru`, `{"a":1}}`, `1 2`, "\"\n\"", "\x00", `{"a":1,}`, strings.Repeat("[", 600) + strings.Repeat("]", 600)} {
		if got, err := AppendRaw([]byte("x"), []byte(in)); err == nil || string(got) != "x" {
			t.Errorf("AppendRaw %.40q: %.40q, %v", in, got, err)
		}
		if got, err := AppendRawObject([]byte("x"), []byte(in)); err == nil || string(got) != "x" {
			t.Errorf("AppendRawObject %.40q: %.40q, %v", in, got, err)
		}
		if _, err := AppendMembers(nil, []byte(in)); err == nil {
			t.Errorf("AppendMembers %.40q is accepted", in)
		}
		if Valid([]byte(in)) == nil {
			t.Errorf("%.40q is valid", in)
		}
		for how, d := range reading(in) {
			got := d.RawCopy()
			if d.Finish() == nil {
				t.Errorf("%s: RawCopy %.40q: %.40q", how, in, got)
			}
			if d.SyntaxErr() != nil && d.RawCopy() != nil {
				t.Errorf("%s: RawCopy of %.40q goes on", how, in)
			}
		}
	}
	if _, err := AppendRaw(nil, nil); !errors.Is(err, ErrNoValue) {
		t.Errorf("nothing at all: %v", err)
	}
	for _, in := range []string{`[]`, `"{}"`, `null`, ` 1`} {
		if _, err := AppendRawObject(nil, []byte(in)); err == nil {
			t.Errorf("AppendRawObject takes %s", in)
		}
		if _, err := AppendMembers(nil, []byte(in)); err == nil {
			t.Errorf("AppendMembers takes %s", in)
		}
	}
	for _, in := range []string{`{"a":1,"known":2}`, `{"\u006bnown":2}`} {
		_, err := AppendMembers(nil, []byte(in), "known")
		if err == nil || err.Error() != `unknown members hold the known member "known"` {
			t.Errorf("a member that would appear twice: %v", err)
		}
	}
}

func TestKeepMalformed(t *testing.T) {
	d := reading(`{"a":1,"b":tru}`)["copied"]
	var unknown json.RawMessage
	for _, ok := d.FirstKey(); ok; _, ok = d.NextKey() {
		d.Keep(&unknown)
	}
	if string(unknown) != `{"a":1}` {
		t.Errorf("%s", unknown)
	}
	check(t, d, "invalid JSON at byte 11: unknown literal")
}

func TestMeta(t *testing.T) {
	for _, x := range []struct{ in, meta, patch, object, objectErr string }{
		{`{}`, `{}`, `{}`, `{}`, ""},
		{"{\"a\":[1,\n2.50]}", `{"a":[1, 2.50]}`, `{"a":[1, 2.50]}`, `{"a":[1, 2.50]}`, ""},
		{`null`, "", "null", "", ""}, // S75, S78
		{`"x"`, "", "", "", "expected an object"},
		{`[{}]`, "", "", "", "expected an object"},
		{`1`, "", "", "", "expected an object"},
		{`true`, "", "", "", "expected an object"},
	} {
		for _, d := range reading(" " + x.in + " ") {
			if got := d.Meta(); string(got) != x.meta || (got == nil) != (x.meta == "") {
				t.Errorf("Meta of %s: %s", x.in, got)
			}
			check(t, d, "")
		}
		for _, d := range reading(" " + x.in + " ") {
			if got := d.MetaPatch(); string(got) != x.patch || (got == nil) != (x.patch == "") {
				t.Errorf("MetaPatch of %s: %s", x.in, got)
			}
			check(t, d, "")
		}
		for _, d := range reading(" " + x.in + " ") {
			if got := d.RawObject(); string(got) != x.object || (got == nil) != (x.object == "") {
				t.Errorf("RawObject of %s: %s", x.in, got)
			}
			check(t, d, x.objectErr)
		}
	}
}

func TestRest(t *testing.T) {
	for _, x := range []struct{ in, want, err string }{
		{`{}`, `{}`, ""},
		{`{"a":1,"b":2}`, `{}`, ""},
		{`{"x":1, "a":2 , "y" : "\u0041","\u0062":3}`, `{"x":1,"y" : "\u0041"}`, ""},
		{`{"type":"t","x":1,"x":2}`, `{"type":"t","x":1,"x":2}`, ""},
		{`{"type":"t","x":1,"type":"u"}`, `{"type":"t","x":1}`, "type: duplicate member"},
		{`[]`, `{}`, "expected an object"},
	} {
		for _, d := range reading(x.in) {
			if got := d.Rest("type", "a", "b"); string(got) != x.want {
				t.Errorf("%s: %s, want %s", x.in, got, x.want)
			}
			check(t, d, x.err)
		}
	}
}

func TestRawVariant(t *testing.T) {
	long := strings.Repeat("x", 2*aliasMin)
	for _, x := range []struct{ in, want, err string }{
		{`{}`, `{}`, ""},
		{`{"type":"t" , "x":{"type":1,"type":2}}`, `{"type":"t" , "x":{"type":1,"type":2}}`, ""},
		{"{\"x\":1.50,\n\"type\":\"t\",\"x\":\"\xff\"}", "{\"x\":1.50, \"type\":\"t\",\"x\":\"\uFFFD\"}", ""},
		{`{"type":"t","x":"` + long + `"}`, `{"type":"t","x":"` + long + `"}`, ""},
		{`{"type":"t","\u0074ype":"t"}`, `{"type":"t","\u0074ype":"t"}`, `"\\u0074ype": duplicate member`},
		{`{"type":"t"`, "", "invalid JSON at byte 11: expected a comma or }"},
	} {
		for how, d := range reading(x.in) {
			d.Open("type")
			if got := d.RawVariant("type"); string(got) != x.want {
				t.Errorf("%s %.60s: %.60s, want %.60s", how, x.in, got, x.want)
			}
			check(t, d, x.err)
		}
	}
}

func TestMarker(t *testing.T) {
	for _, x := range []struct{ in, meta, unknown, out, err string }{
		{`{}`, "", "", `{}`, ""},
		{`{"_meta":{"a":1}}`, `{"a":1}`, "", `{"_meta":{"a":1}}`, ""},
		{`{"x":1,"_meta":null,"y":[ ]}`, "", `{"x":1,"y":[ ]}`, `{"x":1,"y":[ ]}`, ""},
		{`{"_meta":{},"x":1}`, `{}`, `{"x":1}`, `{"_meta":{},"x":1}`, ""},
		{`{"_meta":{},"_meta":{"a":1}}`, `{}`, "", `{"_meta":{}}`, "_meta: duplicate member"},
		{`true`, "", "", `{}`, "expected an object"},
	} {
		var meta, unknown json.RawMessage
		d := reading(x.in)["copied"]
		d.Marker(&meta, &unknown)
		check(t, d, x.err)
		if string(meta) != x.meta || string(unknown) != x.unknown {
			t.Errorf("%s: %s and %s", x.in, meta, unknown)
		}
		if out, err := AppendMarker(nil, meta, unknown); err != nil || string(out) != x.out {
			t.Errorf("%s became %s, %v", x.in, out, err)
		}
	}
	var unknown json.RawMessage
	d := reading(`{"_meta":{"a":1}}`)["copied"]
	d.Marker(nil, &unknown)
	check(t, d, "")
	if string(unknown) != `{"_meta":{"a":1}}` {
		t.Errorf("an object without _meta: %s", unknown)
	}
	if out, err := AppendBare(nil, unknown); err != nil || string(out) != `{"_meta":{"a":1}}` {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := AppendBare(nil, nil); err != nil || string(out) != `{}` {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := AppendBare(nil, json.RawMessage(`[]`)); err == nil {
		t.Errorf("a list of members: %s", out)
	}
	for _, bad := range [][2]string{{`[]`, ""}, {`null`, ""}, {"", `{"_meta":{}}`}, {"", `[1]`}, {"", `{`}} {
		if out, err := AppendMarker(nil, json.RawMessage(bad[0]), json.RawMessage(bad[1])); err == nil {
			t.Errorf("%q is accepted: %s", bad, out)
		}
	}
	_, err := AppendMarker(nil, json.RawMessage(`7`), nil)
	if e, ok := errors.AsType[*EncodeError](err); !ok || e.Path != "_meta" || !errors.Is(err, e.Err) {
		t.Errorf("the error does not name the member: %v", err)
	}
}

func TestFormValue(t *testing.T) {
	const reason = "expected a string, a number, a boolean or a list of strings"
	long := strings.Repeat(`\"`, aliasMin)
	for _, x := range []struct{ in, want, err string }{
		{`"a\u0041"`, `"a\u0041"`, ""}, {`1.50`, `1.50`, ""}, {`-0`, `-0`, ""}, {`true`, `true`, ""}, {`false`, `false`, ""},
		{`[]`, `[]`, ""}, {`["a", "b"]`, `["a", "b"]`, ""}, {`["a\nb","\\"]`, `["a\nb","\\"]`, ""},
		{`["` + long + `","x"]`, `["` + long + `","x"]`, ""},
		{`null`, "", reason}, {`{}`, "", reason}, {`{"a":1}`, "", reason},
		{`["a",1]`, `["a",1]`, "[1]: expected a string"}, {`[[]]`, `[[]]`, "[0]: expected a string"},
		{`1e999`, `1e999`, "number out of range"},
		{`[`, "", "invalid JSON at byte 1: expected a value"}, {`-`, "", "invalid JSON at byte 0: malformed number"},
		{`tru`, "", "invalid JSON at byte 0: unknown literal"}, {``, "", "invalid JSON at byte 0: expected a value"},
	} {
		for how, d := range reading(x.in) {
			var got json.RawMessage
			FormItem(&got, d)
			if string(got) != x.want {
				t.Errorf("%s %.40s: %.40s", how, x.in, got)
			}
			check(t, d, x.err)
		}
	}
}

// TestRawNeverBreaksAFrame tries every byte in every place of some documents.
func TestRawNeverBreaksAFrame(t *testing.T) {
	for _, doc := range []string{`{"a":[1,"b"],"c":null}`, `["\u0041\n",-1.5e3,true]`} {
		for i := range doc {
			for c := range 256 {
				in := doc[:i] + string([]byte{byte(c)}) + doc[i:]
				for _, d := range reading(in) {
					got := d.RawCopy()
					if d.Finish() != nil {
						continue
					}
					if strings.ContainsAny(string(got), "\n\r") || !utf8.Valid(got) || !json.Valid(got) {
						t.Fatalf("%q became %q", in, got)
					}
				}
			}
		}
	}
}
