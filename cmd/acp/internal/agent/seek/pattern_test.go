package seek

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// patterns are of each kind that is looked for in another way.
var patterns = []string{
	`foo`, `f`, ``, `foo|bar|baz`, `(?i)foo`, `(?i)foo bar`, `(?i)Zzq[(]`, `(?i)func .*é`, `(?i:FOO) \w+`, `(?i)kiss`, `^foo`, `foo$`, `^foo$`, `^$`, `^`, `$`, `\bfoo\b`, `\Bfoo`, `\bfo`, `o\b`, `^\s*foo`,
	`[fb]oo`, `[a-f]+o`, `f.o`, `f.*r`, `fo+`, `fo*b`, `fo{2}b?`, `(foo)+bar`, `func [a-z]+Foo\(`, `\w+\(\)`, `\d{2,4}-\d\d`, `[^a-z]`, `é`, `[é-ü]x`, `ü+`,
	`.`, `..`, `\x{1F600}`, `foo\sbar`, `foo\s+$`, `(a|ab)(c|bcd)`, `a|^b`, `(?m)^b$`, `\Aa`, `a\z`, `x?y?`, `(?:)`, `[[:upper:]]{2}`, `(?i)[a-c]é`, `\.go:\d+`,
	`\pL+\b`, `Zzq[(]`, `(?i)ſ`, `foo\b.*\bbar`, `\b`, `\B`, `a{0}`, `(a?){30}a{3}`, `(?s)f.o`, `\t`, `[\s\S]o`, `foo(bar)?baz`, `(foo|)bar`, `[^\n]b`,
}

// linesOf returns the numbers of the lines that match, as package regexp says it.
func linesOf(re *regexp.Regexp, text string) (all []int) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if re.MatchString(strings.TrimSuffix(line, "\n")) {
			all = append(all, n)
		}
	}
	return all
}

// found returns the numbers of the lines that a matcher finds.
func found(m *Matcher, text string) (all []int) {
	data := []byte(text)
	for at := 0; ; {
		begin, end, ok := m.Next(data, at)
		if !ok {
			return all
		}
		if begin > 0 && data[begin-1] != '\n' || end < len(data) && data[end] != '\n' || bytes.IndexByte(data[begin:end], '\n') >= 0 {
			return []int{-1}
		}
		all = append(all, bytes.Count(data[:begin], []byte{'\n'})+1)
		at = end + 1
	}
}

// check holds a pattern against package regexp.
func check(t *testing.T, expr, text string) {
	t.Helper()
	re, err := regexp.Compile(expr)
	p, own := Compile(expr)
	if err != nil || own == ErrLines {
		if own == nil {
			t.Errorf("%q is compiled", expr)
		}
		return
	}
	want := linesOf(re, text)
	m := p.Matcher()
	for range 2 { // the second time the automaton is there
		if got := found(m, text); !slices.Equal(got, want) {
			t.Fatalf("%q in %q: lines %v, want %v", expr, text, got, want)
		}
	}
	if len(want) > 0 && !m.May([]byte(text)) {
		t.Fatalf("%q in %q: May is false", expr, text)
	}
	if m.dfa == nil {
		return
	}
	m.needles, p.exact = nil, false // by the automaton alone
	if got := found(m, text); !slices.Equal(got, want) {
		t.Fatalf("%q in %q: by the automaton lines %v, want %v", expr, text, got, want)
	}
	m.dfa = nil
	if got := found(m, text); !slices.Equal(got, want) {
		t.Fatalf("%q in %q: one by one lines %v, want %v", expr, text, got, want)
	}
}

// TestPatterns: a pattern finds the lines that package regexp finds.
func TestPatterns(t *testing.T) {
	words := []string{"foo", "bar", "f", "o", "b", " ", "  ", "(", ")", "é", "ü", "x", "\t", "Foo", "FOO", "kiſs", "12-34", "\n", "\n", "\n\n", "a", "func ", "Zzq(", "\U0001F600", "\xff", "\xc3", ".go:7", "abcd", "_", "\r"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var b strings.Builder
		for range r.IntN(30) {
			b.WriteString(words[r.IntN(len(words))])
		}
		for _, expr := range patterns {
			check(t, expr, b.String())
		}
	}
	for _, expr := range []string{"foo\nbar", `foo\nbar`, `a(\n)b`, `\r?\n`} {
		if _, err := Compile(expr); err != ErrLines {
			t.Errorf("%q: %v", expr, err)
		}
	}
	if _, err := Compile("("); err == nil {
		t.Error("( is compiled")
	}
}

// TestTexts: which texts a line must have.
func TestTexts(t *testing.T) {
	for expr, want := range map[string]string{
		`needle`: "exact needle", `\bZzqx`: "Zzqx", `Zzq[(]`: "exact Zzq(", `Zzq\(`: "exact Zzq(", `func [a-z]+Zzq\(`: "Zzq(", `^import`: "import",
		`alpha|beta`: "exact alpha beta", `(?i)Zzq#`: "zzq#", `(?i)kiss.*Needle`: "needle", `(?i)sky`: "", `(?i:Qqz)z`: "qqz", `(foo)+bar`: "", `[0-9]+`: "", `.*`: "", `x?`: "", `a`: "exact a",
		`Mutex(\.Lock)?`: "exact Mutex.Lock Mutex", `(a|b|c|d|e|f|g|h|i)x`: "", `error: .*failed`: "error: ", `(alpha|)beta`: "exact alphabeta beta", `^$`: "",
	} {
		p, err := Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(p.texts, " ")
		if p.exact {
			got = "exact " + got
		}
		if got != want {
			t.Errorf("%q: %q, want %q", expr, got, want)
		}
	}
}

// TestAutomatonBounds: an expression whose automaton has no bound is still right.
func TestAutomatonBounds(t *testing.T) {
	expr := `(a|b)*a(a|b){14}c`
	p, err := Compile(expr)
	if err != nil {
		t.Fatal(err)
	}
	m := p.Matcher()
	m.needles = nil
	r := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	for range 400 {
		for range 100 {
			b.WriteByte("ab"[r.IntN(2)])
		}
		fmt.Fprintf(&b, "%c\n", "cd"[r.IntN(2)])
	}
	text := b.String()
	want := linesOf(regexp.MustCompile(expr), text)
	for range 3 {
		if got := found(m, text); !slices.Equal(got, want) {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
		if len(m.dfa.states) > maxStates+1 {
			t.Errorf("%d states", len(m.dfa.states))
		}
	}
	if m.dfa.resets < maxResets {
		t.Errorf("%d resets: the test does not reach the bound", m.dfa.resets)
	}
}

// TestStop: a look that takes long is given up when it is to be.
func TestStop(t *testing.T) {
	for _, expr := range []string{`[a-c]x?(y|z){1,500}w$`, `(a|b)*a(a|b){14}c`, `x(\w+y){3}`} {
		p, err := Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, automatic := range []bool{true, false} {
			m := p.Matcher()
			if !automatic {
				m.dfa = nil
			}
			asked := 0
			m.Stop = func() bool { asked++; return asked == 3 }
			text := []byte(strings.Repeat("é"+strings.Repeat("ab", 20)+"\n", 10*stopEvery) + "b" + strings.Repeat("ab", 20) + "c\n")
			if _, _, ok := m.Next(text, 0); ok && asked >= 3 || asked == 0 && len(m.needles) == 0 {
				t.Errorf("%s, automatic %t: asked %d times, found %t", expr, automatic, asked, ok)
			}
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, p := range patterns {
		f.Add(p, "foo bar\nfunc aFoo()\n\né 12-34")
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		if len(expr) < 60 {
			check(t, expr, text)
		}
	})
}
