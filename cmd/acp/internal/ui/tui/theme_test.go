package tui

import (
	"image/color"
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestLightHint(t *testing.T) {
	for v, want := range map[string]bool{
		"": false, "15": false, "0;15": true, "0;default;15": true, "0;7": true, "15;0": false, "7;8": false, "12;11": true,
		"0;default": false, "0;": false, ";15;": false, "0;16": false, "0;-1": false, "0;15x": false,
	} {
		if got := lightHint(v); got != want {
			t.Errorf("COLORFGBG=%q: %v", v, got)
		}
	}
}

// TestTheme: the setting counts first, then what the terminal answers, then COLORFGBG; nothing waits for
// the answer.
func TestTheme(t *testing.T) {
	white, black := tea.BackgroundColorMsg{Color: color.White}, tea.BackgroundColorMsg{Color: color.Black}
	for _, tt := range []struct {
		setting, variable    string
		before, white, black bool // whether it is dark: before an answer and after that
		asks                 bool
	}{
		{"auto", "", true, false, true, true},
		{"", "0;15", false, false, true, true},
		{"auto", "15;0", true, false, true, true},
		{"dark", "0;15", true, false, true, false},
		{"light", "15;0", false, false, true, false},
	} {
		t.Run(tt.setting+tt.variable, func(t *testing.T) {
			t.Setenv("COLORFGBG", tt.variable)
			r := newRig(t, 80, 24, func(o *Options) { o.ui.Theme = tt.setting })
			if r.m.dark != tt.before || r.m.View().Content == "" {
				t.Errorf("dark before an answer: %v", r.m.dark)
			}
			if r.m.autoTheme() != tt.asks {
				t.Errorf("asks: %v", !tt.asks)
			}
			if _, cmd := r.m.Update(tea.FocusMsg{}); (cmd != nil) != tt.asks {
				t.Errorf("asks again when the focus is back: %v", cmd != nil)
			}
			if !tt.asks {
				return
			}
			r.send(white)
			if r.m.dark != tt.white {
				t.Errorf("dark on white: %v", r.m.dark)
			}
			r.send(black)
			if r.m.dark != tt.black {
				t.Errorf("dark on black: %v", r.m.dark)
			}
		})
	}
}
