package hop

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/goacp/acp/jsonrpc"
)

// TestFrames holds what frames look like, whatever they are made of.
func TestFrames(t *testing.T) {
	for _, tt := range []struct {
		got  []byte
		want string
	}{
		{Request(1, "a/b", json.RawMessage(`{"x":1}`)), `{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x":1}}`},
		{Request(0, "a\"\n", nil), `{"jsonrpc":"2.0","method":"a\"\n"}`},
		{Answer(7, json.RawMessage(`[]`), nil), `{"jsonrpc":"2.0","id":7,"result":[]}`},
		{Answer(7, nil, nil), `{"jsonrpc":"2.0","id":7,"result":null}`},
		{Answer(7, nil, jsonrpc.Errorf(-32000, "no")), `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no"}}`},
		{Answer(7, nil, errors.New("lost")), `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"lost"}}`},
	} {
		if string(tt.got) != tt.want || !json.Valid(tt.got) {
			t.Errorf("%s, want %s", tt.got, tt.want)
		}
	}
}
