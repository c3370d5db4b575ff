//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/test/terminal"
)

// program builds the program as users have it.
func program(b *testing.B) string {
	b.Helper()
	exe := filepath.Join(b.TempDir(), "acp")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// open starts the program on a terminal, in a home of its own.
func open(b *testing.B, exe, home string) (*terminal.Screen, *exec.Cmd) {
	b.Helper()
	cmd := exec.Command(exe)
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "TERM=xterm-256color", "PATH=" + os.Getenv("PATH")}
	return terminal.Start(b, cmd, 100, 30), cmd
}

const prompt = "type a prompt"

// BenchmarkFirstPaint measures how long after its start the program has drawn
// its screen, and how long until the agent is there.
func BenchmarkFirstPaint(b *testing.B) {
	exe, home := program(b), b.TempDir()
	var painted, ready []float64
	for b.Loop() {
		start := time.Now()
		s, _ := open(b, exe, home)
		s.Wait("›")
		painted = append(painted, ms(start))
		s.Wait(prompt)
		ready = append(ready, ms(start))
		s.Press("ctrl+d")
		s.Exit()
	}
	report(b, painted, "first-paint-ms")
	report(b, ready, "ready-ms")
}

// BenchmarkIdle measures the memory of a conversation in which nothing has
// happened yet, a second after its agent was ready.
func BenchmarkIdle(b *testing.B) {
	exe, home := program(b), b.TempDir()
	var resident []float64
	for b.Loop() {
		s, cmd := open(b, exe, home)
		s.Wait(prompt)
		time.Sleep(time.Second)
		resident = append(resident, residentMB(b, cmd.Process.Pid))
		s.Press("ctrl+d")
		s.Exit()
	}
	report(b, resident, "resident-MB")
}

// BenchmarkWritten counts the bytes that are written to the terminal in a short
// conversation, from its start to its end.
func BenchmarkWritten(b *testing.B) {
	exe, home := program(b), b.TempDir()
	var written []float64
	for b.Loop() {
		s, _ := open(b, exe, home)
		s.Wait(prompt)
		s.Type("hello, what can you do?")
		s.Press("enter")
		s.Wait("no language model", prompt)
		s.Type("/plan read; write")
		s.Press("enter")
		s.Wait("0 of 2", prompt)
		s.Press("ctrl+d")
		s.Exit()
		written = append(written, float64(len(s.Output()))/1000)
	}
	report(b, written, "written-kB")
}

// BenchmarkBurst measures how long a key takes to be seen while 50,000 updates
// arrive, and the whole.
func BenchmarkBurst(b *testing.B) {
	exe, home := program(b), b.TempDir()
	const updates = 50_000
	last := fmt.Sprintf("update %d of %d", updates, updates)
	var keys, whole, resident []float64
	for b.Loop() {
		s, cmd := open(b, exe, home)
		s.Wait(prompt)
		s.Type("/demo flood " + strconv.Itoa(updates))
		s.Press("enter")
		start := time.Now()
		var typed strings.Builder
		for {
			mark := fmt.Sprintf("%c", 'a'+typed.Len()%26)
			at := time.Now()
			s.Type(mark)
			typed.WriteString(mark)
			want := typed.String()
			s.Until("the key", func(text string) bool { return strings.Contains(text, "› "+want) })
			keys = append(keys, ms(at))
			if typed.Len() == 80 || strings.Contains(s.Text(), last) {
				break
			}
		}
		s.Wait(last)
		whole = append(whole, ms(start))
		resident = append(resident, residentMB(b, cmd.Process.Pid))
		s.Press("ctrl+c")
		s.Press("ctrl+d")
	}
	report(b, keys, "key-ms")
	report(b, whole, "whole-ms")
	report(b, resident, "resident-MB")
}

func ms(start time.Time) float64 { return float64(time.Since(start)) / float64(time.Millisecond) }

// report reports the median and the worst of values.
func report(b *testing.B, values []float64, unit string) {
	slices.Sort(values)
	b.ReportMetric(values[len(values)/2], unit+"-p50")
	b.ReportMetric(values[len(values)-1], unit+"-max")
	b.ReportMetric(0, "ns/op")
}

func residentMB(b *testing.B, pid int) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				b.Fatal(err)
			}
			return float64(kb) * 1024 / 1e6
		}
	}
	b.Fatal("no VmRSS")
	return 0
}
