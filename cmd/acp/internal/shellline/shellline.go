// Package shellline parses command lines, for rules about commands: it returns the simple commands
// that a line would run, wherever they stand, and says what is uncertain.
//
// It is a reader, not a shell: it expands nothing that only a running shell knows. Which shell runs
// a line is unknown, and the built-in agent takes Bash only where there is one, so it is read as by Bash and by a POSIX shell: its parts are those of both,
// and what only one of them can read is uncertain. Tables say what programs do with their words,
// each line with its source: which programs run others, which run text, and which options run
// programs or write files.
package shellline

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/goacp/acp/acphost"
)

// Bounds. What is beyond them is uncertain.
const (
	maxLine  = 64 << 10  // bytes
	maxParts = 512       // simple commands
	maxDepth = 8         // of lines within lines, as in sh -c "sh -c '…'"
	maxWords = 4096      // of all commands and redirections together, with those that braces make
	maxText  = 256 << 10 // bytes of these words
	maxBrace = 64        // words that the braces of one word make
	maxNest  = 100       // parentheses and braces within each other
)

// A Parser parses command lines. The zero value is ready for use, by any goroutine.
type Parser struct{}

var _ acphost.CommandParser = Parser{}

// ParseCommand implements [acphost.CommandParser]. It examines lines of up to
//
//	64 kB
//	512 simple commands, each of which has files that it reads or writes
//	4,096 words and files, together of 256 kB, after braces are expanded
//	8 lines within each other, as in sh -c "sh -c '…'"
//	100 parentheses and braces within each other
//
// and returns what it has seen within them; what is beyond makes the line unsure. A word whose braces
// make more than 64 is not known. It does not panic: a line on which the parser of the shell's language
// fails is unsure, too.
func (Parser) ParseCommand(line string) (out acphost.CommandLine) {
	s := new(scan)
	defer func() {
		if recover() != nil {
			out = acphost.CommandLine{Unsure: "it cannot be parsed"}
		}
	}()
	if runtime.GOOS == "windows" && strings.ContainsAny(line, ";&|<>()`$%^'") {
		s.unsure("it may be for another shell") // in cmd.exe, '…' is no quote
	}
	file := s.text(line, by{})
	s.passOn()
	posix := &scan{lang: syntax.LangPOSIX}
	posix.text(line, by{})
	posix.passOn()
	s.out.Acts = cmp.Or(s.out.Acts, posix.out.Acts)
	if s.holds && s.computes {
		s.unsure("it may compute with text that has a command in it")
	}
	if posix.out.Unsure != "" {
		s.unsure(posix.out.Unsure)
	}
	s.close(&s.out)
	if slices.EqualFunc(s.out.Parts, posix.out.Parts, sameParts) {
		s.out.Normal = s.normal(file)
		return s.out
	}
	// Which shell runs the line is not known: it may do what either reads.
	n := len(s.out.Parts)
	for i := range posix.out.Parts {
		if isNumeric(&posix.out.Parts[i]) {
			posix.out.Parts[i] = acphost.CommandPart{}
		}
	}
	s.out.Moves, s.out.Values = append(s.out.Moves, posix.moves...), nil
	if s.words += posix.words; s.words > maxWords || s.bytes+posix.bytes > maxText || n+len(posix.out.Parts) > maxParts {
		s.unsure(tooMuch)
	}
	words := size(s.out.Parts)
	for _, p := range posix.out.Parts {
		if words += size([]acphost.CommandPart{p}); len(s.out.Parts) >= maxParts || words > maxWords {
			break
		}
		if p.By > 0 {
			p.By += n
		}
		s.out.Parts = append(s.out.Parts, p)
	}
	return s.out
}

// A by says which part runs a text, and at which of its words the text begins.
type by struct{ part, at int }

// A scan is one line that is read, with the lines within it.
type scan struct {
	out   acphost.CommandLine
	lang  syntax.LangVariant // that of Bash if it is 0
	depth int
	words int
	bytes int // of the words

	made, madeBytes int // what words were expanded to, for whatever use

	dir   acphost.CommandWord // where the line has changed to
	lines []string            // the texts that are being read, for the sources of words
	by    by
	place
	consts map[string]constant // of the line itself
	inDir  bool                // the last change of the directory has succeeded, or nothing runs

	feed  span         // what the standard input of the command comes from
	feeds map[int]span // that of each xargs, by its part
	given map[int]bool // parts whose standard input is a file or a text

	holds    bool // a text has a command in it that is not run, or text is read
	computes bool // Bash would run the commands in the values of variables
}

const tooMuch = "it has too many commands or words in it"

// size returns how many words and files parts have.
func size(parts []acphost.CommandPart) (n int) {
	for _, p := range parts {
		n += len(p.Words) + len(p.Writes) + len(p.Reads)
	}
	return n
}

// count adds words to those of the line, and reports whether the bound holds.
func (s *scan) count(words, bytes int) bool {
	if s.words, s.bytes = s.words+words, s.bytes+bytes; s.words > maxWords || s.bytes > maxText {
		s.unsure(tooMuch)
		return false
	}
	return true
}

// unsure records why the line may run more than its parts.
func (s *scan) unsure(why string) {
	if s.out.Unsure == "" {
		s.out.Unsure = why
	}
}

// text reads a line, which part b runs.
func (s *scan) text(line string, b by) *syntax.File {
	switch {
	case len(line) > maxLine:
		s.unsure("it is longer than 64 kB")
		return nil
	case s.depth == maxDepth:
		s.unsure("lines within lines are nested too deeply")
		return nil
	case strings.TrimSpace(line) == "":
		return nil
	}
	if !utf8.ValidString(line) || strings.ContainsFunc(line, isOdd) {
		s.unsure("it has control characters in it")
	}
	if nesting(line) > maxNest {
		s.unsure("it is nested too deeply")
		return nil
	}
	lang := s.lang
	if lang == 0 {
		lang = syntax.LangBash
	}
	file, err := syntax.NewParser(syntax.KeepComments(true), syntax.Variant(lang)).Parse(strings.NewReader(line), "")
	if err != nil && s.lang == syntax.LangPOSIX {
		// A shell that cannot read it runs what precedes it.
		if file = beginOf(line); file == nil {
			s.unsure("not every shell can read it")
			return nil
		}
	} else if err != nil {
		s.unsure("it cannot be parsed")
		return nil
	}
	was := s.by
	s.by, s.depth, s.lines = b, s.depth+1, append(s.lines, line)
	first, remarks := len(s.out.Parts), s.comments(file)
	s.quotes(file)
	s.acts(file)
	if len(s.lines) == 1 {
		s.constants(line, file)
	}
	s.stmts(file.Stmts)
	if len(remarks) > 0 && len(s.out.Parts) == first {
		s.add(acphost.CommandPart{Source: line})
	}
	if len(remarks) > 0 && len(s.out.Parts) > first {
		p := &s.out.Parts[first]
		p.Runs = append(p.Runs, remarks...)
	}
	s.by, s.depth, s.lines = was, s.depth-1, s.lines[:len(s.lines)-1]
	return file
}

// beginOf returns the statements of a line that a POSIX shell can read, up to one that is an error for
// it: processes as files, loops of C, lists, their items, texts as input, both outputs at once, and what
// it takes for words. It returns nil if a line is an error for other reasons.
func beginOf(line string) *syntax.File {
	file, err := syntax.NewParser(syntax.KeepComments(true), syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil
	}
	known, split := false, false
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ProcSubst, *syntax.CStyleLoop, *syntax.ArrayExpr:
			known = true
		case *syntax.TimeClause:
			if n.Stmt != nil {
				_, call := n.Stmt.Cmd.(*syntax.CallExpr)
				known = known || !call
			}
		case *syntax.BinaryTest:
			known = known || n.Op == syntax.TsReMatch
		case *syntax.BinaryCmd:
			known = known || n.Op == syntax.PipeAll
		case *syntax.Redirect:
			known = known || n.Op == syntax.WordHdoc
		case *syntax.Stmt:
			// To others ls &>f is ls &, and then >f, with what follows as a command.
			for _, r := range n.Redirs {
				if r.Op == syntax.RdrAll || r.Op == syntax.AppAll {
					known = true
					split = split || n.Cmd == nil || n.Cmd.End().After(r.Pos())
				}
			}
		case *syntax.ParamExp:
			known = known || n.Index != nil
		}
		return true
	})
	if !known || split {
		return nil
	}
	begin := new(syntax.File)
	for st, err := range syntax.NewParser(syntax.KeepComments(true), syntax.Variant(syntax.LangPOSIX)).StmtsSeq(strings.NewReader(line)) {
		if err != nil {
			break
		}
		begin.Stmts = append(begin.Stmts, st)
	}
	return begin
}

// nesting returns how deeply parentheses and braces are nested at most, those in quotes counted.
func nesting(line string) int {
	depth, most := 0, 0
	for i := range len(line) {
		switch line[i] {
		case '(', '{':
			depth++
			most = max(most, depth)
		case ')', '}':
			depth = max(0, depth-1)
		}
	}
	return most
}

// quotes looks for quotes that shells read differently, for text that contains a command, and for
// anything that computes.
func (s *scan) quotes(file *syntax.File) {
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.SglQuoted:
			if n.Dollar && strings.Contains(n.Value, `\'`) {
				s.unsure("not every shell reads its quotes alike")
			}
			s.holds = s.holds || hasSubstitution(n.Value) || n.Dollar && strings.Contains(n.Value, `\`)
		case *syntax.Lit:
			s.holds = s.holds || hasSubstitution(strings.ReplaceAll(n.Value, `\`, ""))
		case *syntax.Redirect:
			if n.Hdoc != nil && n.Word != nil && strings.HasPrefix(s.source(n.Word, n.Word), "$") {
				s.unsure("not every shell reads its quotes alike")
			}
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.TestClause:
			s.computes = true
		case *syntax.ParamExp:
			s.computes = s.computes || n.Slice != nil || n.Index != nil
		case *syntax.Assign:
			s.computes = s.computes || n.Index != nil
		case *syntax.DeclClause:
			s.computes = s.computes || n.Variant.Value != "export"
		}
		return true
	})
}

// isOdd reports whether shells and people may see something else in a character.
func isOdd(c rune) bool {
	return c < ' ' && c != '\t' && c != '\n' || 0x7f <= c && c < 0xa0 || c == 0x2028 || c == 0x2029 ||
		0x202a <= c && c <= 0x202e || 0x2066 <= c && c <= 0x2069
}

// comments looks for comments that would do something in a shell without comments, as zsh when
// people type. Prose would not, unless rules deny what it says: comments returns that.
func (s *scan) comments(file *syntax.File) (remarks []acphost.CommandWord) {
	syntax.Walk(file, func(n syntax.Node) bool {
		c, ok := n.(*syntax.Comment)
		if !ok {
			return true
		}
		if strings.ContainsAny(c.Text, "`<>") || strings.Contains(c.Text, "$(") {
			s.unsure("a comment has a command in it")
		}
		for i, said := range strings.FieldsFunc("x"+c.Text, func(c rune) bool { return strings.ContainsRune(";&|", c) }) {
			if i == 0 || strings.TrimSpace(said) == "" {
				continue
			}
			if len(remarks) == maxRemarks || !isProse(said) {
				s.unsure("a comment has a command in it")
				break
			}
			remarks = append(remarks, acphost.CommandWord{Text: said, Open: true, Source: said})
		}
		// The parser takes a''#b for a word and a comment; shells do not.
		line, at := s.lines[len(s.lines)-1], int(c.Hash.Offset())
		if at > 0 && (at > len(line) || strings.IndexByte(" \t\n;&|(){}`", line[at-1]) < 0) {
			s.unsure("a comment begins within a word")
		}
		return true
	})
	return remarks
}

// maxRemarks bounds the part of a text's comments that is compared with rules.
const maxRemarks = 32

// isProse reports whether a shell would take a text for the name of an unknown program, with
// letters only, and words.
func isProse(said string) bool {
	first := strings.Fields(said)[0]
	first = strings.TrimRight(first, ".,:!?)")
	return first != "" && strings.Trim(strings.ToLower(first), "abcdefghijklmnopqrstuvwxyz") == "" && !inTables(tableName(base(first)))
}

// source returns the text of a node.
func (s *scan) source(from, to syntax.Node) string {
	line := s.lines[len(s.lines)-1]
	a, b := int(from.Pos().Offset()), int(to.End().Offset())
	if a < 0 || a > b || b > len(line) {
		return ""
	}
	return line[a:b]
}

// normal returns the normal form of a line, that of the script of a shell that does nothing else.
func (s *scan) normal(file *syntax.File) string {
	if file == nil || s.out.Unsure != "" {
		return ""
	}
	if p := s.out.Parts; len(p) > 1 && p[0].Wrapper && p[1].By == 1 && len(p[0].Words) == 3 && len(p[0].Sets) == 0 && bourne()[base(p[0].Words[0].Text)] && !p[0].Words[2].Open {
		if len(file.Stmts) == 1 && len(file.Stmts[0].Redirs) == 0 && !file.Stmts[0].Negated && !file.Stmts[0].Background {
			if _, ok := file.Stmts[0].Cmd.(*syntax.CallExpr); ok {
				return Parser{}.ParseCommand(p[0].Words[2].Text).Normal
			}
		}
	}
	var b strings.Builder
	if syntax.NewPrinter(syntax.Minify(true)).Print(&b, file) != nil {
		return ""
	}
	text := strings.TrimSpace(b.String())
	again := new(scan)
	if again.text(text, by{}); again.out.Unsure != "" || !slices.EqualFunc(again.out.Parts, s.out.Parts, sameParts) {
		return "" // the printer has changed it
	}
	return text
}

// sameParts reports whether parts are the same except for their spelling.
func sameParts(a, b acphost.CommandPart) bool {
	words := func(a, b acphost.CommandWord) bool { return a.Text == b.Text && a.Open == b.Open }
	return a.By == b.By && a.At == b.At && words(a.Dir, b.Dir) && slices.EqualFunc(a.Words, b.Words, words) &&
		slices.EqualFunc(a.Writes, b.Writes, words) && slices.EqualFunc(a.Reads, b.Reads, words) && len(a.Runs) == len(b.Runs) && len(a.Sets) == len(b.Sets)
}

// isNumeric reports whether a part is what shells that do not compute make of ((1 > 0)): the program and
// the files are numbers.
func isNumeric(p *acphost.CommandPart) bool {
	if len(p.Words) == 0 || len(p.Sets) > 0 || len(p.Runs) > 0 {
		return false
	}
	for _, list := range [][]acphost.CommandWord{p.Words[:1], p.Writes, p.Reads} {
		for _, w := range list {
			name, counts := strings.CutSuffix(w.Text, "++")
			if !counts {
				name, counts = strings.CutSuffix(w.Text, "--")
			}
			if w.Open || w.Text == "" || strings.Trim(w.Text, "0123456789") != "" && (!counts || !isName(name)) {
				return false
			}
		}
	}
	return true
}
