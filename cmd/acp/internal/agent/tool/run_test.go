//go:build unix

package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/goacp/acp"
)

func commandInput(t *testing.T, line string) string {
	t.Helper()
	in, err := json.Marshal(RunInput{Command: line})
	if err != nil {
		t.Fatal(err)
	}
	return string(in)
}

// TestShell: lines are run by bash where there is one.
func TestShell(t *testing.T) {
	for _, test := range []struct {
		system string
		bash   bool
		want   string
	}{{"linux", true, "bash"}, {"darwin", true, "bash"}, {"linux", false, "sh"}, {"windows", true, "cmd"}} {
		got := shellOf(test.system, func(string) (string, error) {
			if test.bash {
				return "/bin/bash", nil
			}
			return "", errors.New("not found")
		})
		if got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	b := &bench{cwd: t.TempDir()}
	b.write(t, "env.sh", "X=sourced\n")
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	has(t, use(Run, commandInput(t, `source env.sh && [[ $X == s* ]] && set -o pipefail && echo $X {1..3}`)).Text, "sourced 1 2 3\nThe command has succeeded.")
}

// TestRunEnvironment: nothing waits for a person, and nothing is in colours.
func TestRunEnvironment(t *testing.T) {
	t.Setenv("EDITOR", "sleep 1000 #")
	t.Setenv("VISUAL", "sleep 1000 #")
	t.Setenv("PAGER", "sleep 1000")
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("FORCE_COLOR", "3")
	t.Setenv("CLICOLOR_FORCE", "1")
	b := &bench{cwd: t.TempDir()}
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	got := use(Run, commandInput(t, `echo "$PAGER $GIT_PAGER $MANPAGER $TERM $NO_COLOR $GIT_TERMINAL_PROMPT .$FORCE_COLOR.$CLICOLOR_FORCE.$CI"; $EDITOR x; sh -c "$VISUAL x"; $PAGER /dev/null && echo paged`))
	has(t, got.Text, "cat cat cat dumb 1 0 .."+".", "There is no editor here", "paged")
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	got = use(Run, commandInput(t, `git -c init.defaultBranch=main init -q . && echo a > a && git add a && git -c user.name=a -c user.email=a@b.c commit`))
	has(t, got.Text, "There is no editor here: give the text as an argument, as with git commit -m", "exit status")
	if got.Status != acp.ToolCallStatusFailed {
		t.Errorf("%+v", got)
	}
	got = use(Run, commandInput(t, `git -c user.name=a -c user.email=a@b.c commit -qm first && git log && printf '\033[31mred\033[0m\n0 %%\r50 %%\r100 %%\n'`))
	has(t, got.Text, "first\nred\n100 %\nThe command has succeeded.")
}

// TestRunLeft: a command whose children were ended with it says so.
func TestRunLeft(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not say what is left")
	}
	b := &bench{cwd: t.TempDir()}
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	has(t, use(Run, commandInput(t, `sleep 1000 & echo begun`)).Text, "begun\n",
		"The command has succeeded. 1 process that it had left in the background was ended with it. For what is to run on, use background.")
	has(t, use(Run, commandInput(t, `sleep 1000 & sleep 1000 & exit 3`)).Said, "exit status 3. 2 processes that it had left in the background were ended with it.")
	if got := use(Run, commandInput(t, `true & wait; yes | head -1`)).Text; strings.Contains(got, "background") {
		t.Error(got)
	}
}

var reLeft = regexp.MustCompile(`(?m)^\[lines (\d+)-(\d+) of (\d+) are left out here; read job:(\d+) with from: (\d+) shows them\]\n`)

// TestOutputKept: what was left out of an output can be read.
func TestOutputKept(t *testing.T) {
	b := &bench{cwd: t.TempDir()}
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	res := use(Run, commandInput(t, `seq 1 20000; echo the end`))
	m := reLeft.FindStringSubmatchIndex(res.Text)
	if m == nil || len(res.Text) > outputHead+outputTail+300 {
		t.Fatalf("%d bytes: %.200q", len(res.Text), res.Text)
	}
	group := func(n int) string { return res.Text[m[2*n]:m[2*n+1]] }
	whole := numberLines(20000) + "the end\n"
	var got strings.Builder
	got.WriteString(res.Text[:m[0]])
	from, _ := strconv.Atoi(group(5))
	last, _ := strconv.Atoi(group(2))
	for calls := 0; from <= last && calls < 100; calls++ {
		r := use(Read, fmt.Sprintf(`{"path":"job:%s","from":%d,"lines":%d}`, group(4), from, last-from+1))
		i := strings.LastIndex(r.Text, "[lines ")
		if i < 0 || len(r.Text) > outputHead+outputTail+200 {
			t.Fatalf("%d bytes: %.200q", len(r.Text), r.Text)
		}
		got.WriteString(r.Text[:i])
		n, _ := strconv.Atoi(reSays.FindStringSubmatch(r.Text[i:])[2])
		from = n + 1
	}
	got.WriteString(res.Text[m[1]:])
	if got.String() != whole+"The command has succeeded." {
		t.Errorf("%d bytes were read, want %d", got.Len(), len(whole))
	}
	if ended := b.jobs.Ended(); ended != "" {
		t.Errorf("what is known is said: %s", ended)
	}
	has(t, use(Read, `{"path":"job:77"}`).Said, `there is no job "77"`)

	// A long line.
	res = use(Run, commandInput(t, `head -c 300000 /dev/zero | tr '\0' x; echo; echo end`))
	has(t, res.Text, "xxx[… 298000 more characters of line 1]\nend\n")
	// More than is kept.
	res = use(Run, commandInput(t, `seq -f %.0f 1 1000000`))
	has(t, res.Text, "[the beginning is lost: the last 4194304 bytes are kept]\n", "are left out here", "\n1000000\n")
	// A job says what came since the last time, and where the rest of that is.
	job := strings.TrimRight(strings.TrimPrefix(use(Run, `{"command":"seq 1 9000","background":true}`).Said, "It runs in the background, as job "), ".")
	<-b.jobs.find(job).ended
	got.Reset()
	for range 2 {
		got.WriteString(use(Job, `{"id":"`+job+`","do":"read"}`).Text)
	}
	has(t, use(Read, `{"path":"job:`+job+`","from":8999}`).Text, "8999\n9000\n[lines 8999-9000 of 9000]")
	if text := got.String(); !strings.Contains(text, "9000\n") {
		t.Errorf("%.300q", text)
	}
}

func numberLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// TestOutputBound: the outputs that a session keeps are bounded, and a read says that one is gone.
func TestOutputBound(t *testing.T) {
	var j Jobs
	for range 10 {
		j.keep("x", &acp.TerminalState{Output: strings.Repeat("x", MaxOutput)})
	}
	size := 0
	for i, n := range j.all {
		state, err := n.now()
		if (err == nil) != (i > 10-maxKept/MaxOutput-2) {
			t.Errorf("job %d: %v", i+1, err)
		}
		if err == nil {
			size += len(state.Output)
		} else {
			has(t, err.Error(), "is not kept any more")
		}
	}
	if size > maxKept+MaxOutput {
		t.Errorf("%d bytes are kept", size)
	}
	for range 200 {
		j.keep("x", &acp.TerminalState{})
	}
	if len(j.all) > MaxJobs+maxKeptJobs {
		t.Errorf("%d jobs are kept", len(j.all))
	}
}

// TestCutOutput: the lines that are said to be left out are those that are.
func TestCutOutput(t *testing.T) {
	for name, text := range map[string]string{
		"short lines": numberLines(9000), "long lines": numbered(40, 5000), "one line": strings.Repeat("é", 30_000) + "\n",
		"a long one first": strings.Repeat("x", 30_000) + "\n" + numberLines(10), "a long one last": numberLines(10) + strings.Repeat("x", 30_000) + "\n",
		"empty lines": strings.Repeat("\n", 30_000), "wide": strings.Repeat(strings.Repeat("\U0001F600", 2000)+"\n", 9),
	} {
		for _, before := range []int{0, 50} {
			got := cutOutput(text, before, "1")
			total, shown := strings.Count(text, "\n"), strings.Count(got, "\n")
			if m := reLeft.FindStringSubmatch(got); m != nil {
				first, _ := strconv.Atoi(m[1])
				last, _ := strconv.Atoi(m[2])
				shown += last - first
				if m[3] != strconv.Itoa(total+before) || m[5] != m[1] {
					t.Errorf("%s: %s", name, m[0])
				}
			}
			if shown != total || len(got) > outputHead+outputTail+200 {
				t.Errorf("%s: %d lines in %d bytes, want %d", name, shown, len(got), total)
			}
		}
	}
}
