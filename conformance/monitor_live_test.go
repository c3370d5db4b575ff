package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

// busy is an agent that uses much of the protocol.
func busy(root string) *acp.Agent {
	path := filepath.Join(root, "hello.txt")
	return &acp.Agent{
		Info: acp.Implementation{Name: "busy", Version: "1"},
		NewSession: func(_ context.Context, s *acp.AgentSession) error {
			return s.SetCommands(acp.SlashCommand{Name: "plan", Description: "Makes a plan"})
		},
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			if t.Text() == "wait" {
				t.Say("waiting")
				<-ctx.Done()
				return "", ctx.Err()
			}
			t.Think("What is this about? 😀")
			for i := range 5 {
				t.Say(fmt.Sprintf("%d\n", i))
			}
			t.Plan(acp.PlanEntry{Content: "write", Priority: "high", Status: "in_progress"})
			call := t.ToolCall(acp.ToolCall{
				Title: "Write hello.txt", Kind: acp.ToolKindEdit, Input: map[string]any{"path": path, "n": 1},
				Locations: []acp.ToolCallLocation{{Path: path}},
			})
			if !call.Permit(acp.Permission{Title: "Write hello.txt?"}) {
				return acp.StopEndTurn, call.Fail(errors.New("declined"))
			}
			if err := call.Change(acp.FileChange{Path: path, Before: "a\n", After: "b\n"}); err != nil {
				return "", err
			}
			_, err := t.Elicit(acp.FormRequest{Message: "Which?", Schema: acp.ElicitationSchema{
				Properties: []acp.ElicitationProperty{{Name: "what", Schema: &acpv2.StringPropertySchema{}}},
				Required:   []string{"what"},
			}})
			if err != nil {
				return "", err
			}
			return acp.StopEndTurn, call.Complete()
		},
	}
}

// TestMonitorLive holds that the monitor finds nothing in what our own agent and
// client say, with everything added that peers have to tolerate.
func TestMonitorLive(t *testing.T) {
	for version := 1; version <= 2; version++ {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("v%d/%d", version, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { live(t, version, seed) })
			})
		}
	}
}

func live(t *testing.T, version int, seed uint64) {
	root := filepath.Join(os.TempDir(), "live")
	client := &acp.Client{
		Info:              acp.Implementation{Name: "live", Version: "1"},
		MaxVersion:        version,
		RequestPermission: acptest.AcceptAll,
		Update:            func(context.Context, *acp.ClientSession, *acp.Update) {},
		Elicit: func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			return acp.AcceptElicitation(map[string]json.RawMessage{"what": json.RawMessage(`"this"`)}), nil
		},
	}
	var rec *acptest.Recording
	wraps := []func(jsonrpc.Stream) jsonrpc.Stream{func(s jsonrpc.Stream) jsonrpc.Stream {
		// What is added to one direction or the other is seen.
		switch {
		case seed == 0:
			s, rec = acptest.Record(s)
		case seed%2 == 0:
			s, rec = acptest.Record(s)
			s = acptest.Grease(s, seed)
		default:
			s, rec = acptest.Record(acptest.Grease(s, seed))
		}
		return s
	}}
	conn, _ := acptest.Pair(t, busy(root), client, wraps...)
	session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: root})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	for range 2 {
		if _, err := session.Prompt(t.Context(), acp.Text("hello")).Wait(); err != nil {
			t.Fatal(err)
		}
	}
	turn := session.Prompt(t.Context(), acp.Text("wait"))
	synctest.Wait()
	if err := session.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := turn.Wait(); err != nil {
		t.Fatal(err)
	}
	m := conformance.NewMonitor(conformance.MonitorConfig{})
	frames, _ := rec.Frames()
	for _, f := range frames {
		dir := trace.ToClient
		if f.Out {
			dir = trace.ToAgent
		}
		for _, found := range m.Frame(0, dir, []byte(f.Data)) {
			t.Errorf("%s: %s\n%s", found.Rule.ID, found.Why, f.Data)
		}
	}
	for _, found := range m.End() {
		t.Errorf("%s: %s", found.Rule.ID, found.Why)
	}
	if s := m.Stats(); s.Version != version || s.Turns != 3 || s.Sessions != 1 || s.Frames != int64(len(frames)) {
		t.Errorf("stats %+v", s)
	}
}

var goldenLine = regexp.MustCompile(`^(->|<-) (?:(id[0-9]+|null) )?(\S+) (?:(=|!) )?(.*)$`)

// TestMonitorGoldens holds the same of the recorded conversations of the tests.
func TestMonitorGoldens(t *testing.T) {
	for _, file := range []string{
		"../testdata/turn-v1.golden", "../testdata/turn-v2.golden",
		"../acptest/testdata/talk-v1.golden", "../acptest/testdata/talk-v2.golden",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := conformance.NewMonitor(conformance.MonitorConfig{})
		n := 0
		for line := range strings.Lines(string(text)) {
			p := goldenLine.FindStringSubmatch(strings.TrimSpace(line))
			if p == nil {
				t.Fatalf("%s: %s", file, line)
			}
			frame := `{"jsonrpc":"2.0","method":"` + p[3] + `","params":` + p[5] + `}`
			switch {
			case p[4] == "=":
				frame = `{"jsonrpc":"2.0","id":"` + p[2] + `","result":` + p[5] + `}`
			case p[4] == "!":
				t.Fatalf("%s: an error: %s", file, line)
			case p[2] != "":
				frame = `{"jsonrpc":"2.0","id":"` + p[2] + `","method":"` + p[3] + `","params":` + p[5] + `}`
			}
			dir := trace.ToAgent
			if p[1] == "<-" {
				dir = trace.ToClient
			}
			n++
			for _, f := range m.Frame(0, dir, []byte(frame)) {
				t.Errorf("%s: %s: %s\n%s", file, f.Rule.ID, f.Why, line)
			}
		}
		if n < 5 || m.Stats().Turns == 0 {
			t.Errorf("%s: %d lines, %d turns", file, n, m.Stats().Turns)
		}
	}
}
