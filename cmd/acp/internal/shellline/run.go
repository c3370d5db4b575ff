package shellline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/goacp/acp/acphost"
)

// run adds the part for a command, and examines what it runs itself.
func (s *scan) run(part acphost.CommandPart, words []word) {
	part.Words = append(part.Words, plain(words)...)
	if len(words) == 0 {
		if len(part.Sets) > 0 {
			s.add(part)
		}
		return
	}
	program := words[0]
	name := tableName(base(program.Text))
	if s.lang == syntax.LangPOSIX && isTest(words) {
		part.Harmless = new(acphost.CommandReads)
		s.add(part)
		return
	}
	if program.Open || program.Text == "" || strings.ContainsAny(program.Text[:1], "=-+") {
		s.unsure("which program " + shown(program) + " is depends on the shell")
		part.Opaque = true
		s.add(part)
		return
	}
	t := toolOf()[name]
	if part.Options = optionsOf(words, 0); t != nil {
		part.In = elsewhere(t.find(words), words)
	}
	if c := commanderOf()[name]; c != nil {
		part.Forms = c.forms(words)
	} else if command, ok := strings.CutPrefix(name, "git-"); ok && command != "" {
		part.Forms = append(part.Forms, undashed(command, words))
	}
	for _, o := range part.Options {
		if o.Does == doesText {
			s.unsure(name + " " + o.Name + " runs text")
		}
	}
	w := wrapperOf()[name]
	part.Forms = append(part.Forms, pushes(name, words)...)
	part.Opaque = t != nil && t.runsSome(part.Options) || t == nil && w == nil && !known()[name] && programs()[name] == nil
	n := s.add(part)
	if n == 0 {
		return
	}
	switch {
	case bourne()[name] || foreignOf()[name] != nil:
		s.shell(n, words)
	case texts()[name] != nil:
		s.interpreter(texts()[name], n, words)
	case w != nil:
		s.wrapper(w, n, words)
	case builtins()[name] != nil:
		builtins()[name](s, n, words)
	case programs()[name] != nil:
		programs()[name](s, n, words)
	}
	p := s.part(n)
	p.Opaque = p.Opaque || slices.ContainsFunc(p.Options, func(o acphost.CommandOption) bool {
		return o.Does != doesWrite && o.Does != doesHide && (o.Does != doesMove || strings.HasSuffix(o.Name, "="))
	})
	p.Harmless = harmless(p, words)
}

// isTest reports whether a shell that does not know [[ would look for programs that do not exist: what
// follows && or || within the brackets, such as -f. Nothing else ends with ]].
func isTest(words []word) bool {
	first, last := words[0], words[len(words)-1]
	return len(words) > 1 && !first.Open && len(first.Text) == 2 && first.Text[0] == '-' && isWord(first.Text[1]) && !last.Open && last.Text == "]]"
}

// part returns a part that was added.
func (s *scan) part(n int) *acphost.CommandPart { return &s.out.Parts[n-1] }

// shown returns a word for messages.
func shown(w word) string {
	text := w.Source
	if text == "" {
		text = w.Text
	}
	if len(text) > 40 {
		text = strings.ToValidUTF8(text[:40], "") + "…"
	}
	return text
}

// inside examines a command that part n runs, whose program is word at.
func (s *scan) inside(n, at int, sets []string, words []word) {
	if len(words) == 0 {
		return
	}
	dir := s.dir
	s.run(acphost.CommandPart{Source: sourceOf(words), Sets: sets, By: n, At: at}, words)
	switch base(s.part(n).Words[0].Text) {
	case "command", "builtin", "noglob", "nocorrect", "and", "or", "not": // the same shell runs it
	default:
		s.dir = dir
	}
}

// line examines a text that part n runs as a line, which is made of words.
func (s *scan) line(n int, words []word) {
	var list []string
	for _, w := range words {
		if w.Open {
			s.unsure(s.part(n).Words[0].Text + " runs text that is not written out")
			return
		}
		list = append(list, w.Text)
	}
	s.text(strings.Join(list, " "), by{n, 0})
}
