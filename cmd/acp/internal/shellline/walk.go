package shellline

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/goacp/acp/acphost"
)

func (s *scan) stmts(list []*syntax.Stmt) {
	for _, st := range list {
		s.stmt(st)
		s.inDir = false // it may have failed
	}
}

// stmt reads a statement.
func (s *scan) stmt(st *syntax.Stmt) {
	if st == nil {
		return
	}
	if st.Coprocess || st.Disown {
		s.unsure("it is written for another shell")
	}
	first := len(s.out.Parts)
	begin := first
	s.command(st.Cmd)
	s.inDir = s.inDir && !st.Negated && !st.Background
	if len(st.Redirs) == 0 {
		return
	}
	if call, ok := st.Cmd.(*syntax.CallExpr); !ok || call == nil || len(s.out.Parts) == first {
		s.add(acphost.CommandPart{Source: s.source(st.Redirs[0], st.Redirs[len(st.Redirs)-1])})
		first = len(s.out.Parts) - 1
	}
	for _, r := range st.Redirs {
		s.redirect(r, first)
		if r.Op != syntax.RdrOut && r.Op != syntax.DplOut && r.Op != syntax.AppOut {
			s.refed(begin)
		}
	}
}

// refed records that the standard input of the parts from one on comes from elsewhere than from a pipe.
func (s *scan) refed(first int) {
	if s.given == nil {
		s.given = map[int]bool{}
	}
	for n := first + 1; n <= len(s.out.Parts); n++ {
		s.given[n] = true
	}
}

// redirect records what a redirection reads or writes, as of a part.
func (s *scan) redirect(r *syntax.Redirect, part int) {
	for _, w := range []*syntax.Word{r.Hdoc, r.Word} {
		if w != nil {
			s.inner(w)
		}
	}
	writes, reads := false, false
	switch r.Op {
	case syntax.RdrIn:
		reads = true
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	case syntax.DplIn, syntax.DplOut:
		if w := s.expand(r.Word); len(w) == 1 && !w[0].Open && isDescriptor(w[0].Text) {
			return
		}
		writes = true
	case syntax.RdrInOut:
		writes, reads = true, true
	default:
		writes = true
	}
	if part >= len(s.out.Parts) {
		return // beyond the bound
	}
	for _, w := range s.expand(r.Word) {
		switch w.Text {
		case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty":
			if !w.Open {
				continue
			}
		}
		if !s.count(1, len(w.Text)) {
			return
		}
		p := &s.out.Parts[part]
		if writes || strings.HasPrefix(w.Text, "/dev/tcp/") || strings.HasPrefix(w.Text, "/dev/udp/") {
			p.Writes = append(p.Writes, w.CommandWord)
		}
		if reads {
			p.Reads = append(p.Reads, w.CommandWord)
		}
	}
}

// isDescriptor reports whether >&word duplicates a descriptor.
func isDescriptor(word string) bool {
	word = strings.TrimSuffix(word, "-")
	return strings.Trim(word, "0123456789") == ""
}

// command reads a command.
func (s *scan) command(cmd syntax.Command) {
	first := len(s.out.Parts)
	switch c := cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		s.call(c)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			s.stmts(c.Cond)
			s.stmts(c.Then)
		}
	case *syntax.WhileClause:
		s.repeated(func() {
			s.stmts(c.Cond)
			s.stmts(c.Do)
		})
	case *syntax.ForClause:
		s.inner(c.Loop)
		if loop, ok := c.Loop.(*syntax.WordIter); ok {
			s.assigned(loop.Name.Value, s.source(loop, loop))
		}
		s.iterated(c.Loop)
		s.repeated(func() { s.stmts(c.Do) })
	case *syntax.CaseClause:
		s.inner(c.Word)
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				s.inner(p)
			}
			s.stmts(item.Stmts)
		}
	case *syntax.Block:
		s.stmts(c.Stmts)
	case *syntax.Subshell:
		s.apart(func() { s.stmts(c.Stmts) })
	case *syntax.BinaryCmd:
		feed := s.feed
		switch s.stmt(c.X); c.Op {
		case syntax.Pipe:
			s.feed = span{first, len(s.out.Parts)}
		case syntax.PipeAll: // messages, too
			s.feed = span{}
		}
		s.inDir = s.inDir && c.Op == syntax.AndStmt
		s.stmt(c.Y)
		s.feed = feed
		s.inDir = s.inDir && c.Op == syntax.AndStmt
	case *syntax.FuncDecl:
		s.repeated(func() { s.stmt(c.Body) })
	case *syntax.TimeClause:
		s.stmt(c.Stmt)
	case *syntax.CoprocClause:
		s.stmt(c.Stmt)
	case *syntax.DeclClause:
		s.declare(c)
	case *syntax.ArithmCmd, *syntax.TestClause, *syntax.LetClause:
		s.inner(c)
		if text := s.source(c, c); strings.Contains(text, "'") && hasSubstitution(text) {
			s.unsure("it computes with text that has a command in it")
		}
	default:
		s.unsure("it is written for another shell")
	}
}

// hasSubstitution reports whether a text would run something if a shell were to compute with it.
func hasSubstitution(text string) bool {
	return strings.Contains(text, "$(") || strings.Contains(text, "`") || strings.Contains(text, "${")
}

// inner reads the commands in the words of a node.
func (s *scan) inner(n syntax.Node) {
	if n == nil {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		var list []*syntax.Stmt
		switch n := n.(type) {
		case *syntax.CmdSubst:
			if n.ReplyVar {
				s.unsure("it is written for another shell")
			}
			list = n.Stmts
		case *syntax.ProcSubst:
			list = n.Stmts
		case *syntax.ParamExp:
			if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				s.set(n.Param.Value, anywhere)
			}
			if n.Exp != nil && n.Exp.Op == syntax.OtherParamOps || n.Flags != nil {
				s.unsure("it expands the value of a variable once more")
			}
			if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) && n.Param != nil {
				if n.Excl {
					s.unsure("which variable it sets is not written out")
				}
				s.assigned(n.Param.Value, s.source(n, n))
			}
			return true
		case *syntax.ExtGlob:
			s.unsure("it has an extended glob in it, which other shells read differently")
			return true
		default:
			return true
		}
		s.apart(func() { s.stmts(list) })
		return false
	})
}

// declare reads export and the like.
func (s *scan) declare(c *syntax.DeclClause) {
	part := acphost.CommandPart{Source: s.source(c, c), Words: []acphost.CommandWord{{Text: c.Variant.Value, Source: c.Variant.Value}}}
	for _, a := range c.Args {
		s.inner(a)
		s.holdsValue(a, true)
		s.lost = s.lost || c.Variant.Value == "nameref" || a.Name == nil && c.Variant.Value != "export"
		text := s.source(a, a)
		w := acphost.CommandWord{Text: text, Source: text, Open: true}
		switch {
		case a.Array != nil || a.Index != nil:
		case a.Value == nil && a.Name != nil:
			w.Text, w.Open = a.Name.Value, false
		case a.Value != nil:
			if v := s.expand(a.Value); len(v) == 1 {
				w.Text, w.Open = v[0].Text, v[0].Open
				if a.Name != nil {
					w.Text = a.Name.Value + "=" + w.Text
				}
			}
		}
		if hasSubstitution(w.Text) && !w.Open {
			s.unsure(c.Variant.Value + " computes with text that has a command in it")
		}
		if _, _, sets := strings.Cut(w.Text, "="); sets {
			if runs := s.sets(w.Text); len(runs) > 0 {
				part.Runs = append(part.Runs, runs...)
				part.Options = append(part.Options, acphost.CommandOption{Word: len(part.Words), Name: text, Does: doesSet})
			}
		} else if w.Open || c.Variant.Value != "export" && strings.HasPrefix(w.Text, "-") && strings.Contains(w.Text, "n") {
			part.Runs = append(part.Runs, acphost.CommandWord{Open: true, Source: text}) // another name for a variable
			part.Options = append(part.Options, acphost.CommandOption{Word: len(part.Words), Name: text, Does: doesSet})
		}
		part.Words = append(part.Words, w)
	}
	s.add(part)
}

// call reads a simple command.
func (s *scan) call(c *syntax.CallExpr) {
	var part acphost.CommandPart
	part.Source = s.source(c, c)
	for _, a := range c.Assigns {
		s.inner(a)
		s.holdsValue(a, len(c.Args) == 0)
		set := s.source(a, a)
		if a.Array == nil && a.Index == nil && !a.Append && a.Name != nil {
			if a.Value == nil {
				set = a.Name.Value + "="
			} else if v := s.expand(a.Value); len(v) == 1 && !v[0].Open {
				set = a.Name.Value + "=" + v[0].Text
			}
		}
		part.Sets = append(part.Sets, set)
	}
	var words []word
	for _, w := range c.Args {
		s.inner(w)
		words = append(words, s.expand(w)...)
	}
	s.run(part, words)
}

// add adds a part and returns its number, counted from 1, or 0 beyond the bound.
func (s *scan) add(p acphost.CommandPart) int {
	bytes := 0
	for _, w := range p.Words {
		bytes += len(w.Text)
		s.holds = s.holds || !w.Open && hasSubstitution(w.Text)
	}
	if len(s.out.Parts) >= maxParts {
		s.unsure(tooMuch)
		return 0
	}
	if !s.count(1+len(p.Words), bytes) {
		return 0
	}
	if p.By == 0 {
		p.By, p.At = s.by.part, s.by.at
	}
	for _, set := range p.Sets {
		p.Runs = append(p.Runs, s.sets(set)...)
	}
	p.Dir, p.In = s.dir, append(append([]acphost.CommandWord(nil), s.in...), p.In...)
	s.out.Parts = append(s.out.Parts, p)
	return len(s.out.Parts)
}
