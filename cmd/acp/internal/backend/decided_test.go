package backend

import "testing"

// TestDecided: what others have answered is said like a sentence.
func TestDecided(t *testing.T) {
	for _, tt := range []struct{ title, outcome, want string }{
		{"Run this command?", "Allow", "root allowed: Run this command?"},
		{"Run this command?", "Allow always", "root always allowed: Run this command?"},
		{"Run this command?", "Reject", "root rejected: Run this command?"},
		{"Run this command?", "cancelled", "root has dismissed the question: Run this command?"},
		{"", "cancelled", "root has dismissed the question"},
		{"Which one?", "The blue one", "root has answered “Which one?”: The blue one"},
		{"", "accepted", "root has answered: accepted"},
	} {
		p := decided{By: "root", Title: tt.title, Outcome: tt.outcome}
		if got := p.String(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
