package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// deep returns n levels around core, arrays and objects in turn.
func deep(n int, core string) string {
	var open, shut []string
	for i := range n {
		if i%3 == 0 {
			open, shut = append(open, `{ "k" :`), append(shut, "} ")
		} else {
			open, shut = append(open, "["), append(shut, " ]")
		}
	}
	for i, j := 0, len(shut)-1; i < j; i, j = i+1, j-1 {
		shut[i], shut[j] = shut[j], shut[i]
	}
	return strings.Join(open, "") + core + strings.Join(shut, "")
}

// TestOutline holds what is read of a text that is nested too deeply: its members
// if it is JSON, and otherwise nothing.
func TestOutline(t *testing.T) {
	d600 := strings.TrimSpace(deep(600, `[1,"a",{},[]]`))
	tests := []struct {
		name, in string
		want     []string // nil if it is not JSON
	}{
		{"object", `{"a":` + d600 + `,"b" : "x" , "c":-1.5e3}`, []string{"a=" + d600, `b="x"`, "c=-1.5e3"}},
		{"deep member last", `{"id":7,"p":` + d600 + `}`, []string{"id=7", "p=" + d600}},
		{"escaped name", `{"\u0061":` + d600 + `}`, []string{"a=" + d600}},
		{"array", "[" + d600 + "]", []string{}},
		{"very deep", "[" + deep(1_000_000, "1") + "]", []string{}},
		{"siblings", `[` + d600 + `,` + d600 + `,{"a":1,"b":[2,3]}]`, []string{}},
		{"trailing", "[" + d600 + "]x", nil},
		{"truncated", strings.Repeat("[", 600), nil},
		{"wrong end", strings.Repeat("[", 600) + strings.Repeat("]", 599) + "}", nil},
		{"too many ends", deep(600, "1") + "]", nil},
		{"no value", deep(601, ""), nil},
		{"comma at the end", deep(600, "[1,]"), nil},
		{"no name", deep(600, "{1:2}"), nil},
		{"no colon", deep(600, `{"a" 2}`), nil},
		{"bad literal", deep(600, "nul"), nil},
		{"bad string", deep(600, `"\x"`), nil},
		{"bad number", deep(600, "01"), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, owned := range []bool{false, true} {
				var d Decoder
				d.Reset([]byte(tt.in), owned)
				d.Skip()
				if _ = d.Finish(); !d.TooDeep() {
					t.Fatal("not too deep")
				}
				got := []string{}
				ok := d.Outline(func(k string, v []byte) { got = append(got, k+"="+string(v)) })
				if ok != (tt.want != nil) {
					t.Fatalf("is JSON: %v", ok)
				}
				if diff := cmp.Diff(tt.want, got); ok && diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestOutlineMoved holds that strings that were unescaped in place before do no
// harm.
func TestOutlineMoved(t *testing.T) {
	in := fmt.Sprintf(`{"s":"a\"}b\\%s","p":%s,"id":"x\n"}`, strings.Repeat(`\n`, 100), deep(600, "1"))
	var d Decoder
	d.Reset([]byte(in), true)
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		if string(k) == "s" {
			_ = d.Str()
		} else {
			d.Skip()
		}
	}
	if !d.TooDeep() {
		t.Fatal("not too deep")
	}
	var names []string
	ok := d.Outline(func(k string, v []byte) {
		names = append(names, k)
		if k == "id" && string(v) != `"x\n"` {
			t.Errorf("id %s", v)
		}
	})
	if diff := cmp.Diff([]string{"s", "p", "id"}, names); !ok || diff != "" {
		t.Error(ok, diff)
	}
}

// FuzzOutline holds Outline to encoding/json, for texts of any depth.
func FuzzOutline(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":null}],"c":"\n"}`, "[[1,2],{}]", `{"a":1,}`, `[1}`, "x", `"a"`, `{"a":[}]`} {
		f.Add([]byte(s), uint16(600))
	}
	f.Fuzz(func(t *testing.T, in []byte, n uint16) {
		in = []byte(deep(int(n), string(in)))
		d := Decoder{data: in}
		got := map[string]string{}
		ok := d.Outline(func(k string, v []byte) { got[k] = string(v) })
		d.Reset(in, false)
		d.Skip()
		switch err := d.Finish(); {
		case d.TooDeep():
			if n < 5000 && ok != json.Valid(in) { // which has a limit, too
				t.Fatalf("is JSON: %v", ok)
			}
		case ok != (err == nil):
			t.Fatalf("is JSON: %v, Skip says %v", ok, err)
		}
		for k, v := range got {
			if ok && !json.Valid([]byte(v)) && n < 5000 {
				t.Fatalf("%q: %.200q", k, v)
			}
		}
	})
}
