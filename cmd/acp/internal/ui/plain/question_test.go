package plain

import (
	"strings"
	"testing"

	"github.com/goacp/acp/acphost"
)

// TestQuestionOnce: a question says a command once, though the title and the description are the command.
func TestQuestionOnce(t *testing.T) {
	const command = "cd work && touch one two"
	for _, title := range []string{command, "`" + command + "`", "$ " + command, "touch /proj/x"} {
		req := acphost.Request{Title: title, Description: "```sh\n" + command + "\n```", Kind: "execute", Command: command, Cwd: "/proj"}
		if strings.HasPrefix(title, "touch") {
			req.Command = "touch x"
			req.Description = "touch /proj/x"
		}
		got := strings.Join(Question(req), "\n")
		if strings.Count(got, "touch") != 1 || !strings.HasPrefix(got, "Permission: Run this command?\n  Command: "+req.Command) {
			t.Errorf("%q:\n%s", title, got)
		}
	}
	got := strings.Join(Question(acphost.Request{Title: "Make files", Description: "Two of them", Kind: "execute", Command: command}), "\n")
	if got != "Permission: Make files\n  Two of them\n  Command: "+command {
		t.Errorf("\n%s", got)
	}
}
