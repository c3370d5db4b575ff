package conformance

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// processUsage adds up what a process and all below it take.
func processUsage(pid int) (Usage, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return Usage{}, fmt.Errorf("conformance: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close()
	if err != nil {
		return Usage{}, fmt.Errorf("conformance: %w", err)
	}
	type process struct {
		parent int
		pages  int64
	}
	all := map[int]process{}
	for _, name := range names {
		id, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has ended
		}
		// The name of the program is in parentheses and may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 22 || fields[0][0] == 'Z' {
			continue
		}
		parent, _ := strconv.Atoi(string(fields[1]))
		pages, _ := strconv.ParseInt(string(fields[21]), 10, 64)
		all[id] = process{parent, pages}
	}
	if _, ok := all[pid]; !ok {
		return Usage{}, fmt.Errorf("conformance: there is no process %d", pid)
	}
	var u Usage
	for id, p := range all {
		at := id
		for range len(all) {
			if at == pid {
				u.Processes++
				u.Memory += p.pages * int64(os.Getpagesize())
				break
			}
			at = all[at].parent
		}
	}
	return u, nil
}
