package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// A pathDoc is a random document with a mark on every value: where it starts
// and which path leads there.
type pathDoc struct {
	strings.Builder
	r     *rand.Rand
	marks map[int]string // offset → path
	keys  map[int]string // offset of a key → path of its member
}

// space writes what may stand between tokens.
func (p *pathDoc) space() {
	for p.r.IntN(3) == 0 {
		p.WriteByte(" \t\r\n"[p.r.IntN(4)])
	}
}

// name returns a member name as it is spelled in JSON and in a path.
func (p *pathDoc) name(n int) (spelled, path string) {
	switch p.r.IntN(6) {
	case 0:
		return fmt.Sprintf(`odd\"%d\\`, n), fmt.Sprintf(`"odd\\\"%d\\\\"`, n)
	case 1:
		return fmt.Sprintf("a.b[%d]", n), fmt.Sprintf(`"a.b[%d]"`, n)
	case 2:
		s := fmt.Sprintf("%d%s", n, strings.Repeat("long", 50))
		return s, s[:nameMax]
	case 3:
		return fmt.Sprintf("é%d", n), fmt.Sprintf(`"\u00e9%d"`, n)
	}
	s := fmt.Sprintf("_field-%d$", n)
	return s, s
}

func (p *pathDoc) value(path string, depth int) {
	p.marks[p.Len()] = path
	kind := p.r.IntN(8)
	if depth == 0 {
		kind = 2 + p.r.IntN(6)
	}
	switch kind {
	case 0:
		p.WriteByte('{')
		for i := range p.r.IntN(5) {
			if i > 0 {
				p.WriteByte(',')
			}
			p.space()
			spelled, part := p.name(i)
			child := strings.TrimPrefix(path+"."+part, ".")
			p.keys[p.Len()] = child
			p.WriteString(`"` + spelled + `"`)
			p.space()
			p.WriteByte(':')
			p.space()
			p.value(child, depth-1)
			p.space()
		}
		p.WriteByte('}')
	case 1:
		p.WriteByte('[')
		for i := range p.r.IntN(5) {
			if i > 0 {
				p.WriteByte(',')
			}
			p.space()
			p.value(fmt.Sprintf("%s[%d]", path, i), depth-1)
			p.space()
		}
		p.WriteByte(']')
	case 2:
		p.WriteString(`"plain, [text] {here}: 1"`)
	case 3:
		// Once unescaped in place this looks like the end of the string.
		p.WriteString(`"\"\u0022,\"x\":{[\\\n` + strings.Repeat(`\"`, p.r.IntN(20)) + `]"`)
	case 4:
		p.WriteString(`""`)
	case 5:
		p.WriteString(`-12.5e+3`)
	case 6:
		p.WriteString(`null`)
	case 7:
		p.WriteString([]string{"true", "false", "{}", "[]", "{ }", "[ ]"}[p.r.IntN(6)])
	}
}

// readAll decodes every string where it stands.
func readAll(d *Decoder) {
	switch d.Peek() {
	case '{':
		for _, ok := d.FirstKey(); ok; _, ok = d.NextKey() {
			readAll(d)
		}
	case '[':
		for ok := d.FirstElem(); ok; ok = d.NextElem() {
			readAll(d)
		}
	case '"':
		d.Str()
	default:
		d.Skip()
	}
}

func TestPaths(t *testing.T) {
	for seed := range uint64(400) {
		p := &pathDoc{r: rand.New(rand.NewPCG(seed, 3)), marks: map[int]string{}, keys: map[int]string{}}
		p.space()
		p.value("", 5)
		p.space()
		if !json.Valid([]byte(p.String())) {
			t.Fatalf("the test made %s", p.String())
		}
		for how, d := range reading(p.String()) {
			readAll(d)
			check(t, d, "")
			for _, marks := range []map[int]string{p.marks, p.keys} {
				for at, want := range marks {
					if got := d.path(at); got != want {
						t.Fatalf("seed %d, %s: %q at %d, want %q, in %s", seed, how, got, at, want, p.String())
					}
				}
			}
		}
	}
}

// TestPathOfMismatch goes over the ways by which a problem gets its place.
func TestPathOfMismatch(t *testing.T) {
	text := func(d *Decoder) { d.Str() }
	field := func(names ...string) func(*Decoder) {
		return func(d *Decoder) {
			var in func(d *Decoder, names []string)
			in = func(d *Decoder, names []string) {
				if len(names) == 0 {
					text(d)
					return
				}
				if names[0] == "[]" {
					for ok := d.FirstElem(); ok; ok = d.NextElem() {
						in(d, names[1:])
					}
					return
				}
				at := d.At()
				found := false
				for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
					if string(k) == names[0] {
						found = true
						in(d, names[1:])
					} else {
						d.Skip()
					}
				}
				if !found && d.SyntaxErr() == nil {
					d.Missing(at, names[0])
				}
			}
			in(d, names)
		}
	}
	for _, x := range []struct {
		in, path string
		read     func(*Decoder)
	}{
		{`5`, "", text},
		{` 5`, "", text},
		{`{"text":5}`, "text", field("text")},
		{`{"update":{"content":{"text":5}}}`, "update.content.text", field("update", "content", "text")},
		{`{"prompt":[{"text":""},{"text":""},{"text":5}]}`, "prompt[2].text", field("prompt", "[]", "text")},
		{`{"rows":[["a"],["b",{}]]}`, "rows[1][1]", field("rows", "[]", "[]")},
		{`{"a":{"x":1}}`, "a.b", field("a", "b")},
		{`{"a":[{"b":""},{}]}`, "a[1].b", field("a", "[]", "b")},
		{`{}`, "a", field("a")},
		{`{"":5}`, `""`, field("")},
		{`{"a":{"":5}}`, `a.""`, field("a", "")},
		{`{"a\u0062":5}`, `"a\\u0062"`, field("ab")},
		{`{"a b":5}`, `"a b"`, field("a b")},
		{"{\"\xff\":5}", `"\xff"`, field("\uFFFD")},
		{`{"` + strings.Repeat("n", 1000) + `":5}`, strings.Repeat("n", nameMax), field(strings.Repeat("n", 1000))},
		{`{"_meta":5}`, `_meta`, field("_meta")},
		{`{"x":"\"},\"a\":\"","a":5}`, "a", func(d *Decoder) {
			for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
				_ = k
				d.Str()
			}
		}},
	} {
		for how, d := range reading(x.in) {
			x.read(d)
			var e *FieldError
			if err := d.Finish(); !errors.As(err, &e) || e.Path != x.path {
				t.Errorf("%s %.60s: %+v, want %q", how, x.in, d.Finish(), x.path)
			}
			if again := d.FieldErr(); again == nil || again.Path != x.path {
				t.Errorf("%s: asked again: %+v", x.in, again)
			}
		}
	}
}

// TestPathOfManyStrings takes as long as reading does, not its square: half a
// million strings, each unescaped in place, before the one problem.
func TestPathOfManyStrings(t *testing.T) {
	const n = 500_000
	d := reading("[" + strings.Repeat(`"\n",`, n) + "5]")["owned"]
	Slice(d, String[string])
	check(t, d, fmt.Sprintf("[%d]: expected a string", n))
	// The same of discriminators that come last.
	d = reading("[" + strings.Repeat(`{"x":"\n","type":"t"},`, n/5) + "5]")["owned"]
	Slice(d, func(_ *int, d *Decoder) {
		d.Open("type")
		for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
			_ = k
			d.Str()
		}
	})
	check(t, d, fmt.Sprintf("[%d]: expected an object", n/5))
}
