package acphost

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/goacp/acp"
)

// Shows returns the command that a request would run, for people to read, and
// whether it is certain. The command is "" if nothing would be run and, with
// certain false, if something would be run and the request does not show what.
//
// A command is taken from:
//
//	a request about a command                          certain
//	the input: command or cmd, a text                  certain
//	the input: command, cmd or argv, a list of texts   certain: a program and its arguments
//	  beside command: args, a list of texts            certain: the arguments, if command is one word
//	  beside command: argv, commands and other texts   certain if they say what command says, or a part of it
//	  beside command: a directory, a description,
//	    a time, a number, true or false, parsed_cmd    certain
//	  beside command: anything else                    shown only
//	the input: commands alone, a list of texts         shown only
//	the content, without an input: the input as JSON   shown only
//	the content: "Running: …", "$ …"                   shown only
//	the title: "$ …", or all of it between backticks   shown only
//
// The input is the raw input of a tool of the kind execute or other, or without a
// kind. Members that are spelled in another way, or are there twice, make it
// uncertain.
func (r Request) Shows() (command string, certain bool) {
	switch {
	case !r.runs():
		return "", true
	case r.commandUnknown():
		return r.Shown, false
	}
	return r.Command, true
}

// findCommand takes what a tool call says would be run.
func (r *Request) findCommand(call *acp.ToolCallUpdate) {
	in := readInput(r.RawInput)
	runs := r.Kind == string(acp.ToolKindExecute)
	written := false
	if runs && isNothing(r.RawInput) {
		in = readInput(inputIn(call))
		written = in.runs
	}
	if runs || in.runs {
		command, certain := in.command()
		cwd := r.Cwd
		switch {
		case in.cwd == "":
		case filepath.IsAbs(in.cwd):
			cwd = in.cwd
		case r.Cwd != "":
			cwd = filepath.Join(r.Cwd, in.cwd)
		}
		switch {
		case certain && written:
			r.CommandUnknown, r.Shown, r.Cwd = true, command, cwd
			return
		case certain:
			r.Command, r.Cwd = command, cwd
			return
		case command != "":
			r.CommandUnknown, r.Shown = true, command
			return
		}
	}
	text := shownIn(call, runs)
	if runs || in.runs || text != "" {
		r.CommandUnknown, r.Shown = true, text
	}
}

// maxShown bounds the text in which a command is looked for, in bytes.
const maxShown = 64 << 10

// An input is what the raw input of a tool says about a command.
type input struct {
	runs    bool // it has a member for a command
	sure    bool // it can be read in one way only
	muddled bool // it names the command twice
	line    string
	words   []string // the command as a program and its arguments
	args    []string // that follow the command
	says    []string // texts beside the command, which have to be part of it
	lists   [][]string
	lines   []string // several commands
	cwd     string
}

// Members that say where a command would be run, and those that say nothing about
// what it does.
var (
	inputDirs = []string{"cwd", "workdir", "working_directory", "workingDirectory", "work_dir", "directory", "dir", "dir_path"}
	inputNews = []string{
		"description", "justification", "reason", "explanation", "title", "summary", "purpose", "timeout",
		"id", "call_id", "callId", "turn_id", "turnId", "tool_call_id", "toolCallId", "approval_id",
	}
)

// readInput reads the input of a tool. Another reader of it must come to the
// same: encoding/json would take "Command" for "command", and of two members the
// last.
func readInput(raw json.RawMessage) (in input) {
	members, once := inputMembers(raw)
	in.sure, in.muddled = once, !once
	spelled := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value := members[name]
		lower := strings.ToLower(name)
		switch lower {
		case "command", "cmd", "commands":
			in.runs = true
			in.muddled = in.muddled || spelled[lower]
			spelled[lower] = true
		}
		switch {
		case lower == "command" || lower == "cmd" || lower == "argv":
			in.sure = in.sure && name == lower && (lower != "cmd" || members["command"] == nil)
			in.takeCommand(value, lower == "argv" && (members["command"] != nil || members["cmd"] != nil))
		case name == "args":
			args, ok := inputTexts(value)
			in.args, in.sure = args, in.sure && ok
		case name == "commands":
			lines, ok := inputTexts(value)
			in.lines, in.sure = lines, in.sure && ok
		case slices.Contains(inputDirs, name):
			dir, ok := inputText(value)
			in.sure = in.sure && ok && (in.cwd == "" || dir == "" || dir == in.cwd)
			if dir != "" {
				in.cwd = dir
			}
		case slices.Contains(inputNews, name), isScalar(value), name == "parsed_cmd" && isParsed(value):
		default:
			in.takeOther(value)
		}
	}
	return in
}

// isParsed reports whether a value is what Codex says that its command does: a
// list of objects, each with a type. It runs the command all the same.
func isParsed(value json.RawMessage) bool {
	var list []map[string]json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		return false
	}
	return !slices.ContainsFunc(list, func(m map[string]json.RawMessage) bool {
		text, ok := inputText(m["type"])
		return !ok || text == ""
	})
}

// takeCommand takes the member for the command, or beside it a list of its words.
func (in *input) takeCommand(value json.RawMessage, beside bool) {
	words, isList := inputTexts(value)
	switch {
	case isList && beside:
		in.lists = append(in.lists, words)
	case isList:
		in.sure = in.sure && in.words == nil && in.line == ""
		in.words = words
	case beside:
		in.takeOther(value)
	default:
		line, ok := inputText(value)
		in.sure = in.sure && ok && in.words == nil && (in.line == "" || line == "")
		if line != "" {
			in.line = line
		}
	}
}

// takeOther takes a member that nobody here knows.
func (in *input) takeOther(value json.RawMessage) {
	if text, ok := inputText(value); ok {
		if text != "" {
			in.says = append(in.says, text)
		}
		return
	}
	if texts, ok := inputTexts(value); ok {
		in.lists = append(in.lists, texts)
		return
	}
	if v := string(bytes.TrimSpace(value)); v != "{}" && v != "[]" {
		in.sure = false
	}
}

// command returns what would be run.
func (in *input) command() (command string, certain bool) {
	if in.muddled {
		return "", false
	}
	if strings.TrimSpace(in.line) == "" && len(in.words) == 0 {
		return strings.Join(in.lines, "\n"), false
	}
	certain = in.sure
	switch {
	case len(in.words) > 0:
		if strings.TrimSpace(in.words[0]) == "" || strings.ContainsAny(in.words[0], " \t\r\n") {
			certain = false // perhaps the words are lines
		}
		command, certain = wordsOf(append(slices.Clone(in.words), in.args...), certain)
	case len(in.args) > 0 && strings.ContainsAny(strings.TrimSpace(in.line), " \t\r\n"):
		// Either the arguments of the line, or the line once more.
		if command = in.line; !sayThe(in.args, command) {
			command, certain = commandLine(in.line, in.args), false
		}
	default:
		if command = in.line; len(in.args) > 0 {
			command, certain = wordsOf(append([]string{strings.TrimSpace(in.line)}, in.args...), certain)
		}
	}
	for _, text := range slices.Concat(in.says, in.lines) {
		certain = certain && containsWords(command, text)
	}
	for _, list := range in.lists {
		certain = certain && sayThe(list, command)
	}
	return command, certain
}

// wordsOf returns the line for a program and its arguments. It is not certain if
// words have signs of a shell in them: whoever joins them gets another line.
func wordsOf(words []string, certain bool) (string, bool) {
	if script, ok := shellScript(words[0], words[1:]); ok {
		return script, certain
	}
	for _, w := range words {
		certain = certain && isPlain(w)
	}
	return commandLine(words[0], words[1:]), certain
}

// sayThe reports whether the words of a list are those of a command, or its parts.
func sayThe(list []string, command string) bool {
	if len(list) == 0 {
		return true
	}
	line := commandLine(list[0], list[1:])
	if script, ok := shellScript(list[0], list[1:]); ok {
		line = script
	}
	if line == command || strings.Join(list, " ") == command {
		return true
	}
	return !slices.ContainsFunc(list, func(s string) bool { return !containsWords(command, s) })
}

// containsWords reports whether a text stands in a command, as whole words.
func containsWords(command, text string) bool {
	text = strings.TrimSpace(text)
	for at := 0; text != ""; {
		i := strings.Index(command[at:], text)
		if i < 0 {
			return false
		}
		begin := at + i
		end := begin + len(text)
		if (begin == 0 || !isWordByte(command[begin-1])) && (end == len(command) || !isWordByte(command[end])) {
			return true
		}
		at = begin + 1
	}
	return true
}

func isWordByte(c byte) bool { return strings.IndexByte(" \t\r\n;&|()`'\"", c) < 0 }

var (
	// How agents write in the content or the title what they would run. They are compiled when they are used.
	shownAnywhere = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("(?s)^\\s*(?:(?i:requesting approval to )?(?i:run|running|execute|executing)(?i: (?:the )?(?:shell |bash )?command)?(?::\\s*(.+)|\\s+`([^`]+)`)|\\$ (.+))$")
	})
	shownInTitle = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("^\\s*(?:\\$ (.+)|`([^`]+)`)\\s*$")
	})
)

// shownIn returns the command that the content or the title of a tool call shows,
// or "". What comes of it is not certain: it is text for people.
func shownIn(call *acp.ToolCallUpdate, runs bool) string {
	for _, c := range call.Content.Or(nil) {
		block, ok := c.(*acp.BlockContent)
		if !ok {
			continue
		}
		if text, ok := block.Content.(*acp.TextContent); ok && len(text.Text) <= maxShown {
			if command := submatch(shownAnywhere(), text.Text); command != "" {
				return command
			}
		}
	}
	if title := call.Title.Or(""); runs && len(title) <= maxShown {
		return submatch(shownInTitle(), title)
	}
	return ""
}

// inputIn returns the input that the content of a tool call shows as JSON, or nil. Agents that stream the arguments of
// a call, as Kimi does, may ask before they have said what the input is. Content is text for people, so what comes of
// it is not certain.
func inputIn(call *acp.ToolCallUpdate) json.RawMessage {
	blocks := call.Content.Or(nil)
	if len(blocks) != 1 {
		return nil
	}
	block, ok := blocks[0].(*acp.BlockContent)
	if !ok {
		return nil
	}
	text, ok := block.Content.(*acp.TextContent)
	if !ok || len(text.Text) > maxShown || !strings.HasPrefix(text.Text, "{") {
		return nil
	}
	return json.RawMessage(text.Text)
}

// findPaths takes the file that the content of a tool call shows as its input. Another one may be meant, so there is an
// unknown path beside it.
func (r *Request) findPaths(call *acp.ToolCallUpdate) {
	if len(r.Paths) > 0 || !isNothing(r.RawInput) {
		return
	}
	members, _ := inputMembers(inputIn(call))
	for _, name := range []string{"file_path", "path"} {
		if path, _ := inputText(members[name]); path != "" {
			r.Paths = []string{path, ""}
			return
		}
	}
}

// submatch returns the group that matched, without space around.
func submatch(re *regexp.Regexp, text string) string {
	groups := re.FindStringSubmatch(text)
	for _, g := range groups[min(1, len(groups)):] {
		if g = strings.TrimSpace(g); g != "" {
			return g
		}
	}
	return ""
}

// isScalar reports whether a value is a number, true, false or null.
func isScalar(value json.RawMessage) bool {
	value = bytes.TrimSpace(value)
	return len(value) > 0 && strings.IndexByte(`"[{`, value[0]) < 0
}

// inputTexts returns a list of texts. It is not ok if it is something else, or
// has characters that may have been others.
func inputTexts(value json.RawMessage) (texts []string, ok bool) {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		return nil, false
	}
	for _, v := range list {
		if isScalar(v) {
			return nil, false
		}
		text, ok := inputText(v)
		if !ok {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, true
}

// inputMembers returns the members of an object. They are not certain if the
// input is something else or has one of them twice.
func inputMembers(input json.RawMessage) (members map[string]json.RawMessage, certain bool) {
	dec := json.NewDecoder(bytes.NewReader(input))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	members, certain = map[string]json.RawMessage{}, json.Valid(input)
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		var value json.RawMessage
		if err != nil || !ok || dec.Decode(&value) != nil {
			return members, false
		}
		if _, twice := members[name]; twice {
			certain = false
		}
		members[name] = value
	}
	return members, certain
}

// inputText returns a text, "" for none. It is not ok if it is something else,
// or has characters that may have been others.
func inputText(value json.RawMessage) (text string, ok bool) {
	if value == nil {
		return "", true
	}
	var s *string
	if json.Unmarshal(value, &s) != nil {
		return "", false
	}
	if s == nil {
		return "", true
	}
	return *s, !strings.ContainsRune(*s, utf8.RuneError)
}
