package tui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp/acpv2"
)

// TestSecretField: a text of the format password is not on the screen, and is answered as it
// was typed.
func TestSecretField(t *testing.T) {
	w := &field{name: "key", text: "sk-käse"}
	w.applySchema(&acpv2.StringPropertySchema{Title: "Key", Format: "password"})
	lines, cursor := w.draw(newStyles("", true), 60, true)
	text := ansi.Strip(strings.Join(lines, "\n"))
	if strings.Contains(text, "sk-") || !strings.Contains(text, "› •••••••\n") && !strings.HasSuffix(text, "› •••••••") || cursor == nil || cursor.X != 13 {
		t.Errorf("%q, %v", text, cursor)
	}
	if v, problem := w.value(); string(v) != `"sk-käse"` || problem != "" {
		t.Errorf("%s, %s", v, problem)
	}
}
