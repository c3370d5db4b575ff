package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSlices(t *testing.T) {
	item := func(v *int64, d *Decoder) { *v = d.Int64() }
	for _, x := range []struct {
		in        string
		all, good []int64
		err, skip string
	}{
		{`[]`, []int64{}, []int64{}, "", ""},
		{`[1,2,3]`, []int64{1, 2, 3}, []int64{1, 2, 3}, "", ""},
		{`[1,"2",3]`, []int64{1, 0}, []int64{1, 3}, "[1]: expected an integer", ""},
		{`[null,{"a":["b"]}]`, []int64{0}, []int64{}, "[0]: expected an integer", ""},
		{`null`, []int64{}, []int64{}, "expected an array", "expected an array"},
		{`{}`, []int64{}, []int64{}, "expected an array", "expected an array"},
		{`[1,tru]`, []int64{1, 0}, []int64{1}, "invalid JSON at byte 3: unknown literal", "invalid JSON at byte 3: unknown literal"},
	} {
		d := reading(x.in)["copied"]
		if diff := cmp.Diff(x.all, Slice(d, item)); diff != "" {
			t.Errorf("Slice of %s: %s", x.in, diff)
		}
		check(t, d, x.err)
		d = reading(x.in)["copied"]
		got := SliceSkip(d, item)
		if d.SyntaxErr() == nil {
			if diff := cmp.Diff(x.good, got); diff != "" {
				t.Errorf("SliceSkip of %s: %s", x.in, diff)
			}
		}
		check(t, d, x.skip)
	}
	// Lenient lists inside lenient lists (S69).
	d := reading(`[[1,"x"],5,[],["y",2]]`)["copied"]
	got := SliceSkip(d, func(v *[]int64, d *Decoder) { *v = SliceSkip(d, item) })
	if diff := cmp.Diff([][]int64{{1}, {}, {2}}, got); diff != "" {
		t.Error(diff)
	}
	check(t, d, "")
	// A list that drops nothing inside one that drops items.
	d = reading(`[[1,"x"],[2]]`)["copied"]
	got = SliceSkip(d, func(v *[]int64, d *Decoder) { *v = Slice(d, item) })
	if diff := cmp.Diff([][]int64{{2}}, got); diff != "" {
		t.Error(diff)
	}
	check(t, d, "")
}

// TestBadListIsCheap: a peer must not make us collect the worthless items of a
// list that is refused anyway.
func TestBadListIsCheap(t *testing.T) {
	type big struct {
		n int64
		_ [64]byte
	}
	in := "[" + strings.Repeat("{},", 10_000) + "{}]"
	item := func(v *big, d *Decoder) { v.n = d.Int64() }
	var d Decoder
	d.Reset([]byte(in), false)
	if got := Slice(&d, item); len(got) != 1 {
		t.Errorf("%d items were collected", len(got))
	}
	d.Reset([]byte(in), false)
	if n := testing.AllocsPerRun(10, func() {
		d.Reset([]byte(in), false)
		SliceSkip(&d, item)
	}); n > 4 {
		t.Errorf("%v allocations for a list whose items are all dropped", n)
	}
}

func TestMap(t *testing.T) {
	for _, x := range []struct {
		in   string
		want map[string]string
		err  string
	}{
		{`{}`, map[string]string{}, ""},
		{`{"a":"1","\u0062":"2","":"3"}`, map[string]string{"a": "1", "b": "2", "": "3"}, ""},
		{`{"a":"1","a":"2","b":"3"}`, map[string]string{"a": "1"}, "a: duplicate member"},
		{`{"a":"1","\u0061":["2"]}`, map[string]string{"a": "1"}, `"\\u0061": duplicate member`},
		{`{"a":1}`, map[string]string{"a": ""}, "a: expected a string"},
		{`[]`, map[string]string{}, "expected an object"},
		{`null`, map[string]string{}, "expected an object"},
	} {
		for _, d := range reading(x.in) {
			if diff := cmp.Diff(x.want, Map(d, String[string])); diff != "" {
				t.Errorf("%s: %s", x.in, diff)
			}
			check(t, d, x.err)
		}
	}
}

func TestItems(t *testing.T) {
	d := reading(`[[65535,1.0],{"a" : 1.50}]`)["copied"]
	d.FirstElem()
	if diff := cmp.Diff([]uint16{65535, 1}, Slice(d, Uint16Item)); diff != "" {
		t.Error(diff)
	}
	d.NextElem()
	m := Map(d, RawItem)
	if diff := cmp.Diff(map[string]json.RawMessage{"a": json.RawMessage("1.50")}, m); diff != "" {
		t.Error(diff)
	}
	d.NextElem()
	check(t, d, "")
}

func TestAppendSliceAndMap(t *testing.T) {
	out, err := AppendSlice([]byte("x"), []string(nil), AppendText[string])
	if err != nil || string(out) != "x[]" {
		t.Errorf("nil: %s, %v", out, err)
	}
	out, err = AppendSlice(nil, []string{"a", "\n"}, AppendText[string])
	if err != nil || string(out) != `["a","\n"]` {
		t.Errorf("%s, %v", out, err)
	}
	out, err = AppendSlice(nil, []uint16{0, 65535}, AppendUint16Item)
	if err != nil || string(out) != `[0,65535]` {
		t.Errorf("%s, %v", out, err)
	}
	out, err = AppendMap([]byte("x"), map[string]json.RawMessage(nil), AppendRawItem)
	if err != nil || string(out) != "x{}" {
		t.Errorf("nil: %s, %v", out, err)
	}
	out, err = AppendMap(nil, map[string]json.RawMessage{"b": json.RawMessage("2"), "a": json.RawMessage("[1,\n2]"), "\"": json.RawMessage("null")}, AppendRawItem)
	if err != nil || string(out) != `{"\"":null,"a":[1, 2],"b":2}` {
		t.Errorf("%s, %v", out, err)
	}
}

// TestEncodeErrors: an error names the member by its path from the value that
// was to be encoded.
func TestEncodeErrors(t *testing.T) {
	reason := errors.New("a reason")
	for _, x := range []struct {
		names []string // from the inside out
		want  string
	}{
		{[]string{"text"}, "text: a reason"},
		{[]string{"text", "content"}, "content.text: a reason"},
		{[]string{"[3]"}, "[3]: a reason"},
		{[]string{"text", "[3]"}, "[3].text: a reason"},
		{[]string{"text", "[3]", "prompt"}, "prompt[3].text: a reason"},
		{[]string{"[1]", "[0]", "rows", "update"}, "update.rows[0][1]: a reason"},
		{[]string{"", "content"}, `content."": a reason`}, // a member whose name is empty
		{[]string{"", "[0]", ""}, `""[0]."": a reason`},
	} {
		err := reason
		for _, n := range x.names {
			err = In(n, err)
		}
		if err.Error() != x.want {
			t.Errorf("%q: %q, want %q", x.names, err, x.want)
		}
		var e *EncodeError
		if !errors.Is(err, reason) || !errors.As(err, &e) || e.Err != reason {
			t.Errorf("%q: the reason is lost", x.names)
		}
	}
	type list = []json.RawMessage
	_, err := AppendMap(nil, map[string]list{"ok": {json.RawMessage("1")}, "z": {json.RawMessage("1"), nil}}, func(v *list, dst []byte) ([]byte, error) {
		return AppendSlice(dst, *v, AppendRawItem)
	})
	if err == nil || err.Error() != "z[1]: required value is missing" || !errors.Is(err, ErrNoValue) {
		t.Errorf("%v", err)
	}
}

func TestCloseObject(t *testing.T) {
	for in, want := range map[string]string{`{`: `{}`, `{"a":1,`: `{"a":1}`, `[{`: `[{}`, `{"a":{"b":1},`: `{"a":{"b":1}}`} {
		if got := CloseObject([]byte(in)); string(got) != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	for want, err := range map[string]error{
		"invalid JSON at byte 7: of a test": &SyntaxError{"of a test", 7},
		"of a test":                         &FieldError{"", "of a test"},
		"a[1].b: of a test":                 &FieldError{"a[1].b", "of a test"},
		"a: of a test":                      &EncodeError{"a", errors.New("of a test")},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

// TestNoValuesInErrors: errors name fields and never say what was in them.
func TestNoValuesInErrors(t *testing.T) {
	const secret = "hunter2"
	for _, in := range []string{`{"required":["` + secret + `"]}`, `{"required":{"` + secret + `":1}}`, `{"type":"` + secret + `","type":"` + secret + `"}`,
		`{"list":["` + secret + `"]}`, `{"required":"` + secret + `","x":tru}`, `"` + secret + `"`, `{"names":"` + secret + `"}`} {
		var m message
		if err := Unmarshal([]byte(in), m.DecodeJSON); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", in, err)
		}
	}
}
