package check

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/conformance"
)

// TestGauge: what is known of the last line does not depend on how it came.
func TestGauge(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "",
		"whole\n":                          "",
		"whole\r\n\n \t":                   "",
		"login: ":                          `it sent "login: " and does not end the line`,
		"Welcome\n\x1b[1mlogin\x00\xff":    `it sent "\x1b[1mlogin\x00�" and does not end the line`,
		"{}\n" + strings.Repeat("x", 5000): `it sent 5000 bytes and does not end the line, which begins with "` + strings.Repeat("x", maxHead) + `"`,
		strings.Repeat("x", 1<<20):         `it sent 1024 kB and does not end the line, which begins with "` + strings.Repeat("x", maxHead) + `"`,
	} {
		for how, r := range map[string]io.Reader{
			"whole": strings.NewReader(text), "halves": iotest.HalfReader(strings.NewReader(text)), "bytes": iotest.OneByteReader(strings.NewReader(text)),
		} {
			g := &gauge{ReadCloser: io.NopCloser(r)}
			if n, err := io.Copy(io.Discard, g); n != int64(len(text)) || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
			if got := g.unfinished(); got != want {
				t.Errorf("%.40q, %s: %s, want %s", text, how, got, want)
			}
			if cap(g.head) > 2*maxHead {
				t.Errorf("%d bytes are kept", cap(g.head))
			}
		}
	}
	if size(20<<20) != "20 MB" || (*gauge)(nil).unfinished() != "" {
		t.Error(size(20 << 20))
	}
}

// TestUntried: what many rules could not be tried for is told once, and each by its rule if all is to
// be told.
func TestUntried(t *testing.T) {
	const why = "not tried: the agent says nothing"
	r := report(t)
	for range 10 {
		r.Results = append(r.Results, &conformance.Result{Rule: r.Results[0].Rule, Version: 1, Status: conformance.Broken, Why: why})
	}
	var out bytes.Buffer
	o := &Options{App: &app.App{Out: &out}, Side: conformance.Agent}
	for _, o.All = range []bool{false, true} {
		out.Reset()
		if err := o.print((*expected)(nil).judge(r)); err != nil {
			t.Fatal(err)
		}
		times, summary := strings.Count(out.String(), why), strings.Contains(out.String(), "10 rules could not be tried for the same reason")
		if o.All && (times != 10 || summary) || !o.All && (times != 1 || !summary) {
			t.Errorf("all %v: %d times, summary %v\n%s", o.All, times, summary, &out)
		}
		if !strings.Contains(out.String(), "it was gone") {
			t.Error("what one rule could not be tried for is not told")
		}
	}
}
