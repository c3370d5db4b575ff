package bounded

import "testing"

// TestBuffer: the beginning is kept, all writes succeed, and it is known whether something was dropped.
func TestBuffer(t *testing.T) {
	b := Buffer{Max: 5}
	for _, tt := range []struct {
		write, kept string
		full        bool
	}{
		{"abc", "abc", false},
		{"de", "abcde", false},
		{"", "abcde", false},
		{"f", "abcde", true},
		{"", "abcde", true},
	} {
		if n, err := b.Write([]byte(tt.write)); n != len(tt.write) || err != nil || string(b.Bytes()) != tt.kept || b.Full != tt.full {
			t.Errorf("after %q: %d, %v; %q is kept, full %v", tt.write, n, err, b.Bytes(), b.Full)
		}
	}
	one := Buffer{Max: 2}
	if n, err := one.Write([]byte("abc")); n != 3 || err != nil || string(one.Bytes()) != "ab" || !one.Full {
		t.Errorf("at once: %d, %v; %q is kept, full %v", n, err, one.Bytes(), one.Full)
	}
}
