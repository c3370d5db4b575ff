package shellline_test

// A topic is a list of lines that try to pass rules in one way. Those in deny run what is denied beside a
// rule that allows everything; those in allow do something else, or more, than a pattern allows that is the
// name of their program and a wildcard.
type topic struct {
	name        string
	deny, allow []string
}

var topics = []topic{
	{name: "programs that run others",
		deny: []string{
			"rustup run x rm y", "ip netns exec n rm x", "ip vrf exec n rm x", "ip netns e n rm x", "tox exec -- rm x", "nc -e /bin/rm h 1", "nc -c 'rm x' h 1",
			"socat TCP-LISTEN:1 EXEC:'rm x'", "socat - SYSTEM:'rm x'", "cmake -E env rm x", "cmake -E env A=1 rm x", "cmake -E time rm x",
			"cmake --build . -- rm x", "dotnet exec rm x", "bun run rm x", "deno task rm x", "gdb -ex 'shell rm x'", "gdb -batch -ex '!rm x' f",
			"lldb -o 'shell rm x'", "cargo watch -x 'run' -s 'rm x'", "cargo make rm", "dlv exec rm", "apt-get -o DPkg::Pre-Invoke::=rm update",
			"dpkg --pre-invoke=rm -i x", "apt-get -o 'APT::Update::Pre-Invoke::=rm x' update", "snap run rm x", "helm plugin install rm",
			"gh extension exec rm x", "gh codespace ssh -- rm x", "composer exec rm x", "gem exec rm x", "meson devenv rm x", "bazel run //rm -- x",
			"heroku run rm x", "nox -- rm x", "turbo exec rm", "open -a rm", "xdg-open rm",
		},
		allow: []string{
			"rustup run x rm y", "ip netns exec n rm x", "ip vrf exec n rm x", "ip netns e n rm x", "tox exec -- rm x", "nc -e /bin/rm h 1", "nc -c 'rm x' h 1",
			"ncat --exec 'rm x' h 1", "ncat --sh-exec 'rm x' h 1", "socat TCP-LISTEN:1 EXEC:'rm x'", "socat - SYSTEM:'rm x'", "bun run rm x", "deno task rm x",
			"pm2 start rm", "foreman run rm x", "dotenv rm x", "dotenv -- rm x", "cross-env A=1 rm x", "op run -- rm x", "aws-vault exec p -- rm x",
			"doppler run -- rm x", "run-parts rm", "with-contenv rm x", "cargo watch -x 'run' -s 'rm x'", "cargo make rm", "dlv exec rm", "dlv debug",
			"apt-get -o DPkg::Pre-Invoke::=rm update", "dpkg --pre-invoke=rm -i x", "apt-get -o 'APT::Update::Pre-Invoke::=rm x' update", "snap run rm x",
			"flatpak run rm x", "brew ruby -e 'x'", "brew sh", "helm plugin install rm", "composer exec rm x", "gem exec rm x", "ctest -S rm",
			"ctest --build-and-test a b --test-command rm", "meson devenv rm x", "bazel run //rm -- x", "bazel run --run_under='rm x' //y", "heroku run rm x",
			"volta run rm x", "fnm exec --using=1 rm x", "nvm exec 18 rm x", "proto run rm -- x", "devbox run rm x", "turbo exec rm", "lerna exec rm x",
			"nx exec -- rm x", "qemu-x86_64 rm x", "wine rm.exe x", "gtk-launch rm",
		},
	},
	{name: "programs that run text of their own language",
		deny: []string{
			"python3.12 -Ic 'x'", "pypy3.10 -c x", "ruby3.2 -e x", "node20 -e x", "node22 --eval x", "perl5.36 -e x", "php8.2 -r x", "dc -e '!rm x'",
			"dc --expression='!rm x'", "echo '!rm x' | dc", "lua54 -e x", "echo 'exec rm x' | tclsh8.6", "guile -c x", `psql -c "COPY t TO PROGRAM 'rm x'"`,
			`psql -c "copy t from program 'rm x'"`, "psql db", "psql -h h db < f", "sqlite3 x", "echo '.shell rm x' | sqlite3 x", "sqlite3 x < f",
			"sqlite3 x 'select 1;\n.shell rm x'", "mysql -e 'SYSTEM rm x'", "mysql db", "mariadb -e 'system rm x'", "mysql --pager='rm x' -e 'select 1'",
			"ed f", `printf '!rm x\n' | ed f`, "vi -c '!rm x' f", "vim '+!rm x' f", "vim -es f", "vim --cmd '!rm x'", "vim +10 f", "nvim --headless -c 'x'",
			"emacs --eval x", "emacs -Q --batch --execute x", "emacsclient -e x", `gnuplot -e 'system("rm x")'`, "echo 'syscmd(rm x)' | m4", "m4 -Dx=y f",
			"ghc -e x", "runghc -e x", "ocaml -e x", "crystal eval x", "kotlin -e x", "clojure -e x", "clj -M -e x", "bb -e x", "gjs -c x", "qjs -e x",
			"octave --eval x", "sage -c x", "irb", "pry -e x", "swipl -g x", "csi -e x", "janet -e x", "fennel -e x", "duckdb -c '.shell rm x'",
			"duckdb x '.shell rm'", "mongosh --eval x", "mongo --eval x", "lftp -c '!rm x'", "mail -s x y", "gdb", "gdb -p 1", "echo 'shell rm x' | gdb -q f",
			"rake -e x", "coffee -e x", "livescript -e x", "lsc -e x", "raku -e x", "perl6 -e x", "rakudo -e x", "python3 /dev/stdin < f",
			"node /dev/stdin < f", "node /proc/self/fd/0 < f", "bash /dev/stdin < f", "sh /dev/fd/0 < f", "perl /dev/stdin < f",
			`gawk-5.1 'BEGIN{system("rm x")}'`, `original-awk 'BEGIN{system("rm x")}'`, `bwk 'BEGIN{system("rm x")}'`, `goawk 'BEGIN{system("rm x")}'`,
			"lualatex --shell-escape f", "pdflatex -shell-escape f", "latexmk -e x", "gs -c x", "sed s/a/b/e f", "sed 's/a/b/w f' g", "ssed '1e rm x' f",
			"gsed '1e rm x' f", "sed '1e rm x' f", "sed -n 's/x/rm x/e' f", "sed 's/a/b/;w rm' f", "sed '$!{e rm x\n}' f",
			`sed -e 'a\' -e 'rm x' -e '1e rm x' f`, `sed 'a x\' f`, `sed ':a;N;$!ba;s/\n/ /;e rm x' f`, "sed 'bx;e' f", "make X?='$(rm)'",
		},
		allow: []string{
			"python3.12 -c 'rm x'", "python3.12 -Ic 'x'", "pypy3.10 -c x", "ruby3.2 -e x", "node20 -e x", "node22 --eval x", "perl5.36 -e x", "php8.2 -r x",
			"dc -e '!rm x'", "dc --expression='!rm x'", "lua54 -e x", "guile -c x", `psql -c "COPY t TO PROGRAM 'rm x'"`,
			`psql -c "copy t from program 'rm x'"`, "psql db", "psql -h h db < f", "sqlite3 x", "sqlite3 x < f", "sqlite3 x 'select 1;\n.shell rm x'",
			"mysql -e 'SYSTEM rm x'", "mysql db", "mariadb -e 'system rm x'", "mysql --pager='rm x' -e 'select 1'", "ed f", `gnuplot -e 'system("rm x")'`,
			"m4 -Dx=y f", "ghc -e x", "runghc -e x", "ocaml -e x", "crystal eval x", "kotlin -e x", "clojure -e x", "clj -M -e x", "bb -e x", "gjs -c x",
			"qjs -e x", "octave --eval x", "sage -c x", "irb", "pry -e x", "swipl -g x", "csi -e x", "janet -e x", "fennel -e x", "duckdb -c '.shell rm x'",
			"duckdb x '.shell rm'", "mongosh --eval x", "mongo --eval x", "lftp -c '!rm x'", "mail -s x y", "gdb", "gdb -p 1", "mix run -e x", "rake -e x",
			"rails runner x", "coffee -e x", "livescript -e x", "lsc -e x", "raku -e x", "perl6 -e x", "rakudo -e x", "python3 -mpytest -p evil",
			"python3 -m pytest -p evil", "python3 -m pytest -c x.ini", "python3 -m pip install --target=/x y", "python3 /dev/stdin < f", "node /dev/stdin < f",
			"node /proc/self/fd/0 < f", "bash /dev/stdin < f", "sh /dev/fd/0 < f", "perl /dev/stdin < f", `gawk-5.1 'BEGIN{system("rm x")}'`,
			`original-awk 'BEGIN{system("rm x")}'`, `bwk 'BEGIN{system("rm x")}'`, `goawk 'BEGIN{system("rm x")}'`, "lualatex --shell-escape f",
			"pdflatex -shell-escape f", "latexmk -e x", "groff -U f", "gs -c x", "ssed '1e rm x' f", "make X?='$(rm)'",
		},
	},
	{name: "variables, and what make and npm are given",
		deny: []string{
			"GIT_PAGER='rm x' git log", "PAGER=rm git log", "EDITOR='rm x' git commit", "GIT_SSH_COMMAND='rm x' git fetch", "GIT_EXTERNAL_DIFF='rm' git diff",
			"LESSOPEN='|rm %s' less f", "LD_PRELOAD=./x.so ls", "NODE_OPTIONS='-r ./x' node f", "PYTHONSTARTUP=f python3 f", "PERL5OPT=-Mx perl f",
			"RUBYOPT=-rx ruby f", "BASH_ENV=f bash f", "ENV=f sh f", "PROMPT_COMMAND='rm x' bash f", "PATH=/x ls", "PATH=/x:$PATH ls", "PATH+=:/x; ls",
			"GOFLAGS=-toolexec=x go build", "GOENV=/x go build", "CC='rm x' make", "MAKEFLAGS=--eval=x make", "RUSTC_WRAPPER=rm cargo build",
			"CARGO_TARGET_X_RUNNER=rm cargo test", "npm_config_script_shell=rm npm test", "NPM_CONFIG_script_shell=rm npm test",
			"GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0='rm x' git log", "env PAGER='rm x' git log", "sudo PATH=/x ls",
			"export PATH=/x; ls", "export PATH=/x && ls", "declare -x PATH=/x; ls", "typeset -x PATH=/x; ls", "declare PATH+=/x; ls", "readonly PATH=/x; ls",
			"f() { local PATH=/x; ls; }; f", `export "PATH=/x"; ls`, `export "$x"; ls`, "declare -n r=PATH; r=/x; ls", "declare -nx r=PATH; r=/x; ls",
			"for PATH in /x; do ls; done", "read -r PATH < f; ls", "printf -v PATH /x; ls", "printf -vPATH /x; ls", `printf -v "PATH" %s /x; ls`,
			"mapfile PATH < f; ls", "mapfile -t PATH < f; ls", "readarray PATH < f; ls", "getopts a PATH; ls", ": ${PATH:=/x}; ls",
			": ${GOFLAGS:=-toolexec=x}; go build", "echo ${GOFLAGS=-toolexec=x}; go build", "set -a; PATH=/x; ls", "set -k; ls PATH=/x", "set -ek; ls PATH=/x",
			"set -o keyword; ls PATH=/x", "wait -p PATH; ls", "MANPAGER='rm x' man ls", "DYLD_INSERT_LIBRARIES=x ls", "FOO='$(shell rm x)' make",
			"make FOO='$(shell rm x)'", "make FOO='${shell rm x}'", "DEBUG='$(shell rm x)' make", "x='$(shell rm x)' make", "make SHELL:=x",
			"make SHELL=/bin/rm", "make X!=id", "make X!='rm x'", "make -f -", "make -f- < f", "make -f /dev/stdin < f", "make -f/dev/stdin < f",
			"make --file=- < f", "make --file=/dev/stdin", "make --eval='x'", "make --eval 'x:;rm x'", "make -E 'x'", "make CC='rm x'",
			"npm --loglevel silent exec rm x", "npm --loglevel silent -- exec rm x", "docker compose -f x.yml run rm x",
			"docker compose -p x -f x.yml exec c rm x",
		},
		allow: []string{
			"make SHELL:=x", "make X!=id", "make X!='rm x'", "make X?=1", "npm test -script-shell=id", "npm test -script-shell id", "npm test -scr=id",
			"npm test -node-options='-r ./x'", "npm run build -prefix /x", "npm --loglevel silent exec rm x", "npm --loglevel silent -- exec rm x",
			"cargo +nightly run", "cargo --color always run", "git --attr-source HEAD config alias.x '!rm x'", "docker compose -f x.yml run rm x",
			"docker compose -p x -f x.yml exec c rm x", "uniq -- a b",
		},
	},
}
