package shellline

import (
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// A constant is a variable that a line sets once, before it is used, to a literal.
type constant struct {
	value    string // "" if it is one of several
	plain    bool   // it stays one word without quotes
	from, to uint   // where the line may use it
}

// constants finds the constants of a line: assignments on their own at its top, and the variables
// of loops. A name that the line mentions in any other way is not a constant.
func (s *scan) constants(line string, file *syntax.File) {
	found := map[string]constant{}
	ok := len(line) <= maxLine/4
	add := func(name *syntax.Lit, c constant) {
		if name != nil && !isRunVariable(name.Value) && name.Value != "IFS" && onlySetAt(line, name) {
			found[name.Value] = c
		}
	}
	for _, st := range file.Stmts {
		call, is := st.Cmd.(*syntax.CallExpr)
		if !is || len(call.Args) > 0 || st.Negated || st.Background || len(st.Redirs) > 0 {
			continue
		}
		for _, a := range call.Assigns {
			if a.Value == nil || a.Array != nil || a.Index != nil || a.Append {
				continue
			}
			if v := s.expand(a.Value); len(v) == 1 && !v[0].Open && v[0].Text != "" {
				add(a.Name, constant{v[0].Text, isPlainWord(v[0].Text, line), st.End().Offset(), uint(len(line))})
			}
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			ok = ok && !setsUnseen(n)
		case *syntax.DeclClause:
			for _, a := range n.Args {
				ok = ok && a.Name != nil
			}
		case *syntax.ForClause:
			if w, is := n.Loop.(*syntax.WordIter); is && w.InPos.IsValid() && !n.Select {
				if c, is := s.items(w.Items, line); is {
					c.from, c.to = n.DoPos.Offset(), n.DonePos.Offset()
					add(w.Name, c)
				}
			}
		}
		return ok
	})
	if s.consts = nil; ok {
		s.consts = found
	}
}

// items returns the constant for a variable whose values are some words. None of them may be an
// option.
func (s *scan) items(list []*syntax.Word, line string) (c constant, ok bool) {
	c.plain = true
	for _, item := range list {
		for _, w := range s.expand(item) {
			if w.Text == "" || w.Text[0] == '-' {
				return c, false
			}
			c.plain = c.plain && !w.Open && isPlainWord(w.Text, line)
		}
	}
	return c, len(list) > 0
}

// isPlainWord reports whether a value stays one word if a line uses it without quotes.
func isPlainWord(value, line string) bool {
	return !strings.ContainsFunc(value, isShellSign) && !strings.ContainsAny(value, " \t\n") && !strings.Contains(line, "IFS")
}

// setsUnseen reports whether a command may set variables whose names are not literals.
func setsUnseen(c *syntax.CallExpr) bool {
	if len(c.Args) == 0 {
		return false
	}
	switch c.Args[0].Lit() {
	case ".", "source", "eval", "trap", "command", "builtin", "set", "":
		return c.Args[0].Lit() != "set" && c.Args[0].Lit() != ""
	case "read", "mapfile", "readarray", "printf", "getopts", "unset", "let", "typeset", "declare", "local", "export", "readonly", "wait":
		for _, w := range c.Args[1:] {
			if w.Lit() == "" && c.Args[0].Lit() != "printf" {
				return true
			}
		}
		return c.Args[0].Lit() == "printf" && len(c.Args) > 1 && !strings.HasPrefix(c.Args[1].Lit()+"%", "%") && strings.HasPrefix(c.Args[1].Lit(), "-")
	}
	return false
}

var names = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`) })

// onlySetAt reports whether a line mentions a name only at its assignment and where it uses the
// value.
func onlySetAt(line string, name *syntax.Lit) bool {
	for _, at := range names().FindAllStringIndex(line, -1) {
		if line[at[0]:at[1]] != name.Value || at[0] == int(name.Pos().Offset()) {
			continue
		}
		before := line[:at[0]]
		if !strings.HasSuffix(before, "$") && (!strings.HasSuffix(before, "${") || !strings.HasPrefix(line[at[1]:], "}")) {
			return false
		}
	}
	return true
}

// constant returns the constant that a parameter stands for.
func (s *scan) constant(p *syntax.ParamExp) (c constant, ok bool) {
	if len(s.lines) != 1 || p.Param == nil || p.Excl || p.Length || p.Width || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil || p.Names != 0 || p.Flags != nil {
		return c, false
	}
	c, ok = s.consts[p.Param.Value]
	at := p.Pos().Offset()
	return c, ok && c.from <= at && at < c.to
}

// copied returns the text of a substitution that only copies it, as $(cat <<'E' …) does.
func (s *scan) copied(p *syntax.CmdSubst) (text string, ok bool) {
	if len(p.Stmts) != 1 || len(p.Stmts[0].Redirs) != 1 || p.Stmts[0].Background || p.Stmts[0].Negated {
		return "", false
	}
	call, ok := p.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) != 1 || len(call.Assigns) > 0 || call.Args[0].Lit() != "cat" {
		return "", false
	}
	for _, other := range []string{"cat(", "cat (", "alias", "function"} {
		if strings.Contains(s.lines[0], other) {
			return "", false
		}
	}
	r := p.Stmts[0].Redirs[0]
	if r.Op != syntax.Hdoc || r.Hdoc == nil {
		return "", false
	}
	var b strings.Builder
	for _, part := range r.Hdoc.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || r.Word.Lit() != "" && strings.Contains(lit.Value, `\`) {
			return "", false
		}
		b.WriteString(lit.Value)
	}
	return strings.TrimRight(b.String(), "\n"), true
}
