package acphost

import (
	"fmt"
	"strings"
	"testing"
)

// countingParser counts how often it is called.
type countingParser struct{ calls, bytes *int }

func (p countingParser) ParseCommand(line string) CommandLine {
	*p.calls++
	*p.bytes += len(line)
	return plainParser{}.ParseCommand(line)
}

// TestInnerBounds: the words of a program that may run them are read as lines within bounds, once for
// all rules, and what is beyond is asked about.
func TestInnerBounds(t *testing.T) {
	words := func(n int, format string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(format, i))
		}
		return "run " + strings.Join(list, " ")
	}
	for _, tt := range []struct {
		name, line string
		want       Effect
	}{
		{"a few words", words(5, "a%d"), EffectAllow},
		{"a line", "run a;run b rm", EffectAsk},
		{"many words", words(80, "a%d"), EffectAsk},
		{"many variants", words(30, "a%d=b%[1]d=c%[1]d=d"), EffectAllow},
		{"much text", words(30, "a%d"+strings.Repeat("b", 8<<10)), EffectAsk},
		{"many in each other", "run " + strings.Repeat("run ", 25) + "a", EffectAllow},
		{"many commands", strings.Repeat(words(5, "a%d")+";", 200), EffectAsk},
	} {
		calls, bytes := 0, 0
		p, err := NewPolicy(Rule{Effect: EffectDeny, Commands: []string{"rm *", "git push *"}}, Rule{Effect: EffectDeny, Commands: []string{"curl *"}}, Rule{Effect: EffectDeny, Paths: []string{"**/.env"}}, Rule{Effect: EffectAllow})
		if err != nil {
			t.Fatal(err)
		}
		p.Commands = countingParser{&calls, &bytes}
		d := p.Decide(t.Context(), Request{Kind: "execute", Cwd: "/w", Command: tt.line, Options: usual})
		got := d.Effect
		if d.By == ByNobody {
			got = EffectAsk
		}
		if got != tt.want || calls > maxInner+1 || bytes > maxInnerText+len(tt.line) {
			t.Errorf("%s: %s, %d calls with %d bytes, want %s", tt.name, got, calls, bytes, tt.want)
		}
	}
}

// TestInnerOnlyForNet: without rules that deny or ask, words are not read.
func TestInnerOnlyForNet(t *testing.T) {
	calls, bytes := 0, 0
	p, err := NewPolicy(Rule{Effect: EffectAllow, Commands: []string{"run *"}})
	if err != nil {
		t.Fatal(err)
	}
	p.Commands = countingParser{&calls, &bytes}
	if d := p.Decide(t.Context(), Request{Kind: "execute", Cwd: "/w", Command: "run a;run 'rm $x'", Options: usual}); d.Effect != EffectAllow || calls != 1 {
		t.Errorf("%s after %d calls", d.Effect, calls)
	}
}

// TestPathBounds: the words of a line are compared with rules about paths within bounds, and what is
// beyond is asked about.
func TestPathBounds(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		rules      int
		want       Effect
	}{
		{"some words", "cat " + strings.Repeat("a:b:c:d ", 20), 20, EffectAllow},
		{"many words", "cat " + strings.Repeat("a ", maxArguments), 1, EffectAsk},
		{"many readings", "cat " + strings.Repeat("a:", maxPaths), 1, EffectAsk},
		{"many comparisons", "cat " + strings.Repeat("a:b:c:d:e:f:g:h ", maxArguments-1), 50, EffectAsk},
	} {
		rules := []Rule{}
		for i := range tt.rules {
			rules = append(rules, Rule{Effect: EffectDeny, Paths: []string{fmt.Sprintf("x%d/**", i)}})
		}
		p, err := NewPolicy(append(rules, Rule{Effect: EffectAllow})...)
		if err != nil {
			t.Fatal(err)
		}
		p.Commands = plainParser{}
		p.Resolve = func(path string) (string, error) { return path, nil }
		d := p.Decide(t.Context(), Request{Kind: "execute", Cwd: "/w", Command: tt.line, Options: usual})
		if got := d.Effect; got != tt.want && !(tt.want == EffectAsk && d.By == ByNobody) {
			t.Errorf("%s: %+v, want %s", tt.name, d, tt.want)
		}
	}
}
