package conformance

import (
	"testing"
	"testing/synctest"
)

// TestDeclined: a client that does not let agents write or run anything, as its
// user wants, is not to blame; one that does not understand how it is asked is.
func TestDeclined(t *testing.T) {
	for code, want := range map[string]Status{"-32603": Unseen, "-32000": Unseen, "-32602": Fail, "-32601": Fail} {
		for method, rule := range map[string]string{"fs/write_text_file": "client/fs/written", "terminal/create": "client/terminal/cwd"} {
			synctest.Test(t, func(t *testing.T) {
				report, err := CheckClient(t.Context(), acceptClient(onRequest(method, refuse(code))), Options{Versions: []int{1}, Only: []string{rule}})
				if err != nil {
					t.Fatal(err)
				}
				if r := report.Result(rule, 1); r == nil || r.Status != want {
					t.Errorf("%s refused with %s: %+v, want %s", method, code, r, want)
				}
			})
		}
	}
}
