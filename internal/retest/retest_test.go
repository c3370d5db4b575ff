package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSplit: which commands are run again, and with which arguments.
func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		args  string
		f     failure
		alone string // empty: nothing is run again
	}{
		{"build ./...", failure{}, ""},
		{"", failure{}, ""},
		{"test -c -o x ./p", failure{}, ""},
		{"test -json work", failure{}, ""},
		{"test -run ^$ -bench . ./p", failure{}, ""},
		{"test --list=. ./p", failure{}, ""},
		{"test work", failure{"x/p", "TestA"}, "test -count=1 -run=^TestA$ x/p"},
		{"test work", failure{"x/p", ""}, "test -count=1 x/p"},
		{"test", failure{"x/p", "TestA"}, "test -count=1 -run=^TestA$ x/p"},
		{"test -race -short -timeout 20m work", failure{"x/p", "TestA/b_c#01"},
			`test -race -short -timeout=20m -count=1 -run=^TestA$/^b_c#01$ x/p`},
		{"test -run ^(TestA|TestB)$ -count=1 ./a ./b", failure{"x/p", "TestA/1.5"}, `test -count=1 -run=^TestA$/^1\.5$ x/p`},
		{"test -run ^TestA$ ./a", failure{"x/p", ""}, "test -run=^TestA$ -count=1 x/p"},
		{"test -coverpkg=./... -coverprofile p ./...", failure{"x/p", "TestA"}, "test -count=1 -run=^TestA$ x/p"},
		{"test ./p -values 2000", failure{"x/p", "TestA"}, "test -values=2000 -count=1 -run=^TestA$ x/p"},
		{"test ./p -cluster -timeout 1m", failure{"x/p", "TestA"}, "test -cluster -timeout=1m -count=1 -run=^TestA$ x/p"},
		{"test -race -exec ./quiet work", failure{"x/p", "TestA"}, "test -race -exec=./quiet -count=1 -run=^TestA$ x/p"},
		{"test ./p -args -run x", failure{"x/p", "TestA"}, "test -count=1 -run=^TestA$ x/p -args -run x"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			c, again := split(strings.Fields(tt.args))
			if again != (tt.alone != "") {
				t.Fatalf("again = %t", again)
			}
			if got := strings.Join(c.alone(tt.f), " "); again && got != tt.alone {
				t.Errorf("got  %s\nwant %s", got, tt.alone)
			}
		})
	}
}

// TestOutput: what is read in the output of go test.
func TestOutput(t *testing.T) {
	const ok = "ok  \tx/ok\t0.1s\n"
	many := ""
	for i := range maxAgain + 1 {
		many += fmt.Sprintf("--- FAIL: Test%d (0.00s)\n", i)
	}
	for _, tt := range []struct {
		name, out string
		want      []failure
		err       string
	}{
		{"a test", ok + "--- FAIL: TestA (0.00s)\n    a_test.go:5: x\nFAIL\nFAIL\tx/p\t0.003s\n" + ok + "FAIL\n", []failure{{"x/p", "TestA"}}, ""},
		{"two packages", "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tx/p\t0.003s\n--- FAIL: TestB (0.00s)\nFAIL\nFAIL\tx/q\t0.003s\nFAIL\n",
			[]failure{{"x/p", "TestA"}, {"x/q", "TestB"}}, ""},
		{"a part of a test", "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n        a_test.go:5: x\n    --- FAIL: TestA/c (0.00s)\nFAIL\nFAIL\tx/p\t0.003s\n",
			[]failure{{"x/p", "TestA/b"}, {"x/p", "TestA/c"}}, ""},
		{"a panic", "--- FAIL: TestA (0.00s)\npanic: x [recovered, repanicked]\n\ngoroutine 7 [running]:\nFAIL\tx/p\t0.003s\nFAIL\n", []failure{{"x/p", ""}}, ""},
		{"out of time", "panic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\nFAIL\tx/p\t1.003s\nFAIL\n", []failure{{"x/p", ""}}, ""},
		{"goroutines left", "PASS\ngoroutines left behind:\n\nx\nFAIL\tx/p\t0.1s\nFAIL\n", []failure{{"x/p", ""}}, ""},
		{"a line that is long", "--- FAIL: TestA (0.00s)\n" + strings.Repeat("x", 3*maxLine) + "\nFAIL\nFAIL\tx/p\t0.003s\n", []failure{{"x/p", "TestA"}}, ""},
		{"a race", "WARNING: DATA RACE\n--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tx/p\t0.003s\n", nil, "there was a data race"},
		{"a race of a child", "    x_test.go:5: ==================\n        WARNING: DATA RACE\n--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tx/p\t0.003s\n", nil, "there was a data race"},
		{"does not build", "FAIL\tx/p [build failed]\nFAIL\n", nil, "x/p: build failed"},
		{"no such package", "FAIL\tx/p [setup failed]\nFAIL\n", nil, "x/p: setup failed"},
		{"nothing", "", nil, "go test does not say which test failed"},
		{"too many", many + "FAIL\nFAIL\tx/p\t0.003s\n", nil, "11 tests failed, and more than 10 are not chance"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, size := range []int{len(tt.out) + 1, 7, 1} {
				var o output
				for part := []byte(tt.out); len(part) > 0; part = part[min(size, len(part)):] {
					o.Write(part[:min(size, len(part))])
				}
				got, err := o.failures()
				if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(failure{})); diff != "" {
					t.Errorf("%d at once: %s", size, diff)
				}
				if text := fmt.Sprint(err); tt.err != "" && text != tt.err || tt.err == "" && err != nil {
					t.Errorf("%d at once: error %q", size, text)
				}
			}
		})
	}
}

// TestAgain runs a module with tests of several kinds.
func TestAgain(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no go command")
	}
	const second = `
		path := "again"
		if _, err := os.Stat(path); err == nil { return }
		if err := os.WriteFile(path, nil, 0o600); err != nil { panic(err) }
		t.Run("sub", func(t *testing.T) { `
	for _, tt := range []struct {
		name, body string
		status     int
		flaky      []string
	}{
		{"passes", `t.Run("sub", func(t *testing.T) { `, 0, nil},
		{"fails once", second + `t.Error("x")`, 0, []string{"example.org/x TestIt/sub"}},
		{"panics once", second + `panic("x")`, 0, []string{"example.org/x"}},
		{"has another name then", `t.Run(fmt.Sprint(time.Now().UnixNano()), func(t *testing.T) { t.Error("x")`, 1, nil},
		{"fails", `t.Run("sub", func(t *testing.T) { t.Error("x")`, 1, nil},
		{"does not build", `{ y`, 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{
				"go.mod":    "module example.org/x\n\ngo 1.26\n",
				"x_test.go": "package x\n\nimport (\"fmt\"; \"os\"; \"testing\"; \"time\")\n\nvar _, _, _ = os.Stat, fmt.Sprint, time.Now\n\nfunc TestIt(t *testing.T) { " + tt.body + "})\n}\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			run := command(t.Context(), tool, append(os.Environ(), "GOWORK=off", "GOFLAGS="))
			var out, errs bytes.Buffer
			r := runner{out: &out, err: &errs, run: func(args []string, o, e io.Writer) (int, error) {
				return run(append([]string{"-C", dir}, args...), o, e)
			}}
			status, flaky := r.start([]string{"test", "-vet=off", "./..."})
			if diff := cmp.Diff(tt.flaky, flaky); status != tt.status || diff != "" {
				t.Errorf("status %d: %s\n%s\n%s", status, diff, &out, &errs)
			}
		})
	}
}

// TestRetest: the program as the gate runs it.
func TestRetest(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no go command")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, self, tool string
		status           int
		out, err         string // a part of what is written
	}{
		{"runs the go command", self, tool, 0, "go version ", ""},
		{"no go command is named", self, "", 2, "", "$RETEST_GO does not name the go command"},
		{"no such go command", self, filepath.Join(t.TempDir(), "go"), 2, "", "no such file"},
		{"not found itself", filepath.Join(t.TempDir(), "self"), tool, 2, "", "self"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			environ := append(os.Environ(), "RETEST_FLAKY=", "RETEST_GO="+tt.tool)
			status := retest(t.Context(), []string{tt.self, "version"}, environ, &out, &errs)
			if status != tt.status || !strings.Contains(out.String(), tt.out) || !strings.Contains(errs.String(), tt.err) {
				t.Errorf("status %d, %q, %q", status, &out, &errs)
			}
		})
	}
}

// TestCannotRun: a go command that cannot be run, or is interrupted, has failed.
func TestCannotRun(t *testing.T) {
	r := runner{out: t.Output(), err: t.Output(), run: func([]string, io.Writer, io.Writer) (int, error) {
		return 0, errors.New("interrupted")
	}}
	if status, flaky := r.start([]string{"test", "work"}); status != 2 || flaky != nil {
		t.Errorf("status %d, flaky %q", status, flaky)
	}
}

// TestNote: tests are appended to the file.
func TestNote(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flaky")
	for _, tests := range [][]string{nil, {"x/p TestA"}, {"x/p TestB", "x/q"}} {
		if err := note(path, tests); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if want := "x/p TestA\nx/p TestB\nx/q\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
}

// TestWithout: tests that call go get the real one.
func TestWithout(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	list := func(dirs ...string) string { return "PATH=" + strings.Join(dirs, string(filepath.ListSeparator)) }
	got, err := without([]string{"A=b", list(filepath.Dir(self), "c", "d")}, self)
	if diff := cmp.Diff([]string{"A=b", list("c", "d")}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
