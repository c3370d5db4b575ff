//go:build unix

package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

// playPlain is an agent of version 1 that gives messages no ids, and counts its tool calls anew in each turn. It says
// numbered words, calls tools and asks.
func playPlain(path string) error {
	l, err := openLedger(path)
	if err != nil {
		return err
	}
	agent := &acp.Agent{MaxVersion: 1, Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		err := plainWork(l, t)
		if err != nil {
			_ = l.add("failed %v", err)
		}
		return acp.StopEndTurn, err
	}}
	return agent.Serve(context.Background(), acp.WrapTransport(acp.Stdio(), func(s jsonrpc.Stream) jsonrpc.Stream { return nameless{s} }))
}

// A nameless stream takes the ids of messages from what is written.
type nameless struct{ jsonrpc.Stream }

var messageIDs = regexp.MustCompile(`,"messageId":"[^"]*"`)

func (n nameless) WriteFrame(frame []byte) error {
	return n.Stream.WriteFrame(messageIDs.ReplaceAll(frame, nil))
}

// plainWork writes what it does to the ledger, as people read it.
func plainWork(l *ledger, t *acp.Turn) error {
	var w task
	blocks := t.Blocks()
	if err := json.Unmarshal([]byte(blocks[len(blocks)-1].(*acp.TextContent).Text), &w); err != nil {
		return err
	}
	calls := 0
	for i := range w.Chunks {
		if i%10 == 9 {
			id, title := acp.ToolCallID(fmt.Sprint("call_", calls)), fmt.Sprintf("%s!%d", w.Op, i)
			calls++
			if err := t.Send(&acp.ToolCallUpdate{ToolCallID: id, Title: acp.Set(title), Status: acp.Set(acp.ToolCallStatusPending)}); err != nil {
				return err
			}
			if i%w.Asks == w.Asks-1 {
				if _, err := t.Ask(acp.Permission{
					Title: title, Subject: &acp.ToolCallPermissionSubject{ToolCall: acp.ToolCallUpdate{ToolCallID: id}},
					Options: []acp.PermissionOption{{OptionID: "yes", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce}},
				}); err != nil {
					return err
				}
			}
			if err := t.Send(&acp.ToolCallUpdate{ToolCallID: id, Status: acp.Set(acp.ToolCallStatusCompleted)}); err != nil {
				return err
			}
			if err := l.add("call %s", title); err != nil {
				return err
			}
		}
		text := fmt.Sprintf("%s/%d", w.Op, i)
		if err := t.Say(text + " "); err != nil {
			return err
		}
		if err := l.add("say %s", text); err != nil {
			return err
		}
		time.Sleep(time.Millisecond) // or most turns would be over before anything is killed
	}
	return nil
}

// TestPlainKilled: an agent of version 1 without ids for its messages, and a gateway that is killed, or ended and started
// again, at a random moment of each turn. What clients of both versions see, what acp exec prints and what acp sessions
// show shows is what the agent has said, in its turn and in order.
func TestPlainKilled(t *testing.T) {
	points := kills(t)
	r := newRigOf(t, "play-plain")
	r.begin()
	ctx, cancel := context.WithCancel(t.Context())
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel()
	r.watch(ctx, &watchers, "one", 1, false, false)
	r.watch(ctx, &watchers, "two", 2, true, false)
	config := t.TempDir()
	if err := os.MkdirAll(filepath.Join(config, "acp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "acp", "config.toml"), []byte("[permissions]\ndefault = \"allow\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := func(args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, args...)
		cmd.Dir, cmd.Env = r.home, r.environ(config)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		return cmd, &out, &errs
	}
	want := map[string][]string{}
	for n := range points {
		op := fmt.Sprint("op-", n)
		text, _ := json.Marshal(task{Op: op, Chunks: 60 + rand.IntN(60), Asks: 20})
		cmd, out, errs := program("exec", "--no-stdin", "--at", r.url, "--session", r.session, string(text))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		at := 0
		r.until("the prompt", func() bool { // before that it may not have connected
			at = len(r.fresh) + 1 + rand.IntN(50)
			return r.fresh["user: "+string(text)]
		})
		r.until("the moment", func() bool { return len(r.fresh) >= at })
		if n%2 == 0 {
			r.kill()
		} else if err := r.server.Process.Signal(syscall.SIGTERM); err == nil {
			_ = r.server.Wait()
		}
		r.serve()
		err := cmd.Wait()
		lines, e := entries(r.ledger)
		if e != nil {
			t.Fatal(e)
		}
		var said, did []string
		for _, l := range lines {
			switch {
			case l[0] == "failed":
				t.Fatal(l)
			case l[0] == "say" && strings.HasPrefix(l[1], op+"/"):
				said = append(said, l[1])
				did = append(did, l[1])
			case l[0] == "call" && strings.HasPrefix(l[1], op+"!"):
				did = append(did, l[1])
			}
		}
		want[op] = did
		if got := strings.Fields(out.String()); err != nil || !cmp.Equal(said, got) {
			t.Fatalf("%s: exec has ended with %v, after %s%d words of %d:\n%s", op, err, errs, len(got), len(said), cmp.Diff(said, got))
		}
	}
	cmd, out, errs := program("sessions", "show", "--at", r.url, r.session)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	r.sees(want)
	checkTurns(t, "sessions show", regexp.MustCompile(`op-\d+[/!]\d+|"op":"op-\d+"`).FindAllString(out.String(), -1), want)
	cancel()
	watchers.Wait()
	r.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.history()
	for name := range r.events {
		r.seen(h, name)
	}
}

// sees checks what clients of both versions see that load the session.
func (r *rig) sees(want map[string][]string) {
	r.t.Helper()
	for version := 1; version <= 2; version++ {
		conv := transcript.New(transcript.Config{})
		client := &acp.Client{MinVersion: version, MaxVersion: version, Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			conv.Apply(u.Update)
		}}
		conn, err := client.Connect(r.t.Context(), &acphttp.Transport{URL: r.url})
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := conn.Load(r.t.Context(), acp.SessionID(r.session), acp.SessionConfig{Cwd: r.home}); err != nil {
			r.t.Fatal(err)
		}
		_ = conn.Close()
		var got []string
		for e := range conv.Snapshot().Entries() {
			switch e := e.(type) {
			case *transcript.Message:
				got = append(got, strings.Fields(e.Text())...)
			case *transcript.ToolCall:
				if e.Status != acp.ToolCallStatusCompleted {
					r.t.Errorf("%s is %s", e.Title, e.Status)
				}
				got = append(got, e.Title)
			}
		}
		checkTurns(r.t, "version "+strconv.Itoa(version), got, want)
	}
}

// checkTurns compares what is shown with what was said, turn by turn. A turn begins with its prompt.
func checkTurns(t *testing.T, who string, got []string, want map[string][]string) {
	t.Helper()
	turns, turn := map[string][]string{}, ""
	for _, text := range got {
		if _, rest, ok := strings.Cut(text, `"op":"`); ok {
			turn, _, _ = strings.Cut(rest, `"`)
			turns[turn] = nil
			continue
		}
		if strings.HasPrefix(text, "op-") {
			turns[turn] = append(turns[turn], text)
		}
	}
	if diff := cmp.Diff(want, turns); diff != "" {
		t.Errorf("%s sees (-what was said +what is seen):\n%s", who, diff)
	}
}
