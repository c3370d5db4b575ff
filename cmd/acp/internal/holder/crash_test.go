//go:build unix

package holder

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/long"
)

// TestGatewayKilled kills the gateway at 200 random points of a stream in both directions. Every frame
// arrives once and in order, in both.
func TestGatewayKilled(t *testing.T) {
	rounds := 200
	if !long.All() {
		rounds = 20
	}
	dir := t.TempDir()
	inLog, outLog, agentLog := filepath.Join(dir, "in"), filepath.Join(dir, "out"), filepath.Join(dir, "agent")
	a := begin(t, spec(t, self("agent", agentLog)...))
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	gateway := func(more ...string) (*exec.Cmd, io.Reader, *bytes.Buffer) {
		argv := self(append([]string{"gateway", a.Socket(), a.Token(), inLog, outLog}, more...)...)
		cmd := exec.Command(argv[0], argv[1:]...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		steps, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return cmd, steps, &stderr
	}
	for range rounds {
		cmd, steps, stderr := gateway()
		_, err := io.CopyN(io.Discard, steps, rand.Int64N(600))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err != nil || stderr.Len() > 0 {
			t.Fatalf("the gateway ended before it was killed: %v\n%s", err, stderr)
		}
	}
	cmd, steps, stderr := gateway("finish")
	_, _ = io.Copy(io.Discard, steps)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	got := lineSequence(t, inLog, lastFrame, "end")
	sent := lineSequence(t, outLog)
	arrived := lineSequence(t, agentLog)
	if sent != arrived {
		t.Errorf("%d frames were sent, %d arrived", sent, arrived)
	}
	eventually(t, "the socket is left", func() bool { return !exists(a.Socket()) })
	t.Logf("%d events, %d frames", got, sent)
}

// lineSequence holds that the lines of a file count from 1, but for those that end it, and returns how
// many do.
func lineSequence(t *testing.T, file string, end ...string) int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(data))
	n := len(all) - len(end)
	for i, got := range all {
		want := strconv.Itoa(i + 1)
		if i >= n {
			want = end[i-n]
		}
		if got != want {
			t.Fatalf("%s: line %d is %q, want %q", file, i+1, got, want)
		}
	}
	return n
}
