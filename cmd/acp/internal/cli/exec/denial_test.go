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

// TestDenialVisible: a denial writes out what nobody sees, and offers no rule that would look like another one.
func TestDenialVisible(t *testing.T) {
	got := denial(acphost.Record{Title: "Run this command?", Kind: "execute", Command: "./build.sh\u200b --all\u3164"}, "command:./build.sh\u200b *")
	if got != `denied: Run this command? ./build.sh\u{200b} --all\u{3164}; no --allow rule can permit it` {
		t.Error(got)
	}
	if got := denial(acphost.Record{Kind: "edit", Paths: []string{"a\u202e "}}, ""); got != `denied: a\u{202e}\u{20}; no --allow rule can permit it` {
		t.Error(got)
	}
}
