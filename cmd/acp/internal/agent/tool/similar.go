package tool

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// Bounds of the search for what was meant.
const (
	maxLooked  = 2000 // names, those of directories too
	maxSimilar = 3    // that are said
)

// missing says that there is no such file, and which ones may be meant.
func missing(env Env, p place) error {
	similar := similarTo(env, p)
	if len(similar) == 0 {
		return fmt.Errorf("%s: there is no such file", prose.Inline(p.shown))
	}
	return fmt.Errorf("%s: there is no such file; perhaps you mean %s", prose.Inline(p.shown), strings.Join(similar, ", "))
}

// similarTo returns the names of files that are like that of one which does not exist: in its
// directory, or with its name elsewhere in the session. What rules restrict is not said.
func similarTo(env Env, p place) []string {
	if !p.inside {
		return nil
	}
	type candidate struct {
		shown string
		score int
	}
	var all []candidate
	dir, base := filepath.Dir(p.path), strings.ToLower(filepath.Base(p.path))
	see := func(path string) {
		name := strings.ToLower(filepath.Base(path))
		score, near := likeness(name, base), filepath.Dir(path) == dir
		if !near && name != base || score < 60 {
			return
		}
		if real, err := realPath(path); err != nil || Restricts(env.Judge(Using(acp.ToolKindRead, path, real))) {
			return
		}
		if near {
			score += 50
		}
		shown := path
		if rel, err := filepath.Rel(env.Cwd(), path); err == nil && filepath.IsLocal(rel) {
			shown = rel
		}
		all = append(all, candidate{prose.Inline(shown), score})
	}
	looked := 0
	for i, root := range append([]string{dir}, env.Roots()...) {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if looked == maxLooked {
				return fs.SkipAll
			}
			looked++
			switch {
			case err != nil:
				return nil // what cannot be read is not said
			case d.IsDir() && path != root && (i == 0 || d.Name()[0] == '.' || d.Name() == "node_modules"):
				return fs.SkipDir
			case d.Type().IsRegular():
				see(path)
			}
			return nil
		})
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.shown, b.shown)) < 0
	})
	var names []string
	for _, c := range all {
		if len(names) < maxSimilar && !slices.Contains(names, c.shown) {
			names = append(names, c.shown)
		}
	}
	return names
}

// likeness says how much two names have in common, up to 100: how few characters have to be
// put in, left out or changed.
func likeness(a, b string) int {
	if max(len(a), len(b)) > 255 || a == "" || b == "" {
		return 0
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left, diagonal := i+1, i
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			left, diagonal = min(left+1, row[j+1]+1, diagonal+cost), row[j+1]
			row[j+1] = left
		}
		row[0] = i + 1
	}
	return 100 - 100*row[len(b)]/max(len(a), len(b))
}
