package process

import (
	"crypto/rand"
	"os"
	"strings"
)

// MarkVar is the environment variable that marks the processes of a tree. Whatever a
// process starts inherits the variable, so on Linux, where environments can be read,
// a process is found even if it has left the group and its parents have ended. The
// value lists the marks of all trees that the process is in, the outermost first,
// separated by colons.
//
// The tree of a child whose environment sets the variable to [NoMark] has no mark:
// processes of the tree that move to a session of their own, as daemons and browsers
// do, outlive it. The same holds for a process that removes the variable from its
// environment, once its parents have ended.
const MarkVar = "ACP_TREE"

// NoMark is the value of [MarkVar] for trees without a mark.
const NoMark = "-"

// maxMarks bounds how many marks a process has, one for each tree that it is in. The
// innermost marks are kept.
const maxMarks = 16

// A Mark identifies the processes of a tree. The zero value is the mark of no process.
type Mark struct {
	text  string // "" without a mark, see NoMark
	since int64  // a listing of processes from before the tree was started; see looker
}

// String returns the part of the value of [MarkVar] that is this mark, or "".
func (m Mark) String() string { return m.text }

// Marked adds a new mark to an environment and returns both. A nil environment is that
// of this process. If the environment asks for no mark, see [NoMark], or the system
// offers no way to find marks, no process has the mark.
func Marked(env []string) ([]string, Mark) {
	if !Numbered() {
		return env, Mark{}
	}
	if env == nil {
		env = os.Environ()
	}
	was, out := "", Unmarked(env)
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, MarkVar+"="); ok {
			was = value
		}
	}
	if was == NoMark {
		return append(out, MarkVar+"="+NoMark), newMark("")
	}
	m := newMark(rand.Text())
	marks := append(strings.FieldsFunc(was, func(c rune) bool { return c == ':' }), m.text)
	return append(out, MarkVar+"="+strings.Join(marks[max(0, len(marks)-maxMarks):], ":")), m
}

// Unmarked returns an environment without [MarkVar]: for what belongs to the user, such
// as what a login starts.
func Unmarked(env []string) []string {
	out := make([]string, 0, len(env)+1)
	for _, v := range env {
		if !strings.HasPrefix(v, MarkVar+"=") {
			out = append(out, v)
		}
	}
	return out
}

// isIn reports whether the mark is one of marks, which colons separate.
func (m Mark) isIn(marks string) bool {
	for one := range strings.SplitSeq(marks, ":") {
		if one != "" && one == m.text {
			return true
		}
	}
	return false
}
