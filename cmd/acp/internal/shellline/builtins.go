package shellline

import (
	"strings"

	"github.com/goacp/acp/acphost"
)

// builtins are the commands of the shell itself that run text, change what other commands do, or
// compute with text.
var builtins map[string]func(s *scan, n int, words []word)

func init() { // they run what looks at them
	builtins = map[string]func(s *scan, n int, words []word){
		"eval":   (*scan).eval,
		"trap":   (*scan).trap,
		"cd":     (*scan).change,
		"chdir":  (*scan).change,
		"pushd":  (*scan).change,
		"popd":   (*scan).change,
		"alias":  (*scan).alias,
		"source": (*scan).sourced, ".": (*scan).sourced,
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
		"mapfile": func(s *scan, _ int, words []word) {
			s.refuseOption(words, "C", "mapfile -C runs a command")
			s.variables(words)
		},
		"readarray": func(s *scan, _ int, words []word) {
			s.refuseOption(words, "C", "readarray -C runs a command")
			s.variables(words)
		},
	}
	for _, name := range []string{"read", "unset", "printf", "test", "[", "wait", "let", "declare", "typeset", "local", "export", "readonly", "getopts"} {
		builtins[name] = func(s *scan, _ int, words []word) { s.variables(words) }
	}
}

// variables says that arguments with commands in them may be computed with, as names of variables are.
func (s *scan) variables(words []word) {
	name := base(words[0].Text)
	switch name {
	case "read", "mapfile", "readarray":
		s.holds = true
	}
	for _, w := range words[1:] {
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

// refuseOption makes a line unsure that has one of some options.
func (s *scan) refuseOption(words []word, letters, why string) {
	for _, w := range words[1:] {
		if w.mayBeOption() || strings.HasPrefix(w.Text, "-") && strings.ContainsAny(w.Text, letters) {
			s.unsure(why)
		}
	}
}

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

// change looks at cd and its like. A second one, and what is not written out, makes the directory
// unknown.
func (s *scan) change(_ int, words []word) {
	was := s.dir
	to := acphost.CommandWord{Text: "~"}
	i := 1
	for i < len(words) && len(words[i].Text) > 1 && words[i].Text[0] == '-' && !words[i].Open {
		i++
	}
	if i < len(words) {
		to = words[i].CommandWord
	}
	if to.Open || to.Text == "-" || base(words[0].Text) == "popd" || was.Open || was.Text != "" {
		to = acphost.CommandWord{Open: true}
	}
	s.dir = to
}

// sourced looks at the command that runs a file as a part of the line.
func (s *scan) sourced(_ int, words []word) {
	if len(words) > 1 && (words[1].Open || strings.HasPrefix(words[1].Text, "/dev/") || strings.HasPrefix(words[1].Text, "/proc/")) {
		s.unsure("what " + words[0].Text + " runs is not written out")
	}
}
