package acphost

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if left := leaked(); left != "" && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines left behind:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leaked returns the stacks of goroutines of this module that are still there
// after having had every chance to end.
func leaked() string {
	var left string
	for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
		buf := make([]byte, 4<<20)
		left = ""
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "goacp/acp/") && !strings.Contains(g, "TestMain(") {
				left += g + "\n\n"
			}
		}
		if left == "" || time.Now().After(end) {
			return left
		}
	}
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
