package shellline

import (
	"strings"

	"github.com/goacp/acp/acphost"
)

// How the options of a program are written.
type style int

const (
	gnu    style = iota // -x, -xyz, -xVALUE, --long, --lo, --long=value
	single              // -long, --long, -long=value
)

// A tool is a program some of whose words run something, write to a file, or have it work by other
// settings: what an allow pattern with a wildcard does not mean.
type tool struct {
	names  string
	source string // where the options are documented
	style  style

	runs   string // options that run something
	writes string // options that write to a file
	moves  string // options that have it work elsewhere, or by other settings
	values string // short options with a value, after which letters are no options
	global bool   // options count only before the first operand
	later  string // options that count after it, if global

	words  string // first operands that run something or change settings; a+b is the second after the first
	sets   bool   // NAME=value is an option
	opaque bool   // what follows may be a command
	most   int    // operands after these are files that are written, if it is not 0
	open   bool   // a word that is not written out is none of its options
}

var tools = []tool{
	{names: "go", source: "https://pkg.go.dev/cmd/go, https://pkg.go.dev/cmd/go#hdr-Testing_flags", style: single,
		runs: "-exec -toolexec -vettool -compiler -ldflags -gccgoflags -fixtool", moves: "-C -overlay -modfile -pkgdir -w",
		writes: "-o -c -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -outputdir -test.coverprofile -test.cpuprofile -test.memprofile -test.blockprofile -test.mutexprofile -test.trace -test.outputdir -test.testlogfile -test.gocoverdir",
		words:  "run generate tool", opaque: true},
	{names: "git", source: "https://git-scm.com/docs/git, and the pages of its commands", global: true,
		runs: "-c --config-env --exec-path", moves: "-C --git-dir --work-tree --namespace --super-prefix",
		later: "--upload-pack --receive-pack --exec --ext-diff --textconv --extcmd --open-files-in-pager --output --config --template --output-directory --smtp-server --sendmail-cmd --to-cmd --cc-cmd --separate-git-dir --index-output --git-dir --work-tree",
		words: "config filter-branch difftool mergetool bisect+run bundle+create submodule+foreach hook+run credential send-email daemon instaweb web--browse shell archive upload-pack receive-pack"},
	{names: "find gfind", source: "https://www.gnu.org/software/findutils/manual/html_mono/find.html", style: single, runs: "-delete", writes: "-fprint -fprint0 -fprintf -fls"},
	{names: "fd fdfind", source: "https://github.com/sharkdp/fd#command-line-options", values: "degEtSoMjc"},
	{names: "rg", source: "https://github.com/BurntSushi/ripgrep/blob/master/GUIDE.md, rg(1)", runs: "--pre --hostname-bin", values: "ABCEefgjMmrTtd"},
	{names: "sort gsort", source: "https://www.gnu.org/software/coreutils/manual/html_node/sort-invocation.html", runs: "--compress-program", writes: "-o --output -T --temporary-directory", values: "kSt"},
	{names: "uniq", source: "https://www.gnu.org/software/coreutils/manual/html_node/uniq-invocation.html", most: 1},
	{names: "split gsplit", source: "https://www.gnu.org/software/coreutils/manual/html_node/split-invocation.html", runs: "--filter", values: "abClnt"},
	{names: "tar gtar bsdtar", source: "https://www.gnu.org/software/tar/manual/html_section/Option-Summary.html",
		runs:  "-I -F --use-compress-program --to-command --checkpoint-action --info-script --new-volume-script --rsh-command --rmt-command --program",
		moves: "-C --directory -P --absolute-names", writes: "--index-file --volno-file -g --listed-incremental", values: "bfHKLNTVX"},
	{names: "zip", source: "zip(1)", runs: "-TT --unzip-command -T"},
	{names: "7z 7za", source: "https://7-zip.opensource.jp/chm/cmdline/switches/", style: single, writes: "-o"},
	{names: "sed gsed", source: "https://www.gnu.org/software/sed/manual/sed.html#Command_002dLine-Options", runs: "-f --file", writes: "-i -I --in-place", values: "el"},
	{names: "awk gawk mawk nawk", source: "https://www.gnu.org/software/gawk/manual/html_node/Options.html", runs: "-f -E -i -l --file --exec --include --load -e --source", writes: "-o -d -p --pretty-print --dump-variables --profile", values: "Fv"},
	{names: "jq", source: "https://jqlang.org/manual/", moves: "-L --library-path -f --from-file", open: true},
	{names: "yq", source: "https://mikefarah.gitbook.io/yq", writes: "-i --inplace -s --split-exp"},
	{names: "make gmake", source: "https://www.gnu.org/software/make/manual/html_node/Options-Summary.html", runs: "--eval -f --file --makefile", moves: "-C --directory -I --include-dir -E", values: "jlOo", sets: true},
	{names: "ninja", source: "https://ninja-build.org/manual.html", moves: "-C -f -t"},
	{names: "cmake", source: "https://cmake.org/cmake/help/latest/manual/cmake.1.html", runs: "-P -E -D -C --toolchain"},
	{names: "just", source: "https://just.systems/man/en/", runs: "-c --command --shell --shell-arg --chooser -f --justfile --set", moves: "-d --working-directory"},
	{names: "npm pnpm", source: "https://docs.npmjs.com/cli/using-npm/config, https://pnpm.io/cli/exec", runs: "--script-shell --node-options --shell-emulator --call --editor --init-module --viewer",
		moves: "--prefix -C --dir --cwd --userconfig --globalconfig --location -g --global", words: "exec x dlx explore edit config set create init link", opaque: true},
	{names: "yarn", source: "https://yarnpkg.com/cli", moves: "--cwd", words: "exec dlx node config create set plugin", opaque: true},
	{names: "npx bunx pnpx uvx pipx", source: "https://docs.npmjs.com/cli/commands/npx", runs: "-c --call --script-shell --node-options --package -p --from --with", opaque: true},
	{names: "bun", source: "https://bun.com/docs/runtime", runs: "-r --preload --require --import -e --eval -p --print", moves: "--cwd --config -c", words: "x exec create", opaque: true},
	{names: "deno", source: "https://docs.deno.com/runtime/reference/cli/", moves: "--config --import-map -c", words: "eval run repl"},
	{names: "node nodejs", source: "https://nodejs.org/api/cli.html", runs: "-r --require --import --loader --experimental-loader --env-file --inspect --inspect-brk", writes: "--cpu-prof-dir --heap-prof-dir --diagnostic-dir --report-directory --trace-event-file-pattern --redirect-warnings"},
	{names: "python python2 python3 pypy pypy3", source: "https://docs.python.org/3/using/cmdline.html", runs: "-c", global: true, values: "WXm"},
	{names: "pytest", source: "https://docs.pytest.org/en/stable/reference/reference.html#command-line-flags", runs: "-p -c --config-file --pdbcls -o --override-ini", moves: "--rootdir --confcutdir", writes: "--basetemp --junitxml --junit-xml --log-file --report-log --resultlog --pastebin", values: "kmnrW"},
	{names: "uv poetry pipenv hatch pdm rye conda mamba micromamba", source: "https://docs.astral.sh/uv/reference/cli/", moves: "--directory --project -C", words: "run x exec tool shell", opaque: true},
	{names: "bundle", source: "https://bundler.io/man/bundle-exec.1.html", words: "exec config", opaque: true},
	{names: "cargo", source: "https://doc.rust-lang.org/cargo/commands/cargo.html", runs: "--config -Z", moves: "-C --manifest-path --target-dir --out-dir --artifact-dir", words: "run install", values: "jpF", opaque: true},
	{names: "rustc", source: "https://doc.rust-lang.org/rustc/command-line-arguments.html", runs: "-C --codegen -Z", writes: "-o --out-dir --emit"},
	{names: "gcc g++ cc c++ clang clang++", source: "https://gcc.gnu.org/onlinedocs/gcc/Option-Summary.html", runs: "-wrapper -B -fplugin -specs", writes: "-o -MF -save-temps -dumpdir", style: single},
	{names: "mvn gradle gradlew", source: "https://maven.apache.org/ref/current/maven-embedder/cli.html", runs: "-D -I --init-script -s --settings -t", moves: "-f --file -p --project-dir -b --build-file -g -u"},
	{names: "dotnet", source: "https://learn.microsoft.com/dotnet/core/tools/", words: "exec run tool msbuild script"},
	{names: "java", source: "https://docs.oracle.com/en/java/javase/21/docs/specs/man/java.html", style: single, runs: "-javaagent -agentpath -agentlib -XX:OnError -XX:OnOutOfMemoryError"},
	{names: "less more most", source: "less(1)", writes: "-o -O --log-file --LOG-FILE", runs: "-k --lesskey-file --lesskey-src + -t", values: "bhjpxyzPD"},
	{names: "man", source: "man(1)", runs: "-P --pager -H --html -B -X --gxditview", moves: "-C --config-file -M --manpath", values: "erRLmES"},
	{names: "bat batcat", source: "https://github.com/sharkdp/bat", runs: "--pager --diff", moves: "--config-file"},
	{names: "fzf", source: "https://github.com/junegunn/fzf", runs: "--preview --bind --become"},
	{names: "ssh scp sftp", source: "https://man.openbsd.org/ssh", runs: "-o -F -J -S -w -L -R -D -I -P", writes: "-E", opaque: true},
	{names: "rsync", source: "https://download.samba.org/pub/rsync/rsync.1", runs: "-e --rsh --rsync-path", writes: "--log-file --write-batch --only-write-batch --backup-dir --temp-dir -T --partial-dir", values: "BfM@"},
	{names: "curl", source: "https://curl.se/docs/manpage.html", runs: "-K --config --engine", writes: "-o -O -D -c -J --output --output-dir --remote-name --remote-name-all --remote-header-name --dump-header --cookie-jar --trace --trace-ascii --stderr --hsts --alt-svc --etag-save --libcurl --create-dirs",
		moves: "-T --upload-file --form --data-binary --unix-socket --proxy -x --netrc-file", values: "AbCeFHmPrtuUXwYyzdE"},
	{names: "wget", source: "https://www.gnu.org/software/wget/manual/wget.html", runs: "-e --execute --use-askpass --config", writes: "-O -o -a -P --output-document --output-file --append-output --directory-prefix --save-cookies --warc-file --hsts-file --rejected-log --save-headers", moves: "--post-file --body-file -i --input-file", values: "tTQUwBDAR"},
	{names: "docker podman nerdctl", source: "https://docs.docker.com/reference/cli/docker/", moves: "--config -H --host --context -c", words: "run exec create compose+run compose+exec container+run container+exec buildx plugin context+create image+load cp", opaque: true, global: true, later: "-v --volume --mount --privileged"},
	{names: "docker-compose", source: "https://docs.docker.com/reference/cli/docker/compose/", moves: "-f --file --project-directory -H --host", words: "run exec", opaque: true, global: true},
	{names: "kubectl oc", source: "https://kubernetes.io/docs/reference/kubectl/", moves: "--kubeconfig --context -s --server", words: "exec run debug cp plugin config edit", opaque: true, global: true},
	{names: "gdb lldb", source: "https://sourceware.org/gdb/current/onlinedocs/gdb.html", style: single, runs: "-ex -eval-command -x -iex -ix -command -args -o -O -s -S", opaque: true},
	{names: "vim vi nvim view gvim vimdiff", source: "https://vimhelp.org/starting.txt.html", runs: "-c -S -s -u -U -i -w -W -e -E --cmd --startuptime + -l --headless --listen --server"},
	{names: "emacs emacsclient", source: "https://www.gnu.org/software/emacs/manual/html_node/emacs/Action-Arguments.html", style: single, runs: "-eval -execute -load -l -funcall -f -script -batch -e -u -daemon"},
	{names: "perl ruby php lua", source: "perlrun(1), ruby(1)", global: true, runs: "-i -r -d", moves: "-I -M -m -C -x", values: "F0l"},
	{names: "tee", source: "https://www.gnu.org/software/coreutils/manual/html_node/tee-invocation.html", open: true},
	{names: "dd", source: "https://www.gnu.org/software/coreutils/manual/html_node/dd-invocation.html", sets: true},
	{names: "openssl", source: "https://docs.openssl.org/master/man1/openssl/", style: single, runs: "-engine -provider -provider-path", writes: "-out -keyout -writerand"},
	{names: "gh", source: "https://cli.github.com/manual/", words: "alias extension config codespace", global: true},
	{names: "terraform tofu", source: "https://developer.hashicorp.com/terraform/cli/commands", style: single, moves: "-chdir -plugin-dir", writes: "-out -state-out -backup"},
	{names: "eslint prettier", source: "https://eslint.org/docs/latest/use/command-line-interface", runs: "-c --config --plugin --resolve-plugins-relative-to --rulesdir --parser --format -f", writes: "-o -w --write --fix --output-file --cache-location"},
	{names: "tsc", source: "https://www.typescriptlang.org/docs/handbook/compiler-options.html", style: single, writes: "-outDir -outFile -declarationDir -generateTrace -tsBuildInfoFile -generateCpuProfile", moves: "-p -project -build -b -rootDir"},
	{names: "golangci-lint", source: "https://golangci-lint.run/docs/configuration/cli/", runs: "-c --config", writes: "--fix --out --output.text.path --cpu-profile-path --mem-profile-path --trace-path"},
	{names: "vitest jest mocha", source: "https://jestjs.io/docs/cli", runs: "-c --config -r --require --globalSetup --setupFiles --runner --testRunner --transform --reporter --reporters --import", moves: "--root --rootDir --dir"},
	{names: "sqlite3", source: "https://sqlite.org/cli.html", style: single, runs: "-cmd -init"},
	{names: "source .", source: "bash(1), Shell Builtin Commands", open: true},
	{names: "gofmt goimports", source: "https://pkg.go.dev/cmd/gofmt", style: single, writes: "-w -cpuprofile -memprofile"},
	{names: "ruff", source: "https://docs.astral.sh/ruff/configuration/", runs: "--config", writes: "--fix --output-file -o"},
}

var toolOf = func() map[string]*tool {
	m := map[string]*tool{}
	for i := range tools {
		for name := range strings.FieldsSeq(tools[i].names) {
			m[name] = &tools[i]
		}
	}
	return m
}()

// What options do, for messages.
const (
	doesRun   = "runs something"
	doesWrite = "writes a file"
	doesMove  = "works elsewhere or by other settings"
	doesHide  = "may be an option or a command"
)

// find returns the words that a wildcard does not mean.
func (t *tool) find(words []word) (found []acphost.CommandOption) {
	operands := []string{}
	for i := 1; i < len(words); i++ {
		w := words[i]
		if w.mayBeOption() || w.Open && len(operands) == 0 && t.words != "" {
			if !t.open {
				found = append(found, acphost.CommandOption{Word: i, Name: w.Source, Does: doesHide})
			}
			continue
		}
		if !w.Open && w.Text == "--" && t.style == gnu {
			break
		}
		if len(w.Text) > 1 && w.Text[0] == '-' || strings.HasPrefix(w.Text, "+") && has(t.runs, "+") {
			if name, does := t.option(w.Text, len(operands) > 0); does != "" {
				found = append(found, acphost.CommandOption{Word: i, Name: name, Does: does})
				if t.global && len(operands) == 0 && name == w.Text {
					i++ // its value is no operand
				}
			}
			continue
		}
		if t.sets && isAssignment(w.Text) {
			found = append(found, acphost.CommandOption{Word: i, Name: w.Text[:strings.IndexByte(w.Text, '=')+1], Does: doesMove})
			continue
		}
		if i == 1 && bundles(t) {
			if j := strings.IndexAny(w.Text, bundled); j >= 0 {
				found = append(found, acphost.CommandOption{Word: i, Name: w.Text[:j+1], Does: doesRun})
			}
			continue
		}
		operands = append(operands, w.Text)
		if n := len(operands); n <= 2 && has(t.words, strings.Join(operands, "+")) {
			found = append(found, acphost.CommandOption{Word: i, Name: w.Text, Does: doesRun})
		} else if t.most > 0 && n > t.most {
			found = append(found, acphost.CommandOption{Word: i, Name: w.Text, Does: doesWrite})
		}
	}
	return found
}

// option returns how an option is written and what it does, if a wildcard does not mean it.
func (t *tool) option(text string, later bool) (name, does string) {
	runs, writes, moves := t.runs, t.writes, t.moves
	if t.global && later {
		runs, writes, moves = t.later, "", ""
	}
	is := func(o string) string {
		switch {
		case has(runs, o):
			return doesRun
		case has(writes, o):
			return doesWrite
		case has(moves, o):
			return doesMove
		}
		return ""
	}
	if t.style == single {
		name, _ = splitOption(text)
		o := "-" + strings.TrimLeft(name, "-")
		if does = is(o); does == "" && len(o) > 2 {
			if d := is(o[:2]); d != "" && (o[:2] == "-o" || o[:2] == "-B") && t.joins() {
				return name[:2], d
			}
		}
		return name, does
	}
	if strings.HasPrefix(text, "--") {
		name, _ = splitOption(text)
		return name, is(name)
	}
	if text[0] == '+' {
		return "+", is("+")
	}
	for j := 1; j < len(text); j++ {
		if does = is("-" + text[j:j+1]); does != "" {
			return text[:j+1], does
		}
		if strings.IndexByte(t.values, text[j]) >= 0 {
			break
		}
	}
	return text, ""
}

// joins reports whether a program with long options of one dash takes values that are joined to short ones.
func (t *tool) joins() bool {
	return strings.HasPrefix(t.names, "gcc") || strings.HasPrefix(t.names, "7z")
}

// bundles reports whether a first word is made of options without a dash, as that of tar may be.
func bundles(t *tool) bool { return strings.HasPrefix(t.names, "tar") }

// bundled are the letters of tar that run something, or work elsewhere.
const bundled = "IFCPg"

// runsSome reports whether a tool runs what its words say.
func (t *tool) runsSome(found []acphost.CommandOption) bool {
	if !t.opaque || t.words == "" {
		return t.opaque
	}
	for _, o := range found {
		if o.Does == doesRun && !strings.HasPrefix(o.Name, "-") {
			return true
		}
	}
	return false
}
