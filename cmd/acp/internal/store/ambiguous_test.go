package store

import "testing"

func TestAmbiguousError(t *testing.T) {
	of := func(keys ...Key) (list []Session) {
		for _, k := range keys {
			list = append(list, Session{Key: k})
		}
		return list
	}
	for _, tt := range []struct {
		err  AmbiguousError
		want string
	}{
		{AmbiguousError{ID: "s", Candidates: of(Key{"a", "s1"}, Key{"b", "s2"})}, `"s" may be "s1" of a, "s2" of b`},
		{AmbiguousError{ID: "s", Candidates: of(Key{"a", "s"}, Key{"b", "s"})}, `"s" may be "s" of a, "s" of b; --agent says which`},
		{
			AmbiguousError{ID: "s", Candidates: of(Key{"a", "s1"}, Key{"a", "s2"}, Key{"a", "s3"}, Key{"a", "s4"}, Key{"a", "s5"})},
			`"s" may be "s1" of a, "s2" of a, "s3" of a, "s4" of a or others`,
		},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}
