package sqlite

import (
	"os"
	"testing"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
	}
	leaktest.Main(m)
}
