package tool

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
	"github.com/goacp/acp/internal/long"
)

var outsideChanges = flag.Int("outside", 0, "how many changes TestOutside makes; 0 is 120, and 1,000 with ACP_TESTS=all")

// outside changes a text as a user or a command does. What it adds is there once.
func outside(rng *rand.Rand, text string, n int) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	lines[len(lines)-1] += "\n"
	at := rng.IntN(len(lines))
	mine := fmt.Sprintf("\tUSER(%d)\n", n)
	switch rng.IntN(9) {
	case 0:
		lines = slices.Insert(lines, at, mine)
	case 1:
		lines[at] = mine
	case 2:
		lines = slices.Delete(lines, at, at+1)
	case 3:
		lines[at] = strings.TrimSuffix(lines[at], "\n") + mine
	case 4:
		lines = append(lines, mine)
	case 5:
		l := lines[at]
		lines = slices.Insert(slices.Delete(lines, at, at+1), rng.IntN(len(lines)), l)
	case 6:
		lines = slices.Insert(lines, rng.IntN(len(lines)), lines[at])
	case 7:
		lines = []string{mine}
	case 8: // nothing
	}
	return strings.Join(lines, "")
}

// TestOutside: files change from outside between reading and editing, writing or deleting,
// also while the user is asked, and while the agent is down. What is done is what is said, and
// nothing is lost that somebody else has written.
func TestOutside(t *testing.T) {
	n := *outsideChanges
	if n == 0 {
		n = 120
		if long.All() {
			n = 1000
		}
	}
	rng := rand.New(rand.NewPCG(1000, 33))
	b, use := reading(t)
	ends := map[string]int{}
	for i := range n {
		o := &outsideCase{t: t, rng: rng, b: b, use: use, i: i, name: fmt.Sprintf("f%d.go", i)}
		ends[o.run()]++
		if t.Failed() {
			t.Fatalf("change %d", i)
		}
	}
	t.Logf("%v", ends)
	for _, end := range []string{"edit done", "edit refused", "write done", "write refused", "patch done", "patch refused", "delete done", "delete refused"} {
		if ends[end] == 0 {
			t.Errorf("%s: never", end)
		}
	}
}

type outsideCase struct {
	t    *testing.T
	rng  *rand.Rand
	b    *bench
	use  func(Tool, any) Result
	i    int
	name string
}

func (o *outsideCase) run() string {
	t, rng, b := o.t, o.rng, o.b
	var text strings.Builder
	for l := range 3 + rng.IntN(30) {
		fmt.Fprintf(&text, "%scall(%d, %d)\n", strings.Repeat("\t", rng.IntN(4)), o.i, l/2) // twins
	}
	was := text.String()
	b.write(t, o.name, was)
	b.restart(t, rng.IntN(3) == 0, func() {
		if rng.IntN(2) == 0 {
			o.use(Read, ReadInput{Path: o.name})
			return
		}
		half := uint32(strings.Count(was, "\n")/2 + 1)
		o.use(Read, ReadInput{Path: o.name, Lines: half})
		o.use(Read, ReadInput{Path: o.name, From: half + 1})
	})
	now := was
	change := func() {
		now = outside(rng, now, o.i)
		b.write(t, o.name, now)
	}
	b.meanwhile = nil
	if rng.IntN(4) == 0 {
		b.meanwhile = change
	} else {
		change()
	}
	lines := strings.SplitAfter(strings.TrimSuffix(was, "\n"), "\n")
	old := strings.TrimSuffix(lines[rng.IntN(len(lines))], "\n") + "\n"
	mine := strings.Replace(old, "call", "model", 1)
	res, what, want := Result{}, "", ""
	switch what = []string{"edit", "patch", "write", "delete"}[rng.IntN(4)]; what {
	case "edit":
		res = o.use(Edit, oneEdit(o.name, old, mine))
	case "patch":
		res = o.use(Patch, PatchInput{"*** Begin Patch\n*** Update File: " + o.name + "\n@@\n-" + old + "+" + mine + "*** End Patch"})
	case "write":
		want = strings.Replace(was, old, mine, 1)
		res = o.use(Write, WriteInput{o.name, want})
	case "delete":
		res = o.use(Patch, PatchInput{"*** Begin Patch\n*** Delete File: " + o.name + "\n*** End Patch"})
	}
	data, err := os.ReadFile(filepath.Join(b.cwd, o.name))
	gone := errors.Is(err, os.ErrNotExist)
	if err != nil && !gone {
		t.Fatal(err)
	}
	fault := func(why string) {
		t.Errorf("%s: %s\nsaid: %s\nread:\n%s\nthen:\n%s\nnow:\n%s\nold: %q", what, why, res.Said, was, now, data, old)
	}
	if res.Status != acp.ToolCallStatusCompleted {
		if gone || string(data) != now {
			fault("refused, but the file has changed")
		}
		return what + " refused"
	}
	switch what {
	case "write", "delete":
		if now != was {
			fault("the change of somebody else is lost")
		}
		if what == "write" && string(data) != want || what == "delete" && !gone {
			fault("not done")
		}
	default: // in the very line, which must be the only one
		if whole := "\n" + now; strings.Count(whole, "\n"+old) != 1 || "\n"+string(data) != strings.Replace(whole, "\n"+old, "\n"+mine, 1) {
			fault("another place")
		}
		if strings.Count("\n"+was, "\n"+old) != 1 {
			fault("it is not certain which line is meant")
		}
	}
	return what + " done"
}

// restart does something in a session that is killed afterwards if kill is set: what the model
// knows then is what was kept.
func (b *bench) restart(t *testing.T, kill bool, do func()) {
	t.Helper()
	again := new(served.Record)
	if kill {
		b.served = &served.Record{Keep: func(s served.State) {
			data, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var kept served.State
			if err := json.Unmarshal(data, &kept); err != nil {
				t.Fatal(err)
			}
			again.Restore(kept)
		}}
	}
	do()
	if kill {
		b.served = again
	}
}
