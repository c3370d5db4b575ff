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
	nopt                // as gnu, and -long
)

// A tool is a program some of whose words run something, write to a file, or have it work by other
// settings: what an allow pattern with a wildcard does not mean.
type tool struct {
	names  string
	source string // where the options are documented
	style  style

	text   string // options that are followed by text to run, or a program: with them a line is not certain
	runs   string // options that run something
	writes string // options that write to a file
	moves  string // options that have it work elsewhere, or by other settings
	values string // short options with a value, after which letters are no options
	flags  string // options before the first operand that have no value
	global bool   // options count only before the first operand
	later  string // options that count after it, if global
	script bool   // what follows the first operand is for that

	words  string // first operands that run something or change settings; a+b is the second after the first
	sets   bool   // NAME=value is an option
	opaque bool   // what follows may be a command
	most   int    // operands after these are files that are written, if it is not 0
	open   bool   // a word that is not written out is none of its options
	whole  bool   // options are written out, not abbreviated
	joins  string // short options in single style whose values may be joined to them
	bundle string // letters that run something, or work elsewhere, in a first word that is made of options without a dash
}

var tools = []tool{
	{names: "go", source: "https://pkg.go.dev/cmd/go, https://pkg.go.dev/cmd/go#hdr-Testing_flags", style: single,
		runs: "-gcflags -asmflags -exec -toolexec -vettool -compiler -ldflags -gccgoflags -fixtool", moves: "-C -overlay -modfile -pkgdir -w -u",
		writes: "-debug-actiongraph -debug-trace -debug-runtime-trace -o -c -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -outputdir -test.coverprofile -test.cpuprofile -test.memprofile -test.blockprofile -test.mutexprofile -test.trace -test.outputdir -test.testlogfile -test.gocoverdir",
		words:  "telemetry run generate tool", opaque: true},
	{names: "git", source: "https://git-scm.com/docs/git, and the pages of its commands", global: true,
		flags: "-p --paginate -P --no-pager --bare --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --html-path --man-path --info-path -v --version -h --help",
		runs:  "-c --config-env --exec-path", moves: "-C --git-dir --work-tree --namespace --super-prefix --attr-source",
		later: "--upload-pack --receive-pack --exec --ext-diff --textconv --extcmd --open-files-in-pager --output --config --template --output-directory --smtp-server --sendmail-cmd --to-cmd --cc-cmd --separate-git-dir --index-output --git-dir --work-tree --export-marks --prefix",
		words: "merge-index submodule--helper bisect+visualize bisect+view diagnose send-pack subtree worktree+add difftool--helper mergetool--lib config filter-branch difftool mergetool bisect+run bundle+create submodule+foreach hook+run credential send-email daemon instaweb web--browse shell archive upload-pack receive-pack imap-send http-backend cvsserver fast-import remote-ext"},
	{names: "find gfind", source: "https://www.gnu.org/software/findutils/manual/html_mono/find.html", style: single, runs: "-delete", writes: "-fprint -fprint0 -fprintf -fls"},
	{names: "fd fdfind", source: "https://github.com/sharkdp/fd#command-line-options", moves: "-C --base-directory", values: "degEtSoMjc"},
	{names: "rg", source: "https://github.com/BurntSushi/ripgrep/blob/master/GUIDE.md, rg(1)", runs: "--pre --hostname-bin", values: "ABCEefgjMmrTtd"},
	{names: "sort gsort", source: "https://www.gnu.org/software/coreutils/manual/html_node/sort-invocation.html", runs: "--compress-program", writes: "-o --output -T --temporary-directory", values: "kSt"},
	{names: "uniq", source: "https://www.gnu.org/software/coreutils/manual/html_node/uniq-invocation.html", most: 1},
	{names: "split gsplit", source: "https://www.gnu.org/software/coreutils/manual/html_node/split-invocation.html", runs: "--filter", values: "abClnt"},
	{names: "tar gtar bsdtar", source: "https://www.gnu.org/software/tar/manual/html_section/Option-Summary.html",
		runs:  "-I -F --use-compress-program --to-command --checkpoint-action --info-script --new-volume-script --rsh-command --rmt-command --program -T --files-from",
		moves: "-C --directory -P --absolute-names", writes: "--index-file --volno-file -g --listed-incremental --one-top-level", values: "bfHKLNTVX", bundle: "IFCPgT"},
	{names: "zip", source: "zip(1)", runs: "-TT --unzip-command -T", writes: "-O -b -l --out --output-file --logfile-path --log-file-path --temp-path"},
	{names: "unzip", source: "unzip(1)", moves: "-d"},
	{names: "7z 7za", source: "https://7-zip.opensource.jp/chm/cmdline/switches/", style: single, writes: "-o", joins: "-o"},
	{names: "sed gsed ssed", source: "https://www.gnu.org/software/sed/manual/sed.html#Command_002dLine-Options", runs: "-f --file", writes: "-i -I --in-place", values: "el"},
	{names: "awk gawk mawk nawk goawk original-awk bwk", source: "https://www.gnu.org/software/gawk/manual/html_node/Options.html", runs: "-f -E -i -l --file --exec --include --load -e --source", writes: "-o -d -p --pretty-print --dump-variables --profile", values: "Fv"},
	{names: "jq", source: "https://jqlang.org/manual/", moves: "-L --library-path -f --from-file", open: true},
	{names: "yq", source: "https://mikefarah.gitbook.io/yq", writes: "-i --inplace -s --split-exp"},
	{names: "make gmake", source: "https://www.gnu.org/software/make/manual/html_node/Options-Summary.html", text: "--eval -E", runs: "-f --file --makefile", moves: "-C --directory -I --include-dir", values: "jlOo", sets: true},
	{names: "ninja samu", source: "https://ninja-build.org/manual.html", moves: "-C -f -t"},
	{names: "cmake", source: "https://cmake.org/cmake/help/latest/manual/cmake.1.html", runs: "-P -E -D -C --toolchain", opaque: true},
	{names: "just", source: "https://just.systems/man/en/", runs: "-c --command --shell --shell-arg --chooser -f --justfile --set", moves: "-d --working-directory"},
	{names: "npm pnpm", source: "https://docs.npmjs.com/cli/using-npm/config, https://github.com/npm/nopt, https://pnpm.io/cli/exec", style: nopt,
		flags: "-s --silent -q --quiet -d -dd -ddd --verbose --no-color --workspaces -ws --if-present --json", runs: "--script-shell --node-options --shell-emulator --call --editor --init-module --viewer --git --browser --shell",
		moves: "--prefix -C --dir --cwd --userconfig --globalconfig --location -g --global", words: "exec exe x dlx explore edit config c set create init innit link ln env pkg+set", opaque: true},
	{names: "yarn", source: "https://yarnpkg.com/cli", runs: "--script-shell --use-yarnrc", moves: "--cwd", flags: "-s --silent", words: "exec dlx node config create set plugin workspace+exec workspaces+foreach", opaque: true},
	{names: "npx bunx pnpx uvx pipx", source: "https://docs.npmjs.com/cli/commands/npx", runs: "-c --call --script-shell --node-options --package -p --from --with", opaque: true},
	{names: "bun", source: "https://bun.com/docs/runtime", runs: "-r --preload --require --import -e --eval -p --print", moves: "--cwd --config -c", words: "x exec create run", opaque: true},
	{names: "deno", source: "https://docs.deno.com/runtime/reference/cli/", moves: "--config --import-map -c", runs: "--preload --import", words: "eval run repl task x jupyter install", opaque: true},
	{names: "node nodejs", whole: true, source: "https://nodejs.org/api/cli.html", runs: "--test-reporter --test-global-setup --experimental-config-file --experimental-default-config-file --snapshot-blob --openssl-config --experimental-sea-config --build-snapshot-config -r --require --import --loader --experimental-loader --env-file --inspect --inspect-brk", writes: "--cpu-prof-dir --heap-prof-dir --diagnostic-dir --report-directory --trace-event-file-pattern --redirect-warnings"},
	{names: "python python2 python3 pypy pypy3", source: "https://docs.python.org/3/using/cmdline.html", runs: "-c", global: true, script: true, values: "WXm"},
	{names: "pytest", source: "https://docs.pytest.org/en/stable/reference/reference.html#command-line-flags", runs: "-p -c --config-file --pdbcls -o --override-ini", moves: "--rootdir --confcutdir", writes: "--basetemp --junitxml --junit-xml --log-file --report-log --resultlog --pastebin", values: "kmnrW"},
	{names: "uv poetry pipenv hatch pdm rye conda mamba micromamba", source: "https://docs.astral.sh/uv/reference/cli/", moves: "--directory --project -C", words: "run x exec tool shell", opaque: true},
	{names: "bundle", source: "https://bundler.io/man/bundle-exec.1.html", words: "exec config", opaque: true},
	{names: "cargo", source: "https://doc.rust-lang.org/cargo/commands/cargo.html", flags: "-v -vv -q --verbose --quiet --offline --locked --frozen", runs: "--config -Z", moves: "-C --manifest-path --target-dir --out-dir --artifact-dir", writes: "--fix", words: "run r install watch make script xtask rustc rustdoc", values: "jpF", opaque: true},
	{names: "rustc", source: "https://doc.rust-lang.org/rustc/command-line-arguments.html", runs: "-C --codegen -Z", writes: "-o --out-dir --emit"},
	{names: "gcc g++ cc c++ clang clang++", source: "https://gcc.gnu.org/onlinedocs/gcc/Option-Summary.html", runs: "-wrapper -B -fplugin -specs", writes: "-o -MF -save-temps -dumpdir", style: single, joins: "-o -B"},
	{names: "mvn gradle gradlew", source: "https://maven.apache.org/ref/current/maven-embedder/cli.html", runs: "-D -I --init-script -s --settings -t", moves: "-f --file -p --project-dir -b --build-file -g -u"},
	{names: "dotnet", source: "https://learn.microsoft.com/dotnet/core/tools/", runs: "-p -p:CustomBeforeMicrosoftCommonTargets --property --additional-deps --additionalprobingpath --fx-version --startup-hook -e --environment -s --settings", words: "exec run tool msbuild script watch fsi", values: "vcfornl", opaque: true},
	{names: "java", source: "https://docs.oracle.com/en/java/javase/21/docs/specs/man/java.html", style: single, runs: "-javaagent -agentpath -agentlib -XX:OnError -XX:OnOutOfMemoryError"},
	{names: "less more most", source: "less(1)", writes: "-o -O --log-file --LOG-FILE", runs: "-k --lesskey-file --lesskey-src + -t", values: "bhjpxyzPD"},
	{names: "man", source: "man(1)", runs: "-P --pager -H --html -B -X --gxditview", moves: "-C --config-file -M --manpath", values: "erRLmES"},
	{names: "bat batcat", source: "https://github.com/sharkdp/bat", runs: "--pager --diff", moves: "--config-file"},
	{names: "fzf", source: "https://github.com/junegunn/fzf", runs: "--preview --bind --become"},
	{names: "ssh scp sftp", source: "https://man.openbsd.org/ssh", runs: "-o -F -J -S -w -L -R -D -I -P", writes: "-E", opaque: true},
	{names: "rsync", source: "https://download.samba.org/pub/rsync/rsync.1", runs: "-M --remote-option -e --rsh --rsync-path --daemon --config", writes: "--log-file --write-batch --only-write-batch --backup-dir --temp-dir -T --partial-dir", values: "BfM@"},
	{names: "curl", source: "https://curl.se/docs/manpage.html", runs: "-K --config --engine", writes: "-o -O -D -c -J --output --output-dir --remote-name --remote-name-all --remote-header-name --dump-header --cookie-jar --trace --trace-ascii --stderr --hsts --alt-svc --etag-save --libcurl --create-dirs",
		moves: "-T --upload-file --form --data-binary --unix-socket --proxy -x --netrc-file", values: "AbCeFHmPrtuUXwYyzdE"},
	{names: "wget", source: "https://www.gnu.org/software/wget/manual/wget.html", runs: "-e --execute --use-askpass --config", writes: "-O -o -a -P --output-document --output-file --append-output --directory-prefix --save-cookies --warc-file --hsts-file --rejected-log --save-headers", moves: "--post-file --body-file -i --input-file", values: "tTQUwBDAR"},
	{names: "docker podman nerdctl", source: "https://docs.docker.com/reference/cli/docker/", moves: "--config -H --host --context -c", words: "run exec create compose+run compose+exec container+run container+exec container+cp context+use debug attach buildx plugin context+create image+load cp", opaque: true, global: true, flags: "-D --debug --tls --tlsverify", later: "-v --volume --mount --privileged -o --output --iidfile --cidfile --metadata-file --env-file"},
	{names: "docker-compose", source: "https://docs.docker.com/reference/cli/docker/compose/", moves: "-f --file --project-directory -H --host", words: "run exec", opaque: true, global: true},
	{names: "kubectl oc", source: "https://kubernetes.io/docs/reference/kubectl/", moves: "--kubeconfig --context -s --server", words: "exec run debug cp plugin config edit rsh", opaque: true, global: true},
	{names: "gcloud", source: "https://cloud.google.com/sdk/gcloud/reference/compute/ssh", runs: "--command --ssh-flag"},
	{names: "aws", source: "https://docs.aws.amazon.com/cli/latest/reference/", words: "ssm+send-command ssm+start-session ecs+execute-command"},
	{names: "nano", source: "nano(1)", runs: "-s --speller -f --rcfile"},
	{names: "cpio", source: "https://www.gnu.org/software/cpio/manual/cpio.html", runs: "--rsh-command"},
	{names: "gdb lldb", source: "https://sourceware.org/gdb/current/onlinedocs/gdb.html, https://lldb.llvm.org/man/lldb.html", style: single,
		text: "-ex -eval-command -eval-comman -iex -init-eval-command -o -O -one-line -one-line-before-file -k -one-line-on-crash", runs: "-x -ix -command -init-command -args -a -s -S -source -source-before-file -p", opaque: true},
	{names: "vim vi nvim view gvim vimdiff ex rvim", source: "https://vimhelp.org/starting.txt.html", text: "-c --cmd + -e -E --remote-send --remote-expr", runs: "-S -s -u -U -i -w -W --startuptime -l --headless --listen --server"},
	{names: "emacs emacsclient", source: "https://www.gnu.org/software/emacs/manual/html_node/emacs/Action-Arguments.html", style: single, text: "-eval -execute -e -funcall -f", runs: "-load -l -script -batch -u -daemon -insert"},
	{names: "nc ncat netcat", source: "https://nmap.org/ncat/guide/ncat-exec.html, nc(1)", text: "-e -c --exec --sh-exec --lua-exec --lua-exec-internal", writes: "-o --output -x --hex-dump", values: "pswiIOPqTVXgGmd", opaque: true},
	{names: "socat", source: "http://www.dest-unreach.org/socat/doc/socat.html", opaque: true},
	{names: "rustup", source: "https://rust-lang.github.io/rustup/", words: "run", opaque: true},
	{names: "ip", source: "ip-netns(8), ip-vrf(8)", text: "-b -ba -batch --batch", words: pairs("net netn netns vr vrf", "e ex exe exec"), opaque: true, style: single},
	{names: "tox", source: "https://tox.wiki/en/latest/cli_interface.html", runs: "-x --override -c --conf --workdir --root", words: "exec e devenv d", opaque: true},
	{names: "nox", source: "https://nox.thea.codes/en/stable/usage.html", runs: "-f --noxfile", opaque: true},
	{names: "ctest", source: "https://cmake.org/cmake/help/latest/manual/ctest.1.html", style: single, runs: "-S -SP -D -test-command -build-and-test -build-makeprogram", moves: "-test-dir", writes: "-O -output-log -output-junit"},
	{names: "meson", source: "https://mesonbuild.com/Commands.html", runs: "--wrapper --native-file --cross-file", words: "devenv", opaque: true},
	{names: "bazel bazelisk", source: "https://bazel.build/reference/command-line-reference", runs: "--run_under --workspace_status_command --bazelrc --override_repository --test_arg --extra_toolchains", words: "run", opaque: true},
	{names: "gem", source: "https://guides.rubygems.org/command-reference/", runs: "--config-file -e", words: "exec install", opaque: true},
	{names: "composer", source: "https://getcomposer.org/doc/03-cli.md", moves: "-d --working-dir", words: "exec config global create-project", opaque: true},
	{names: "heroku", source: "https://devcenter.heroku.com/articles/heroku-cli-commands", words: "run run:detached ps:exec", opaque: true},
	{names: "snap flatpak", source: "snap(1), flatpak-run(1)", words: "run", opaque: true},
	{names: "brew", source: "https://docs.brew.sh/Manpage", words: "ruby sh irb edit", opaque: true},
	{names: "apt apt-get apt-cache aptitude", source: "apt.conf(5)", text: "-o --option", runs: "-c --config-file"},
	{names: "dpkg dpkg-deb", source: "dpkg(1)", text: "--pre-invoke --post-invoke --status-logger", runs: "--root --instdir --admindir --force-script-chrootless"},
	{names: "dlv", source: "https://github.com/go-delve/delve/blob/master/Documentation/usage/dlv.md", runs: "--init --backend -r", words: "exec debug test trace attach connect", opaque: true},
	{names: "helm", source: "https://helm.sh/docs/helm/helm/", runs: "--post-renderer --post-renderer-args --repository-config", words: "plugin", opaque: true},
	{names: "turbo lerna nx", source: "https://turbo.build/repo/docs/reference, https://lerna.js.org/docs/api-reference/commands, https://nx.dev/nx-api/nx/documents/exec", words: "exec x watch", opaque: true},
	{names: "open xdg-open gio", source: "open(1), xdg-open(1)", opaque: true},
	{names: "mix", source: "https://hexdocs.pm/mix/Mix.html", words: "cmd do eval run", opaque: true},
	{names: "rails", source: "https://guides.rubyonrails.org/command_line.html", words: "runner r console c dbconsole", opaque: true},
	{names: "gpg gpg2", source: "https://www.gnupg.org/documentation/manuals/gnupg/", runs: "--photo-viewer --exec-path --agent-program --dirmngr-program --keyboxd-program --pinentry-mode --options --homedir", writes: "-o --output --status-file --logger-file --log-file"},
	{names: "ag ack", source: "ag(1), ack(1)", runs: "--pager --ackrc --env --create-ackrc"},
	{names: "pip pip3", source: "https://pip.pypa.io/en/stable/cli/", runs: "--python --config-settings -C --global-option --build-option --use-feature", writes: "--log --report --cache-dir --target -t --prefix --root --src -d --dest -w --wheel-dir", moves: "-r --requirement -c --constraint -i --index-url --extra-index-url -f --find-links --trusted-host --cert --proxy", words: "config"},
	{names: "pylint flake8 mypy", source: "https://pylint.readthedocs.io/en/latest/user_guide/configuration/all-options.html", text: "--init-hook", runs: "--load-plugins --rcfile --config --append-config --config-file --python-executable --install-types --enable-extensions -f --output-format --format", writes: "--output --output-file --cache-dir --junit-xml --html-report --txt-report --xml-report"},
	{names: "coverage", source: "https://coverage.readthedocs.io/en/latest/cmd.html", moves: "--rcfile --data-file", words: "run", writes: "-o -d --directory"},
	{names: "protoc", source: "https://protobuf.dev/reference/", runs: "--plugin"},
	{names: "gotestsum", source: "https://github.com/gotestyourself/gotestsum", runs: "--post-run-command --raw-command --exec -exec -toolexec --watch", writes: "--jsonfile --junitfile --jsonfile-timing-events --rerun-fails-report", opaque: true},
	{names: "pandoc", source: "https://pandoc.org/MANUAL.html", runs: "-F --filter -L --lua-filter -d --defaults --pdf-engine --data-dir --template", writes: "-o --output --log --extract-media", values: "ftrwVMHBAT"},
	{names: "tree", source: "tree(1)", writes: "-o", values: "LPIHT"},
	{names: "shfmt clang-format", source: "https://github.com/mvdan/sh/blob/master/cmd/shfmt/shfmt.1.scd", style: single, writes: "-w -write -i"},
	{names: "clang-tidy", source: "https://clang.llvm.org/extra/clang-tidy/", style: single, runs: "-load -config -config-file -p -extra-arg -extra-arg-before", writes: "-fix -fix-errors -fix-notes -export-fixes -store-check-profile"},
	{names: "ld", source: "https://sourceware.org/binutils/docs/ld/Options.html", style: single, runs: "-plugin", writes: "-o -Map"},
	{names: "javac kotlinc scalac", source: "https://docs.oracle.com/en/java/javase/21/docs/specs/man/javac.html", style: single, runs: "-processor -processorpath -processor-path -J -Xplugin -script -e -expression", writes: "-d -s -h"},
	{names: "webpack rollup vite esbuild", source: "https://webpack.js.org/api/cli/, https://rollupjs.org/command-line-interface/, https://vite.dev/guide/cli", runs: "-c --config -r --require --plugin -p --configPlugin", writes: "-o --output-path --outfile --outdir --outDir -d --dir --file"},
	{names: "xmllint", source: "https://gnome.pages.gitlab.gnome.org/libxml2/xmllint.html", style: single, runs: "-shell -load-trace", writes: "-output -o"},
	{names: "iconv shuf gshuf", source: "iconv(1), shuf(1)", writes: "-o --output", values: "ftn"},
	{names: "xxd", source: "xxd(1)", most: 1, values: "clgosno"},
	{names: "perl ruby php lua", source: "perlrun(1), ruby(1)", global: true, script: true, runs: "-i -r -d", moves: "-I -M -m -C -x", values: "F0l"},
	{names: "tee", source: "https://www.gnu.org/software/coreutils/manual/html_node/tee-invocation.html", open: true},
	{names: "dd", source: "https://www.gnu.org/software/coreutils/manual/html_node/dd-invocation.html", sets: true},
	{names: "openssl", source: "https://docs.openssl.org/master/man1/openssl/", style: single, runs: "-engine -provider -provider-path", writes: "-out -keyout -writerand"},
	{names: "gh", source: "https://cli.github.com/manual/", words: "alias extension extensions ext config codespace cs copilot repo+clone repo+fork gist+clone", global: true, opaque: true, later: "-D --dir -O --output --upload-pack -u --config -c --template -T"},
	{names: "terraform tofu", source: "https://developer.hashicorp.com/terraform/cli/commands", style: single, moves: "-chdir -plugin-dir", writes: "-out -state-out -backup"},
	{names: "eslint prettier", source: "https://eslint.org/docs/latest/use/command-line-interface", runs: "-c --config --plugin --resolve-plugins-relative-to --rulesdir --parser --format -f", writes: "-o -w --write --fix --output-file --cache-location"},
	{names: "tsc", source: "https://www.typescriptlang.org/docs/handbook/compiler-options.html", style: single, writes: "-outDir -outFile -declarationDir -generateTrace -tsBuildInfoFile -generateCpuProfile", moves: "-p -project -build -b -rootDir"},
	{names: "golangci-lint", source: "https://golangci-lint.run/docs/configuration/cli/", runs: "-c --config", writes: "--fix --out --output.text.path --cpu-profile-path --mem-profile-path --trace-path"},
	{names: "vitest jest mocha", whole: true, source: "https://jestjs.io/docs/cli", runs: "-c --config -r --require --globalSetup --setupFiles --runner --testRunner --transform --reporter --reporters --import", moves: "--root --rootDir --dir"},
	{names: "sqlite3 duckdb", source: "https://sqlite.org/cli.html", style: single, runs: "-cmd -init", writes: "-A"},
	{names: "psql", source: "https://www.postgresql.org/docs/current/app-psql.html", text: "-o --output", runs: "-f --file -v --set --variable -P --pset", writes: "-L --log-file", values: "cdFRThpU"},
	{names: "mysql mariadb", source: "https://dev.mysql.com/doc/refman/8.4/en/mysql-command-options.html", text: "--pager", runs: "--init-command --init-command-add --plugin-dir --defaults-file --defaults-extra-file --login-path", writes: "--tee", values: "DehPpuS"},
	{names: "tex latex pdftex pdflatex xetex xelatex luatex lualatex texlua", source: "https://www.tug.org/texlive/doc/", style: single, text: "-shell-escape -enable-write18", runs: "-luaonly -lua -ini", writes: "-output-directory -jobname -recorder"},
	{names: "groff nroff troff", source: "groff(1)", runs: "-U -M -m -F", values: "TPdrnoKLw"},
	{names: "source .", source: "bash(1), Shell Builtin Commands", open: true},
	{names: "gofmt goimports", source: "https://pkg.go.dev/cmd/gofmt", style: single, writes: "-w -cpuprofile -memprofile"},
	{names: "ruff", source: "https://docs.astral.sh/ruff/configuration/", runs: "--config", writes: "--fix --output-file -o"},
}

// isFlag are values of variables that say yes or no, which nothing runs.
var isFlag = setOf("0 1 2 y n yes no on off true false")

// pairs returns all pairs of two lists of words, for [tool].words.
func pairs(a, b string) string {
	var list []string
	for x := range strings.FieldsSeq(a) {
		for y := range strings.FieldsSeq(b) {
			list = append(list, x+"+"+y)
		}
	}
	return strings.Join(list, " ")
}

var toolOf = byName(tools, func(t *tool) string { return t.names })

// What options do, for messages.
const (
	doesText  = "runs text"
	doesRun   = "runs something"
	doesWrite = "writes a file"
	doesMove  = "works elsewhere or by other settings"
	doesSet   = "sets a variable that programs go by"
	doesHide  = "may be an option or a command"
)

// find returns the words that a wildcard does not mean.
func (t *tool) find(words []word) (found []acphost.CommandOption) {
	r := toolReader{tool: t}
	for i := 1; i < len(words); i++ {
		w := words[i]
		dashed := !r.ended && (len(w.Text) > 1 && w.Text[0] == '-' || strings.HasPrefix(w.Text, "+") && (has(t.runs, "+") || has(t.text, "+")))
		name, does, next := "", "", i
		switch {
		case !r.ended && (w.mayBeOption() && !t.isValue(w) || w.Open && len(r.operands) == 0 && t.words != ""):
			if name, does = w.Source, doesHide; t.open {
				does = ""
			}
		case t.sets && w.Open && !dashed:
			name, does = w.Source, doesHide
		case !w.Open && w.Text == "--" && t.style != single:
			r.ended = !mayTakeNext(words[i-1])
		case dashed:
			name, does = t.option(w.Text, len(r.operands) > 0)
			if does == doesWrite && isNull(words, i) {
				does = ""
			}
			if does != "" && t.global && len(r.operands) == 0 && name == w.Text {
				next = i + 1 // its value is no operand
			} else if does == "" && !strings.Contains(w.Text, "=") && !hasWhole(t.flags, w.Text) {
				r.slack++
			}
		default:
			name, does = r.operand(w.Text, i)
		}
		if does != "" {
			found = append(found, acphost.CommandOption{Word: i, Name: name, Does: does})
		}
		i = next
	}
	return found
}

// mayTakeNext reports whether a word may be an option whose value is the next word: -- does not end the
// options there.
func mayTakeNext(w word) bool {
	return w.mayBeOption() || len(w.Text) > 1 && w.Text[0] == '-' && !strings.Contains(w.Text, "=") && !alone()[w.Text]
}

// alone are options that have no value in any program that has them.
var alone = setOf("--oneline --stat --numstat --shortstat --name-only --name-status --cached --staged --quiet --verbose --short --porcelain --all --force --hard --soft --ours --theirs --follow --no-color --dry-run --patch")

// isValue reports whether what is open in a word is the value of an option, as in -j$(nproc).
func (t *tool) isValue(w word) bool {
	return t.style == gnu && !w.split && len(w.Text) == 2 && w.Text[0] == '-' && strings.IndexByte(t.values, w.Text[1]) >= 0
}

// nulls are options with a file to write, which may be none.
var nulls = setOf("-o --output --output-document -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace")

// isNull reports whether what word i says to write is thrown away.
func isNull(words []word, i int) bool {
	name, value, joined := strings.Cut(words[i].Text, "=")
	if !joined && i+1 < len(words) && !words[i+1].Open {
		value = words[i+1].Text
	}
	return nulls()[name] && value == "/dev/null" && !words[i].Open
}

// A toolReader reads the words of a tool.
type toolReader struct {
	*tool
	ended    bool // there are no more options
	operands []string
	slack    int // options whose values may be taken for operands
	first    int // how many of them stand before the first operand
}

// operand takes an operand, word i, and returns what it does.
func (r *toolReader) operand(text string, i int) (name, does string) {
	if j := strings.IndexByte(text, '='); r.sets && j > 0 {
		if isFlag()[strings.ToLower(text[j+1:])] && !isRunVariable(text[:j]) {
			return "", ""
		}
		return text[:j+1], doesMove
	}
	if i == 1 && r.bundle != "" {
		if j := strings.IndexAny(text, r.bundle); j >= 0 {
			return text[:j+1], doesRun
		}
		return "", ""
	}
	if len(r.operands) == 0 {
		if r.first = r.slack; text[:min(1, len(text))] == "+" {
			return "", "" // cargo +nightly
		}
	}
	n := len(r.operands)
	r.operands = append(r.operands, text)
	if r.words != "" && n <= r.slack+1 {
		if n <= r.first && has(r.words, text) {
			return text, doesRun
		}
		for _, before := range r.operands[:min(n, r.first+1)] {
			if has(r.words, before+"+"+text) {
				return text, doesRun
			}
		}
	}
	if r.most > 0 && n >= r.most {
		return text, doesWrite
	}
	return "", ""
}

// option returns how an option is written and what it does, if a wildcard does not mean it.
func (t *tool) option(text string, later bool) (name, does string) {
	runs, writes, moves := t.runs, t.writes, t.moves
	if t.global && later && strings.HasPrefix(text, "--") && !t.script { // it counts wherever it stands
		runs += " " + t.later
	} else if t.global && later {
		runs, writes, moves = t.later, "", ""
	}
	has := has
	if t.whole {
		has = hasWhole
	}
	is := func(o string) string {
		switch {
		case has(t.text, o):
			return doesText
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
		if i := strings.IndexAny(o, ":,"); i > 0 && is(o) == "" { // -javaagent:a.jar, -Wl,-plugin,a.so
			o, name = o[:i], name[:len(name)-len(o)+i]
		}
		if does = is(o); does == "" && len(o) > 2 && hasWhole(t.joins, o[:2]) {
			return name[:2], is(o[:2])
		}
		return name, does
	}
	if strings.HasPrefix(text, "--") {
		name, _ = splitOption(text)
		return name, is(name)
	}
	if t.style == nopt && len(text) > 2 {
		if name, _ = splitOption(text); is("-"+name) != "" {
			return name, is("-" + name)
		}
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
