package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// keys reads the object at the cursor and returns its keys, skipping values.
func keys(d *Decoder) []string {
	out := []string{}
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		out = append(out, string(k))
		d.Skip()
	}
	return out
}

func TestObjects(t *testing.T) {
	long := strings.Repeat("k", 300)
	for _, x := range []struct {
		in   string
		want []string
		err  string
	}{
		{`{}`, []string{}, ""},
		{" {\n} ", []string{}, ""},
		{`{"a":1}`, []string{"a"}, ""},
		{`{"a":1,"b":[{}],"c":{"d":"}"}}`, []string{"a", "b", "c"}, ""},
		{"\t{ \"a\" :\r\n1 , \"b\"\n: 2 }\n", []string{"a", "b"}, ""},
		{`{"":1}`, []string{""}, ""},
		{`{"1234567":1,"12345678":2,"123456789":3,"123456789012345":4,"1234567890123456":5,"12345678901234567":6,"` + long + `":7}`,
			[]string{"1234567", "12345678", "123456789", "123456789012345", "1234567890123456", "12345678901234567", long}, ""},
		{`{"\u0061":1,"\"q\"":2,"a\/b":3}                    `, []string{"a", `"q"`, "a/b"}, ""},
		{"{\"é\":1,\"\xff\":2,\"\\ud800\":3}                    ", []string{"é", "\uFFFD", "\uFFFD"}, ""},
		{`{"a":1,"a":2}`, []string{"a", "a"}, ""}, // unknown members may repeat; S75 keeps them
		{`[]`, []string{}, "expected an object"},
		{`"a"`, []string{}, "expected an object"},
		{`null`, []string{}, "expected an object"},
		{`{`, []string{}, "invalid JSON at byte 1: expected a member name"},
		{`{"a"`, []string{}, "invalid JSON at byte 4: expected a colon"},
		{`{"a"}`, []string{}, "invalid JSON at byte 4: expected a colon"},
		{`{"a" 1}`, []string{}, "invalid JSON at byte 5: expected a colon"},
		{`{"a":}`, []string{"a"}, "invalid JSON at byte 5: expected a value"},
		{`{"a":1`, []string{"a"}, "invalid JSON at byte 6: expected a comma or }"},
		{`{"a":1]`, []string{"a"}, "invalid JSON at byte 6: expected a comma or }"},
		{`{"a":1 "b":2}`, []string{"a"}, "invalid JSON at byte 7: expected a comma or }"},
		{`{"a":1,}`, []string{"a"}, "invalid JSON at byte 7: expected a member name"},
		{`{,"a":1}`, []string{}, "invalid JSON at byte 1: expected a member name"},
		{`{a:1}`, []string{}, "invalid JSON at byte 1: expected a member name"},
		{`{1:1}`, []string{}, "invalid JSON at byte 1: expected a member name"},
		{`{"a":1}}`, []string{"a"}, "invalid JSON at byte 7: unexpected data after the value"},
		{`{"a":1} {}`, []string{"a"}, "invalid JSON at byte 8: unexpected data after the value"},
		{``, []string{}, "invalid JSON at byte 0: expected a value"},
		{` `, []string{}, "invalid JSON at byte 1: expected a value"},
	} {
		for how, d := range reading(x.in) {
			if diff := cmp.Diff(x.want, keys(d)); diff != "" {
				t.Errorf("%s %s: %s", how, x.in, diff)
			}
			check(t, d, x.err)
		}
	}
}

func TestArrays(t *testing.T) {
	for _, x := range []struct {
		in   string
		want int
		err  string
	}{
		{`[]`, 0, ""}, {"[ \n ]", 0, ""}, {`[1]`, 1, ""}, {" [ 1 ,\n[2,3], {\"a\":[]} ] ", 3, ""},
		{`{}`, 0, "expected an array"}, {`"[]"`, 0, "expected an array"},
		{`[`, 1, "invalid JSON at byte 1: expected a value"},
		{`[1`, 1, "invalid JSON at byte 2: expected a comma or ]"},
		{`[1}`, 1, "invalid JSON at byte 2: expected a comma or ]"},
		{`[1,]`, 2, "invalid JSON at byte 3: expected a value"},
		{`[,1]`, 1, "invalid JSON at byte 1: expected a value"},
		{`[1 2]`, 1, "invalid JSON at byte 3: expected a comma or ]"},
		{`[1],`, 1, "invalid JSON at byte 3: unexpected data after the value"},
		{`[1:2]`, 1, "invalid JSON at byte 2: expected a comma or ]"},
	} {
		d := reading(x.in)["copied"]
		n := 0
		for ok := d.FirstElem(); ok; ok = d.NextElem() {
			n++
			d.Skip()
		}
		if n != x.want {
			t.Errorf("%s: %d items, want %d", x.in, n, x.want)
		}
		check(t, d, x.err)
	}
}

func TestLiterals(t *testing.T) {
	for _, x := range []struct {
		in         string
		null, flag bool
		err        string
	}{
		{"null", true, false, ""}, {" null ", true, false, ""}, {"true", false, true, ""}, {"\nfalse\t", false, false, ""},
		{"nul", false, false, "invalid JSON at byte 0: unknown literal"}, {"nulL", false, false, "invalid JSON at byte 0: unknown literal"},
		{"nullx", true, false, "invalid JSON at byte 4: unexpected data after the value"},
		{"tru", false, false, "invalid JSON at byte 0: unknown literal"}, {"fals", false, false, "invalid JSON at byte 0: unknown literal"},
		{"truee", false, true, "invalid JSON at byte 4: unexpected data after the value"},
		{"0", false, false, "expected a boolean"}, {`"true"`, false, false, "expected a boolean"}, {"[true]", false, false, "expected a boolean"},
		{"True", false, false, "invalid JSON at byte 0: expected a value"},
	} {
		d := reading(x.in)["copied"]
		if got := d.Null(); got != x.null {
			t.Errorf("%s: Null is %t", x.in, got)
		} else if !got {
			if got := d.Bool(); got != x.flag {
				t.Errorf("%s: Bool is %t", x.in, got)
			}
		}
		check(t, d, x.err)
		d = reading(x.in)["copied"]
		d.Skip()
		if _, syntax := d.Finish().(*SyntaxError); syntax != strings.Contains(x.err, "invalid JSON") {
			t.Errorf("%s: Skip says %v", x.in, d.Finish())
		}
	}
}

// TestWhiteSpace: the four bytes of the grammar, everywhere, and nothing else.
func TestWhiteSpace(t *testing.T) {
	tokens := []string{"", "{", `"a"`, ":", "[", "1", ",", "true", ",", "null", ",", `""`, "]", ",", `"b"`, ":", "{", "}", "}", ""}
	for c := range 256 {
		sep := string([]byte{byte(c)})
		legal := strings.ContainsAny(sep, " \t\r\n") && c < 0x80
		for i := 1; i < len(tokens); i++ {
			for _, doc := range []string{strings.Join(tokens[:i], "") + sep + strings.Join(tokens[i:], ""), strings.Join(tokens[:i], " ") + sep + strings.Join(tokens[i:], " ")} {
				if (c >= '0' && c <= '9' || strings.ContainsAny(sep, "-.eE")) && json.Valid([]byte(doc)) {
					continue // it joins the number
				}
				if err := Valid([]byte(doc)); (err == nil) != legal {
					t.Fatalf("byte %#x in %q: %v", c, doc, err)
				}
			}
		}
	}
	if err := Valid([]byte("\xef\xbb\xbf{}")); err == nil {
		t.Error("a byte order mark is accepted")
	}
}

// TestTruncation: no prefix of a document is a document, whichever verb meets
// its end, and decoding ends.
func TestTruncation(t *testing.T) {
	doc := `{"type":"text","n":-12.5e+3,"list":[true,false,null,"é\n\ud83d\ude00",{"deep":[[]]}],"_meta":{"k":"v"},"last":"x"}`
	for i := range doc {
		cut := doc[:i]
		if err := Valid([]byte(cut)); err == nil {
			t.Fatalf("%s is accepted", cut)
		}
		for how, d := range reading(cut) {
			var m message
			m.DecodeJSON(d)
			if _, ok := d.Finish().(*SyntaxError); !ok {
				t.Fatalf("%s: %s: %v", how, cut, d.Finish())
			}
			if d.Pos() != len(cut) {
				t.Fatalf("%s: the cursor stays at %d", cut, d.Pos())
			}
			d.FieldErr() // a path in malformed input must not panic either
		}
	}
}

// TestDepth: 512 levels and not one more, whoever opens them.
func TestDepth(t *testing.T) {
	nest := func(open, core, shut string, n int) string {
		return strings.Repeat(open, n) + core + strings.Repeat(shut, n)
	}
	for _, x := range []struct{ open, core, shut string }{
		{"[", "", "]"}, {"[", "1", "]"}, {`{"a":`, "{}", "}"}, {`{"type":"t","a":`, `{"type":"t"}`, "}"}, {"[ ", "[]", "]"},
	} {
		extra := strings.Count(x.core, "[") + strings.Count(x.core, "{")
		for _, n := range []int{MaxDepth - extra, MaxDepth - extra + 1, 2000} {
			doc := nest(x.open, x.core, x.shut, n)
			want := ""
			if n+extra > MaxDepth {
				want = "nested too deeply"
			}
			for name, verb := range map[string]func(*Decoder){
				"Skip": (*Decoder).Skip,
				"Raw":  func(d *Decoder) { d.Raw() },
				"typed": func(d *Decoder) {
					var in func(*int, *Decoder)
					in = func(_ *int, d *Decoder) {
						switch d.Peek() {
						case '[':
							Slice(d, in)
						case '{':
							Map(d, in)
						default:
							d.Int32()
						}
					}
					in(nil, d)
				},
				"Open": func(d *Decoder) {
					var in func()
					in = func() {
						if d.Open("type"); d.At() < len(doc) && doc[d.At()] != '{' {
							d.Skip()
							return
						}
						for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
							if string(k) == "a" {
								in()
							} else {
								d.Skip()
							}
						}
					}
					in()
				},
			} {
				d := reading(doc)["copied"]
				verb(d)
				got := ""
				if err, ok := d.Finish().(*SyntaxError); ok {
					got = err.Reason
				}
				if got != want {
					t.Errorf("%s of %d %s: %q, want %q", name, n, x.open, got, want)
				}
			}
		}
	}
}

// message is decoded the way the generator does it.
type message struct {
	Tag      string
	N        int64 // lenient
	List     []message
	Names    []string // lenient items
	Deep     *message
	Required string
	Meta     json.RawMessage
	Unknown  json.RawMessage
}

func (v *message) DecodeJSON(d *Decoder) {
	start := d.At()
	if d.At() < len(d.data) && d.data[d.At()] == '{' {
		v.Tag = string(d.Open("type"))
	}
	seen := d.Opened(1 << 0)
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		switch string(k) {
		case "type":
			if d.Once(&seen, 1<<0) {
				d.Tag(v.Tag)
			}
		case "n":
			if d.Once(&seen, 1<<1) {
				was := d.Try()
				v.N = d.Int64()
				if d.Failed(was) {
					v.N = -1
				}
			}
		case "list":
			if d.Once(&seen, 1<<2) {
				v.List = Slice(d, (*message).DecodeJSON)
			}
		case "names":
			if d.Once(&seen, 1<<3) {
				v.Names = SliceSkip(d, String[string])
			}
		case "deep":
			if d.Once(&seen, 1<<4) {
				v.Deep = new(message)
				v.Deep.DecodeJSON(d)
			}
		case "required":
			if d.Once(&seen, 1<<5) {
				v.Required = d.Str()
			}
		case "_meta":
			if d.Once(&seen, 1<<6) {
				v.Meta = d.Meta()
			}
		default:
			d.Keep(&v.Unknown)
		}
	}
	if v.Tag == "strict" && seen&(1<<5) == 0 {
		d.MissingOf(start, 1<<5&^seen, "type,n,list,names,deep,required")
	}
}

func TestUnmarshal(t *testing.T) {
	for _, x := range []struct {
		in   string
		want message
		err  string
	}{
		{`{}`, message{}, ""},
		{`{"type":"a","n":5,"names":["x","y"]}`, message{Tag: "a", N: 5, Names: []string{"x", "y"}}, ""},
		{`{"names":["x",1,"y",null,{"z":[]}],"n":7}`, message{N: 7, Names: []string{"x", "y"}}, ""}, // S69
		{`{"n":"five","names":[]}`, message{N: -1, Names: []string{}}, ""},                          // S67
		{`{"n":1.5}`, message{N: -1}, ""},                                               // S67
		{`{"names":null}`, message{Names: []string{}}, "names: expected an array"},      // S69
		{`{"type":"strict","required":"r"}`, message{Tag: "strict", Required: "r"}, ""}, //
		{`{"type":"strict"}`, message{Tag: "strict"}, "required: missing"},              // S71
		{`{"deep":{"deep":{"type":"strict","n":1}}}`, message{Deep: &message{Deep: &message{Tag: "strict", N: 1}}}, "deep.deep.required: missing"},
		{`{"_meta":{"a":1}}`, message{Meta: json.RawMessage(`{"a":1}`)}, ""}, // S75
		{`{"_meta":7}`, message{}, ""},                                       // S75
		{`{"_meta":null}`, message{}, ""},                                    // S75
		{`{"x":1,"y":{"a":[1, 2]},"n":1}`, message{N: 1, Unknown: json.RawMessage(`{"x":1,"y":{"a":[1, 2]}}`)}, ""},
		{`{"n":1,"n":2}`, message{N: 1}, "n: duplicate member"},
		{`{"n":1,"\u006e":2}`, message{N: 1}, `"\\u006e": duplicate member`},
		{`{"type":"a","type":"b"}`, message{Tag: "a"}, "type: duplicate member"},
		{`{"n":1,"type":"a","type":"a"}`, message{Tag: "a", N: 1}, "type: duplicate member"},
		{`{"N":1,"Type":"x"}`, message{Unknown: json.RawMessage(`{"N":1,"Type":"x"}`)}, ""}, // keys are compared exactly
		{`{"required":5,"n":3}`, message{N: 3}, "required: expected a string"},
		{`{"list":[{},{"list":[{},{},{"required":[]}]}]}`,
			message{List: []message{{}, {List: []message{{}, {}, {}}}}}, "list[1].list[2].required: expected a string"},
		{`[]`, message{}, "expected an object"},
	} {
		var got message
		err := Unmarshal([]byte(x.in), got.DecodeJSON)
		if diff := cmp.Diff(x.want, got); diff != "" {
			t.Errorf("%s: %s", x.in, diff)
		}
		if text := fmt.Sprint(err); text != x.err && (x.err != "" || err != nil) {
			t.Errorf("%s: %q, want %q", x.in, text, x.err)
		}
	}
}

func TestUnmarshalUnion(t *testing.T) {
	read := func(v *fmt.Stringer, d *Decoder) {
		n := json.Number(d.Raw())
		*v = n
	}
	if got, err := UnmarshalUnion([]byte(" 12 "), read); err != nil || got.String() != "12" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := UnmarshalUnion([]byte("12 13"), read); err == nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// TestTry: a mismatch counts for the innermost lenient field around it, and for
// the whole only where there is none.
func TestTry(t *testing.T) {
	d := reading(`[1,"a",2,"b",3]`)["copied"]
	step := func() { d.Int64() }
	d.FirstElem()
	outer := d.Try()
	step()
	inner := d.Try()
	d.NextElem()
	step() // fails inside both
	if !d.Bad() {
		t.Error("Bad is false right after a mismatch")
	}
	if !d.Failed(inner) {
		t.Error("the inner field did not notice")
	}
	if d.Bad() {
		t.Error("the inner failure leaked")
	}
	if d.Failed(outer) {
		t.Error("the outer field failed for what the inner one absorbed")
	}
	check2 := func(where, want string) {
		t.Helper()
		got := ""
		if e := d.FieldErr(); e != nil {
			got = e.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", where, got, want)
		}
	}
	check2("after lenient fields", "")
	d.NextElem()
	step()
	d.NextElem()
	step() // strict
	if !d.Bad() {
		t.Error("a strict mismatch is not Bad")
	}
	check2("strict", "[3]: expected an integer")
	was := d.Try()
	if d.Bad() {
		t.Error("a strict failure outside shows inside")
	}
	d.NextElem()
	step()
	if d.Failed(was) {
		t.Error("the field failed for what happened before it")
	}
	if !d.Bad() {
		t.Error("Failed forgot the failure outside")
	}
	d.NextElem()
	check(t, d, "[3]: expected an integer")
}

// TestFirstMismatch: of several problems the first is reported.
func TestFirstMismatch(t *testing.T) {
	d := reading(`[true,1,"x",false]`)["copied"]
	got := Slice(d, func(v *int64, d *Decoder) { *v = d.Int64() })
	// What follows is not collected any more.
	if diff := cmp.Diff([]int64{0}, got); diff != "" {
		t.Error(diff)
	}
	check(t, d, "[0]: expected an integer")
	// Broken JSON outranks a mismatch before it.
	d = reading(`[true,`)["copied"]
	Slice(d, func(v *int64, d *Decoder) { *v = d.Int64() })
	check(t, d, "invalid JSON at byte 6: expected a value")
}

func TestReset(t *testing.T) {
	var d Decoder
	check(t, &d, "")
	if d.Peek() != 0 || d.SyntaxErr() != nil || d.FieldErr() != nil {
		t.Error("the zero value is not an empty input")
	}
	d.Reset([]byte(`"\ud800`), true)
	d.Str()
	if d.SyntaxErr() == nil {
		t.Fatal("no error to forget")
	}
	d.Reset([]byte(`["\ud800",5]`), false)
	d.FirstElem()
	d.Mismatch("of a test")
	d.NextElem()
	d.Skip()
	if d.Replaced() != 0 {
		t.Error("skipped text counts as replaced")
	}
	check(t, &d, "invalid JSON at byte 11: unexpected data after the value")
	d.Reset([]byte(` "\udfff" `), false)
	if d.Pos() != 0 || d.Bad() || d.Replaced() != 0 || d.FieldErr() != nil || d.SyntaxErr() != nil {
		t.Error("Reset left something of the last input")
	}
	d.Str()
	if d.Replaced() != 1 {
		t.Errorf("%d replaced", d.Replaced())
	}
	check(t, &d, "")
}

// TestResetForgetsLargeBuffers: what one large message needed is not kept for
// the life of the connection.
func TestResetForgetsLargeBuffers(t *testing.T) {
	var d Decoder
	d.Reset([]byte(`"`+strings.Repeat(`\n`, 200_000)+`"`), false)
	d.Str()
	check(t, &d, "")
	if cap(d.scratch) < 200_000 {
		t.Fatalf("the scratch buffer has %d bytes: nothing to test", cap(d.scratch))
	}
	d.Reset([]byte(`[`+strings.Repeat(`"\n",`, 200_000)+`""]`), true)
	if n := cap(d.scratch); n > 64<<10 {
		t.Errorf("%d bytes of scratch are kept", n)
	}
	Slice(&d, String[string])
	check(t, &d, "")
	d.Reset(nil, false)
	if n := cap(d.moved); n > 4<<10 {
		t.Errorf("the places of %d strings are kept", n)
	}
}
