//go:build unix

package page

import (
	"path/filepath"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m, chromium.Close) }

// screens is where the pictures of the documentation are.
func screens(name string) string {
	return filepath.Join("..", "..", "..", "..", "..", "docs", "screens", name)
}
