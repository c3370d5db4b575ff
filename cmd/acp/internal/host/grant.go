package host

import (
	"path/filepath"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
)

// maxGranted bounds what is remembered of what was allowed in a turn; beyond it the user is asked
// again.
const maxGranted = 1024

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
}

// clear forgets what was for the turns that run.
func (g *granted) clear() { g.left, g.denied, g.through, g.barred = nil, nil, nil, nil }

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

func writing(path string) string { return "write\x00" + fileOf(path) }

func reading(path string) string { return "read\x00" + fileOf(path) }

// fileOf is the file that a path leads to. What a link leads to may change: then it is another one.
func isReading(what string) bool { return strings.HasPrefix(what, "read\x00") }

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
func running(command, cwd string) string {
	cwd = filepath.Clean(cwd)
	for range 4 {
		command = strings.TrimSpace(command)
		if script, ok := unwrapped(command); ok {
			command = script
		} else if dir, rest, ok := changesTo(command); ok {
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(cwd, dir)
			}
			if dir = filepath.Clean(dir); dir != cwd && !joined(rest) {
				break // part of it would run elsewhere if the directory were not there
			}
			command, cwd = rest, dir
		} else {
			break
		}
	}
	return "run\x00" + cwd + "\x00" + command
}

// unwrapped returns the script of a line such as "sh -c 'script'".
func unwrapped(line string) (script string, ok bool) {
	var words []string
	for rest := line; rest != ""; {
		word, after, ok := plainWord(rest)
		if !ok || len(words) == 3 {
			return "", false
		}
		words, rest = append(words, word), after
	}
	if len(words) != 3 {
		return "", false
	}
	script = acphost.TerminalCommand(&acpv1.CreateTerminalRequest{Command: words[0], Args: words[1:]})
	return script, script == words[2] // otherwise it is the line again
}

// changesTo returns the directory that a line such as "cd dir && rest" changes to first, and the rest.
func changesTo(line string) (dir, rest string, ok bool) {
	after, isCd := strings.CutPrefix(line, "cd ")
	if !isCd {
		return "", "", false
	}
	dir, after, ok = plainWord(strings.TrimLeft(after, " \t"))
	if !ok || dir == "" || dir[0] == '-' || dir[0] == '~' {
		return "", "", false
	}
	rest, ok = strings.CutPrefix(after, "&&")
	return dir, strings.TrimSpace(rest), ok && strings.TrimSpace(rest) != ""
}

// joined reports whether a line is nothing but commands of which each needs the one before.
func joined(line string) bool {
	return !strings.Contains(line, "||") && !strings.ContainsAny(strings.ReplaceAll(line, "&&", ""), ";&\n\r")
}

// plainWord returns the first word of a line, without its quotes, and what follows the white space
// behind it. It is not ok if a shell would replace anything in it.
func plainWord(line string) (word, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(line); {
		switch c := line[i]; c {
		case ' ', '\t':
			return b.String(), strings.TrimLeft(line[i:], " \t"), true
		case '\'', '"':
			n := strings.IndexByte(line[i+1:], c)
			if n < 0 || c == '"' && strings.ContainsAny(line[i+1:i+1+n], "$`\\!") {
				return "", "", false
			}
			b.WriteString(line[i+1 : i+1+n])
			i += n + 2
		case '\\':
			if i+1 >= len(line) || line[i+1] == '\n' {
				return "", "", false
			}
			b.WriteByte(line[i+1])
			i += 2
		default:
			if strings.IndexByte("\n\r$`&|;<>()*?[]{}#!", c) >= 0 {
				return "", "", false
			}
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), "", true
}

// grants returns what a request that was decided is about, of what the agent can have done by us. What
// a tool of another kind says it would run was not what was decided.
func grants(r acphost.Request) (list []string) {
	switch acp.ToolKind(r.Kind) {
	case acp.ToolKindRead, acp.ToolKindSearch:
		for _, p := range r.Paths {
			if filepath.IsAbs(p) {
				list = append(list, reading(p))
			}
		}
	case acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove:
		for _, p := range r.Paths {
			if filepath.IsAbs(p) {
				list = append(list, writing(p))
			}
		}
	case acp.ToolKindExecute, acp.ToolKindOther, "":
		if command, _ := r.Shows(); command != "" {
			list = append(list, running(command, r.Cwd))
		}
	}
	return list
}
