package agents

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// A survivor is a process that has outlived the agent which started it.
type survivor struct {
	pid     int
	command string
}

// survivors returns the processes that have the marker of a run in their environment. They are
// found there because a process that has detached itself has no other tie to the agent.
func survivors(run string) ([]survivor, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var out []survivor
	want := []byte(marker + "=" + run)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !bytes.Contains(env, want) {
			continue // it has exited, or belongs to another user
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil || len(line) == 0 {
			continue // it is exiting
		}
		out = append(out, survivor{pid, string(bytes.ReplaceAll(bytes.TrimRight(line, "\x00"), []byte{0}, []byte{' '}))})
	}
	return out, nil
}
