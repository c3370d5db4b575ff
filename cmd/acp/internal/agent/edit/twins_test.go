package edit

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/agent/served"
	"github.com/goacp/acp/internal/long"
)

// A way is what happens to a block after it was read: it returns the file then, and where
// the block begins in it, -1 if it is there no more or more than once.
type way struct {
	name string
	make func(rng *rand.Rand, lines []string, at, n int) (after []string, now int)
}

var ways = []way{
	{"a word", func(rng *rand.Rand, lines []string, at, n int) ([]string, int) {
		i := at + rng.IntN(n)
		words := strings.Fields(lines[i])
		if len(words) == 0 { // an empty line; the first one is none
			i, words = at, strings.Fields(lines[at])
		}
		w := words[rng.IntN(len(words))]
		return spliced(lines, i, 1, strings.Replace(lines[i], w, w+"_2", 1)), -1
	}},
	{"a line", func(rng *rand.Rand, lines []string, at, n int) ([]string, int) {
		i := at + rng.IntN(n)
		return spliced(lines, i, 1, "other := line(1)\n"), -1
	}},
	{"removed", func(_ *rand.Rand, lines []string, at, n int) ([]string, int) { return spliced(lines, at, n), -1 }},
	{"moved", func(rng *rand.Rand, lines []string, at, n int) ([]string, int) {
		block := lines[at : at+n : at+n]
		rest := spliced(lines, at, n)
		to := rng.IntN(len(rest) + 1)
		return spliced(rest, to, 0, block...), to
	}},
	{"duplicated", func(rng *rand.Rand, lines []string, at, n int) ([]string, int) {
		to := rng.IntN(len(lines) + 1)
		return spliced(lines, to, 0, lines[at:at+n:at+n]...), -1
	}},
	{"by the model", nil},
	{"not at all", func(_ *rand.Rand, lines []string, at, _ int) ([]string, int) { return lines, at }},
	{"something else", func(rng *rand.Rand, lines []string, at, n int) ([]string, int) {
		if at > 2 && rng.IntN(2) == 0 {
			return spliced(lines, rng.IntN(at), 0, "// something else\n"), at + 1
		}
		return spliced(lines, at+n, 0, "// something else\n"), at
	}},
}

// spliced replaces lines by others.
func spliced(lines []string, at, n int, by ...string) []string {
	return append(append(append([]string(nil), lines[:at]...), by...), lines[at+n:]...)
}

// A block is some lines of a file.
type block struct{ at, n int }

// twinsOf returns the blocks of one to three lines that are there again with another
// indentation: at most three of each group, for there are thousands of closing braces.
func twinsOf(lines []string) []block {
	var all []block
	for n := 1; n <= 3; n++ {
		groups := map[string][]int{}
		var keys []string
		for i := 0; i+n <= len(lines); i++ {
			var key strings.Builder
			first, body := indented(strings.TrimRight(lines[i], "\r\n"))
			if body == "" {
				continue
			}
			for _, l := range lines[i : i+n] {
				rest, ok := strings.CutPrefix(l, first)
				if !ok && strings.TrimSpace(l) != "" {
					key.Reset()
					break
				}
				key.WriteString(strings.TrimRight(rest, " \t\r\n") + "\n")
			}
			k := key.String()
			if k == "" {
				continue
			}
			if groups[k] == nil {
				keys = append(keys, k)
			}
			groups[k] = append(groups[k], i)
		}
		for _, k := range keys {
			indents := map[string]int{}
			for _, i := range groups[k] {
				indent, _ := indented(lines[i])
				if indents[indent]++; indents[indent] == 1 && len(indents) <= 3 {
					all = append(all, block{i, n})
				}
			}
			if len(indents) < 2 {
				all = all[:len(all)-len(indents)]
			}
		}
	}
	return all
}

// resumed is what a session knows after it was killed: its record is made from what was kept.
func resumed(path string, show func(*served.Record)) *served.Record {
	again := new(served.Record)
	show(&served.Record{Keep: again.Restore})
	return again
}

var twinFiles = flag.Int("twins", 0, "how many files of Go TestTwins reads; 0 is 30, and 120 with ACP_TESTS=all")

// A tally counts what came of the edits of one way.
type tally struct{ applied, refused, wrong, must, missed int }

// TestTwins: blocks that are there again with another indentation. The one that is meant
// changes after it was read, in one of six ways, or does not; then it is edited by the text
// that was read, sometimes with blanks for tabs. No edit is made in another place, and what has
// not changed, and stood once in what was shown, is edited.
func TestTwins(t *testing.T) {
	files, most := *twinFiles, math.MaxInt // and blocks of each
	switch {
	case files > 0:
	case long.All():
		files = 120
	default:
		files, most = 30, 12
	}
	texts := sources(t, files)
	if most == math.MaxInt {
		texts = append(texts, otherSources(t, files/3)...)
	}
	rng := rand.New(rand.NewPCG(7, 33))
	tallies := make([]tally, len(ways))
	blocks := 0
	for _, text := range texts {
		lines := strings.SplitAfter(text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		all := twinsOf(lines)
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, b := range all[:min(len(all), most)] {
			if b.at+b.n == len(lines) && !strings.HasSuffix(text, "\n") {
				continue
			}
			blocks++
			for i := range ways {
				twin(t, rng, ways[i], lines, b, &tallies[i])
			}
		}
	}
	var report strings.Builder
	for i, y := range tallies {
		fmt.Fprintf(&report, "%-16s %6d applied %6d refused %4d wrong; of %6d that had to be applied %d were not\n",
			ways[i].name, y.applied, y.refused, y.wrong, y.must, y.missed)
		if y.missed*100 > y.must {
			t.Errorf("%s: %d of %d were not applied", ways[i].name, y.missed, y.must)
		}
	}
	t.Logf("%d files, %d blocks\n%s", len(texts), blocks, report.String())
	if blocks < files {
		t.Errorf("only %d blocks", blocks)
	}
}

// twin edits one block that has changed in one way.
func twin(t *testing.T, rng *rand.Rand, w way, lines []string, b block, y *tally) {
	const path = "/f"
	text, old := strings.Join(lines, ""), strings.Join(lines[b.at:b.at+b.n], "")
	indent, _ := indented(lines[b.at])
	from, n := 1, len(lines) // what is shown
	if rng.IntN(3) == 0 {
		from = max(1, b.at+1-rng.IntN(20))
		n = min(len(lines), b.at+b.n+rng.IntN(20)) - from + 1
	}
	record := new(served.Record)
	show := func(r *served.Record) { r.Show(path, text, served.Range{From: from, N: n}) }
	lost := false // after a kill the text of a large file is not remembered: its first edit may be refused
	if rng.IntN(3) == 0 {
		record, lost = resumed(path, show), len(text) > 128<<10
	} else {
		show(record)
	}
	e := Edit{Old: old, New: old + indent + "edited(here)\n"}
	var after []string
	now := -1
	switch {
	case w.make != nil:
		after, now = w.make(rng, lines, b.at, b.n)
	case same(lines, lines[b.at:b.at+b.n]) > 1:
		return // it may mean the other one, now that it is the only one
	default:
		own := spliced(lines, b.at, b.n, indent+"own(change)\n")
		var before []string // so much that it is certain
		for i := max(0, b.at-3); i < b.at; i++ {
			before = append(before, lines[i])
		}
		made := Edit{Old: strings.Join(before, "") + old, New: strings.Join(before, "") + indent + "own(change)\n"}
		if rng.IntN(2) == 0 && !strings.Contains(text, "\r") { // both are in one patch
			got, _, err := ApplyHunks(path, text, []Hunk{hunkOf(made), hunkOf(e)}, record.File(path, text))
			if y.refused++; err == nil {
				y.wrong++
				t.Errorf("a patch of two: wrong:\nold:\n%q\ngot:\n%.500q", e.Old, differing(got, strings.Join(own, "")))
			}
			return
		}
		is, changes, err := Apply(text, []Edit{made}, record.File(path, text))
		if err != nil || is != strings.Join(own, "") {
			return
		}
		record.Change(path, text, is, changes[0].Made())
		after = own
	}
	drifted := false
	if plain := strings.ReplaceAll(old, "\t", "    "); plain != old && rng.IntN(4) == 0 && !strings.Contains(text, plain) {
		e.Old, e.New, drifted = plain, strings.ReplaceAll(e.New, "\t", "    "), true
	}
	changed := strings.Join(after, "")
	var got string
	var err error
	if rng.IntN(3) == 0 && !strings.Contains(old, "\r") {
		got, _, err = ApplyHunks(path, changed, []Hunk{hunkOf(e)}, record.File(path, changed))
	} else {
		got, _, err = Apply(changed, []Edit{e}, record.File(path, changed))
	}
	must := now >= 0 && !lost && w.name != "moved" && !drifted && strings.Count(text, old) == 1 && strings.Count(changed, old) == 1
	if must {
		y.must++
	}
	want := "" // nothing
	if now >= 0 {
		want = strings.Join(spliced(after, now+b.n, 0, indent+"edited(here)\n"), "")
	}
	switch {
	case err != nil:
		y.refused++
		if must {
			if y.missed++; y.missed <= 2 {
				t.Logf("%s: not applied: %v", w.name, err)
			}
		}
	case got == want:
		y.applied++
	case w.name == "duplicated" && same(after, lines[b.at:b.at+b.n]) == 1: // within itself: it is one place again
		y.applied++
	default:
		if y.wrong++; y.wrong <= 2 {
			t.Errorf("%s, drifted %t: wrong:\nold:\n%q\ngot:\n%.500q\nwant:\n%.500q", w.name, drifted, e.Old, differing(got, changed), differing(changed, got))
		}
	}
}

// hunkOf is an edit of whole lines as a hunk.
func hunkOf(e Edit) Hunk {
	cut := func(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }
	return Hunk{Old: cut(e.Old), New: cut(e.New)}
}

// same counts the places of some lines.
func same(lines, block []string) int {
	n := 0
	for i := 0; i+len(block) <= len(lines); i++ {
		if strings.Join(lines[i:i+len(block)], "") == strings.Join(block, "") {
			n++
		}
	}
	return n
}
