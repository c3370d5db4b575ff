package edit

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/long"
)

// A hunkTwin is a block of a function that another function has as well.
type hunkTwin struct {
	lines    []string // of the file
	from, to int      // the function, from its first line to the one after its last
	at, n    int      // the block
	name     string   // the first line of the function
}

// twins returns blocks of one to three lines that are once in their function, and in another
// function of the file.
func hunkTwins(text string) []hunkTwin {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	type extent struct{ from, to int }
	var all []extent
	for i, l := range lines {
		if !strings.HasPrefix(l, "func ") || !strings.HasSuffix(l, "{") {
			continue
		}
		if n := slices.Index(lines[i:], "}"); n > 0 {
			all = append(all, extent{i, i + n + 1})
		}
	}
	count := func(e extent, block []string) (n int) {
		for i := e.from; i+len(block) <= e.to; i++ {
			if slices.Equal(lines[i:i+len(block)], block) {
				n++
			}
		}
		return n
	}
	var found []hunkTwin
	for _, e := range all {
		for n := 1; n <= 3; n++ {
			for at := e.from + 1; at+n < e.to; at++ {
				block := lines[at : at+n]
				if strings.TrimSpace(block[0]) == "" || count(e, block) != 1 {
					continue
				}
				if slices.ContainsFunc(all, func(o extent) bool { return o != e && count(o, block) > 0 }) {
					found = append(found, hunkTwin{lines: lines, from: e.from, to: e.to, at: at, n: n, name: lines[e.from]})
				}
			}
		}
		if len(found) > 60 {
			break
		}
	}
	return found
}

// drifted changes the block that a patch is for in one of seven ways, of which the first leaves
// it alone, and returns the file with the place of the function.
func (w *hunkTwin) drifted(way int) (lines []string, from, to int) {
	head, fn, rest := w.lines[:w.from], slices.Clone(w.lines[w.from:w.to]), w.lines[w.to:]
	at := w.at - w.from
	switch way {
	case 1: // a word
		fn[at] += " // now"
	case 2: // a line
		fn[at] = "\tother()"
	case 3: // it has gone
		fn = slices.Delete(fn, at, at+w.n)
	case 4: // the function is elsewhere
		lines = slices.Concat(head, rest, fn)
		return lines, len(head) + len(rest), len(lines)
	case 5: // it has another name
		fn[0] = strings.Replace(fn[0], "(", "Now(", 1)
	case 6: // the function has gone
		return slices.Concat(head, rest), -1, -1
	}
	return slices.Concat(head, fn, rest), len(head), len(head) + len(fn)
}

// TestHunkTwins: a hunk whose @@ line names a function changes nothing in any other one, though
// the text is there, whatever has become of the function since; and where it is as it was it
// is changed.
func TestHunkTwins(t *testing.T) {
	most := max(20, *twinFiles)
	if long.All() {
		most = max(200, most)
	}
	rng := rand.New(rand.NewPCG(33, 5))
	made, applied, due := 0, 0, 0
	for _, file := range sources(t, most) {
		all := hunkTwins(file)
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, w := range all[:min(len(all), 6)] {
			// Lines of a text within it are like the beginning of something else.
			plain := !slices.ContainsFunc(w.lines[w.from+1:w.to-1], func(l string) bool { return l != "" && columns(l) == 0 })
			for way := range 7 {
				must := plain && (way == 0 || way == 4)
				lines, from, to := w.drifted(way)
				was := strings.Join(lines, "\n") + "\n"
				old := slices.Clone(w.lines[w.at : w.at+w.n])
				now := slices.Clone(old)
				now[w.n-1] = "\tchangedHere()"
				got, _, err := ApplyHunks("f", was, []Hunk{{After: []string{w.name}, Old: old, New: now, Numbered: made%2 == 0}}, shown(was))
				made++
				if must {
					due++
				}
				if err != nil {
					if must {
						t.Logf("refused: %v\n%s\n%q", err, w.name, old)
					}
					continue
				}
				if must {
					applied++
				}
				after := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
				i := slices.Index(after, "\tchangedHere()")
				if i < from || i >= to {
					t.Fatalf("drift %d: line %d was changed, and not %s, in lines %d-%d: %q", way, i+1, w.name, from+1, to, old)
				}
			}
		}
	}
	t.Logf("%d hunks, %d of %d that must be are applied", made, applied, due)
	if made < 100 || applied*100 < due*99 {
		t.Errorf("%d of %d hunks are applied", applied, due)
	}
}
