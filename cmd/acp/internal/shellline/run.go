package shellline

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/goacp/acp/acphost"
)

// run adds the part for a command, and looks at what it runs itself.
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
		s.add(part)
		return
	}
	if program.Open || program.Text == "" || strings.ContainsAny(program.Text[:1], "=-+") {
		s.unsure("which program " + shown(program) + " is depends on the shell")
		part.Opaque = true
		s.add(part)
		return
	}
	t := toolOf[name]
	if t != nil {
		part.Options = t.find(words)
		part.In = elsewhere(part.Options, words)
	}
	if c := commanderOf[name]; c != nil {
		part.Forms = c.forms(words)
	} else if command, ok := strings.CutPrefix(name, "git-"); ok && command != "" {
		part.Forms = append(part.Forms, undashed(command, words))
	}
	for _, o := range part.Options {
		if o.Does == doesText {
			s.unsure(name + " " + o.Name + " runs text")
		}
	}
	w := wrapperOf[name]
	part.Opaque = t != nil && t.runsSome(part.Options) || t == nil && w == nil && !known[name] && programs[name] == nil
	n := s.add(part)
	if n == 0 {
		return
	}
	switch {
	case shells[name]:
		s.shell(n, words)
	case texts[name] != nil:
		s.interpreter(texts[name], n, words)
	case w != nil:
		s.wrapper(w, n, words)
	case builtins[name] != nil:
		builtins[name](s, n, words)
	case programs[name] != nil:
		programs[name](s, n, words)
	}
	p := s.part(n)
	p.Opaque = p.Opaque || slices.ContainsFunc(p.Options, func(o acphost.CommandOption) bool {
		return o.Does != doesWrite && o.Does != doesHide && (o.Does != doesMove || strings.HasSuffix(o.Name, "="))
	})
}

// isTest reports whether a shell that does not know [[ would look for programs that do not exist: what
// follows && or || within the brackets, such as -f. Nothing else ends with ]].
func isTest(words []word) bool {
	first, last := words[0], words[len(words)-1]
	return len(words) > 1 && !first.Open && len(first.Text) == 2 && first.Text[0] == '-' && isWord(first.Text[1]) && !last.Open && last.Text == "]]"
}

// part returns a part that was added.
func (s *scan) part(n int) *acphost.CommandPart { return &s.out.Parts[n-1] }

// shown is a word for messages.
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

// inside looks at a command that part n runs, whose program is word at.
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

// line looks at a text that part n runs as a line, which is made of words.
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

// wrapper looks at a program that runs another one.
func (s *scan) wrapper(w *wrapper, n int, words []word) {
	at, sets, heavy, ok := w.program(words)
	part := s.part(n)
	part.Options = append(part.Options, heavy...)
	switch {
	case !ok:
		s.unsure("what " + shown(words[0]) + " runs is not certain")
		part.Opaque = true
		return
	case at < 0:
		return
	}
	part.Wrapper = w.free && isStandard(words[0].Text) && len(heavy) == 0
	inner := words[at:]
	if w.appends != "" {
		inner = append(replaced(w, words[1:at], inner), word{found("", "", w.appends), true, false})
	}
	in := s.in
	s.enter(w.at(words, at))
	defer func() { s.in = in }()
	if w.joined {
		dir := s.dir
		s.line(n, inner)
		s.dir = dir
		return
	}
	s.inside(n, at, sets, inner)
}

// replaced returns the words of a command of xargs, in which the text that its options name stands for
// what it reads.
func replaced(w *wrapper, options, words []word) []word {
	var texts []string
	for i := 0; i < len(options); i++ {
		t := options[i].Text
		if strings.HasPrefix(t, "--") {
			if name, text, _ := strings.Cut(t, "="); len(name) > 2 && strings.HasPrefix("--replace", name) {
				texts = append(texts, cmp.Or(text, "{}"))
			}
			continue
		}
		for j := 1; j < len(t) && t[0] == '-'; j++ {
			rest, o := t[j+1:], "-"+t[j:j+1]
			valued := has(w.values, o)
			if valued && rest == "" && i+1 < len(options) {
				i++
				rest = options[i].Text
			}
			if strings.Contains("iIJ", t[j:j+1]) {
				texts = append(texts, cmp.Or(rest, "{}"))
				valued = true
			}
			if valued {
				break
			}
		}
	}
	out := append([]word(nil), words...)
	for i := range out {
		for _, text := range texts {
			if before, after, ok := strings.Cut(out[i].Text, text); ok {
				if out[i].Open {
					after = "" // as anything else
				}
				out[i].CommandWord = found(before, after, out[i].Source)
			}
		}
	}
	return out
}

// shell looks at a shell.
func (s *scan) shell(n int, words []word) {
	name := shown(words[0])
	if !bourne[base(words[0].Text)] && !(len(words) == 2 && has("--version --help", words[1].Text)) {
		for _, w := range words[1:] {
			if w.Open || name == "powershell" || strings.HasPrefix(w.Text, "-") || strings.HasPrefix(w.Text, "/") && strings.HasPrefix(name, "p") {
				s.part(n).Opaque = true
				s.unsure(name + " runs text in a language that is not taken apart")
				return
			}
		}
	}
	text, i := false, 1
options:
	for ; i < len(words); i++ {
		t := words[i].Text
		switch {
		case words[i].Open && !words[i].mayBeOption():
			break options
		case words[i].Open:
			s.unsure("what " + name + " runs is not written out")
			return
		case t == "--" || t == "-":
			i++
			break options
		case t == "--version" || t == "--help":
			return
		case t == "--rcfile" || t == "--init-file":
			s.part(n).Options = append(s.part(n).Options, acphost.CommandOption{Word: i, Name: t, Does: "runs a file"})
			i++
		case strings.HasPrefix(t, "--"):
		case len(t) > 1 && (t[0] == '-' || t[0] == '+'):
			text = text || t[0] == '-' && strings.Contains(t, "c")
			if t[0] == '-' && strings.Contains(t, "s") {
				s.unsure(name + " reads what it runs")
			}
			i += strings.Count(strings.ToLower(t), "o") // names of options follow
		default:
			break options
		}
	}
	switch {
	case i < len(words) && !text && isInput(words[i].Text):
		s.unsure(name + " reads what it runs")
	case i < len(words) && text:
		dir := s.dir
		s.line(n, words[i:i+1])
		s.dir = dir
		s.part(n).Wrapper = isStandard(words[0].Text) && len(s.part(n).Options) == 0
	case i >= len(words):
		s.unsure(name + " reads what it runs")
	}
}

// interpreter looks at a program that runs text which this package does not read.
func (s *scan) interpreter(t *language, n int, words []word) {
	name := shown(words[0])
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch {
		case w.mayBeOption():
			s.unsure("what " + name + " runs is not written out")
			return
		case w.Open:
			s.after(t, words, i)
			return // the name of a file
		case w.Text == "-":
			s.unsure(name + " reads what it runs")
			return
		case len(w.Text) < 2 || w.Text[0] != '-':
			if t.words[w.Text] {
				s.unsure(name + " " + w.Text + " runs text")
			}
			if isInput(w.Text) {
				s.unsure(name + " reads what it runs")
			}
			s.after(t, words, i)
			return
		case w.Text == "--":
			if s.after(t, words, i); i+1 < len(words) {
				return
			}
			continue
		}
		spelled, value := splitOption(w.Text)
		if strings.HasPrefix(w.Text, "--") || t.long[spelled] || t.valued[spelled] || t.ends[spelled] {
			switch {
			case t.long[spelled]:
				s.unsure(name + " " + spelled + " runs text")
				return
			case t.ends[spelled]:
				s.module(n, words, i, 2)
				return
			case t.valued[spelled] && !value:
				i++
			}
			continue
		}
	letters:
		for j, c := range w.Text[1:] {
			switch {
			case strings.ContainsRune(t.text, c):
				s.unsure(name + " -" + string(c) + " runs text")
				return
			case t.ends["-"+string(c)]:
				s.module(n, words, i, j+2)
				return
			case t.valued["-"+string(c)]:
				if j+2 == len(w.Text) {
					i++
				}
				break letters
			}
		}
	}
	if t.stdin {
		s.unsure(name + " reads what it runs")
	}
}

// after looks at the words from one on that is an operand, or the value of the option before it.
func (s *scan) after(t *language, words []word, i int) {
	if before := words[i-1].Text; len(before) < 2 || before[0] != '-' || strings.Contains(before, "=") {
		return
	}
	for _, w := range words[i+1:] {
		spelled, _ := splitOption(w.Text)
		if w.mayBeOption() || t.long[spelled] || len(w.Text) > 1 && w.Text[0] == '-' && w.Text[1] != '-' && strings.ContainsAny(w.Text, t.text) {
			s.unsure(shown(words[0]) + " may run text")
			return
		}
	}
}

// splitOption takes the value from --option=value.
func splitOption(text string) (name string, value bool) {
	name, _, value = strings.Cut(text, "=")
	return name, value
}

// isInput reports whether a file is what a program is given to read, or one that is passed to it.
func isInput(file string) bool {
	file = path.Clean(file)
	return file == "/dev/stdin" || file == "/dev/tty" || strings.HasPrefix(file, "/dev/fd/") || strings.HasPrefix(file, "/proc/")
}

// module looks at python -m: some modules run text, others are programs. The name of the module begins
// at a letter of a word, or is the next word.
func (s *scan) module(n int, words []word, i, at int) {
	name := words[i].Text[min(at, len(words[i].Text)):]
	if name == "" && i+1 < len(words) {
		i++
		name = words[i].Text
	}
	switch name {
	case "timeit", "pdb", "code", "trace", "cProfile", "profile", "runpy", "asyncio", "sqlite3", "IPython", "tarfile", "zipfile", "shutil":
		s.unsure("the module " + name + " runs text")
	}
	if t := toolOf[name]; t != nil {
		for _, o := range t.find(words[i:]) {
			o.Word += i
			s.part(n).Options = append(s.part(n).Options, o)
		}
	}
}
