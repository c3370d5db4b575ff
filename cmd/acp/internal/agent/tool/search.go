package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/seek"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
)

// Bounds of what a search shows. At each of them it says so.
const (
	MaxMatches    = 200 // lines
	MaxSearchFile = seek.MaxFile
	maxCounted    = 100_000 // lines: a search that has found more ends
	maxContext    = 20      // lines before and after a match
	maxResult     = 20 << 10
	maxLocations  = 100
	maxShownLine  = 300 // characters
)

// What a search shows.
const (
	showLines = "lines"
	showFiles = "files"
	showCount = "count"
)

// Search finds lines in the files of the session's directories.
var Search = Tool{
	Name: "search", Kind: acp.ToolKindSearch, Reads: true,
	About: "Searches files with a regular expression, line by line; those that .gitignore names only with ignored.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"pattern":{"type":"string","description":"RE2"},` +
		`"path":{"type":"string","description":"directory or file"},` +
		`"glob":{"type":"string","description":"of names, or of paths if it has a slash: *.{ts,tsx}, cmd/**/*.go, !*_test.go"},` +
		`"show":{"type":"string","enum":["lines","files","count"]},` +
		`"context":{"type":"integer","description":"lines around each"},` +
		`"ignored":{"type":"boolean"}},` +
		`"required":["pattern"],"additionalProperties":false}`),
	Run: runSearch,
}

// SearchInput is the input of [Search].
type SearchInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty"`
	Glob    string `json:"glob,omitempty"`
	Show    string `json:"show,omitempty"`
	Context int    `json:"context,omitempty"`
	Ignored bool   `json:"ignored,omitempty"`
}

func runSearch(ctx context.Context, env Env, input json.RawMessage) (Result, error) {
	var in SearchInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	if in.Pattern == "" {
		return Result{}, Misusef("what to search for is missing")
	}
	show := cmp.Or(in.Show, showLines)
	if show != showLines && show != showFiles && show != showCount {
		return Result{}, Misusef("show is lines, files or count, not %q", prose.OneLine(show, 20))
	}
	p, err := seek.Compile(in.Pattern)
	if err != nil {
		return Result{}, Misusef("%v", strings.TrimPrefix(err.Error(), "error "))
	}
	where, err := newScope(env, in.Path, in.Glob, in.Ignored)
	if err != nil {
		return Result{}, err
	}
	title := "Search for " + in.Pattern
	if in.Path != "" {
		title += " in " + where.in.shown
	}
	if in.Glob != "" {
		title += " in " + in.Glob
	}
	c, own, end := beginAlone(ctx, env, acp.ToolCall{
		Name: "search", Title: prose.OneLine(title, 200), Kind: acp.ToolKindSearch,
	})
	defer end()
	if err := where.permit(c); err != nil {
		return c.failed(err), nil
	}
	s := newSearch(where, p, show, min(max(in.Context, 0), maxContext))
	err = s.run(own)
	switch {
	case own.Err() != nil:
		return c.cancelled("The search was cancelled."), nil
	case err != nil:
		return c.failed(err), nil
	}
	text, locations := s.result()
	if text != "" {
		c.locations(locations)
		c.text(prose.Code("", text))
	}
	said := s.summary()
	c.text(said)
	c.found = text + said
	return c.done(said), nil
}

// A search goes through the files of a scope.
type search struct {
	*scope
	pattern *seek.Pattern
	show    string
	context int
	readers []reader
	stop    context.CancelCauseFunc

	counted                         atomic.Int64 // matching lines
	files, binary, large, unread    atomic.Int64
	mu                              sync.Mutex
	hits                            []hit // with those lines that may be shown
	hitFiles, keptLines, shownLines int
	shownFiles                      int
	last                            string // no lines are kept of files behind it; "" for none
}

// A reader is what one goroutine reads with.
type reader struct {
	seek.Reader
	m *seek.Matcher
}

// A hit is a file with lines that match.
type hit struct {
	path  string
	count int
	rows  []row
}

// A row is a line that is shown.
type row struct {
	n     int // the line, counted from 1
	match bool
	text  string
	whole bool // the text is all of the line
}

// errEnough ends a search that has found enough.
var errEnough = errors.New("there are too many matches")

func newSearch(where *scope, p *seek.Pattern, show string, around int) *search {
	s := &search{scope: where, pattern: p, show: show, context: around, readers: make([]reader, seek.Workers())}
	for i := range s.readers {
		s.readers[i].m = p.Matcher()
	}
	return s
}

// run searches. The error says why nothing was looked at.
func (s *search) run(ctx context.Context) error {
	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	ctx, cancel := s.timed(ctx)
	defer cancel()
	for i := range s.readers {
		s.readers[i].m.Stop = func() bool { return ctx.Err() != nil }
	}
	if err := s.walk(ctx, s.file); err != nil {
		return err
	}
	left := s.without() + s.left.says(s.env.Hints().ReadAsks)
	if s.files.Load() > 0 || s.late || left == "" {
		return nil
	}
	return errors.New("no file in " + s.what + " could be searched." + strings.TrimSuffix(left, "."))
}

// file searches a file.
func (s *search) file(worker int, path string) {
	r := &s.readers[worker]
	data, kind := r.Read(path)
	switch kind {
	case seek.Binary:
		s.binary.Add(1)
		return
	case seek.Large:
		s.large.Add(1)
		return
	case seek.NotRead:
		s.unread.Add(1)
		return
	}
	s.files.Add(1)
	if !r.m.May(data) {
		return
	}
	data = seek.Lines(data)
	begin, end, ok := r.m.Next(data, 0)
	if !ok {
		return
	}
	h := hit{path: path}
	var lines [][2]int // that may be shown
	for most := s.most(path); ok; begin, end, ok = r.m.Next(data, end+1) {
		if h.count++; h.count <= most {
			lines = append(lines, [2]int{begin, end})
		}
		if s.show == showFiles || s.counted.Add(1) > maxCounted {
			break
		}
	}
	h.rows = s.rows(data, lines)
	s.keep(h, len(lines))
	if s.counted.Load() > maxCounted {
		s.stop(errEnough)
	}
}

// most returns how many lines of a file may be shown.
func (s *search) most(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != "" && path > s.last {
		return 0
	}
	return MaxMatches
}

// keep keeps what was found in a file, for as long as it may be among what is shown: the
// first MaxMatches lines in the order of paths.
func (s *search) keep(h hit, lines int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hitFiles++
	if lines == 0 {
		return
	}
	s.hits = append(s.hits, h)
	if s.keptLines += lines; s.keptLines < 4*MaxMatches {
		return
	}
	s.sort()
	s.keptLines = 0
	for i := range s.hits {
		if s.keptLines += min(s.hits[i].count, MaxMatches); s.keptLines >= MaxMatches {
			s.last = s.hits[i].path
			clear(s.hits[i+1:])
			s.hits = s.hits[:i+1]
			return
		}
	}
}

func (s *search) sort() {
	sort.Slice(s.hits, func(i, j int) bool { return s.hits[i].path < s.hits[j].path })
}

// rows returns lines of a file as they are shown, with those around them.
func (s *search) rows(data []byte, lines [][2]int) (all []row) {
	if s.show != showLines {
		return nil
	}
	n, at := 1, 0 // the line that begins there
	shown := 0    // up to this line
	for i, l := range lines {
		n, at = n+bytes.Count(data[at:l[0]], []byte{'\n'}), l[0]
		begin, first := l[0], n
		for first > max(n-s.context, shown+1) {
			begin = bytes.LastIndexByte(data[:begin-1], '\n') + 1
			first--
		}
		for ; first < n; first++ {
			end := begin + bytes.IndexByte(data[begin:], '\n')
			all = append(all, s.row(first, data[begin:end], false))
			begin = end + 1
		}
		all = append(all, s.row(n, data[l[0]:l[1]], true))
		shown = n
		begin = l[1] + 1
		for after := n + 1; after <= n+s.context && begin < len(data); after++ {
			if i+1 < len(lines) && begin >= lines[i+1][0] {
				break
			}
			end := len(data)
			if i := bytes.IndexByte(data[begin:], '\n'); i >= 0 {
				end = begin + i
			}
			all = append(all, s.row(after, data[begin:end], false))
			shown, begin = after, end+1
		}
	}
	return all
}

func (s *search) row(n int, line []byte, match bool) row {
	text := s.line(line, match)
	return row{n: n, match: match, text: text, whole: text == string(line)}
}

// glimpse remembers which lines of a file the model gets.
func (s *search) glimpse(path string, rows []row) {
	if s.env.Files() != nil || len(rows) == 0 {
		return // what counts may be what the editor shows
	}
	real, err := realPath(path)
	if err != nil {
		return
	}
	if info, err := os.Stat(real); err != nil || info.Size() > MaxSearchFile {
		return
	}
	data, err := os.ReadFile(real)
	if err != nil {
		return
	}
	var lines []served.Range
	n := 0
	for line := range bytes.Lines(data) {
		n++
		for len(rows) > 0 && rows[0].n < n {
			rows = rows[1:]
		}
		if len(rows) == 0 {
			break
		}
		if rows[0].n == n && rows[0].whole && string(bytes.TrimRight(line, "\r\n")) == strings.TrimRight(rows[0].text, "\r") {
			lines = append(lines, served.Range{From: n, N: 1})
		}
	}
	if len(lines) > 0 {
		s.env.Served().Glimpse(real, string(data), lines...)
	}
}

// line returns a line as it is shown: a long one around what matches.
func (s *search) line(line []byte, match bool) string {
	text := strings.ToValidUTF8(string(line), "\uFFFD")
	if len(text) <= maxShownLine || utf8.RuneCountInString(text) <= maxShownLine {
		return text
	}
	from := 0
	if at := s.pattern.In([]byte(text)); match && at != nil {
		from = max(0, at[0]-maxShownLine/3)
	}
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	end, more := column0(text[from:], maxShownLine)
	shown := text[from : from+end]
	if from > 0 {
		shown = "…" + shown
	}
	if more > 0 {
		shown += "…"
	}
	return shown
}

// result returns what is shown, and where that is.
func (s *search) result() (text string, locations []acp.ToolCallLocation) {
	s.sort()
	var b strings.Builder
	for _, h := range s.hits {
		name := s.shown(h.path)
		var one []string
		switch s.show {
		case showFiles:
			one = []string{name + "\n"}
		case showCount:
			one = []string{fmt.Sprintf("%s: %d\n", name, h.count)}
		}
		before := 0
		for _, r := range h.rows {
			mark := "-"
			if r.match {
				mark = ":"
			}
			line := fmt.Sprintf("%s%s%d%s %s\n", name, mark, r.n, mark, r.text)
			if s.context > 0 && (r.n > before+1 || before == 0) && len(one)+b.Len() > 0 {
				line = "--\n" + line
			}
			before = r.n
			one = append(one, line)
		}
		for i, line := range one {
			matches := len(h.rows) == 0 || h.rows[i].match
			if b.Len()+len(line) > maxResult || matches && s.shownLines == MaxMatches {
				s.glimpse(h.path, h.rows[:min(i, len(h.rows))])
				return b.String(), locations
			}
			b.WriteString(line)
			if i == 0 {
				s.shownFiles++
			}
			if !matches {
				continue
			}
			s.shownLines++
			if len(locations) < maxLocations {
				where := acp.ToolCallLocation{Path: h.path}
				if len(h.rows) > 0 {
					where.Line = new(uint32(h.rows[i].n))
				}
				locations = append(locations, where)
			}
		}
		s.glimpse(h.path, h.rows)
	}
	return b.String(), locations
}

// summary says what was found, and which bounds were reached.
func (s *search) summary() string {
	var b strings.Builder
	found := int(s.counted.Load())
	switch {
	case s.hitFiles == 0:
		files := prose.Count(int(s.files.Load()), "file")
		fmt.Fprintf(&b, "Nothing found in %s.%s%s", files, s.leftIgnored(), s.without())
	case s.show == showFiles:
		fmt.Fprintf(&b, "%s with matching lines.", prose.Count(s.hitFiles, "file"))
	case found > maxCounted:
		fmt.Fprintf(&b, "More than %d matching lines: the search was ended, so not all files were looked at.",
			maxCounted)
	default:
		fmt.Fprintf(&b, "%s in %s.", prose.Count(found, "matching line"), prose.Count(s.hitFiles, "file"))
	}
	first := ""
	if found <= maxCounted {
		first = "the first "
	}
	switch {
	case s.show == showLines && s.shownLines < found:
		fmt.Fprintf(&b, " Only %s%d are shown, in the order of paths; show: count, a path or a glob tells more.",
			first, s.shownLines)
	case s.show != showLines && s.shownFiles < s.hitFiles:
		fmt.Fprintf(&b, " Only %s%d files are shown, in the order of paths; a path or a glob tells more.",
			first, s.shownFiles)
	}
	if n := s.large.Load(); n > 0 && s.hitFiles > 0 {
		fmt.Fprintf(&b, " %s larger than %s left out.", prose.Count(int(n), "file"), prose.Size(MaxSearchFile))
	}
	b.WriteString(s.bounds())
	return b.String()
}

// without says which files were not searched for what they are, as a sentence with a space
// before it; "" if there are none.
func (s *search) without() string {
	var all []string
	for _, f := range []struct {
		n   int64
		why string
	}{
		{s.large.Load(), "larger than " + prose.Size(MaxSearchFile)},
		{s.binary.Load(), "not text"},
		{s.unread.Load(), "not to be read"},
	} {
		if f.n > 0 {
			all = append(all, fmt.Sprintf("%s %s", prose.Count(int(f.n), "file"), f.why))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " Left out: " + strings.Join(all, ", ") + "."
}
