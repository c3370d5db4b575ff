package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
)

// reportsCommand are agents that run a command themselves, as codex and Claude report it. They send one update at a time
// once seen has a value. To a client that does not declare that it shows terminals they send text.
func reportsCommand(seen <-chan string, name string) *Agent {
	return &Agent{Info: Implementation{Name: name, Version: "1"}, Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
		s := t.Session()
		send := func(u string) error {
			raw := json.RawMessage(fmt.Sprintf(`{"sessionId":%q,"update":{"sessionUpdate":%s}}`, s.ID(), u))
			return s.Conn().Conn().Notify(ctx, "session/update", raw)
		}
		if shows, _ := translate.TerminalReports(s.Conn().CapabilitiesV1().Meta); !shows {
			return StopEndTurn, send(`"tool_call","toolCallId":"c","title":"make","status":"completed","content":[{"type":"content","content":{"type":"text","text":"ok"}}]`)
		}
		meta := `"_meta":{"terminal_`
		for _, u := range []string{
			`"tool_call","toolCallId":"c","title":"make","content":[{"type":"terminal","terminalId":"c"}],"rawInput":{"command":"make"},` + meta + `info":{"terminal_id":"c","cwd":"/w"}}`,
			`"tool_call_update","toolCallId":"c",` + meta + `output_delta":{"terminal_id":"c","data":"a"}}`,
			`"tool_call_update","toolCallId":"c",` + meta + `output":{"terminal_id":"c","data":"b"}}`,
			`"tool_call_update","toolCallId":"c","status":"failed",` + meta + `exit":{"terminal_id":"c","exit_code":2,"signal":null}}`,
		} {
			if err := send(u); err != nil {
				return "", err
			}
			select {
			case <-seen:
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		return StopEndTurn, nil
	}}
}

// TestReportedTerminals: what an agent of version 1 reports of a command in the metadata of its tool call is shown as it
// happens, and ends, to clients of either version that show terminals, also behind a bridge. An agent is asked for it
// only if its client shows it, and old agents call a piece what others call the whole.
func TestReportedTerminals(t *testing.T) {
	terminal := []string{
		`{"sessionUpdate":"terminal_update","terminalId":"c","command":"make","cwd":"/w"}`,
		`{"sessionUpdate":"terminal_output_chunk","terminalId":"c","data":"YQ=="}`,
		`{"sessionUpdate":"terminal_update","terminalId":"c","output":{"data":"Yg=="}}`,
		`{"sessionUpdate":"terminal_update","terminalId":"c","exitStatus":{"exitCode":2}}`,
	}
	old := []string{terminal[0], terminal[1], `{"sessionUpdate":"terminal_output_chunk","terminalId":"c","data":"Yg=="}`, terminal[3]}
	for _, tt := range []struct {
		name, agent  string
		bridge       bool
		version      int
		shows, plain bool
		want         []string
	}{
		{"one connection", "a", false, 1, true, false, terminal},
		{"an old agent", "codex-acp", false, 1, true, false, old},
		{"not shown", "a", false, 1, false, true, nil},
		{"bridge, version 1", "a", true, 1, true, false, terminal},
		{"bridge, version 2", "a", true, 2, false, false, terminal},
		{"bridge, not shown", "a", true, 1, false, true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seen := make(chan string, 100)
			agent := reportsCommand(seen, tt.agent)
			var got []string
			text := false
			client := &Client{ShowsTerminals: tt.shows, Update: func(_ context.Context, _ *ClientSession, u *Update) {
				switch v := u.Update.(type) {
				case *TerminalUpdate, *TerminalOutputChunk:
					raw, err := json.Marshal(v)
					if err != nil {
						t.Error(err)
					}
					got = append(got, string(raw))
					seen <- string(raw)
				case *ToolCallUpdate:
					for _, c := range v.Content.Or(nil) {
						_, is := c.(*acpv2.Content)
						text = text || is
					}
					if string(v.Meta) != "" {
						t.Errorf("left in the metadata: %s", v.Meta)
					}
				}
			}}
			var conn *ClientConn
			if tt.bridge {
				conn = bridged(t, agent, 1, client, tt.version)
			} else {
				agent.MaxVersion = 1
				conn, _ = paired(t, agent, client)
			}
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/w"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Prompt(t.Context(), Text("x")).Wait(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if text != tt.plain {
				t.Errorf("text is shown: %v", text)
			}
		})
	}
}

// TestInitializeMeta: this is all that clients declare in metadata of their own.
func TestInitializeMeta(t *testing.T) {
	const terminals, login = `"terminal_output":true,"terminal_output_delta":true`, `"terminal-auth":true`
	for bits, want := range []string{"", terminals, login, terminals + "," + login} {
		c, err := (&Client{ShowsTerminals: bits&1 != 0, TerminalAuth: bits&2 != 0}).ready()
		if err != nil {
			t.Fatal(err)
		}
		for version := 1; version <= 2; version++ {
			raw, err := json.Marshal(c.hello(version))
			if err != nil {
				t.Fatal(err)
			}
			meta := `"_meta":{` + want + `}`
			if version == 2 || want == "" {
				meta = ""
			}
			if !bytes.Contains(raw, []byte(meta)) || strings.Count(string(raw), "_meta") != strings.Count(meta, "_meta") {
				t.Errorf("version %d: %s, want %s", version, raw, meta)
			}
		}
	}
}

// TestNoVendorClient: nothing in the tree declares what is for the clients of one vendor only, which would have agents
// send it their tool calls, subagents and failures in forms of its own (issue 34). Names of products and addresses in
// lists of agents are not declarations.
func TestNoVendorClient(t *testing.T) {
	declares := regexp.MustCompile(`(?i)jetbrains["'.\\]*\s*[:\]]|jetbrains\.air|["']air["']\s*:`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && (name == "node_modules" || name == ".git" || name == "testdata" || name == "docs"):
			return fs.SkipDir
		case path == filepath.Join("conformance", "monitor_steering.go"): // it judges clients that do
			return nil
		case d.IsDir() || strings.HasSuffix(name, "_test.go") || !slices.Contains([]string{".go", ".ts", ".tsx", ".mjs", ".js"}, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if len(line) < 4096 && declares.Match(line) {
				t.Errorf("%s:%d: %s", path, i+1, bytes.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
