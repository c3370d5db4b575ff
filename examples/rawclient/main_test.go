package main

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestTalk plays a conversation with the example agent over real processes.
func TestTalk(t *testing.T) {
	agent := filepath.Join(t.TempDir(), "rawagent.exe")
	if out, err := exec.Command("go", "build", "-o", agent, "../rawagent").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, protocol := range []int{1, 2} {
		t.Run(strconv.Itoa(protocol), func(t *testing.T) {
			var out strings.Builder
			reason, err := run(protocol, "hello big world", []string{agent, "-protocol", strconv.Itoa(protocol)}, &out)
			if err != nil || reason != "end_turn" {
				t.Errorf("reason %q, %v", reason, err)
			}
			if out.String() != "hello big world\n" {
				t.Errorf("output %q", &out)
			}
		})
	}
}

// TestNoAgent: a command that does not exist or does not speak is an error, not
// a hang.
func TestNoAgent(t *testing.T) {
	for _, command := range [][]string{{filepath.Join(t.TempDir(), "nothing")}, {"go", "version"}} {
		if _, err := run(1, "hello", command, new(strings.Builder)); err == nil {
			t.Errorf("%q: no error", command)
		}
	}
}
