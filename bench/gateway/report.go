package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A result is what a measurement has come to.
type result struct {
	measurement
	rows []row
	err  error
}

// text writes a result for a terminal.
func (r *result) text() string {
	var t strings.Builder
	fmt.Fprintf(&t, "%s %s", r.id, r.title)
	for _, row := range r.rows {
		fmt.Fprintf(&t, "\n    %-45s %s", row.what, row.value)
		if row.target != "" {
			fmt.Fprintf(&t, "   [%s: %s]", row.target, row.verdict())
		}
		if row.note != "" {
			fmt.Fprintf(&t, "   %s", row.note)
		}
	}
	if r.err != nil {
		fmt.Fprintf(&t, "\n    FAILED: %v", r.err)
	}
	return t.String()
}

func (r row) verdict() string {
	switch {
	case r.target == "":
		return ""
	case r.met:
		return "met"
	case r.scaled.target == "":
		return "missed"
	case r.scaled.met:
		return "missed; scaled to this machine it is " + r.scaled.target + ": met"
	}
	return "missed, also if scaled to this machine: " + r.scaled.target
}

// markdown writes a result for the report.
func (r *result) markdown(t *bytes.Buffer) {
	fmt.Fprintf(t, "\n## %s: %s\n\n%s\n\n", r.id, r.title, r.what)
	if len(r.rows) > 0 {
		t.WriteString("| | | target | |\n|---|---|---|---|\n")
	}
	for _, row := range r.rows {
		verdict := row.verdict()
		if row.note != "" && verdict != "" {
			verdict += "; "
		}
		fmt.Fprintf(t, "| %s | %s | %s | %s%s |\n", cell(row.what), cell(row.value), cell(row.target), verdict, cell(row.note))
	}
	if r.err != nil {
		fmt.Fprintf(t, "\n**It failed:** %s\n", cell(r.err.Error()))
	}
}

func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ").Replace(s)
}

// write writes GATEWAY.md.
func (b *bench) write(results []result, took time.Duration) error {
	var t bytes.Buffer
	t.WriteString("# The gateway, measured\n\nWritten by `make bench-gateway`, which has the measurements. Figures are medians, with the least and the greatest round in brackets. Targets are for four cores and a fast disk; here the server shares its cores with the agents and with all clients. Where a target is missed, and something that was measured in the same run says how this machine compares, the target is also given as it is for this machine: see the first section. [An earlier commit on a machine with an Intel Xeon](gateway/faster.md) was measured, too.\n\n| | |\n|---|---|\n")
	for _, l := range [][2]string{
		{"date", time.Now().UTC().Format("2006-01-02 15:04 UTC")},
		{"commit", b.git("rev-parse", "--short", "HEAD")},
		{"took", took.Round(time.Second).String()},
		{"CPU", fmt.Sprintf("%s, %d usable", procValue("/proc/cpuinfo", "model name"), runtime.NumCPU())},
		{"system", fmt.Sprintf("%s, %s/%s", strings.TrimSpace(output("uname", "-sr")), runtime.GOOS, runtime.GOARCH)},
		{"file system of the log", strings.TrimSpace(output("stat", "-f", "-c", "%T", b.dir))},
		{"Go", runtime.Version()},
		{"Node", strings.TrimSpace(output("node", "--version"))},
		{"load before the end", b.load},
	} {
		fmt.Fprintf(&t, "| %s | %s |\n", l[0], cell(l[1]))
	}
	var load float64
	if _, err := fmt.Sscan(b.load, &load); err == nil && load > 2.5 {
		t.WriteString("\nOther work ran on the machine meanwhile: compare figures with each other only.\n")
	}
	for i := range results {
		results[i].markdown(&t)
	}
	return writeReport(b.root, &t)
}

// firstKept is what the part of the report begins with that is made of files.
const firstKept = "\n## G7: "

// rewrite writes that part of GATEWAY.md anew.
func rewrite(ctx context.Context) error {
	root, err := rootDir(ctx)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(filepath.Join(root, "bench/GATEWAY.md"))
	if err != nil {
		return err
	}
	measured, _, ok := bytes.Cut(old, []byte(firstKept))
	if !ok {
		return fmt.Errorf("GATEWAY.md has no %q", firstKept)
	}
	return writeReport(root, bytes.NewBuffer(measured))
}

// writeReport writes GATEWAY.md: what was measured, and then what is in files.
func writeReport(root string, t *bytes.Buffer) error {
	dir := filepath.Join(root, "bench/gateway")
	for _, section := range []func(string, *bytes.Buffer) error{kills, nodes, networks, page} {
		if err := section(dir, t); err != nil {
			return err
		}
	}
	notes, err := os.ReadFile(filepath.Join(dir, "notes.md"))
	if err != nil {
		return err
	}
	t.WriteString("\n")
	t.Write(notes)
	return os.WriteFile(filepath.Join(root, "bench/GATEWAY.md"), t.Bytes(), 0o644)
}

// kills writes what `make torture` has found, which takes too long to be repeated here.
func kills(dir string, t *bytes.Buffer) error {
	data, err := os.ReadFile(filepath.Join(dir, "torture.jsonl"))
	if err != nil {
		return err
	}
	t.WriteString(firstKept + "Each part is killed\n\nWith SIGKILL, at random points while the agent streams and asks, by `make torture`; the time is in the history of torture.jsonl. Four clients of both versions, over HTTP and WebSocket, load the session or resume it after a position. What each has seen on each connection is compared with the log, whose chain is verified. The agent writes down which prompts it has run and which decisions it has heard.\n\n")
	t.WriteString("| killed | times | prompts that ran | records | seen by clients, each once and in order | questions | decisions heard, each once | twice |\n|---|---|---|---|---|---|---|---|\n")
	for line := range bytes.Lines(data) {
		var k struct {
			Kind                                                string
			Kills, Prompts, Records, Seen, Asked, Told, Doubled int
		}
		if err := json.Unmarshal(line, &k); err != nil {
			return err
		}
		fmt.Fprintf(t, "| %s | %d | %d | %d | %d | %d | %d | %d |\n", k.Kind, k.Kills, k.Prompts, k.Records, k.Seen, k.Asked, k.Told, k.Doubled)
	}
	return nil
}

// networks writes what `make bench-network` has found, which needs PostgreSQL for one half.
func networks(dir string, t *bytes.Buffer) error {
	data, err := os.ReadFile(filepath.Join(dir, "network.jsonl"))
	if errors.Is(err, os.ErrNotExist) { // it was not measured
		return nil
	}
	if err != nil {
		return err
	}
	t.WriteString("\n## G23: The network is faulty\n\nBy `make bench-network`. Four clients of the library, of both versions, over HTTP and WebSocket, send prompts that have names to one session, watch it and answer what is asked, through a network on which things go wrong at random. Everything that each of them has seen is compared with the log. [Which test covers which case](../docs/remote-conformance.md) of a draft for such suites is listed.\n\n| what happens | log | how often | prompts, all to their end | records | seen by clients, each once and in order | questions | decisions heard, each once | twice |\n|---|---|---|---|---|---|---|---|---|\n")
	for line := range bytes.Lines(data) {
		var n struct {
			Kind, Engine                                                string
			Faults, Prompts, Ended, Records, Seen, Asked, Told, Doubled int
		}
		if err := json.Unmarshal(line, &n); err != nil {
			return err
		}
		prompts := strconv.Itoa(n.Prompts)
		if n.Ended != n.Prompts {
			prompts = fmt.Sprintf("%d, and %d not", n.Ended, n.Prompts-n.Ended)
		}
		fmt.Fprintf(t, "| %s | %s | %d | %s | %d | %d | %d | %d | %d |\n", cell(n.Kind), cell(n.Engine), n.Faults, prompts, n.Records, n.Seen, n.Asked, n.Told, n.Doubled)
	}
	return nil
}

// page writes what `make bench-web` has found, which needs a browser.
func page(dir string, t *bytes.Buffer) error {
	data, err := os.ReadFile(filepath.Join(dir, "web.json"))
	if errors.Is(err, os.ErrNotExist) { // it was not measured
		return nil
	}
	if err != nil {
		return err
	}
	var f struct {
		Bytes, Processors                                                    int
		CPU, Day                                                             string
		FirstRow, Open, Frames, Updates, Scroll, Paragraph, ParagraphUpdates []float64
		Chromium                                                             string
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	row := func(what, unit, target string, list []float64, met func(median float64) bool) {
		if len(list) == 0 { // it was not measured yet
			return
		}
		slices.Sort(list)
		median := list[len(list)/2]
		said := ""
		switch {
		case met == nil: // there is no target
		case met(median):
			said = "met"
		default:
			said = "missed"
		}
		fmt.Fprintf(t, "| %s | %.0f %s (%.0f–%.0f) | %s | %s |\n", what, median, unit, list[0], list[len(list)-1], target, said)
	}
	fmt.Fprintf(t, "\n## The page\n\nBy `make bench-web`, in %s without a window and without a graphics processor, on %s, on a machine with %d processors (%s) that also run the server and the agent.\n\n| | | target | |\n|---|---|---|---|\n", f.Chromium, f.Day, f.Processors, cmp.Or(f.CPU, "unknown"))
	fmt.Fprintf(t, "| transferred, compressed | %.0f kB | ≤ 200 kB | %s |\n", float64(f.Bytes)/1000, map[bool]string{true: "met", false: "missed"}[f.Bytes <= 200_000])
	row("first row of the list, from an empty cache, with 51 sessions", "ms", "≤ 300 ms", f.FirstRow, func(m float64) bool { return m <= 300 })
	row("a session of 10,000 updates opens", "ms", "≤ 500 ms", f.Open, func(m float64) bool { return m <= 500 })
	row("frames in the worst second, while a message grows by 1,000 updates a second to 125 paragraphs of 80 words", "", "≥ 30", f.Frames, func(m float64) bool { return m >= 30 })
	row("updates that came a second", "", "≥ 1,000", f.Updates, func(m float64) bool { return m >= 1000 })
	row("frames in the worst second, if all are one paragraph of 10,000 words", "", "", f.Paragraph, nil)
	row("updates that came a second then", "", "", f.ParagraphUpdates, nil)
	row("frames in the worst second, scrolling up in a session of 100,000 updates, by a third of the window in each frame", "", "smooth", f.Scroll, func(m float64) bool { return m >= 30 })
	return nil
}

func (b *bench) git(args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir = b.root
	out, _ := cmd.Output()
	return strings.TrimSpace(string(out))
}

func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return string(out)
}

// procValue returns the rest of the first line of a file that begins with a key.
func procValue(path, key string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strings.Trim(rest, " \t:\n")
		}
	}
	return "unknown"
}
