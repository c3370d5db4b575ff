package launch

import "testing"

func TestSpeaks(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"HTTP/1.1 400 Bad Request\r", "speaks HTTP"},
		{"Content-Length: 12\r\n", "frames messages like a language server"},
		{"  content-length:0", "frames messages like a language server"},
		{"Listening on HTTP/1.1", ""},
		{"content-len", ""},
		{"Welcome", ""},
		{"", ""},
	} {
		if got := Speaks(tt.line); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.line, got, tt.want)
		}
	}
}
