package exec

import (
	"strings"
	"testing"

	"github.com/goacp/acp/acphost"
)

// TestDenialOnce: a denial names a command once, also one that is longer than a title may be.
func TestDenialOnce(t *testing.T) {
	command := "touch " + strings.Repeat("x", 150)
	for _, title := range []string{command, "`" + command + "`", "Bash"} {
		got := denial(acphost.Record{Title: title, Kind: "execute", Command: command}, "kind:execute")
		if strings.Count(got, "touch") != 1 || !strings.Contains(got, command) {
			t.Errorf("%q: %s", title, got)
		}
		if title == "Bash" && !strings.HasPrefix(got, "denied: Bash: touch") {
			t.Errorf("%s", got)
		}
	}
}
