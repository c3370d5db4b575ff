package tool

import (
	"encoding/json"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// member returns the value of the first member that has one of some plain names.
func member(in map[string]any, names ...string) (name string, value any) {
	for _, want := range names {
		for _, n := range sortedNames(in) {
			if plainName(n) == want && in[n] != nil {
				return n, in[n]
			}
		}
	}
	return "", nil
}

// member returns the value of the first member that has a name, or one that models give it.
func (m *mending) member(in map[string]any, name string) (string, any) {
	return member(in, append([]string{name}, m.names[name]...)...)
}

// mendRead reads ranges of lines: their end, a list of both, or 10-20.
func mendRead(_ *mending, in map[string]any, _ *shape) {
	pair := func(from, to any) {
		first, ok1 := whole(from)
		last, ok2 := whole(to)
		if !ok1 {
			return
		}
		in["from"] = first
		delete(in, "lines")
		if n, ok := count(first, last); ok && ok2 {
			in["lines"] = n
		}
	}
	if name, value := member(in, "viewrange", "linerange", "range", "lines"); name != "" {
		list, isList := value.([]any)
		text, isText := value.(string)
		from, to, isRange := strings.Cut(strings.TrimSpace(text), "-")
		switch {
		case isList && len(list) == 2:
			delete(in, name)
			pair(list[0], list[1])
		case isText && isRange && from != "" && to != "":
			delete(in, name)
			pair(from, to)
		}
		return
	}
	end, last := member(in, "endline", "lineend", "toline", "to", "end", "endlineoneindexed", "endlineoneindexedinclusive")
	_, first := member(in, "from", "startline", "linestart", "fromline", "start", "offset", "startlineoneindexed")
	if _, limit := member(in, "lines", "limit"); end == "" || limit != nil {
		return
	}
	if first == nil {
		first = json.Number("1")
	}
	delete(in, end)
	pair(first, last)
}

// count returns how many lines a range has.
func count(first, last any) (json.Number, bool) {
	a, err1 := json.Number(textOf(first)).Int64()
	b, err2 := json.Number(textOf(last)).Int64()
	if err1 != nil || err2 != nil || b < a || a < 1 || b > 1<<31 {
		return "", false
	}
	n, _ := encode(b - a + 1)
	return json.Number(n), true
}

// mendSearch puts what is said of the case of letters into the pattern, whichever of its names that has.
func mendSearch(m *mending, in map[string]any, _ *shape) {
	_, value := member(in, "i", "ignorecase", "caseinsensitive")
	_, sensitive := member(in, "casesensitive")
	if textOf(value) != "true" && textOf(sensitive) != "false" {
		return
	}
	for _, name := range append([]string{"pattern"}, m.names["pattern"]...) {
		n, pattern := member(in, name)
		if text, ok := pattern.(string); ok {
			in[n] = "(?i)" + text
		}
	}
}

// mendEdit takes the path out of edits that all have the same one, which is that of the input if it has one.
// Otherwise the paths stay, and what has them does not fit.
func mendEdit(m *mending, in map[string]any, s *shape) {
	name, value := m.member(in, "edits")
	if name == "" {
		return
	}
	list, ok := s.Properties["edits"].fit(value)
	if !ok {
		return
	}
	in[name] = list
	_, path := m.member(in, "path")
	given := path != nil
	for _, item := range list.([]any) {
		n, own := m.member(item.(map[string]any), "path")
		if path == nil {
			path = own
		}
		if n == "" && !given || n != "" && !reflect.DeepEqual(own, path) {
			return
		}
	}
	if path == nil {
		return
	}
	for _, item := range list.([]any) {
		for { // one may be there under several names
			n, own := m.member(item.(map[string]any), "path")
			if n == "" || !reflect.DeepEqual(own, path) {
				break
			}
			delete(item.(map[string]any), n)
		}
	}
	in["path"] = path
}

// mendPatch takes the patch out of a command.
func mendPatch(_ *mending, in map[string]any, _ *shape) {
	for name, value := range in {
		if list, ok := value.([]any); ok && len(list) == 2 && patchCommands[textOf(list[0])] {
			in[name] = list[1]
		}
		if text, ok := value.(string); ok {
			if patch, dir, ok := patchOf(text); ok && dir == "" {
				in[name] = patch
			}
		}
	}
}

// AsPatch returns the input of [Patch] if that of [Edit], which does not fit, has a patch in
// it and no texts to replace: models that were trained on patches send them to any tool.
func AsPatch(t Tool, input json.RawMessage) (json.RawMessage, bool) {
	value, ok := parse(input)
	if !ok || t.Name != Edit.Name {
		return nil, false
	}
	patch := ""
	if text, ok := value.(string); ok {
		patch = text
	}
	in, _ := value.(map[string]any)
	for name, value := range in {
		text, isText := value.(string)
		switch n := plainName(name); {
		case slices.Contains(slices.Concat(oldNames, newNames, []string{"old", "new"}), n), !isText && !empty(value):
			return nil, false
		case strings.Contains(text, "*** Begin Patch"):
			if patch != "" {
				return nil, false
			}
			patch = text
		}
	}
	if !strings.Contains(patch, "*** Begin Patch") {
		return nil, false
	}
	out, err := encode(PatchInput{patch})
	return out, err == nil
}

// shells are those that take a line after -c.
var shells = []string{"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/bin/zsh", "/usr/bin/env bash"}

// mendRun makes a line of the words of a command, and goes to the directory where it is to
// run.
func mendRun(m *mending, in map[string]any, _ *shape) {
	name, value := m.member(in, "command")
	if text, ok := value.(string); ok && strings.HasPrefix(strings.TrimSpace(text), "[") {
		if list, ok := nested(text); ok { // [ is a command, too, and not JSON
			value = list
		}
	}
	if words, ok := texts(value); ok && len(words) > 0 {
		if line, ok := lineOf(words); ok {
			in[name] = line
		}
	}
	where, dir := m.member(in, "cwd")
	line, isText := in[name].(string)
	path, isPath := dir.(string)
	if where == "" || !isText || !isPath || runtime.GOOS == "windows" {
		return
	}
	quoted, err := syntax.Quote(path, syntax.LangPOSIX)
	switch path = strings.TrimSpace(path); {
	case path == "." || path == "./" || path == "":
	case err != nil || strings.HasPrefix(path, "-") || strings.HasPrefix(path, "~"):
		return
	case single(line):
		in[name] = "cd " + quoted + " && " + line
	default:
		in[name] = "cd " + quoted + " || exit\n" + line
	}
	delete(in, where)
}

// texts returns the strings of a list that has nothing else.
func texts(value any) ([]string, bool) {
	list, ok := value.([]any)
	if !ok {
		return nil, false
	}
	all := make([]string, len(list))
	for i, item := range list {
		if all[i], ok = item.(string); !ok {
			return nil, false
		}
	}
	return all, true
}

// lineOf returns the line of the shell that is a list of words.
func lineOf(words []string) (string, bool) {
	switch {
	case len(words) == 1:
		return words[0], true
	case len(words) == 2 && patchCommands[words[0]] && strings.HasPrefix(words[1], "<<"):
		return words[0] + " " + words[1], true
	case len(words) == 3 && slices.Contains(shells, words[0]) && (words[1] == "-c" || words[1] == "-lc"):
		return words[2], true
	}
	for i, w := range words {
		q, err := syntax.Quote(w, syntax.LangPOSIX)
		if err != nil || w != "" && strings.Trim(w, "&|;<>012") == "" && strings.ContainsAny(w, "&|;<>") {
			return "", false // who writes operators means the shell's
		}
		words[i] = q
	}
	return strings.Join(words, " "), true
}

// single reports whether all of a line is left out if what is put before it with && fails.
func single(line string) bool {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil || len(f.Stmts) != 1 || f.Stmts[0].Background {
		return false
	}
	for s := f.Stmts[0]; ; {
		b, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok {
			return true
		}
		if b.Op == syntax.OrStmt {
			return false
		}
		s = b.X
	}
}

// mendPlan reads steps that are texts, with or without a box to tick.
func mendPlan(m *mending, in map[string]any, _ *shape) {
	name, value := m.member(in, "steps")
	if text, ok := value.(string); ok {
		if list, ok := nested(text); ok {
			value = list
		}
	}
	list, ok := value.([]any)
	if !ok {
		return
	}
	steps := make([]any, len(list))
	for i, item := range list {
		steps[i] = item
		text, isText := item.(string)
		if !isText {
			if o, ok := item.(map[string]any); ok {
				if n, _ := member(o, "status", "state"); n == "" {
					o["status"] = "pending"
					if _, done := member(o, "completed", "done"); done == true {
						o["status"] = "completed"
					}
				}
			}
			continue
		}
		if _, ok := nested(text); ok {
			continue
		}
		status := "pending"
		text = strings.TrimSpace(text)
		for box, means := range map[string]string{"[ ]": "pending", "[x]": "completed", "[X]": "completed"} {
			if rest, ok := strings.CutPrefix(strings.TrimPrefix(text, "- "), box); ok {
				text, status = strings.TrimSpace(rest), means
			}
		}
		steps[i] = map[string]any{"text": text, "status": status}
	}
	in[name] = steps
}

// mendAsk reads options that are objects, and a question in a list of its own.
func mendAsk(m *mending, in map[string]any, _ *shape) {
	if name, value := member(in, "questions", "question"); name != "" {
		inner := value
		if list, ok := inner.([]any); ok && len(list) == 1 {
			inner = list[0]
		}
		if o, ok := inner.(map[string]any); ok {
			delete(in, name)
			for n, v := range o {
				in[n] = v
			}
		}
	}
	name, value := m.member(in, "options")
	list, ok := value.([]any)
	if !ok {
		return
	}
	options := slices.Clone(list)
	for i, item := range options {
		if o, ok := item.(map[string]any); ok {
			if _, label := member(o, "label", "title", "text", "name", "value", "option"); label != nil {
				options[i] = label
			}
		}
	}
	in[name] = options
}
