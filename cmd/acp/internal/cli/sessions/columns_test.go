package sessions

import (
	"strings"
	"testing"
)

// TestLongAgent holds that the command line of an agent leaves room for the title.
func TestLongAgent(t *testing.T) {
	table := [][]string{
		{"ID", "AGENT", "WHEN", "TURNS", "DIRECTORY", "TITLE"},
		{"sess-1", "node /home/me/projects/agents/dist/router_agent.mjs", "now", "1", "/p", "fix the test"},
	}
	line := columns(table, 80)[1]
	if !strings.Contains(line, "router_agent.mjs") || strings.Contains(line, "node") || !strings.Contains(line, "fix the test") {
		t.Errorf("in 80 columns: %q", line)
	}
	if line := columns(table, 0)[1]; !strings.Contains(line, table[1][1]) {
		t.Errorf("without a terminal: %q", line)
	}
}
