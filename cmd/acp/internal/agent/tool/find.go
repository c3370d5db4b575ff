package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// MaxFound bounds the files that [Find] names.
const MaxFound = 500

// Find names files, those that were changed last first.
var Find = Tool{
	Name: "find", Kind: acp.ToolKindSearch, Reads: true,
	About: "Finds files of the session by their names or paths, the latest change first.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"glob":{"type":"string","description":"names, or paths if it has a slash: *.go, cmd/**/*.go"}},` +
		`"required":["glob"],"additionalProperties":false}`),
	Run: runFind,
}

// FindInput is the input of [Find].
type FindInput struct {
	Glob string `json:"glob"`
}

// A found file.
type foundFile struct {
	shown   string
	changed time.Time
}

func runFind(ctx context.Context, env Env, input json.RawMessage) (Result, error) {
	var in FindInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	s := &search{env: env, ignore: env.Ignores(), rules: env.Restricted()}
	s.glob, s.globPath = globRegexp(in.Glob), strings.Contains(in.Glob, "/")
	if in.Glob == "" || s.glob == nil {
		return Result{}, Misusef("the pattern of names %q makes no sense", prose.OneLine(in.Glob, 60))
	}
	c, own, end := beginAlone(ctx, env, acp.ToolCall{Name: "find", Title: prose.OneLine("Find "+in.Glob, 200), Kind: acp.ToolKindSearch})
	defer end()
	s.ctx = own
	if err := c.permitSearch(); err != nil {
		return c.failed(err), nil
	}
	var all []foundFile
	s.found = func(root, rel string) {
		path := filepath.Join(root, filepath.FromSlash(rel))
		info, err := os.Lstat(path)
		if err != nil || s.leavesOut(path) {
			return
		}
		s.files++
		shown := rel
		if root != env.Cwd() {
			shown = path
		}
		all = append(all, foundFile{prose.OneLine(shown, 1000), info.ModTime()})
	}
	for _, root := range env.Roots() {
		s.walk(root, "", nil, 0)
	}
	if own.Err() != nil {
		return c.cancelled("The search was cancelled."), nil
	}
	slices.SortFunc(all, func(a, b foundFile) int {
		return cmp.Or(b.changed.Compare(a.changed), strings.Compare(a.shown, b.shown))
	})
	var b strings.Builder
	for _, f := range all[:min(len(all), MaxFound)] {
		b.WriteString(f.shown)
		b.WriteByte('\n')
	}
	said := s.foundSummary(len(all))
	if b.Len() > 0 {
		c.text(prose.Code("", b.String()))
	}
	c.text(said)
	c.found = bounded(b.String(), 0) + said
	return c.done(said), nil
}

// foundSummary says how many files were found, and which bounds were reached.
func (s *search) foundSummary(n int) string {
	said := fmt.Sprintf("%s found.", prose.Count(n, "file"))
	if n > MaxFound {
		said += fmt.Sprintf(" These are the %d that were changed last.", MaxFound)
	}
	if s.files >= maxSearched {
		said += fmt.Sprintf(" The search ended after %d files.", maxSearched)
	}
	return said + s.left.says(s.env.Hints().ReadAsks)
}
