package interop

import (
	"bytes"
	"testing"

	"github.com/goacp/acp/internal/sample"
)

// The exceptions are judged by a model of the reference reader (sample.Salvage). It is worth
// nothing unless it is the reference: every answer of every profile must agree. S67-S83
func TestModelIsReference(t *testing.T) {
	for _, p := range profiles {
		t.Run(p.name, func(t *testing.T) {
			s := ask(t, p)
			// Nothing is forgiven but schema defaults, which the validators fill in.
			form := sample.Options{Strip: true, JavaScript: true, KeepNull: true, KeepEmpty: true}
			wrong := 0
			for _, q := range s.questions {
				if text := modelDisagrees(s, form, q); text != "" {
					if wrong++; wrong <= 20 {
						t.Errorf("%s %.300s\n\t%s", q.typ, q.value, text)
					}
				}
			}
			t.Logf("%d types, %d values, %d disagree", len(s.types), len(s.questions), wrong)
		})
	}
}

func modelDisagrees(s *sweep, form sample.Options, q question) string {
	kept, err := s.schema.Salvage(q.typ, q.value, 0)
	switch {
	case err != nil && q.accept:
		return "model refuses: " + err.Error()
	case err == nil && !q.accept:
		return "model accepts, oracle refuses: " + q.reason
	case err != nil:
		return ""
	}
	want, err := form.Canonical(s.schema, q.typ, q.kept)
	if err != nil {
		return "oracle's value has no normal form: " + err.Error() + " " + string(q.kept)
	}
	got, err := form.Canonical(s.schema, q.typ, kept)
	if err != nil {
		return "model's value has no normal form: " + err.Error() + " " + string(kept)
	}
	if !bytes.Equal(got, want) {
		return "model  " + string(got) + "\n\toracle " + string(want)
	}
	return ""
}
