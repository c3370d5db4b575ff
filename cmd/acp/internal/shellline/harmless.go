package shellline

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/goacp/acp/acphost"
)

// A reader is a program that does nothing but read and print, with these options and operands. What is not
// written here is not known to be harmless: an option that runs, loads or writes something is in no list, nor is
// one that reads a file which its value names.
type reader struct {
	names  string
	source string // where its options are documented

	letters string // options of one letter without a value
	values  string // options of one letter with a value, joined or in the next word, wherever the program is known
	joined  string // options of one letter whose value, if any, is joined
	long    string // long options without a value; with = at the end those that may have one joined
	next    string // long options whose value is joined or in the next word
	number  bool   // -20 is an option
	single  bool   // long options have one dash, as those of find, and may stand among the operands
	any     bool   // it has no options that matter: all words are operands
	first   bool   // options stand before the operands, as POSIX has it

	operands string // the kinds of the operands, one letter each; the last one is for all that follow
	given    string // letters and long options with which the first operand is like the others, as -e of grep
	least    int    // operands at least
	none     string // the kind of what is read without operands that name files; "" is nothing
	deep     string // letters and long options with which directories are read as a whole
	follow   bool   // links in them are followed
	only     string // a long option whose values are the names of files that are read

	settings string                  // as in [acphost.CommandReads]
	words    func(words []word) bool // further conditions
}

// The kinds of operands: text, a file that is read, one whose name or properties are shown, a directory that is
// read as a whole, one whose names are shown as a whole, what test looks at, a revision or a file of git, and a
// package of go. An operand of another kind is not harmless.
const (
	kindText    = 't'
	kindFile    = 'f'
	kindEntry   = 'n'
	kindTree    = 'd'
	kindEntries = 'l'
	kindTest    = 'x'
	kindGit     = 'r'
	kindGo      = 'g'
	kindNone    = '-'
)

var readerOf = byName(readers, func(r *reader) string { return r.names })

// harmless returns what a command reads if it is known to do nothing else. It is one of the program itself:
// what it runs is a part of its own.
func harmless(part *acphost.CommandPart, words []word) *acphost.CommandReads {
	program := words[0]
	if program.Open || !isStandard(program.Text) {
		return nil
	}
	name := path.Base(program.Text)
	switch {
	case passing()[name] && (part.Wrapper || !bourne()[name]):
		return passes(part, name, words)
	case name == "git":
		return harmlessGit(part, words)
	case name == "go":
		return harmlessGo(part, words)
	case name == "find" || name == "gfind":
		return harmlessFind(part, words)
	}
	r := readerOf()[name]
	if r == nil || len(part.Options) > 0 || len(part.In) > 0 {
		return nil
	}
	return r.reads(words)
}

// passing are programs that do nothing but run another one in this process's place. What that does counts. One
// that keeps it running, or that writes what it prints to a file, is none.
var passing = setOf("command builtin exec time gtime timeout gtimeout nice ionice stdbuf env xargs gxargs sh bash dash")

// passes returns what a program reads that runs another one.
func passes(part *acphost.CommandPart, name string, words []word) *acphost.CommandReads {
	if !part.Wrapper || len(part.Options) > 0 {
		if hasWhole("command builtin", name) && len(words) > 2 && hasWhole("-v -V", words[1].Text) {
			return new(acphost.CommandReads)
		}
		return nil
	}
	if bourne()[name] {
		if strings.Trim(words[1].Text, "-celux") != "" || len(words) < 3 {
			return nil
		}
		return new(acphost.CommandReads)
	}
	at, _, _, ok := wrapperOf()[name].program(words)
	if !ok || at < 1 {
		return nil
	}
	for _, w := range words[1:at] {
		t := w.Text
		option := strings.HasPrefix(t, "-")
		letters := option && !strings.HasPrefix(t, "--")
		switch {
		case option && (name == "env" || name == "exec"): // they change what the environment says
			return nil
		case !strings.HasSuffix(name, "xargs"):
		case strings.HasPrefix(t, "--arg"), strings.HasPrefix(t, "--d"), letters && strings.ContainsAny(t, "ad"):
			return nil // it reads a file, or cuts names
		}
	}
	return new(acphost.CommandReads)
}

// reads returns what a program reads with some words, or nil if it is not known to do nothing else.
func (r *reader) reads(words []word) *acphost.CommandReads {
	a := arguments{reader: r}
	if !a.parse(words[1:]) || r.words != nil && !r.words(words) {
		return nil
	}
	kinds := r.operands
	if a.given && kinds != "" {
		kinds = kinds[1:]
	}
	out := &acphost.CommandReads{Settings: r.settings}
	if len(a.operands) < r.least {
		return nil
	}
	files := 0
	for i, o := range a.operands {
		kind := byte(kindNone)
		if len(kinds) > 0 {
			kind = kinds[min(i, len(kinds)-1)]
		}
		if strings.HasSuffix(kinds, string(rune(kindNone))) && (o.split || isGlob(o.word) && i+1 >= len(kinds)-1) {
			return nil // it may be more than one
		}
		if kind == kindText && o.split && strings.Trim(kinds, string(rune(kindText))) != "" {
			return nil // those that follow are files
		}
		if !a.add(out, o, kind) {
			return nil
		}
		if kind != kindText {
			files++
		}
	}
	for _, o := range a.later {
		if strings.Trim(r.operands, string(rune(kindText))) != "" && !a.add(out, o, kindFile) {
			return nil
		}
	}
	if files == 0 && (r.none != "" || a.deep) {
		kind := byte(kindTree)
		if r.none != "" {
			kind = r.none[0]
		}
		a.add(out, operand{word: word{CommandWord: acphost.CommandWord{Text: ".", Source: "."}}, after: true}, kind)
	}
	return out
}

// arguments are the words of a command, taken apart.
type arguments struct {
	reader                    *reader
	operands                  []operand
	later                     []operand // values behind operands, which may be some
	given, deep, follow, wide bool
	only, seen                []string
}

// An operand is a word that is not an option. after says that -- stands before it.
type operand struct {
	word
	after bool
}

// parse takes words apart. It reports false if one is not known.
func (a *arguments) parse(words []word) bool {
	r := a.reader
	for i := 0; i < len(words); i++ {
		w := words[i]
		t := w.Text
		switch {
		case r.any || isFound(w.CommandWord):
			a.operands = append(a.operands, operand{w, true})
		case w.split:
			return false // it may be several
		case w.Open && w.mayBeOption() && !isGlob(w):
			return false
		case t == "--" && !w.Open:
			for _, w := range words[i+1:] {
				a.operands = append(a.operands, operand{w, true})
			}
			return true
		case len(t) < 2 || t[0] != '-':
			a.operands = append(a.operands, operand{w, false})
			if r.first {
				for _, w := range words[i+1:] {
					a.operands = append(a.operands, operand{w, true})
				}
				return true
			}
		case w.Open && !strings.Contains(t, "="):
			return false
		case r.number && strings.Trim(t[1:], "0123456789") == "":
		case t[1] == '-' || r.single:
			name, value, joined := strings.Cut(t, "=")
			switch {
			case hasWhole(r.long, t), hasWhole(r.long, name+"=") && (joined || mayLack()[name] && !hasWhole(r.next, name)):
			case hasWhole(r.next, name) && !joined && i+1 < len(words):
				i++
				value = words[i].Text
				if !a.value(words[i]) {
					return false
				}
			case hasWhole(r.next, name) && joined:
			default:
				return false
			}
			if w.Open {
				if !isText(w) {
					return false
				}
				value = globOf(w, len(name)+1)
			}
			a.saw(name, value)
		default:
			n, ok := a.letters(words[i:])
			if !ok {
				return false
			}
			i += n
		}
	}
	return true
}

// letters reads options of one letter each, and returns how many words follow that are values.
func (a *arguments) letters(words []word) (n int, ok bool) {
	t := words[0].Text
	if words[0].Open {
		return 0, false
	}
	for j := 1; j < len(t); j++ {
		letter := t[j : j+1]
		switch {
		case strings.Contains(a.reader.letters, letter):
			a.saw("-"+letter, "")
		case strings.Contains(a.reader.joined, letter), strings.Contains(a.reader.values, letter) && j+1 < len(t):
			a.saw("-"+letter, t[j+1:])
			return 0, true
		case strings.Contains(a.reader.values, letter) && len(words) > 1 && a.value(words[1]):
			a.saw("-"+letter, words[1].Text)
			return 1, true
		default:
			return 0, false
		}
	}
	return 0, true
}

// saw records an option.
func (a *arguments) saw(name, value string) {
	r := a.reader
	a.seen = append(a.seen, name)
	a.given = a.given || hasWhole(r.given, name)
	a.deep = a.deep || hasWhole(r.deep, name)
	a.follow = a.follow || name == "-R" && hasWhole(r.deep, name) || name == "--dereference-recursive"
	switch {
	case r.only == "":
	case name == r.only && value != "" && !strings.ContainsAny(value, "[\\/") && strings.LastIndex(value, "*") < 1:
		a.only = append(a.only, value)
	case name == r.only, name == "--exclude" && len(a.only) == 0: // all but those
		a.wide = true
	}
}

// add adds what an operand is. It reports false if that is not harmless.
func (a *arguments) add(out *acphost.CommandReads, o operand, kind byte) bool {
	f := acphost.CommandFile{CommandWord: o.CommandWord, Options: !o.after}
	switch {
	case isFound(o.CommandWord) && kind != kindNone && kind != kindText: // see passOn
		f.Entry, f.Deep = kind == kindEntry || kind == kindEntries, a.deep
		out.Files = append(out.Files, f)
		return kind == kindFile || f.Entry
	case kind == kindTest && !strings.Contains(o.Text, "/") && !strings.ContainsAny(o.Text[:min(1, len(o.Text))], ".~"),
		kind == kindGo && !strings.ContainsAny(o.Text[:min(1, len(o.Text))], "./"):
		return isText(o.word)
	case o.Text == "-" && !o.Open, kind == kindText && isText(o.word) && !isGlob(o.word):
		return true
	case kind == kindText && !isGlob(o.word), kind == kindNone:
		return false
	case kind == kindGit:
		return addRevision(out, o)
	case kind == kindTest || kind == kindGo:
		f.Entry, f.Text = true, strings.TrimSuffix(f.Text, "...")
	case o.Text == "/dev/null" || o.Text == "/dev/stdin":
		return !o.Open
	case kind == kindEntry || kind == kindEntries:
		f.Entry, f.Deep = true, kind == kindEntries
	case kind == kindTree || a.deep:
		if f.Deep, f.Follow = true, a.follow || a.reader.follow; !a.wide {
			f.Only = a.only
		}
	}
	out.Files = append(out.Files, f)
	return true
}

// mayLack are the long options with a value that may be without one: they do not take the next word.
var mayLack = setOf(`
	--color --colour --classify --follow --check --all-repeated --time --iso-8601 --unified --stat
	--word-diff --color-words --color-moved --find-renames --find-copies --relative --abbrev --dirstat
	--decorate --branches --tags --remotes --pretty --notes --no-walk --ancestry-path --porcelain
	--untracked-files --ignored --column --merged --no-merged --contains --no-contains --points-at
	--abbrev-ref --short --dirty --hash -json`)

// value reports whether a word is the value of an option, and nothing else. After an operand many programs take no
// more options: there it may be an operand, too.
func (a *arguments) value(w word) bool {
	if len(a.operands) > 0 {
		a.later = append(a.later, operand{w, true})
	}
	return !w.split && isText(w) && !isGlob(w)
}

// globOf returns what stands behind some bytes of an open word, with the signs of a glob, or "" if that is not
// known.
func globOf(w word, from int) string {
	var b strings.Builder
	for _, p := range w.Pieces {
		switch {
		case !p.Open:
			b.WriteString(p.Text)
		case p.Name == "*" || p.Name == "?":
			b.WriteString(p.Name)
		default:
			return ""
		}
	}
	return b.String()[min(from, b.Len()):]
}

// isGlob reports whether a word is made of text and of what stands for names of files.
func isGlob(w word) bool {
	if !w.Open || w.Pieces == nil {
		return false
	}
	return !slices.ContainsFunc(w.Pieces, func(p acphost.CommandPiece) bool {
		return p.Open && p.Name != "*" && p.Name != "?"
	})
}

// isText reports whether a word may be printed, or searched for. Which variables may is looked at in acts.
func isText(w word) bool { return !w.Open || w.Pieces != nil }

// plainNames are the names of variables that hold no keys. What others hold is not known.
var plainNames = setOf(`
	HOME PWD OLDPWD USER LOGNAME PATH LANG LANGUAGE SHELL TERM TERM_PROGRAM COLORTERM NO_COLOR TMPDIR
	HOSTNAME HOSTTYPE MACHTYPE OSTYPE UID EUID PPID RANDOM SECONDS LINENO SHLVL BASH_VERSION PIPESTATUS
	COLUMNS LINES EDITOR VISUAL PAGER DISPLAY TZ CI XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME
	XDG_RUNTIME_DIR GOPATH GOROOT GOOS GOARCH GOBIN GOCACHE GOMODCACHE GOTOOLCHAIN GOWORK NODE_ENV NVM_DIR
	VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYTHONPATH JAVA_HOME CARGO_HOME RUSTUP_HOME CC CXX`)

// mayBeKey reports whether the variable of a name may hold a key: it is not one of the line's own, which are in
// lower case, nor known to hold none.
func mayBeKey(name string, own map[string]bool) bool {
	isCount := name != "" && strings.Trim(name, "0123456789#?$!@*-") == ""
	isOwn := own[name] && name == strings.ToLower(name)
	return !isCount && !isOwn && !plainNames()[name] && !strings.HasPrefix(name, "LC_")
}

// ownOf returns the names of the variables that a line sets.
func ownOf(file *syntax.File) map[string]bool {
	own := map[string]bool{}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil && !n.Naked {
				own[n.Name.Value] = true
			}
		case *syntax.WordIter:
			own[n.Name.Value] = true
		case *syntax.CallExpr:
			if len(n.Args) > 0 && n.Args[0].Lit() == "read" {
				for _, w := range n.Args[1:] {
					own[w.Lit()] = true
				}
			}
		}
		return true
	})
	return own
}

// acts records what a line does itself that keeps it from being harmless.
func (s *scan) acts(file *syntax.File) {
	act := func(why string) {
		if s.out.Acts == "" {
			s.out.Acts = why
		}
	}
	own := ownOf(file)
	syntax.Walk(file, func(n syntax.Node) bool {
		if computesOpen(n) {
			act("it computes with what is not written out")
		}
		switch n := n.(type) {
		case *syntax.Stmt:
			if n.Background || n.Coprocess || n.Disown {
				act("it runs something in the background")
			}
		case *syntax.FuncDecl:
			act("it defines a function")
		case *syntax.ProcSubst:
			if n.Op == syntax.CmdOut {
				act("it writes to a program")
			}
		case *syntax.WordIter:
			if !isLocalName(n.Name.Value) {
				act("it sets " + n.Name.Value)
			}
		case *syntax.ParamExp:
			sets := n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull)
			if sets && n.Param != nil && !isLocalName(n.Param.Value) {
				act("it sets " + n.Param.Value)
			}
			if n.Excl || n.Names != 0 || n.Flags != nil || n.Param == nil || mayBeKey(n.Param.Value, own) {
				act("it shows a variable that may hold a key")
			}
		case *syntax.DeclClause:
			if n.Variant.Value != "export" && n.Variant.Value != "local" || len(n.Args) == 0 {
				act("it declares variables")
			}
			for _, a := range n.Args {
				if a.Name == nil || a.Value == nil {
					act("it shows variables")
				}
			}
		}
		return true
	})
}
