package main

import (
	"flag"
	"io"
	"os"
	"strings"
	"testing"
)

// TestWrittenCommands has the program read the command lines that the Makefile and the documentation of
// the program give it, so that these do not name flags it has not.
func TestWrittenCommands(t *testing.T) {
	for _, file := range []string{"../Makefile", "main.go"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for line := range strings.Lines(string(data)) {
			if file == "../Makefile" && !strings.Contains(line, "cd bench &&") {
				continue // other programs
			}
			_, args, ok := strings.Cut(line, "go run .")
			if !ok || strings.HasPrefix(args, "/") { // ./harness has flags of its own
				continue
			}
			found++
			args, _, _ = strings.Cut(args, "#")
			args, _, _ = strings.Cut(args, "&&")
			set := flag.NewFlagSet("bench", flag.ContinueOnError)
			set.SetOutput(io.Discard)
			if _, err := parse(set, strings.Fields(args)); err != nil {
				t.Errorf("%s: go run .%s: %v", file, strings.TrimRight(args, "\n"), err)
			}
		}
		if found < 2 {
			t.Errorf("%s has %d command lines", file, found)
		}
	}
}
