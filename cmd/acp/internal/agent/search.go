package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
)

// Bounds of a search. At each of them it says so.
const (
	maxMatches    = 500
	maxSearched   = 100_000 // files
	maxSearchFile = 4 << 20 // bytes; larger files are left out
	maxDepth      = 100     // directories below each other
	maxLocations  = 100
	maxShownLine  = 300 // characters
)

func runSearch(k *task) error {
	args, err := words(k.rest, 2)
	if err != nil {
		return misusef("%v (put a pattern with spaces in quotes)", err)
	}
	if len(args) == 0 || args[0] == "" {
		return misusef("what to search for is missing")
	}
	re, err := regexp.Compile(args[0])
	if err != nil {
		return misusef("%v", strings.TrimPrefix(err.Error(), "error "))
	}
	_, ignore := k.s.currentMode()
	s := &search{ctx: k.ctx, re: re, ignore: ignore, cwd: k.turn.Session().Cwd()}
	title := "Search for " + args[0]
	if len(args) == 2 {
		s.glob, s.globPath = globRegexp(args[1]), strings.Contains(args[1], "/")
		if s.glob == nil {
			return misusef("the pattern of names %q makes no sense", oneLine(args[1], 60))
		}
		title += " in " + args[1]
	}
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	s.ctx = ctx
	c := k.call(acp.ToolCall{Name: "search", Title: oneLine(title, 200), Kind: acp.ToolKindSearch, Cancel: cancel})
	if err := c.permitSearch(); err != nil {
		return k.failed(c, err)
	}
	if k.s.restricted() {
		s.judge = k.s.judge
	}
	for _, root := range k.s.roots() {
		s.walk(root, "", nil, 0)
	}
	if ctx.Err() != nil {
		c.status(acp.ToolCallStatusCancelled)
		if k.ctx.Err() == nil {
			k.say("The search was cancelled.")
		}
		return nil
	}
	if s.matches > 0 {
		c.locations(s.locations)
		c.text(code("", s.out.String()))
	}
	said := s.summary()
	c.text(said)
	c.complete()
	k.say(said)
	return nil
}

// A search goes through the files of directories.
type search struct {
	ctx      context.Context
	re       *regexp.Regexp
	glob     *regexp.Regexp // of the names, or nil
	globPath bool           // it is about paths
	ignore   bool
	cwd      string
	judge    func(acphost.Request) acphost.Verdict // nil without rules

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
	return s.matches >= maxMatches || s.files >= maxSearched || s.ctx.Err() != nil
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
	if info.Size() > maxSearchFile {
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
	if root != s.cwd {
		shown = path
	}
	n, found := uint32(0), false
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
		fmt.Fprintf(&s.out, "%s:%d: %s\n", oneLine(shown, 1000), n, shortened(line))
		if len(s.locations) < maxLocations {
			s.locations = append(s.locations, acp.ToolCallLocation{Path: path, Line: new(n)})
		}
		if s.matches >= maxMatches {
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

func (s *search) summary() string {
	var b strings.Builder
	switch {
	case s.matches == 0:
		fmt.Fprintf(&b, "Nothing found in %s.", count(s.files, "file"))
	default:
		fmt.Fprintf(&b, "%s in %s.", count(s.matches, "matching line"), count(s.hits, "file"))
	}
	if s.matches >= maxMatches {
		b.WriteString(" There may be more: that is as many as are shown.")
	}
	if s.files >= maxSearched {
		fmt.Fprintf(&b, " The search ended after %d files.", maxSearched)
	}
	if s.large > 0 {
		fmt.Fprintf(&b, " %s larger than %s left out.", count(s.large, "file"), size(maxSearchFile))
	}
	b.WriteString(s.left.String())
	if s.deep {
		fmt.Fprintf(&b, " Directories more than %d deep were left out.", maxDepth)
	}
	return b.String()
}

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
