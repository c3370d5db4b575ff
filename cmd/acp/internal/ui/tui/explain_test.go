package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

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
