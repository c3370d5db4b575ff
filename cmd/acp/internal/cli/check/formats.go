package check

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/goacp/acp/conformance"
)

func quoteJSON(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}

// title returns the name of the program that was checked.
func (j *judgement) title() string {
	if name := strings.TrimSpace(j.Name + " " + j.Release); name != "" {
		return line(name)
	}
	return "the " + string(j.Side)
}

// caseName returns the name of a test case: the rule, the version and the transport.
func caseName(r *conformance.Result) string {
	name := r.Rule.ID
	if r.Version != 0 {
		name = fmt.Sprintf("%s@%d", r.Rule.ID, r.Version)
	}
	if r.Over != "" {
		name += " over " + r.Over
	}
	return name
}

// evidence returns a failure as text: the rule, the reason and the frames that were seen.
func evidence(r *conformance.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", line(r.Rule.Text), line(r.Why))
	for _, s := range r.Saw {
		from := "received"
		if s.Out {
			from = "sent"
		}
		fmt.Fprintf(&b, "%s %s\n", from, line(s.Data))
	}
	return b.String()
}

// junit returns the report as JUnit XML: a suite for each topic, a case for each rule and
// version. Failures of advisory rules and known failures are skipped cases, so that they do not
// fail a build.
func junit(j *judgement) ([]byte, error) {
	type message struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type testCase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Time    string   `xml:"time,attr"`
		Failure *message `xml:"failure,omitempty"`
		Error   *message `xml:"error,omitempty"`
		Skipped *message `xml:"skipped,omitempty"`
		Out     string   `xml:"system-out,omitempty"`
	}
	type suite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []*testCase `xml:"testcase"`
	}
	doc := struct {
		XMLName xml.Name `xml:"testsuites"`
		Name    string   `xml:"name,attr"`
		Suites  []*suite `xml:"testsuite"`
	}{Name: "acp check: " + j.title()}
	var last *suite
	add := func(topic string, c *testCase) {
		if last == nil || last.Name != topic {
			last = &suite{Name: topic}
			doc.Suites = append(doc.Suites, last)
		}
		last.Tests++
		switch {
		case c.Failure != nil:
			last.Failures++
		case c.Error != nil:
			last.Errors++
		case c.Skipped != nil:
			last.Skipped++
		}
		last.Cases = append(last.Cases, c)
	}
	if how := j.interruption(); how != "" {
		add("check", &testCase{Class: "check", Name: "ends", Time: "0", Error: &message{Message: how}})
	}
	if j.Broken != "" {
		add("connection", &testCase{Class: "connection", Name: "connects", Time: "0", Error: &message{Message: line(j.Broken)}})
	}
	for _, r := range j.Results {
		topic, _ := cutLast(r.Rule.ID)
		c := &testCase{
			Class: strings.ReplaceAll(topic, "/", "."), Name: caseName(r),
			Time: fmt.Sprintf("%.3f", r.Took.Seconds()), Out: line(r.First),
		}
		m := &message{Message: line(r.Why)}
		switch {
		case r.Status == conformance.Broken:
			c.Error = m
		case r.Status == conformance.Fail && j.known[r] != nil:
			m.Message = "known: " + line(j.known[r].reason)
			c.Skipped = m
		case r.Status == conformance.Fail && r.Rule.Level == conformance.Must:
			m.Text = evidence(r)
			c.Failure = m
		case r.Status == conformance.Fail:
			m.Message = string(r.Rule.Level) + ": " + m.Message
			c.Skipped = m
		case r.Status != conformance.Pass:
			c.Skipped = m
		}
		add(topic, c)
	}
	for _, x := range j.fixed {
		add("known failures", &testCase{
			Class: "known.failures", Name: x.rule, Time: "0",
			Failure: &message{Message: fmt.Sprintf("it passed, but %s:%d lists it as a known failure", line(j.name), x.line)},
		})
	}
	data, err := xml.MarshalIndent(doc, "", "  ")
	return append([]byte(xml.Header), append(data, '\n')...), err
}

// sarif returns the failures as SARIF 2.1.0, each with its rule. Known failures are suppressed.
func sarif(j *judgement) ([]byte, error) {
	type text struct {
		Text string `json:"text"`
	}
	type rule struct {
		ID               string            `json:"id"`
		ShortDescription text              `json:"shortDescription"`
		Configuration    map[string]string `json:"defaultConfiguration"`
		Properties       map[string]any    `json:"properties"`
	}
	type suppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
	type result struct {
		RuleID       string           `json:"ruleId"`
		RuleIndex    int              `json:"ruleIndex"`
		Level        string           `json:"level"`
		Message      text             `json:"message"`
		Locations    []map[string]any `json:"locations"`
		Suppressions []suppression    `json:"suppressions,omitempty"`
		Properties   map[string]any   `json:"properties"`
	}
	level := map[conformance.Level]string{conformance.Must: "error", conformance.Should: "warning", conformance.May: "note", conformance.Quirk: "note"}
	rules, results, index := []rule{}, []result{}, map[*conformance.Rule]int{}
	for _, r := range j.Results {
		if r.Status != conformance.Fail {
			continue
		}
		at, ok := index[r.Rule]
		if !ok {
			at = len(rules)
			index[r.Rule] = at
			rules = append(rules, rule{
				r.Rule.ID, text{line(r.Rule.Text)}, map[string]string{"level": level[r.Rule.Level]},
				map[string]any{"level": r.Rule.Level, "cites": r.Rule.Cites, "tags": []string{string(r.Rule.Side), string(r.Rule.Level)}},
			})
		}
		res := result{
			RuleID: r.Rule.ID, RuleIndex: at, Level: level[r.Rule.Level], Message: text{strings.TrimSpace(evidence(r))},
			Locations:  []map[string]any{{"logicalLocations": []map[string]string{{"fullyQualifiedName": j.title(), "kind": "module"}}}},
			Properties: map[string]any{"protocolVersion": r.Version},
		}
		if r.Over != "" {
			res.Properties["transport"] = r.Over
		}
		if x := j.known[r]; x != nil {
			res.Suppressions = []suppression{{"external", x.reason}}
		}
		results = append(results, res)
	}
	run := map[string]any{
		"tool":    map[string]any{"driver": map[string]any{"name": "acp check", "informationUri": "https://github.com/goacp/acp", "rules": rules}},
		"results": results,
	}
	if why := j.interruption() + line(j.Broken); why != "" {
		run["invocations"] = []map[string]any{{
			"executionSuccessful":        false,
			"toolExecutionNotifications": []map[string]any{{"level": "error", "message": text{why}}},
		}}
	}
	data, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": []any{run},
	}, "", "  ")
	return append(data, '\n'), err
}

// markdown returns the report as Markdown tables, for a README.
func markdown(j *judgement) ([]byte, error) {
	var b bytes.Buffer
	cell := func(s string) string {
		return strings.NewReplacer("|", "\\|", "<", "&lt;", "`", "'").Replace(line(s))
	}
	fmt.Fprintf(&b, "### %s\n\n", cell(j.title()))
	if j.Broken != "" {
		fmt.Fprintf(&b, "%s\n", cell(j.Broken))
		return b.Bytes(), nil
	}
	if how := j.interruption(); how != "" {
		fmt.Fprintf(&b, "The check was %s.\n\n", how)
	}
	fmt.Fprintf(&b, "| level | pass | fail | unseen | skipped |\n|---|--:|--:|--:|--:|\n")
	for _, l := range levels {
		n := func(s conformance.Status) int { return j.Count(l, s) }
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", l, n(conformance.Pass), n(conformance.Fail), n(conformance.Unseen), n(conformance.Skip))
	}
	first := true
	for _, r := range j.Results {
		if r.Status != conformance.Fail {
			continue
		}
		if first {
			fmt.Fprintf(&b, "\n| rule | version | level | what was seen |\n|---|--:|---|---|\n")
			first = false
		}
		why := cell(r.Why)
		if x := j.known[r]; x != nil {
			why += " (known: " + cell(x.reason) + ")"
		}
		version := ""
		if r.Version > 0 {
			version = fmt.Sprint(r.Version)
		}
		if r.Over != "" {
			version += " " + r.Over
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Rule.ID, version, r.Rule.Level, why)
	}
	return b.Bytes(), nil
}
