package conformance

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unseenStatements are the statements of docs/behaviour.md that no rule is about, and
// why: nothing of them shows in the frames of one connection.
var unseenStatements = []struct{ from, to, why string }{
	{"S18", "S18", "it is about the inside of an SDK; that updates come ahead of answers is S17"},
	{"S19", "S19", "which handler of an SDK gets a request shows in the answer only if there is none, which is S20"},
	{"S39", "S39", "what an SDK does with a request that is not waited for any more is its own affair; how it tells of that is S36 to S38"},
	{"S45", "S45", "the calls of a peer whose connection has ended fail within it"},
	{"S47", "S47", "a handler that fails before it has sent anything cannot be told from one that closes the connection"},
	{"S63", "S63", "what a router passes on inside is not on the connection; what the agent makes of it is seen by the rules about initialize"},
	{"S100", "S100", "it is about clients of HTTP, which no rule is about yet"},
}

// TestStatements holds that every statement has a rule, or a reason why not.
func TestStatements(t *testing.T) {
	cited := map[string][]string{}
	for _, r := range Rules() {
		for _, s := range r.Cites {
			cited[s] = append(cited[s], r.ID)
		}
	}
	excused := map[string]string{}
	for _, u := range unseenStatements {
		from, _ := strconv.Atoi(u.from[1:])
		to, _ := strconv.Atoi(u.to[1:])
		if from < 1 || to < from || to > lastStatement || u.why == "" {
			t.Fatalf("%s to %s are no statements, or there is no reason", u.from, u.to)
		}
		for n := from; n <= to; n++ {
			excused["S"+strconv.Itoa(n)] = u.why
		}
	}
	for n := range lastStatement {
		s := "S" + strconv.Itoa(n+1)
		switch rules := cited[s]; {
		case len(rules) == 0 && excused[s] == "":
			t.Errorf("no rule is about %s, and nothing says why", s)
		case len(rules) > 0 && excused[s] != "":
			slices.Sort(rules)
			t.Errorf("%s is said to be unseen, and %v are about it", s, rules)
		}
	}
}

// TestTried holds that the table of what is tried in docs/check.md names rules that
// there are, and in each cell one that binds.
func TestTried(t *testing.T) {
	text, err := os.ReadFile("../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## What it tries\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.Contains(line, "`") {
			continue
		}
		rows++
		for i, side := range []Side{Agent, Client} {
			binds := false
			for n, name := range strings.Split(cells[i+1], "`") {
				if n%2 == 0 {
					continue
				}
				found := false
				for _, r := range Rules() {
					if r.Side == side && Names(name, r.ID) {
						found, binds = true, binds || r.Level == Must || r.Level == Should
					}
				}
				if !found {
					t.Errorf("%s: there is no rule %s for %ss", cells[0], name, side)
				}
			}
			if !binds {
				t.Errorf("%s: no rule for %ss binds", cells[0], side)
			}
		}
	}
	if rows < 10 {
		t.Errorf("%d rows", rows)
	}
}
