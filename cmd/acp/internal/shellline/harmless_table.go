package shellline

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// What many readers have in common.
const (
	coreutils = "https://www.gnu.org/software/coreutils/manual/html_node/"
	askHelp   = "--help --version"
)

// readers are the programs that are known to only read. Each list is of options that were read one by one in the
// manual of the program; what it does not have is asked about.
var readers = []reader{
	// The shell itself.
	{names: "echo : true false sleep", source: "bash(1)", operands: "t", any: true},
	{names: "exit return break continue shift wait", source: "bash(1)", operands: "t", any: true, words: tellsNumber},
	{names: "type which whereis hash", source: "bash(1)", letters: "aptPfs", operands: "t", words: func(w []word) bool { return base(w[0].Text) != "hash" || len(w) == 1 }},
	{names: "printf", source: "bash(1)", operands: "t", any: true, words: harmlessPrintf},
	{names: "pwd", source: "bash(1)", letters: "LP", operands: "-"},
	{names: "cd", source: "bash(1)", letters: "LP", operands: "n-", least: 1, words: func(w []word) bool { return w[len(w)-1].Text != "-" && !isGlob(w[len(w)-1]) }},
	{names: "test [ [[", source: "bash(1)", operands: "x", any: true, words: harmlessTest},
	{names: "read", source: "bash(1)", letters: "r", operands: "t", words: isLocalNames},
	{names: "set", source: "bash(1)", operands: "t", any: true, words: func(w []word) bool {
		return len(w) > 1 && !slices.ContainsFunc(w[1:], func(w word) bool {
			return w.Open || strings.Trim(w.Text, "-+efoux") != "" && w.Text != "pipefail" && w.Text != "errexit" && w.Text != "nounset"
		})
	}},

	// Facts of the system.
	{names: "uname nproc whoami tty groups logname users uptime lscpu", source: coreutils, letters: "amnprsviops", long: "--all " + askHelp, operands: "-"},
	{names: "hostname", source: "hostname(1)", letters: "fsiIdA", long: "--fqdn --short --ip-address --all-ip-addresses --domain", operands: "-"},
	{names: "date", source: coreutils + "date-invocation.html", letters: "uRI", values: "d", long: "--utc --universal --iso-8601= --rfc-3339= --rfc-email " + askHelp, next: "--date", operands: "t-", words: func(w []word) bool {
		return !slices.ContainsFunc(operandsOf(w[1:], "-d --date"), func(o word) bool { return !strings.HasPrefix(o.Text, "+") })
	}},
	{names: "df", source: coreutils + "df-invocation.html", letters: "ahHiklmPT", long: "--human-readable --total --inodes --print-type --local " + askHelp, operands: "n"},
	{names: "free", source: "free(1)", letters: "bkmghtwl", long: "--human --mega --giga --total --wide", operands: "-"},
	{names: "getconf", source: "getconf(1)", letters: "a", operands: "t"},
	{names: "locale", source: "locale(1)", letters: "a", operands: "-"},
	{names: "printenv", source: coreutils, operands: "t", least: 1, words: func(w []word) bool {
		return !slices.ContainsFunc(w[1:], func(w word) bool { return w.Open || mayBeKey(w.Text, nil) || !isName(w.Text) })
	}},
	{names: "ps", source: "ps(1)", operands: "t", any: true, words: harmlessPS},
	{names: "pgrep", source: "pgrep(1)", letters: "aflxivn", values: "uP", operands: "t"},
	{names: "ss netstat", source: "ss(8), netstat(8)", letters: "tuanlpxsr46", operands: "-"},
	{names: "lsof", source: "lsof(8)", letters: "nPt", values: "ips", operands: "-"},

	// Names and properties of files.
	{names: "ls dir", source: coreutils + "ls-invocation.html", letters: "aAbBcCdfFghGiklmnNopqQrRsStuUvxXZ1", operands: "n", none: "n",
		long: "--all --almost-all --author --color= --colour= --directory --classify= --file-type --full-time --format= --group-directories-first --human-readable --si --inode --indicator-style= --numeric-uid-gid --no-group --literal --quote-name --recursive --reverse --size --sort= --time= --time-style= --block-size= --hide= --ignore= --zero " + askHelp, next: "--ignore --hide"},
	{names: "stat", source: coreutils + "stat-invocation.html", letters: "fLtx", values: "c", long: "--dereference --file-system --terse --format= --printf= " + askHelp, next: "--format", operands: "n", least: 1},
	{names: "du", source: coreutils + "du-invocation.html", letters: "0abchkmsSx", values: "Bdt", long: "--all --apparent-size --bytes --total --human-readable --summarize --separate-dirs --si --max-depth= --threshold= --block-size= --exclude= --time= --one-file-system " + askHelp, next: "--exclude --max-depth", operands: "l", none: "l"},
	{names: "tree", source: "tree(1)", letters: "adfisShDpugtrcUCnAFqNQvJX", values: "LIP", long: "--dirsfirst --noreport --gitignore --du --prune --si --inodes --device --filelimit= --charset= --sort= --matchdirs --ignore-case " + askHelp, next: "--filelimit", operands: "l", none: "l"},
	{names: "readlink realpath", source: coreutils, letters: "efmnqsvzLP", long: "--canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --logical --physical --strip --no-symlinks " + askHelp, operands: "n", least: 1},
	{names: "basename dirname", source: coreutils, letters: "az", values: "s", long: "--multiple --suffix= --zero " + askHelp, operands: "t", least: 1},
	{names: "file", source: "file(1)", letters: "biNnLhrsk0", long: "--brief --mime --mime-type --mime-encoding --dereference --no-dereference --raw " + askHelp, operands: "f", least: 1},

	// Contents of files.
	{names: "cat", source: coreutils + "cat-invocation.html", letters: "AbeEnstTuv", long: "--number --number-nonblank --show-all --show-ends --show-tabs --show-nonprinting --squeeze-blank " + askHelp, operands: "f"},
	{names: "tac rev", source: coreutils, letters: "br", values: "s", operands: "f"},
	{names: "head", source: coreutils + "head-invocation.html", letters: "qvz", values: "nc", number: true, long: "--lines= --bytes= --quiet --silent --verbose " + askHelp, next: "--lines --bytes", operands: "f"},
	{names: "tail", source: coreutils + "tail-invocation.html", letters: "fFqvzr", values: "ncs", number: true, long: "--lines= --bytes= --follow= --quiet --silent --verbose --retry " + askHelp, next: "--lines --bytes --sleep-interval", operands: "f"},
	{names: "wc", source: coreutils + "wc-invocation.html", letters: "lwcmL", long: "--lines --words --bytes --chars --max-line-length --total= " + askHelp, operands: "f"},
	{names: "nl", source: coreutils, letters: "p", values: "bdfhilnsvw", long: "--body-numbering= --number-format= --number-width= " + askHelp, operands: "f"},
	{names: "cut", source: coreutils + "cut-invocation.html", letters: "nsz", values: "bcdf", long: "--bytes= --characters= --delimiter= --fields= --only-delimited --complement --output-delimiter= " + askHelp, next: "--delimiter --fields", operands: "f"},
	{names: "paste", source: coreutils, letters: "sz", values: "d", long: "--serial --delimiters= " + askHelp, operands: "f"},
	{names: "join", source: coreutils, letters: "iz", values: "e12t", long: "--header --check-order --nocheck-order " + askHelp, operands: "f"},
	{names: "comm", source: coreutils, letters: "123iz", long: "--check-order --nocheck-order --total --output-delimiter= " + askHelp, operands: "f"},
	{names: "sort", source: coreutils + "sort-invocation.html", letters: "bdfgiMhnRrVcCmsuz", values: "ktS", long: "--unique --reverse --numeric-sort --human-numeric-sort --version-sort --general-numeric-sort --month-sort --ignore-case --ignore-leading-blanks --dictionary-order --stable --check= --merge --key= --field-separator= --zero-terminated --parallel= --random-sort " + askHelp, next: "--key --field-separator", operands: "f"},
	{names: "uniq", source: coreutils + "uniq-invocation.html", letters: "cdDiuz", values: "fsw", first: true, long: "--count --repeated --all-repeated= --unique --ignore-case --skip-fields= --skip-chars= --check-chars= " + askHelp, operands: "f-"},
	{names: "tr", source: coreutils + "tr-invocation.html", letters: "cCdst", long: "--complement --delete --squeeze-repeats --truncate-set1 " + askHelp, operands: "t", least: 1},
	{names: "fold fmt expand unexpand", source: coreutils, letters: "abcstu", values: "w", number: true, long: "--width= --spaces --bytes " + askHelp, operands: "f"},
	{names: "column", source: "column(1)", letters: "txnL", values: "cso", long: "--table --fillrows --separator= --output-separator= " + askHelp, next: "--separator --output-separator", operands: "f"},
	{names: "seq", source: coreutils, letters: "w", values: "sf", long: "--equal-width --separator= --format= " + askHelp, operands: "t", least: 1},
	{names: "expr", source: coreutils, operands: "t", any: true},
	{names: "hexdump hd", source: "hexdump(1)", letters: "bcCdovx", values: "ns", long: "--canonical", operands: "f"},
	{names: "od", source: "od(1)", letters: "abcdovxsi", values: "AjNt", long: "--address-radix= --format= --read-bytes= --skip-bytes= " + askHelp, operands: "f"},
	{names: "xxd", source: "xxd(1)", single: true, first: true, long: "-b -C -e -i -p -ps -u", next: "-c -g -l -s", operands: "f-"},
	{names: "strings", source: "strings(1)", letters: "afow", values: "ent", number: true, long: "--all --bytes= --radix= --encoding= --print-file-name " + askHelp, operands: "f"},
	{names: "cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum shasum md5", source: coreutils, letters: "btz", values: "a", long: "--binary --text --tag --zero --algorithm= " + askHelp, operands: "f"},
	{names: "base64 base32", source: coreutils, letters: "diD", values: "w", long: "--decode --ignore-garbage --wrap= " + askHelp, operands: "f-"},
	{names: "cmp", source: "cmp(1)", letters: "bls", values: "in", long: "--print-bytes --verbose --quiet --silent --bytes= " + askHelp, operands: "f"},
	{names: "diff", source: "https://www.gnu.org/software/diffutils/manual/html_node/diff-Options.html", letters: "abBcdeEiNnpqrstTuwyZ", values: "CFIULWx", number: true, follow: true, operands: "dd-",
		long: "--brief --unified= --context= --recursive --new-file --ignore-case --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-trailing-space --ignore-tab-expansion --side-by-side --suppress-common-lines --color= --text --minimal --width= --label= --exclude= --show-c-function --strip-trailing-cr --report-identical-files --expand-tabs --no-dereference " + askHelp, next: "--label --exclude --width"},
	{names: "grep egrep fgrep", source: "https://www.gnu.org/software/grep/manual/grep.html", letters: "EFGPivwxycLlqsohHnTbarRIUzZu", values: "eABCm", number: true, operands: "tf", given: "-e --regexp", follow: runtime.GOOS != "linux", deep: "-r -R --recursive --dereference-recursive", only: "--include",
		long: "--extended-regexp --fixed-strings --basic-regexp --perl-regexp --ignore-case --no-ignore-case --invert-match --word-regexp --line-regexp --count --color= --colour= --files-without-match --files-with-matches --max-count= --only-matching --quiet --silent --no-messages --byte-offset --with-filename --no-filename --line-number --initial-tab --null --after-context= --before-context= --context= --text --recursive --dereference-recursive --include= --exclude= --exclude-dir= --regexp= --line-buffered --binary-files= --null-data --no-group-separator " + askHelp,
		next: "--include --exclude --exclude-dir --regexp --max-count --after-context --before-context"},
	{names: "rg", source: "https://github.com/BurntSushi/ripgrep/blob/master/GUIDE.md, rg(1)", letters: "inwvcloSsFxUPaHNIqpu0.", values: "eABCmgtTjMrEd", operands: "td", given: "-e --regexp --files", none: "d",
		long: "--ignore-case --line-number --no-line-number --word-regexp --invert-match --count --count-matches --files-with-matches --files-without-match --files --only-matching --smart-case --case-sensitive --fixed-strings --line-regexp --multiline --multiline-dotall --pcre2 --text --with-filename --no-filename --no-heading --heading --quiet --pretty --hidden --no-hidden --no-ignore --no-ignore-vcs --no-config --json --stats --trim --vimgrep --column --no-column --null --no-messages --type-list --color= --colors= --sort= --sortr= --glob= --iglob= --type= --type-not= --max-count= --max-depth= --max-columns= --max-filesize= --context= --after-context= --before-context= --regexp= --replace= --threads= --encoding= --passthru --one-file-system " + askHelp,
		next: "--glob --iglob --type --type-not --max-count --max-depth --context --after-context --before-context --regexp --replace --threads --color --sort --sortr --max-columns"},
	{names: "fd fdfind", source: "https://github.com/sharkdp/fd#command-line-options", letters: "HIusigFp10", values: "tedEcSj", operands: "tl", none: "l",
		long: "--hidden --no-ignore --unrestricted --case-sensitive --ignore-case --glob --fixed-strings --full-path --type= --extension= --max-depth= --min-depth= --exact-depth= --exclude= --color= --size= --changed-within= --changed-before= --print0 --no-ignore-vcs " + askHelp,
		next: "--type --extension --max-depth --min-depth --exclude --color --size --changed-within --changed-before"},
	{names: "sed gsed", source: "https://www.gnu.org/software/sed/manual/sed.html#Command_002dLine-Options", letters: "nErsuz", values: "e", long: "--quiet --silent --regexp-extended --separate --unbuffered --null-data --expression= --posix --sandbox --debug " + askHelp, next: "--expression", operands: "tf", given: "-e --expression", least: 1},
	{names: "awk gawk mawk nawk", source: "https://www.gnu.org/software/gawk/manual/html_node/Options.html", values: "Fv", operands: "tf", first: true, least: 1},
	{names: "jq", source: "https://jqlang.org/manual/", letters: "rcnsjSCMRea", long: "--raw-output --compact-output --null-input --slurp --join-output --sort-keys --color-output --monochrome-output --raw-input --exit-status --ascii-output --tab --stream", operands: "tf", least: 1, words: harmlessJQ},
	{names: "tar gtar", source: "https://www.gnu.org/software/tar/manual/html_section/Option-Summary.html", operands: "tf-", any: true, least: 2, words: func(w []word) bool {
		return len(w) == 3 && !w[1].Open && !w[2].Open && listsTar().MatchString(w[1].Text) && !strings.Contains(w[2].Text, ":") && !strings.HasPrefix(w[2].Text, "-")
	}},
	{names: "unzip", source: "unzip(1)", operands: "f-", letters: "lvZ", least: 1, words: func(w []word) bool {
		return len(w) == 3 && !w[1].Open && (w[1].Text == "-l" || w[1].Text == "-v" || w[1].Text == "-Z")
	}},
	{names: "gofmt", source: "https://pkg.go.dev/cmd/gofmt", single: true, long: "-l -d -e -s", operands: "d"},
	{names: "tee", source: coreutils, operands: "f", least: 1, words: func(w []word) bool {
		return !slices.ContainsFunc(w[1:], func(w word) bool { return w.Open || w.Text != "/dev/null" })
	}},

	// Versions. Those of programs that a repository chooses, such as cargo, yarn or pnpm, are asked about.
	{names: "node python python3 python2 ruby perl php java javac gcc g++ cc clang make cmake npm docker bash zsh deno bun lua curl psql sqlite3 podman openssl",
		source: "their manuals", operands: "t", any: true, words: func(w []word) bool {
			return len(w) == 2 && !w[1].Open && (hasWhole("--version -V", w[1].Text) && !hasWhole("java javac", w[0].Text) || w[1].Text == "-v" && hasWhole("node npm perl ruby php gcc", w[0].Text) || w[1].Text == "-version" && hasWhole("java javac", w[0].Text) || w[1].Text == "version" && w[0].Text == "openssl")
		}},
}

// listsTar are options with which tar lists an archive that follows.
var listsTar = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?(t[vzjJ]*f|[vzjJ]t[vzjJ]*f)$`) })

// isLocalNames reports whether all words but options are names of variables that no program reads.
func isLocalNames(words []word) bool {
	return !slices.ContainsFunc(words[1:], func(w word) bool { return w.Open || w.Text != "-r" && !isLocalName(w.Text) })
}

// isLocalName reports whether a name is that of a variable which no program reads.
func isLocalName(name string) bool {
	return isName(name) && name == strings.ToLower(name) && name != "path" && name != "fpath" && !strings.HasSuffix(name, "_proxy") && !strings.HasPrefix(name, "npm_")
}

// operandsOf returns the words that are neither options nor the values of some.
func operandsOf(words []word, valued string) (out []word) {
	for i := 0; i < len(words); i++ {
		switch t := words[i].Text; {
		case hasWhole(valued, t):
			i++
		case len(t) == 0 || t[0] != '-':
			out = append(out, words[i])
		}
	}
	return out
}

// harmlessPS reports whether ps shows no environment.
func harmlessPS(words []word) bool {
	for i := 1; i < len(words); i++ {
		t := words[i].Text
		switch {
		case words[i].Open:
			return false
		case hasWhole("-o -eo -p -u -C -ho", t) && i+1 < len(words):
			i++
			if words[i].Open || strings.Contains(words[i].Text, "env") {
				return false
			}
		case hasWhole("--forest --no-headers --no-heading -ww", t) || strings.HasPrefix(t, "--sort="):
		case strings.HasPrefix(t, "-") && len(t) > 1 && strings.Trim(t[1:], "AefFlwH") == "", t == "-aux", t == "-ax":
		case t != "" && strings.Trim(t, "auxwfl") == "":
		case t != "" && strings.Trim(t, "0123456789,") == "":
		default:
			return false
		}
	}
	return true
}

var jqNames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(env|ENV|import|include|input_filename|get_search_list|modulemeta|debug|stderr|halt_error|\$__prog_args)\b`)
})

// harmlessJQ reports whether a filter reads neither the environment nor modules.
func harmlessJQ(words []word) bool {
	return !slices.ContainsFunc(words[1:], func(w word) bool { return w.Open && !isGlob(w) || jqNames().MatchString(w.Text) })
}
