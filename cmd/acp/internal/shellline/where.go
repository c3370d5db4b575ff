package shellline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/goacp/acp/acphost"
)

// maxPieces bounds the pieces of an open word.
const maxPieces = 32

// maxIn bounds the directories in which options make a command work.
const maxIn = 16

// maxValues bounds the values of a variable, and the directories that a line changes to.
const maxValues = 32

// A place is where the commands of a line work, and the values of its variables, for rules that
// deny or ask: these apply to all that is possible.
type place struct {
	in     []acphost.CommandWord // directories that options of the enclosing programs have changed to
	again  int                   // loops and functions around, which may run more than once
	values map[string][]acphost.CommandWord
	moves  []acphost.CommandWord
	lost   bool // variables may have other values
	globs  bool // the line defines what * stands for
}

var anywhere = acphost.CommandWord{Open: true}

// move records that the line changes to a directory.
func (p *place) move(to acphost.CommandWord) {
	if len(p.moves) == maxValues {
		p.moves[0] = anywhere
		return
	}
	p.moves = append(p.moves, to)
	if p.again > 0 && !strings.HasPrefix(to.Text, "/") && !strings.HasPrefix(to.Text, "~") && len(p.moves) < maxValues {
		p.moves = append(p.moves, anywhere) // and from there once more
	}
}

// enter records the directories in which options make the following work.
func (p *place) enter(in []acphost.CommandWord) {
	if p.in = append(append([]acphost.CommandWord(nil), p.in...), in...); len(p.in) > maxIn {
		p.in = []acphost.CommandWord{anywhere}
	}
}

// set records a value of a variable.
func (p *place) set(name string, values ...acphost.CommandWord) {
	if p.values == nil {
		p.values = map[string][]acphost.CommandWord{}
	}
	for _, v := range values {
		list := p.values[name]
		switch {
		case slices.ContainsFunc(list, func(w acphost.CommandWord) bool {
			return w.Text == v.Text && w.Open == v.Open && slices.Equal(w.Pieces, v.Pieces)
		}):
		case len(list) < maxValues:
			p.values[name] = append(list, v)
		default:
			p.values[name] = []acphost.CommandWord{anywhere}
		}
	}
}

// close adds what was found to the line.
func (p *place) close(out *acphost.CommandLine) {
	out.Moves = p.moves
	if !p.lost {
		out.Values = p.values
	}
}

// repeated reads what may run more than once.
func (s *scan) repeated(look func()) {
	s.again++
	look()
	s.again--
}

// apart reads what a separate shell runs, which changes neither the directory nor loops.
func (s *scan) apart(look func()) {
	dir, again := s.dir, s.again
	s.again = 0
	look()
	s.dir, s.again = dir, again
}

// holdsValue records an assignment. One that is only for a command leaves the value for the
// command's own words.
func (s *scan) holdsValue(a *syntax.Assign, alone bool) {
	switch {
	case a.Name == nil:
	case a.Name.Value == "GLOBIGNORE":
		s.globs = true
	case !alone || a.Array != nil || a.Index != nil || a.Append:
		s.set(a.Name.Value, anywhere)
	case a.Value == nil:
		s.set(a.Name.Value, acphost.CommandWord{})
	default:
		s.set(a.Name.Value, plain(s.expand(a.Value))...)
	}
}

// iterated records the values of the variable of a loop.
func (s *scan) iterated(loop syntax.Loop) {
	w, ok := loop.(*syntax.WordIter)
	switch {
	case !ok || w.Name == nil:
	case !w.InPos.IsValid():
		s.set(w.Name.Value, anywhere)
	default:
		for _, item := range w.Items {
			s.set(w.Name.Value, plain(s.expand(item))...)
		}
	}
}

// plain returns words as rules see them.
func plain(words []word) (out []acphost.CommandWord) {
	for _, w := range words {
		out = append(out, w.CommandWord)
	}
	return out
}

// nameOf returns what a parameter stands for, as in [acphost.CommandPiece].
func nameOf(p *syntax.ParamExp) string {
	switch {
	case p.Length:
		return "#"
	case p.Param == nil || p.Exp != nil || p.Slice != nil || p.Repl != nil || p.Excl || p.Width || p.Index != nil || p.Names != 0 || p.Flags != nil:
		return ""
	case p.Param.Value == "#" || p.Param.Value == "?" || p.Param.Value == "$" || p.Param.Value == "!":
		return "#"
	case !isName(p.Param.Value):
		return ""
	}
	return p.Param.Value
}

// finders are programs that print names of files, and of other things, which are not in their words.
var finders = setOf("find fd ls git-ls-files git-merge-base git-rev-parse git-describe git-rev-list git-branch git-tag git-status go-list go-env docker-ps docker-images pgrep lsof which uname")

// filters are programs that print some of what they read.
var filters = setOf("grep head tail sort uniq wc")

// resultOf returns what a substitution stands for, likewise.
func resultOf(c *syntax.CmdSubst) string {
	if len(c.Stmts) != 1 || len(c.Stmts[0].Redirs) > 0 {
		return ""
	}
	if pipe, ok := c.Stmts[0].Cmd.(*syntax.BinaryCmd); ok && pipe.Op == syntax.Pipe {
		filter := literals(pipe.Y)
		if len(filter) > 0 && filters()[filter[0]] && resultOf(&syntax.CmdSubst{Stmts: []*syntax.Stmt{pipe.X}}) != "" {
			return "{}"
		}
		return ""
	}
	words := literals(c.Stmts[0])
	switch text := strings.Join(words, " "); {
	case len(words) == 0:
		return ""
	case text == "pwd" || text == "pwd -P" || text == "pwd -L":
		return "PWD"
	case text == "git rev-parse --show-toplevel":
		return ".."
	case words[0] == "nproc" || words[0] == "id" || words[0] == "whoami":
		return "#"
	case (words[0] == "grep" || words[0] == "rg") && slices.Contains(words, "-l"), words[0] == "rg" && slices.Contains(words, "--files"), strings.HasPrefix(text, "git diff --name-only"):
		return "{}"
	case finders()[words[0]] || len(words) > 1 && finders()[words[0]+"-"+words[1]]:
		return "{}"
	}
	return ""
}

// literals returns the words of a simple command as far as they are literals; others are empty.
func literals(st *syntax.Stmt) (out []string) {
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(st.Redirs) > 0 {
		return nil
	}
	for _, w := range call.Args {
		out = append(out, w.Lit())
	}
	return out
}

// isNproc reports whether a substitution is $(nproc), which is a number.
func isNproc(c *syntax.CmdSubst) bool {
	return len(c.Stmts) == 1 && slices.Equal(literals(c.Stmts[0]), []string{"nproc"})
}

// found returns a word in which something stands for what another program has found.
func found(before, after, source string) acphost.CommandWord {
	w := acphost.CommandWord{Text: before, Open: true, Source: source}
	if before != "" {
		w.Pieces = append(w.Pieces, acphost.CommandPiece{Text: before})
	}
	w.Pieces = append(w.Pieces, acphost.CommandPiece{Open: true, Name: "{}"})
	if after != "" {
		w.Pieces = append(w.Pieces, acphost.CommandPiece{Text: after})
	}
	return w
}

// elsewhere returns the directories in which options make a program work.
func elsewhere(options []acphost.CommandOption, words []word) (in []acphost.CommandWord) {
	for _, o := range options {
		if o.Does == doesMove && !strings.HasSuffix(o.Name, "=") {
			in = append(in, valueOf(words, o.Word, o.Name))
		}
	}
	return in
}

// valueOf returns the value of an option, which is joined or the next word.
func valueOf(words []word, i int, name string) acphost.CommandWord {
	w := words[i].CommandWord
	rest, ok := strings.CutPrefix(w.Text, name)
	rest = strings.TrimPrefix(rest, "=")
	switch {
	case w.Open && ok && len(w.Pieces) > 0 && w.Pieces[0].Text == w.Text:
		w.Pieces = append([]acphost.CommandPiece{{Text: rest}}, w.Pieces[1:]...)
		w.Text = rest
		return w
	case w.Open || !ok:
		return anywhere
	case rest != "":
		return acphost.CommandWord{Text: rest, Source: rest}
	case i+1 < len(words):
		return words[i+1].CommandWord
	}
	return acphost.CommandWord{}
}

// starts returns the directories in which find -execdir runs programs.
func starts(words []word) (in []acphost.CommandWord) {
	for _, w := range words[1:] {
		if w.Text != "" && strings.Contains("-(!", w.Text[:1]) {
			break
		}
		in = append(in, below(w.CommandWord))
	}
	if in == nil {
		in = append(in, below(acphost.CommandWord{Text: "."}))
	}
	return in
}

// below returns any directory below one.
func below(dir acphost.CommandWord) acphost.CommandWord {
	if dir.Open {
		return anywhere
	}
	return acphost.CommandWord{Text: dir.Text + "/", Open: true}
}
