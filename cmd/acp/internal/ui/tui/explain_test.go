package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// TestExplain holds that the reason in the data of an agent's error is shown, in the shapes that are in use.
func TestExplain(t *testing.T) {
	for _, data := range []string{
		`{"details":"the quota is used up"}`,
		`{"message":"{\"error\":{\"message\":\"the quota is used up\"}}"}`,
		`"the quota is used up"`,
	} {
		for _, code := range []int{jsonrpc.CodeInternalError, -32050} {
			err := fmt.Errorf("prompt: %w", &jsonrpc.Error{Code: code, Message: "Internal error", Data: json.RawMessage(data)})
			if got := explain(err); !strings.Contains(got, "Internal error: the quota is used up") {
				t.Errorf("%d, %s: %q", code, data, got)
			}
		}
	}
}

// TestTruncatedSaid: if a history breaks off, the reason why a session is not open says so, whatever the agent has answered.
func TestTruncatedSaid(t *testing.T) {
	for name, err := range map[string]error{
		"an error":  errors.New("the disk is full"),
		"a failure": &acp.Failure{Message: "the disk is full"},
	} {
		got := explain(fmt.Errorf("restoring session s: %w", fmt.Errorf("%w: %w", acp.ErrTruncated, err)))
		if !strings.Contains(got, "the session's history is incomplete") || !strings.Contains(got, "the disk is full") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
