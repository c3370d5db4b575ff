package transcript

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
)

// TestPlain: output as a screen would show it, whole and cut after each byte.
func TestPlain(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "one\ntwo", "one\ntwo"},
		{"line ends", "one\r\ntwo\r\n", "one\ntwo\n"},
		{"colours", "\x1b[1;31mred\x1b[0m \x1b[38;5;200mpink\x1b[m", "red pink"},
		{"many parameters", "\x1b[1;2;3;4;5;6;7;8;9mx", "x"},
		{"a huge parameter", "\x1b[99999999999999999999Cx", strings.Repeat(" ", lineCells-1) + "x"},
		{"progress bar", "10%\r50%\r100%\ndone", "100%\ndone"},
		{"a shorter line over a longer one", "longer\rshort", "shortr"},
		{"erased first", "longer\r\x1b[Kshort", "short"},
		{"erase to the start", "abc\x1b[2D\x1b[1Kx", " xc"},
		{"erase all of the line", "abc\x1b[2Kx", "   x"},
		{"columns", "abc\x1b[1GX\x1b[3GZ", "XbZ"},
		{"beyond the end", "a\x1b[4Gb", "a  b"},
		{"backspace", "abc\b\bX", "aXc"},
		{"backspace at the start", "\b\bx", "x"},
		{"tab", "a\tb", "a\tb"},
		{"bell and others", "a\x07\x00\x01\x7fb", "ab"},
		{"window title", "\x1b]0;title\x07text", "text"},
		{"link", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\!", "link!"},
		{"picture", "\x1bPq#0;2;0\x1b\\after", "after"},
		{"escape ends a string", "\x1b]0;title\x1b[31mred", "red"},
		{"cancelled", "\x1b[31\x18x\x1b]0;t\x1ay", "xy"},
		{"character set", "\x1b(Bx\x1b)0y\x1b7z\x1b8", "xyz"},
		{"private modes", "\x1b[?25l\x1b[?1049hx\x1b[>cy", "xy"},
		{"private erasing is another thing", "ab\r\x1b[?Kc", "cb"},
		{"new line within a sequence", "a\x1b[3\n1mb", "a\nb"},
		{"one-character controls", "\u009b31mred\u009b0m \u009d0;title\u009cx\u0085y", "red x\ny"},
		{"moves to other lines are not followed", "one\ntwo\x1b[Aup", "one\ntwoup"},
		{"UTF-8", "café 日本 😀", "café 日本 😀"},
		{"bad UTF-8", "a\xff\xc3(\xe6\x97b", "a\ufffd\ufffd(\ufffd\ufffdb"},
		{"vertical tab and form feed", "a\vb\fc", "a\nb\nc"},
		{"escape twice", "\x1b\x1b[31mx", "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, step := range []int{len(tt.in), 1, 2, 3} {
				c := New(Config{})
				for i := 0; i < len(tt.in); i += step {
					data := base64.StdEncoding.EncodeToString([]byte(tt.in[i:min(i+step, len(tt.in))]))
					c.Apply(&acpv2.TerminalOutputChunk{TerminalID: "t", Data: data})
				}
				s := c.Snapshot()
				for _, s := range []*Snapshot{s, restored(t, s), restored(t, s).Continue(Config{}).Snapshot()} {
					x := s.Terminal("t")
					if diff := cmp.Diff(tt.want, x.Plain()); diff != "" {
						t.Errorf("in steps of %d: %s", step, diff)
					}
					if x.Raw() != tt.in {
						t.Errorf("raw output %q", x.Raw())
					}
				}
			}
		})
	}
}

// TestPlainContinued: a read snapshot goes on in the middle of a character, a
// sequence and a line.
func TestPlainContinued(t *testing.T) {
	tests := []struct{ before, after, want string }{
		{"10%\r2", "0%\r30%\n", "30%\n"},
		{"a\x1b[3", "1mb", "ab"},
		{"\x1b]0;ti", "tle\x07x", "x"},
		{"caf\xc3", "\xa9", "café"},
		{"one\nabc\x1b[2D", "X", "one\naXc"},
	}
	for _, tt := range tests {
		for _, lose := range []int{0, 300} { // without and with output that was lost before
			c := New(Config{TerminalBytes: 256})
			in := strings.Repeat("\n", lose) + tt.before
			c.Apply(&acpv2.TerminalOutputChunk{TerminalID: "t", Data: base64.StdEncoding.EncodeToString([]byte(in))})
			c = restored(t, c.Snapshot()).Continue(Config{TerminalBytes: 256})
			c.Apply(&acpv2.TerminalOutputChunk{TerminalID: "t", Data: base64.StdEncoding.EncodeToString([]byte(tt.after))})
			if got := strings.TrimLeft(c.Snapshot().Terminal("t").Plain(), "\n"); got != tt.want {
				t.Errorf("%q and %q: %q, want %q", tt.before, tt.after, got, tt.want)
			}
		}
	}
	// A text that does not go with the output is taken as it is.
	var s Snapshot
	err := s.UnmarshalJSON([]byte(`{"version":1,"entries":[{"kind":"terminal","update":{"sessionUpdate":"terminal_update","terminalId":"t","output":{"data":"eA=="}},"text":"ab\ncd"},
		{"kind":"terminal","update":{"sessionUpdate":"terminal_update","terminalId":"u","output":{"data":"eA=="}},"text":"` + strings.Repeat("y", lineCells) + `"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c := s.Continue(Config{})
	for _, id := range []acpv2.TerminalID{"t", "u"} {
		c.Apply(&acpv2.TerminalOutputChunk{TerminalID: id, Data: base64.StdEncoding.EncodeToString([]byte("\rX"))})
	}
	if got := c.Snapshot().Terminal("t").Plain(); got != "ab\nXd" {
		t.Errorf("%q", got)
	}
	if got := c.Snapshot().Terminal("u").Plain(); got != strings.Repeat("y", lineCells)+"X" {
		t.Errorf("%q", got)
	}
}

// TestTerminalBounds: of output without end, the end is kept, whole characters of it.
func TestTerminalBounds(t *testing.T) {
	const limit = 1001 // no multiple of the characters
	for _, text := range []string{"line of text\n", "日本語テキスト\n", "no line ends ", strings.Repeat("é", 700), strings.Repeat("x", 9*limit) + "\n"} {
		c := New(Config{TerminalBytes: limit})
		var all strings.Builder
		for range 120 {
			all.WriteString(text)
			c.Apply(&acpv2.TerminalOutputChunk{TerminalID: "t", Data: base64.StdEncoding.EncodeToString([]byte(text))})
		}
		x := c.Snapshot().Terminal("t")
		if n := len(x.Raw()); n > limit || n < limit-utf8.UTFMax || !strings.HasSuffix(all.String(), x.Raw()) || !utf8.ValidString(x.Raw()) {
			t.Errorf("%.20q: %d raw bytes kept", text, n)
		}
		if x.Skipped+uint64(len(x.Raw())) != uint64(all.Len()) {
			t.Errorf("%.20q: %d skipped and %d kept of %d", text, x.Skipped, len(x.Raw()), all.Len())
		}
		plain := x.Plain()
		if n := len(plain); n > limit+lineCells*utf8.UTFMax || n < limit-utf8.UTFMax || !strings.HasSuffix(all.String(), plain) || !utf8.ValidString(plain) {
			t.Errorf("%.20q: %d bytes of text kept", text, n)
		}
	}
	// A sequence or string that never ends does not hide what follows for ever.
	var s screen
	s.feed([]byte("\x1b["+strings.Repeat("1", sequenceRunes+1)+"visible"), limit)
	if got := string(s.line); got != "visible" {
		t.Errorf("%q", got)
	}
	s = screen{}
	s.feed([]byte("\x1b]"+strings.Repeat("x", stringRunes+1)+"visible"), limit)
	if got := string(s.line); got != "visible" {
		t.Errorf("%.40q", got)
	}
}
