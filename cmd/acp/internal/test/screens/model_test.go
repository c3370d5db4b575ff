//go:build !windows

package screens

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goacp/acp/internal/long"
)

// kinder is a script of a model that changes a greeting.
const kinder = `
think The greeting is in greet.go. I look at it before I change it.
say I look at the greeting first.
use plan {"steps":[{"text":"find the greeting","status":"in_progress"},{"text":"make it kinder","status":"pending"},{"text":"check it","status":"pending"}]}
use search {"pattern":"Hello","glob":"*.go"}
---
use read {"path":"greet.go"}
---
say It is in one place. I change it there.
use plan {"steps":[{"text":"find the greeting","status":"completed"},{"text":"make it kinder","status":"in_progress"},{"text":"check it","status":"pending"}]}
use edit {"path":"greet.go","edits":[{"old":"return \"Hello, \" + name","new":"return \"Good morning, \" + name + \"!\""}]}
use run {"command":"grep -n morning greet.go"}
---
say <<END
Done. **greet.go:5** says *Good morning* now:

- the text is kinder, and ends with an exclamation mark,
- nothing else has changed.
END
use plan {"steps":[{"text":"find the greeting","status":"completed"},{"text":"make it kinder","status":"completed"},{"text":"check it","status":"completed"}]}
---
say You can run it with your own tests.
`

// TestModel looks at a turn of the built-in agent with a model, and at the options that
// belong to it.
func TestModel(t *testing.T) {
	long.Test(t)
	d := newDesk(t)
	d.env = []string{"COLORTERM=truecolor"}
	file := filepath.Join(d.home, "kinder.script")
	if err := os.WriteFile(file, []byte(kinder), 0o600); err != nil {
		t.Fatal(err)
	}
	s := d.start(96, 52, "--model", "script:../kinder.script")
	s.Wait("type a prompt")
	send(s, "Make the greeting kinder")
	s.Wait("Change greet.go?", "Enter chooses")
	looks(t, s, "model-permission")
	picture(t, s, "agent.svg", s.SVG)
	s.Type("y")
	s.Wait("type a prompt", "your own tests")
	looks(t, s, "model-end")
	s.Press("ctrl+o")
	s.Wait("Model · ")
	looks(t, s, "model-options")
}
