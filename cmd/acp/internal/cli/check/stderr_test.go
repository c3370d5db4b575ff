package check

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestForward holds that what is for standard error is taken out of a stream, however
// the stream is cut, and that nothing else is touched.
func TestForward(t *testing.T) {
	var sent bytes.Buffer
	noise := &stderrOf{&sent}
	frames := ""
	frame := func(s string) { sent.WriteString(s); frames += s }
	say := func(s string) {
		if n, err := noise.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	said := "first\n\x00acp check stderr 3\n" + strings.Repeat("x", 100_000) + "no end"
	say(said[:6])
	frame("{\"a\":\"\x00\"}\n\n")
	say(said[6:])
	frame("{}\n")
	say("")
	frame("half\x00")
	for name, r := range map[string]io.Reader{
		"whole": &sent, "bytes": iotest.OneByteReader(bytes.NewReader(sent.Bytes())), "halves": iotest.HalfReader(bytes.NewReader(sent.Bytes())),
	} {
		var out, stderr strings.Builder
		if err := forward(&out, &stderr, r); err != nil || out.String() != frames || stderr.String() != said {
			t.Errorf("%s: %v, %q, %d bytes of %d on standard error", name, err, out.String(), stderr.Len(), len(said))
		}
	}
	for _, bad := range []string{errorMark + "x\n", errorMark + "-1\n", errorMark + "5\nabc", errorMark} {
		if err := forward(io.Discard, io.Discard, strings.NewReader(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
