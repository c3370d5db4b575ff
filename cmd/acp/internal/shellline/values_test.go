package shellline

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/internal/long"
)

var oneOf = flag.Int("values", 61, "of how many lines TestValues runs one; 1 is all of them, and ACP_TESTS=all at least one of 7")

// TestValues runs each reader that is here with each of its options and a file that holds a secret, in places in which
// the table may take the file for the value of the option: what a harmless line prints does not depend on the secret.
func TestValues(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nothing is harmless there")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, secret := filepath.Join(top, "work"), filepath.Join(top, "secret")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "a.go"), "package a\n")
	run := func(line string) []string { // the lines that it prints, which may come in any order
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		cmd := exec.CommandContext(ctx, bash, "-c", line)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + top, "GIT_CONFIG_GLOBAL=/dev/null"}
		out, _ := cmd.CombinedOutput()
		return slices.Sorted(strings.Lines(string(out)))
	}
	run("git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm one")
	policy := &acphost.Policy{Commands: Parser{}}
	var lines []string
	for _, line := range valueLines() {
		req := acphost.Request{Kind: "execute", Command: line, Cwd: dir}
		if policy.Harmless(req, dir).Why == "" {
			lines = append(lines, line)
		}
	}
	if len(lines) < 100 {
		t.Errorf("only %d lines are harmless", len(lines))
	}
	for i, line := range lines {
		if i%*oneOf > 0 && (i%7 > 0 || !long.All()) {
			continue
		}
		write(secret, "KEY=swordfish 1\nuser KEY\n")
		one := run(line)
		if !slices.Equal(one, run(line)) {
			continue // it tells the time
		}
		write(secret, "KEY=butterfly 2\nuser\nKEY\n")
		if !slices.Equal(one, run(line)) {
			t.Errorf("%s: it prints what depends on a file that is not looked at", line)
		}
	}
}

// valueLines are the lines of [TestValues].
func valueLines() (lines []string) {
	const secret = "../secret"
	add := func(program string, r *reader) {
		options := strings.Fields(r.long + " " + r.next)
		for _, l := range r.letters + r.values + r.joined {
			options = append(options, "-"+string(l))
		}
		tells := strings.Trim(r.operands, string([]rune{kindText, kindNone})) != "" // what is in files
		if _, err := exec.LookPath(strings.Fields(program)[0]); err != nil || r.any || !tells {
			return
		}
		for _, o := range options {
			if o = strings.TrimSuffix(o, "="); strings.HasPrefix(program, "tail") && strings.ContainsAny(o, "fF") {
				continue // it does not end
			}
			for _, after := range []string{" ", " a.go ", " KEY a.go ", " -e KEY "} {
				lines = append(lines, program+after+o+" "+secret, program+after+o+" KEY "+secret)
			}
			lines = append(lines, program+" "+o+" "+secret+" a.go", program+" "+o+" "+secret+" KEY a.go")
			for _, l := range r.letters {
				if len(o) == 2 && (program != "tail" || l != 'f' && l != 'F') {
					lines = append(lines, program+" -"+string(l)+o[1:]+" "+secret)
				}
			}
		}
	}
	for i := range readers {
		for name := range strings.FieldsSeq(readers[i].names) {
			add(name, &readers[i])
		}
	}
	for i := range gitReaders {
		for name := range strings.FieldsSeq(gitReaders[i].names) {
			add("git "+name, &gitReaders[i])
		}
	}
	return lines
}
