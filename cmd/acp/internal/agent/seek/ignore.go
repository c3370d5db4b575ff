package seek

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// maxIgnore bounds a file of rules, in bytes.
const maxIgnore = 256 << 10

// ignoring are the rules of the .gitignore file of one directory, in order.
type ignoring []ignoreRule

// An ignoreRule is one line of a .gitignore file.
type ignoreRule struct {
	how    how
	text   string         // what is compared
	re     *regexp.Regexp // unless a comparison does
	not    bool           // takes back what an earlier rule said
	dir    bool           // only for directories
	anchor bool           // for paths from the directory of the file on, not for names
}

// how says how a rule is compared: most are plain names, or endings.
type how int

const (
	byRegexp how = iota
	byText       // the same
	byEnd        // * and an end without special characters, of a name
	byStart      // a beginning without such characters and *, of a name
)

// readIgnore reads the .gitignore of a directory; there may be none.
func readIgnore(dir string) ignoring { return readRules(filepath.Join(dir, ".gitignore")) }

// readRules reads a file of rules.
func readRules(name string) ignoring {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnore {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return parseIgnore(string(data))
}

// parseIgnore reads rules; lines that make no sense are left out.
func parseIgnore(text string) ignoring {
	var rules ignoring
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		var r ignoreRule
		if line[0] == '!' {
			r.not, line = true, line[1:]
		}
		if l, ok := strings.CutSuffix(line, "/"); ok {
			r.dir, line = true, l
		}
		r.anchor = strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if r.set(line) {
			rules = append(rules, r)
		}
	}
	return rules
}

// set sets what a rule is compared with. It reports whether that makes sense.
func (r *ignoreRule) set(glob string) bool {
	const special = `*?[\`
	end, isEnd := strings.CutPrefix(glob, "*")
	begin, isStart := strings.CutSuffix(glob, "*")
	switch {
	case glob == "":
		return false
	case !strings.ContainsAny(glob, special):
		r.how, r.text = byText, glob
	case isEnd && !r.anchor && end != "" && !strings.ContainsAny(end, special):
		r.how, r.text = byEnd, end
	case isStart && !r.anchor && begin != "" && !strings.ContainsAny(begin, special):
		r.how, r.text = byStart, begin
	default:
		r.re = globRegexp(glob, false)
		return r.re != nil
	}
	return true
}

// fits reports whether a rule is about a name.
func (r *ignoreRule) fits(name string) bool {
	switch r.how {
	case byText:
		return name == r.text
	case byEnd:
		return strings.HasSuffix(name, r.text)
	case byStart:
		return strings.HasPrefix(name, r.text)
	}
	return r.re.MatchString(name)
}

// match tells what the rules say of a path from their directory on: the last one
// that fits decides.
func (rules ignoring) match(rel string, dir bool) (ignored, decided bool) {
	base := rel[strings.LastIndexByte(rel, '/')+1:]
	for i := len(rules) - 1; i >= 0; i-- {
		r := &rules[i]
		name := rel
		if !r.anchor {
			name = base
		}
		if (!r.dir || dir) && r.fits(name) {
			return !r.not, true
		}
	}
	return false, false
}

// An ignoreDir is a directory above, with its rules.
type ignoreDir struct {
	rel   string // from the top on, "" or with a slash at the end
	rules ignoring
}

// ignored asks the rules of the directories above, the nearest first.
func ignored(above []ignoreDir, rel string, dir bool) bool {
	for i := len(above) - 1; i >= 0; i-- {
		if ignored, decided := above[i].rules.match(strings.TrimPrefix(rel, above[i].rel), dir); decided {
			return ignored
		}
	}
	return false
}
