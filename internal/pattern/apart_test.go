package pattern

import (
	"strings"
	"testing"
)

// TestApart holds that what is and what was expected are spelled alike, and that where they
// differ is shown.
func TestApart(t *testing.T) {
	long := strings.Repeat("long ", 100)
	for _, tt := range []struct{ want, got, text string }{
		{`"☂ \ud83d\ude00 \ttab\u2028no end"`, `"☂ 😀 \ttab no end\n"`, `the frame is "☂ 😀 \ttab\u2028no end\n", expected "☂ 😀 \ttab\u2028no end"`},
		{`"a"`, `"\u0061\u200b"`, `the frame is "a\u200b", expected "a"`},
		{`"` + long + `x"`, `"` + long + `\ny"`, `the frame is …"long long long long \ny", expected …"long long long long x"`},
		{`"` + strings.Repeat("é", 30) + `x"`, `"` + strings.Repeat("é", 30) + `y"`, `the frame is …"éééééééééé` + `y", expected …"éééééééééé` + `x"`},
		{`"\udb40\udc01"`, `""`, `the frame is "", expected "\udb40\udc01"`},
		{`{"a": $x, "b": $x}`, `{"a":"one","b":"two"}`, `b is "two", expected $x ("one")`},
	} {
		want, err := Parse(tt.want)
		if err != nil {
			if want, _, err = Read(tt.want, 0, Pattern); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Parse(tt.got)
		if err != nil {
			t.Fatal(err)
		}
		bad := Match(want, got, Captures{})
		if bad == nil || bad.Error() != tt.text {
			t.Errorf("%v\nwant %s", bad, tt.text)
		}
	}
}
