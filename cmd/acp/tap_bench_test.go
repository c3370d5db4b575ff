//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A wire is a conversation with an agent, or with a tap before one.
type wire struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	n   int

	session string
}

// dial starts a command and opens a session.
func dial(b *testing.B, home string, argv ...string) *wire {
	b.Helper()
	w := &wire{cmd: exec.Command(argv[0], argv[1:]...)}
	w.cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	w.cmd.Stderr = os.Stderr
	in, err := w.cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	w.in, w.out = in, bufio.NewReaderSize(out, 1<<20)
	if err := w.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = w.cmd.Wait()
	})
	w.call(b, "initialize", `{"protocolVersion":1}`)
	answer := w.call(b, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, home))
	_, rest, _ := bytes.Cut(answer, []byte(`"sessionId":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	w.session = string(id)
	return w
}

// call sends a request and returns the answer, past all that comes before it.
func (w *wire) call(b *testing.B, method, params string) []byte {
	b.Helper()
	w.n++
	if _, err := fmt.Fprintf(w.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", w.n, method, params); err != nil {
		b.Fatal(err)
	}
	id := fmt.Appendf(nil, `"id":%d,`, w.n)
	last := fmt.Appendf(nil, `"id":%d}`, w.n)
	for {
		line, err := w.out.ReadBytes('\n')
		if err != nil {
			b.Fatal(err)
		}
		if bytes.Contains(line, id) || bytes.Contains(line, last) {
			return line
		}
	}
}

// prompt sends a prompt and waits for the end of the turn.
func (w *wire) prompt(b *testing.B, text string) time.Duration {
	b.Helper()
	params := fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, w.session, text)
	start := time.Now()
	w.call(b, "session/prompt", params)
	return time.Since(start)
}

// BenchmarkTap measures what a turn takes with and without acp tap in between, in turns, and what is
// added: with an agent in Go, which repeats the prompt in one update, and, if there is Node, one on
// the official SDK, which does so word by word. What two more processes cost by themselves, which
// read and write and do nothing else, is measured beside it: that is cat on either side.
func BenchmarkTap(b *testing.B) {
	exe := program(b)
	echo := filepath.Join(b.TempDir(), "echo")
	build := exec.Command("go", "build", "-o", echo, "./examples/echo")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	agents := map[string][]string{"go": {echo}}
	script, err := filepath.Abs(filepath.Join("..", "..", "interop", "agent.mjs"))
	if err != nil {
		b.Fatal(err)
	}
	_, noNode := exec.LookPath("node")
	_, noSDK := os.Stat(filepath.Join(filepath.Dir(script), "node_modules"))
	if noNode == nil && noSDK == nil {
		agents["node"] = []string{"node", script, "1"}
	}
	for name, agent := range agents {
		for _, words := range []int{2, 100} {
			for _, policy := range []bool{false, true} {
				flags := []string{"tap"}
				kind := "plain"
				if policy {
					flags, kind = append(flags, "--allow", "kind:read"), "policy"
				}
				b.Run(fmt.Sprintf("%s/%d-words/%s", name, words, kind), func(b *testing.B) {
					home := b.TempDir()
					tapped := slices.Concat([]string{exe}, flags, []string{"-o", filepath.Join(home, "t.acptrace"), "--"}, agent)
					relayed := slices.Concat([]string{"sh", "-c", `cat | "$@" | cat`, "sh"}, agent)
					benchTap(b, words, dial(b, home, agent...), dial(b, home, tapped...), dial(b, home, relayed...))
				})
			}
		}
	}
}

func benchTap(b *testing.B, words int, direct, tapped, relayed *wire) {
	text := string(bytes.TrimSpace(bytes.Repeat([]byte("word "), words)))
	ways := []*wire{direct, tapped, relayed}
	took := make([][]time.Duration, len(ways))
	for range 50 { // until all have warmed up
		for _, w := range ways {
			w.prompt(b, text)
		}
	}
	for i := 0; b.Loop(); i++ {
		for k := range ways {
			k = (k + i) % len(ways)
			took[k] = append(took[k], ways[k].prompt(b, text))
		}
	}
	d, t, r := median(took[0]), median(took[1]), median(took[2])
	b.ReportMetric(float64(d.Microseconds()), "direct-µs")
	b.ReportMetric(float64(t.Microseconds()), "tap-µs")
	b.ReportMetric(float64((t - d).Microseconds()), "added-µs")
	b.ReportMetric(100*float64(t-d)/float64(d), "added-%")
	b.ReportMetric(float64((r - d).Microseconds()), "added-by-cat-µs")
	b.ReportMetric(0, "ns/op")
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
