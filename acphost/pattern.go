package acphost

import (
	"errors"
	"iter"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A pathGlob is a pattern for paths with slashes.
type pathGlob struct {
	re       *regexp.Regexp
	relative bool
	anywhere *regexp.Regexp // of a wide relative one: for paths in an unknown directory
	prog     *syntax.Prog   // of a wide one: for paths that are not known in full
}

// newPathGlob compiles a pattern; a wide one does not regard case.
func newPathGlob(s string, wide bool) (g pathGlob, err error) {
	if rest, ok := strings.CutPrefix(s, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return g, err
		}
		s = escapeGlob(filepath.ToSlash(home)) + "/" + rest
	}
	g.relative = !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "**") && !hasDrive(s)
	if g.relative {
		s = strings.TrimPrefix(s, "./")
	}
	expr, err := pathExpr(s)
	if err != nil {
		return g, err
	}
	if g.re, err = regexp.Compile(fold(wide) + "^" + expr + "$"); err != nil || !wide {
		return g, err
	}
	parsed, err := syntax.Parse(fold(wide)+expr, syntax.Perl)
	if err == nil {
		g.prog, err = syntax.Compile(parsed.Simplify())
	}
	if err == nil && g.relative {
		g.anywhere, err = regexp.Compile(fold(wide) + "^(?:.*/)?" + expr + "$")
	}
	return g, err
}

func hasDrive(s string) bool {
	return len(s) > 2 && s[1] == ':' && s[2] == '/' && ('a' <= s[0]|0x20 && s[0]|0x20 <= 'z')
}

func (g pathGlob) matches(p, cwd string) bool {
	if !g.relative {
		return g.re.MatchString(p)
	}
	if cwd == "" {
		return g.anywhere != nil && g.anywhere.MatchString(p)
	}
	rel, ok := within(filepath.FromSlash(cwd), filepath.FromSlash(p))
	return ok && g.re.MatchString(filepath.ToSlash(rel))
}

func escapeGlob(s string) string {
	var b strings.Builder
	for _, c := range s {
		if strings.ContainsRune(`*?[]{}\,`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// pathExpr translates a pattern into a regular expression.
func pathExpr(s string) (string, error) {
	var b strings.Builder
	braces := false
	for i := 0; i < len(s); {
		rest := s[i:]
		switch {
		case rest == "/**":
			b.WriteString("(?:/.*)?")
			i += 3
		case strings.HasPrefix(rest, "**/") && (i == 0 || s[i-1] == '/' || braces && strings.IndexByte("{,", s[i-1]) >= 0):
			b.WriteString("(?:.*/)?")
			i += 3
		case strings.HasPrefix(rest, "**"):
			b.WriteString(".*")
			i += 2
		case rest[0] == '*':
			b.WriteString("[^/]*")
			i++
		case rest[0] == '?':
			b.WriteString("[^/]")
			i++
		case rest[0] == '[':
			class, n, err := classExpr(rest)
			if err != nil {
				return "", err
			}
			b.WriteString(class)
			i += n
		case rest[0] == '{':
			if braces {
				return "", errors.New("{ within {")
			}
			braces = true
			b.WriteString("(?:")
			i++
		case rest[0] == '}' && braces:
			braces = false
			b.WriteString(")")
			i++
		case rest[0] == ',' && braces:
			b.WriteString("|")
			i++
		default:
			c, n, err := literal(rest)
			if err != nil {
				return "", err
			}
			b.WriteString(regexp.QuoteMeta(c))
			i += n
		}
	}
	if braces {
		return "", errors.New("{ without }")
	}
	return b.String(), nil
}

// literal returns the first character, for which a backslash may stand, and
// how much of s it takes.
func literal(s string) (string, int, error) {
	n := 0
	if s[0] == '\\' {
		if s = s[1:]; s == "" {
			return "", 0, errors.New(`\ at the end`)
		}
		n = 1
	}
	c, size := utf8.DecodeRuneInString(s)
	if c == utf8.RuneError && size <= 1 {
		return "", 0, errors.New("is not valid UTF-8")
	}
	return s[:size], n + size, nil
}

// classExpr translates [a-z] or [!a-z].
func classExpr(s string) (string, int, error) {
	end := strings.IndexByte(s, ']')
	if end < 0 {
		return "", 0, errors.New("[ without ]")
	}
	body, not := strings.CutPrefix(s[1:end], "!")
	if body == "" || strings.ContainsAny(body, `\[/^`) {
		return "", 0, errors.New(`[…] is empty, or has one of \ [ / ^ in it`)
	}
	if not {
		return "[^/" + body + "]", end + 1, nil
	}
	return "[" + body + "]", end + 1, nil
}

// A commandPattern is a pattern for commands.
type commandPattern struct {
	re      *regexp.Regexp
	literal string // what a pattern without wildcards stands for
	prefix  int    // how many bytes of the text are literal at its begin
	whole   bool   // all of them are

	glob  []rune // of a wide one: its text in lower case, -1 for *, -2 for ?
	tail  bool   // it ends with a space and *, which may be missing
	begin string // of an expression: what everything that matches begins with
}

// newCommandGlob compiles a pattern. A space and * at its end may be missing in the
// text: "go test *" is also about "go test".
func newCommandGlob(s string, wide bool) (p commandPattern, err error) {
	if strings.HasSuffix(strings.ReplaceAll(s, `\\`, ""), `\`) {
		return p, errors.New(`\ at the end`)
	}
	s = strings.TrimSpace(s)
	if !strings.ContainsAny(s, `*?\`) {
		p.literal = s
	}
	p.whole = true
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '*' || c == '?':
			p.whole = false
			p.glob = append(p.glob, map[byte]rune{'*': -1, '?': -2}[c])
		default:
			if c == '\\' && i+1 < len(s) {
				i++
			}
			r, size := utf8.DecodeRuneInString(s[i:])
			if p.whole {
				p.prefix += size
			}
			p.glob = append(p.glob, unicode.ToLower(r))
			i += size - 1
		}
	}
	expr := textGlob(s)
	if n := len(p.glob); n > 2 && p.glob[n-1] == -1 && p.glob[n-2] == ' ' && !strings.HasSuffix(s, `\ *`) {
		p.tail = true
		expr = strings.TrimSuffix(expr, " .*") + "(?: .*)?"
	}
	p.re, err = regexp.Compile(fold(wide) + "^" + expr + "$")
	return p, err
}

func newCommandRegexp(s string, wide bool) (p commandPattern, err error) {
	re, err := regexp.Compile(s) // before the parentheses hide something
	if err != nil {
		return p, err
	}
	p.begin, p.whole = re.LiteralPrefix()
	p.prefix = len(p.begin)
	p.re, err = regexp.Compile(fold(wide) + "^(?:" + s + ")$")
	return p, err
}

// textGlob translates a pattern in which a slash is like anything else.
func textGlob(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '*':
			b.WriteString(".*")
		case s[i] == '?':
			b.WriteString(".")
		default:
			if s[i] == '\\' && i+1 < len(s) {
				i++
			}
			_, size := utf8.DecodeRuneInString(s[i:])
			b.WriteString(regexp.QuoteMeta(s[i : i+size]))
			i += size - 1
		}
	}
	return b.String()
}

// shellSigns begin what is not a word.
var shellSigns = func() string {
	if runtime.GOOS == "windows" {
		return ";&|<>()`$%^"
	}
	return ";&|<>()`$"
}()

// isPlain reports whether a shell would find nothing but words in a command: no
// second command, no substitution, no redirection, no control characters.
func isPlain(command string) bool {
	return utf8.ValidString(command) && !strings.ContainsFunc(command, func(c rune) bool {
		return strings.ContainsRune(shellSigns, c) || c < ' ' && c != '\t' || c == 0x7f || 0x80 <= c && c < 0xa0 || c == 0x2028 || c == 0x2029
	})
}

// parts returns what may be run by a command: itself, what is between the signs
// a shell reads, within quotes too, and all of it again with nothing but the
// name of the program, and without quotes.
func parts(command string) iter.Seq[string] {
	unquoted := strings.NewReplacer(`\`, "", `'`, "", `"`, "").Replace(command)
	return func(yield func(string) bool) {
		for _, text := range []string{command, unquoted} {
			if !yield(text) {
				return
			}
			for part := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune(";&|<>(){}`$\n\r'\"", c) }) {
				words := strings.Fields(part)
				if len(words) == 0 {
					continue
				}
				if !yield(strings.Join(words, " ")) {
					return
				}
				words[0] = path.Base(strings.ReplaceAll(words[0], `\`, "/"))
				if !yield(strings.Join(words, " ")) {
					return
				}
			}
		}
	}
}
