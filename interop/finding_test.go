package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// findingsDir has a file for each peer that is checked: what acp check finds in it,
// why, and a conversation that shows it. See its README.
const findingsDir = "compatibility"

// A finding is something that is wrong with a peer: one cause, and the rules that
// fail for it.
type finding struct {
	title string
	whose string // defect it is
	rules []string
	maybe []bool // the rule is sometimes kept, by the order of rules
	text  string
	talk  []line // what shows it, maybe none
	at    string // its file and line
}

// A line of a conversation.
type line struct {
	kind lineKind
	text string
	at   int // its index in the file
}

type lineKind string

const (
	toAgent  lineKind = "->"
	toClient lineKind = "<-"
	note     lineKind = "--" // something else that happens
)

// findings reads the file of a peer. A peer without one has no findings.
func findings(peer string) (all []*finding, err error) {
	file := filepath.Join(findingsDir, strings.NewReplacer("/", "-", " ", "-").Replace(peer)+".txt")
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	var f *finding
	for i, l := range strings.Split(string(data), "\n") {
		bad := func(what string) error { return fmt.Errorf("%s:%d: %s: %q", file, i+1, what, l) }
		word, rest, _ := strings.Cut(l, " ")
		switch {
		case l == "" || l[0] == '#' && word != "##":
		case word == "##":
			f = &finding{title: rest, at: fmt.Sprintf("%s:%d", file, i+1)}
			all = append(all, f)
		case f == nil:
			return nil, bad("it belongs to no finding")
		case word == "whose:":
			f.whose = rest
		case word == "rules:":
			for _, r := range strings.Fields(rest) {
				name, maybe := strings.CutPrefix(r, "?")
				f.rules, f.maybe = append(f.rules, name), append(f.maybe, maybe)
			}
		case slices.Contains([]lineKind{toAgent, toClient, note}, lineKind(word)):
			f.talk = append(f.talk, line{lineKind(word), rest, i})
		case len(f.talk) > 0:
			return nil, bad("it is behind the conversation")
		default:
			f.text = strings.TrimSpace(f.text + "\n" + l)
		}
	}
	for _, f := range all {
		if f.whose == "" || len(f.rules) == 0 || f.text == "" {
			return nil, fmt.Errorf("%s: it does not say whose it is, about which rules, and why", f.at)
		}
	}
	return all, err
}

// mustFind is findings that there are.
func mustFind(t *testing.T, peer string) []*finding {
	t.Helper()
	all, err := findings(peer)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// about returns the finding that is about a rule, and whether that is sometimes
// kept; nil if none is.
func about(all []*finding, rule string) (f *finding, maybe bool) {
	for _, f := range all {
		if i := slices.Index(f.rules, rule); i >= 0 {
			return f, f.maybe[i]
		}
	}
	return nil, false
}
