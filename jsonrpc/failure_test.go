package jsonrpc_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/jsonrpc"
)

// TestFailure: errors.As finds a Failure in what a handler returns and in what a peer
// answers, and nothing is a Failure that is not of the application.
func TestFailure(t *testing.T) {
	full := jsonrpc.Failure{Code: -32050, Message: "slow down", Reason: "rate_limit", RetryAfter: 1500 * time.Millisecond, Scope: "account"}
	for _, x := range []struct {
		name string
		err  error
		want *jsonrpc.Failure
	}{
		{"returned", fmt.Errorf("model: %w", &full), &full},
		{"received", fmt.Errorf("prompt: %w", full.Unwrap()), &full},
		{"received without data", jsonrpc.Errorf(-32099, "no"), &jsonrpc.Failure{Code: -32099, Message: "no"}},
		{"received with other data", &jsonrpc.Error{Code: -32001, Data: json.RawMessage(`"x"`)}, &jsonrpc.Failure{Code: -32001}},
		{"a time that is no time", &jsonrpc.Error{Code: -32001, Data: json.RawMessage(`{"retryAfter":1e300}`)}, &jsonrpc.Failure{Code: -32001, RetryAfter: 1 << 31 * time.Second}},
		{"a time in the past", &jsonrpc.Error{Code: -32001, Data: json.RawMessage(`{"retryAfter":-1}`)}, &jsonrpc.Failure{Code: -32001}},
		{"a code of the protocol", jsonrpc.ErrResourceNotFound, nil},
		{"another code of the protocol", jsonrpc.ErrUnsupportedVersion, nil},
		{"a code of JSON-RPC", jsonrpc.ErrInternal, nil},
		{"what failed here", fmt.Errorf("send: %w", jsonrpc.ErrClosed), nil},
		{"none", nil, nil},
	} {
		var got *jsonrpc.Failure
		if errors.As(x.err, &got) != (x.want != nil) {
			t.Errorf("%s: %v", x.name, got)
		}
		if diff := cmp.Diff(x.want, got); diff != "" {
			t.Errorf("%s: %s", x.name, diff)
		}
	}
	for code, sent := range map[int]int{-32050: -32050, 0: -32001, 7: -32001, jsonrpc.CodeResourceNotFound: -32001} {
		said, ok := errors.AsType[*jsonrpc.Error](error(&jsonrpc.Failure{Code: code, Message: "m"}))
		if !ok || said.Code != sent || said.Message != "m" {
			t.Errorf("code %d is sent as %+v", code, said)
		}
	}
}
