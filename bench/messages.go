package main

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// The texts are files so that the Go and the Node programs send the same.
var (
	//go:embed texts/code.txt
	codeText string // one escape per 8 to 11 bytes
	//go:embed texts/plain.txt
	plainText string // one escape per line
)

// promptText is what an ordinary round trip carries.
const promptText = "Fix the failing test in parser_test.go, please."

// diffPath and the halves of diffText make the 10 kB diff.
const (
	diffPath = "/home/user/project/internal/window/ring.go"
	diffSize = 10_000
)

// sessionID names the session of the i-th concurrent caller. Every caller has
// its own: a session has one prompt at a time.
func sessionID(i int) string { return fmt.Sprintf("sess-6f1c2a9e-%06d", i) }

// fill returns n bytes made by repeating text.
func fill(text string, n int) string {
	return strings.Repeat(text, n/len(text)+1)[:n]
}

// fileText returns the content of a file of n bytes.
func fileText(kind string, n int) string {
	if kind == "code" {
		return fill(codeText, n)
	}
	return fill(plainText, n)
}

// chunkText returns the text of a streamed chunk: words, as models emit them.
func chunkText(n int) string { return fill("the quick brown fox, then ", n) }

// diffTexts returns the old and the new text of the diff.
func diffTexts() (string, string) {
	s := fill(codeText, diffSize)
	return s[:diffSize/2], s[diffSize/2:]
}

// A command is what a prompt's text asks the agent to do before it answers.
// The text of a prompt that is none asks for nothing.
type command struct {
	verb string // updates, diffs, read, stats
	n    int    // how many updates, or bytes
	arg  string
}

func (c command) String() string {
	switch c.verb {
	case "stats":
		return "!stats"
	default:
		return fmt.Sprintf("!%s %d %s", c.verb, c.n, c.arg)
	}
}

// parseCommand reads the text of a prompt.
func parseCommand(text string) (command, bool) {
	if !strings.HasPrefix(text, "!") {
		return command{}, false
	}
	f := strings.Fields(text[1:])
	if len(f) == 0 {
		return command{}, false
	}
	c := command{verb: f[0]}
	if len(f) > 1 {
		c.n, _ = strconv.Atoi(f[1])
	}
	if len(f) > 2 {
		c.arg = f[2]
	}
	return c, true
}
