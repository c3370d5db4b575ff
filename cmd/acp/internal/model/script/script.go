// Package script is a language model that answers as a file says. It needs no key and no
// network: tests and demonstrations use it.
//
// A script is a text. Its answers are divided by lines of three dashes, and are given one
// after the other. Each line of an answer begins with a word; lines that begin with # and
// blank lines are ignored.
//
//	think TEXT          reasoning
//	say TEXT            text
//	use NAME JSON       the wish for a tool, with its input
//	wait TIME           a pause, such as 200ms
//	pace TIME           a pause after each word from here on
//	usage KEY=N ...     the tokens used: input, read, write, output, reasoning
//	stop REASON         why the answer ends: max_tokens, refused or paused
//	fail KIND TEXT      an error in place of the rest, such as: fail overloaded too busy
//	when TEXT           the answer is given only if the last message has this text
//	always              the answer can be given any number of times
//	price CURRENCY KEY=N ...   what a million tokens cost: input, read, write, output
//	window TOKENS       how large the context window is; 200000 by default
//
// TEXT and JSON continue in the next lines if they are given as <<WORD, up to a line that is
// WORD alone. In a TEXT in its line, \n is a line break; nothing else is an escape.
//
// Which answer is given depends on the conversation alone: each message of the assistant
// in it has used one up, the first that fitted then. A session that is resumed by another
// process continues where it was. Answers that fail are used up in memory only.
//
// Tokens that are not given are counted as four bytes each, and what the last request of
// the conversation had counts as read from a cache.
package script

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// MaxBytes bounds a script.
const MaxBytes = 16 << 20

// A step is a line of an answer.
type step struct {
	word string
	text string
	name string          // of a tool
	json json.RawMessage // its input
	wait time.Duration
}

// An answer is what the script says to one request.
type answer struct {
	line   int // at which it begins
	steps  []step
	usage  *model.Usage
	stop   model.StopReason
	when   []string
	always bool
}

// Read returns the model that a file describes.
func Read(file string) (*Model, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > MaxBytes {
		return nil, fmt.Errorf("%s: a script has at most %d MiB", file, MaxBytes>>20)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m, err := Parse(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s:%w", file, err)
	}
	return m, nil
}

// Parse returns the model that a text describes. Errors begin with the number of the line.
func Parse(text string) (*Model, error) {
	p := &parser{lines: bufio.NewScanner(strings.NewReader(text))}
	p.lines.Buffer(nil, MaxBytes+1)
	m := &Model{}
	a := &answer{line: 1}
	flush := func() {
		if len(a.steps) > 0 || a.stop != "" {
			m.answers = append(m.answers, a)
		}
		a = &answer{line: p.n + 1}
	}
	var err error
	for p.next() {
		line := strings.TrimSpace(p.line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case line == "---":
			flush()
		default:
			if price, ok := strings.CutPrefix(line, "price "); ok {
				if err := priceOf(price, &m.price); err != nil {
					return nil, p.fail(p.n, "%v", err)
				}
				continue
			}
			if size, ok := strings.CutPrefix(line, "window "); ok {
				if m.window, err = strconv.Atoi(strings.TrimSpace(size)); err != nil || m.window <= 0 {
					return nil, p.fail(p.n, "window wants a number of tokens, not %q", size)
				}
				continue
			}
			if err := p.read(a, line); err != nil {
				return nil, err
			}
		}
	}
	if err := p.lines.Err(); err != nil {
		return nil, fmt.Errorf("%d: %w", p.n, err)
	}
	flush()
	if len(m.answers) == 0 {
		return nil, fmt.Errorf("%d: there is no answer in the script", p.n)
	}
	return m, nil
}

// A parser reads lines.
type parser struct {
	lines *bufio.Scanner
	line  string
	n     int // counted from 1
}

func (p *parser) next() bool {
	if !p.lines.Scan() {
		return false
	}
	p.n++
	p.line = p.lines.Text()
	return true
}

func (p *parser) fail(n int, format string, args ...any) error {
	return fmt.Errorf("%d: %s", n, fmt.Sprintf(format, args...))
}

// read reads a line of an answer.
func (p *parser) read(a *answer, line string) error {
	at := p.n
	word, rest, _ := strings.Cut(line, " ")
	s := step{word: word}
	switch word {
	case "use":
		s.name, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
		if s.name == "" {
			return p.fail(at, "use wants the name of a tool")
		}
	case "fail":
		s.name, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
		if !slices.Contains(kinds, model.Kind(s.name)) {
			return p.fail(at, "fail wants one of %v", kinds)
		}
	}
	text, whole, err := p.text(strings.TrimSpace(rest))
	if err != nil {
		return err
	}
	if !whole && word != "use" { // JSON has its own escapes
		text = strings.ReplaceAll(text, `\n`, "\n")
	}
	s.text = text
	switch word {
	case "think", "say", "fail":
	case "use":
		if strings.TrimSpace(text) == "" {
			text = "{}"
		}
		// What is not JSON is sent all the same: models do that.
		s.json = json.RawMessage(text)
	case "wait", "pace":
		if s.wait, err = time.ParseDuration(text); err != nil || s.wait < 0 || s.wait > time.Hour {
			return p.fail(at, "%s wants a time such as 200ms, not %q", word, text)
		}
	case "usage":
		if a.usage, err = usageOf(text); err != nil {
			return p.fail(at, "%v", err)
		}
		return nil
	case "stop":
		a.stop = model.StopReason(text)
		if !slices.Contains([]model.StopReason{model.MaxTokens, model.Refused, model.Paused, model.EndTurn}, a.stop) {
			return p.fail(at, "stop wants max_tokens, refused, paused or end_turn, not %q", text)
		}
		return nil
	case "when":
		if text == "" {
			return p.fail(at, "when wants a text")
		}
		a.when = append(a.when, text)
		return nil
	case "always":
		a.always = true
		return nil
	default:
		return p.fail(at, "%q is not a word of scripts", word)
	}
	a.steps = append(a.steps, s)
	return nil
}

// kinds are those of errors.
var kinds = []model.Kind{
	model.KindAuth, model.KindQuota, model.KindRate, model.KindOverloaded, model.KindOverflow,
	model.KindRequest, model.KindRefused, model.KindNetwork, model.KindStalled, model.KindAnswer,
}

// text returns the text that rest is, or begins; whole says that it has lines of its own.
func (p *parser) text(rest string) (text string, whole bool, err error) {
	end, ok := strings.CutPrefix(rest, "<<")
	if !ok || end == "" || strings.ContainsAny(end, " \t") {
		return rest, false, nil
	}
	at := p.n
	var lines []string
	for p.next() {
		if strings.TrimSpace(p.line) == end {
			return strings.Join(lines, "\n"), true, nil
		}
		lines = append(lines, p.line)
	}
	return "", false, p.fail(at, "the line %q that ends the text is missing", end)
}

// usageOf reads numbers of tokens.
func usageOf(text string) (*model.Usage, error) {
	u := &model.Usage{Known: true}
	for _, field := range strings.Fields(text) {
		key, value, _ := strings.Cut(field, "=")
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("usage wants numbers such as input=100, not %q", field)
		}
		to, ok := map[string]*int{"input": &u.Input, "read": &u.CacheRead, "write": &u.CacheWrite, "output": &u.Output, "reasoning": &u.Reasoning}[key]
		if !ok {
			return nil, fmt.Errorf("usage knows input, read, write, output and reasoning, not %q", key)
		}
		*to = n
	}
	return u, nil
}

// priceOf reads a price.
func priceOf(text string, price *model.Price) error {
	fields := strings.Fields(text)
	price.Currency = fields[0]
	for _, field := range fields[1:] {
		key, value, _ := strings.Cut(field, "=")
		n, err := strconv.ParseFloat(value, 64)
		to, ok := map[string]*float64{"input": &price.Input, "read": &price.CacheRead, "write": &price.CacheWrite, "output": &price.Output}[key]
		if err != nil || !ok || !(n >= 0 && n < 1e9) {
			return fmt.Errorf("price wants numbers such as input=3, read=0.3, write=3.75 and output=15, not %q", field)
		}
		*to = n
	}
	return nil
}
