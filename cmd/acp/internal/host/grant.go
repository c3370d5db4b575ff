package host

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
)

// Bounds of what is remembered of what was allowed, rejected and done in a turn. Beyond maxGranted acts
// of a sort the user is asked again. An act that takes more than maxKey bytes is remembered by its
// SHA-256 sum, so that a session remembers about 3 MiB at most.
const (
	maxGranted = 1024
	maxKey     = 512
)

// granted is what was decided about acts that this program carries out for the agent: agents ask and
// then have it done by us, and neither allowing nor rejecting it is asked for twice. “Once” is for one
// time, and for what was asked about to the letter: for anything else it is as if nothing had been
// asked. Everything but what is kept is for the turns that run. The zero value has nothing.
type granted struct {
	left   map[string]int  // how often it may be done, below 0 for as long as the turns run
	denied map[string]int  // how often it is refused without a question, likewise
	kept   map[string]bool // what may be done for as long as the session is open

	through map[string]bool // what was done by us
	barred  map[string]bool // what we refused to do
	matched map[string]bool // what of that a tool call was told of
}

// clear forgets what was for the turns that run.
func (g *granted) clear() { g.left, g.denied, g.through, g.barred, g.matched = nil, nil, nil, nil, nil }

// grant notes that something may be done, once or always.
func (g *granted) grant(what string, always bool) {
	delete(g.denied, what)
	count(&g.left, what, always)
}

// deny notes that something must not be done, the next time or always.
func (g *granted) deny(what string, always bool) {
	delete(g.left, what)
	delete(g.kept, what)
	count(&g.denied, what, always)
}

func count(counts *map[string]int, what string, always bool) {
	n, has := (*counts)[what]
	switch {
	case !has && len(*counts) >= maxGranted:
		return
	case always || n < 0:
		n = -1
	default:
		n++
	}
	if *counts == nil {
		*counts = map[string]int{}
	}
	(*counts)[what] = n
}

// keep notes that something may be done for as long as the session is open.
func (g *granted) keep(what string) { note(&g.kept, what) }

func note(set *map[string]bool, what string) {
	if len(*set) >= maxGranted {
		return
	}
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[what] = true
}

// take reports whether something may be done, and takes one time away.
func (g *granted) take(what string) bool { return g.kept[what] || uncount(g.left, what) }

// takeDenied reports whether something was rejected, and takes one time away.
func (g *granted) takeDenied(what string) bool { return uncount(g.denied, what) }

func uncount(counts map[string]int, what string) bool {
	n := counts[what]
	switch {
	case n == 1:
		delete(counts, what)
	case n > 1:
		counts[what] = n - 1
	}
	return n != 0
}

// The sorts of acts.
const (
	sortRead  = "read"
	sortWrite = "write"
	sortRun   = "run"
)

// keyOf names an act for the comparison with others.
func keyOf(sort, what string) string {
	if len(what) > maxKey {
		sum := sha256.Sum256([]byte(what))
		what = "\x00" + hex.EncodeToString(sum[:]) // which no path and no directory begins with
	}
	return sort + "\x00" + what
}

func writing(path string) string { return keyOf(sortWrite, fileOf(path)) }

func reading(path string) string { return keyOf(sortRead, fileOf(path)) }

func isOf(sort, what string) bool { return strings.HasPrefix(what, sort+"\x00") }

func isReading(what string) bool { return isOf(sortRead, what) }

// fileOf is the file that a path leads to. What a link leads to may change: then it is another one.
func fileOf(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	// The file may be new.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return filepath.Clean(path)
}

// running is a command in a directory. The same script is the same act with and without a shell
// around it, and where it changes into the directory itself.
func running(p *acphost.Policy, command, cwd string) string {
	cwd = filepath.Clean(cwd)
	command = p.NormalCommand(command)
	for range maxChanges {
		dir, rest, ok := changesTo(p, command)
		if !ok {
			break
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(cwd, dir)
		}
		if dir = filepath.Clean(dir); dir != cwd && !joined(rest) {
			break // part of it would run elsewhere if the directory were not there
		}
		command, cwd = p.NormalCommand(rest), dir
	}
	return keyOf(sortRun, fileOf(cwd)+"\x00"+command)
}

// maxChanges bounds the changes of the directory at the beginning of a line that are followed.
const maxChanges = 4

// changesTo returns the directory that a line in its normal form, such as "cd dir&&rest", changes to
// first, and the rest.
func changesTo(p *acphost.Policy, line string) (dir, rest string, ok bool) {
	if p.Commands == nil || !strings.HasPrefix(line, "cd ") {
		return "", "", false
	}
	parsed := p.Commands.ParseCommand(line)
	if len(parsed.Parts) < 2 || parsed.Normal != line {
		return "", "", false
	}
	cd := parsed.Parts[0]
	if len(cd.Words) != 2 || cd.Words[0].Text != "cd" || cd.Words[1].Open || len(cd.Sets) > 0 {
		return "", "", false
	}
	if dir = cd.Words[1].Text; dir == "" || dir[0] == '-' || dir[0] == '~' {
		return "", "", false
	}
	rest, ok = strings.CutPrefix(line, cd.Source+"&&")
	return dir, rest, ok
}

// joined reports whether a line is nothing but commands of which each needs the one before. It may not
// see that it is, as where a word has a semicolon in it.
func joined(line string) bool {
	return !strings.Contains(line, "||") && !strings.ContainsAny(strings.ReplaceAll(line, "&&", ""), ";&\n\r")
}

// grants returns what a request that was decided is about, of what the agent can have done by us. What
// a tool of another kind says it would run was not what was decided.
func grants(p *acphost.Policy, r acphost.Request) (list []string) {
	switch acp.ToolKind(r.Kind) {
	case acp.ToolKindRead, acp.ToolKindSearch:
		for _, path := range r.Paths {
			if filepath.IsAbs(path) {
				list = append(list, reading(path))
			}
		}
	case acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove:
		for _, path := range r.Paths {
			if filepath.IsAbs(path) {
				list = append(list, writing(path))
			}
		}
	case acp.ToolKindExecute, acp.ToolKindOther, "":
		if command, _ := r.Shows(); command != "" {
			list = append(list, running(p, command, r.Cwd))
		}
	}
	return list
}
