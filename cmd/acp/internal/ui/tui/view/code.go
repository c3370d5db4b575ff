package view

import (
	_ "embed"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/chroma/v2"

	"github.com/goacp/acp/internal/packed"
)

// tabSize is the distance of tab stops in code.
const tabSize = 4

// maxLexed bounds the code that is coloured at once, in bytes. Longer code stays plain.
const maxLexed = 32 << 10

// maxLexTime bounds how long colouring may take. A few milliseconds are normal, but some lexers
// never finish on some code. Such a lexer is not used again. On a busy machine most of the time
// passes while the program waits for a processor: of what passes in one token only maxTokenTime
// counts, unless it is more than maxLexWait in all.
const (
	maxLexTime   = time.Second
	maxTokenTime = 20 * time.Millisecond
	maxLexWait   = 3 * maxLexTime
	// patternTime is how long chroma tries a pattern, by the clock. After that it does as if the
	// pattern did not match.
	patternTime = 250 * time.Millisecond
)

// codeLines returns code as lines, coloured according to its language. The code must be safe text.
func (th *Theme) codeLines(code string, lexer chroma.Lexer) []line {
	code = strings.TrimSuffix(code, "\n")
	var out []line
	if lexer != nil && !th.plain && len(code) <= maxLexed {
		out = th.lex(code, lexer)
	}
	if out == nil {
		for l := range strings.SplitSeq(code, "\n") {
			out = append(out, line{}.put(tabs(l, tabSize), look{}))
		}
	}
	return out
}

// lex colours code. It returns nil if that is not possible. It tries again if patterns may have had
// too little time, unless that was long.
func (th *Theme) lex(code string, lexer chroma.Lexer) []line {
	for begun := time.Now(); ; {
		out, late := th.lexOnce(code, lexer, begun)
		if !late || time.Since(begun) > maxLexTime {
			return out
		}
	}
}

// lexOnce is one try, and reports whether a pattern may have had too little time. It recovers from a
// panic of the lexer, which must not end the conversation.
func (th *Theme) lexOnce(code string, lexer chroma.Lexer, begun time.Time) (out []line, late bool) {
	defer func() {
		if recover() != nil {
			out, late = nil, false
		}
	}()
	it, err := lexer.Tokenise(nil, code)
	if err != nil {
		return nil, false
	}
	var cur line
	col := 0
	last, used := time.Now(), time.Duration(0)
	for tok := it(); tok != chroma.EOF; tok = it() {
		now := time.Now()
		late = late || now.Sub(last) >= patternTime
		used, last = used+min(now.Sub(last), maxTokenTime), now
		if used > maxLexTime || now.Sub(begun) > maxLexWait {
			tooSlow(lexer)
			return nil, false
		}
		k := th.syntax[syntaxOf(tok.Type)]
		for text := tok.Value; ; {
			l, rest, more := strings.Cut(text, "\n")
			if i := strings.IndexByte(l, '\t'); i >= 0 {
				// what is before the tab may be of other tokens
				l = tabs(strings.Repeat(" ", col%tabSize)+l, tabSize)[col%tabSize:]
			}
			cur, col = cur.put(l, k), col+textWidth(l)
			if !more {
				break
			}
			out, cur, col = append(out, cur), nil, 0
			text = rest
		}
	}
	if len(cur) > 0 {
		out = append(out, cur)
	}
	// Lexers end code with a line break, and may do other things to it: that it is all
	// there is checked by its lines.
	n := strings.Count(code, "\n") + 1
	for len(out) < n {
		out = append(out, nil)
	}
	if len(out) > n {
		return nil, late
	}
	i := 0
	for l := range strings.SplitSeq(code, "\n") {
		if out[i].plain() != tabs(l, tabSize) {
			return nil, late
		}
		i++
	}
	return out, late
}

// syntaxOf returns the kind of a token, which determines its colour.
func syntaxOf(t chroma.TokenType) syntaxKind {
	switch {
	case t.InCategory(chroma.Comment):
		return synComment
	case t == chroma.KeywordType:
		return synType
	case t.InCategory(chroma.Keyword), t == chroma.OperatorWord:
		return synKeyword
	case t.InSubCategory(chroma.LiteralString):
		return synString
	case t.InSubCategory(chroma.LiteralNumber):
		return synNumber
	}
	switch t {
	case chroma.NameFunction, chroma.NameFunctionMagic, chroma.NameTag, chroma.NameDecorator:
		return synFunction
	case chroma.NameClass, chroma.NameNamespace, chroma.NameBuiltin, chroma.NameAttribute, chroma.NameException:
		return synType
	case chroma.GenericInserted:
		return synAdded
	case chroma.GenericDeleted:
		return synRemoved
	case chroma.GenericHeading, chroma.GenericSubheading:
		return synHeading
	}
	return synText
}

//go:generate go run ./lexers

//go:embed lexers.packed
var lexerFiles string

// languages returns the lexers of all languages. They are read when there is code for the first time.
var languages = sync.OnceValue(func() *chroma.LexerRegistry {
	all := chroma.NewLexerRegistry()
	files, err := packed.Open(lexerFiles)
	if err != nil {
		return all
	}
	for _, name := range files.Names() {
		if l, err := chroma.NewXMLLexer(files, name); err == nil {
			all.Register(l)
		}
	}
	return all
})

// lexerCache remembers the lexers of languages and files, because a lookup goes through all lexers.
var lexerCache struct {
	sync.Mutex
	m map[string]chroma.Lexer
}

// maxLexers bounds the cache. When it is full, it is emptied.
const maxLexers = 256

// tooSlow disables a lexer, for as long as the cache remembers it.
func tooSlow(l chroma.Lexer) {
	lexerCache.Lock()
	defer lexerCache.Unlock()
	for k, v := range lexerCache.m {
		if v == l {
			lexerCache.m[k] = nil
		}
	}
}

// lexerFor returns the lexer for a language or, with path, for a file name. It returns nil if there
// is none.
func lexerFor(name string, path bool) chroma.Lexer {
	key := strings.ToLower(name)
	if path {
		key = "/" + filepath.Base(filepath.ToSlash(name))
	}
	if len(key) < 2 && !path && key != "c" && key != "r" && key != "d" || len(key) > 64 {
		return nil
	}
	lexerCache.Lock()
	defer lexerCache.Unlock()
	if l, ok := lexerCache.m[key]; ok {
		return l
	}
	var l chroma.Lexer
	if path {
		l = languages().Match(key[1:])
	} else {
		l = languages().Get(key)
	}
	if lexerCache.m == nil || len(lexerCache.m) >= maxLexers {
		lexerCache.m = map[string]chroma.Lexer{}
	}
	lexerCache.m[key] = l
	return l
}
