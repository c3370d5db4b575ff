package shellline

import (
	"path"
	"slices"
	"strings"
)

// A language is a program that runs text which this package cannot read.
type language struct {
	names  string
	source string          // where its options are documented
	text   string          // letters of options that are followed by text to run
	long   map[string]bool // options with such text
	valued map[string]bool // options with a value
	ends   map[string]bool // options after which nothing is read from standard input
	words  map[string]bool // first operands that run text
	stdin  bool            // without operands it runs its standard input
}

var languages = []language{
	{names: "python python2 python3 pypy pypy3 ipython", source: "https://docs.python.org/3/using/cmdline.html", text: "c", valued: set("-W -X --check-hash-based-pycs"), ends: set("-m -V -VV --version -h -? --help"), stdin: true},
	{names: "perl", source: "https://perldoc.perl.org/perlrun", text: "eE", valued: set("-I -m -M"), ends: set("-v -V -h -?"), stdin: true},
	{names: "ruby", source: "https://docs.ruby-lang.org/en/master/ruby/options_md.html", text: "e", valued: set("-I -r -C -E"), ends: set("-v --version -h --help"), stdin: true},
	{names: "node nodejs", source: "https://nodejs.org/api/cli.html", text: "ep", long: set("--eval --print -pe"), valued: set("-r -C --require --import --loader --env-file --conditions"), ends: set("-v --version -h --help --test"), stdin: true},
	{names: "tsx ts-node", source: "https://tsx.is/, https://typestrong.org/ts-node/docs/options", text: "ep", long: set("--eval --print -pe"), valued: set("-r --require"), stdin: true},
	{names: "deno", source: "https://docs.deno.com/runtime/reference/cli/", words: set("eval repl")},
	{names: "bun", source: "https://bun.com/docs/runtime", text: "ep", long: set("--eval --print"), words: set("exec repl")},
	{names: "php", source: "https://www.php.net/manual/en/features.commandline.options.php", text: "rBRE", long: set("--run --process-begin --process-code --process-end"), valued: set("-c -d -z -f -t -S"), ends: set("-v -i -m -h -f -S --version --info --modules --help --file --server"), stdin: true},
	{names: "lua luajit lua5.1 lua5.3 lua5.4", source: "https://www.lua.org/manual/5.4/manual.html#7", text: "e", valued: set("-l"), ends: set("-v"), stdin: true},
	{names: "rscript r", source: "https://cran.r-project.org/doc/manuals/r-release/R-intro.html", text: "e", ends: set("--version --help -f"), stdin: true},
	{names: "julia", source: "https://docs.julialang.org/en/v1/manual/command-line-interface/", text: "eEL", long: set("--eval --print --load"), ends: set("-v --version -h --help"), stdin: true},
	{names: "elixir iex", source: "https://hexdocs.pm/elixir/", text: "e", long: set("--eval --rpc-eval"), ends: set("-v --version -h --help"), stdin: true},
	{names: "erl", source: "https://www.erlang.org/doc/apps/erts/erl_cmd.html", long: set("-eval -run -s"), stdin: true},
	{names: "osascript", source: "osascript(1)", text: "e", valued: set("-l -s"), stdin: true},
	{names: "groovy scala", source: "https://groovy-lang.org/groovysh.html", text: "e", stdin: true},
	{names: "tclsh wish expect", source: "expect(1)", text: "c", stdin: true},
	{names: "jshell ghci swift racket sbcl clisp gforth ocaml utop kotlin scheme mit-scheme chicken csi janet fennel swipl irb pry coffee lsc livescript raku perl6 rakudo octave maxima", source: "their manuals: expressions on the line or from standard input", text: "eEgpP", long: set("--eval --load --execute"), ends: set("--version --help"), stdin: true},
	{names: "guile gjs sage qjs quickjs jsc d8 js", source: "guile(1), gjs(1), sage(1)", text: "ce", long: set("--command --eval"), ends: set("--version --help"), stdin: true},
	{names: "clojure clj bb", source: "https://clojure.org/reference/clojure_cli, https://book.babashka.org/", text: "eMXTP", long: set("--eval --main --exec"), stdin: true},
	{names: "ghc runghc runhaskell", source: "https://downloads.haskell.org/ghc/latest/docs/users_guide/flags.html", text: "eF", long: set("-pgmF -pgmP -pgmc -pgml -fplugin -plugin-package")},
	{names: "dc", source: "dc(1)", text: "e", long: set("--expression"), valued: set("-f"), ends: set("-V -h -f --version --help"), stdin: true},
	{names: "m4 gm4", source: "https://www.gnu.org/software/m4/manual/m4.html#Invoking-m4", text: "Di", long: set("--define --interactive"), valued: set("-I -U -B -H -L -N -S -T -d -l -o -t"), ends: set("--version --help"), stdin: true},
	{names: "gnuplot", source: "gnuplot(1)", text: "e", ends: set("--version -V --help -h"), stdin: true},
	{names: "crystal", source: "https://crystal-lang.org/reference/man/crystal/", words: set("eval i play")},
	{names: "rake", source: "https://ruby.github.io/rake/doc/command_line_usage_rdoc.html", text: "eEp", long: set("--execute --execute-print --execute-continue"), valued: set("-f -I -r -R -j")},
	{names: "mongosh mongo", source: "https://www.mongodb.com/docs/mongodb-shell/reference/options/", long: set("--eval --shell"), ends: set("--version --help"), stdin: true},
	{names: "latexmk", source: "latexmk(1)", text: "e", long: set("-latex -pdflatex -lualatex -xelatex -dvipdf -usepretex -pretex")},
	{names: "gs", source: "https://ghostscript.readthedocs.io/en/latest/Use.html", text: "c", stdin: true},
	{names: "ftp sftp lftp", source: "ftp(1), sftp(1), lftp(1): ! runs a command", text: "ecbf", stdin: true},
	{names: "sqlplus", source: "https://docs.oracle.com/en/database/oracle/oracle-database/23/sqpug/", ends: set("-V -H"), stdin: true},
}

var texts = byName(languages, func(l *language) string { return l.names })

// interpreter examines a program that runs text which this package does not read.
func (s *scan) interpreter(t *language, n int, words []word) {
	name := shown(words[0])
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch {
		case w.mayBeOption():
			s.unsure("what " + name + " runs is not written out")
			return
		case w.Open:
			s.after(t, words, i)
			return // the name of a file
		case w.Text == "-":
			s.unsure(name + " reads what it runs")
			return
		case len(w.Text) < 2 || w.Text[0] != '-':
			if t.words[w.Text] {
				s.unsure(name + " " + w.Text + " runs text")
			}
			if isInput(w.Text) {
				s.unsure(name + " reads what it runs")
			}
			s.after(t, words, i)
			return
		case w.Text == "--":
			if s.after(t, words, i); i+1 < len(words) {
				return
			}
			continue
		}
		spelled, value := splitOption(w.Text)
		if strings.HasPrefix(w.Text, "--") || t.long[spelled] || t.valued[spelled] || t.ends[spelled] {
			switch {
			case t.long[spelled]:
				s.unsure(name + " " + spelled + " runs text")
				return
			case t.ends[spelled]:
				s.module(n, words, i, 2)
				return
			case t.valued[spelled] && !value:
				i++
			}
			continue
		}
	letters:
		for j, c := range w.Text[1:] {
			switch {
			case strings.ContainsRune(t.text, c):
				s.unsure(name + " -" + string(c) + " runs text")
				return
			case t.ends["-"+string(c)]:
				s.module(n, words, i, j+2)
				return
			case t.valued["-"+string(c)]:
				if j+2 == len(w.Text) {
					i++
				}
				break letters
			}
		}
	}
	if t.stdin {
		s.unsure(name + " reads what it runs")
	}
}

// after examines the words from one on that is an operand, or the value of the option before it.
func (s *scan) after(t *language, words []word, i int) {
	if before := words[i-1].Text; len(before) < 2 || before[0] != '-' || strings.Contains(before, "=") {
		return
	}
	for _, w := range words[i+1:] {
		spelled, _ := splitOption(w.Text)
		if w.mayBeOption() || t.long[spelled] || len(w.Text) > 1 && w.Text[0] == '-' && w.Text[1] != '-' && strings.ContainsAny(w.Text, t.text) {
			s.unsure(shown(words[0]) + " may run text")
			return
		}
	}
}

// module examines python -m: some modules run text, others are programs. The name of the module begins
// at a letter of a word, or is the next word.
func (s *scan) module(n int, words []word, i, at int) {
	name := words[i].Text[min(at, len(words[i].Text)):]
	if name == "" && i+1 < len(words) {
		i++
		name = words[i].Text
	}
	switch name {
	case "timeit", "pdb", "code", "trace", "cProfile", "profile", "runpy", "asyncio", "sqlite3", "IPython", "tarfile", "zipfile", "shutil":
		s.unsure("the module " + name + " runs text")
	}
	if toolOf()[name] != nil || len(moreOf()[name]) > 0 {
		inner := slices.Clone(words[i:])
		inner[0].Text = name
		for _, o := range optionsOf(inner, 0) {
			o.Word += i
			s.part(n).Options = append(s.part(n).Options, o)
		}
	}
}

// isInput reports whether a file is the input of a program, or is passed to it.
func isInput(file string) bool {
	file = path.Clean(file)
	return file == "/dev/stdin" || file == "/dev/tty" || strings.HasPrefix(file, "/dev/fd/") || strings.HasPrefix(file, "/proc/")
}
