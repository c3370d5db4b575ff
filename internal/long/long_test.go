package long

import "testing"

// TestLeftOut: a test that takes long is skipped unless all are to run.
func TestLeftOut(t *testing.T) {
	for value, runs := range map[string]bool{"": false, "some": false, "all": true} {
		t.Run("ACP_TESTS="+value, func(t *testing.T) {
			t.Setenv("ACP_TESTS", value)
			defer func() {
				if t.Skipped() == runs || All() != runs {
					t.Errorf("skipped %t, all %t", t.Skipped(), All())
				}
			}()
			Test(t)
		})
	}
}
