package acptest

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// updateFlag is the customary name.
const updateFlag = "update"

// UpdateFlag defines the flag -update, which makes [Golden] rewrite its files, unless
// the flag exists already. It must be called before flags are parsed:
//
//	var _ = acptest.UpdateFlag()
//
// Importing this package alone defines no flag, so that tests and libraries may define
// their own flag -update. Golden then uses that one.
func UpdateFlag() bool {
	if flag.Lookup(updateFlag) == nil {
		flag.Bool(updateFlag, false, "rewrite golden files")
	}
	return true
}

// updating reports whether -update was given, and exists.
func updating() (on, exists bool) {
	f := flag.Lookup(updateFlag)
	if f == nil {
		return false, false
	}
	if g, ok := f.Value.(flag.Getter); ok {
		on, _ = g.Get().(bool)
	}
	return on, true
}

// Golden compares the transcript of a recording, [Recording.String], with the file
// testdata/name.golden. With -update it writes the file: see [UpdateFlag]. Call Golden
// when the conversation has ended.
//
// The frames of each side must be in the same order. Where frames of the two sides cross
// differs from run to run, even in a testing/synctest bubble, and does not count. A test
// that is about such an order calls [testing/synctest.Wait] between its steps and
// examines [Recording.Frames].
func Golden(tb testing.TB, name string, rec *Recording) {
	tb.Helper()
	if !filepath.IsLocal(name) {
		tb.Fatalf("acptest: %q is no name for a golden file", name)
	}
	if _, lost := rec.Frames(); lost > 0 {
		tb.Errorf("acptest: the recording lacks %d frames that were beyond its bounds", lost)
	}
	file := filepath.Join("testdata", filepath.FromSlash(name)+".golden")
	got := rec.String()
	want, err := os.ReadFile(file)
	if err == nil && sameButCrossed(rec, strings.ReplaceAll(string(want), "\r\n", "\n")) {
		return
	}
	on, exists := updating()
	if on {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			tb.Fatal(err)
		}
		return
	}
	hint := "run the test with -update to accept it"
	if !exists {
		hint = "add var _ = acptest.UpdateFlag() to the test and run it with -update to accept it"
	}
	if errors.Is(err, fs.ErrNotExist) {
		tb.Fatalf("acptest: there is no %s; %s:\n%s", file, hint, got)
	} else if err != nil {
		tb.Fatal(err)
	}
	if d := difference(strings.ReplaceAll(string(want), "\r\n", "\n"), got); d != "" {
		tb.Errorf("acptest: the conversation differs from %s; %s:\n%s", file, hint, d)
	}
}

// sameButCrossed reports whether a recording reads as want does once the frames of
// the two sides are put into the order that they have there.
func sameButCrossed(rec *Recording, want string) bool {
	frames, _ := rec.Frames()
	outIsClient := clientIsOut(frames)
	var client, agent []Recorded
	for _, f := range frames {
		if f.Out == outIsClient {
			client = append(client, f)
		} else {
			agent = append(agent, f)
		}
	}
	ordered := make([]Recorded, 0, len(frames))
	for line := range strings.Lines(want) {
		from := &agent
		if strings.HasPrefix(line, clientArrow) {
			from = &client
		}
		if len(*from) == 0 {
			return false
		}
		ordered = append(ordered, (*from)[0])
		*from = (*from)[1:]
	}
	return len(ordered) == len(frames) && transcript(ordered) == want
}
