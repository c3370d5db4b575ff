package tool

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/goacp/acp/acphost"
)

// patchCommands are the names under which models know a program that applies a patch. There
// is none: the tool [Patch] does it.
var patchCommands = map[string]bool{"apply_patch": true, "applypatch": true, "apply-patch": true}

// patchOf returns the patch that a line of the shell would apply, and in which directory, if
// it does nothing else:
//
//	apply_patch <<'EOF'
//	apply_patch 'PATCH'
//	cd DIR && apply_patch …
//
// It reports false if the line does more, or if the shell would put something into the patch.
func patchOf(line string) (patch, dir string, ok bool) {
	if !strings.Contains(line, "Begin Patch") || !strings.Contains(line, "apply") {
		return "", "", false
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil || len(f.Stmts) != 1 {
		return "", "", false
	}
	s := f.Stmts[0]
	if b, both := s.Cmd.(*syntax.BinaryCmd); both && b.Op == syntax.AndStmt && plainStmt(s) && len(s.Redirs) == 0 {
		words, known := wordsOf(b.X)
		if !known || len(words) != 2 || words[0] != "cd" || len(b.X.Redirs) > 0 ||
			strings.IndexByte("-~", (words[1] + "-")[0]) >= 0 {
			return "", "", false
		}
		s, dir = b.Y, words[1]
	}
	words, known := wordsOf(s)
	if !known || len(words) == 0 || !patchCommands[words[0]] {
		return "", "", false
	}
	switch {
	case len(words) == 2 && len(s.Redirs) == 0:
		return words[1], dir, true
	case len(words) == 1 && len(s.Redirs) == 1 && s.Redirs[0].Hdoc != nil &&
		(s.Redirs[0].N == nil || s.Redirs[0].N.Value == "0"):
		patch, ok = literal(s.Redirs[0].Hdoc)
		if s.Redirs[0].Word.Lit() != "" && escaped().MatchString(patch) {
			return "", "", false // the word is not quoted: the shell would take them out
		}
		if s.Redirs[0].Op == syntax.DashHdoc {
			lines := strings.Split(patch, "\n")
			for i, l := range lines {
				lines[i] = strings.TrimLeft(l, "\t")
			}
			patch = strings.Join(lines, "\n")
		}
		return patch, dir, ok
	}
	return "", "", false
}

// escaped is what a backslash takes the meaning from, where it has one.
var escaped = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\\\\[$`\\\\\n]") })

// plainStmt reports whether a command runs in the foreground, and its status counts.
func plainStmt(s *syntax.Stmt) bool {
	return !s.Negated && !s.Background && !s.Coprocess
}

// wordsOf returns the words of a simple command, if they are all known.
func wordsOf(s *syntax.Stmt) ([]string, bool) {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Assigns) > 0 || !plainStmt(s) {
		return nil, false
	}
	words := make([]string, len(c.Args))
	for i, w := range c.Args {
		if words[i], ok = literal(w); !ok {
			return nil, false
		}
	}
	return words, true
}

// literal returns what a word is, if the shell puts nothing into it.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if strings.Contains(part.Value, `\`) && len(w.Parts) > 1 {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, in := range part.Parts {
				lit, ok := in.(*syntax.Lit)
				if !ok || part.Dollar || strings.Contains(lit.Value, `\`) {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// patchesWith is how a line begins that applies a patch.
var patchesWith = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\s*(?:cd\s[^\n&|;]*&&\s*)?apply[_-]?patch\b`)
})

// asPatch returns the patch of a line, unless a rule is about the command. An error says how
// to write it if the line would apply one that cannot be read out of it.
func asPatch(env Env, line string) (patch, dir string, ok bool, err error) {
	if patch, dir, ok = patchOf(line); !ok {
		if patchesWith().MatchString(line) && strings.Contains(line, "Begin Patch") {
			err = Misusef("the shell has no command apply_patch: give it alone, " +
				"as apply_patch <<'EOF', the patch, EOF, with the quotes")
		}
		return "", "", false, err
	}
	if Restricts(env.Judge(acphost.Request{Title: line, Kind: "execute", Command: line})) {
		return "", "", false, nil
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(env.Cwd(), dir)
	}
	return patch, dir, true, nil
}
