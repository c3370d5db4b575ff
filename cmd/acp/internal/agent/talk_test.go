package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/cmd/acp/internal/agent/guide"
	"github.com/goacp/acp/cmd/acp/internal/agent/loop"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/internal/logtest"
)

var _ = acptest.UpdateFlag()

// A talk is a conversation with the agent in memory.
type talk struct {
	t          *testing.T
	dir        string // of the sessions
	cwd        string
	client     acp.Client
	model      model.Model
	shelf      model.Source
	home       guide.Home
	api        string // where the model of the agent is, where that is a process of its own
	limits     loop.Limits
	most       float64 // that a session may cost
	cost       func(*acp.Cost)
	policy     *acphost.Policy
	scriptFile string // the file with what the model of the agent says, where that is a process of its own
	conn       *acp.ClientConn
	session    *acp.ClientSession

	mu     sync.Mutex
	script script
	asked  []string
	answer func(*acp.PermissionRequest) acp.PermissionDecision
}

// start begins a conversation in a directory with some files.
func start(t *testing.T, version int, change ...func(*talk)) *talk {
	t.Helper()
	k := &talk{t: t, dir: filepath.Join(t.TempDir(), "sessions"), cwd: realDir(t)}
	k.write("main.go", "package main\n\nfunc main() {\n\tprintln(\"one\")\n\tprintln(\"two\")\n}\n")
	k.write("doc/notes.txt", "first\nsecond\n")
	k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision { return r.Allow() }
	k.client = acp.Client{
		MinVersion: version, MaxVersion: version, Logger: logtest.New(t),
		Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			if now, ok := u.Update.(*acp.UsageUpdate); ok && k.cost != nil {
				if cost, ok := now.Cost.Get(); ok {
					k.cost(&cost)
				}
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			k.script.add(u)
		},
		RequestPermission: func(ctx context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			k.mu.Lock()
			var options []string
			for _, o := range r.Options {
				options = append(options, string(o.Kind))
			}
			k.asked = append(k.asked, r.Title)
			k.script.line("ask: %s [%s]", k.plain(r.Title), strings.Join(options, " "))
			k.mu.Unlock()
			return k.answer(r), nil
		},
	}
	for _, c := range change {
		c(k)
	}
	k.connect()
	k.open()
	return k
}

// realDir is a temporary directory whose path has no links.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// lent has the client lend its files and terminals.
func lent(k *talk) {
	k.client.Files = acphost.Dir(k.cwd)
	k.client.Terminals = func(*acp.ClientConn) acp.TerminalHost { return acphost.Local(k.cwd) }
}

func inMemory(k *talk) { k.dir = "" }

// models returns the model of the talk as the only one; nil if it has none.
func (k *talk) models() model.Source {
	if k.shelf != nil {
		return k.shelf
	}
	if k.model == nil {
		return nil
	}
	return fixed{m: k.model}
}

// fixed is one model.
type fixed struct {
	model.Source // for what is not called
	m            model.Model
}

func (f fixed) List(context.Context, bool) []model.Choice {
	return []model.Choice{{Ref: "script/script", Name: f.m.Info().Name}}
}
func (f fixed) Open(string) (model.Model, error) { return f.m, nil }
func (f fixed) Effort() string                   { return "" }

func (k *talk) connect() {
	k.t.Helper()
	a, err := New(Options{Dir: k.dir, Version: "1.2.3", Models: k.models(), Home: k.home, Limits: k.limits, Session: k.most, Policy: k.policy})
	if err != nil {
		k.t.Fatal(err)
	}
	k.conn, _ = acptest.Pair(k.t, a, &k.client)
}

func (k *talk) open() {
	k.t.Helper()
	var err error
	if k.session, err = k.conn.NewSession(k.t.Context(), acp.SessionConfig{Cwd: k.cwd}); err != nil {
		k.t.Fatal(err)
	}
}

// reopen closes the session and resumes it with another agent on the same directories.
func (k *talk) reopen() {
	k.t.Helper()
	id := k.session.ID()
	if err := k.session.Close(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
	k.connect()
	var err error
	if k.session, err = k.conn.Resume(k.t.Context(), id, acp.SessionConfig{Cwd: k.cwd}); err != nil {
		k.t.Fatal(err)
	}
}

func (k *talk) write(name, text string) {
	k.t.Helper()
	path := filepath.Join(k.cwd, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

func (k *talk) read(name string) string {
	k.t.Helper()
	data, err := os.ReadFile(filepath.Join(k.cwd, filepath.FromSlash(name)))
	if err != nil {
		k.t.Fatal(err)
	}
	return string(data)
}

// tell prompts the agent and returns what happened, as text.
func (k *talk) tell(prompt string, more ...acp.ContentBlock) string {
	k.t.Helper()
	k.taken()
	res, err := k.session.Prompt(k.t.Context(), append([]acp.ContentBlock{acp.Text(prompt)}, more...)...).Wait()
	if err != nil {
		k.t.Fatalf("%s: %v", prompt, err)
	}
	if res.StopReason != acp.StopEndTurn {
		k.t.Errorf("%s: ended by %s", prompt, res.StopReason)
	}
	return k.taken()
}

// taken returns what happened since it was called last.
func (k *talk) taken() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	text := k.plain(k.script.String())
	k.script = script{}
	return text
}

// plain replaces what is different each time.
func (k *talk) plain(text string) string {
	text = strings.ReplaceAll(text, k.cwd, "CWD")
	if k.dir != "" {
		text = strings.ReplaceAll(text, k.dir, "SESSIONS")
	}
	if k.session != nil {
		text = strings.ReplaceAll(text, string(k.session.ID()), "SESSION")
	}
	return text
}

// A script writes updates down as text that is the same each time.
type script struct {
	b     strings.Builder
	kind  string
	tools map[string]int
}

func (s *script) line(format string, args ...any) {
	if s.kind != "" {
		s.b.WriteByte('\n')
		s.kind = ""
	}
	fmt.Fprintf(&s.b, format+"\n", args...)
}

func (s *script) message(kind, text string) {
	if s.kind != kind {
		s.line("%s:", kind)
		s.kind = kind
	}
	s.b.WriteString(text)
}

// number replaces random ids.
func (s *script) number(id string) string {
	if s.tools == nil {
		s.tools = map[string]int{}
	}
	if s.tools[id] == 0 {
		s.tools[id] = len(s.tools) + 1
	}
	return fmt.Sprint("#", s.tools[id])
}

func (s *script) String() string {
	if text := s.b.String(); text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return s.b.String() + "\n"
}

func blockText(b acp.ContentBlock) string {
	if t, ok := b.(*acp.TextContent); ok {
		return t.Text
	}
	return fmt.Sprintf("(%T)", b)
}

func (s *script) add(u *acp.Update) {
	switch v := u.Update.(type) {
	case *acp.UserMessage:
		for _, b := range v.Content.Or(nil) {
			s.message("user", blockText(b))
		}
	case *acp.UserMessageChunk:
		s.message("user", blockText(v.Content))
	case *acp.AgentMessageChunk:
		s.message("agent", blockText(v.Content))
	case *acp.AgentMessage:
		for _, b := range v.Content.Or(nil) {
			s.message("agent", blockText(b))
		}
	case *acp.AgentThoughtChunk:
		s.message("thought", blockText(v.Content))
	case *acp.ToolCallUpdate:
		var parts []string
		if kind, ok := v.Kind.Get(); ok {
			parts = append(parts, string(kind))
		}
		if title, ok := v.Title.Get(); ok {
			parts = append(parts, fmt.Sprintf("%q", title))
		}
		if status, ok := v.Status.Get(); ok {
			parts = append(parts, string(status))
		}
		for _, l := range v.Locations.Or(nil) {
			at := l.Path
			if l.Line != nil {
				at += fmt.Sprint(":", *l.Line)
			}
			parts = append(parts, "at "+at)
		}
		s.line("tool %s: %s", s.number(string(v.ToolCallID)), strings.Join(parts, " "))
		for _, c := range v.Content.Or(nil) {
			s.content(c)
		}
	case *acp.ToolCallContentChunk:
		s.line("tool %s shows", s.number(string(v.ToolCallID)))
		s.content(v.Content)
	case *acp.TerminalUpdate:
		text := "terminal " + s.number(string(v.TerminalID))
		if c, ok := v.Command.Get(); ok {
			text += " runs " + c
		}
		if o, ok := v.Output.Get(); ok {
			data, _ := o.Bytes()
			text += fmt.Sprintf(" output %q", data)
		}
		if e, ok := v.ExitStatus.Get(); ok && e.ExitCode != nil {
			text += fmt.Sprintf(" exit %d", *e.ExitCode)
		} else if ok {
			text += " ended by " + e.Signal
		}
		s.line("%s", text)
	case *acp.TerminalOutputChunk:
		data, _ := v.Bytes()
		s.message("terminal "+s.number(string(v.TerminalID))+" prints", string(data))
	case *acp.PlanUpdate:
		s.line("plan:")
		if items, ok := v.Plan.(*acp.PlanItems); ok {
			for _, e := range items.Entries {
				s.line("  %s: %s", e.Status, e.Content)
			}
		}
	case *acp.ConfigOptionUpdate:
		for _, o := range v.ConfigOptions {
			switch kind := o.Kind.(type) {
			case *acp.SessionConfigSelect:
				s.line("option %s is %s", o.ConfigID, kind.CurrentValue)
			case *acp.SessionConfigBoolean:
				s.line("option %s is %t", o.ConfigID, kind.CurrentValue)
			}
		}
	case *acp.SessionInfoUpdate:
		s.line("title: %s", v.Title.Or("-"))
	case *acp.UsageUpdate:
		s.line("usage: %d of %d", v.Used, v.Size)
	case *acp.Notice:
		s.line("notice: %s", v.Title)
	case *acp.CompactionUpdate:
		s.line("compaction: %s", v.Status)
		for _, b := range v.Summary.Or(nil) {
			s.message("summary", blockText(b))
		}
	case *acp.SubagentUpdate:
		s.line("subagent: %s", v.Title.Or("-"))
	}
}

func (s *script) content(c acp.ToolCallContent) {
	switch c := c.(type) {
	case *acp.BlockContent:
		s.line("%s", blockText(c.Content))
	case *acp.Diff:
		s.line("%s", c.Patch.Text)
	case *acp.TerminalContent:
		s.line("terminal %s", s.number(string(c.TerminalID)))
	default:
		s.line("%T", c)
	}
}

// golden compares text with a file.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if updating() {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (run with -update to accept):\n%s", path, diff)
	}
}

// versions runs a test with either version of the protocol.
func versions(t *testing.T, f func(t *testing.T, version int)) {
	for _, v := range []int{1, 2} {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) { f(t, v) })
	}
}

func contains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%.4000s", want, text)
		}
	}
}

func lacks(t *testing.T, text string, unwanted ...string) {
	t.Helper()
	for _, u := range unwanted {
		if strings.Contains(text, u) {
			t.Errorf("there is %q in\n%s", u, text)
		}
	}
}
