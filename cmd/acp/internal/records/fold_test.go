package records

import (
	"slices"
	"testing"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// TestInterruptedTwice: the end of a turn that several processes have found interrupted at the same time
// is there once; ends that say more, and those of other turns, are all there.
func TestInterruptedTwice(t *testing.T) {
	gone := &End{Ended: transcript.EndedByClient}
	timeout := &End{Ended: transcript.EndedByTimeout}
	for name, tt := range map[string]struct {
		ends []any // *End, or the text of a prompt
		want int
	}{
		"once":              {[]any{"a", gone}, 1},
		"twice":             {[]any{"a", gone, gone}, 1},
		"two turns":         {[]any{"a", gone, "b", gone}, 2},
		"after another end": {[]any{"a", timeout, gone}, 2},
		"other ends":        {[]any{"a", timeout, timeout}, 2},
		"before another":    {[]any{"a", gone, timeout}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := transcript.New(transcript.Config{})
			for _, x := range tt.ends {
				switch x := x.(type) {
				case string:
					c.Apply(&acpv2.UserMessage{MessageID: acpv2.MessageID(x), Content: acpv2.Set([]acpv2.ContentBlock{acpv2.Text(x)})})
				case *End:
					x.Apply(c)
				}
			}
			got := slices.Collect(c.Snapshot().Entries())
			got = slices.DeleteFunc(got, func(e transcript.Entry) bool { _, ok := e.(*transcript.TurnEnd); return !ok })
			if len(got) != tt.want {
				t.Errorf("%d ends, want %d", len(got), tt.want)
			}
		})
	}
}
