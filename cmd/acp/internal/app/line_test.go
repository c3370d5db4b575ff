package app

import (
	"context"
	"os"
	"testing"
)

// TestReadLine: a question ends with its context.
func TestReadLine(t *testing.T) {
	in, type_, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer type_.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if text, err := ReadLine(ctx, in); text != "" || err != nil {
		t.Error(text, err)
	}
}
