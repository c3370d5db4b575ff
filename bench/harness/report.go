package main

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// line is a result for somebody who waits.
func (r *result) line() string {
	s := fmt.Sprintf("%-17s %-11s %3d requests %2d others %8d bytes %5.1f %% reused  %s", r.agent, r.task, r.requests, r.side, r.bytes, 100*r.mean(), r.verdict)
	if r.left > 0 {
		s += fmt.Sprintf("  %d processes left", r.left)
	}
	if r.err != nil {
		s += "  " + strings.ReplaceAll(r.err.Error(), "\n", " ")
	}
	return s
}

// mean returns the share of requests that the next ones begin with.
func (r *result) mean() float64 {
	if len(r.reuse) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range r.reuse {
		sum += v
	}
	return sum / float64(len(r.reuse))
}

// report returns the results as a document.
func report(all []result) string {
	var b strings.Builder
	b.WriteString(`# Coding agents, the same tasks

Written by ` + "`go run ./harness -write`" + `; see the documentation of the [command](harness/main.go) for how to repeat it.

Each agent gets the same tasks through ACP, version 1. A stand-in for its model, on the loopback interface, says the same to each of them, in the interface that it speaks and by the names of its own tools. What differs is what the agents decide themselves. No network, no real model: nothing here says how well an agent works with one.

`)
	fmt.Fprintf(&b, "%s, %s/%s, %d processors, %s.\n\n", time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cmp.Or(processor(), "unknown processor"))
	var names []string
	versions := map[string]string{}
	by := map[string]map[string]result{}
	for _, r := range all {
		if by[r.agent] == nil {
			names = append(names, r.agent)
			by[r.agent] = map[string]result{}
		}
		by[r.agent][r.task], versions[r.agent] = r, r.version
	}
	row := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	head := func(first string) {
		cells, rule := []string{first}, []string{"---"}
		for _, n := range names {
			cells, rule = append(cells, n), append(rule, "---")
		}
		row(cells...)
		row(rule...)
	}
	each := func(title string, of func(m map[string]result) string) {
		cells := []string{title}
		for _, n := range names {
			cells = append(cells, of(by[n]))
		}
		row(cells...)
	}
	b.WriteString("## In all\n\n")
	head("")
	each("version", func(m map[string]result) string {
		for _, r := range m {
			return r.version
		}
		return ""
	})
	each("first request, kB", func(m map[string]result) string { return kilobytes(m["fix"].first) })
	each("the same with 60 tools of an MCP server, kB", func(m map[string]result) string { return kilobytes(m["60 tools"].first) })
	each("bytes that the next request begins with, %", func(m map[string]result) string {
		sum, n := 0.0, 0
		for _, r := range m {
			for _, v := range r.reuse {
				sum += v
				n++
			}
		}
		if n == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f", 100*sum/float64(n))
	})
	each("requests beside the conversation", func(m map[string]result) string {
		n := 0
		for _, r := range m {
			n += r.side
		}
		return fmt.Sprint(n)
	})
	each("sent in all tasks, kB", func(m map[string]result) string {
		n := 0
		for _, r := range m {
			n += r.bytes
		}
		return kilobytes(n)
	})
	each("WRONG", func(m map[string]result) string {
		n := 0
		for _, r := range m {
			if strings.HasPrefix(r.verdict, "WRONG") {
				n++
			}
		}
		return fmt.Sprint(n)
	})
	each("first update of a turn, ms", func(m map[string]result) string { return milliseconds(m["fix"].update) })
	each("a cancel answered, ms", func(m map[string]result) string { return milliseconds(m["cancel"].answered) })
	each("processor time for 30 steps, s", func(m map[string]result) string {
		if m["long"].cpu == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f", m["long"].cpu.Seconds())
	})
	each("memory after 30 steps, MiB", func(m map[string]result) string {
		if m["long"].rss == 0 {
			return "–"
		}
		return fmt.Sprint(m["long"].rss >> 20)
	})
	each("processes left", func(m map[string]result) string {
		n := 0
		for _, r := range m {
			n += r.left
		}
		return fmt.Sprint(n)
	})
	b.WriteString("\n## Task by task\n\nRequests of the conversation, kilobytes sent, and what came of it.\n\n")
	head("task")
	for _, t := range tasks {
		each("**"+t.name+"**: "+t.about, func(m map[string]result) string {
			r, ok := m[t.name]
			switch {
			case !ok:
				return "–"
			case r.err != nil:
				return "failed: " + oneLine(r.err.Error())
			}
			s := fmt.Sprintf("%d, %s", r.requests, kilobytes(r.bytes))
			if r.verdict != "" {
				s += ", " + r.verdict
			}
			return s
		})
	}
	b.WriteString(`
- *right*: the file is as the model wanted it; *with other blanks*: but for its indentation. *refused*: it is as it was. *WRONG*: it is something else, or what the model has read in the result is not true.
- *Bytes that the next request begins with*: tools, instructions and messages of a request, in the order in which a model reads them, that are the beginning of the next one, too. Marks for caches do not count.
- Processor time and memory are those of all processes of the agent at the end of the task.
`)
	return b.String()
}

func kilobytes(n int) string { return fmt.Sprintf("%.1f", float64(n)/1000) }

func milliseconds(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprint(d.Milliseconds())
}

func oneLine(text string) string {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
	if len(text) > 100 {
		text = strings.ToValidUTF8(text[:100], "") + "…"
	}
	return text
}

// processor names the processor, where the system says it.
func processor() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	m := regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`).FindSubmatch(data)
	if m == nil {
		return ""
	}
	return string(m[1])
}
