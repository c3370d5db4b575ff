package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
)

// Bounds of a search. At each of them it says so.
const (
	MaxMatches    = 500
	maxSearched   = 100_000 // files
	MaxSearchFile = 4 << 20 // bytes; larger files are left out
	maxDepth      = 100     // directories below each other
	maxLocations  = 100
	maxShownLine  = 300 // characters
)

// Search finds lines in the files of the session's directories.
var Search = Tool{
	Name: "search", Kind: acp.ToolKindSearch, Reads: true,
	About: "Searches the files of the session with a regular expression, line by line.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"pattern":{"type":"string","description":"a regular expression of Go (RE2)"},` +
		`"glob":{"type":"string","description":"only files with such names, or such paths if it has a slash: *.go, cmd/**/*.go"}},` +
		`"required":["pattern"],"additionalProperties":false}`),
	Run: runSearch,
}

// SearchInput is the input of [Search].
type SearchInput struct {
	Pattern string `json:"pattern"`
	Glob    string `json:"glob,omitempty"`
}

func runSearch(ctx context.Context, env Env, input json.RawMessage) (Result, error) {
	var in SearchInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	if in.Pattern == "" {
		return Result{}, Misusef("what to search for is missing")
	}
	re, err := regexp.Compile(in.Pattern)
	if err != nil {
		return Result{}, Misusef("%v", strings.TrimPrefix(err.Error(), "error "))
	}
	s := &search{env: env, re: re, ignore: env.Ignores(), rules: env.Restricted()}
	title := "Search for " + in.Pattern
	if in.Glob != "" {
		s.glob, s.globPath = globRegexp(in.Glob), strings.Contains(in.Glob, "/")
		if s.glob == nil {
			return Result{}, Misusef("the pattern of names %q makes no sense", prose.OneLine(in.Glob, 60))
		}
		title += " in " + in.Glob
	}
	c, own, end := beginAlone(ctx, env, acp.ToolCall{Name: "search", Title: prose.OneLine(title, 200), Kind: acp.ToolKindSearch})
	defer end()
	s.ctx = own
	if err := c.permitSearch(); err != nil {
		return c.failed(err), nil
	}
	for _, root := range env.Roots() {
		s.walk(root, "", nil, 0)
	}
	if own.Err() != nil {
		return c.cancelled("The search was cancelled."), nil
	}
	if s.matches > 0 {
		c.locations(s.locations)
		c.text(prose.Code("", s.out.String()))
	}
	said := s.summary()
	c.text(said)
	c.found = bounded(s.out.String(), 0) + said
	return c.done(said), nil
}

// A search goes through the files of directories.
type search struct {
	env      Env
	ctx      context.Context
	re       *regexp.Regexp
	glob     *regexp.Regexp // of the names, or nil
	globPath bool           // it is about paths
	ignore   bool
	rules    bool                   // there are some that files may be left out for
	found    func(root, rel string) // in place of looking into a file; nil for searches

	files     int // looked at
	hits      int // files with matches
	matches   int
	large     int // files left out
	left      left
	deep      bool
	out       strings.Builder
	locations []acp.ToolCallLocation
}

// full reports whether to look no further.
func (s *search) full() bool {
	return s.matches >= MaxMatches || s.files >= maxSearched || s.ctx.Err() != nil
}

// An ignoreDir is a directory above, with its rules.
type ignoreDir struct {
	rel   string // from the root on, "" or with a slash at the end
	rules ignoring
}

// ignored asks the rules of the directories above, the nearest first.
func ignored(above []ignoreDir, rel string, dir bool) bool {
	for i := len(above) - 1; i >= 0; i-- {
		if ignored, decided := above[i].rules.match(strings.TrimPrefix(rel, above[i].rel), dir); decided {
			return ignored
		}
	}
	return false
}

// walk searches a directory. Links are not followed; .git is left out.
func (s *search) walk(root, rel string, above []ignoreDir, depth int) {
	if depth > maxDepth {
		s.deep = true
		return
	}
	dir := filepath.Join(root, filepath.FromSlash(rel))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // what cannot be read is not searched
	}
	if s.ignore {
		if rules := readIgnore(dir); len(rules) > 0 {
			above = append(above[:len(above):len(above)], ignoreDir{rel, rules})
		}
	}
	for _, e := range entries {
		if s.full() {
			return
		}
		name := rel + e.Name()
		switch {
		case e.Name() == ".git" || s.ignore && ignored(above, name, e.IsDir()):
		case e.IsDir():
			s.walk(root, name+"/", above, depth+1)
		case !e.Type().IsRegular():
		case s.glob != nil && !s.glob.MatchString(map[bool]string{true: name, false: e.Name()}[s.globPath]):
		case s.found != nil:
			s.found(root, name)
		default:
			s.file(root, name)
		}
	}
}

// file searches a file.
func (s *search) file(root, rel string) {
	path := filepath.Join(root, filepath.FromSlash(rel))
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if s.leavesOut(path) {
		return
	}
	s.files++
	if info.Size() > MaxSearchFile {
		s.large++
		return
	}
	data, err := os.ReadFile(path)
	if err != nil || binary(string(data[:min(len(data), 8000)])) {
		return
	}
	if !s.re.Match(data) && !strings.ContainsAny(s.re.String(), "^$\\") {
		return // quicker than line by line
	}
	shown := rel
	if root != s.env.Cwd() {
		shown = path
	}
	n, found := uint32(0), false
	var lines []served.Range // that are shown as they are
	defer func() {
		if s.env.Files() != nil || len(lines) == 0 {
			return // what counts may be what the editor shows
		}
		if real, err := realPath(path); err == nil {
			s.env.Served().Glimpse(real, string(data), lines...)
		}
	}()
	for line := range strings.Lines(string(data)) {
		n++
		if n%1000 == 0 && s.ctx.Err() != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		if !s.re.MatchString(line) {
			continue
		}
		if s.matches++; !found {
			found = true
			s.hits++
		}
		said := shortened(line)
		fmt.Fprintf(&s.out, "%s:%d: %s\n", prose.OneLine(shown, 1000), n, said)
		if said == line && s.out.Len() < MaxText {
			lines = append(lines, served.Range{From: int(n), N: 1})
		}
		if len(s.locations) < maxLocations {
			s.locations = append(s.locations, acp.ToolCallLocation{Path: path, Line: new(n)})
		}
		if s.matches >= MaxMatches {
			return
		}
	}
}

// shortened is a line as it is shown.
func shortened(line string) string {
	line = strings.ToValidUTF8(line, "\uFFFD")
	if utf8.RuneCountInString(line) <= maxShownLine {
		return line
	}
	return string([]rune(line)[:maxShownLine]) + "…"
}

// summary says what was found, and which bounds were reached.
func (s *search) summary() string {
	var b strings.Builder
	switch {
	case s.matches == 0:
		fmt.Fprintf(&b, "Nothing found in %s.", prose.Count(s.files, "file"))
	default:
		fmt.Fprintf(&b, "%s in %s.", prose.Count(s.matches, "matching line"), prose.Count(s.hits, "file"))
	}
	if s.matches >= MaxMatches {
		b.WriteString(" There may be more: that is as many as are shown.")
	}
	if s.files >= maxSearched {
		fmt.Fprintf(&b, " The search ended after %d files.", maxSearched)
	}
	if s.large > 0 {
		fmt.Fprintf(&b, " %s larger than %s left out.", prose.Count(s.large, "file"), prose.Size(MaxSearchFile))
	}
	b.WriteString(s.left.says(s.env.Hints().ReadAsks))
	if s.deep {
		fmt.Fprintf(&b, " Directories more than %d deep were left out.", maxDepth)
	}
	return b.String()
}
