//go:build unix

package torture

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// playScreen is the agent of playPlain, which knows its sessions by any process.
func playScreen(path string) error {
	l, err := openLedger(path)
	if err != nil {
		return err
	}
	agent := &acp.Agent{
		MaxVersion:    1,
		ResumeSession: func(context.Context, *acp.AgentSession, bool) error { return nil },
		Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			return acp.StopEndTurn, plainWork(l, t)
		},
	}
	return agent.Serve(context.Background(), acp.WrapTransport(acp.Stdio(), func(s jsonrpc.Stream) jsonrpc.Stream { return nameless{s} }))
}

var spoken = regexp.MustCompile(`op-(\d+)/(\d+)`)

// words returns how many words of a turn a text has, which fails the test if they are not the first ones, in order.
func words(t *testing.T, who, text string, turn int) (n int) {
	t.Helper()
	for _, m := range spoken.FindAllStringSubmatch(text, -1) {
		if m[1] != fmt.Sprint(turn) {
			continue
		}
		if m[2] != fmt.Sprint(n) {
			t.Fatalf("%s has word %s of turn %d after %d", who, m[2], turn, n)
		}
		n++
	}
	return n
}

// TestScreensKilled: acp exec and acp chat in turns, with one conversation, each killed at a random moment of its turn. What was
// on the screen is in the conversation, in order and once, which says that the turn was interrupted and is not damaged, and the
// next one continues it.
func TestScreensKilled(t *testing.T) {
	points := kills(t)
	r := prepareRig(t)
	config := t.TempDir()
	if err := os.MkdirAll(filepath.Join(config, "acp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "acp", "config.toml"), []byte("[permissions]\ndefault = \"allow\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := func(args ...string) *exec.Cmd {
		cmd := exec.Command(self, args...)
		cmd.Dir, cmd.Env = r.home, r.environ(config)
		return cmd
	}
	output := func(args ...string) string {
		t.Helper()
		cmd := program(args...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil || errs.Len() > 0 {
			t.Fatalf("%v: %v, %s", args, err, &errs)
		}
		return string(out)
	}
	type session struct {
		Conversation string `json:"conversation"`
		ID           string `json:"id"`
		Turns        int    `json:"turns"`
		Interrupted  bool   `json:"interrupted"`
	}
	var is session
	kept, interrupted := make([]int, points), 0
	for n := range points {
		text, _ := json.Marshal(task{Op: fmt.Sprint("op-", n), Chunks: 40 + rand.IntN(40), Asks: 20})
		args := []string{"exec", "--no-stdin", string(text)}
		if n%2 == 1 {
			args = []string{"chat", "--plain", "--prompt", string(text)}
		}
		if n > 0 {
			args = slices.Insert(args, 1, "--session", is.ID)
		}
		cmd := program(append(args, "--", self, "play-screen", r.ledger)...)
		in, err := cmd.StdinPipe() // chat ends with it
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var screen strings.Builder
		at := 1 + rand.IntN(30)
		said := bufio.NewScanner(out)
		said.Split(bufio.ScanWords)
		seen := 0
		for said.Scan() {
			fmt.Fprintln(&screen, said.Text())
			if strings.HasPrefix(said.Text(), fmt.Sprintf("op-%d/", n)) { // chat begins with what was said before
				if seen++; seen == at {
					_ = cmd.Process.Kill()
				}
			}
		}
		_ = in.Close()
		_ = cmd.Wait()
		if seen < at {
			t.Fatalf("%v has ended after %d words: %s", args, seen, &errs)
		}
		shown := words(t, "the screen", screen.String(), n)
		list := output("sessions", "list", "--json", "--local")
		is = session{} // false is left out
		err = json.Unmarshal([]byte(list), &is)
		if is.Interrupted {
			interrupted++
		}
		late := is.Turns == n+1 && !is.Interrupted // on a busy machine the turn may be over
		if err != nil || !late && (!is.Interrupted || is.Turns != n) {
			t.Fatalf("turn %d: listed: %s, %v", n, list, err)
		}
		kept[n] = words(t, "the conversation", output("sessions", "show", is.ID), n)
		if kept[n] < shown {
			t.Fatalf("turn %d: %d words were on the screen, %d are kept", n, shown, kept[n])
		}
	}
	all := output("sessions", "show", is.ID)
	for n, want := range kept {
		if got := words(t, "the conversation in the end", all, n); got != want {
			t.Errorf("turn %d: %d words in the end, there were %d", n, got, want)
		}
	}
	if n := strings.Count(all, "the program ended in the middle"); n != interrupted {
		t.Errorf("%d turns were interrupted, %d are shown as that:\n%s", interrupted, n, all)
	}
}
