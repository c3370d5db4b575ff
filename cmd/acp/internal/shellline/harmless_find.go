package shellline

import (
	"slices"
	"strings"

	"github.com/goacp/acp/acphost"
)

// Tests and actions of find that only read: https://www.gnu.org/software/findutils/manual/html_mono/find.html.
const (
	findAlone = "( ) ! , -a -and -o -or -not -empty -executable -readable -writable -nouser -nogroup -true -false -daystart -depth -mount -xdev -noleaf -ignore_readdir_race -print -print0 -ls -prune -quit"
	findWith  = "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth -mindepth -size -mtime -mmin -atime -amin -ctime -cmin -newer -perm -user -group -links -inum -samefile -printf -used -uid -gid"
)

// harmlessFind returns what find reads, or nil if it is not known to do nothing else. What it runs is a part of its
// own.
func harmlessFind(part *acphost.CommandPart, words []word) *acphost.CommandReads {
	if len(part.Options) > 0 || len(part.In) > 0 {
		return nil
	}
	out, i := new(acphost.CommandReads), 1
	for i < len(words) && words[i].Text == "-P" && !words[i].Open {
		i++
	}
	for ; i < len(words); i++ {
		w := words[i]
		if w.Open && (w.split || !isGlob(w) && w.mayBeOption()) {
			return nil
		}
		if !w.Open && w.Text != "" && strings.Contains("-(!,", w.Text[:1]) {
			break
		}
		out.Files = append(out.Files, acphost.CommandFile{CommandWord: w.CommandWord, Entry: true, Deep: true, Options: true})
	}
	if len(out.Files) == 0 {
		out.Files = []acphost.CommandFile{{CommandWord: acphost.CommandWord{Text: ".", Source: "."}, Entry: true, Deep: true}}
	}
	var only []string
	narrows := true // what is only done where all tests before it hold
	for ; i < len(words); i++ {
		t := words[i].Text
		switch {
		case words[i].Open:
			return nil
		case hasWhole(findAlone, t):
			if hasWhole("( ) ! , -o -or -not", t) {
				only, narrows = nil, false
			}
			narrows = narrows && !hasWhole("-print -print0 -ls -prune -quit", t)
		case hasWhole(findWith, t) && i+1 < len(words) && !words[i+1].Open:
			i++
			narrows = narrows && t != "-printf"
			if t == "-name" && narrows && !strings.ContainsAny(words[i].Text, "[\\") {
				only = []string{words[i].Text}
			}
			if t == "-newer" || t == "-samefile" {
				out.Files = append(out.Files, acphost.CommandFile{CommandWord: words[i].CommandWord, Entry: true})
			}
		case t == "-exec":
			narrows = false
			for i++; i < len(words) && words[i].Text != ";" && (words[i].Text != "+" || words[i-1].Text != "{}"); i++ {
			}
		default:
			return nil
		}
	}
	for k := range out.Files {
		out.Files[k].Only = only
	}
	return out
}

// A span are parts of a line, from the first to before the last.
type span struct{ from, to int }

// passOn puts what a program finds in the place of the names that it passes to another one: for find and fd
// what is below their directories, for xargs what the programs before it find.
func (s *scan) passOn() {
	for i := range s.out.Parts {
		p := &s.out.Parts[i]
		found := func(f acphost.CommandFile) bool { return isFound(f.CommandWord) }
		if p.Harmless == nil || !slices.ContainsFunc(p.Harmless.Files, found) {
			continue
		}
		trees, ok := s.finds(p)
		if !ok {
			p.Harmless = nil
			continue
		}
		var files []acphost.CommandFile
		for _, f := range p.Harmless.Files {
			if !isFound(f.CommandWord) {
				files = append(files, f)
				continue
			}
			for _, t := range trees {
				if t.Entry = f.Entry; f.Deep { // what is below a directory of that name has others
					t.Only = nil
				}
				files = append(files, t)
			}
		}
		p.Harmless.Files = files
	}
}

// isFound reports whether a word is the names that another program finds, and nothing else.
func isFound(w acphost.CommandWord) bool {
	n := len(w.Pieces)
	return w.Open && (n == 1 || n == 2 && !w.Pieces[0].Open && w.Pieces[0].Text == "./") && w.Pieces[n-1].Name == "{}"
}

// finds returns the directories in which the names lie that a part gets. ok is false if it may get others.
func (s *scan) finds(p *acphost.CommandPart) (trees []acphost.CommandFile, ok bool) {
	if p.By == 0 || p.At == 0 {
		return nil, false
	}
	by := s.part(p.By)
	if by.Harmless == nil {
		return nil, false
	}
	switch name := base(by.Words[0].Text); name {
	case "find", "gfind", "fd", "fdfind":
		return below1(by.Harmless.Files, false), true
	case "xargs", "gxargs":
		feed, fed := s.feeds[p.By]
		fed = fed && !s.given[p.By]
		for n := feed.from + 1; n <= feed.to; n++ {
			list, ok := finder(s.part(n))
			if !ok || s.given[n] {
				return nil, false
			}
			trees = append(trees, list...)
		}
		return trees, fed && len(trees) > 0
	}
	return nil, false
}

// narrowing are programs that print some of the lines that they read, as they are, with these letters of options.
var narrowing = map[string]string{"grep": "-vEFGPiwxe", "head": "-nqv0123456789", "tail": "-nqv0123456789", "sort": "-rnuVfz", "uniq": "-udi"}

// finder returns the directories in which a program finds the names that it prints, or none if it prints some of
// what it reads. ok is false if it may print anything.
func finder(p *acphost.CommandPart) (trees []acphost.CommandFile, ok bool) {
	if p.Harmless == nil || len(p.Words) == 0 || p.By > 0 || len(p.Reads) > 0 {
		return nil, false
	}
	name := base(p.Words[0].Text)
	var seen []string // its options, without their values
	if r := readerOf()[name]; r == nil {
		for _, w := range p.Words[1:] {
			seen = append(seen, w.Text)
		}
	} else {
		a := arguments{reader: r}
		var words []word
		for _, w := range p.Words[1:] {
			words = append(words, word{CommandWord: w})
		}
		if !a.parse(words) {
			return nil, false
		}
		seen = a.seen
	}
	has := func(options string) bool {
		return slices.ContainsFunc(seen, func(name string) bool { return hasWhole(options, name) })
	}
	files := p.Harmless.Files
	switch {
	case name == "find" && !has("-printf -ls"), name == "fd", name == "fdfind", name == "rg" && has("-l --files --files-with-matches") && !has("--json --stats --type-list --help --version"), name == "grep" && len(files) > 0 && has("-l --files-with-matches"):
		return below1(files, true), true
	case narrowing[name] != "" && len(files) == 0 && !slices.ContainsFunc(p.Words[1:], func(w acphost.CommandWord) bool {
		return strings.HasPrefix(w.Text, "-") && strings.Trim(w.Text, narrowing[name]) != ""
	}):
		return nil, true
	}
	return nil, false
}

// below1 returns files as directories that are read with all that is below them.
func below1(files []acphost.CommandFile, plain bool) (trees []acphost.CommandFile) {
	for _, f := range files {
		f.Entry, f.Deep, f.Follow, f.Plain = false, true, true, plain
		trees = append(trees, f)
	}
	return trees
}
