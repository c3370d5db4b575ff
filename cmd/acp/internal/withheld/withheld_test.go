package withheld

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOf: which variables are keys.
func TestOf(t *testing.T) {
	environ := []string{"PATH=/bin", "OPENAI_API_KEY=sk-0123456789", "LAB_KEY=short", "ACP_TOKEN=abcdefghijkl", "ACP_DB=postgres://u:p@h/d", "acp_token=other-long-value",
		"ACP_MODEL_USE=x", "ACP_KEYS=x", "MY_TOKEN=mine", "OPENAI_API_KEY=sk-again-again"}
	k := Of(environ, []string{"OPENAI_API_KEY", "LAB_KEY", "UNSET_KEY"}, nil)
	if d := cmp.Diff([]string{"PATH=/bin", "ACP_MODEL_USE=x", "ACP_KEYS=x", "MY_TOKEN=mine"}, k.Environ()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"ACP_DB", "ACP_TOKEN", "LAB_KEY", "OPENAI_API_KEY", "acp_token"}, k.Names()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"sk-0123456789", "abcdefghijkl", "postgres://u:p@h/d", "other-long-value", "sk-again-again"}, k.Values()); d != "" {
		t.Error(d)
	}
	k = Of(environ[:4], []string{"OPENAI_API_KEY", "LAB_KEY"}, []string{"LAB_KEY", "ACP_TOKEN"})
	if d := cmp.Diff([]string{"OPENAI_API_KEY"}, k.Names()); d != "" {
		t.Error(d)
	}
	if k := Of([]string{"ACP_TOKEN=x"}, nil, nil); k.Environ() == nil || len(k.Environ()) != 0 {
		t.Error("an environment of nothing but keys stands for that of the process")
	}
	var none *Keys
	if none.Environ() != nil || none.Names() != nil || none.Values() != nil {
		t.Error("no keys")
	}
}

// TestVariables: what a setting names.
func TestVariables(t *testing.T) {
	for text, want := range map[string][]string{
		"sk-plain": nil, "${X}": {"X"}, "$X": {"X"}, "Bearer ${A_1} $B.": {"A_1", "B"}, "${C:-d}": {"C"}, "$": nil, "${": nil, "$$X": {"X"},
	} {
		if d := cmp.Diff(want, Variables(text)); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}
