package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
)

// A recorded call is one that models make, with the outcome that it must have. The files in
// testdata/calls have them in this form:
//
//	=== TOOL OUTCOME [FLAGS] | what is odd about it | OWNER/REPOSITORY#NUMBER, or -
//	--- before [FILE]
//	the file when the tool is used; the file is f unless it is named
//	--- read
//	the file when the model has read it, if that was another text
//	--- input
//	a JSON value, or a patch
//	--- after [FILE]
//	the file then
//	--- gone [FILE]
//	there is no such file then
//	--- says
//	a part of what the model is told
//
// The outcome is applied or refused: a call that is refused changes nothing. The reference is
// a public report of such a call. Flags are crlf, for files whose lines end with it, and
// bare, bare-before and bare-after, for those whose last line has no end.
type recordedCall struct {
	tool, outcome, name, ref string
	flags                    []string
	input                    string
	before, after            map[string]string
	gone                     []string
	read, says               string
}

var callPart = regexp.MustCompile(`^--- (before|read|input|after|gone|says)(?: (.+))?$`)

// recordedCalls reads the calls of a file.
func recordedCalls(t *testing.T, file string) []*recordedCall {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []*recordedCall
	for _, one := range strings.Split("\n"+string(data), "\n=== ")[1:] {
		head, body, _ := strings.Cut(strings.TrimRight(one, "\n"), "\n")
		fields := strings.Split(head, " | ")
		words := strings.Fields(fields[0])
		if len(fields) != 3 || len(words) < 2 {
			t.Fatalf("%s: %q", file, head)
		}
		c := &recordedCall{
			tool: words[0], outcome: words[1], flags: words[2:], name: fields[1], ref: fields[2],
			before: map[string]string{}, after: map[string]string{},
		}
		var kind, name string
		var lines []string
		flush := func() {
			c.set(kind, name, lines)
			lines = nil
		}
		for _, l := range strings.Split(body, "\n") {
			if m := callPart.FindStringSubmatch(l); m != nil {
				flush()
				kind, name = m[1], m[2]
				continue
			}
			lines = append(lines, l)
		}
		flush()
		all = append(all, c)
	}
	return all
}

func (c *recordedCall) set(kind, name string, lines []string) {
	if name == "" {
		name = "f"
	}
	text := strings.Join(lines, "\n")
	if len(lines) > 0 {
		text += "\n"
	}
	written := text
	if slices.Contains(c.flags, "crlf") {
		written = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if slices.Contains(c.flags, "bare") || slices.Contains(c.flags, "bare-"+kind) {
		written = strings.TrimRight(written, "\r\n")
	}
	switch kind {
	case "before":
		c.before[name] = written
	case "read":
		c.read = written
	case "after":
		c.after[name] = written
	case "gone":
		c.gone = append(c.gone, name)
	case "input":
		c.input = text
	case "says":
		c.says = strings.TrimSuffix(text, "\n")
	}
}

// json returns the input as a model sends it.
func (c *recordedCall) json(t *testing.T) json.RawMessage {
	t.Helper()
	in := strings.TrimSpace(c.input)
	if strings.IndexByte(`{["`, (in + " ")[0]) >= 0 {
		return json.RawMessage(in)
	}
	data, err := json.Marshal(PatchInput{c.input})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// changed says what is not as it must be after a call; "" if nothing is.
func (c *recordedCall) changed(dir string) string {
	want := c.after
	if c.outcome == "refused" {
		want = c.before
	}
	for name, text := range want {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != text {
			return fmt.Sprintf("%s is %q, %v, want %q", name, data, err, text)
		}
	}
	gone := c.gone
	if _, ok := want["f"]; !ok {
		gone = append(gone, "f")
	}
	for _, name := range gone {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return name + " is there"
		}
	}
	return ""
}

// use makes a call as the agent does, after the model has read the file. done says that the
// call has done something, or said so.
func (c *recordedCall) use(t *testing.T, b *bench, use func(Tool, string) Result) (done bool, said string) {
	t.Helper()
	b.cwd = t.TempDir()
	for name, text := range c.before {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(b.cwd, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		b.write(t, name, text)
	}
	if c.read != "" {
		b.write(t, "f", c.read)
	}
	for name := range c.before {
		in, err := json.Marshal(ReadInput{Path: name})
		if err != nil {
			t.Fatal(err)
		}
		use(Read, string(in))
	}
	if c.read != "" {
		b.write(t, "f", c.before["f"])
	}
	tool := Patch
	for _, t := range All() {
		if t.Name == c.tool {
			tool = t
		}
	}
	input, schema := c.json(t), resolved(t, tool)
	if !allows(schema, input) {
		given := input
		if input = Mend(tool, input); !allows(schema, input) {
			patch, ok := AsPatch(tool, given)
			if !ok {
				return false, Wrong(tool, given)
			}
			tool, input = Patch, patch
		}
	}
	res := use(tool, string(input))
	return res.Status == acp.ToolCallStatusCompleted, res.Said + "\n" + res.Text
}

// TestRecordedCalls: of all recorded calls, none changes what it must not, or says that it was done
// without that; and nearly all are done that can only mean one thing.
func TestRecordedCalls(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	files, err := filepath.Glob("testdata/calls/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	b := &bench{cwd: t.TempDir(), served: new(served.Record)}
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	all, reported, applied := 0, 0, 0
	var wrong, wasted []string
	refs, names := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		for _, c := range recordedCalls(t, file) {
			id := filepath.Base(file) + ": " + c.tool + ": " + c.name + " (" + c.ref + ")"
			if names[id] {
				t.Errorf("%s: there are two", id)
			}
			all, names[id] = all+1, true
			if c.ref != "-" {
				reported++
				refs[c.ref] = true
			}
			done, said := c.use(t, b, use)
			changed := c.changed(b.cwd)
			switch {
			case c.outcome == "applied" && !done:
				wasted = append(wasted, id+": "+said)
				applied++
			case c.outcome == "applied":
				applied++
				if changed != "" {
					wrong = append(wrong, id+": "+changed)
				}
			case c.outcome != "refused":
				t.Fatalf("%s: the outcome is %q", id, c.outcome)
			case done || changed != "":
				wrong = append(wrong, id+": "+said+": "+changed)
			}
			if (done || c.outcome == "refused") && !strings.Contains(said, c.says) {
				t.Errorf("%s: it says %q, not %q", id, said, c.says)
			}
			if strings.Contains(said, "reflect.Value") {
				t.Errorf("%s: it says %q", id, said)
			}
		}
	}
	for _, w := range wrong {
		t.Errorf("WRONG %s", w)
	}
	t.Logf("%d calls, %d of them from %d public reports: %d must be applied, %d wrong, %d wasted", all, reported, len(refs), applied, len(wrong), len(wasted))
	for _, w := range wasted {
		t.Logf("wasted %s", w)
	}
	if all < 150 || len(refs) < 60 {
		t.Errorf("%d calls from %d reports", all, len(refs))
	}
	if 20*len(wasted) > applied {
		t.Errorf("%d of %d calls are wasted", len(wasted), applied)
	}
}
