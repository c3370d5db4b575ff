package agent

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
)

// splitCommand splits a prompt that begins with a slash into the name of the command and
// the rest. ok is false for any other prompt, and for one that begins with a path.
func splitCommand(text string) (name, rest string, ok bool) {
	text, ok = strings.CutPrefix(strings.TrimLeftFunc(text, unicode.IsSpace), "/")
	if !ok {
		return "", "", false
	}
	i := strings.IndexFunc(text, unicode.IsSpace)
	if i < 0 {
		i = len(text)
	}
	name, rest = text[:i], text[i:]
	if name == "" || strings.ContainsAny(name, `/\`) {
		return "", "", false
	}
	return name, rest, true
}

var errQuote = errors.New("a quote is not closed")

// word splits off the first word of a text. A word is up to the next space, or in
// quotes: in double ones \" \\ \n \t stand for the characters, in single ones
// nothing does. ok is false if there is none.
func word(text string) (w, rest string, ok bool, err error) {
	text = strings.TrimLeftFunc(text, unicode.IsSpace)
	if text == "" {
		return "", "", false, nil
	}
	if text[0] != '"' && text[0] != '\'' {
		i := strings.IndexFunc(text, unicode.IsSpace)
		if i < 0 {
			i = len(text)
		}
		return text[:i], text[i:], true, nil
	}
	var b strings.Builder
	quote := text[0]
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case c == quote:
			return b.String(), text[i+1:], true, nil
		case c == '\\' && quote == '"' && i+1 < len(text):
			i++
			switch text[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case '"', '\\':
				b.WriteByte(text[i])
			default:
				b.WriteByte('\\')
				b.WriteByte(text[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false, errQuote
}

// words splits a text into at most limit words.
func words(text string, limit int) ([]string, error) {
	var all []string
	for {
		w, rest, ok, err := word(text)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return all, nil
		case len(all) == limit:
			return nil, fmt.Errorf("there is more than expected: %q", prose.OneLine(w, 60))
		}
		all, text = append(all, w), rest
	}
}

// lineRange splits the lines off a path: PATH:FROM-TO, PATH:FROM- or PATH:LINE.
// Lines are counted from 1; to is 0 for the end, and from is 0 if there is none.
func lineRange(arg string) (path string, from, to uint32, err error) {
	i := strings.LastIndexByte(arg, ':')
	if i <= 0 || i == len(arg)-1 {
		return arg, 0, 0, nil
	}
	first, last, ranged := strings.Cut(arg[i+1:], "-")
	a, err := strconv.ParseUint(first, 10, 32)
	if err != nil {
		return arg, 0, 0, nil // a colon in the name
	}
	b := a
	if ranged {
		b = 0
		if last != "" {
			if b, err = strconv.ParseUint(last, 10, 32); err != nil {
				return arg, 0, 0, nil
			}
		}
	}
	if a == 0 || ranged && last != "" && b < a {
		return "", 0, 0, fmt.Errorf("%s are no lines: they are counted from 1, the first one first", arg[i+1:])
	}
	return arg[:i], uint32(a), uint32(b), nil
}

// The lines of the multi-line form of /edit.
const (
	markOld = "<<<<<<<"
	markMid = "======="
	markNew = ">>>>>>>"
)

const editForm = "Write OLD => NEW after the path, or on lines of their own:\n\n```\n" +
	"/edit PATH\n<<<<<<<\nwhat is there\n=======\nwhat shall be there\n>>>>>>>\n```"

// replacements reads what follows the path of /edit: OLD => NEW in one line, each
// as it is or in quotes, or blocks between lines of marks, of which there may be
// several.
func replacements(text string) ([]tool.Replacement, error) {
	if strings.HasPrefix(strings.TrimSpace(text), markOld) {
		return editBlocks(strings.TrimSpace(text))
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, errors.New("what to replace is missing")
	}
	old, quoted := "", false
	if text[0] == '"' || text[0] == '\'' {
		w, rest, _, err := word(text)
		if err == nil && strings.HasPrefix(strings.TrimSpace(rest), "=>") {
			old, text, quoted = w, strings.TrimPrefix(strings.TrimSpace(rest), "=>"), true
		}
	}
	if !quoted {
		before, after, ok := strings.Cut(text, " =>")
		if !ok || after != "" && !unicode.IsSpace(rune(after[0])) {
			return nil, errors.New("there is no => between the old text and the new one")
		}
		old, text = strings.TrimSpace(before), after
	}
	text = strings.TrimSpace(text)
	if text != "" && (text[0] == '"' || text[0] == '\'') {
		if w, rest, _, err := word(text); err == nil && strings.TrimSpace(rest) == "" {
			text = w
		}
	}
	if old == "" {
		return nil, errors.New("the old text is empty")
	}
	return []tool.Replacement{{Old: old, New: text}}, nil
}

// editBlocks reads the blocks between marks. A text keeps its line breaks, so that whole lines are
// replaced.
func editBlocks(text string) ([]tool.Replacement, error) {
	var (
		all      []tool.Replacement
		old, new strings.Builder
		in       string // the mark that was last
	)
	for l := range strings.Lines(text) {
		mark := strings.TrimSpace(l)
		switch {
		case in == "" && strings.HasPrefix(mark, markOld):
			in = markOld
		case in == "" && mark == "":
		case in == "":
			return nil, fmt.Errorf("%q stands outside of a block", prose.OneLine(mark, 60))
		case in == markOld && mark == markMid:
			in = markMid
		case in == markOld:
			old.WriteString(l)
		case strings.HasPrefix(mark, markNew):
			if old.Len() == 0 {
				return nil, errors.New("the old text is empty")
			}
			all = append(all, tool.Replacement{Old: old.String(), New: new.String()})
			old.Reset()
			new.Reset()
			in = ""
		default:
			new.WriteString(l)
		}
	}
	if in != "" {
		return nil, fmt.Errorf("the block is not finished by a line %s", markNew)
	}
	return all, nil
}
