package wire

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// watched is a type as the generator makes them: a lenient number, a count, a
// union with one variant that nobody knows, and _meta.
func watched(d *Decoder) {
	var unknown, raw json.RawMessage
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		switch string(k) {
		case "lenient":
			was := d.Try()
			_ = d.Uint32()
			d.Failed(was)
		case "list":
			SliceSkip(d, String[string])
		case "count":
			_ = d.Int64()
		case "union":
			_ = d.Open("type")
			raw = d.RawVariant("type")
		case "rest":
			_ = d.Open("type")
			d.Reopen()
			raw = d.Rest("type")
		case "_meta":
			raw = d.Meta()
		default:
			d.Keep(&unknown)
		}
	}
	_ = raw
}

func TestWatch(t *testing.T) {
	type seen struct {
		Kind       NoteKind
		Path, Name string
	}
	tests := []struct {
		in   string
		want []seen
	}{
		{`{"lenient":1,"count":2,"union":{"type":"_x"},"_meta":null,"_other":1,"list":["a"]}`, nil},
		{`{"lenient":"x"}`, []seen{{NoteSalvaged, "lenient", ""}}},
		{`{"list":["a",2,"b",{}]}`, []seen{{NoteSalvaged, "list[1]", ""}, {NoteSalvaged, "list[3]", ""}}},
		{`{"count":1.0}`, []seen{{NoteSpelling, "count", ""}}},
		{`{"union":{"a":[1],"type":"odd"}}`, []seen{{NoteVariant, "union.type", "odd"}}},
		{`{"union":{"type":"o\u0064d"}}`, []seen{{NoteVariant, "union.type", "odd"}}},
		{`{"rest":{"type":"odd","x":{"y":1}}}`, []seen{{NoteVariant, "rest.type", "odd"}}},
		{`{"other":{"type":"odd"}}`, []seen{{NoteMember, "other", ""}}},
		{`{"_meta":[]}`, []seen{{NoteMeta, "_meta", ""}}},
	}
	for _, tt := range tests {
		w := &Watch{}
		d := Decoder{Watch: w}
		d.Reset([]byte(tt.in), false)
		watched(&d)
		if err := d.Finish(); err != nil {
			t.Errorf("%s: %v", tt.in, err)
		}
		var got []seen
		for i := range w.Notes {
			n := &w.Notes[i]
			got = append(got, seen{n.Kind, d.Path(n), n.Name})
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.in, diff)
		}
	}
}

func TestWatchIsBounded(t *testing.T) {
	in := []byte(`{"list":[`)
	for range 100 {
		in = append(in, `1,`...)
	}
	in = append(in, `"a"]}`...)
	d := Decoder{Watch: &Watch{}}
	d.Reset(in, false)
	watched(&d)
	if n := len(d.Watch.Notes); n != keepNotes {
		t.Errorf("%d notes, want %d", n, keepNotes)
	}
}
