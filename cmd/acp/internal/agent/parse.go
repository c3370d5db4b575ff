package agent

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// splitCommand takes a prompt apart that begins with a slash: the name of the
// command, and the rest without the space after the name. ok is false for any
// other prompt, also for one that begins with a path.
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

// word takes the first word of a text. A word is up to the next space, or in
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

// words takes a text apart into words, of which it allows limit.
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
			return nil, fmt.Errorf("there is more than expected: %q", oneLine(w, 60))
		}
		all, text = append(all, w), rest
	}
}

// lineRange takes the lines off a path: PATH:FROM-TO, PATH:FROM- or PATH:LINE.
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

// A replacement is one text for another.
type replacement struct{ old, new string }

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
func replacements(text string) ([]replacement, error) {
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
	return []replacement{{old, text}}, nil
}

func editBlocks(text string) ([]replacement, error) {
	var (
		all      []replacement
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
			return nil, fmt.Errorf("%q stands outside of a block", oneLine(mark, 60))
		case in == markOld && mark == markMid:
			in = markMid
		case in == markOld:
			old.WriteString(l)
		case strings.HasPrefix(mark, markNew):
			if old.Len() == 0 {
				return nil, errors.New("the old text is empty")
			}
			all = append(all, replacement{old.String(), new.String()})
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

// apply makes the replacements, one after another. Unless all is set, the old
// text has to be there once. It returns the new text and the lines, counted from
// 1, at which the first changes of each begin.
func apply(text string, rs []replacement, all bool) (string, []uint32, error) {
	var at []uint32
	for _, r := range rs {
		n := strings.Count(text, r.old)
		i := strings.Index(text, r.old)
		if n == 0 && strings.HasSuffix(r.old, "\n") && strings.HasSuffix(text, strings.TrimSuffix(r.old, "\n")) {
			// The last line of the file has no break.
			r = replacement{strings.TrimSuffix(r.old, "\n"), strings.TrimSuffix(r.new, "\n")}
			n, i = strings.Count(text, r.old), strings.LastIndex(text, r.old)
			if n > 1 {
				n = 1
				text = text[:i] + r.new
				at = append(at, uint32(strings.Count(text[:i], "\n")+1))
				continue
			}
		}
		switch {
		case n == 0:
			return "", nil, fmt.Errorf("the old text %q is not in the file", oneLine(r.old, 60))
		case n > 1 && !all:
			return "", nil, fmt.Errorf("the old text %q is in the file %d times: give more of what surrounds it, or use /edit! to replace all", oneLine(r.old, 60), n)
		}
		at = append(at, uint32(strings.Count(text[:i], "\n")+1))
		text = strings.ReplaceAll(text, r.old, r.new)
	}
	return text, at, nil
}
