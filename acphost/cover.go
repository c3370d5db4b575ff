package acphost

import (
	"path"
	"slices"
	"strings"
)

// A line is a command line as rules look at it.
type line struct {
	text   string       // without white space around
	parsed *CommandLine // nil if there is no parser
	forms  [][2]form    // of the parts, made when they are needed
	tails  [][]tail     // of the parts, likewise

	parser     CommandParser
	inners     []innerLines // of the parts, likewise
	innerCount int
	innerBytes int
}

// A tail is what a part is from one of its words on, or in another form.
type tail struct {
	texts []string // without quotes; a zero byte stands for what is not known
	open  bool
	doubt bool // the part may mean something else
}

// A form is the text of a part, and where its words are in it.
type form struct {
	text string
	at   [][2]int // begin and end of each word
}

// read returns the command line of a request, nil if it is not known. Of a
// command that is only shown, it is that.
func (p *Policy) read(req *Request) *line {
	text := req.Command
	if req.commandUnknown() {
		text = req.Shown
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return newLine(p.Commands, text)
}

// newLine returns a line, which is taken apart if there is a parser.
func newLine(parser CommandParser, text string) *line {
	l := &line{text: strings.TrimSpace(text), parser: parser}
	if parser != nil {
		parsed := parser.ParseCommand(l.text)
		l.parsed, l.forms = &parsed, make([][2]form, len(parsed.Parts))
		l.tails = make([][]tail, len(parsed.Parts))
	}
	return l
}

// sourceOf returns the text of a part for people, "" if it is the whole.
func (l *line) sourceOf(part *CommandPart) string {
	if len(l.parsed.Parts) == 1 && part.Source == l.text {
		return ""
	}
	return part.Source
}

// formsOf returns the two texts that patterns which allow are compared with: with
// the quotes that are needed, and as it is written.
func (l *line) formsOf(i int) *[2]form {
	f, part := &l.forms[i], &l.parsed.Parts[i]
	if f[0].text != "" {
		return f
	}
	for k := range f {
		var b strings.Builder
		put := func(s string) [2]int {
			if b.Len() > 0 && s != "" {
				b.WriteByte(' ')
			}
			begin := b.Len()
			b.WriteString(s)
			return [2]int{begin, b.Len()}
		}
		for _, set := range part.Sets {
			if name, value, ok := strings.Cut(set, "="); !ok || !harmlessVariable(name, value) {
				put(set)
			}
		}
		for _, w := range part.Words {
			s := w.Source
			if k == 0 && !w.Open {
				if s = w.Text; mustQuote(s) {
					s = quoted(s)
				}
			}
			f[k].at = append(f[k].at, put(s))
		}
		f[k].text = b.String()
	}
	return f
}

// allowedBy reports whether a rule that allows names a part of the line, or all of
// it.
func (l *line) allowedBy(r *rule, i int) bool {
	for k := range r.commands {
		p := &r.commands[k]
		switch {
		case p.literal != "" && p.literal == l.text:
			return true
		case l.parsed == nil:
			if isPlain(l.text) && p.re.MatchString(l.text) {
				return true
			}
		case i >= 0 && l.covers(p, i, nil):
			return true
		}
	}
	return false
}

// uncovered returns the option of a part which is all that keeps a rule from
// allowing it, or nil.
func (l *line) uncovered(r *rule, i int) *CommandOption {
	if r.Effect != EffectAllow || l.parsed == nil {
		return nil
	}
	var missing *CommandOption
	for k := range r.commands {
		l.covers(&r.commands[k], i, &missing)
	}
	return missing
}

// covers reports whether a pattern covers a part: it matches it, and names all
// options of it that run something or write to a file, before the first wildcard.
// A pattern that names what another part runs covers that as well.
func (l *line) covers(p *commandPattern, i int, missing **CommandOption) bool {
	part := &l.parsed.Parts[i]
	for _, f := range l.formsOf(i) {
		if f.text == "" || !p.re.MatchString(f.text) {
			continue
		}
		bad := slices.IndexFunc(part.Options, func(o CommandOption) bool { return !p.names(&f, o.Word, o.Name) })
		if bad < 0 {
			return true
		}
		if missing != nil {
			*missing = &part.Options[bad]
		}
	}
	// Words of the part that runs it are words of its own.
	own, at := part.Options, 0
	for part.By > 0 && part.At > 0 {
		at += part.At
		i = part.By - 1
		part = &l.parsed.Parts[i]
		for _, f := range l.formsOf(i) {
			if f.text != "" && p.re.MatchString(f.text) && p.names(&f, at, "") &&
				!slices.ContainsFunc(own, func(o CommandOption) bool { return !p.names(&f, at+o.Word, o.Name) }) {
				return true
			}
		}
	}
	return false
}

// names reports whether the text of a pattern before its first wildcard goes
// beyond a word, or beyond what it begins with.
func (p *commandPattern) names(f *form, word int, begin string) bool {
	if word >= len(f.at) {
		return false
	}
	end := f.at[word][1]
	if begin != "" && strings.HasPrefix(f.text[f.at[word][0]:], begin) {
		end = f.at[word][0] + len(begin)
	} else if begin == "" {
		end++ // the space after it, so that it is not the begin of another one
	}
	return p.whole || p.prefix >= end
}

// Bounds of what rules that deny or ask look at.
const (
	maxTails    = 64      // words of a part that may begin another command
	maxNetTails = 4 << 10 // bytes of a line of which all words may
	maxGlobWork = 1 << 20 // pattern times text, in bytes
)

// deniedBy reports whether a rule that denies or asks is about a part of the line.
// That is a yes if it names it, and a maybe where it may be named.
func (l *line) deniedBy(r *rule, i int) match {
	switch {
	case l.parsed == nil:
		return matchIf(l.netted(r, false))
	case i < 0 && l.parsed.Unsure == "":
		return matchIf(r.names(l.text))
	case i < 0:
		if l.netted(r, true) {
			return matchYes
		}
		return matchMaybe
	}
	best := l.named(r, i)
	if best > matchNo {
		return best
	}
	list, more := l.innerOf(i)
	if more || slices.ContainsFunc(list, func(in inner) bool { return in.mayName(r) }) {
		return matchMaybe
	}
	return matchNo
}

// named reports whether a rule that denies or asks names a part of the line, in
// any of its forms, or what the part may run as words of its own.
func (l *line) named(r *rule, i int) match {
	part := &l.parsed.Parts[i]
	f := l.formsOf(i)
	if i == 0 && r.names(l.text) || r.names(f[0].text) || r.names(f[1].text) || r.names(strings.TrimSpace(part.Source)) {
		return matchYes
	}
	best := matchNo
	for _, t := range l.tailsOf(i) {
		m := matchNo
		for _, text := range t.texts {
			m = max(m, r.mayName(text, t.open))
		}
		if t.doubt { // the program may not run it
			m = min(m, matchMaybe)
		}
		best = max(best, m)
	}
	for _, w := range part.Runs {
		words := []CommandWord{{Open: true}}
		for i, text := range strings.Fields(w.Text) {
			words = slices.Insert(words, i, CommandWord{Text: text})
		}
		for _, text := range tailTexts(words) {
			best = max(best, r.mayName(text, w.Open))
		}
	}
	if part.Opaque && len(part.Words) > maxTails {
		best = max(best, matchMaybe)
	}
	return best
}

// tailsOf returns the words of a part without their quotes, its other forms and, of
// a program that may run what its words say, what begins with each of them.
func (l *line) tailsOf(i int) []tail {
	words := l.parsed.Parts[i].Words
	if l.tails[i] == nil && len(words) > 0 {
		n := 1
		if l.parsed.Parts[i].Opaque {
			n = min(len(words), maxTails)
		}
		for k := range n {
			rest := words[k:]
			l.tails[i] = append(l.tails[i], tail{tailTexts(rest), anyOpen(rest), k > 0})
		}
		for _, f := range l.parsed.Parts[i].Forms {
			if len(f.Words) > 0 {
				l.tails[i] = append(l.tails[i], tail{tailTexts(f.Words), anyOpen(f.Words), f.Unsure})
			}
		}
	}
	return l.tails[i]
}

func anyOpen(words []CommandWord) bool {
	return slices.ContainsFunc(words, func(w CommandWord) bool { return w.Open })
}

// tailTexts returns the text of a command that begins with a word, with and
// without the directory of the program. What is not known is a zero byte.
func tailTexts(words []CommandWord) []string {
	var b strings.Builder
	first := 0
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		w.write(&b)
		if i == 0 {
			first = b.Len()
		}
	}
	text := b.String()
	return withoutDir(text, text[:first])
}

// write writes what is known of a word; a zero byte stands for what is not.
func (w *CommandWord) write(b *strings.Builder) {
	known := func(text string) { b.WriteString(strings.ReplaceAll(text, "\x00", "")) }
	if !w.Open || w.Pieces == nil {
		if known(w.Text); w.Open {
			b.WriteByte(0)
		}
		return
	}
	for _, p := range w.Pieces {
		switch {
		case !p.Open:
			known(p.Text)
		case p.Name == "HOME" || p.Name == "PWD":
			b.WriteString("/\x00") // an absolute path
		default:
			b.WriteByte(0)
		}
	}
}

// withoutDir returns a text, which begins with a program, also without the directory
// of that.
func withoutDir(text, first string) []string {
	name := path.Base(strings.ReplaceAll(first, `\`, "/"))
	out := []string{text}
	for _, n := range []string{name, strings.TrimSuffix(strings.ToLower(name), ".exe")} {
		if n != first {
			out = append(out, n+text[min(len(first), len(text)):])
		}
	}
	return out
}

// names reports whether one of the commands of a rule is a text.
func (r *rule) names(text string) bool {
	return slices.ContainsFunc(r.commands, func(p commandPattern) bool { return p.re.MatchString(text) })
}

// mayName is names for a text in which zero bytes stand for what is not known.
func (r *rule) mayName(text string, open bool) match {
	if r.names(strings.ReplaceAll(text, "\x00", "")) {
		return matchYes
	}
	if !open {
		return matchNo
	}
	for i := range r.commands {
		if p := &r.commands[i]; p.mayMatch(text) {
			return matchMaybe
		}
	}
	return matchNo
}

// mayMatch reports whether there is a text for each zero byte with which a wide
// pattern matches.
func (p *commandPattern) mayMatch(text string) bool {
	if p.glob == nil {
		known, _, _ := strings.Cut(text, "\x00")
		n := min(len(known), len(p.begin))
		return strings.EqualFold(known[:n], p.begin[:n])
	}
	if len(p.glob)*len(text) > maxGlobWork {
		return true
	}
	lower := []rune(strings.ToLower(text))
	return globsMeet(p.glob, lower) || p.tail && globsMeet(p.glob[:len(p.glob)-2], lower)
}

// globsMeet reports whether a text matches both patterns: in the first -1 stands
// for any text and -2 for any character, in the second 0 for any text.
func globsMeet(a, b []rune) bool {
	for len(a) > 0 && len(b) > 0 && a[0] >= 0 && b[0] != 0 { // mostly they differ at once
		if a[0] != b[0] {
			return false
		}
		a, b = a[1:], b[1:]
	}
	now := make([]bool, len(b)+1)
	now[0] = true
	star := func(row []bool) {
		for j, c := range b {
			row[j+1] = row[j+1] || row[j] && c == 0
		}
	}
	star(now)
	for _, c := range a {
		next := make([]bool, len(b)+1)
		if c == -1 { // takes any part of the rest
			if first := slices.Index(now, true); first >= 0 {
				for j := first; j <= len(b); j++ {
					next[j] = true
				}
			}
			now = next
			continue
		}
		for j := range now {
			if !now[j] {
				continue
			}
			switch {
			case j < len(b) && b[j] == 0: // the unknown text takes the character
				next[j] = true
			case j < len(b) && (c == -2 || c == b[j]):
				next[j+1] = true
			}
		}
		star(next)
		now = next
	}
	return now[len(b)]
}

// netted looks for what a rule names anywhere in a line, between all signs that
// mean something to a shell, and with all, behind every white space, too. It is a
// net for lines that are not understood.
func (l *line) netted(r *rule, all bool) bool {
	for text := range parts(l.text) {
		if r.names(text) {
			return true
		}
		if !all || len(l.text) > maxNetTails {
			continue
		}
		words := strings.Fields(text)
		for n := 0; n < maxTails && len(words) > 1; n++ {
			words = words[1:]
			if r.names(strings.Join(words, " ")) {
				return true
			}
		}
	}
	return false
}
