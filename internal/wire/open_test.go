package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSeek(t *testing.T) {
	d := reading(` {"type":"x","a":1} `)["copied"]
	at := d.At()
	if at != 1 || d.Pos() != 1 {
		t.Fatalf("At %d, Pos %d", at, d.Pos())
	}
	for range 3 {
		if tag := d.Open("type"); string(tag) != "x" || d.At() != at || d.Pos() != at {
			t.Fatalf("%q at %d", tag, d.At())
		}
		if diff := cmp.Diff([]string{"a"}, keys(d)); diff != "" {
			t.Fatal(diff)
		}
		d.Seek(at)
	}
	d.Open("type")
	d.Seek(at)
	if diff := cmp.Diff([]string{"type", "a"}, keys(d)); diff != "" {
		t.Error("Seek did not take back what Open consumed:", diff)
	}
	check(t, d, "")
	d = reading(`[1`)["copied"]
	d.Skip()
	d.Seek(0)
	if d.Pos() != 2 {
		t.Error("Seek revives malformed input")
	}
	check(t, d, "invalid JSON at byte 2: expected a comma or ]")
}

func TestOpen(t *testing.T) {
	for _, x := range []struct {
		in, tag string
		none    bool
		rest    []string // the keys read afterwards
		err     string
	}{
		{`{"type":"text","x":1}`, "text", false, []string{"x"}, ""},
		{`{"type":"text"}`, "text", false, []string{}, ""},
		{`{"type":"","x":1}`, "", false, []string{"x"}, ""},
		{`{"type":"te\u0078t","x":1}`, "text", false, []string{"x"}, ""},
		{"{\"type\":\"\xff\"}", "\uFFFD", false, []string{}, ""},
		{`{"type": "text","x":1}`, "text", false, []string{"type", "x"}, ""},
		{" {\n\"type\" :\t\"text\" , \"x\":1}", "text", false, []string{"type", "x"}, ""},
		{`{"x":1,"type":"text"}`, "text", false, []string{"x", "type"}, ""},
		{`{"x":"}]{[\"","y":[{"type":"no"},[]],"z":{"type":"no"},"type":"text"}`, "text", false, []string{"x", "y", "z", "type"}, ""},
		{`{"typ":"a","types":"b","TYPE":"c","type":"d"}`, "d", false, []string{"typ", "types", "TYPE", "type"}, ""},
		{`{"\u0074ype":"text","x":1}`, "text", false, []string{"type", "x"}, ""},
		{`{"x\u0000yz":1,"typ\u0065":"text"}`, "text", false, []string{"x\x00yz", "type"}, ""},
		{`{"x":1,"type":"\ud83d\ude00"}`, "😀", false, []string{"x", "type"}, ""},
		{`{"type":"a","type":"b"}`, "a", false, []string{"type"}, ""},
		{`{"x":1,"type":"a","type":"b"}`, "a", false, []string{"x", "type", "type"}, ""},
		{`{}`, "", true, []string{}, ""},
		{`{"x":1}`, "", true, []string{"x"}, ""},
		{`{"x":{"type":"a"}}`, "", true, []string{"x"}, ""},
		{`{"x":"type"}`, "", true, []string{"x"}, ""},
		{`{"type":1}`, "", true, []string{"type"}, ""},
		{`{"type":null,"type":"a"}`, "", true, []string{"type", "type"}, ""},
		{`{"x":2,"type":["a"]}`, "", true, []string{"x", "type"}, ""},
		{`[{"type":"a"}]`, "", true, []string{}, "expected an object"},
		{`"type"`, "", true, []string{}, "expected an object"},
		{`null`, "", true, []string{}, "expected an object"},
		{``, "", true, []string{}, "invalid JSON at byte 0: expected a value"},
		{`{"type":"a`, "", true, []string{}, "invalid JSON at byte 8: malformed string"},
		{`{"x":1,"type":"a`, "", true, []string{}, "invalid JSON at byte 14: malformed string"},
		{`{"x":1 "type":"a"}`, "", true, []string{"x"}, "invalid JSON at byte 7: expected a comma or }"},
		{`{"x":tru,"type":"a"}`, "a", false, []string{"x"}, "invalid JSON at byte 5: unknown literal"},
		{`{"type":"a"`, "a", false, []string{}, "invalid JSON at byte 11: expected a comma or }"},
		{`{"type":"a" "x":1}`, "a", false, []string{}, "invalid JSON at byte 12: expected a comma or }"},
		{`{"x"`, "", true, []string{}, "invalid JSON at byte 4: expected a colon"},
		{`{"x":`, "", true, []string{"x"}, "invalid JSON at byte 5: expected a value"},
		{`{"x":[1`, "", true, []string{"x"}, "invalid JSON at byte 7: expected a comma or ]"},
		{`{"x":"`, "", true, []string{"x"}, "invalid JSON at byte 5: malformed string"},
		{`{"x`, "", true, []string{}, "invalid JSON at byte 1: malformed string"},
	} {
		for how, d := range reading(x.in) {
			tag := d.Open("type")
			if string(tag) != x.tag || (tag == nil) != x.none {
				t.Errorf("%s %s: %q, nil %t", how, x.in, tag, tag == nil)
			}
			if diff := cmp.Diff(x.rest, keys(d)); diff != "" {
				t.Errorf("%s %s: %s", how, x.in, diff)
			}
			check(t, d, x.err)
		}
	}
}

// TestOpenTakenBack: whatever reads the object otherwise than by its keys reads
// all of it.
func TestOpenTakenBack(t *testing.T) {
	const doc = `{"type":"a","x":[1]}`
	for name, verb := range map[string]func(*Decoder) string{
		"Raw":     func(d *Decoder) string { return string(d.Raw()) },
		"RawCopy": func(d *Decoder) string { return string(d.RawCopy()) },
		"Reopen":  func(d *Decoder) string { d.Reopen(); return string(d.Raw()) },
		"Kind":    func(d *Decoder) string { return string(d.Kind("x")) + string(d.Raw()[1:]) },
		"Open":    func(d *Decoder) string { d.Open("x"); return string(d.Raw()) },
	} {
		d := reading(`[` + doc + `]`)["copied"]
		d.FirstElem()
		d.Open("type")
		if d.Opened(4) != 4 {
			t.Errorf("%s: Opened is not set", name)
		}
		want := doc
		if name == "Kind" {
			want = "[" + doc[1:]
		}
		if got := verb(d); got != want {
			t.Errorf("%s: %s", name, got)
		}
		if d.Opened(4) != 0 {
			t.Errorf("%s: Opened is still set", name)
		}
		if d.NextElem() {
			t.Errorf("%s: another item", name)
		}
		check(t, d, "")
	}
	d := reading(doc)["copied"]
	d.Open("type")
	d.Mismatch("of a test")
	check(t, d, "of a test")
}

func TestTag(t *testing.T) {
	for _, x := range []struct{ in, err string }{
		{`"a"`, ""}, {` "\u0061" `, ""},
		{`"b"`, "expected the variant's own tag"}, {`"A"`, "expected the variant's own tag"}, {`1`, "expected the variant's own tag"},
		{`null`, "expected the variant's own tag"}, {`["a"]`, "expected the variant's own tag"},
	} {
		d := reading(x.in)["owned"]
		d.Tag("a")
		check(t, d, x.err)
	}
}

func TestKind(t *testing.T) {
	for _, x := range []struct {
		in   string
		want byte
	}{
		{`{"k":"a"}`, '"'}, {`{"x":[1,2],"k":5}`, '5'}, {"{ \"x\" : {} , \"k\" :\n null}", 'n'}, {`{"k":{}}`, '{'}, {`{"\u006b":true}`, 't'},
		{`{}`, 0}, {`{"x":{"k":1}}`, 0}, {`[]`, 0}, {`"k"`, 0}, {``, 0}, {`{"k":`, 0}, {`{"k"`, 0}, {`{"k" 1}`, 0}, {`{"x":1`, 0}, {`{"x":1 "k":1}`, 0}, {`{k:1}`, 0}, {`{"x":"`, 0}, {`{"k`, 0},
	} {
		d := reading(x.in)["copied"]
		if got := d.Kind("k"); got != x.want || d.Pos() != 0 {
			t.Errorf("%s: %q at %d", x.in, got, d.Pos())
		}
		d = reading("\n[ " + x.in)["copied"]
		if got := d.ElemKind("k"); got != x.want {
			t.Errorf("first item %s: %q", x.in, got)
		}
		if d.Pos() != 1 {
			t.Errorf("ElemKind moved the cursor to %d", d.Pos())
		}
	}
	for _, in := range []string{``, `{}`, `[`, `[]`, `[1]`, `null`} {
		if got := reading(in)["copied"].ElemKind("k"); got != 0 {
			t.Errorf("%s: %q", in, got)
		}
	}
}

func TestMember(t *testing.T) {
	for _, x := range []struct {
		in, want string
		rest     []string
	}{
		{`{"k":"a","x":1}`, "a", []string{"k", "x"}},
		{`{"type":"t","x":[{"k":"no"}],"\u006b":"\u0061"}`, "a", []string{"x", "k"}},
		{`{"type":"t","k":5}`, "", []string{"k"}},
		{`{"x":1,"type":"t"}`, "", []string{"x", "type"}},
		{`{}`, "", []string{}},
	} {
		for _, d := range reading(x.in) {
			d.Open("type")
			at := d.At()
			if got := d.Member("k"); got != x.want || d.At() != at {
				t.Errorf("%s: %q at %d", x.in, got, d.At())
			}
			if diff := cmp.Diff(x.rest, keys(d)); diff != "" {
				t.Errorf("%s: %s", x.in, diff)
			}
			check(t, d, "")
		}
	}
	d := reading(`5`)["copied"]
	if got := d.Member("k"); got != "" {
		t.Errorf("of a number: %q", got)
	}
	d.Skip()
	check(t, d, "")
	d = reading(`{"type":"t","k":"\ud`)["copied"]
	d.Open("type")
	d.Member("k")
	d.Skip()
	if d.SyntaxErr() == nil {
		t.Error("malformed text is accepted")
	}
}
