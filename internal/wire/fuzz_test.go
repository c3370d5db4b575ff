package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// nesting returns the depth of a valid document.
func nesting(data []byte) int {
	depth, deepest, text := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// tree reads a whole value with the verbs for typed values, as encoding/json
// gives it.
func tree(d *Decoder) any {
	switch d.Peek() {
	case '{':
		m := map[string]any{}
		for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
			name := string(k)
			m[name] = tree(d)
		}
		return m
	case '[':
		s := []any{}
		for ok := d.FirstElem(); ok; ok = d.NextElem() {
			s = append(s, tree(d))
		}
		return s
	case '"':
		return d.Str()
	case 't', 'f':
		return d.Bool()
	case 'n':
		d.Null()
		return nil
	}
	return json.Number(d.Raw())
}

// FuzzDecoder holds the decoder to encoding/json on what is JSON, and to ending
// without a panic on what is not.
func FuzzDecoder(f *testing.F) {
	for _, s := range []string{`{"type":"text","a":[1,-2.5e3,true,null]}`, `{"x":{},"type":"é\ud83d\ude00\n"}`, `[[],{"":""}]`, "[1,\n2]", `{"a":1,"a":2}`, "\"\xff\"", `["a","\u0000"]`, `1e400`, "\x00", `{"type":"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		valid := json.Valid(data)
		if valid && nesting(data) > MaxDepth {
			valid = false // the one way in which this package is stricter
		}
		if err := Valid(data); (err == nil) != valid {
			t.Fatalf("Valid: %v, encoding/json says %t", err, json.Valid(data))
		}
		for _, owned := range []bool{false, true} {
			frame := bytes.Clone(data)
			var d Decoder
			d.Reset(frame, owned)
			got := tree(&d)
			err := d.Finish()
			if (err == nil) != valid {
				t.Fatalf("owned %t: %v, encoding/json says %t", owned, err, json.Valid(data))
			}
			if !owned && !bytes.Equal(frame, data) {
				t.Fatal("decoding changed an input that it does not own")
			}
			if !valid {
				continue
			}
			var want any
			std := json.NewDecoder(bytes.NewReader(data))
			std.UseNumber()
			if err := std.Decode(&want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("owned %t: %#v, want %#v", owned, got, want)
			}
		}
		// Every verb on every input: it ends, it consumes exactly one value of
		// valid input whatever its kind, and a problem is of the right class.
		for name, verb := range map[string]func(*Decoder){
			"Skip": (*Decoder).Skip, "Null": func(d *Decoder) {
				if !d.Null() {
					d.Skip()
				}
			},
			"Str": func(d *Decoder) { d.Str() }, "ID": func(d *Decoder) { d.ID() }, "Bool": func(d *Decoder) { d.Bool() },
			"Int64": func(d *Decoder) { d.Int64() }, "Uint16": func(d *Decoder) { d.Uint16() }, "Float64": func(d *Decoder) { d.Float64() },
			"Meta": func(d *Decoder) { d.Meta() }, "RawObject": func(d *Decoder) { d.RawObject() }, "FormValue": func(d *Decoder) { d.FormValue() },
			"Rest": func(d *Decoder) { d.Rest("type", "a") }, "RawVariant": func(d *Decoder) { d.Open("type"); d.RawVariant("type") }, "Member": func(d *Decoder) { d.Open("type"); d.Member("a"); keys(d) },
			"Tag": func(d *Decoder) { d.Tag("text") }, "Mismatch": func(d *Decoder) { d.Mismatch("x") },
			"Open": func(d *Decoder) { d.Open("type"); keys(d) }, "Reopen": func(d *Decoder) { d.Open("type"); d.Raw() },
			"Kind": func(d *Decoder) { d.Kind("a"); d.ElemKind("a"); d.Skip() }, "message": new(message).DecodeJSON,
			"SliceSkip": func(d *Decoder) { SliceSkip(d, String[string]) }, "Map": func(d *Decoder) { Map(d, String[string]) },
		} {
			for _, owned := range []bool{false, true} {
				var d Decoder
				d.Reset(bytes.Clone(data), owned)
				verb(&d)
				err := d.Finish()
				if _, syntax := err.(*SyntaxError); syntax == valid {
					t.Fatalf("%s, owned %t: %v, encoding/json says %t", name, owned, err, valid)
				}
				if p := d.Pos(); p != len(data) {
					t.Fatalf("%s stops at %d of %d", name, p, len(data))
				}
				d.FieldErr()
			}
		}
		out, err := AppendRaw(nil, data)
		if (err == nil) != valid {
			t.Fatalf("AppendRaw: %v", err)
		}
		if valid && (!json.Valid(out) || !utf8.Valid(out) || bytes.ContainsAny(out, "\r\n")) {
			t.Fatalf("AppendRaw made %q", out)
		}
	})
}

// FuzzString holds the reading of one quoted text to encoding/json.
func FuzzString(f *testing.F) {
	for _, s := range []string{``, `plain`, `\"\\\/\b\f\n\r\t`, `\u0041\ud83d\ude00`, `\ud83d`, `\ud83d\u0041`, "\xff\x80", "a\nb", `\`, `\u12`, strings.Repeat("12345678", 5) + `\n`,
		strings.Repeat(`code;\n\t`, 40), strings.Repeat(`1234567\"`, 20) + `\u0041` + strings.Repeat(`\\x`, 60)} {
		f.Add([]byte(s), uint16(0))
		f.Add([]byte(s), uint16(aliasMin))
	}
	f.Fuzz(func(t *testing.T, body []byte, pad uint16) {
		text := append([]byte{'"'}, strings.Repeat("x", int(pad)%(2*aliasMin))...)
		text = append(append(text, body...), '"')
		var want string
		wantErr := json.Unmarshal(text, &want)
		for how, d := range reading(string(text)) {
			got := d.Str()
			if err := d.Finish(); (err == nil) != (wantErr == nil) {
				t.Fatalf("%s: %v, encoding/json says %v", how, err, wantErr)
			}
			if wantErr != nil {
				continue
			}
			if got != want {
				t.Fatalf("%s: %q, want %q", how, got, want)
			}
			lower := strings.ToLower(string(text))
			if n := strings.Count(got, replacement) - strings.Count(lower, `\ufffd`) - strings.Count(string(text), replacement); d.Replaced() != n && !strings.Contains(lower, `\\ufffd`) {
				t.Fatalf("%s: %d replaced, want %d", how, d.Replaced(), n)
			}
		}
		for _, read := range []func(*Decoder) string{(*Decoder).ID, func(d *Decoder) string { return string(d.Bytes()) }} {
			for how, d := range reading(string(text)) {
				got := read(d)
				if err := d.Finish(); (err == nil) != (wantErr == nil) || err == nil && got != want {
					t.Fatalf("%s: %q, %v, want %q, %v", how, got, err, want, wantErr)
				}
			}
		}
	})
}

// FuzzAppendString: any Go string survives the wire, but for invalid UTF-8.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\\n\r\t\b\f\x00\x1f\x7f", "é€😀\u2028", "\xff", "1234567\"", "12345678\x01", strings.Repeat("\"", 40), strings.Repeat("code;\n\t", 40), strings.Repeat("1234567\x1b", 40)} {
		f.Add(s, uint8(0))
		f.Add(s, uint8(20))
	}
	f.Fuzz(func(t *testing.T, s string, room uint8) {
		dst := append(make([]byte, 0, 1+int(room)), ' ')
		text := AppendString(dst, s)
		if text[0] != ' ' || !utf8.Valid(text) || bytes.ContainsAny(text[1:], "\n\r") {
			t.Fatalf("%q", text)
		}
		var back string
		if err := json.Unmarshal(text, &back); err != nil || back != each(s) {
			t.Fatalf("%q became %s, which reads as %q, %v", s, text, back, err)
		}
		var d Decoder
		d.Reset(text, true)
		if got := d.Str(); got != each(s) || d.Finish() != nil || d.Replaced() != 0 {
			t.Fatalf("%q became %s, which reads as %q, %v", s, text, got, d.Finish())
		}
	})
}

// FuzzPath: the path of any place in any input is found in finite time, holds
// no control bytes and stays bounded.
func FuzzPath(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"x\ny"}],"":2}`, `[[[`, `{"a":`, `{"a" 1}`, "{\"\xff\n\":[", `]`, `{"a":"\"}`, `[1,,2]`, `[ ]`, `[}`} {
		f.Add([]byte(s), 3)
		f.Add([]byte(s), len(s))
		f.Add([]byte(s), -1)
	}
	f.Fuzz(func(t *testing.T, data []byte, target int) {
		for _, owned := range []bool{false, true} {
			var d Decoder
			d.Reset(bytes.Clone(data), owned)
			readAll(&d)
			p := d.path(target)
			for i := range p {
				if p[i] < ' ' || p[i] >= 0x7f {
					t.Fatalf("%q", p)
				}
			}
			if len(p) > len(data)*12+2 {
				t.Fatalf("%d bytes of path for %d of input", len(p), len(data))
			}
		}
	})
}
