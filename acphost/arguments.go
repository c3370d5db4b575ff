package acphost

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Bounds of what is looked at for rules about paths. What is beyond them may be what
// a rule is about.
const (
	maxArguments = 256     // words of a command
	maxPaths     = 64      // readings of a word
	maxWork      = 1 << 16 // comparisons for a request
)

// noFiles are programs that open none of the files that their words name.
var noFiles = namesOf(`echo printf test [ [[ : true false exit return break continue shift set unset
	export declare typeset readonly local let getopts read wait kill sleep seq expr basename dirname cd pushd popd chdir`)

// namesOf returns the set of the names in a text, which is made when it is first asked for.
func namesOf(text string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		m := map[string]bool{}
		for name := range strings.FieldsSeq(text) {
			m[name] = true
		}
		return m
	})
}

// messages are the options of git and its like whose value is text for people.
var messages = map[string]bool{"-m": true, "-am": true, "--message": true, "-b": true, "--body": true, "-t": true, "--title": true}

// mayOpen reports whether what a deed runs may use a file that a rule which denies
// or asks is about. What commands do with their words is not known.
func (d *deed) mayOpen(r *rule, req *Request) bool {
	switch {
	case d.file != nil:
		return d.places.mayBe(r, d.all, d.of, *d.file, d.places.dirsOf(d.all, d.of, d.req), d.req)
	case d.line == nil || d.line.parsed == nil || !req.runs():
		return false
	case d.part >= 0:
		return d.places.partOpens(r, d.line, d.part, d.places.dirsOf(d.line, d.partOf(), req), req)
	case !req.commandUnknown():
		return d.line.parsed.Unsure != ""
	}
	for i := range d.line.parsed.Parts { // it is only shown
		part := &d.line.parsed.Parts[i]
		if d.places.partOpens(r, d.line, i, d.places.dirsOf(d.line, part, req), req) || d.places.redirects(r, d.line, part, req) {
			return true
		}
	}
	return false
}

// redirects reports whether a redirection of a part may be of a file that a rule is
// about.
func (at *places) redirects(r *rule, l *line, part *CommandPart, req *Request) bool {
	return slices.ContainsFunc(slices.Concat(part.Reads, part.Writes), func(w CommandWord) bool {
		return at.mayBe(r, l, part, w, at.dirsOf(l, part, req), req)
	})
}

// partOpens reports whether a part, or a line that it may run, may use a file that
// a rule is about.
func (at *places) partOpens(r *rule, l *line, i int, dirs []pathShape, req *Request) bool {
	part := &l.parsed.Parts[i]
	if at.wordsOpen(r, l, part, dirs, req) {
		return true
	}
	list, more := l.innerOf(i)
	if more {
		return true
	}
	return slices.ContainsFunc(list, func(in inner) bool {
		if in.doubt || in.parsed.Unsure != "" && at.netted(r, in.text, dirs, req) {
			return true
		}
		for k := range in.parsed.Parts {
			p := &in.parsed.Parts[k]
			inside := extend(extend(dirs, in.parsed.Moves, in.parsed.Values), p.In, in.parsed.Values)
			if at.wordsOpen(r, in.line, p, inside, req) {
				return true
			}
			for _, w := range slices.Concat(p.Reads, p.Writes) {
				if at.mayBe(r, in.line, p, w, inside, req) {
					return true
				}
			}
		}
		return false
	})
}

// netted looks for the files that a rule is about anywhere in a text.
func (at *places) netted(r *rule, text string, dirs []pathShape, req *Request) bool {
	n := 0
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune(" \t\r\n;&|<>(){}[]`$\\'\",=", c) }) {
		if n++; n > maxArguments || at.mayBe(r, nil, nil, CommandWord{Text: word}, dirs, req) {
			return true
		}
	}
	return false
}

// wordsOpen reports whether an argument of a part may be a file that a rule is
// about.
func (at *places) wordsOpen(r *rule, l *line, part *CommandPart, dirs []pathShape, req *Request) bool {
	if len(part.Words) > maxArguments {
		return true
	}
	for i := range part.Words {
		if (i > 0 || strings.Contains(part.Words[0].Text, "/")) && at.mayBe(r, l, part, part.Words[i], dirs, req) && !part.isText(i) {
			return true
		}
	}
	for _, set := range part.Sets {
		if _, value, _ := strings.Cut(set, "="); at.mayBe(r, nil, nil, CommandWord{Text: value}, dirs, req) {
			return true
		}
	}
	return false
}

// isText reports whether an open word of a part is not the name of a file.
func (part *CommandPart) isText(i int) bool {
	w := part.Words[i]
	switch program := part.Words[0].Text; {
	case !w.Open || i == 0:
		return false
	case noFiles()[program]:
		return true
	case program == "git" || program == "gh":
		return messages[part.Words[i-1].Text]
	}
	return false
}

// mayBe reports whether a word of a part may be a file that a rule is about, in one
// of some directories.
func (at *places) mayBe(r *rule, l *line, part *CommandPart, w CommandWord, dirs []pathShape, req *Request) bool {
	var values map[string][]CommandWord
	if l != nil {
		values = l.parsed.Values
	}
	if len(w.Text) > maxShape || !w.Open && strings.ContainsAny(w.Text, "\n\x00") {
		return false
	}
	if part != nil && !w.Open && strings.ContainsAny(w.Text, "*?[{") {
		if option, pattern := part.finds(w); option != "" {
			dirs := part.searched(dirs)
			if slices.ContainsFunc(globShapes(pattern, option), func(s pathShape) bool { return at.meetIn(r, s, dirs, req) }) {
				return true
			}
		}
	}
	for _, s := range shapesOf(w, values, 0) {
		at.work += len(s) / 64
		if s.isFound() {
			continue
		}
		list := s.paths()
		if len(list) > maxPaths || slices.ContainsFunc(list, func(s pathShape) bool { return at.meetIn(r, s, dirs, req) }) {
			return true
		}
	}
	return false
}

// meetIn reports whether a rule is about a path in one of some directories.
func (at *places) meetIn(r *rule, s pathShape, dirs []pathShape, req *Request) bool {
	return slices.ContainsFunc(dirs, func(dir pathShape) bool { return at.meet(r, s.join(dir), req) })
}

// finds returns the option that makes a word the pattern by which a part looks for
// files, and the pattern; the option is "" if none does.
func (part *CommandPart) finds(w CommandWord) (option, pattern string) {
	if name, value, joined := strings.Cut(w.Text, "="); joined && (name == "--glob" || name == "--iglob" || name == "--include") && !strings.HasPrefix(value, "!") {
		return name, value
	}
	for i := 1; i < len(part.Words); i++ {
		if part.Words[i].Source != w.Source || part.Words[i].Text != w.Text || strings.HasPrefix(w.Text, "!") {
			continue
		}
		switch option := part.Words[i-1].Text; option {
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-g", "--glob", "--iglob", "--include":
			if i < 2 || part.Words[i-2].Text != "!" && part.Words[i-2].Text != "-not" {
				return option, w.Text
			}
		}
		if part.Words[0].Text == "git" && slices.ContainsFunc(part.Words[:i], func(w CommandWord) bool { return w.Text == "--" }) {
			return "--", w.Text
		}
	}
	return "", ""
}

// searched returns the directories in which a part may look for files.
func (part *CommandPart) searched(dirs []pathShape) []pathShape {
	out := slices.Clone(dirs)
	for _, w := range part.Words[1:] {
		if w.Open || w.Text == "" || strings.ContainsAny(w.Text[:1], "-!(") || strings.ContainsAny(w.Text, "*?[") {
			continue
		}
		for _, dir := range dirs {
			if out = append(out, shapeOf(w.Text).join(dir)); len(out) > maxShapes {
				return []pathShape{unknown}
			}
		}
	}
	return out
}

// globShapes returns the shapes of a pattern by which files are looked for, in which *
// stands for a dot, too: in a directory, and below it.
func globShapes(pattern, option string) []pathShape {
	if strings.HasSuffix(option, "regex") || strings.Contains(pattern, "[") {
		return []pathShape{unknown}
	}
	if before, rest, ok := strings.Cut(pattern, "{"); ok && option != "--" {
		inside, after, _ := strings.Cut(rest, "}")
		if strings.ContainsAny(inside+after, "{}") {
			return []pathShape{unknown}
		}
		var all []pathShape
		for one := range strings.SplitSeq(inside, ",") {
			if all = append(all, globShapes(before+one+after, option)...); len(all) > maxShapes {
				return []pathShape{unknown}
			}
		}
		return all
	}
	if strings.HasPrefix(pattern, ":") { // what git makes of it
		pattern = pattern[strings.LastIndexAny(pattern, ":)^!/")+1:]
	}
	s, star := shapeOf(pattern), anyName
	if slices.Contains(s, '/') {
		star = anyText
	}
	for i, c := range s {
		switch c {
		case '*':
			s[i] = star
		case '?':
			s[i] = oneOfName
		}
	}
	return []pathShape{s, append(pathShape{'.', '/', anyText, '/'}, s...)}
}

// paths returns what of a word may be a path: all of it, what follows an option of
// one letter, and what is between signs, as in --file=F, HEAD:F, F:/x and @F.
func (s pathShape) paths() []pathShape {
	var list []pathShape
	add := func(t pathShape) {
		if len(t) > 0 && len(list) <= maxPaths {
			list = append(list, slices.Clone(t).hide())
		}
	}
	from := func(i int) {
		add(s[i:])
		if i < len(s) && s[i] == '"' { // as curl has it
			add(slices.DeleteFunc(slices.Clone(s[i:]), func(c rune) bool { return c == '"' }))
		}
		if n := slices.IndexFunc(s[i:], func(c rune) bool { return c == ':' || c == ',' }); n >= 0 {
			add(s[i : i+n])
		}
	}
	option := len(s) > 0 && s[0] == '-'
	if !option {
		from(0)
	} else if len(s) > 2 && s[1] != '-' {
		for i := 2; i < min(len(s), 8) && s[i-1] != '='; i++ {
			from(i)
		}
	}
	magic := len(s) > 1 && s[0] == ':' && s[1] == '(' // of git's pathspecs
	for i, c := range s {
		if c == '=' || c == ':' || c == '@' || c == ',' || c == ')' && magic {
			from(i + 1)
		}
	}
	return list
}

// meet reports whether a rule that denies or asks is about a path.
func (at *places) meet(r *rule, s pathShape, req *Request) bool {
	if at.work++; at.work > maxWork {
		return true
	}
	if text, ok := s.text(); ok {
		return matchPlace(r.paths, at.place(filepath.FromSlash(text), req.Cwd), true) > matchNo
	}
	cwd := ""
	if filepath.IsAbs(req.Cwd) {
		cwd = cleanPath(req.Cwd, "")
	}
	real, inCwd := s, at.follow(cwd)
	if n := s.known(); n > 0 {
		if to := at.follow(strings.TrimSuffix(string(s[:n]), "/")); to != "" {
			real = slices.Concat(shapeOf(strings.TrimSuffix(to, "/")+"/"), s[n:])
		}
	}
	return slices.ContainsFunc(r.paths, func(g pathGlob) bool { return g.mayMatch(s, cwd) || g.mayMatch(real, inCwd) })
}

// dirsOf returns the directories in which a part may work.
func (at *places) dirsOf(l *line, part *CommandPart, req *Request) []pathShape {
	if dirs, ok := at.dirs[part]; ok {
		return dirs
	}
	cwd := pathShape{'/'}
	if filepath.IsAbs(req.Cwd) {
		cwd = shapeOf(cleanPath(req.Cwd, ""))
	}
	moves, values := []CommandWord(nil), map[string][]CommandWord(nil)
	if l != nil {
		moves, values = l.parsed.Moves, l.parsed.Values
	}
	if part.Dir.Text != "" || part.Dir.Open && len(moves) == 0 {
		moves = append(slices.Clone(moves), part.Dir)
	}
	dirs := extend(extend([]pathShape{cwd}, moves, values), part.In, values)
	if at.dirs == nil {
		at.dirs = map[*CommandPart][]pathShape{}
	}
	at.dirs[part] = dirs
	return dirs
}

// extend returns some directories, and those to which changes lead from them.
func extend(dirs []pathShape, moves []CommandWord, values map[string][]CommandWord) []pathShape {
	if len(moves) == 0 {
		return dirs
	}
	dirs = slices.Clone(dirs)
	has := map[string]bool{}
	for _, d := range dirs {
		has[shapeKey(d)] = true
	}
	for _, w := range moves {
		for _, to := range shapesOf(w, values, 0) {
			if to.isFound() {
				to = unknown
			}
			for _, dir := range dirs {
				d := to.join(dir)
				if key := shapeKey(d); !has[key] {
					has[key] = true
					dirs = append(dirs, d)
				}
			}
			if len(dirs) > maxShapes {
				return []pathShape{unknown}
			}
		}
	}
	return dirs
}

// shapeKey returns a text that is different for different shapes.
func shapeKey(s pathShape) string {
	var b strings.Builder
	for _, c := range s {
		if c < 0 {
			b.WriteByte(0)
			c = -c
		}
		b.WriteRune(c)
	}
	return b.String()
}
