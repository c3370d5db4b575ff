package tool

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A mending is what models write instead of the input of a tool, and what they mean by it.
// Names are compared without case, blanks, - and _.
type mending struct {
	// names are those that a member is given, the likeliest first.
	names map[string][]string
	// items are the names of members of what is in a list, by the list. flat is the list whose
	// only item may be written beside it.
	items map[string]map[string][]string
	flat  string
	// text is the member that a text alone is.
	text string
	// values are those that a member is given, by what they mean.
	values map[string]map[string][]string
	// meant are members that are not known, and cannot be left out unless they are empty, or
	// have one of these values.
	meant map[string][]string
	// loose says that of several names of a member the likeliest one counts. Otherwise the
	// input is not understood if they differ.
	loose bool
	// first is done before all that.
	first func(m *mending, in map[string]any, s *shape)
	// example is an input that is right.
	example string
}

var pathNames = []string{
	"filepath", "file", "filename", "absolutepath", "targetfile", "targetpath", "relativepath",
	"notebookpath", "pathname", "paths", "files",
}

var inNames = []string{
	"in", "dir", "directory", "root", "folder", "searchpath", "dirpath", "directorypath", "basepath", "cwd",
}

var oldNames = []string{
	"oldstring", "oldstr", "oldtext", "oldcontent", "oldcode", "search", "searchtext", "find", "original", "originaltext",
}

var newNames = []string{
	"newstring", "newstr", "newtext", "newcontent", "newcode", "replace", "replacement", "replacewith", "updated",
	"replacementtext",
}

var allNames = []string{"replaceall", "allowmultiple", "global"}

// mendings is what is known of each tool. There is nothing else that changes an input: a
// value is read in another form, and never invented.
var mendings = map[string]*mending{
	"read": {
		names: map[string][]string{
			"path": pathNames, "from": {"offset", "startline", "linestart", "start", "fromline", "line", "startlineoneindexed"},
			"lines": {"limit", "numlines", "linecount", "maxlines", "count", "numberoflines"},
		},
		meant: map[string][]string{"command": {"view", "read"}}, loose: true, first: mendRead,
		example: `{"path":"FILE","from":1,"lines":100}`,
	},
	"search": {
		names: map[string][]string{
			"pattern": {"regex", "query", "regexp", "searchpattern", "search", "text"}, "path": inNames,
			"glob": {"include", "filepattern", "fileglob", "includepattern", "globpattern", "files"},
		},
		loose: true, first: mendSearch, example: `{"pattern":"WORD","glob":"*.go"}`,
	},
	"find": {
		names: map[string][]string{
			"glob": {"pattern", "globpattern", "query", "filepattern", "name", "filename"}, "path": inNames,
		},
		loose: true, example: `{"glob":"**/*.go"}`,
	},
	"edit": {
		names: map[string][]string{"path": pathNames, "edits": {"changes", "replacements", "edit"}, "all": allNames},
		items: map[string]map[string][]string{"edits": {"old": oldNames, "new": newNames, "all": allNames}}, flat: "edits",
		meant: map[string][]string{
			"command": {"str_replace", "edit", "replace"}, "dryrun": nil, "preview": nil,
			"regex": nil, "useregex": nil, "isregex": nil,
		},
		first: mendEdit, example: `{"path":"FILE","edits":[{"old":"TEXT","new":"TEXT"}]}`,
	},
	"write": {
		names: map[string][]string{"path": pathNames, "text": {
			"content", "contents", "filetext", "filecontent", "filecontents", "newcontent", "body", "codecontent",
		}},
		meant: map[string][]string{
			"command": {"create", "write"}, "mode": {"overwrite", "w", "write", "create", "rewrite"}, "append": nil,
			"overwrite": {"true"}, "dryrun": nil,
			"encoding": {"utf-8", "utf8"}, "permissions": nil, "executable": nil,
		},
		example: `{"path":"FILE","text":"ALL OF IT"}`,
	},
	"patch": {
		names: map[string][]string{"patch": {
			"input", "patchtext", "patchcontent", "diff", "content", "text", "command", "cmd",
		}},
		meant: map[string][]string{"dryrun": nil, "workdir": {"."}, "cwd": {"."}}, text: "patch", first: mendPatch,
		example: `{"patch":"*** Begin Patch\n*** Update File: PATH\n@@ PLACE\n-OLD\n+NEW\n*** End Patch"}`,
	},
	"run": {
		names: map[string][]string{
			"command": {"cmd", "commandline", "bashcommand", "shellcommand", "script", "bash"},
			"cwd":     {"workdir", "workingdirectory", "workingdir", "directory", "dir"},
			"seconds": {"timeoutseconds", "timeoutsec", "timeoutsecs"}, "background": {"runinbackground", "isbackground"},
		},
		meant: map[string][]string{"env": nil, "environment": nil, "stdin": nil, "input": nil, "user": nil},
		first: mendRun, example: `{"command":"LINE"}`,
	},
	"job": {
		names: map[string][]string{
			"id": {"jobid", "job", "taskid", "bashid", "processid", "sessionid"}, "do": {"action", "op", "operation", "command"},
			"seconds": {"timeoutseconds", "timeout", "wait"},
		},
		values: map[string]map[string][]string{"do": {
			"read": {"output", "get", "logs", "status"}, "stop": {"kill", "terminate", "cancel"},
		}},
		loose:   true,
		example: `{"id":"1","do":"read"}`,
	},
	"plan": {
		names: map[string][]string{"steps": {"todos", "plan", "items", "tasks", "todolist", "entries"}},
		items: map[string]map[string][]string{"steps": {
			"text": {"content", "step", "title", "task", "description", "name"}, "status": {"state"},
		}},
		values: map[string]map[string][]string{"status": {
			"completed": {"done", "complete", "finished"}, "pending": {"todo", "notstarted", "open"},
			"in_progress": {"active", "doing", "started", "current"},
		}},
		loose: true, first: mendPlan, example: `{"steps":[{"text":"STEP","status":"pending"}]}`,
	},
	"tools_use": {
		names:   map[string][]string{"name": {"tool", "toolname"}, "input": {"arguments", "args", "parameters", "params"}},
		example: `{"name":"TOOL","input":{}}`,
	},
	"tools_find": {
		names: map[string][]string{"words": {"query", "text", "keywords"}}, loose: true, example: `{"words":"WORD WORD"}`,
	},
	"fetch": {
		names: map[string][]string{"url": {"uri", "link", "href", "address", "urls"}}, loose: true,
		example: `{"url":"https://…"}`,
	},
	"ask": {
		names: map[string][]string{
			"question": {"prompt", "text", "message", "query", "questions"}, "options": {"choices", "answers", "suggestions"},
		},
		loose: true, first: mendAsk, example: `{"question":"…","options":["…","…"]}`,
	},
}

// maxNested bounds how often a JSON text in a JSON text is read.
const maxNested = 4

// Mend returns the input of a tool as its schema wants it, if what a model has written can
// be read in no other way; otherwise what it was given. It never changes an input that the
// schema allows: callers see to that.
func Mend(t Tool, input json.RawMessage) json.RawMessage {
	m, s := mendings[t.Name], shapeOf(t.Schema)
	if s == nil {
		return input
	}
	if m == nil { // a tool of an MCP server: its words are its own
		m = &mending{}
	}
	value, ok := parse(input)
	if !ok {
		return input
	}
	in, ok := m.object(value, s)
	if !ok {
		return input
	}
	if m.first != nil {
		m.first(m, in, s)
	}
	if !m.rename(in, m.names, s) || !m.lists(in, s) || !m.flatten(in, s) {
		return input
	}
	if !m.fit(in, s) {
		return input
	}
	out, err := encode(in)
	if err != nil {
		return input
	}
	return out
}

// object returns the members of an input: those of an object, or of what holds one.
func (m *mending) object(value any, s *shape) (map[string]any, bool) {
	for range maxNested {
		switch v := value.(type) {
		case map[string]any:
			inner, ok := wrapped(v, s)
			if _, isText := inner.(string); !ok || isText && m.text != "" {
				return v, true
			}
			value = inner
		case []any:
			if len(v) != 1 {
				return nil, false
			}
			value = v[0]
		case string:
			inner, ok := parse([]byte(unfenced(v)))
			if _, isText := inner.(string); ok && !isText {
				value = inner
				continue
			}
			if m.text == "" || ok || strings.TrimSpace(v) == "" {
				return nil, false
			}
			return map[string]any{m.text: v}, true
		default:
			return nil, false
		}
	}
	return nil, false
}

// wrapped returns what the only member of an object holds, if that is a name for all of an
// input.
func wrapped(in map[string]any, s *shape) (any, bool) {
	for name, inner := range in {
		switch plainName(name) {
		case "input", "arguments", "args", "parameters", "params":
			return inner, len(in) == 1 && s.Properties[name] == nil
		}
	}
	return nil, false
}

// rename gives members the names that the schema has. It reports false if two that are not
// the same are meant to be one.
func (m *mending) rename(in map[string]any, names map[string][]string, s *shape) bool {
	plain := map[string][]string{}
	for _, name := range sortedNames(in) {
		if s.Properties[name] == nil {
			plain[plainName(name)] = append(plain[plainName(name)], name)
		}
	}
	for _, member := range sortedNames(s.Properties) {
		for _, other := range append([]string{plainName(member)}, names[member]...) {
			for _, name := range plain[other] {
				value := in[name]
				old, known := in[member]
				switch {
				case empty(value) && known, known && reflect.DeepEqual(old, value):
					delete(in, name)
				case !known || old == nil:
					if !s.Properties[member].takes(value) {
						continue // it may be another's
					}
					in[member] = value
					delete(in, name)
				case m.loose:
					delete(in, name)
				default:
					return false
				}
			}
		}
	}
	return true
}

// lists gives the members of what is in lists their names. It reports false if one of them would be lost that means
// something.
func (m *mending) lists(in map[string]any, s *shape) bool {
	for list, names := range m.items {
		p := s.Properties[list]
		if p == nil || p.Items == nil {
			continue
		}
		if value, given := in[list]; given {
			value, ok := p.fit(value)
			if !ok {
				return false
			}
			in[list] = value
		}
		items, _ := in[list].([]any)
		for _, item := range items {
			if o, ok := item.(map[string]any); ok && (!m.rename(o, names, p.Items) || m.loses(o, p.Items)) {
				return false
			}
		}
	}
	return true
}

// flatten makes the only item of a list of members that stand beside it.
func (m *mending) flatten(in map[string]any, s *shape) bool {
	p := s.Properties[m.flat]
	if p == nil || p.Items == nil {
		return true
	}
	item := map[string]any{}
	for name, value := range in {
		if s.Properties[name] == nil {
			item[name] = value
		}
	}
	if !m.rename(item, m.items[m.flat], p.Items) {
		return false
	}
	for _, name := range p.Items.Required {
		if _, ok := item[name]; !ok {
			return true
		}
	}
	if items, ok := in[m.flat].([]any); in[m.flat] != nil && (!ok || len(items) > 0) {
		return false // there is a list, too
	}
	for name := range in {
		_, left := item[name]
		switch {
		case s.Properties[name] != nil:
		case left && p.Items.Properties[name] == nil:
			delete(item, name) // it stays beside the list
		default:
			delete(in, name)
		}
	}
	in[m.flat] = []any{item}
	return true
}

// fit gives values the form that the schema wants, and leaves out what says nothing or is
// not known. It reports false if something would be lost that means something.
func (m *mending) fit(in map[string]any, s *shape) bool {
	if m.loses(in, s) {
		return false
	}
	fitted, ok := s.fit(in)
	if !ok {
		return false
	}
	m.synonyms(fitted, s)
	return true
}

// loses reports whether something that means something is in an object, and is not known there: another name of a
// member that it cannot be, a member that belongs elsewhere, as a path in an edit, or what must not be left out.
func (m *mending) loses(in map[string]any, s *shape) bool {
	for name, value := range in {
		if s.Properties[name] != nil || empty(value) {
			continue
		}
		if m.isName(plainName(name)) {
			return true
		}
		allowed, meant := m.meant[plainName(name)]
		if meant && !slices.Contains(allowed, strings.ToLower(textOf(value))) {
			return true
		}
	}
	return false
}

// isName reports whether models mean a member by a name, of the input or of the list whose only item may stand
// beside it.
func (m *mending) isName(name string) bool {
	for _, names := range []map[string][]string{m.names, m.items[m.flat]} {
		for member, others := range names {
			if plainName(member) == name || slices.Contains(others, name) {
				return true
			}
		}
	}
	return false
}

// synonyms puts the values that a schema lists in the place of what means the same.
func (m *mending) synonyms(value any, s *shape) {
	switch v := value.(type) {
	case map[string]any:
		for name, p := range s.Properties {
			inner, given := v[name]
			if !given {
				continue
			}
			text, ok := inner.(string)
			if !ok || len(p.Enum) == 0 {
				m.synonyms(inner, p)
				continue
			}
			for _, allowed := range p.Enum {
				word, _ := allowed.(string)
				if plainName(word) == plainName(text) || slices.Contains(m.values[name][word], plainName(text)) {
					v[name] = word
				}
			}
		}
	case []any:
		for _, item := range v {
			if s.Items != nil {
				m.synonyms(item, s.Items)
			}
		}
	}
}

// plainName is a name without what models write in different ways.
func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// sortedNames returns the names of members in an order that is always the same.
func sortedNames[V any](in map[string]V) []string { return slices.Sorted(maps.Keys(in)) }
