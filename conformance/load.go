package conformance

import (
	_ "embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goacp/acp/internal/packed"
)

// packedRules has the files of the folder rules, which are four times as large.
//
//go:embed rules.packed
var packedRules string

// catalog is all rules with their scenarios.
type catalog struct {
	rules []*Rule // ordered by id
	byID  map[string]*Rule
	tests map[*Rule]*test
}

// A test tries a rule.
type test struct {
	place     place
	scenarios map[int]*scenario // by version of the protocol
}

// A place says on what connection a scenario is played.
type place byte

const (
	onShared place = iota // an initialized one that other scenarios use, too
	onTurn                // for clients: a turn of its own on a shared one
	onFresh               // an initialized one of its own
	onBare                // one of its own on which nothing was said
)

// builtin loads the embedded rules. They are tested, so that nothing is wrong
// with them.
var builtin = sync.OnceValue(func() *catalog {
	texts, err := unpackRules()
	var c *catalog
	if err == nil {
		c, err = loadRules(texts)
	}
	if err != nil {
		panic("conformance: " + err.Error())
	}
	return c
})

// Rules returns all rules, ordered by id.
func Rules() []*Rule { return slices.Clone(builtin().rules) }

// unpackRules returns the files of the folder rules, by their names.
func unpackRules() (texts map[string]string, err error) {
	files, err := packed.Open(packedRules)
	if err != nil {
		return nil, err
	}
	texts = make(map[string]string)
	for _, name := range files.Names() {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		texts[name] = string(text)
	}
	return texts, nil
}

// loadRules reads the rules of files SIDE/TOPIC.txtar, which have scenarios, and
// observed/SIDE/TOPIC.txtar, which are observed ones.
func loadRules(texts map[string]string) (*catalog, error) {
	c := &catalog{byID: map[string]*Rule{}, tests: map[*Rule]*test{}}
	for _, p := range slices.Sorted(maps.Keys(texts)) {
		sides, observed := sidesOf(p)
		for _, m := range splitArchive(texts[p]) {
			for _, side := range sides {
				id := string(side) + "/" + strings.TrimSuffix(path.Base(p), ".txtar") + "/" + m.name
				rule, t, err := parseRule(&Rule{ID: id, Side: side, Observed: observed}, m)
				if err == nil && c.byID[id] != nil {
					err = &ruleError{line: m.line, reason: "a second rule " + id}
				}
				if err != nil {
					if bad, ok := err.(*ruleError); ok {
						bad.file = p
					}
					return nil, err
				}
				c.byID[id] = rule
				c.rules = append(c.rules, rule)
				if t != nil {
					c.tests[rule] = t
				}
			}
		}
	}
	slices.SortFunc(c.rules, func(a, b *Rule) int { return strings.Compare(a.ID, b.ID) })
	return c, nil
}

// A member is a file of an archive in the txtar format.
type member struct {
	name string
	text string
	line int // of its first line, from 1
}

// splitArchive returns the members of an archive. What is before the first one
// is a comment.
func splitArchive(text string) (all []member) {
	for i, line := range strings.Split(text, "\n") {
		name, ok := strings.CutPrefix(strings.TrimRight(line, "\r"), "-- ")
		if ok {
			name, ok = strings.CutSuffix(name, " --")
		}
		switch {
		case ok:
			all = append(all, member{name: strings.TrimSpace(name), line: i + 2})
		case len(all) > 0:
			all[len(all)-1].text += strings.TrimRight(line, "\r") + "\n"
		}
	}
	return all
}

var (
	idShape   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(agent|client|server)/[a-z0-9-]+/[a-z0-9-]+$`) })
	citeShape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^S([0-9]{1,3})$|^RFC[0-9]+$|^RFD$`) })
	needShape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`) })
)

// lastStatement is the number of the last statement that rules may cite.
const lastStatement = 115

// sidesOf returns which sides must keep the rules of a file: its directory says so, and
// rules in both are rules of either side.
func sidesOf(file string) (sides []Side, observed bool) {
	dir := path.Dir(file)
	observed = path.Base(path.Dir(dir)) == "observed"
	if path.Base(dir) == "both" {
		return []Side{Agent, Client}, observed
	}
	return []Side{Side(path.Base(dir))}, observed
}

// parseRule reads a member of an archive into r, which has an id.
func parseRule(r *Rule, m member) (*Rule, *test, error) {
	r.Versions = []int{1, 2}
	bad := func(line int, format string, args ...any) (*Rule, *test, error) {
		return nil, nil, &ruleError{line: line, reason: fmt.Sprintf(format, args...)}
	}
	if !idShape().MatchString(r.ID) {
		return bad(m.line-1, "%q is no id of a rule", r.ID)
	}

	lines := strings.Split(m.text, "\n")
	i := 0
	for ; i < len(lines) && !strings.HasPrefix(lines[i], "level "); i++ {
		if strings.TrimSpace(lines[i]) == "" {
			return bad(m.line+i, "a rule begins with a sentence and its level")
		}
		r.Text = strings.TrimSpace(r.Text + " " + strings.TrimSpace(lines[i]))
	}
	if !strings.HasSuffix(r.Text, ".") {
		return bad(m.line, "the text of a rule is a sentence, with a full stop")
	}
	t := &test{scenarios: map[int]*scenario{}}
	for ; i < len(lines) && strings.TrimSpace(lines[i]) != ""; i++ {
		if err := r.metadata(t, strings.Fields(lines[i])); err != nil {
			return bad(m.line+i, "%v", err)
		}
	}
	if r.Level == "" || len(r.Cites) == 0 {
		return bad(m.line, "%s needs a level and a cite", r.ID)
	}
	rest := strings.Join(lines[min(i, len(lines)):], "\n")
	if r.Observed {
		if strings.TrimSpace(rest) != "" {
			return bad(m.line+i, "an observed rule has no scenario")
		}
		return r, nil, nil
	}
	r.Scenario = strings.Trim(rest, "\n")
	for _, version := range r.Versions {
		s, err := parseScenario(r.Side, section(rest, version), m.line+i)
		if err != nil {
			return nil, nil, err
		}
		if t.place == onShared && r.Side == Client && s.stops() {
			t.place = onTurn
		}
		t.scenarios[version] = s
	}
	return r, t, nil
}

// stops reports whether the scenario ends the turn it is played in.
func (s *scenario) stops() bool {
	return slices.ContainsFunc(s.steps, func(s *step) bool { return s.verb == "stop" })
}

// section returns a text in which the lines of other versions are blank.
func section(text string, version int) string {
	lines := strings.Split(text, "\n")
	mine := true
	for i, line := range lines {
		switch strings.TrimSpace(line) {
		case "v1:":
			mine, lines[i] = version == 1, ""
		case "v2:":
			mine, lines[i] = version == 2, ""
		case "both:":
			mine, lines[i] = true, ""
		}
		if !mine {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

func (r *Rule) metadata(t *test, words []string) error {
	key, rest := words[0], words[1:]
	switch key {
	case "level":
		if len(rest) != 1 || !slices.Contains([]Level{Must, Should, May, Quirk}, Level(rest[0])) {
			return fmt.Errorf("the level is must, should, may or quirk")
		}
		r.Level = Level(rest[0])
	case "cite":
		for _, c := range rest {
			m := citeShape().FindStringSubmatch(c)
			if m == nil {
				return fmt.Errorf("%q is no statement such as S20", c)
			}
			if m[1] == "" && r.Side == Server {
				continue // what the statements do not have
			}
			if n, _ := strconv.Atoi(m[1]); n < 1 || n > lastStatement {
				return fmt.Errorf("there is no statement %s", c)
			}
		}
		r.Cites = append(r.Cites, rest...)
	case "versions":
		r.Versions = nil
		for _, v := range rest {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || n > 2 || slices.Contains(r.Versions, n) {
				return fmt.Errorf("%q is no version", v)
			}
			r.Versions = append(r.Versions, n)
		}
		if len(rest) == 0 {
			return fmt.Errorf("versions needs 1, 2 or both")
		}
	case "needs", "lacks":
		of := strings.Join(rest, " ")
		p := strings.TrimPrefix(strings.TrimPrefix(of, "v1 "), "v2 ")
		if !needShape().MatchString(p) {
			return fmt.Errorf("%s needs the path of a capability", key)
		}
		if key == "needs" {
			r.Needs = append(r.Needs, of)
		} else {
			r.Lacks = append(r.Lacks, of)
		}
	case "except":
		for _, over := range rest {
			if over != OverHTTP && over != OverWebSocket {
				return fmt.Errorf("%q is no transport", over)
			}
		}
		r.Except = append(r.Except, rest...)
	case "experimental":
		r.Experimental = true
	case "fresh":
		t.place = onFresh
	case "bare":
		t.place = onBare
	case "turn":
		t.place = onTurn
	default:
		return fmt.Errorf("there is no %s", key)
	}
	return nil
}
