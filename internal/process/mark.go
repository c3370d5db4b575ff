package process

import (
	"crypto/rand"
	"os"
	"runtime"
	"strings"
)

// MarkVar is the environment variable that marks the processes of a tree. What a
// process starts inherits it, also if it leaves the group and its parents: so it
// is found where the system lets one look at the environment of processes, which
// is on Linux. Its value is the marks of all trees that a process is in, the
// outermost first, with colons between.
//
// If it is "-" in the environment of a child, the tree has no mark: what cuts
// itself loose from it then lives on. A process that removes the variable from its
// environment has the same effect for what it starts.
const MarkVar = "ACP_TREE"

// maxMarks bounds the marks in the environment of a process: trees within trees.
const maxMarks = 16

// A Mark marks the processes of a tree. "" marks none.
type Mark string

// Marked returns an environment, in which nil is that of this process, with a new
// mark in it, and the mark. On systems where marks cannot be found there is none,
// and the environment is returned as it is.
func Marked(env []string) ([]string, Mark) {
	if runtime.GOOS != "linux" {
		return env, ""
	}
	if env == nil {
		env = os.Environ()
	}
	was, out := "", make([]string, 0, len(env)+1)
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, MarkVar+"="); ok {
			was = value
			continue
		}
		out = append(out, v)
	}
	if was == "-" {
		return append(out, MarkVar+"=-"), ""
	}
	m := Mark(rand.Text())
	marks := append(strings.FieldsFunc(was, func(c rune) bool { return c == ':' }), string(m))
	return append(out, MarkVar+"="+strings.Join(marks[max(0, len(marks)-maxMarks):], ":")), m
}

// isIn reports whether an environment, as /proc has it, has a mark.
func (m Mark) isIn(environ string) bool {
	for v := range strings.SplitSeq(environ, "\x00") {
		if value, ok := strings.CutPrefix(v, MarkVar+"="); ok {
			for one := range strings.SplitSeq(value, ":") {
				if one == string(m) {
					return true
				}
			}
		}
	}
	return false
}
