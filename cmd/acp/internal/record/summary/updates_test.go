package summary

import (
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/updatetest"
)

// TestUpdates: every update has a line, or is listed here.
func TestUpdates(t *testing.T) {
	t.Run("v2", func(t *testing.T) {
		updatetest.Check(t, nil, lines[acpv2.SessionUpdate])
	})
	t.Run("v1", func(t *testing.T) {
		updatetest.CheckV1(t, nil, lines[acpv1.SessionUpdate])
	})
}

// lines returns the lines of updates.
func lines[U interface{ AppendJSON([]byte) ([]byte, error) }](t *testing.T, us []U) string {
	text := ""
	for _, u := range us {
		data, err := u.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		it := frames(`<{"method":"session/update","params":{"sessionId":"s","update":` + string(data) + `}}`)[0]
		var f Follower
		next := f.Next(it)
		text += next.Summary
	}
	return text
}
