package exec

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/transcript"
)

func TestArguments(t *testing.T) {
	type want struct {
		Agent  string
		Prompt []string
		Argv   []string
		Code   exitcode.Code
	}
	for _, tt := range []struct {
		args []string
		want want
	}{
		{[]string{"a", "b"}, want{Prompt: []string{"a", "b"}}},
		{[]string{"a", "--", "cmd", "--flag"}, want{Prompt: []string{"a"}, Argv: []string{"cmd", "--flag"}}},
		{[]string{"--agent", "x", "a"}, want{Agent: "x", Prompt: []string{"a"}}},
		{[]string{"--agent", "x", "a", "--", "cmd"}, want{Code: exitcode.Usage}},
		{[]string{"--agent", "", "a"}, want{Code: exitcode.Usage}},
		{[]string{"a", "--"}, want{Code: exitcode.Usage}},
		{[]string{"--timeout", "-1s", "a"}, want{Code: exitcode.Usage}},
		{[]string{"--or-new", "a"}, want{Code: exitcode.Usage}},
		{[]string{"-o", "=x", "a"}, want{Code: exitcode.Usage}},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			var got want
			cmd := NewCommand(&app.App{}, func(_ context.Context, o *Options) error {
				got = want{Agent: o.Agent, Prompt: o.Prompt, Argv: o.Argv}
				return nil
			})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			root := &cobra.Command{Use: "acp"}
			root.PersistentFlags().StringP("agent", "a", "", "")
			root.AddCommand(cmd)
			root.SetArgs(append([]string{"exec"}, tt.args...))
			if err := root.Execute(); err != nil {
				got = want{Code: exitcode.Of(err)}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCost(t *testing.T) {
	for _, tt := range []struct{ in, out string }{
		{"0.50", "0.5"}, {"1USD", "1USD"}, {"20 credits", "20credits"}, {"", ""}, {"USD", ""}, {"-1", ""}, {"1.2.3", ""},
	} {
		var c Cost
		if err := c.parse(tt.in); (err == nil) != (tt.out != "") || c.String() != tt.out {
			t.Errorf("%q: %q, %v", tt.in, c.String(), err)
		}
	}
}

// TestLinesFold feeds random updates in batches of random sizes: whoever folds the lines has the
// texts of the conversation.
func TestLinesFold(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		conv := transcript.New(transcript.Config{})
		l := &lines{session: "s"}
		folded := map[uint64]string{}
		var batch []transcript.Change
		flush := func() {
			if batch == nil {
				return
			}
			out, err := l.appendBatch(nil, conv.Snapshot(), batch)
			if err != nil {
				t.Fatal(err)
			}
			batch = nil
			fold(t, folded, out)
		}
		for i := range 200 {
			id := acpv2.MessageID(fmt.Sprint("m", rnd.IntN(3)))
			term := acpv2.TerminalID(fmt.Sprint("t", rnd.IntN(2)))
			var u acpv2.SessionUpdate
			switch rnd.IntN(6) {
			case 0:
				u = &acpv2.AgentMessage{MessageID: id, Content: acpv2.Set([]acpv2.ContentBlock{&acpv2.TextContent{Text: fmt.Sprint("whole", i)}})}
			case 1:
				u = &acpv2.TerminalOutputChunk{TerminalID: term, Data: base64.StdEncoding.EncodeToString([]byte(fmt.Sprint("out", i, "\n")))}
			case 2:
				u = &acpv2.TerminalUpdate{TerminalID: term, Command: acpv2.Set("ls")}
			default:
				u = &acpv2.AgentMessageChunk{MessageID: id, Content: &acpv2.TextContent{Text: fmt.Sprint("c", i, " ")}}
			}
			batch = append(batch, conv.Apply(u))
			if rnd.IntN(4) == 0 {
				flush()
			}
		}
		flush()
		for e := range conv.Snapshot().Entries() {
			want := ""
			switch e := e.(type) {
			case *transcript.Message:
				want = e.Text()
			case *transcript.Terminal:
				want = e.Raw()
			}
			if folded[e.Seq()] != want {
				t.Fatalf("seed %d: entry %d is %q, want %q", seed, e.Seq(), folded[e.Seq()], want)
			}
		}
	}
}

// fold does what docs/exec-json.md says.
func fold(t *testing.T, entries map[uint64]string, out []byte) {
	t.Helper()
	for line := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n") {
		if line == "" {
			continue
		}
		var l struct {
			Op, Text, Data string
			Seq            uint64
			Entry          struct {
				Update struct {
					Content []struct{ Text string }
					Output  struct{ Data string }
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		data, err := base64.StdEncoding.DecodeString(l.Data)
		if err != nil {
			t.Fatal(err)
		}
		switch l.Op {
		case "created", "updated":
			text := ""
			for _, c := range l.Entry.Update.Content {
				text += c.Text
			}
			raw, err := base64.StdEncoding.DecodeString(l.Entry.Update.Output.Data)
			if err != nil {
				t.Fatal(err)
			}
			entries[l.Seq] = text + string(raw)
		case "appended":
			entries[l.Seq] += l.Text + string(data)
		case "session":
		default:
			t.Fatalf("op %q", l.Op)
		}
	}
}
