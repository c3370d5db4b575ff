package tool

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxGlob bounds a pattern, and maxIgnore a .gitignore file, in bytes.
const (
	maxGlob   = 1000
	maxIgnore = 256 << 10
)

// globRegexp makes a regular expression of a pattern for paths with slashes: * is
// anything but a slash, ? one such character, [a-z] one of these, ** any number of
// directories. It returns nil if the pattern makes no sense.
func globRegexp(glob string) *regexp.Regexp {
	if glob == "" || len(glob) > maxGlob {
		return nil
	}
	var b strings.Builder
	b.WriteString(`\A`)
	for i := 0; i < len(glob); {
		rest := glob[i:]
		switch {
		case strings.HasPrefix(rest, "**/") && (i == 0 || glob[i-1] == '/'):
			b.WriteString(`(?:.*/)?`)
			i += 3
		case rest == "**" && i > 0 && glob[i-1] == '/':
			b.WriteString(`.+`)
			i += 2
		case rest[0] == '*':
			for i < len(glob) && glob[i] == '*' {
				i++
			}
			b.WriteString(`[^/]*`)
		case rest[0] == '?':
			b.WriteString(`[^/]`)
			i++
		case rest[0] == '[' && strings.IndexByte(rest[1:], ']') > 0:
			end := strings.IndexByte(rest[2:], ']') + 2
			class := rest[1:end]
			not := ""
			if class[0] == '!' || class[0] == '^' {
				not, class = "^/", class[1:]
			}
			class = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`).Replace(class)
			b.WriteString("[" + not + class + "]")
			i = i + end + 1
		case rest[0] == '\\' && len(rest) > 1:
			_, n := utf8.DecodeRuneInString(rest[1:])
			b.WriteString(regexp.QuoteMeta(rest[1 : 1+n]))
			i += 1 + n
		default:
			_, n := utf8.DecodeRuneInString(rest)
			b.WriteString(regexp.QuoteMeta(rest[:n]))
			i += n
		}
	}
	b.WriteString(`\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil
	}
	return re
}

// ignoring are the rules of the .gitignore file of one directory, in order.
type ignoring []ignoreRule

// An ignoreRule is one line of a .gitignore file.
type ignoreRule struct {
	re     *regexp.Regexp
	not    bool // takes back what an earlier rule said
	dir    bool // only for directories
	anchor bool // for paths from the directory of the file on, not for names
}

// readIgnore reads the .gitignore of a directory; there may be none.
func readIgnore(dir string) ignoring {
	name := filepath.Join(dir, ".gitignore")
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
		if r.re = globRegexp(strings.TrimPrefix(line, "/")); r.re != nil {
			rules = append(rules, r)
		}
	}
	return rules
}

// match tells what the rules say of a path from their directory on: the last one
// that fits decides.
func (rules ignoring) match(rel string, dir bool) (ignored, decided bool) {
	for i := len(rules) - 1; i >= 0; i-- {
		r := rules[i]
		name := rel
		if !r.anchor {
			name = path.Base(rel)
		}
		if (!r.dir || dir) && r.re.MatchString(name) {
			return !r.not, true
		}
	}
	return false, false
}
