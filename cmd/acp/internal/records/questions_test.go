package records

import (
	"slices"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// TestQuestions: a question is open until its first decision; another decision changes nothing, and neither do other records.
func TestQuestions(t *testing.T) {
	var q Questions
	for i, tt := range []struct {
		kind journal.Kind
		data string
		news bool
		open string
	}{
		{journal.KindAsked, `{"id":"a","title":"A?","raw":{}}`, true, "a"},
		{journal.KindDecided, `{"id":"b"}`, false, "a"},
		{journal.KindAsked, `{"id":"b","title":"B?"}`, true, "ab"},
		{journal.KindUpdate, `{"id":"a"}`, true, "ab"},
		{journal.KindDecided, `no JSON`, true, "ab"},
		{journal.KindDecided, `{"id":"a","outcome":"allow"}`, true, "b"},
		{journal.KindDecided, `{"id":"a"}`, false, "b"},
	} {
		news := q.Apply(&journal.Record{Kind: tt.kind, Data: []byte(tt.data)})
		open := ""
		for _, a := range q {
			open += a.ID
		}
		if news != tt.news || open != tt.open {
			t.Errorf("%d: %t, open %q", i, news, open)
		}
	}
	if q.Has("a") || !q.Has("b") || slices.ContainsFunc(q, func(a Asked) bool { return a.Title != "B?" }) {
		t.Errorf("%+v", q)
	}
}
