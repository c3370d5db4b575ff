package shellline

import (
	"path"
	"strings"
	"sync"

	"github.com/goacp/acp/acphost"
)

// builtins are the commands of the shell itself that run text, change what other commands do, or
// compute with text.
var builtins func() map[string]func(s *scan, n int, words []word)

func init() { builtins = sync.OnceValue(allBuiltins) } // not in the declaration: they run what examines them

func allBuiltins() map[string]func(s *scan, n int, words []word) {
	all := map[string]func(s *scan, n int, words []word){
		"eval":   (*scan).eval,
		"trap":   (*scan).trap,
		"cd":     (*scan).change,
		"chdir":  (*scan).change,
		"pushd":  (*scan).change,
		"popd":   (*scan).change,
		"alias":  (*scan).alias,
		"shopt":  func(s *scan, _ int, _ []word) { s.globs = true },
		"setopt": func(s *scan, _ int, _ []word) { s.globs = true },
		"source": (*scan).sourced, ".": (*scan).sourced,
		"set": func(s *scan, _ int, words []word) {
			for i, w := range words[1:] {
				if w.mayBeOption() || len(w.Text) > 1 && w.Text[0] == '-' && w.Text[1] != '-' && strings.Contains(w.Text, "k") || w.Text == "keyword" && words[i].Text == "-o" {
					s.unsure("set -k makes variables of words")
				}
				if w.Text == "--" || w.Text == "" || w.Text[0] != '-' && w.Text[0] != '+' && !strings.HasSuffix(words[i].Text, "o") {
					return
				}
			}
		},
		"hash": func(s *scan, _ int, words []word) {
			s.refuseOption(words, "p", "hash -p gives a name to another program")
		},
		"enable": func(s *scan, _ int, words []word) { s.refuseOption(words, "f", "enable -f loads a program") },
		"bind":   func(s *scan, _ int, words []word) { s.refuseOption(words, "x", "bind -x runs text") },
		"fc":     func(s *scan, _ int, _ []word) { s.unsure("fc runs lines of the history") },
		"complete": func(s *scan, _ int, words []word) {
			s.refuseOption(words, "CF", "complete runs a command")
		},
		"compgen": func(s *scan, _ int, words []word) {
			s.refuseOption(words, "CFW", "compgen runs a command")
		},
		"mapfile": func(s *scan, n int, words []word) {
			s.refuseOption(words, "C", "mapfile -C runs a command")
			s.variables(n, words)
		},
		"readarray": func(s *scan, n int, words []word) {
			s.refuseOption(words, "C", "readarray -C runs a command")
			s.variables(n, words)
		},
	}
	for _, name := range []string{"read", "unset", "printf", "test", "[", "wait", "let", "declare", "typeset", "local", "export", "readonly", "getopts"} {
		all[name] = (*scan).variables
	}
	return all
}

// variables says that arguments with commands in them may be computed with, as names of variables are.
func (s *scan) variables(n int, words []word) {
	name := base(words[0].Text)
	sets := name != "test" && name != "[" && name != "unset" && name != "let" && name != "printf"
	switch name {
	case "read":
		s.holds = true
		s.reads(words)
	case "mapfile", "readarray":
		s.holds = true
		s.lose(words)
	case "getopts", "let", "wait":
		s.lose(words)
	case "printf":
		if len(words) > 1 && (words[1].mayBeOption() || strings.HasPrefix(words[1].Text, "-")) {
			s.lose(words)
		}
	}
	for i, w := range words[1:] {
		if name == "printf" || name == "wait" { // printf -v NAME, wait -p NAME
			sets = i > 0 && (words[i].Text == "-v" || words[i].Text == "-p") || strings.HasPrefix(w.Text, "-v") || strings.HasPrefix(w.Text, "-p")
		}
		part := s.part(n)
		switch variable, _, _ := strings.Cut(w.Text, "="); {
		case !sets:
		case w.Open && (variable == w.Text || !isName(variable)):
			part.Runs = append(part.Runs, acphost.CommandWord{Open: true, Source: w.Source})
			part.Options = append(part.Options, acphost.CommandOption{Word: i + 1, Name: w.Source, Does: doesSet})
		case name == "export" && variable == w.Text:
		default:
			for _, v := range []string{variable, strings.TrimPrefix(strings.TrimPrefix(variable, "-v"), "-p")} {
				if v = variableName(v); isRunVariable(v) {
					part.Runs = append(part.Runs, s.sets(v+strings.TrimPrefix(w.Text, variable))...)
					part.Options = append(part.Options, acphost.CommandOption{Word: i + 1, Name: w.Source, Does: doesSet})
				}
			}
		}
		if w.Open && (name != "test" && name != "[" && name != "printf" && name != "export") {
			s.computes = true
		}
		if w.Text == "-v" || name == "printf" && strings.HasPrefix(w.Text, "-v") {
			s.computes = true
		}
		if hasSubstitution(w.Text) && strings.Contains(w.Text, "[") {
			s.unsure(words[0].Text + " computes with text that has a command in it")
		}
	}
}

// refuseOption makes a line uncertain that has one of some options.
func (s *scan) refuseOption(words []word, letters, why string) {
	for _, w := range words[1:] {
		if w.mayBeOption() || strings.HasPrefix(w.Text, "-") && strings.ContainsAny(w.Text, letters) {
			s.unsure(why)
		}
	}
}

// isName reports whether a text is the name of a variable.
func isName(t string) bool { return isAssignment(t + "=") }

func (s *scan) eval(n int, words []word) {
	words = words[1:]
	if len(words) > 0 && words[0].Text == "--" {
		words = words[1:]
	}
	s.line(n, words)
	s.part(n).Wrapper = true
}

func (s *scan) trap(n int, words []word) {
	words = words[1:]
	for len(words) > 0 && strings.HasPrefix(words[0].Text, "-") {
		words = words[1:]
	}
	if len(words) > 1 {
		s.line(n, words[:1])
		s.part(n).Wrapper = true
	}
}

func (s *scan) alias(_ int, words []word) {
	for _, w := range words[1:] {
		if w.Open || strings.Contains(w.Text, "=") {
			s.unsure("alias gives a name to text")
		}
	}
}

// change examines cd and the like. A second change, or one that is not spelled out, makes the
// directory unknown.
func (s *scan) change(n int, words []word) {
	was := s.dir
	to := acphost.CommandWord{Text: "~"}
	i := 1
	for i < len(words) && len(words[i].Text) > 1 && words[i].Text[0] == '-' && !words[i].Open {
		i++
	}
	if i < len(words) {
		to = words[i].CommandWord
	}
	if name := base(words[0].Text); to.Text != "-" && name != "popd" && (name != "pushd" || i < len(words)) {
		s.move(to)
	} else if len(s.moves) == 0 {
		s.move(anywhere)
	}
	moved := was.Text != ""
	switch {
	case to.Open || to.Text == "-" || base(words[0].Text) == "popd" || was.Open || moved && (!s.inDir || base(words[0].Text) == "pushd" || i > 1):
		if moved && n > 0 {
			s.part(n).Dir = acphost.CommandWord{Open: true}
		}
		to = acphost.CommandWord{Open: true}
	case moved && !strings.HasPrefix(to.Text, "/") && !strings.HasPrefix(to.Text, "~"):
		to = acphost.CommandWord{Text: path.Join(was.Text, to.Text)}
	}
	s.inDir = true
	s.dir = to
}

// lose records that variables get unknown values.
func (s *scan) lose(words []word) {
	for _, w := range words[1:] {
		if s.set(w.Text, anywhere); w.Open {
			s.lost = true
		}
		if len(w.Text) > 2 && w.Text[0] == '-' { // printf -vNAME
			s.set(w.Text[2:], anywhere)
		}
	}
}

// reads records the variables that read sets. What a program prints into it is found, as for xargs:
// that program is compared. What the line itself passes on need not be.
func (s *scan) reads(words []word) {
	s.lose(words)
	if strings.ContainsAny(s.lines[len(s.lines)-1], `<\`) {
		return
	}
	for _, w := range words[1:] {
		if strings.HasPrefix(w.Text, "-") && w.Text != "-r" {
			return // an option with a value, perhaps
		}
	}
	for _, w := range words[1:] {
		if list := s.values[w.Text]; len(list) == 1 && list[0].Open && list[0].Pieces == nil {
			s.values[w.Text] = []acphost.CommandWord{found("", "", "")}
		}
	}
}

// sourced examines the command that runs a file as a part of the line.
func (s *scan) sourced(_ int, words []word) {
	s.lost = true
	if len(words) > 1 && (words[1].Open || strings.HasPrefix(words[1].Text, "/dev/") || strings.HasPrefix(words[1].Text, "/proc/")) {
		s.unsure("what " + words[0].Text + " runs is not written out")
	}
}
