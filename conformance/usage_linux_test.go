package conformance

import (
	"os"
	"os/exec"
	"testing"
)

func TestProcessUsage(t *testing.T) {
	before, err := processUsage(os.Getpid())
	if err != nil || before.Memory < 1<<20 || before.Processes < 1 {
		t.Fatalf("%+v, %v", before, err)
	}
	c := exec.Command("cat")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Skip(err)
	}
	during, err := processUsage(os.Getpid())
	_ = in.Close()
	_ = c.Wait()
	if err != nil || during.Processes <= before.Processes {
		t.Errorf("%d processes with a child, %d without: %v", during.Processes, before.Processes, err)
	}
	if _, err := processUsage(c.Process.Pid); err == nil {
		t.Error("a process that has ended was measured")
	}
}
