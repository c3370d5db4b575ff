package ownmeta

import (
	"encoding/json"
	"testing"
)

// TestRead: what the program says in _meta is read, and nothing else.
func TestRead(t *testing.T) {
	type said struct{ A int }
	for _, tt := range []struct {
		meta string
		want int
		ok   bool
	}{
		{string(Of(said{3})), 3, true},
		{`{"other":{"a":1},"` + Key + `":{"a":2,"b":"x"}}`, 2, true},
		{`{"` + Key + `":{"a":"x"}}`, 0, false},
		{`{"` + Key + `":[]}`, 0, false},
		{`{"a":1}`, 0, false},
		{`[]`, 0, false},
		{`null`, 0, false},
		{``, 0, false},
	} {
		var got said
		if ok := Read(json.RawMessage(tt.meta), &got); ok != tt.ok || got.A != tt.want {
			t.Errorf("%s: %v, %v", tt.meta, got, ok)
		}
	}
	if got := Of(func() {}); got != nil {
		t.Errorf("what cannot be encoded is %s", got)
	}
}
