package shellline

import "strings"

// awk examines the text of the program.
func (s *scan) awk(_ int, words []word) {
	for i := 1; i < len(words); i++ {
		w := words[i]
		t := w.Text
		switch {
		case w.Open && (w.mayBeOption() || len(t) == 0 || t[0] != '-'):
			s.unsure("what " + shown(words[0]) + " runs is not written out")
			return
		case t == "-F" || t == "-v":
			i++
			continue
		case strings.HasPrefix(t, "-F"), strings.HasPrefix(t, "-v"), t == "--":
			continue
		case len(t) > 1 && t[0] == '-':
			if t[1] != 'f' && t[1] != 'E' { // those name a file with the program, and are options
				s.unsure(shown(words[0]) + " may run text")
			}
			return
		}
		if !tameAwk(t) {
			s.unsure(shown(words[0]) + " may run or write what its program says")
		}
		return
	}
}

// tameAwk reports whether a program of awk neither runs nor writes anything. It reads the tokens of
// the language, and reports false if anything could be read in two ways.
func tameAwk(program string) bool {
	r := awkReader{rest: program, regexp: true}
	for r.rest != "" {
		if !r.token() {
			return false
		}
	}
	return true
}

// An awkReader reads the tokens of a program of awk.
type awkReader struct {
	rest   string
	regexp bool // a slash begins an expression, and does not divide
	either bool // it may do one or the other
	print  bool // within a statement that prints
	depth  int  // of parentheses
	joined bool // the statement continues in the next line
}

// wildAwk are the functions and variables that run or read something, or name files.
var wildAwk = setOf("system getline close fflush extension ARGV ARGC PROCINFO SYMTAB FUNCTAB ENVIRON nextfile include load namespace")

// token reads a token, and reports whether it neither runs nor writes anything.
func (r *awkReader) token() bool {
	c := r.rest[0]
	next := byte(0)
	if len(r.rest) > 1 {
		next = r.rest[1]
	}
	switch {
	case c == ' ' || c == '\t':
		r.rest = r.rest[1:]
		return true
	case c == '#':
		r.rest = r.rest[strings.IndexByte(r.rest+"\n", '\n'):]
		return true
	case c == '\n' || c == ';' || c == '}':
		if r.depth == 0 && (c != '\n' || !r.joined) {
			r.print = false
		}
		return r.sign(1, true, c == '\n' && r.joined)
	case c == '"':
		return r.quoted()
	case c == '/' && r.either:
		return false
	case c == '/' && r.regexp:
		return r.expression()
	case isWord(c):
		return r.word()
	case c == '(' || c == '[':
		r.depth++
		return r.sign(1, true, false)
	case c == ')' || c == ']':
		r.depth--
		r.sign(1, false, false)
		r.either = c == ')' // if (x) /y/
		return r.depth >= 0
	case c == '|' && next == '|', c == '&' && next == '&':
		return r.sign(2, true, true)
	case c == '+' && next == '+', c == '-' && next == '-':
		r.sign(2, false, false)
		r.either = true
		return true
	case c == '>':
		return (!r.print || r.depth > 0) && r.sign(1, true, false)
	case strings.IndexByte("{,", c) >= 0:
		return r.sign(1, true, true)
	case strings.IndexByte("+-*/%^!~<=?:$", c) >= 0:
		return r.sign(1, true, false)
	}
	return false // | and @, which run something; backslashes; anything else
}

// sign reads a sign.
func (r *awkReader) sign(n int, regexp, joined bool) bool {
	r.rest, r.regexp, r.either, r.joined = r.rest[n:], regexp, false, joined
	return true
}

func isWord(c byte) bool {
	return c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// word reads a number or a name.
func (r *awkReader) word() bool {
	n := 0
	for n < len(r.rest) && isWord(r.rest[n]) {
		n++
	}
	name := r.rest[:n]
	r.sign(n, false, false)
	switch name {
	case "print", "printf":
		r.print, r.regexp = true, true
	case "return", "else", "do", "in", "case":
		r.regexp = true
	case "BEGIN", "END", "if", "for", "while", "delete", "exit", "next", "func", "function", "switch", "default", "break", "continue":
		r.either = true
	}
	return !wildAwk()[name]
}

// quoted reads a text.
func (r *awkReader) quoted() bool {
	for i := 1; i < len(r.rest); i++ {
		switch r.rest[i] {
		case '\\':
			i++
			if i < len(r.rest) && r.rest[i] == '\n' {
				return false
			}
		case '\n':
			return false
		case '"':
			return r.sign(i+1, false, false)
		}
	}
	return false
}

// expression reads a regular expression. In some programs a slash between brackets ends it.
func (r *awkReader) expression() bool {
	class := false
	for i := 1; i < len(r.rest); i++ {
		switch c := r.rest[i]; {
		case c == '\n' || c == '/' && class:
			return false
		case c == '\\':
			i++
			if i < len(r.rest) && r.rest[i] == '\n' {
				return false
			}
		case c == '[' && class, c == '[' && strings.HasPrefix(r.rest[i+1:], "]"), c == '[' && strings.HasPrefix(r.rest[i+1:], "^]"):
			return false
		case c == '[' || c == ']':
			class = c == '['
		case c == '/':
			return r.sign(i+1, false, false)
		}
	}
	return false
}
