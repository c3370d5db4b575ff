package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// nameLine is the line of a section that says which workload it is about.
var nameLine = regexp.MustCompile("(?m)^`([^`]+)`, \\d+ rounds$")

// merge returns an old report with the results of this run in place of those of the same
// workloads. The table at the top remains that of the run that wrote everything; a row
// says what was measured again.
func (r report) merge(old string) string {
	old = strings.TrimSuffix(old, ofProgram(old))
	parts := strings.Split(old, "\n## ")
	kept, rows := map[string]string{}, map[string]string{}
	var targetsHead string
	for _, part := range parts[1:] {
		if m := nameLine.FindStringSubmatch(part); m != nil {
			kept[m[1]] = "\n## " + part
			continue
		}
		for line := range strings.Lines(part) {
			if text, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && text != "target" {
				rows[text] = line
			} else if !ok || text == "target" {
				targetsHead += line
			}
		}
	}
	m := thisMachine()
	again := fmt.Sprintf("| measured again | %s, `%s`, up to %d rounds, load %s |\n",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), strings.ReplaceAll(m.command, "|", `\|`), r.rounds, firstLine("/proc/loadavg", ""))
	head, rest, ok := strings.Cut(parts[0], "\n\nEach cell")
	if ok {
		parts[0] = head + "\n" + again + "\nEach cell" + rest
	}
	for _, v := range r.verdicts {
		if v.known || rows[v.text] == "" {
			rows[v.text] = v.row()
		}
	}
	for _, o := range r.results {
		kept[o.name] = markdown(o)
	}
	var b strings.Builder
	b.WriteString(parts[0] + "\n## " + targetsHead)
	for _, t := range targets {
		b.WriteString(rows[t.text])
	}
	for _, w := range workloads() {
		b.WriteString(kept[w.name])
	}
	return b.String()
}
