package grant

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
)

// Bounds of a [Set]. Beyond maxGranted acts of a kind the user is asked again. An act whose key has
// more than maxKey bytes is remembered by its SHA-256 sum, so that a set needs about 2 MiB at most.
const (
	maxGranted = 1024
	maxKey     = 512
)

// A Set is what was decided about acts that are carried out for the agent in a session. Agents ask
// and then have the act done; neither allowing nor rejecting it needs a second question. “Once”
// holds for one time, and for exactly what was asked about: anything else is undecided. Acts are
// named by [Write], [Read] and [Run]. The zero value is empty. It is not safe for concurrent use.
type Set struct {
	left   map[string]int  // how often it may be done, below 0 for as long as the turns run
	denied map[string]int  // how often it is refused without a question, likewise
	kept   map[string]bool // what may be done for as long as the session is open
}

// Clear forgets what holds for the turns that run.
func (g *Set) Clear() { g.left, g.denied = nil, nil }

// Empty reports whether nothing was decided.
func (g *Set) Empty() bool { return len(g.left) == 0 && len(g.denied) == 0 && len(g.kept) == 0 }

// Allow records that something may be done, once or for as long as the turns run.
func (g *Set) Allow(what string, always bool) {
	delete(g.denied, what)
	count(&g.left, what, always)
}

// Deny records that something must not be done, the next time or for as long as the turns run.
func (g *Set) Deny(what string, always bool) {
	delete(g.left, what)
	delete(g.kept, what)
	count(&g.denied, what, always)
}

// count adds a time, or makes it as often as wanted. Beyond the bound of acts nothing is recorded,
// so that the user is asked again.
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

// Keep records that something may be done for as long as the session is open.
func (g *Set) Keep(what string) { Note(&g.kept, what) }

// Note adds an act to a set of up to 1,024 acts.
func Note(set *map[string]bool, what string) {
	if len(*set) >= maxGranted {
		return
	}
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[what] = true
}

// Take reports whether something may be done, and uses up one time.
func (g *Set) Take(what string) bool { return g.kept[what] || uncount(g.left, what) }

// TakeDenied reports whether something was rejected, and uses up one time.
func (g *Set) TakeDenied(what string) bool { return uncount(g.denied, what) }

// uncount uses up one time, and reports whether there was one.
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

// The kinds of acts.
const (
	SortRead  = "read"
	SortWrite = "write"
	SortRun   = "run"
)

// keyOf names an act for the comparison with others.
func keyOf(sort, what string) string {
	if len(what) > maxKey {
		sum := sha256.Sum256([]byte(what))
		what = "\x00" + hex.EncodeToString(sum[:]) // no path and no directory begins with that
	}
	return sort + "\x00" + what
}

// Write names the act of writing the file that a path leads to.
func Write(path string) string { return keyOf(SortWrite, fileOf(path)) }

// Read names the act of reading the file that a path leads to.
func Read(path string) string { return keyOf(SortRead, fileOf(path)) }

// Is reports whether an act is of a kind.
func Is(sort, what string) bool { return strings.HasPrefix(what, sort+"\x00") }

// fileOf returns the file that a path leads to. If a link changes, that is another file.
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

// Run names the act of running a command in a directory. The same script is the same act with and
// without a shell around it, and if it changes into the directory itself.
func Run(p *acphost.Policy, command, cwd string) string {
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
			break // part of it would run elsewhere if the directory did not exist
		}
		command, cwd = p.NormalCommand(rest), dir
	}
	return keyOf(SortRun, fileOf(cwd)+"\x00"+command)
}

// maxChanges bounds the changes of the directory at the beginning of a line that are followed.
const maxChanges = 4

// changesTo returns the directory that a line in its normal form, such as "cd dir&&rest", changes
// to first, and the rest.
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

// joined reports whether a line consists of commands of which each needs the preceding one. It may
// report false for such a line, for example if a word contains a semicolon.
func joined(line string) bool {
	return !strings.Contains(line, "||") && !strings.ContainsAny(strings.ReplaceAll(line, "&&", ""), ";&\n\r")
}

// ActsOf returns the acts that a request which was decided is about, as far as the agent can have
// them carried out. What a tool of another kind says it would run was not decided.
func ActsOf(p *acphost.Policy, r acphost.Request) (list []string) {
	switch acp.ToolKind(r.Kind) {
	case acp.ToolKindRead, acp.ToolKindSearch:
		for _, path := range r.Paths {
			if filepath.IsAbs(path) {
				list = append(list, Read(path))
			}
		}
	case acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove:
		for _, path := range r.Paths {
			if filepath.IsAbs(path) {
				list = append(list, Write(path))
			}
		}
	case acp.ToolKindExecute, acp.ToolKindOther, "":
		if command, _ := r.Shows(); command != "" {
			list = append(list, Run(p, command, r.Cwd))
		}
	}
	return list
}
