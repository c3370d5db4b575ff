package web

import (
	"os"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/web/source"
)

// TestFresh: the page that is committed was made of the sources that are. Whether it is what they make, to the byte, is
// looked at by bundle -check, which needs the network.
func TestFresh(t *testing.T) {
	sum, err := source.Sum(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if made, err := os.ReadFile("assets/bundle.sum"); err != nil || strings.TrimSpace(string(made)) != sum {
		t.Error("the page is not the one of its sources: run go generate ./cmd/acp/internal/web", err)
	}
}
