package acphost

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/jsonrpc"
)

func TestMain(m *testing.M) {
	leaktest.Main(m)
}

// answer returns the code and the data with which an error is answered.
func answer(t *testing.T, err error) (code int, data map[string]any) {
	t.Helper()
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is not an answer", err)
	}
	if e.Data != nil {
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
	}
	return e.Code, data
}
