package conformance

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func loadText(file, text string) (*catalog, error) {
	return loadRules(map[string]string{file: text})
}

// TestLoad holds what becomes of a rule's text.
func TestLoad(t *testing.T) {
	c, err := loadText("rules/agent/t.txtar", `This is a comment.
-- a-1 --
A sentence
of two lines.
level should
cite S1 S107
cite S20
versions 2
needs session.fork
needs v1 loadSession
lacks terminal
experimental
fresh

alive
-- b --
Another one.
level must
cite S1

# a comment
v1:
call $r x {"a":
  [1]} # another
v2:
alive
both:
alive
`)
	if err != nil {
		t.Fatal(err)
	}
	want := &Rule{ID: "agent/t/a-1", Side: Agent, Level: Should, Text: "A sentence of two lines.", Cites: []string{"S1", "S107", "S20"},
		Versions: []int{2}, Needs: []string{"session.fork", "v1 loadSession"}, Lacks: []string{"terminal"}, Experimental: true, Scenario: "alive"}
	if diff := cmp.Diff(want, c.byID["agent/t/a-1"]); diff != "" {
		t.Error(diff)
	}
	if p := c.tests[c.byID["agent/t/a-1"]].place; p != onFresh {
		t.Errorf("its place is %d", p)
	}
	verbs := func(version int) (all []string) {
		for _, s := range c.tests[c.byID["agent/t/b"]].scenarios[version].steps {
			all = append(all, s.verb)
		}
		return all
	}
	if diff := cmp.Diff([][]string{{"call", "alive"}, {"alive", "alive"}}, [][]string{verbs(1), verbs(2)}); diff != "" {
		t.Error(diff)
	}
	if got := c.tests[c.byID["agent/t/b"]].scenarios[2].steps[1].line; got != 28 {
		t.Errorf("the last step is in line %d", got)
	}

	c, err = loadText("rules/observed/both/t.txtar", "-- a --\nS.\nlevel may\ncite S1\n")
	if err != nil || len(c.rules) != 2 || !c.byID["client/t/a"].Observed || c.byID["agent/t/a"].Side != Agent {
		t.Errorf("%v: %v", err, c.rules)
	}
	c, err = loadText("rules/client/t.txtar", oneRule("", "say \"x\"\nstop"))
	if err != nil || c.tests[c.byID["client/t/x"]].place != onTurn {
		t.Error("a scenario that ends its turn shares it")
	}
}

// TestLoadErrors holds that what is wrong with a file is said with its line.
func TestLoadErrors(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"-- A --\nS.\nlevel must\ncite S1\n\nalive\n", `1: "agent/t/A" is no id of a rule`},
		{"-- a --\n\nlevel must\n", `2: a rule begins with a sentence and its level`},
		{"-- a --\nNo stop\nlevel must\ncite S1\n\nalive\n", `2: the text of a rule is a sentence, with a full stop`},
		{"-- a --\nS.\nlevel most\n", `3: the level is must, should, may or quirk`},
		{"-- a --\nS.\nlevel must\n\nalive", `2: agent/t/a needs a level and a cite`},
		{"-- a --\nS.\nlevel must\ncite X1\n", `4: "X1" is no statement such as S20`},
		{"-- a --\nS.\nlevel must\ncite S0\n", `4: there is no statement S0`},
		{"-- a --\nS.\nlevel must\ncite S116\n", `4: there is no statement S116`},
		{"-- a --\nS.\nlevel must\nversions 3\n", `4: "3" is no version`},
		{"-- a --\nS.\nlevel must\nversions\n", `4: versions needs 1, 2 or both`},
		{"-- a --\nS.\nlevel must\nneeds a b\n", `4: needs needs the path of a capability`},
		{"-- a --\nS.\nlevel must\nsomething\n", `4: there is no something`},
		{"-- a --\nS.\nlevel must\ncite S1\n", `6: there is no scenario`},
		{"-- a --\nS.\nlevel must\ncite S1\n\nfly $r\n", `6: there is no step fly for agents`},
		{"-- a --\nS.\nlevel must\ncite S1\n\ntell {}\n", `6: there is no step tell for agents`},
		{"-- a --\nS.\nlevel must\ncite S1\n\ncall\n", `6: call needs a name such as $r`},
		{"-- a --\nS.\nlevel must\ncite S1\n\ncall r x\n", `6: "r" is no name such as $r`},
		{"-- a --\nS.\nlevel must\ncite S1\n\ncall $r\n", `6: call needs a method`},
		{"-- a --\nS.\nlevel must\ncite S1\n\ncall $r {}\n", `6: call needs a method`},
		{"-- a --\nS.\nlevel must\ncite S1\n\ncall $r x {\"a\":\n1,}\n", `7: '}' where the name of a member is expected`},
		{"-- a --\nS.\nlevel must\ncite S1\n\ncall $r x {\"a\": $b}\n", `6: nothing was called $b before`},
		{"-- a --\nS.\nlevel must\ncite S1\n\nresult $r\n", `6: nothing was called $r before`},
		{"-- a --\nS.\nlevel must\ncite S1\n\ncall $r x\nerror $r x\n", `7: "x" is no error code`},
		{"-- a --\nS.\nlevel must\ncite S1\n\ncall $r x\nresult $r [..]\n", `7: '.' where a value is expected`},
		{"-- a --\nS.\nlevel must\ncite S1\n\nalive now\n", `6: unexpected "now" at the end of the line`},
		{"-- a --\nS.\nlevel must\ncite S1\n\nrepeat 2\nalive\n", `9: repeat 2 has no end`},
		{"-- a --\nS.\nlevel must\ncite S1\n\nend\n", `6: an end without a repeat, each or together`},
		{"-- a --\nS.\nlevel must\ncite S1\n\ntogether\nalive\n", `9: together has no end`},
		{"-- a --\nS.\nlevel must\ncite S1\n\njoin $x\n", `6: join needs texts in quotes and names such as $r`},
		{"-- a --\nS.\nlevel must\ncite S1\n\njoin $x \"a\" $y\n", `6: nothing was called $y before`},
		{"-- a --\nS.\nlevel must\ncite S1\n\njoin $x 5\n", `6: "5" is no name such as $r`},
		{"-- a --\nS.\nlevel must\ncite S1\n\nrepeat -1\nend\n", `6: "-1" is no number up to 10000000`},
		{"-- a --\nS.\nlevel must\ncite S1\n\nwait soon\n", `6: "soon" is no duration of up to an hour`},
		{"-- a --\nS.\nlevel must\ncite S1\n\nline x\n", `6: line needs a text in quotes`},
		{"-- a --\nS.\nlevel must\ncite S1\n\nexpect frame\n", `6: a frame needs a pattern`},
		{"-- a --\nS.\nlevel must\ncite S1\n\nsession\nprompt $p nonsense\n", `7: there is no purpose nonsense`},
		{"-- a --\nS.\nlevel must\ncite S1\n\nalive\n-- a --\nS.\nlevel must\ncite S1\n\nalive\n", `8: a second rule agent/t/a`},
	} {
		_, err := loadText("rules/agent/t.txtar", tc.text)
		if want := "rules/agent/t.txtar:" + tc.want; err == nil || err.Error() != want {
			t.Errorf("%q: %v\nwant %s", tc.text, err, want)
		}
	}
	if _, err := loadText("rules/observed/agent/t.txtar", oneRule("", "alive")); err == nil || !strings.Contains(err.Error(), "an observed rule has no scenario") {
		t.Errorf("an observed rule with a scenario: %v", err)
	}
}

// FuzzLoad holds that no file of rules harms the loader, and that its errors say
// where.
func FuzzLoad(f *testing.F) {
	f.Add(oneRule("bare", "initialize $r {\"a\": 1}\nresult $r {...}\nexpect update {\"a\": ~\"x\"}\neach $x $init\nend"))
	f.Add(oneRule("", "join $x \"a\" $cwd \"\\x00\"\ntogether\nnotify x {\"a\": $x}\nend\ndeaf 2s\nmeasure $u\nspare 5\ncounted $x 3"))
	f.Add(oneRule("", "call $r x\nerror $r -1|-2\nquiet 1s\nraw \"\\xff\"\nfill $x 3 \"a\"\nis $x !$r | [..."))
	f.Fuzz(func(t *testing.T, text string) {
		for _, file := range []string{"rules/agent/t.txtar", "rules/client/t.txtar", "rules/observed/both/t.txtar"} {
			c, err := loadText(file, text)
			if err == nil {
				for _, r := range c.rules {
					if r.ID == "" || r.Text == "" || r.Level == "" || len(r.Versions) == 0 || (c.tests[r] == nil) != r.Observed {
						t.Fatalf("rule %+v", r)
					}
				}
				continue
			}
			bad, ok := errors.AsType[*ruleError](err)
			if !ok || bad.file != file || bad.line < 1 || bad.line > 2+strings.Count(text, "\n") || bad.reason == "" {
				t.Fatalf("error %#v", err)
			}
		}
	})
}
