package shellline

import "strings"

// Shells. Those that are not Bourne shells have a language of their own.
var (
	bourne = set("sh bash dash ash zsh ksh ksh93 mksh rbash rzsh posh yash")
	shells = union(bourne, set("fish csh tcsh elvish nu xonsh pwsh powershell rc es"))
)

// A language is a program that runs text which this package does not read.
type language struct {
	names  string
	source string          // where its options are documented
	text   string          // letters of options that are followed by text to run
	long   map[string]bool // options that are
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

var texts = func() map[string]*language {
	m := map[string]*language{}
	for i := range languages {
		for name := range strings.FieldsSeq(languages[i].names) {
			m[name] = &languages[i]
		}
	}
	return m
}()

func set(list string) map[string]bool {
	m := map[string]bool{}
	for s := range strings.FieldsSeq(list) {
		m[s] = true
	}
	return m
}

func union(a, b map[string]bool) map[string]bool {
	for s := range a {
		b[s] = true
	}
	return b
}

// known are programs that run nothing of what their words say, or that are looked at elsewhere; the
// words of others may be commands.
var known = union(set(`
	. : [ [[ alias bg break cd chdir continue dirs disown echo enable exit export false fg getopts hash help history
	jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt source
	suspend test times trap true type typeset declare ulimit umask unalias unset wait eval fc bind complete compgen

	b2sum base32 base64 basename basenc cat chcon chgrp chmod chown cksum comm cp csplit cut date dd df dir dircolors
	dirname du expand expr factor fmt fold groups head hostid hostname id install join link ln logname ls md5sum mkdir
	mkfifo mknod mktemp mv nl nproc numfmt od paste pathchk pinky pr printenv ptx readlink realpath rm rmdir seq sha1sum
	sha224sum sha256sum sha384sum sha512sum shasum shred shuf sleep split stat stty sum sync tac tail tee touch tr
	truncate tsort tty uname unexpand uniq unlink uptime users vdir wc whereis which who whoami yes

	file tree locate diff diff3 cmp patch strings hexdump xxd column rev jq yq xmllint iconv dos2unix unix2dos
	gzip gunzip zcat bzip2 bunzip2 bzcat xz unxz xzcat zstd unzstd zip unzip 7z cpio ar grep egrep fgrep zgrep ag ack
	bc ps top htop pgrep pkill killall lsof free vmstat iostat ss netstat ip ifconfig ping dig nslookup host whois
	traceroute nc telnet wget curl gh glab hub mount umount lsblk blkid uuidgen openssl gpg ssh-keygen md5 mdls sw_vers
	gofmt goimports golangci-lint staticcheck govulncheck gopls gotestsum dlv benchstat protoc buf
	eslint prettier tsc tsx vite vitest jest mocha webpack rollup esbuild biome oxlint turbo next
	pytest ruff black isort mypy pylint flake8 pyright pip pip3 pipx tox nox coverage
	rustc rustfmt clippy-driver rustup gcc g++ cc c++ clang clang++ clang-format clang-tidy ld nm objdump readelf
	cmake ctest meson ninja bazel mvn gradle gradlew javac java kotlinc dotnet composer phpunit rspec rubocop bundle gem
	terraform helm ansible-playbook aws gcloud az heroku systemctl journalctl service brew apt apt-get apt-cache dpkg
	dnf yum rpm pacman apk snap sqlite3 psql mysql redis-cli mongosh shellcheck shfmt hadolint markdownlint cloc tokei
	pandoc convert ffmpeg open xdg-open pbcopy pbpaste tput clear reset nano mysqldump pg_dump acp
`), func() map[string]bool {
	m := map[string]bool{}
	for name := range shells {
		m[name] = true
	}
	for i := range languages {
		for name := range strings.FieldsSeq(languages[i].names) {
			m[name] = true
		}
	}
	return m
}())
