package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// markVariable marks every process of a trial, since the environment is inherited.
const markVariable = "ACP_HARNESS_MARK"

// processes returns those of the trial, without zombies. Without /proc there are none.
func (x *trial) processes() []int {
	var all []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		env, err := os.ReadFile(filepath.Join(d, "environ"))
		if err != nil || !bytes.Contains(env, []byte(markVariable+"="+x.mark+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(d)); err == nil && pid != os.Getpid() {
			all = append(all, pid)
		}
	}
	return all
}

// kill kills all processes of the trial.
func (x *trial) kill() {
	for _, pid := range x.processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL) // one that has ended is as good
	}
}

// remain returns how many processes are left a while after the end, and ends them.
func (x *trial) remain() int {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if len(x.processes()) == 0 {
			return 0
		}
	}
	left := len(x.processes())
	x.kill()
	return left
}

// used returns the processor time and the greatest memory of the processes that live.
func (x *trial) used() (cpu time.Duration, rss int64) {
	for _, pid := range x.processes() {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			continue
		}
		if i := bytes.LastIndexByte(stat, ')'); i >= 0 {
			fields := strings.Fields(string(stat[i+1:]))
			for _, f := range []int{11, 12, 13, 14} { // user and system time, its own and its children's
				if n, err := strconv.ParseInt(fields[f], 10, 64); err == nil {
					cpu += time.Duration(n) * 10 * time.Millisecond
				}
			}
		}
		status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
		if err != nil {
			continue
		}
		if m := peak.FindSubmatch(status); m != nil {
			if n, err := strconv.ParseInt(string(m[1]), 10, 64); err == nil {
				rss += n << 10
			}
		}
	}
	return cpu, rss
}

var peak = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB`)

// A segment is a piece of a request in the order in which a model reads it.
type segment string

// marks are where a provider is to end what it caches. They are not part of what it reads.
var marks = regexp.MustCompile(`,?"cache_control":\{[^}]*\}`)

// segments returns what a model reads of a request: tools, instructions, messages.
func segments(api string, body []byte) []segment {
	var in map[string]json.RawMessage
	if json.Unmarshal(marks.ReplaceAll(body, nil), &in) != nil {
		return nil
	}
	var all []segment
	add := func(raw json.RawMessage) {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) == nil {
			for _, e := range list {
				all = append(all, segment(e))
			}
			return
		}
		if len(raw) > 0 {
			all = append(all, segment(raw))
		}
	}
	fields := map[string][]string{
		"messages": {"tools", "system", "messages"}, "responses": {"tools", "instructions", "input"},
		"chat": {"tools", "messages"}, "generate": {"tools", "systemInstruction", "contents"},
	}
	for _, name := range fields[api] {
		add(in[name])
	}
	return all
}

// reused returns the share of a request that the next one begins with.
func reused(was, now []segment) float64 {
	total, same := 0, 0
	broken := false
	for i, s := range was {
		total += len(s)
		switch {
		case broken:
		case i < len(now) && now[i] == s:
			same += len(s)
		default:
			broken = true
			if i < len(now) {
				n := 0
				for n < len(s) && n < len(now[i]) && s[n] == now[i][n] {
					n++
				}
				same += n
			}
		}
	}
	if total == 0 {
		return 0
	}
	return float64(same) / float64(total)
}
