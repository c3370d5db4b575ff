package agent

import (
	"strings"
	"testing"

	"github.com/goacp/acp/internal/standin"
)

// TestGrowingRequests: over a turn with thoughts, parallel tools and edits, and over the
// next one, each request begins with all bytes of the one before up to the end of its
// messages, in each interface. Nothing else is asked: no titles, no summaries.
func TestGrowingRequests(t *testing.T) {
	for _, api := range []string{"messages", "responses", "chat", "patches"} {
		t.Run(api, func(t *testing.T) {
			service := standin.New(standin.Options{Strict: true, Script: counting})
			defer service.Close()
			m, err := modelAt(api + " " + service.URL)
			if err != nil {
				t.Fatal(err)
			}
			k := start(t, 2, func(k *talk) { k.model = m })
			k.write("count.txt", "n=0;\n")
			k.tell("/mode full")
			k.tell("Count.")
			k.tell("Go on.")
			if got := k.read("count.txt"); got != "n=12;\n" {
				t.Errorf("the file is %q", got)
			}
			bodies := service.Bodies()
			if len(bodies) != 15 || len(service.Faults()) > 0 {
				t.Errorf("%d requests, refused: %v", len(bodies), service.Faults())
			}
			for i := 1; i < len(bodies); i++ {
				cut := strings.LastIndex(string(bodies[i-1]), "],")
				if !strings.HasPrefix(string(bodies[i]), string(bodies[i-1][:cut])) {
					t.Fatalf("request %d is not the beginning of the next one:\n%s\n\n%s", i, bodies[i-1], bodies[i])
				}
			}
			if n := len(bodies[0]); n > 6500 {
				t.Errorf("the first request has %d bytes", n)
			}
			t.Logf("the first request has %d bytes", len(bodies[0]))
		})
	}
}
