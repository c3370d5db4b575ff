package backend

import (
	"errors"
	"fmt"
	"testing"

	"github.com/goacp/acp/jsonrpc"
)

// TestRefused: what a gateway itself refuses is said in its words, without codes; all else is the agent's.
func TestRefused(t *testing.T) {
	answer := func(data string) error {
		return fmt.Errorf("prompt: %w", &jsonrpc.Error{Code: -32001, Message: "you are a viewer here: you cannot send prompts", Data: []byte(data)})
	}
	const words = "you are a viewer here: you cannot send prompts"
	for _, tt := range []struct {
		gateway bool
		err     error
		want    string
	}{
		{true, answer(`{"reason":"role"}`), words},
		{true, answer(`{"reason":"quota.prompts"}`), words},
		{false, answer(`{"reason":"role"}`), ""},
		{true, answer(`{"reason":"other"}`), ""},
		{true, answer(``), ""},
		{true, answer(`"role"`), ""},
		{true, errors.New("role"), ""},
		{true, nil, ""},
	} {
		h := new(Host)
		h.gateway.Store(tt.gateway) // as with --agent URL
		if got := h.refused(tt.err); got != tt.want {
			t.Errorf("%v, %v: %q", tt.gateway, tt.err, got)
		}
		if tt.want != "" {
			if got := h.coded("prompt", tt.err); got.Error() != "prompt: "+tt.want {
				t.Error(got)
			}
		}
	}
}
