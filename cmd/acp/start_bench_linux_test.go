package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// released builds a commit as releases are built; "" is what is checked out.
func released(b *testing.B, commit string) string {
	b.Helper()
	run := func(dir string, name string, args ...string) {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	dir, exe := ".", filepath.Join(b.TempDir(), "acp")
	if commit != "" {
		tree := filepath.Join(b.TempDir(), "tree")
		run(".", "git", "worktree", "add", "--detach", tree, commit)
		b.Cleanup(func() { run(".", "git", "worktree", "remove", "--force", tree) })
		dir = filepath.Join(tree, "cmd", "acp")
	}
	run(dir, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", exe, ".")
	return exe
}

// BenchmarkStart measures what a process does before it is of use: acp version until it has ended, acp agent until its
// answer to initialize, and acp hold until a gateway is attached to its socket. ACP_BEFORE is a commit to compare with,
// in turns. The first run of each counts for nothing: it fills the caches of the system.
func BenchmarkStart(b *testing.B) {
	exes := []string{released(b, "")}
	if commit := os.Getenv("ACP_BEFORE"); commit != "" {
		exes = append(exes, released(b, commit))
	}
	for _, what := range []struct {
		name string
		run  func(*testing.B, string) float64
	}{{"version", startVersion}, {"agent", startAgent}, {"hold", startHold}, {"init", startInit}} {
		b.Run(what.name, func(b *testing.B) {
			took := make([][]float64, len(exes))
			for first := true; b.Loop(); first = false {
				for i, exe := range exes {
					if v := what.run(b, exe); !first || b.N == 1 {
						took[i] = append(took[i], v)
					}
				}
			}
			report(b, took[0], "ms")
			if len(exes) > 1 {
				report(b, took[1], "before-ms")
				b.ReportMetric(took[0][len(took[0])/2]/took[1][len(took[1])/2], "ratio") // report has sorted them
			}
		})
	}
	b.Run("size", func(b *testing.B) {
		for b.Loop() {
		}
		for i, exe := range exes {
			info, err := os.Stat(exe)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(info.Size())/1e6, []string{"MB", "before-MB"}[i])
		}
		b.ReportMetric(0, "ns/op")
	})
}

// fresh returns a command with a home of its own.
func fresh(b *testing.B, exe string, args ...string) *exec.Cmd {
	cmd := exec.Command(exe, args...)
	cmd.Dir = b.TempDir()
	cmd.Env = []string{"HOME=" + cmd.Dir, "PATH=" + os.Getenv("PATH")}
	return cmd
}

func startVersion(b *testing.B, exe string) float64 {
	cmd := fresh(b, exe, "version")
	start := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	return ms(start)
}

func startAgent(b *testing.B, exe string) float64 {
	cmd := fresh(b, exe, "agent")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	_, err = in.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}` + "\n"))
	if err != nil {
		b.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	took := ms(start)
	if err != nil || !strings.Contains(line, `"result"`) {
		b.Fatalf("%q, %v", line, err)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return took
}

func startHold(b *testing.B, exe string) float64 {
	start := time.Now()
	a := hold(b, exe, "hold")
	took := ms(start)
	if err := a.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
	return took
}

var initClock = regexp.MustCompile(`(?m)^init .* ([0-9.]+) ms clock`)

// startInit returns what the initialization of packages takes, by the runtime's own clock.
func startInit(b *testing.B, exe string) (sum float64) {
	cmd := fresh(b, exe, "version")
	cmd.Env = append(cmd.Env, "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range initClock.FindAllSubmatch(out, -1) {
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += v
	}
	return sum
}
