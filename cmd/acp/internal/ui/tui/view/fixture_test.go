package view

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// conversation folds updates, one JSON object a line.
func conversation(t testing.TB, updates string) *transcript.Conversation {
	t.Helper()
	c := transcript.New(transcript.Config{})
	apply(t, c, updates)
	return c
}

func apply(t testing.TB, c *transcript.Conversation, updates string) (changes []transcript.Change) {
	t.Helper()
	for l := range strings.SplitSeq(updates, "\n") {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		u, err := acpv2.UnmarshalSessionUpdate([]byte(l))
		if err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		changes = append(changes, c.Apply(u))
	}
	return changes
}

func quote(s string) string { b, _ := json.Marshal(s); return string(b) }

// drawAll returns all lines of a transcript.
func drawAll(tr *Transcript) []string {
	for !tr.Layout(time.Hour) {
	}
	return tr.Lines(0, tr.Height())
}

func plainTheme() *Theme { return NewTheme(standard, true, colorprofile.NoTTY) }
func fullTheme() *Theme  { return NewTheme(standard, true, colorprofile.TrueColor) }

// sequences are those that lines may hold.
var sequences = regexp.MustCompile("\x1b\\[[0-9;]*m|\x1b]8;;[!-~]*\a")

const examplePatch = `diff --git a/w/main.go b/w/main.go
--- a/w/main.go
+++ b/w/main.go
@@ -8,7 +8,8 @@ func main() {
 	ctx := context.Background()
-	result, err := run(ctx, os.Args)
+	result, err := run(ctx, os.Args[1:])
 	if err != nil {
-		panic(err)
+		fmt.Fprintln(os.Stderr, err)
+		os.Exit(1)
 	}
 	fmt.Println(result)
 }
@@ -40,3 +41,3 @@ func run() {
 a
-b
+c
 d
`
