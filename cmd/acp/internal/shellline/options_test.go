package shellline_test

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/goacp/acp/acphost"
)

//go:embed testdata/options.txt
var optionLines string

// TestOptionTable: a wildcard does not cover an option that runs, loads or writes something: wherever it stands, in a
// program that another one runs, or in a file.
func TestOptionTable(t *testing.T) {
	n := 0
	for entry := range strings.Lines(optionLines) {
		rule, line, ok := strings.Cut(strings.TrimSuffix(entry, "\n"), "\t")
		if !ok {
			continue
		}
		n++
		if d := decide(t, line, acphost.Rule{Effect: acphost.EffectAllow, Commands: []string{rule}}); d.Effect == acphost.EffectAllow {
			t.Errorf("%s covers %s", rule, line)
		}
	}
	if n < 1500 {
		t.Errorf("%d lines", n)
	}
}

// TestThrough: what runs through a runner is allowed where it does no more than the rule means, and denied where a
// rule denies what it runs.
func TestThrough(t *testing.T) {
	for rule, lines := range map[string][]string{
		"npx prettier *": {"npx prettier --check a.js"}, "npx jest *": {"npx jest --watch=false a.test.js", "npx jest -t name"},
		"uv run pytest *": {"uv run pytest -q tests", "uv run pytest -k 'a and b'"}, "npm test *": {"npm test -- --watch=false"}, "pnpm vitest *": {"pnpm vitest --run"},
		"bundle exec rspec *": {"bundle exec rspec spec/a_spec.rb"}, "tox *": {"tox -e py312 -- -k name"}, "cmake --build *": {"cmake --build b -- -j4", "cmake --build b"},
		"kubectl get *": {"kubectl get pods -o wide", "kubectl get pods -n x"}, "gcc *": {"gcc -O2 -c a.c"}, "npm install *": {"npm install @types/node"},
	} {
		for _, line := range lines {
			if d := decide(t, line, acphost.Rule{Effect: acphost.EffectAllow, Commands: []string{rule}}); d.Effect != acphost.EffectAllow {
				t.Errorf("%s does not cover %s: %s", rule, line, d.Reason)
			}
		}
	}
	deny := acphost.Rule{Effect: acphost.EffectDeny, Commands: []string{"rm *", "git push *"}}
	for _, line := range []string{
		"acp exec --no-stdin hi -- rm victim", "acp tap -- rm victim", "acp check agent -- rm victim", "acp serve -- rm x", "acp agents add x rm y", "acp chat --agent 'rm x'", "acp exec --mcp 'x=rm y' hi",
		"acp config set providers.x.key_command rm x", "rpm --eval '%(rm x)'", "cloc --vcs='rm x'", "install -s --strip-program='rm x' a b", "diff3 --diff-program='rm x' 1 2 3",
		"aws configure set credential_process 'rm x'", "glab alias set --shell x 'rm x'", "ansible-playbook -i 'rm x' a.yml", "hub push", "git lfs push origin main", "git svn dcommit", "git p4 submit",
	} {
		if d := decide(t, line, deny, acphost.Rule{Effect: acphost.EffectAllow}); d.Effect == acphost.EffectAllow {
			t.Errorf("passes what is denied: %s", line)
		}
	}
}

// TestOptionTableLeaves: what people write every day with the programs of the table is covered.
func TestOptionTableLeaves(t *testing.T) {
	for _, line := range []string{
		"curl -sSfL https://x", "curl -XDELETE https://x", "curl -X DELETE -H 'Accept: E' https://x", "systemctl status x", "systemctl --user list-units -a", "journalctl -fu x -n 50 --no-pager", "journalctl -xeu x",
		"man ls", "man -k print", "apropos x", "node a.js", "node --test a.test.js", "prove -lvr t", "prove -j4 t", "cargo doc --no-deps", "cargo test --workspace -- --nocapture", "docker compose ps", "docker compose up -d", "docker compose logs web", "docker build -t x .",
		"docker build -f Dockerfile.dev .", "docker ps -a", "jar tf a.jar", "javap -p -c A", "jps -l", "jdeps -s a.jar", "dpkg -l", "dpkg-query -W -f '${Package}' x", "dpkg -S /bin/ls", "dpkg-deb -c a.deb", "gpg --list-keys", "objcopy --only-keep-debug a b",
		"strip a.o", "ss -tlnp", "yq .a f", "zip -r a.zip b", "gcc -O2 -Wall -Wextra -c a.c", "ssh-keygen -l", "pg_dump db", "kubectl get pods -n x -o json", "npm install x", "python3 -W ignore a.py", "python3 -W ignore::DeprecationWarning a.py", "python3 -X dev a.py",
		"mytool --output json x", "mytool --log-level debug", "mytool -o wide", "mytool --format=a.b", "mytool --no-config x", "grep -o a/b f", "ps -o pid,comm", "terraform plan", "perldoc -f open", "pgbench -c 4 db", "opt -S a.ll", "llvm-objdump -d a.o", "msgfmt -c a.po", "java -Xmx1g A", "csplit -k f 10",
		"tar -tf a.tar", "git log -p", "git diff --stat", "go test -run X -v ./...", "strace -f ls", "as --version", "pygmentize -l go a.go", "rustdoc --edition 2021 a.rs", "mvn -q test", "dig -x 1.2.3.4",
	} {
		program, _, _ := strings.Cut(line, " ")
		if d := decide(t, line, acphost.Rule{Effect: acphost.EffectAllow, Commands: []string{program + " *", "ls *"}}); d.Effect != acphost.EffectAllow {
			t.Errorf("%s * does not cover %s: %s", program, line, d.Reason)
		}
	}
}
