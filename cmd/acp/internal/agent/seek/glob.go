package seek

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxGlob bounds a pattern of names, in bytes.
const MaxGlob = 1000

// A Glob is a pattern of names or, if it has a slash, of paths. It may be used by any
// goroutine.
type Glob struct {
	re   *regexp.Regexp
	path bool // it is about paths
	dirs bool // it has no special characters, so it may name a directory
	not  bool // it is about files that it does not match
}

// NewGlob returns the pattern of a text: * is anything but a slash, ? one such character,
// [a-z] one of these, {a,b} one of these patterns, and ** any number of directories. A
// text without such characters is also the name or the path of a directory, for the files
// in it, as is one that ends with a slash. With ! at its beginning it is for all files but
// those. A beginning of ./ says nothing. It returns nil if the text makes no sense.
func NewGlob(text string) *Glob {
	g := new(Glob)
	text, g.not = strings.CutPrefix(text, "!")
	text = strings.TrimPrefix(text, "./")
	text, dir := strings.CutSuffix(text, "/")
	g.dirs = dir || !strings.ContainsAny(text, `*?[{\`)
	g.path = strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	if text == "" || len(text) > MaxGlob {
		return nil
	}
	if g.re = globRegexp(text, true); g.re == nil {
		return nil
	}
	return g
}

// match reports whether the pattern is for a file, by any of its paths with slashes.
func (g *Glob) match(paths ...string) bool { return slices.ContainsFunc(paths, g.fits) != g.not }

func (g *Glob) fits(path string) bool {
	name := path
	if !g.path {
		name = path[strings.LastIndexByte(path, '/')+1:]
	}
	if g.re.MatchString(name) {
		return true
	}
	if !g.dirs {
		return false
	}
	from := 0
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		if g.re.MatchString(path[from:i]) {
			return true
		}
		if !g.path {
			from = i + 1
		}
	}
	return false
}

// globRegexp makes a regular expression of a pattern for paths with slashes. With braces,
// {a,b} is one of the patterns in it; a brace that is not closed is a character. It returns
// nil if the pattern makes no sense.
func globRegexp(glob string, braces bool) *regexp.Regexp {
	if glob == "" || len(glob) > MaxGlob {
		return nil
	}
	closed := map[int]bool{} // the braces that stand for something
	if braces {
		closed = pairs(glob)
	}
	var b strings.Builder
	b.WriteString(`\A(?:`)
	depth := 0
	begins := func(i int) bool { // a path does, or a part of one
		return i == 0 || glob[i-1] == '/' || closed[i-1] && glob[i-1] == '{' || depth > 0 && glob[i-1] == ','
	}
	for i := 0; i < len(glob); {
		rest := glob[i:]
		switch {
		case closed[i] && rest[0] == '{':
			b.WriteString(`(?:`)
			depth++
			i++
		case closed[i]:
			b.WriteString(`)`)
			depth--
			i++
		case depth > 0 && rest[0] == ',':
			b.WriteString(`|`)
			i++
		case strings.HasPrefix(rest, "**/") && begins(i):
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
		case rest[0] == '[' && len(rest) > 2 && strings.IndexByte(rest[2:], ']') >= 0:
			end := strings.IndexByte(rest[2:], ']') + 2
			class := rest[1:end]
			not := ""
			if class[0] == '!' || class[0] == '^' {
				not, class = "^/", class[1:]
			}
			class = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`).Replace(class)
			b.WriteString("[" + not + class + "]")
			i += end + 1
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
	b.WriteString(`)\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil
	}
	return re
}

// pairs returns where the braces are that belong to each other. Those in [] and behind \ do
// not count.
func pairs(glob string) map[int]bool {
	all, open := map[int]bool{}, []int(nil)
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case '[':
			if len(glob) > i+2 {
				if end := strings.IndexByte(glob[i+2:], ']'); end >= 0 {
					i += end + 2
				}
			}
		case '{':
			open = append(open, i)
		case '}':
			if n := len(open); n > 0 {
				all[open[n-1]], all[i] = true, true
				open = open[:n-1]
			}
		}
	}
	return all
}
