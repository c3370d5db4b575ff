package shellline

import (
	"maps"
	"path"
	"strings"
	"sync"
)

// known are programs that run nothing of what their words say, or that are examined elsewhere; the
// words of others may be commands.
var known = sync.OnceValue(func() map[string]bool { return union(set(knownNames), bourne(), keys(foreignOf()), keys(texts())) })

const knownNames = `
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
	pandoc convert ffmpeg open xdg-open pbcopy pbpaste tput clear reset nano mysqldump pg_dump
`

// base returns the name of a program without its directory, as the tables have it.
func base(program string) string {
	return strings.TrimSuffix(strings.ToLower(path.Base(program)), ".exe")
}

// tableName returns the name of a program under which the tables have it: without a version.
func tableName(name string) string {
	if inTables(name) {
		return name
	}
	if short := strings.TrimRight(strings.TrimRight(name, "0123456789."), "-"); short != "" && inTables(short) {
		return short
	}
	return name
}

// inTables reports whether a table has a program.
func inTables(name string) bool {
	return toolOf()[name] != nil || len(moreOf()[name]) > 0 || wrapperOf()[name] != nil || known()[name] || programs()[name] != nil || builtins()[name] != nil
}

// isStandard reports whether a name stands for a program of the system and not for some file.
func isStandard(program string) bool {
	dir, name := path.Split(program)
	switch dir {
	case "", "/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/", "/sbin/", "/usr/sbin/":
		return name == strings.ToLower(name)
	}
	return false
}

// set returns the words of a list.
func set(list string) map[string]bool {
	m := map[string]bool{}
	for s := range strings.FieldsSeq(list) {
		m[s] = true
	}
	return m
}

// setOf returns a function that returns the set of the words in a list, which is made with its first call.
func setOf(list string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool { return set(list) })
}

// union returns what is in any of some sets.
func union(sets ...map[string]bool) map[string]bool {
	all := map[string]bool{}
	for _, s := range sets {
		maps.Copy(all, s)
	}
	return all
}

// keys returns the names in a table.
func keys[T any](table map[string]T) map[string]bool {
	all := map[string]bool{}
	for name := range table {
		all[name] = true
	}
	return all
}

// byName returns a function that returns the rows of a table by each of the names that are listed in them. The
// map is made with its first call: most runs of the program read no command line.
func byName[T any](table []T, names func(*T) string) func() map[string]*T {
	return sync.OnceValue(func() map[string]*T {
		m := map[string]*T{}
		for i := range table {
			for name := range strings.FieldsSeq(names(&table[i])) {
				m[name] = &table[i]
			}
		}
		return m
	})
}

// has reports whether a list of options has one; long ones may be abbreviated. One that ends with * stands for all
// that begin so.
func has(list, option string) bool {
	for o := range strings.FieldsSeq(list) {
		if begins(o, option) || len(option) > 2 && strings.HasPrefix(option, "--") && strings.HasPrefix(o, option) {
			return true
		}
	}
	return false
}

// hasWhole reports whether a list has an option, as it is written.
func hasWhole(list, option string) bool {
	for o := range strings.FieldsSeq(list) {
		if begins(o, option) {
			return true
		}
	}
	return false
}

// begins reports whether an entry of a list stands for an option.
func begins(entry, option string) bool {
	start, more := strings.CutSuffix(entry, "*")
	return option == start || more && strings.HasPrefix(option, start)
}

// splitOption returns the name in --option=value, and whether there is a value.
func splitOption(text string) (name string, value bool) {
	name, _, value = strings.Cut(text, "=")
	return name, value
}
