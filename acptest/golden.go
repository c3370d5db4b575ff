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

// updateFlag is the name everybody uses.
const updateFlag = "update"

// UpdateFlag defines the flag -update, which makes [Golden] rewrite its files,
// unless the flag exists. It has to be called before flags are parsed:
//
//	var _ = acptest.UpdateFlag()
//
// Importing this package defines no flag, so that it does not get in the way of
// a test, or of a library it uses, that has a flag -update of its own; Golden
// uses that one then.
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

// Golden compares the transcript of a recording, [Recording.String], with the
// file testdata/name.golden, and with -update writes it there: see [UpdateFlag].
// Take the recording when the conversation is over. Frames of the two directions
// that may cross each other come in any order; in a testing/synctest bubble they
// usually do not.
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
	want, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		tb.Fatalf("acptest: there is no %s; %s:\n%s", file, hint, got)
	} else if err != nil {
		tb.Fatal(err)
	}
	if d := difference(strings.ReplaceAll(string(want), "\r\n", "\n"), got); d != "" {
		tb.Errorf("acptest: the conversation differs from %s; %s:\n%s", file, hint, d)
	}
}
