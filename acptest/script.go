package acptest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/internal/pattern"
)

type op uint8

const (
	opExpect     op = iota // -> pattern
	opSkip                 // ...
	opSend                 // <- template
	opRaw                  // !raw
	opInitialize           // !initialize
	opSession              // !session
	opSleep                // !sleep
	opTimeout              // !timeout
	opStall                // !stall
	opEOF                  // !eof
	opClose                // !close
	opReopen               // !reopen
)

// A step is one line of a script.
type step struct {
	op     op
	line   int
	text   string         // as it was written
	val    *pattern.Value // pattern, template, or the members of a shorthand
	arg    string
	number int
	pause  time.Duration
}

// last reports whether nothing of a stream is used after the step.
func (s *step) last() bool { return s.op == opStall || s.op == opEOF || s.op == opClose }

// A ScriptError says what is wrong with a script, or where the peer under test
// did not follow it.
type ScriptError struct {
	Line   int    // of the script, from 1
	Step   string // the text of that step; a long one is shortened
	Reason string // what is wrong
	Got    string // the frame that was received, if one was; shortened
	Err    error  // what reading or writing returned, if that is the reason
}

// Error returns the line, the reason, the step and the frame.
func (e *ScriptError) Error() string {
	s := fmt.Sprintf("script line %d: %s", e.Line, e.Reason)
	if e.Step != "" {
		s += "\n\tscript: " + e.Step
	}
	if e.Got != "" {
		s += "\n\tgot:    " + e.Got
	}
	return s
}

// Unwrap returns the error of the stream.
func (e *ScriptError) Unwrap() error { return e.Err }

func (s *step) errorf(format string, args ...any) *ScriptError {
	return &ScriptError{Line: s.line, Step: pattern.Short(s.text), Reason: fmt.Sprintf(format, args...)}
}

// scriptReader reads the steps of a script.
type scriptReader struct {
	text  string
	pos   int
	steps []*step
	names map[string]bool // captured so far
}

// parseScript reads a script; its error is a *ScriptError.
func parseScript(text string) ([]*step, error) {
	r := &scriptReader{text: text, names: map[string]bool{}}
	for {
		r.pos += len(r.text[r.pos:]) - len(strings.TrimLeft(r.text[r.pos:], pattern.Blank))
		if r.pos >= len(text) {
			return r.steps, nil
		}
		if err := r.step(); err != nil {
			return nil, err
		}
	}
}

// step reads what begins at the cursor, which is not white space.
func (r *scriptReader) step() error {
	s := &step{line: pattern.LineOf(r.text, r.pos)}
	start := r.pos
	eol := len(r.text)
	if i := strings.IndexByte(r.text[r.pos:], '\n'); i >= 0 {
		eol = r.pos + i
	}
	line := strings.Trim(r.text[r.pos:eol], pattern.Blank)
	s.text = line
	var err error
	switch {
	case line[0] == '#':
		r.pos = eol
		return nil
	case strings.HasPrefix(line, "->"):
		s.op = opExpect
		r.pos += 2
		s.val, err = r.value(s, pattern.Pattern)
		s.text = strings.TrimSpace(r.text[start:r.pos])
	case strings.HasPrefix(line, "<-"):
		s.op = opSend
		r.pos += 2
		s.val, err = r.value(s, pattern.Template)
		s.text = strings.TrimSpace(r.text[start:r.pos])
	case strings.HasPrefix(line, "..."):
		s.op = opSkip
		r.pos += 3
	case line[0] == '!':
		err = r.directive(s, eol)
	default:
		return s.errorf("a line begins with ->, <-, !, # or ...")
	}
	if err != nil {
		return err
	}
	if n := len(r.steps); n > 0 && r.steps[n-1].last() && s.op != opReopen {
		return s.errorf("nothing but !reopen can follow %s", r.steps[n-1].text)
	}
	r.steps = append(r.steps, s)
	return r.rest(s)
}

// rest checks that only a comment follows on the line.
func (r *scriptReader) rest(s *step) error {
	rest, _, _ := strings.Cut(r.text[r.pos:], "\n")
	r.pos += len(rest)
	if rest = strings.TrimSpace(rest); rest != "" && rest[0] != '#' {
		return s.errorf("unexpected %q at the end of the line", pattern.Short(rest))
	}
	return nil
}

// value reads the value at the cursor and notes the names in it.
func (r *scriptReader) value(s *step, d pattern.Dialect) (*pattern.Value, error) {
	val, end, err := pattern.Read(r.text, r.pos, d)
	if err != nil {
		bad := s.errorf("line %d: %s", pattern.LineOf(r.text, pattern.Offset(err)), err)
		return nil, bad
	}
	r.pos = end
	if d == pattern.Template && val.Kind != pattern.Object {
		return nil, s.errorf("what is sent has to be an object; use !raw for anything else")
	}
	return val, r.check(s, val, d)
}

// check notes the names of a pattern, and those of a template must be known.
func (r *scriptReader) check(s *step, v *pattern.Value, d pattern.Dialect) error {
	if v.Kind == pattern.Name {
		if d == pattern.Template && !r.names[v.Str] {
			return s.errorf("nothing was captured as $%s before", v.Str)
		}
		r.names[v.Str] = true
	}
	for _, m := range v.Members {
		if err := r.check(s, m.Val, d); err != nil {
			return err
		}
	}
	for _, e := range v.Elems {
		if err := r.check(s, e, d); err != nil {
			return err
		}
	}
	return nil
}

var directives = map[string]op{
	"!initialize": opInitialize, "!session": opSession, "!raw": opRaw, "!sleep": opSleep,
	"!timeout": opTimeout, "!stall": opStall, "!eof": opEOF, "!close": opClose, "!reopen": opReopen,
}

func (r *scriptReader) directive(s *step, eol int) error {
	name := r.word(eol)
	var ok bool
	if s.op, ok = directives[name]; !ok {
		return s.errorf("there is no %s", pattern.Short(name))
	}
	switch s.op {
	case opRaw:
		s.arg = strings.TrimSpace(r.text[r.pos:eol])
		r.pos = eol
		if s.arg == "" {
			return s.errorf("!raw needs a text")
		}
	case opSleep, opTimeout:
		d, err := time.ParseDuration(r.word(eol))
		if err != nil || d <= 0 {
			return s.errorf("%s needs a duration, such as 10ms", name)
		}
		s.pause = d
	case opInitialize:
		n, err := strconv.ParseUint(r.word(eol), 10, 16)
		if err != nil {
			return s.errorf("!initialize needs a protocol version")
		}
		s.number = int(n)
		return r.members(s, eol)
	case opSession:
		s.arg = r.word(eol)
		if s.arg == "" || strings.ContainsFunc(s.arg, func(c rune) bool { return c > 'z' || !pattern.NameByte(byte(c)) }) {
			return s.errorf("!session needs a name of letters, digits and _")
		}
		if r.names[s.arg] {
			return s.errorf("$%s stands for something else already", s.arg)
		}
		r.names[s.arg] = true
		return r.members(s, eol)
	}
	return nil
}

// word takes the next word of the line.
func (r *scriptReader) word(eol int) string {
	rest := r.text[r.pos:eol]
	trimmed := strings.TrimLeft(rest, " \t\r")
	n := strings.IndexAny(trimmed, " \t\r")
	if n < 0 {
		n = len(trimmed)
	}
	r.pos += len(rest) - len(trimmed) + n
	return trimmed[:n]
}

// members reads the object that a shorthand may be followed by.
func (r *scriptReader) members(s *step, eol int) (err error) {
	if strings.HasPrefix(strings.TrimSpace(r.text[r.pos:eol]), "{") {
		s.val, err = r.value(s, pattern.Template)
	}
	return err
}
