package backend

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
	"github.com/goacp/acp/transcript"
)

// A guarded is a conversation under rules, with what was asked and told in it.
type guarded struct {
	dir string
	s   *Session

	mu    sync.Mutex
	asked []string
	told  []string
}

// guard opens a conversation with an agent. answer answers the questions.
func guard(t *testing.T, version int, rules []acphost.Rule, prompt func(*acp.Turn), answer func(acphost.Request) acp.PermissionOptionID) *guarded {
	t.Helper()
	g := new(guarded)
	cfg := config(t, version, &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		prompt(turn)
		return acp.StopEndTurn, nil
	}})
	var err error
	if cfg.Cwd, err = filepath.EvalSymlinks(cfg.Cwd); err != nil {
		t.Fatal(err)
	}
	g.dir = cfg.Cwd
	if cfg.Policy, err = acphost.NewPolicy(rules...); err != nil {
		t.Fatal(err)
	}
	cfg.Policy.Commands = shellline.Parser{}
	note := func(list *[]string, text string) {
		g.mu.Lock()
		defer g.mu.Unlock()
		*list = append(*list, strings.ReplaceAll(text, g.dir, "DIR"))
	}
	cfg.Front = Frontend{
		Decided: func(_ *Session, rec acphost.Record, _ acphost.Request) {
			if rec.Effect != acphost.EffectAllow {
				note(&g.told, "denied: "+rec.Title)
			}
		},
		Unheld: func(_ *Session, why string) { note(&g.told, why) },
		Broken: func(_ *Session, b Breach) { note(&g.told, "A rule was broken: "+b.Text()) },
	}
	if answer != nil {
		cfg.Front.Ask = func(_ context.Context, _ *Session, req acphost.Request) (acp.PermissionOptionID, error) {
			note(&g.asked, req.Title)
			return answer(req), nil
		}
	}
	if g.s, err = open(t, cfg).NewSession(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *guarded) prompt(t *testing.T) {
	t.Helper()
	if _, err := g.s.Prompt(t.Context(), acp.Text("go")); err != nil {
		t.Fatal(err)
	}
}

// entries returns what the conversation has of tool calls, permissions and notices.
func (g *guarded) entries() (list []string) {
	for e := range g.s.Snapshot().Entries() {
		switch e := e.(type) {
		case *transcript.ToolCall:
			list = append(list, "tool: "+e.Title+" "+string(e.Status))
		case *transcript.Permission:
			option, _ := e.Selected()
			list = append(list, "permission: "+e.Title+" "+string(option.Kind))
		case *transcript.Notice:
			list = append(list, "notice: "+e.Title)
		}
	}
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], g.dir, "DIR")
	}
	return list
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func yes(r acphost.Request) acp.PermissionOptionID { return r.Allow() }
func no(r acphost.Request) acp.PermissionOptionID  { return r.Reject() }

// TestReadsAreDecided: rules that deny or ask hold for what an agent reads through this program, by the
// name it uses and by the file that leads to; what no rule is about is read without a question.
func TestReadsAreDecided(t *testing.T) {
	deny := func(r acphost.Rule) acphost.Rule { r.Effect, r.Name = acphost.EffectDeny, "d"; return r }
	ask := func(r acphost.Rule) acphost.Rule { r.Effect, r.Name = acphost.EffectAsk, "q"; return r }
	env := acphost.Rule{Paths: []string{"**/.env"}}
	for _, tt := range []struct {
		name   string
		rules  []acphost.Rule
		read   []string
		answer func(acphost.Request) acp.PermissionOptionID
		got    string // what was read, "-" if it was refused
		asked  string
		told   string
	}{
		{name: "no rules", read: []string{".env"}, got: "SECRET"},
		{name: "deny", rules: []acphost.Rule{deny(env)}, read: []string{".env", "main.go"}, got: "-|main", told: "denied: Read DIR/.env"},
		{name: "deny everything", rules: []acphost.Rule{deny(acphost.Rule{})}, read: []string{".env"}, got: "-", told: "denied: Read DIR/.env"},
		{name: "deny reading", rules: []acphost.Rule{deny(acphost.Rule{Kinds: []string{"read"}})}, read: []string{"main.go"}, got: "-", told: "denied: Read DIR/main.go"},
		{name: "deny editing", rules: []acphost.Rule{deny(acphost.Rule{Kinds: []string{"edit"}})}, read: []string{"main.go"}, got: "main"},
		{name: "deny a command", rules: []acphost.Rule{deny(acphost.Rule{Commands: []string{"rm *"}})}, read: []string{"main.go"}, got: "main"},
		{name: "in pieces", rules: []acphost.Rule{deny(env)}, read: []string{".env", ".env", ".env"}, got: "-|-|-", told: "denied: Read DIR/.env"},
		{name: "through a link to it", rules: []acphost.Rule{deny(acphost.Rule{Paths: []string{"elsewhere/**"}})}, read: []string{"docs/key"}, got: "-", told: "denied: Read DIR/elsewhere/key"},
		{name: "by the name of a link", rules: []acphost.Rule{deny(acphost.Rule{Paths: []string{"docs/**"}})}, read: []string{"docs/key"}, got: "-", told: "denied: Read DIR/elsewhere/key"},
		{name: "what is not there", rules: []acphost.Rule{deny(env)}, read: []string{"sub/.env"}, got: "-", told: "denied: Read DIR/sub/.env"},
		{name: "ask, yes", rules: []acphost.Rule{ask(env)}, read: []string{".env", ".env", "main.go"}, answer: yes, got: "SECRET|SECRET|main", asked: "Read DIR/.env"},
		{name: "ask, no", rules: []acphost.Rule{ask(env)}, read: []string{".env", ".env"}, answer: no, got: "-|-", asked: "Read DIR/.env", told: "denied: Read DIR/.env"},
		{name: "ask nobody", rules: []acphost.Rule{ask(env)}, read: []string{".env"}, got: "-", told: "denied: Read DIR/.env"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var dir string
			var got []string
			g := guard(t, 1, tt.rules, func(turn *acp.Turn) {
				for _, name := range tt.read {
					text, err := turn.ReadFile(filepath.Join(dir, name))
					if err != nil {
						text = "-"
					}
					got = append(got, text)
				}
			}, tt.answer)
			dir = g.dir
			put(t, filepath.Join(dir, ".env"), "SECRET")
			put(t, filepath.Join(dir, "main.go"), "main")
			put(t, filepath.Join(dir, "elsewhere", "key"), "KEY")
			if err := os.Symlink("elsewhere", filepath.Join(dir, "docs")); err != nil {
				t.Fatal(err)
			}
			g.prompt(t)
			if s := strings.Join(got, "|"); s != tt.got {
				t.Errorf("read %q, want %q", s, tt.got)
			}
			if s := strings.Join(g.asked, "|"); s != tt.asked {
				t.Errorf("asked %q, want %q", s, tt.asked)
			}
			if s := strings.Join(g.told, "|"); s != tt.told {
				t.Errorf("told %q, want %q", s, tt.told)
			}
		})
	}
}

// TestOneActOneCall: what an agent has announced and then has done by us is one tool call and one
// permission, whether it has asked for it or not; and what was rejected is rejected once.
func TestOneActOneCall(t *testing.T) {
	text := func(s string) acp.ToolCallContent { return &acp.BlockContent{Content: acp.Text(s)} }
	// K asks with a text only, and runs a line with a shell around it.
	asksText := func(turn *acp.Turn, command string) *acp.ToolCallHandle {
		h := turn.ToolCall(acp.ToolCall{Title: "Bash", Kind: acp.ToolKindExecute, Content: []acp.ToolCallContent{text("Requesting approval to Running: " + command)}})
		_, _ = h.Ask(acp.Permission{})
		return h
	}
	shell := func(h *acp.ToolCallHandle, script string) {
		_, _ = h.Exec(acp.Exec{Command: "/bin/bash", Args: []string{"-c", script}})
	}
	for _, tt := range []struct {
		name    string
		prompt  func(g *guarded, turn *acp.Turn)
		answer  func(acphost.Request) acp.PermissionOptionID
		asked   string
		entries []string
	}{
		{"text only", func(_ *guarded, turn *acp.Turn) {
			h := asksText(turn, "touch x1")
			shell(h, "touch x1")
			_ = h.Complete()
		}, yes, "Bash", []string{"tool: Bash completed", "permission: Bash allow_once"}},
		{"with cd", func(g *guarded, turn *acp.Turn) {
			h := asksText(turn, "touch x1")
			shell(h, "cd '"+g.dir+"' && touch x1")
			_ = h.Complete()
		}, yes, "Bash", []string{"tool: Bash completed", "permission: Bash allow_once"}},
		{"another command", func(_ *guarded, turn *acp.Turn) {
			h := asksText(turn, "touch x1")
			shell(h, "touch x2")
			_ = h.Complete()
		}, yes, "Bash|touch x2", []string{
			"tool: Bash completed", "permission: Bash allow_once",
			"tool: touch x2 completed", "permission: touch x2 allow_once",
		}},
		{"elsewhere", func(_ *guarded, turn *acp.Turn) {
			h := asksText(turn, "touch x1")
			shell(h, "cd / && true")
			_ = h.Complete()
		}, no, "Bash|cd / && true", []string{
			"tool: Bash completed", "permission: Bash reject_once",
			"tool: cd / && true failed", "permission: cd / && true reject_once",
		}},
		{"rejected", func(_ *guarded, turn *acp.Turn) {
			h := asksText(turn, "touch x1")
			shell(h, "touch x1")
			_ = h.Complete()
		}, no, "Bash", []string{"tool: Bash completed", "permission: Bash reject_once"}},
		{"announced, not asked", func(_ *guarded, turn *acp.Turn) {
			h := turn.ToolCall(acp.ToolCall{Title: "runs", Kind: acp.ToolKindExecute, Input: map[string]string{"command": "touch x1"}})
			_, _ = h.Exec(acp.Exec{Command: "touch", Args: []string{"x1"}})
			_ = h.Complete()
		}, yes, "touch x1", []string{"tool: runs completed", "permission: touch x1 allow_once"}},
		{"a file, announced, not asked", func(g *guarded, turn *acp.Turn) {
			h := turn.ToolCall(acp.ToolCall{Title: "writes", Kind: acp.ToolKindEdit, Locations: []acp.ToolCallLocation{{Path: filepath.Join(g.dir, "f")}}})
			_ = turn.WriteFile(filepath.Join(g.dir, "f"), "text")
			_ = h.Complete()
		}, yes, "Write DIR/f", []string{"tool: writes completed", "permission: Write DIR/f allow_once"}},
		{"a file, asked", func(g *guarded, turn *acp.Turn) {
			h := turn.ToolCall(acp.ToolCall{Title: "writes", Kind: acp.ToolKindEdit, Locations: []acp.ToolCallLocation{{Path: filepath.Join(g.dir, "f")}}})
			_, _ = h.Ask(acp.Permission{})
			_ = turn.WriteFile(filepath.Join(g.dir, "f"), "text")
			_ = h.Complete()
		}, no, "writes", []string{"tool: writes completed", "permission: writes reject_once"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var g *guarded
			g = guard(t, 1, nil, func(turn *acp.Turn) { tt.prompt(g, turn) }, tt.answer)
			g.prompt(t)
			if got := strings.Join(g.asked, "|"); got != tt.asked {
				t.Errorf("asked %q, want %q", got, tt.asked)
			}
			if diff := cmp.Diff(tt.entries, g.entries()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestKept: what the user allows for the session is not asked again in a later turn, whether the agent
// asks or not.
func TestKept(t *testing.T) {
	// The agent offers it, or the user has this program remember it.
	t.Run("by the agent", func(t *testing.T) {
		kept(t, nil, func(r acphost.Request) acp.PermissionOptionID { return r.AllowAlways() })
	})
	t.Run("by us", func(t *testing.T) {
		var g *guarded
		kept(t, &g, func(r acphost.Request) acp.PermissionOptionID {
			g.s.host.policy.Always(r, acphost.EffectAllow)
			return r.Allow()
		})
	})
}

func kept(t *testing.T, at **guarded, answer func(acphost.Request) acp.PermissionOptionID) {
	turns := 0
	g := guard(t, 1, nil, func(turn *acp.Turn) {
		h := turn.ToolCall(acp.ToolCall{Title: "Bash", Kind: acp.ToolKindExecute, Input: map[string]string{"command": "touch x"}})
		if turns++; turns == 1 {
			_, _ = h.Ask(acp.Permission{})
		}
		_, _ = h.Exec(acp.Exec{Command: "/bin/sh", Args: []string{"-c", "touch x"}})
		_ = h.Complete()
	}, answer)
	if at != nil {
		*at = g
	}
	for range 3 {
		g.prompt(t)
	}
	if got := strings.Join(g.asked, "|"); got != "Bash" || turns != 3 {
		t.Errorf("asked %q in %d turns", got, turns)
	}
}

// TestBroken: what an agent tells that it has done by itself is held against the rules that deny, with
// no false alarms.
func TestBroken(t *testing.T) {
	deny := []acphost.Rule{
		{Effect: acphost.EffectDeny, Name: "deny files", Paths: []string{"**/n3*"}},
		{Effect: acphost.EffectDeny, Name: "deny rm", Commands: []string{"rm *"}},
	}
	edit := func(g *guarded, name string) acp.ToolCall {
		return acp.ToolCall{Title: "edits " + name, Kind: acp.ToolKindEdit, Locations: []acp.ToolCallLocation{{Path: filepath.Join(g.dir, name)}}}
	}
	run := func(input any) acp.ToolCall {
		return acp.ToolCall{Title: "runs", Kind: acp.ToolKindExecute, Input: input}
	}
	command := func(c string) acp.ToolCall { return run(map[string]string{"command": c}) }
	complete := func(turn *acp.Turn, c acp.ToolCall) { _ = turn.ToolCall(c).Complete() }
	unheld := "rules cannot hold fake: it does things without asking, first "
	for _, tt := range []struct {
		name   string
		prompt func(g *guarded, turn *acp.Turn)
		answer func(acphost.Request) acp.PermissionOptionID
		v1, v2 string // what is told; v2 besides that it cannot be held
	}{
		{"a file", func(g *guarded, turn *acp.Turn) { complete(turn, edit(g, "n3.txt")) }, nil,
			"A rule was broken: edit DIR/n3.txt, forbidden by deny files", "A rule was broken: edit DIR/n3.txt, forbidden by deny files"},
		{"a command", func(_ *guarded, turn *acp.Turn) { complete(turn, command("rm -rf x")) }, nil,
			"A rule was broken: rm -rf x, forbidden by deny rm", "A rule was broken: rm -rf x, forbidden by deny rm"},
		{"told once", func(g *guarded, turn *acp.Turn) {
			h := turn.ToolCall(edit(g, "n3.txt"))
			_ = h.Complete()
			_ = h.Complete()
		}, nil, "A rule was broken: edit DIR/n3.txt, forbidden by deny files", "A rule was broken: edit DIR/n3.txt, forbidden by deny files"},
		{"another file", func(g *guarded, turn *acp.Turn) { complete(turn, edit(g, "n4.txt")) }, nil, unheld + "edits n4.txt", ""},
		{"another command", func(_ *guarded, turn *acp.Turn) { complete(turn, command("ls")) }, nil, unheld + "runs", ""},
		{"not known which", func(_ *guarded, turn *acp.Turn) { complete(turn, run(nil)) }, nil, unheld + "runs", ""},
		{"failed", func(g *guarded, turn *acp.Turn) { _ = turn.ToolCall(edit(g, "n3.txt")).Fail(os.ErrPermission) }, nil, "", ""},
		{"announced only", func(g *guarded, turn *acp.Turn) { turn.ToolCall(edit(g, "n3.txt")) }, nil, "", ""},
		{"with output", func(_ *guarded, turn *acp.Turn) {
			_ = turn.ToolCall(command("rm x")).Update(acp.ToolCallUpdate{RawOutput: json.RawMessage(`"removed x"`)})
		}, nil, "A rule was broken: rm x, forbidden by deny rm", "A rule was broken: rm x, forbidden by deny rm"},
		{"allowed by the user", func(g *guarded, turn *acp.Turn) {
			// What was asked about was not known to be denied.
			h := turn.ToolCall(acp.ToolCall{Title: "edits", Kind: acp.ToolKindEdit})
			_, _ = h.Ask(acp.Permission{})
			_ = h.Update(acp.ToolCallUpdate{Locations: acp.Set([]acp.ToolCallLocation{{Path: filepath.Join(g.dir, "n3.txt")}})})
			_ = h.Complete()
		}, yes, "", ""},
		{"denied and told as completed", func(g *guarded, turn *acp.Turn) {
			h := turn.ToolCall(edit(g, "n3.txt"))
			_, _ = h.Ask(acp.Permission{})
			_ = h.Complete()
		}, yes, "denied: edits n3.txt", "denied: edits n3.txt"},
		{"running while it is asked", func(g *guarded, turn *acp.Turn) {
			c := edit(g, "n3.txt")
			c.Status = acp.ToolCallStatusInProgress
			h := turn.ToolCall(c)
			_, _ = h.Ask(acp.Permission{})
			_ = h.Fail(os.ErrPermission)
		}, yes, "denied: edits n3.txt", "denied: edits n3.txt"},
		{"thinking", func(_ *guarded, turn *acp.Turn) {
			complete(turn, acp.ToolCall{Title: "thinks", Kind: acp.ToolKindThink})
		}, nil, "", ""},
	} {
		versions(t, func(t *testing.T, version int) {
			t.Run(tt.name, func(t *testing.T) {
				var g *guarded
				g = guard(t, version, deny, func(turn *acp.Turn) { tt.prompt(g, turn) }, tt.answer)
				g.prompt(t)
				want := tt.v1
				if version == 2 {
					want = strings.Trim("rules cannot hold fake: it uses files and runs commands by itself; the rules decide only what it asks about|"+tt.v2, "|")
				}
				if got := strings.Join(g.told, "|"); got != want {
					t.Errorf("told %q, want %q", got, want)
				}
				// It is in the conversation, too.
				for _, text := range g.told {
					if text = "notice: " + text; !strings.Contains(text, "denied: ") && !slices.Contains(g.entries(), text) {
						t.Errorf("%q is not in %q", text, g.entries())
					}
				}
			})
		})
	}
}

// TestBrokenInTerminal: an agent of version 2 shows what it runs in a terminal, before or after that
// belongs to a tool call.
func TestBrokenInTerminal(t *testing.T) {
	deny := []acphost.Rule{{Effect: acphost.EffectDeny, Name: "deny rm", Commands: []string{"rm *"}}}
	for name, prompt := range map[string]func(turn *acp.Turn){
		"before": func(turn *acp.Turn) {
			h := turn.ToolCall(acp.ToolCall{Title: "demo", Kind: acp.ToolKindExecute})
			_ = turn.Send(&acp.TerminalUpdate{TerminalID: "t", Command: acp.Set("rm -rf x")})
			_ = turn.Send(&acpv2.TerminalOutputChunk{TerminalID: "t", Data: "eA=="})
			_ = h.Append(&acp.TerminalContent{TerminalID: "t"})
		},
		"after": func(turn *acp.Turn) {
			h := turn.ToolCall(acp.ToolCall{Title: "demo", Kind: acp.ToolKindExecute})
			_ = h.Append(&acp.TerminalContent{TerminalID: "t"})
			_ = turn.Send(&acp.TerminalUpdate{TerminalID: "t", Command: acp.Set("rm -rf x")})
			_ = turn.Send(&acpv2.TerminalOutputChunk{TerminalID: "t", Data: "eA=="})
		},
		"exited": func(turn *acp.Turn) {
			h := turn.ToolCall(acp.ToolCall{Title: "demo", Kind: acp.ToolKindExecute})
			_ = h.Append(&acp.TerminalContent{TerminalID: "t"})
			_ = turn.Send(&acp.TerminalUpdate{TerminalID: "t", Command: acp.Set("rm -rf x"), ExitStatus: acp.Set(acp.TerminalExitStatus{ExitCode: new(int64(0))})})
			_ = h.Complete()
		},
		"of no tool call": func(turn *acp.Turn) {
			_ = turn.Send(&acp.TerminalUpdate{TerminalID: "t", Command: acp.Set("rm -rf x")})
			_ = turn.Send(&acpv2.TerminalOutputChunk{TerminalID: "t", Data: "eA=="})
			_ = turn.Send(&acp.TerminalUpdate{TerminalID: "t", ExitStatus: acp.Set(acp.TerminalExitStatus{ExitCode: new(int64(0))})})
			// That is told late; it is told of once.
			h := turn.ToolCall(acp.ToolCall{Title: "demo", Kind: acp.ToolKindExecute})
			_ = h.Append(&acp.TerminalContent{TerminalID: "t"})
			_ = h.Complete()
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := guard(t, 2, deny, prompt, nil)
			g.prompt(t)
			if len(g.told) != 2 || g.told[1] != "A rule was broken: rm -rf x, forbidden by deny rm" {
				t.Errorf("told %q", g.told)
			}
		})
	}
}

// TestRefusedIsNotBroken: an agent that was refused a file and tells of its call as completed has
// broken nothing.
func TestRefusedIsNotBroken(t *testing.T) {
	deny := []acphost.Rule{{Effect: acphost.EffectDeny, Name: "d", Paths: []string{"**/.env"}}}
	g := guard(t, 1, deny, nil, nil)
	path := filepath.Join(g.dir, ".env")
	put(t, path, "SECRET")
	g = guard(t, 1, []acphost.Rule{{Effect: acphost.EffectDeny, Name: "d", Paths: []string{"**/.env"}}}, func(turn *acp.Turn) {
		path := filepath.Join(turn.Session().Cwd(), ".env")
		h := turn.ToolCall(acp.ToolCall{Title: "reads", Kind: acp.ToolKindRead, Locations: []acp.ToolCallLocation{{Path: path}}})
		_, _ = turn.ReadFile(path)
		_ = h.Complete()
	}, nil)
	g.prompt(t)
	if got := strings.Join(g.told, "|"); got != "denied: Read DIR/.env" {
		t.Errorf("told %q", got)
	}
	if diff := cmp.Diff([]string{"tool: reads completed", "permission: Read DIR/.env reject_once"}, g.entries()); diff != "" {
		t.Error(diff)
	}
}
