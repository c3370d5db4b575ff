package acphost

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// readingParser reads each line as one part, whose words but the first are files. Marks in front of a word say how it is
// read: * deep, > written.
type readingParser struct{}

func (readingParser) ParseCommand(line string) (out CommandLine) {
	part := CommandPart{Source: line, Harmless: &CommandReads{}}
	for i, text := range strings.Fields(line) {
		mark := text[0]
		if strings.IndexByte("*>", mark) >= 0 {
			text = text[1:]
		}
		w := CommandWord{Text: text, Source: text}
		switch {
		case i == 0:
			part.Words = append(part.Words, w)
		case mark == '>':
			part.Writes = append(part.Writes, w)
		default:
			part.Harmless.Files = append(part.Harmless.Files, CommandFile{CommandWord: w, Deep: mark == '*'})
		}
	}
	if part.Words[0].Text == "unknown" {
		part.Harmless = nil
	}
	if part.Words[0].Text == "git" {
		part.Harmless.Settings = "git"
	}
	return CommandLine{Parts: []CommandPart{part}, Normal: line}
}

// TestHarmless: what a line reads is looked at on this machine.
func TestHarmless(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nothing is harmless there")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	for name, text := range map[string]string{"a.go": "", "sub/b.go": "", "keys/.env": "", "keys/.e\u200cnv": "", "rest/.git/config": "[remote \"o\"]\n\turl = https://u:secret@h/\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Skip("no links here")
	}
	p, err := NewPolicy(Rule{Effect: EffectDeny, Kinds: []string{"read"}, Paths: []string{"**/b.go"}})
	if err != nil {
		t.Fatal(err)
	}
	p.Commands = readingParser{}
	for line, harmless := range map[string]bool{
		"cat a.go": true, "cat none": true, "cat": true, "cat " + outside + "/f": false, "cat out/f": false, "cat ../x": false,
		"cat keys/.env": false, "grep *keys": false, "grep *rest": false, "grep *sub": false, "cat sub/b.go": false, "cat keys/.e\u200cnv": false, "cat a.go >x": false, "unknown a.go": false,
		"git a.go": true,
	} {
		got := p.Harmless(Request{Kind: "execute", Command: line, Cwd: dir}, dir)
		if (got.Why == "") != harmless {
			t.Errorf("%s: %q", line, got.Why)
		}
		if line == "git a.go" && (len(got.Git) != 1 || len(got.Programs) != 1) {
			t.Errorf("%+v", got)
		}
	}
	if got := p.Harmless(Request{Kind: "execute", Command: "cat a.go", Cwd: "relative"}, dir); got.Why == "" {
		t.Error("a directory that is not known")
	}
	if got := new(Policy).Harmless(Request{Kind: "execute", Command: "cat a.go", Cwd: dir}, dir); got.Why == "" {
		t.Error("a line that nobody has read")
	}
}
