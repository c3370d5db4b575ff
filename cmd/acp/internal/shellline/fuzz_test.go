package shellline_test

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
	"github.com/goacp/acp/internal/long"
)

// FuzzParse: no line is too much, what is said of a line is within the bounds, and a line that is denied
// stays denied, or is asked about, whatever stands around it.
func FuzzParse(f *testing.F) {
	for i, list := range [][]string{passDeny, passAllow, harmless} {
		for k, line := range list {
			if (i+k)%4 == 0 {
				f.Add(line)
			}
		}
	}
	f.Add(strings.Repeat("$(", 300))
	f.Add("echo {1..1000000000}{a,b}{c,d}")
	policy := newPolicy(f, acphost.Rule{Effect: acphost.EffectDeny, Commands: []string{"rm *", "git push *"}, CommandRegexps: []string{"curl .*"}}, acphost.Rule{Effect: acphost.EffectAllow})
	narrow := newPolicy(f, acphost.Rule{Effect: acphost.EffectAllow, Commands: []string{"go *", "ls *", "git *", "find *"}})
	f.Fuzz(func(t *testing.T, line string) {
		parsed := shellline.Parser{}.ParseCommand(line)
		words := 0
		for i, p := range parsed.Parts {
			if words += len(p.Words) + len(p.Writes) + len(p.Reads); p.By > i || p.By > 0 && p.At >= len(parsed.Parts[p.By-1].Words) {
				t.Fatalf("part %d of %q is run by word %d of part %d", i+1, line, p.At, p.By)
			}
			for _, o := range p.Options {
				if o.Word <= 0 || o.Word >= len(p.Words) {
					t.Fatalf("%q has an option in word %d of %d", line, o.Word, len(p.Words))
				}
			}
		}
		for _, p := range parsed.Parts {
			if len(p.Forms) > 32 || len(p.In) > 32 {
				t.Fatalf("%q has %d forms in %d directories", line, len(p.Forms), len(p.In))
			}
			for _, w := range p.Words {
				if len(w.Pieces) > 32 {
					t.Fatalf("%q has a word with %d pieces", line, len(w.Pieces))
				}
			}
		}
		if len(parsed.Moves) > 64 {
			t.Fatalf("%q changes to %d directories", line, len(parsed.Moves))
		}
		if len(parsed.Parts) > 512 || words > 4096 {
			t.Fatalf("%d parts with %d words", len(parsed.Parts), words)
		}
		if n := parsed.Normal; n != "" {
			if again := (shellline.Parser{}).ParseCommand(n); again.Unsure != "" || len(again.Parts) == 0 && len(parsed.Parts) > 0 {
				t.Fatalf("%q has the normal form %q, which is %q", line, n, again.Unsure)
			}
		}
		allowed := func(p *acphost.Policy, line string) bool {
			return p.Decide(t.Context(), request(line)).Effect == acphost.EffectAllow
		}
		// A line that cannot be parsed, such as one with a parenthesis too many, may be another in parentheses.
		if !allowed(policy, line) && strings.TrimSpace(line) != "" && parsed.Unsure != "it cannot be parsed" {
			for _, around := range []string{"( %\n)", "{ %\n}", "true && { %\n}", "if true; then %\nfi", "! { %\n}", "while %\ndo :; done", "x=$( %\n)", "f() { %\n}; f"} {
				if wrapped := strings.ReplaceAll(around, "%", line); allowed(policy, wrapped) {
					t.Fatalf("%q is not allowed, but %q is", line, wrapped)
				}
			}
		}
		if allowed(narrow, line) && strings.TrimSpace(line) != "" && !strings.HasSuffix(line, `\`) && allowed(narrow, line+"\nrm x") {
			t.Fatalf("%q is allowed with another command behind it", line)
		}
	})
}

// FuzzWrapped: a simple command that is denied stays denied behind the programs that run others.
func FuzzWrapped(f *testing.F) {
	f.Add("x", "-rf")
	f.Add("'a b'", "\"$x\"")
	f.Add("( )rx", "")
	f.Add("", "() x")
	policy := newPolicy(f, acphost.Rule{Effect: acphost.EffectDeny, Commands: []string{"rm *"}}, acphost.Rule{Effect: acphost.EffectAllow})
	f.Fuzz(func(t *testing.T, a, b string) {
		line := "rm " + a + " " + b
		if declares(line) {
			return // rm () x: a function of this name, and rm is not run
		}
		for _, before := range []string{"", "sudo ", "env ", "A=1 ", "nohup ", "timeout 5 ", "xargs ", "true && ", "time ", "exec ", "! ", "ls; ", "ls | ", "find . -exec ", "mywrapper ", "docker exec c ", "uv run "} {
			if policy.Decide(t.Context(), request(before+line)).Effect == acphost.EffectAllow {
				t.Fatalf("%q is allowed", before+line)
			}
		}
		quoted := "'" + strings.ReplaceAll("ls; "+line, "'", `'\''`) + "'"
		for _, before := range []string{"mywrapper ", "docker exec c sh -c ", "tar xf x --to-command=", "GIT_PAGER="} {
			if policy.Decide(t.Context(), request(before+quoted+" git log")).Effect == acphost.EffectAllow {
				t.Fatalf("%q is allowed", before+quoted)
			}
		}
	})
}

// declares reports whether a shell can read a line as one that declares a function.
func declares(line string) (yes bool) {
	for _, lang := range []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX} {
		file, _ := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(line), "")
		if file == nil {
			continue
		}
		syntax.Walk(file, func(n syntax.Node) bool {
			_, is := n.(*syntax.FuncDecl)
			yes = yes || is
			return !yes
		})
	}
	return yes
}

// FuzzHarmless: a line that is harmless is not so any more with something behind it, around it or within it that writes or
// runs, and is harmless for the rules that it is about: it writes to no file and sets no variable that programs load.
func FuzzHarmless(f *testing.F) {
	for i, line := range linesOf(harmlessLines + seemingLines) {
		if i%4 == 0 {
			f.Add(line)
		}
	}
	dir := project(f, true)
	f.Fuzz(func(t *testing.T, line string) {
		if h := harmlessIn(line, dir); h.Why != "" || strings.HasSuffix(line, `\`) {
			return
		}
		for _, more := range []string{"{ %\n} > x", "{ %\n} 2>> x", "%\nrm x", "%\n$(rm x)", "(%\n) | sh", "%\nls > x", "{ %\n} &", "f() { %\n}", "x=$(%\nrm x)", "(%\n) | xargs rm", "eval '%'; rm x", "PATH=. ls; %"} {
			if more = strings.ReplaceAll(more, "%", line); harmlessIn(more, dir).Why == "" {
				t.Fatalf("%q is harmless, and %q as well", line, more)
			}
		}
		for _, p := range (shellline.Parser{}).ParseCommand(line).Parts {
			if len(p.Writes)+len(p.Options) > 0 && (len(p.Words) == 0 || p.Words[0].Text != "git") {
				t.Fatalf("%q writes to %v or has the options %v", line, p.Writes, p.Options)
			}
		}
	})
}

// TestHarmlessWithMore: nothing that writes or runs can be put between the words of a harmless line.
func TestHarmlessWithMore(t *testing.T) {
	dir := project(t, false)
	for n, line := range linesOf(harmlessLines) {
		if strings.ContainsAny(line, "'\"#\n\\") || strings.Contains(line, "((") || n%3 > 0 && !long.All() {
			continue // it may be text there, or a number
		}
		for i, c := range line + " " {
			if c != ' ' {
				continue
			}
			for _, more := range []string{" >x ", " 2>x ", " $(rm x) ", " `rm x` ", " <(rm x) ", " & "} {
				if with := line[:i] + more + line[i:]; harmlessIn(with, dir).Why == "" {
					t.Errorf("%q is harmless", with)
				}
			}
		}
	}
}
