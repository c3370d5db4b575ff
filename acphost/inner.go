package acphost

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Bounds of the lines that are looked for in the words of a command line. What is
// beyond them may be what a rule is about.
const (
	maxInner      = 256       // lines
	maxInnerText  = 128 << 10 // bytes of all of them
	maxInnerDepth = 4         // within each other
	maxVariants   = 8         // of a word
)

// An inner is a line that a part may run, since it is what its words say.
type inner struct {
	*line
	doubt bool // it may run anything
}

// A candidate is a text that may be run.
type candidate struct {
	text  string
	tail  bool // what a part is from a word on; else a part of a word
	depth int
}

// innerOf returns the lines that a part may run, apart from those that the
// parser has found, and whether there are more than the bounds allow.
func (l *line) innerOf(i int) (list []inner, more bool) {
	if l.inners == nil {
		l.inners = make([]innerLines, len(l.parsed.Parts))
	}
	in := &l.inners[i]
	if in.done {
		return in.list, in.more
	}
	in.done = true
	seen := map[string]bool{}
	queue := candidates(&l.parsed.Parts[i], 0)
	for len(queue) > 0 {
		c := queue[0]
		queue = queue[1:]
		if seen[c.text] || strings.TrimSpace(c.text) == "" {
			continue
		}
		seen[c.text] = true
		if l.innerCount++; l.innerCount > maxInner || c.depth > maxInnerDepth {
			in.more = true
			break
		}
		if l.innerBytes += len(c.text); l.innerBytes > maxInnerText {
			in.more = true
			break
		}
		text := newLine(l.parser, c.text)
		if !slices.ContainsFunc(text.parsed.Parts, func(p CommandPart) bool { return len(p.Words)+len(p.Writes)+len(p.Reads) > 0 }) && text.parsed.Unsure == "" {
			continue // it sets variables, for nothing
		}
		text.inherit(l)
		in.list = append(in.list, inner{text, c.doubts(text.parsed)})
		for k := range text.parsed.Parts {
			queue = append(queue, candidates(&text.parsed.Parts[k], c.depth+1)...)
		}
	}
	return in.list, in.more
}

// inherit has a line know the variables of the one around it.
func (l *line) inherit(outer *line) {
	if len(outer.parsed.Values) == 0 {
		return
	}
	values := maps.Clone(outer.parsed.Values)
	maps.Copy(values, l.parsed.Values)
	l.parsed.Values = values
}

// innerLines are the lines of a part.
type innerLines struct {
	list []inner
	more bool
	done bool
}

// doubts reports whether a text that is not certain to be a line is one that may
// run anything. Words that are only prose are not.
func (c candidate) doubts(parsed *CommandLine) bool {
	if parsed.Unsure == "" || len(parsed.Parts) == 0 || c.depth > 0 {
		return false
	}
	first := &parsed.Parts[0]
	if len(first.Words) == 0 {
		return !c.tail
	}
	program := first.Words[0].Text
	if !c.tail && !mustQuote(c.text) {
		return false
	}
	if c.tail {
		return !first.Opaque && (path.IsAbs(program) || !strings.Contains(program, "/"))
	}
	return len(parsed.Parts) > 1 || !first.Opaque
}

// candidates returns the texts that a part may run.
func candidates(part *CommandPart, depth int) (list []candidate) {
	add := func(text string, tail bool) {
		if text = strings.TrimSpace(text); text != "" {
			list = append(list, candidate{text, tail, depth})
		}
	}
	for _, set := range part.Sets {
		if name, value, _ := strings.Cut(set, "="); !isLocal(name) && !harmlessVariable(name, value) && !isVariable(value) {
			add(strings.TrimLeft(value, "|! "), false)
		}
	}
	for _, w := range part.Runs {
		add(strings.TrimLeft(w.Text, "|! "), false)
	}
	if len(part.Words) == 0 {
		return list
	}
	switch part.Words[0].Text {
	case "export", "declare", "typeset", "readonly", "local":
		for _, w := range part.Words[1:] {
			if name, value, _ := strings.Cut(w.Text, "="); !isLocal(name) && !harmlessVariable(name, value) && !isVariable(value) {
				add(strings.TrimLeft(value, "|! "), false)
			}
		}
	}
	if !part.Opaque {
		return list
	}
	words := part.Words[1:min(len(part.Words), maxTails)]
	for k, w := range words {
		if w.Text != "" && w.Text[0] != '-' {
			add(lineOf(part.Words[k+1:]), true)
		}
	}
	for _, w := range words {
		for _, text := range variants(w) {
			add(text, false)
		}
	}
	return list
}

// isVariable reports whether a text is the value of a variable and nothing else.
func isVariable(text string) bool {
	return strings.HasPrefix(text, "$") && !strings.ContainsAny(text, " \t\n;&|(`")
}

// lineOf returns a line of which the words are some words.
func lineOf(words []CommandWord) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		pieces := w.Pieces
		if !w.Open || pieces == nil {
			pieces = []CommandPiece{{Text: w.Text}}
		}
		for _, p := range pieces {
			switch {
			case p.Open:
				b.WriteString(p.source())
			case mustQuote(p.Text) && !(w.Open && p.Text == ""):
				b.WriteString(quoted(p.Text))
			default:
				b.WriteString(p.Text)
			}
		}
		if w.Open && w.Pieces == nil {
			b.WriteString("$_")
		}
	}
	return b.String()
}

// foundName is the variable that stands for what another program finds, in lines that
// are made of words.
const foundName = "_acp_found"

// source returns an open piece as a shell would read it.
func (p CommandPiece) source() string {
	switch p.Name {
	case "*", "?":
		return p.Name
	case "#":
		return "$#"
	case "{}":
		return "${" + foundName + "}"
	case "..":
		return "$(git rev-parse --show-toplevel)"
	case "":
		return "$_"
	}
	return "${" + p.Name + "}"
}

// variants returns what of a word may be a line: all of it, what follows an equals
// sign or a short option, each without the signs that say that it is one.
func variants(w CommandWord) (list []string) {
	if w.Open && w.Text == "" {
		return nil
	}
	add := func(text string) {
		text = strings.TrimLeft(text, "!|+:@ \t\n")
		if w.Open {
			text += "$_"
		}
		if text != "" && len(list) < maxVariants && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	if w.Text != "" && w.Text[0] != '-' {
		if mustQuote(w.Text) || strings.ContainsAny(w.Text[:1], "+:@") { // others are tails
			add(w.Text)
		}
	} else if len(w.Text) > 2 && w.Text[1] != '-' {
		add(w.Text[2:])
	}
	if _, text, ok := strings.Cut(w.Text, "::"); ok {
		add(text)
	}
	rest, ok := w.Text, true
	for range 3 {
		if _, rest, ok = strings.Cut(rest, "="); !ok {
			break
		}
		add(rest)
	}
	return list
}

// mayName reports whether a rule is about something in the line.
func (in inner) mayName(r *rule) bool {
	if in.doubt || in.parsed.Unsure != "" && in.netted(r, true) {
		return true
	}
	if strings.ContainsAny(in.text, `"'`) && strings.ContainsAny(in.text, "[({") && in.netted(r, false) {
		return true // it may be of another language, such as a list of lines
	}
	for i := range in.parsed.Parts {
		if in.named(r, i) > matchNo {
			return true
		}
	}
	return false
}
