package host

import (
	"path/filepath"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
)

// maxGranted bounds what is remembered of what was allowed in a turn; beyond it the user is asked
// again.
const maxGranted = 1024

// granted is what was allowed in the turns that run and is not done yet: agents ask and then have it
// done by us. “Once” is for one time, and for what was asked about to the letter: for anything else
// it is as if nothing had been asked. The zero value has nothing.
type granted struct {
	left map[string]int // how often, below 0 for as long as the turns run
}

func (g *granted) clear() { g.left = nil }

// grant notes that something may be done, once or always.
func (g *granted) grant(what string, always bool) {
	n, has := g.left[what]
	switch {
	case !has && len(g.left) >= maxGranted:
		return
	case always || n < 0:
		n = -1
	default:
		n++
	}
	if g.left == nil {
		g.left = map[string]int{}
	}
	g.left[what] = n
}

// take reports whether something may be done, and takes one time away.
func (g *granted) take(what string) bool {
	n := g.left[what]
	switch {
	case n == 1:
		delete(g.left, what)
	case n > 1:
		g.left[what] = n - 1
	}
	return n != 0
}

func writing(path string) string { return "write\x00" + filepath.Clean(path) }

func running(command, cwd string) string { return "run\x00" + filepath.Clean(cwd) + "\x00" + command }

// grants returns what a request that was allowed lets the agent have done by us. What a tool of
// another kind says it would run was not what was allowed.
func grants(r acphost.Request) (list []string) {
	switch acp.ToolKind(r.Kind) {
	case acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove:
		for _, p := range r.Paths {
			if filepath.IsAbs(p) {
				list = append(list, writing(p))
			}
		}
	case acp.ToolKindExecute, acp.ToolKindOther, "":
		if command, _ := r.Shows(); command != "" {
			list = append(list, running(command, r.Cwd))
		}
	}
	return list
}
