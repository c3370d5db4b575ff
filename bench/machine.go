package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// machine is what results depend on.
type machine struct {
	command, cpu, kernel, node string
}

func thisMachine() machine {
	return machine{
		command: strings.Join(append([]string{"go run ."}, os.Args[1:]...), " "),
		cpu:     firstLine("/proc/cpuinfo", "model name"),
		kernel:  output("uname", "-sr"),
		node:    output("node", "--version"),
	}
}

func (m machine) rows(rounds int, took time.Duration) [][2]string {
	return [][2]string{
		{"date", time.Now().UTC().Format("2006-01-02 15:04 UTC")},
		{"command", "`" + m.command + "`"},
		{"rounds", fmt.Sprintf("up to %d, %s in all", rounds, took.Round(time.Second))},
		{"CPU", fmt.Sprintf("%s, %d usable", m.cpu, runtime.NumCPU())},
		{"system", fmt.Sprintf("%s, %s/%s", m.kernel, runtime.GOOS, runtime.GOARCH)},
		{"Go", runtime.Version()},
		{"Node", m.node},
		{"coder/acp-go-sdk", moduleVersion("github.com/coder/acp-go-sdk")},
		{"@agentclientprotocol/sdk", packageVersion()},
		{"load before the end", firstLine("/proc/loadavg", "")},
	}
}

// firstLine returns the value of the first line that begins with the key.
func firstLine(path, key string) string {
	f, err := os.Open(path)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if line, ok := strings.CutPrefix(s.Text(), key); ok {
			return strings.TrimLeft(line, " \t:")
		}
	}
	return "unknown"
}

func output(name string, args ...string) string {
	b, err := exec.Command(name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, d := range info.Deps {
		if d.Path == path {
			return d.Version
		}
	}
	return "unknown"
}

func packageVersion() string {
	b, err := os.ReadFile("node_modules/@agentclientprotocol/sdk/package.json")
	if err != nil {
		return "not installed"
	}
	_, rest, _ := strings.Cut(string(b), `"version": "`)
	v, _, _ := strings.Cut(rest, `"`)
	return v
}
