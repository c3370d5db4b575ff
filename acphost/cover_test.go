package acphost

import "testing"

// TestGlobsMeet: a text of which something is not known can be what a pattern is about.
func TestGlobsMeet(t *testing.T) {
	const any = "\x00"
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"git push *", "git " + any + " origin", true},
		{"git push *", "git " + any, true},
		{"git push *", "git p" + any + " x", true},
		{"git push *", "git log " + any, false},
		{"git push *", any, true},
		{"git push *", "git push", true},
		{"git push *", "git push" + any, true},
		{"git push", "git push x" + any, false},
		{"rm *", "rmdir " + any, false},
		{"rm *", "ls " + any, false},
		{"* --force", "git x" + any, true},
		{"* --force", "git x" + any + " y", false},
		{"a?c", "a" + any + "c", true},
		{"a?c", "ac", false},
		{"*", "x", true},
		{"*b*", "a" + any, true},
		{"*b*", "aca", false},
		{"RM *", "rm x" + any, true},
	} {
		p, err := newCommandGlob(tt.pattern, true)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.mayMatch(tt.text); got != tt.want {
			t.Errorf("%q and %q: %t", tt.pattern, tt.text, got)
		}
	}
	for expr, want := range map[string]bool{"git push.*": true, "GIT .*": true, "(a|b)": true, "git": true, "gitk.*": false, "rm .*": false} {
		p, err := newCommandRegexp(expr, true)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.mayMatch("git " + any); got != want {
			t.Errorf("%q: %t", expr, got)
		}
	}
}
