package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// MaxFound bounds the files that [Find] names.
const MaxFound = 500

// Find names files, those that were changed last first.
var Find = Tool{
	Name: "find", Kind: acp.ToolKindSearch, Reads: true,
	About: "Finds files by their names or paths, the latest change first.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"glob":{"type":"string","description":"as in search; a directory is all in it"},` +
		`"path":{"type":"string","description":"directory"},` +
		`"ignored":{"type":"boolean"}},` +
		`"required":["glob"],"additionalProperties":false}`),
	Run: runFind,
}

// FindInput is the input of [Find].
type FindInput struct {
	Glob    string `json:"glob"`
	Path    string `json:"path,omitempty"`
	Ignored bool   `json:"ignored,omitempty"`
}

// A foundFile is a file with the time of its last change.
type foundFile struct {
	path    string
	changed time.Time
}

// A finding collects the files that were changed last.
type finding struct {
	mu  sync.Mutex
	all []foundFile
	n   int // with those that are not kept
}

func (f *finding) add(path string) {
	info, err := os.Lstat(path)
	if err != nil {
		return // it is gone
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.all = append(f.all, foundFile{path, info.ModTime()}); len(f.all) >= 20*MaxFound {
		f.sort()
		f.all = f.all[:MaxFound]
	}
}

func (f *finding) sort() {
	sort.Slice(f.all, func(i, j int) bool {
		a, b := f.all[i], f.all[j]
		return cmp.Or(b.changed.Compare(a.changed), strings.Compare(a.path, b.path)) < 0
	})
}

func runFind(ctx context.Context, env Env, input json.RawMessage) (Result, error) {
	var in FindInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	if in.Glob == "" {
		return Result{}, Misusef("the pattern of names is missing: * is for all")
	}
	s, err := newScope(env, in.Path, in.Glob, in.Ignored)
	if err != nil {
		return Result{}, err
	}
	title := "Find " + in.Glob
	if in.Path != "" {
		title += " in " + s.in.shown
	}
	c, own, end := beginAlone(ctx, env, acp.ToolCall{
		Name: "find", Title: prose.OneLine(title, 200), Kind: acp.ToolKindSearch,
	})
	defer end()
	if err := s.permit(c); err != nil {
		return c.failed(err), nil
	}
	var f finding
	within, cancel := s.timed(own)
	defer cancel()
	err = s.walk(within, func(_ int, path string) { f.add(path) })
	switch {
	case own.Err() != nil:
		return c.cancelled("The search was cancelled."), nil
	case err != nil:
		none, ok := errors.AsType[*noFit](err)
		if !ok {
			return c.failed(err), nil
		}
		said := "0 files found: " + none.why + "." + s.bounds()
		c.text(said)
		return c.done(said), nil
	}
	f.sort()
	var b strings.Builder
	shown := 0
	for _, file := range f.all[:min(len(f.all), MaxFound)] {
		line := s.shown(file.path) + "\n"
		if b.Len()+len(line) > maxResult {
			break
		}
		b.WriteString(line)
		shown++
	}
	said := prose.Count(f.n, "file") + " found."
	if shown < f.n {
		said += fmt.Sprintf(" Only the %d that were changed last are shown.", shown)
	}
	said += s.bounds()
	if b.Len() > 0 {
		c.text(prose.Code("", b.String()))
	}
	c.text(said)
	c.found = b.String() + said
	return c.done(said), nil
}
