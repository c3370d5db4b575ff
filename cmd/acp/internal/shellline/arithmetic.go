package shellline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Shells compute with the values of variables, and with those of variables that these name: of a[$(touch x)] they
// run the command. So a line is only harmless if what it computes with is written out, as numbers.

// computesOpen reports whether a node computes with anything but numbers.
func computesOpen(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.ArithmExp:
		return !areNumbers(n.X)
	case *syntax.ArithmCmd:
		return !areNumbers(n.X)
	case *syntax.LetClause:
		return !areNumbers(n.Exprs...)
	case *syntax.CStyleLoop:
		return !areNumbers(n.Init, n.Cond, n.Post)
	case *syntax.ParamExp:
		index, _ := n.Index.(*syntax.Word)
		all := index != nil && (index.Lit() == "@" || index.Lit() == "*")
		return !all && !areNumbers(n.Index) || n.Slice != nil && !areNumbers(n.Slice.Offset, n.Slice.Length)
	case *syntax.Assign:
		return !areNumbers(n.Index)
	case *syntax.ArrayElem:
		return !areNumbers(n.Index)
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			return !isCount(n.X) || !isCount(n.Y)
		}
	case *syntax.UnaryTest:
		switch n.Op {
		case syntax.TsFdTerm:
			return !isCount(n.X)
		case syntax.TsVarSet, syntax.TsRefVar:
			w, _ := n.X.(*syntax.Word)
			return w == nil || !isName(w.Lit())
		}
	}
	return false
}

// areNumbers reports whether expressions are of numbers and operators only.
func areNumbers(list ...syntax.ArithmExpr) bool {
	for _, x := range list {
		switch x := x.(type) {
		case nil:
		case *syntax.Word:
			if x != nil && !isCount(x) {
				return false
			}
		case *syntax.BinaryArithm:
			if !areNumbers(x.X, x.Y) {
				return false
			}
		case *syntax.UnaryArithm:
			if !areNumbers(x.X) {
				return false
			}
		case *syntax.ParenArithm:
			if !areNumbers(x.X) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// isCount reports whether a node is a word that is a number, or what a shell counts, as $#, $? and ${#x}.
func isCount(n syntax.Node) bool {
	w, _ := n.(*syntax.Word)
	if w == nil || len(w.Parts) == 0 {
		return false
	}
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if !isDecimal(strings.TrimPrefix(p.Value, "-")) {
				return false
			}
		case *syntax.ParamExp:
			if nameOf(p) != "#" {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// isDecimal reports whether a text is of digits.
func isDecimal(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// What test and [ do with words. Those that shells may compute with stand between numbers only.
const (
	testsFile   = "-a -b -c -d -e -f -g -h -k -n -p -r -s -u -w -x -z -G -L -N -O -S"
	testsTwo    = "= == != -nt -ot -ef"
	testsNumber = "-eq -ne -lt -le -gt -ge"
)

// harmlessTest reports whether test or [ computes with nothing but numbers. With words that are not known it must be
// one test, so that none of them is taken for an operator.
func harmlessTest(words []word) bool {
	if base(words[0].Text) == "[[" { // a TestClause in shells that compute
		return true
	}
	list := words[1:]
	if n := len(list); base(words[0].Text) == "[" && n > 0 {
		list = list[:n-1]
	}
	open, computes := false, false
	for _, w := range list {
		open = open || w.Open
		computes = computes || !w.Open && (hasWhole(testsNumber, w.Text) || hasWhole("-v -R -t", w.Text))
	}
	number := func(w word) bool {
		w.Text = strings.TrimPrefix(w.Text, "-")
		return isNumber(w)
	}
	if len(list) > 0 && list[0].Text == "!" && !list[0].Open {
		list = list[1:]
	}
	if !open && !computes {
		return true
	}
	for _, w := range list {
		if w.split || isGlob(w) {
			return false
		}
	}
	switch len(list) {
	case 1:
		return true
	case 2:
		return !list[0].Open && (hasWhole(testsFile, list[0].Text) || list[0].Text == "-t" && number(list[1]))
	case 3:
		two := !list[1].Open && hasWhole(testsTwo, list[1].Text)
		return two && !computes || !list[1].Open && hasWhole(testsNumber, list[1].Text) && number(list[0]) && number(list[2])
	}
	return false
}

// tellsNumber reports whether a command of the shell that takes a number gets one.
func tellsNumber(words []word) bool {
	return !slices.ContainsFunc(words[1:], func(w word) bool { return !isNumber(w) })
}

// isNumber reports whether a word is one of digits, or what a shell counts.
func isNumber(w word) bool {
	return !w.split && (!w.Open && isDecimal(w.Text) || w.Open && len(w.Pieces) == 1 && w.Pieces[0].Name == "#")
}

// harmlessPrintf reports whether printf prints texts that are not known as texts: of numbers some shells compute the
// value.
func harmlessPrintf(words []word) bool {
	if len(words) < 2 || words[1].Open || strings.HasPrefix(words[1].Text, "-") {
		return false
	}
	texts := true
	format := strings.ReplaceAll(words[1].Text, "%%", "")
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		for i++; i < len(format) && strings.IndexByte("-+ #.0123456789", format[i]) >= 0; i++ {
		}
		texts = texts && i < len(format) && strings.IndexByte("sbqc", format[i]) >= 0
	}
	for _, w := range words[2:] {
		if !texts && (w.Open || !isDecimal(strings.NewReplacer(".", "", "-", "").Replace(w.Text))) {
			return false
		}
	}
	return true
}
