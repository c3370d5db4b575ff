package conformance

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestLeavesSlowly: a client that has closed the connection behind its turn may take
// a while to end, as on a busy machine.
func TestLeavesSlowly(t *testing.T) {
	for status, want := range map[int]Status{0: Unseen, 1: Fail} {
		synctest.Test(t, func(t *testing.T) {
			l := &link{closed: true, peer: &Peer{Wait: func(ctx context.Context) (int, error) {
				select {
				case <-time.After(3 * time.Second):
					return status, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			}}}
			err := (&guest{turns: 1}).excuse(l, failed("it closed the connection"), DefaultTimeout)
			if v, ok := errors.AsType[*verdict](err); !ok || v.status != want {
				t.Errorf("status %d: %v", status, err)
			}
		})
	}
}

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
