package export

import "testing"

func TestOutputText(t *testing.T) {
	for raw, want := range map[string]string{
		`"a\nb"`: "a\nb",
		`{"formatted_output":"ok\n","exit_code":0,"stdout":"x"}`: "ok\n",
		`{"exit_code":0,"output":"out"}`:                         "out",
		`{"formatted_output":"","stdout":"x"}`:                   "x",
		`{"output":{"a":1}}`:                                     `{"output":{"a":1}}`,
		`{"content":"a\nb","detailedContent":"diff"}`:            "a\nb",
		`[1]`:  "[1]",
		`null`: "",
	} {
		if got := OutputText([]byte(raw)); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
