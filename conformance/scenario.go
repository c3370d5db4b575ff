package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/internal/pattern"
)

// A step is one line of a scenario, with the lines within if it is a block.
type step struct {
	verb   string
	line   int    // of its file
	text   string // as it was written, on one line
	name   string // of the first $name, without the dollar
	other  string // of the second one
	method string // or another word: a purpose, a duration that is kept as text
	val    *pattern.Value
	dur    time.Duration
	n      int // a number: how often, how many, a status; -1 for any
	codes  []int
	texts  []string // quoted ones, such as headers
	what   *what
	body   []*step
}

// what is a message that is waited for.
type what struct {
	method string // of a request or notification; "" for any frame
	update bool   // of an update of $session: val is matched with the update itself
	name   string // what a request is called, or ""
	val    *pattern.Value
}

func (w *what) String() string {
	s := w.method
	switch {
	case w.update:
		s = "an update"
	case s == "":
		s = "a frame"
	}
	if w.val != nil {
		s += " " + clip(w.val.Text, 200)
	}
	return s
}

// A verb says what follows a word that begins a step, a letter for each:
//
//	$ a name that the step gives   @ a name that was given before
//	m a method   w a word   d a duration   i a number   # a status or any
//	c error codes   t a template   p a pattern   x a quoted text   o what is waited for
//	j quoted texts and names that were given before   h quoted texts
//
// A ? makes what is before it optional.
type verb struct {
	args string
	side Side // "" for both
}

var verbs = map[string]verb{
	"call":       {"$mt?", ""},
	"notify":     {"mt?", ""},
	"send":       {"$?t", ""},
	"line":       {"x", ""},
	"raw":        {"x", ""},
	"result":     {"@p?", ""},
	"error":      {"@cp?", ""},
	"reply":      {"@p?", ""},
	"expect":     {"o", ""},
	"await":      {"o", ""},
	"before":     {"@o", ""},
	"never":      {"o", ""},
	"quiet":      {"do?", ""},
	"answer":     {"@t", ""},
	"refuse":     {"@ix?", ""},
	"alive":      {"", ""},
	"closed":     {"", ""},
	"hangup":     {"", ""},
	"eof":        {"", ""},
	"exit":       {"#", ""},
	"let":        {"$t", ""},
	"fill":       {"$ix", ""},
	"join":       {"$j", ""},
	"is":         {"@p", ""},
	"isnt":       {"@p", ""},
	"need":       {"@p", ""},
	"within":     {"d", ""},
	"wait":       {"d", ""},
	"deaf":       {"d?", ""},
	"listen":     {"", ""},
	"repeat":     {"i", ""},
	"each":       {"$@", ""},
	"together":   {"", ""},
	"end":        {"", ""},
	"session":    {"w?$?t?", ""},
	"settled":    {"", ""},
	"file":       {"$x", Agent},
	"list":       {"$t?", Agent},
	"restart":    {"", Agent},
	"login":      {"$", Agent},
	"logout":     {"$", Agent},
	"measure":    {"$", ""},
	"spare":      {"i", ""},
	"probe":      {"$w", Agent},
	"connected":  {"", Agent},
	"prompt":     {"$w@?", Agent},
	"ended":      {"@p?", Agent},
	"done":       {"@", Agent},
	"busy":       {"@d", Agent},
	"said":       {"@p", Agent},
	"counted":    {"@i", Agent},
	"turn":       {"", Client},
	"tell":       {"t", Client},
	"say":        {"x", Client},
	"stop":       {"w?t?", Client},
	"over":       {"", Client},
	"either":     {"o", Client},
	"pause":      {"d", Client},
	"greet":      {"@t?", Client},
	"allow":      {"$t?", Client},
	"saved":      {"x", Client},
	"stderr":     {"ix", Client},
	"initialize": {"$?t?", ""},
}

// given are the names every scenario knows: see the package documentation.
var given = map[Side][]string{
	Agent:  {"cwd", "version", "init", "hello", "session"},
	Client: {"version", "init", "session", "prompt", "cwd", "file"},
	Server: {"version", "hello", "init", "new", "cwd", "connection", "session", "stream", "response", "accept"},
}

// maxCount bounds how often something is done, and the repetitions of a text.
const maxCount = 10_000_000

// A scenario is a parsed one.
type scenario struct {
	steps []*step
	// what it uses that not every peer can do
	raw, ends, waits, stderr bool
	// unknown says that it makes a request that nobody knows, or that the peer need not have.
	unknown bool
	// uses are the methods it waits for by itself.
	uses map[string]bool
	// whats are what it waits for, by method.
	whats map[string][]*what
	// verbs are those of its steps.
	verbs map[string]bool
	// purposes are those of the prompts it needs.
	purposes []string
	// mine says that it makes or breaks sessions by itself, so that the one
	// scenarios share should not be used after it.
	mine bool
}

// A ruleError says what is wrong with a file of rules.
type ruleError struct {
	file   string
	line   int
	reason string
}

func (e *ruleError) Error() string { return fmt.Sprintf("%s:%d: %s", e.file, e.line, e.reason) }

// scenarioReader reads steps of a text.
type scenarioReader struct {
	text  string
	pos   int
	first int // line of the file that the text begins in
	side  Side
	known map[string]bool
	out   *scenario
}

// parseScenario reads a scenario that begins in a line of a file.
func parseScenario(side Side, text string, line int) (*scenario, error) {
	r := &scenarioReader{text: text, first: line, side: side, known: map[string]bool{}, out: &scenario{uses: map[string]bool{}, whats: map[string][]*what{}, verbs: map[string]bool{}}}
	for _, name := range given[side] {
		r.known[name] = true
	}
	steps, closed, err := r.block()
	if err != nil {
		return nil, err
	}
	if closed {
		return nil, r.errorf("an end without a repeat, each or together")
	}
	if len(steps) == 0 {
		return nil, r.errorf("there is no scenario")
	}
	r.out.steps = steps
	return r.out, nil
}

func (r *scenarioReader) lineNow() int {
	return r.first + strings.Count(r.text[:min(r.pos, len(r.text))], "\n")
}

func (r *scenarioReader) errorf(format string, args ...any) error {
	return &ruleError{line: r.lineNow(), reason: fmt.Sprintf(format, args...)}
}

// block reads steps up to an end or the end of the text; closed tells which.
func (r *scenarioReader) block() (steps []*step, closed bool, err error) {
	for {
		r.pos += len(r.text[r.pos:]) - len(strings.TrimLeft(r.text[r.pos:], pattern.Blank))
		if r.pos >= len(r.text) {
			return steps, false, nil
		}
		if r.text[r.pos] == '#' {
			r.toEOL()
			continue
		}
		s, err := r.step()
		if err != nil {
			return nil, false, err
		}
		if s.verb == "end" {
			return steps, true, nil
		}
		if s.verb == "repeat" || s.verb == "each" || s.verb == "together" {
			body, closed, err := r.block()
			switch {
			case err != nil:
				return nil, false, err
			case !closed:
				return nil, false, r.errorf("%s has no end", s.text)
			}
			s.body = body
		}
		steps = append(steps, s)
	}
}

func (r *scenarioReader) toEOL() string {
	rest, _, _ := strings.Cut(r.text[r.pos:], "\n")
	r.pos += len(rest)
	return rest
}

// blank skips spaces and tells whether something follows on the line.
func (r *scenarioReader) blank() bool {
	for r.pos < len(r.text) && strings.IndexByte(" \t\r", r.text[r.pos]) >= 0 {
		r.pos++
	}
	return r.pos < len(r.text) && r.text[r.pos] != '\n' && r.text[r.pos] != '#'
}

func (r *scenarioReader) word() string {
	r.blank()
	start := r.pos
	for r.pos < len(r.text) && strings.IndexByte(pattern.Blank, r.text[r.pos]) < 0 {
		r.pos++
	}
	return r.text[start:r.pos]
}

func (r *scenarioReader) step() (*step, error) {
	start := r.pos
	s := &step{line: r.lineNow(), verb: r.word(), n: -1}
	v, ok := verbs[s.verb]
	if r.side == Server {
		v, ok = serverVerbs[s.verb]
	}
	if !ok || v.side != "" && v.side != r.side {
		r.pos = start
		return nil, r.errorf("there is no step %s for %ss", s.verb, r.side)
	}
	for args := v.args; args != ""; {
		kind := args[0]
		args = args[1:]
		optional := strings.HasPrefix(args, "?")
		args = strings.TrimPrefix(args, "?")
		if !r.blank() {
			if optional {
				continue
			}
			return nil, r.errorf("%s needs %s", s.verb, argNames[kind])
		}
		if optional && !r.fits(kind) {
			continue
		}
		if err := r.arg(s, kind); err != nil {
			return nil, err
		}
	}
	if r.blank() {
		return nil, r.errorf("unexpected %q at the end of the line", clip(r.toEOL(), 80))
	}
	if _, ok := purposes[s.method]; s.verb == "prompt" && !ok {
		return nil, r.errorf("there is no purpose %s", clip(s.method, 40))
	}
	s.text = clip(strings.Join(strings.Fields(r.text[start:r.pos]), " "), 200)
	r.toEOL()
	r.note(s)
	return s, nil
}

var argNames = map[byte]string{
	'$': "a name such as $r", '@': "a name such as $r", 'm': "a method", 'w': "a word", 'd': "a duration such as 200ms",
	'i': "a number", '#': "an exit status or any", 'c': "an error code or any", 't': "a value", 'p': "a pattern",
	'x': "a quoted text", 'h': "texts in quotes", 'o': "a method, update or frame", 'j': "texts in quotes and names such as $r",
}

// fits tells by its first byte whether what follows may be an optional argument.
func (r *scenarioReader) fits(kind byte) bool {
	switch c := r.text[r.pos]; kind {
	case '$', '@':
		return c == '$'
	case 't':
		return c == '{' || c == '[' || c == '"' || c == '$'
	case 'x', 'h':
		return c == '"'
	case 'w':
		return c >= 'a' && c <= 'z'
	}
	return true
}

func (r *scenarioReader) arg(s *step, kind byte) (err error) {
	switch kind {
	case '$', '@':
		name, err := r.name(kind == '@')
		if s.name == "" {
			s.name = name
		} else {
			s.other = name
		}
		return err
	case 'm', 'w':
		s.method = r.word()
		if kind == 'm' && strings.ContainsAny(s.method[:1], `{["$`) && !strings.HasPrefix(s.method, "$/") {
			return r.errorf("%s needs a method", s.verb)
		}
	case 'd':
		text := r.word()
		if s.dur, err = time.ParseDuration(text); err != nil || s.dur <= 0 || s.dur > time.Hour {
			return r.errorf("%q is no duration of up to an hour", clip(text, 40))
		}
	case 'i', '#':
		text := r.word()
		if kind == '#' && text == "any" {
			return nil
		}
		if s.n, err = strconv.Atoi(text); err != nil {
			return r.errorf("%q is no number", clip(text, 40))
		}
		if (s.verb == "repeat" || s.verb == "fill" || s.verb == "stderr") && (s.n < 0 || s.n > maxCount) {
			return r.errorf("%q is no number up to %d", clip(text, 40), maxCount)
		}
	case 'c':
		return r.errorCodes(s)
	case 'x':
		return r.quoted(s)
	case 'j':
		return r.parts(s)
	case 'h':
		return r.allQuoted(s)
	case 't':
		s.val, err = r.value(pattern.Template)
	case 'p':
		s.val, err = r.value(pattern.Pattern)
	case 'o':
		s.what, err = r.awaited()
	}
	return err
}

func (r *scenarioReader) name(known bool) (string, error) {
	word := r.word()
	name, ok := strings.CutPrefix(word, "$")
	if !ok || name == "" || strings.ContainsFunc(name, func(c rune) bool { return c > 'z' || !pattern.NameByte(byte(c)) }) {
		return "", r.errorf("%q is no name such as $r", clip(word, 40))
	}
	if known && !r.known[name] {
		return "", r.errorf("nothing was called $%s before", name)
	}
	r.known[name] = true
	return name, nil
}

// errorCodes reads codes separated by bars, or any.
func (r *scenarioReader) errorCodes(s *step) error {
	word := r.word()
	if word == "any" {
		return nil
	}
	for text := range strings.SplitSeq(word, "|") {
		code, err := strconv.Atoi(text)
		if err != nil {
			return r.errorf("%q is no error code", clip(word, 40))
		}
		s.codes = append(s.codes, code)
	}
	return nil
}

// quoted reads a text in quotes, with the escapes of Go.
func (r *scenarioReader) quoted(s *step) error {
	text, err := strconv.QuotedPrefix(r.text[r.pos:])
	if err != nil || text[0] == '\'' {
		return r.errorf("%s needs a text in quotes", s.verb)
	}
	r.pos += len(text)
	text, _ = strconv.Unquote(text) // it was checked
	s.val = pattern.Text(text)
	return nil
}

// allQuoted reads texts in quotes to the end of the line.
func (r *scenarioReader) allQuoted(s *step) error {
	val := s.val
	for r.blank() {
		if err := r.quoted(s); err != nil {
			return err
		}
		s.texts = append(s.texts, s.val.Str)
	}
	s.val = val
	return nil
}

// parts reads texts in quotes and names, to the end of the line.
func (r *scenarioReader) parts(s *step) error {
	list := &pattern.Value{Kind: pattern.Array, Rest: -1}
	for r.blank() {
		if r.text[r.pos] != '"' {
			name, err := r.name(true)
			if err != nil {
				return err
			}
			list.Elems = append(list.Elems, &pattern.Value{Kind: pattern.Name, Str: name, Rest: -1})
			continue
		}
		if err := r.quoted(s); err != nil {
			return err
		}
		list.Elems = append(list.Elems, s.val)
	}
	s.val = list
	return nil
}

func (r *scenarioReader) value(d pattern.Dialect) (*pattern.Value, error) {
	v, end, err := pattern.Read(r.text, r.pos, d)
	if err != nil {
		r.pos = pattern.Offset(err)
		return nil, r.errorf("%v", err)
	}
	r.pos = end
	unknown := ""
	v.Names(func(name string) {
		if d == pattern.Template && !r.known[name] {
			unknown = name
		}
		r.known[name] = true
	})
	if unknown != "" {
		return nil, r.errorf("nothing was called $%s before", unknown)
	}
	return v, nil
}

// awaited reads what is waited for.
func (r *scenarioReader) awaited() (*what, error) {
	w := &what{method: r.word()}
	switch w.method {
	case "update":
		w.method, w.update = "session/update", true
	case "frame":
		w.method = ""
	default:
		if r.blank() && r.text[r.pos] == '$' {
			name, err := r.name(false)
			if err != nil {
				return nil, err
			}
			w.name = name
		}
	}
	if r.blank() {
		v, err := r.value(pattern.Pattern)
		w.val = v
		return w, err
	}
	if w.method == "" {
		return nil, r.errorf("a frame needs a pattern")
	}
	return w, nil
}

// note keeps what a step says about its scenario.
func (r *scenarioReader) note(s *step) {
	o := r.out
	o.verbs[s.verb] = true
	switch s.verb {
	case "call", "send", "line", "raw":
		o.unknown = o.unknown || strings.Contains(s.text, "_check/")
	case "error", "expect": // that the peer does not have what was asked for
		o.unknown = o.unknown || strings.Contains(s.text, "-32601")
	}
	switch s.verb {
	case "raw":
		o.raw = true
	case "eof":
		o.ends = true
	case "stderr":
		o.stderr = true
	case "exit":
		o.waits = true
	case "repeat", "each":
		r.known["n"] = true
	case "prompt":
		if !slices.Contains(o.purposes, s.method) {
			o.purposes = append(o.purposes, s.method)
		}
	case "call", "notify":
		switch s.method {
		case "session/prompt", "session/cancel", "session/list":
		default:
			o.mine = o.mine || strings.HasPrefix(s.method, "session/") || strings.HasPrefix(s.method, "auth")
		}
	}
	if s.what != nil && s.verb != "never" && s.verb != "quiet" {
		o.uses[s.what.method] = true
		o.whats[s.what.method] = append(o.whats[s.what.method], s.what)
	}
}

// clip shortens a text to a number of bytes and puts it on one line.
func clip(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, s)
}
