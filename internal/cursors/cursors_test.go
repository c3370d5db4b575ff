package cursors

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv2"
)

// TestList: the anchor of a cursor stays, its capabilities are kept, cleared or replaced, and what comes without an anchor for an
// unknown cursor begins none.
func TestList(t *testing.T) {
	var l List
	apply := func(data string) *acpv2.CursorUpdate {
		t.Helper()
		u, err := acpv2.UnmarshalSessionUpdate(fmt.Appendf(nil, `{"sessionUpdate":"cursor_update",%s}`, data))
		if err != nil {
			t.Fatal(err)
		}
		return l.Apply(u.(*acpv2.CursorUpdate))
	}
	const anchor = `"anchor":{"type":"user_message","messageId":"m","position":"before"}`
	if apply(`"cursorId":"a","capabilities":{"fork":{}}`) != nil {
		t.Error("a cursor without an anchor has begun")
	}
	for _, step := range []struct {
		update string
		forks  bool
		meta   string
	}{
		{`"cursorId":"a",` + anchor, false, ""},
		{`"cursorId":"a","capabilities":{"fork":{}}`, true, ""},
		{`"cursorId":"a","_meta":{"x":1}`, true, `{"x":1}`},
		{`"cursorId":"a","capabilities":{},"anchor":{"type":"user_message","messageId":"n","position":"before"}`, false, `{"x":1}`},
		{`"cursorId":"a","capabilities":{"fork":{}}`, true, `{"x":1}`},
		{`"cursorId":"a","capabilities":null`, false, `{"x":1}`},
	} {
		c := apply(step.update)
		if Forks(c) != step.forks || c.Anchor.(*acpv2.CursorUserMessageAnchor).MessageID != "m" || string(c.Meta) != step.meta {
			t.Errorf("%s: %+v", step.update, c)
		}
	}
	apply(`"cursorId":"b",` + anchor)
	if all := l.All(); len(all) != 2 || all[0].CursorID != "a" || all[1].CursorID != "b" {
		t.Errorf("%+v", all)
	}
}

// TestBound: beyond the bound the first cursor is forgotten.
func TestBound(t *testing.T) {
	var l List
	for i := range Max + 1 {
		l.Apply(&acpv2.CursorUpdate{CursorID: acpv2.CursorID(fmt.Sprint(i)), Anchor: &acpv2.CursorUserMessageAnchor{MessageID: "m"}})
	}
	l.Apply(&acpv2.CursorUpdate{CursorID: "long", Anchor: &acpv2.CursorUserMessageAnchor{MessageID: "m"},
		Meta: json.RawMessage(`{"x":"` + strings.Repeat("x", MaxSize) + `"}`)})
	all := l.All()
	if len(all) != Max || all[0].CursorID != "1" || l.Apply(&acpv2.CursorUpdate{CursorID: "0"}) != nil {
		t.Errorf("%d cursors, the first is %s", len(all), all[0].CursorID)
	}
	if _, err := json.Marshal(&all[0]); err != nil {
		t.Error(err)
	}
}
