package shellline

import (
	"strings"

	"github.com/goacp/acp/acphost"
)

// sed reads the scripts of sed. A script is the value of -e, or the first word that is not an
// option. Programs differ in what ends the options and in which of them have values, so each word
// counts that one of them may take for the script.
func (s *scan) sed(n int, words []word) {
	part := s.part(n)
	check := func(i int, text string, open bool) {
		if open {
			s.unsure("what " + shown(words[0]) + " does is not written out")
		} else if !tameSed(text) {
			part.Opaque = true
			part.Runs = append(part.Runs, acphost.CommandWord{Open: true, Source: words[i].Source})
			part.Options = append(part.Options, acphost.CommandOption{Word: i, Name: words[i].Source, Does: "may run or write something"})
		}
	}
	// scripts is how many more operands may be the script.
	scripts, ended := 1, false
	for i := 1; i < len(words); i++ {
		w := words[i]
		t := w.Text
		value := func() {
			if i++; i < len(words) {
				check(i, words[i].Text, words[i].Open)
			}
		}
		switch {
		case ended || len(t) < 2 || t[0] != '-':
			if scripts > 0 {
				scripts--
				check(i, t, w.Open)
			}
		case t == "--":
			ended = true
		case t == "-e" || t == "--expression":
			scripts = 0
			value()
		case strings.HasPrefix(t, "--expression="):
			scripts = 0
			check(i, strings.TrimPrefix(t, "--expression="), w.Open)
		case strings.HasPrefix(t, "--e"):
			check(i, "e", w.Open)
		case strings.HasPrefix(t, "--fi"): // a file with the script, which is an option
			scripts = 0
			if !strings.Contains(t, "=") {
				i++
			}
		case t == "-i" && i+1 < len(words) && words[i+1].Text == "" && !words[i+1].Open:
			scripts++ // on BSD that is the suffix
		case strings.HasPrefix(t, "--l") && !strings.Contains(t, "="), t == "-l":
			if i+1 < len(words) && !words[i+1].Open && strings.Trim(words[i+1].Text, "0123456789") == "" {
				i++
			} else {
				scripts++ // with GNU the first one is a number, whatever it says
			}
		case strings.HasPrefix(t, "--"):
		default:
			j := strings.IndexAny(t, "ef")
			switch before := t[:max(j, 0)]; {
			case j < 0 || strings.Contains(before, "i"):
			case strings.Contains(before, "l"):
				check(i, "e", w.Open)
			case t[j] == 'e' && j+1 == len(t):
				scripts = 0
				value()
			case t[j] == 'e':
				scripts = 0
				check(i, t[j+1:], w.Open)
			case j+1 == len(t):
				scripts = 0
				i++
			default:
				scripts = 0
			}
		}
	}
}

// tameSed reports whether a script of sed neither runs nor writes anything. It reads the commands
// of the language one by one, and reports false for anything it does not know.
func tameSed(script string) bool {
	return (&sedReader{rest: script}).tame() && (&sedReader{rest: script, classes: true}).tame()
}

// tame reports whether the rest of a script neither runs nor writes anything.
func (r *sedReader) tame() bool {
	for {
		r.rest = strings.TrimLeft(r.rest, " \t\n;{}")
		if r.rest == "" {
			return true
		}
		if r.rest[0] == '#' {
			r.line()
			continue
		}
		if !r.addresses() || !r.command() {
			return r.broken
		}
	}
}

// A sedReader reads the commands of a script of sed.
type sedReader struct {
	rest    string
	classes bool // the sign that ends a text is ordinary between brackets; programs differ
	broken  bool // no program accepts it
}

// line skips the rest of the line.
func (r *sedReader) line() {
	_, r.rest, _ = strings.Cut(r.rest, "\n")
}

func (r *sedReader) digits() { r.rest = strings.TrimLeft(r.rest, "0123456789") }

// addresses skips the addresses of a command.
func (r *sedReader) addresses() bool {
	for range 2 {
		if r.rest == "" {
			return false
		}
		switch c := r.rest[0]; {
		case '0' <= c && c <= '9' || c == '$' || c == '+' || c == '~':
			r.rest = strings.TrimLeft(r.rest[1:], "0123456789~")
		case c == '/':
			if !r.text('/', 1) {
				return false
			}
			r.rest = strings.TrimLeft(r.rest, "IM")
		case c == '\\' && len(r.rest) > 1:
			r.rest = r.rest[1:]
			if !r.text(r.rest[0], 1) {
				return false
			}
			r.rest = strings.TrimLeft(r.rest, "IM")
		}
		r.rest = strings.TrimLeft(r.rest, " \t")
		next, more := strings.CutPrefix(r.rest, ",")
		if !more {
			break
		}
		r.rest = strings.TrimLeft(next, " \t")
	}
	r.rest = strings.TrimLeft(r.rest, "! \t")
	return true
}

// text skips a number of texts, which begin with a sign and are each ended by it.
func (r *sedReader) text(sign byte, n int) bool {
	if sign == '\\' || sign == '\n' || sign >= 0x80 {
		return false
	}
	i, class := 1, false
	for ; i < len(r.rest) && n > 0; i++ {
		switch c := r.rest[i]; {
		case c == '\\' && class && r.classes:
			return false // which may end there
		case c == '\\':
			i++
		case c == '[' && class && i+1 < len(r.rest) && strings.IndexByte(":.=", r.rest[i+1]) >= 0:
			name, _, ok := strings.Cut(r.rest[i+2:], r.rest[i+1:i+2]+"]")
			if !ok || strings.IndexByte(name, sign) >= 0 || strings.ContainsAny(name, "[]") {
				return false
			}
			i += len(name) + 3
		case c == '[' || c == ']':
			// In a class the sign may not count; programs differ.
			if c == '[' && (strings.HasPrefix(r.rest[i+1:], "]") || strings.HasPrefix(r.rest[i+1:], "^]")) {
				return false
			}
			class = c == '['
		case c == sign && class && r.classes:
		case c == sign:
			n--
		}
	}
	if n > 0 || i > len(r.rest) {
		return false
	}
	r.rest = r.rest[i:]
	return true
}

// inserted reads the text of a, i and c, whose lines end with backslashes except the last.
func (r *sedReader) inserted() bool {
	r.rest = strings.TrimLeft(r.rest, " \t")
	if first, ok := strings.CutPrefix(r.rest, "\\\n"); ok {
		r.rest = first
	}
	for {
		line, rest, more := strings.Cut(r.rest, "\n")
		r.rest = rest
		if (len(line)-len(strings.TrimRight(line, `\`)))%2 == 0 {
			return true
		}
		if !more { // it continues in the next script of the line
			return false
		}
	}
}

// command reads a command, and reports whether it is known to run and write nothing.
func (r *sedReader) command() bool {
	if r.rest == "" {
		return false
	}
	c := r.rest[0]
	switch c {
	case '{', '}':
		r.rest = r.rest[1:]
		return true
	case ':', 'b', 't', 'T': // a label goes up to a sign here, and further in some programs
		i := strings.IndexAny(r.rest, ";}\n")
		label := r.rest[1:]
		if i >= 0 {
			label = r.rest[1:i]
		}
		if len(strings.Fields(label)) > 1 {
			return false // in some programs a command follows the label
		}
		if i >= 0 && r.rest[i] != '\n' {
			if strings.ContainsAny(r.rest[:i], " \t") && c == ':' {
				return false
			}
			r.rest = r.rest[i:]
			return c != ':' || r.rest[0] == ';' && !strings.ContainsAny(r.rest, "ewWrR")
		}
		r.line()
		return true
	case 'a', 'i', 'c':
		r.rest = r.rest[1:]
		return r.inserted()
	case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
		r.rest = r.rest[1:]
	case 'l', 'L', 'q', 'Q':
		r.rest = strings.TrimLeft(r.rest[1:], " \t")
		r.digits()
	case 's':
		r.rest = r.rest[1:]
		if r.rest == "" || !r.text(r.rest[0], 2) {
			return false
		}
		r.rest = strings.TrimLeft(r.rest, "gpiIm0123456789")
		if r.rest != "" && !r.classes && r.rest[0] > ' ' && r.rest[0] < 0x7f && strings.IndexByte("weMW;}#", r.rest[0]) < 0 {
			r.broken = true // no such flag
			return false
		}
	case 'y':
		r.rest = r.rest[1:]
		if r.rest == "" || !r.text(r.rest[0], 2) {
			return false
		}
	default: // e, w, W, r, R and what programs have of their own
		return false
	}
	r.rest = strings.TrimLeft(r.rest, " \t")
	return r.rest == "" || strings.IndexByte(";\n}#", r.rest[0]) >= 0
}
