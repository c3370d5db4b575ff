package own

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzAnnounced: whatever is in the file that announces a server, it is one with an address, which can be announced again, or
// there is none.
func FuzzAnnounced(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"pid":1,"url":"unix:/run/acp.sock","started":"2026-01-02T03:04:05Z","background":true,"log":"/x"}`,
		`{"pid":1,"url":"http://127.0.0.1:7842/acp"}`, `{"url":"unix:"}`, `{"url":"http://"}`, `{"url":"http://[::1"}`, `{"url":3}`, `{"started":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, network, address, ok := decode(data)
		if !ok {
			if s != (Server{}) {
				t.Errorf("%+v, but none", s)
			}
			return
		}
		if network != "unix" && network != "tcp" || address == "" {
			t.Errorf("%q, %q of %q", network, address, s.URL)
		}
		raw, err := json.Marshal(s)
		if err != nil {
			return // a time that JSON has no words for
		}
		if again, _, _, ok := decode(raw); !ok || !cmp.Equal(s, again) {
			t.Errorf("%+v, then %+v", s, again)
		}
	})
}
