package grant

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"path/filepath"

	"github.com/goacp/acp/acphost"
)

// maxWords bounds the words of a command whose links are followed.
const maxWords = 256

// A Target is where the paths of a request lead. Two are equal if no link that matters for the
// request has changed in between.
type Target [sha256.Size]byte

// TargetOf returns where a request leads now: its files, its directory, and the words of its
// command that may be files. A program that has only a name is looked up elsewhere, and does not
// count. Of a command the first 256 words count.
func TargetOf(p *acphost.Policy, r acphost.Request) (t Target) {
	h := sha256.New()
	add := func(path string) {
		path = real(p, path)
		_ = binary.Write(h, binary.BigEndian, uint64(len(path))) // a hash accepts everything
		_, _ = io.WriteString(h, path)
	}
	for _, path := range r.Paths {
		add(path)
	}
	add(r.Cwd)
	words := 0
	for _, part := range parts(p, r.Command) {
		dir := in(r.Cwd, part.Dir.Text)
		for i, word := range part.Words {
			if words++; words > maxWords {
				break
			}
			if word.Open || word.Text == "" || i == 0 && filepath.Base(word.Text) == word.Text {
				continue
			}
			add(in(dir, word.Text))
		}
	}
	return Target(h.Sum(nil))
}

func parts(p *acphost.Policy, command string) []acphost.CommandPart {
	if p.Commands == nil || command == "" {
		return nil
	}
	return p.Commands.ParseCommand(command).Parts
}

// in returns a path that may be relative to a directory.
func in(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// real returns where a path leads, or the path itself if that is unknown.
func real(p *acphost.Policy, path string) string {
	resolve := p.Resolve
	if resolve == nil {
		resolve = acphost.ResolvePath
	}
	if at, err := resolve(path); err == nil {
		return at
	}
	return filepath.Clean(path)
}
