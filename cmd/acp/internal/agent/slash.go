package agent

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
)

// The commands that use tools: each makes the input of a tool of what was typed.

// use runs a tool and says what came of it, followed by end.
func (k *task) use(t tool.Tool, input any, end string) error {
	data, err := json.Marshal(input)
	if err != nil {
		return err
	}
	res, err := t.Run(k.ctx, k.scribe, data)
	if err != nil {
		return err
	}
	k.report(res, end)
	return nil
}

// report says what came of a tool, followed by end, or by a line break if it failed.
func (k *task) report(res tool.Result, end string) {
	if res.Err != nil {
		end = "\n"
	}
	if res.Said != "" {
		k.say(res.Said + end)
	}
}

// runRead carries out /read, for each of the paths or, without any, for the files that the prompt
// mentions.
func runRead(k *task) error {
	args, err := words(k.rest, 20)
	if err != nil {
		return misusef("%v", err)
	}
	if len(args) == 0 {
		args = linked(typed(k.turn))
	}
	if len(args) == 0 {
		return misusef("which file to read is missing")
	}
	for _, arg := range args {
		if k.ctx.Err() != nil {
			return nil
		}
		path, from, to, err := lineRange(arg)
		if err != nil {
			return misusef("%v", err)
		}
		in := tool.ReadInput{Path: tool.Mentioned(k, path), From: from}
		if to > 0 {
			in.Lines = to - from + 1
		}
		if err := k.use(tool.Read, in, "\n"); err != nil {
			return err
		}
	}
	return nil
}

// linked returns the paths of the files that a prompt links to or embeds.
func linked(blocks []acp.ContentBlock) []string {
	var paths []string
	for _, b := range blocks {
		address := ""
		switch b := b.(type) {
		case *acp.ResourceLink:
			address = b.URI
		case *acp.EmbeddedResource:
			address, _, _ = resource(b)
		}
		if path, ok := tool.FilePath(address); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// runSearch carries out /search.
func runSearch(k *task) error {
	args, err := words(k.rest, 2)
	if err != nil {
		return misusef("%v (put a pattern with spaces in quotes)", err)
	}
	if len(args) == 0 {
		return misusef("what to search for is missing")
	}
	in := tool.SearchInput{Pattern: args[0]}
	if len(args) == 2 {
		if in.Glob = args[1]; in.Glob == "" {
			return misusef("the pattern of names %q makes no sense", "")
		}
	}
	return k.use(tool.Search, in, "")
}

// runEdit carries out /edit and /edit!.
func runEdit(k *task) error {
	name, rest, ok, err := word(k.rest)
	if err != nil {
		return misusef("%v", err)
	}
	if !ok {
		return misusef("which file to edit is missing")
	}
	edits, err := replacements(rest)
	if err != nil {
		return misusef("%v", err)
	}
	return k.use(tool.Edit, tool.EditInput{Path: tool.Mentioned(k, name), Edits: edits, All: k.name == "edit!"}, "")
}

// runWrite carries out /write.
func runWrite(k *task) error {
	name, text, ok, err := word(k.rest)
	if err != nil {
		return misusef("%v", err)
	}
	if !ok {
		return misusef("which file to write is missing")
	}
	text, err = written(text)
	if err != nil {
		return err
	}
	return k.use(tool.Write, tool.WriteInput{Path: tool.Mentioned(k, name), Text: text}, "")
}

// written is the text that /write writes: what follows the path in its line, as it
// is or in quotes, or else the lines below. It ends with a line break.
func written(text string) (string, error) {
	line, rest, more := strings.Cut(text, "\n")
	switch {
	case strings.TrimSpace(line) == "" && more:
		text = rest
	case strings.TrimSpace(text) == "":
		return "", misusef("what to write is missing")
	default:
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if w, rest, ok, err := word(text); text[0] == '"' && ok && err == nil && strings.TrimSpace(rest) == "" {
			text = w
		}
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, nil
}

func runRun(k *task) error {
	return k.use(tool.Run, tool.RunInput{Command: k.rest, Seconds: -1}, "")
}
