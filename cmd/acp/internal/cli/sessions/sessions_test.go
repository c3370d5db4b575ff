package sessions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/ui/export"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// A bench is the command with a store of its own.
type bench struct {
	t        *testing.T
	app      *app.App
	out, err bytes.Buffer
	remote   *fakeAgent
	asked    []string // agents that were connected to
	resumed  []string
	forgot   []string // directories, with prompts
	width    int
}

// A fakeAgent knows sessions.
type fakeAgent struct {
	sessions []acp.SessionInfo
	err      error  // of asking
	asked    string // the directory it was asked about
	wait     bool   // until the context is done
	deleted  []string
	closed   bool
}

func (f *fakeAgent) Sessions(ctx context.Context, cwd string) ([]acp.SessionInfo, error) {
	f.asked = cwd
	if f.wait {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return f.sessions, f.err
}

func (f *fakeAgent) Delete(_ context.Context, id acp.SessionID) error {
	if f.err != nil {
		return f.err
	}
	f.deleted = append(f.deleted, string(id))
	return nil
}

func (f *fakeAgent) Close() error { f.closed = true; return nil }

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{t: t, remote: new(fakeAgent)}
	b.app = &app.App{
		In: strings.NewReader(""), Out: &b.out, Err: &b.err, Cwd: filepath.Join(dir, "project"),
		Environ: []string{"HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_STATE_HOME=" + dir},
	}
	if err := os.Mkdir(b.app.Cwd, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.app.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) store() *store.Store {
	b.t.Helper()
	st, err := b.app.Store(b.t.Context())
	if err != nil || st == nil {
		b.t.Fatal(st, err)
	}
	return st
}

// put adds a session with a question and an answer.
func (b *bench) put(agent, id, title string, age time.Duration, more ...string) {
	b.t.Helper()
	k := store.Key{Agent: agent, ID: id}
	at := now.Add(-age)
	events := []store.Event{
		{Kind: journal.KindUpdate, At: at, Data: json.RawMessage(`{"sessionUpdate":"user_message_chunk","messageId":"1","content":{"type":"text","text":"the question"}}`)},
		{Kind: journal.KindUpdate, At: at, Data: json.RawMessage(`{"sessionUpdate":"agent_message_chunk","messageId":"2","content":{"type":"text","text":"the \u001b[31manswer` + strings.Join(more, " ") + `"}}`)},
		{Kind: journal.KindEnd, At: at},
	}
	rec := b.store().Record(store.Session{Key: k, Title: title, Cwd: b.app.Cwd, Created: at}, store.RecordOptions{})
	rec.Append(events...)
	if err := rec.Close(); err != nil {
		b.t.Fatal(err)
	}
}

// run runs the command and returns what it wrote.
func (b *bench) run(args ...string) (out, errs string, err error) {
	b.t.Helper()
	b.out.Reset()
	b.err.Reset()
	cmd := NewCommandResume(b.app, Interfaces{ResumeSession: func(_ context.Context, s store.Session) error {
		b.resumed = append(b.resumed, s.Agent+"/"+s.ID)
		return nil
	}, Forget: func(cwd string, prompts []string) error {
		b.forgot = append(b.forgot, cwd+": "+strings.Join(prompts, ", "))
		return nil
	}}, func(ctx context.Context, o *Options) error {
		o.Now = func() time.Time { return now }
		o.Width = b.width
		o.Connect = func(_ context.Context, agent string) (Remote, error) {
			b.asked = append(b.asked, agent)
			return b.remote, nil
		}
		return Run(ctx, o)
	})
	quiet(cmd)
	cmd.SetArgs(append([]string{}, args...))
	err = cmd.ExecuteContext(b.t.Context())
	return b.out.String(), b.err.String(), err
}

func quiet(cmd *cobra.Command) {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(new(bytes.Buffer))
	cmd.SetErr(new(bytes.Buffer))
}

func (b *bench) agent(name string) { b.app.Flags = map[string]any{"agent": name} }

func TestFlags(t *testing.T) {
	tests := []struct {
		args string
		want Options
	}{
		{"list", Options{Verb: List, Limit: 50, Wait: 15 * time.Second}},
		{"list --all --here --json --remote --wait 2s", Options{Verb: List, All: true, Here: true, JSON: true, Remote: true, Limit: 50, Wait: 2 * time.Second}},
		{"show x --markdown", Options{Verb: Show, IDs: []string{"x"}, Markdown: true}},
		{"resume x", Options{Verb: Resume, IDs: []string{"x"}}},
		{"export x", Options{Verb: Export, IDs: []string{"x"}, Format: export.Markdown}},
		{"export x -o a.html", Options{Verb: Export, IDs: []string{"x"}, Format: export.HTML, File: "a.html"}},
		{"export x -o a.html --format md --force", Options{Verb: Export, IDs: []string{"x"}, Format: export.Markdown, File: "a.html", Force: true}},
		{"delete x y -y --agent-too", Options{Verb: Delete, IDs: []string{"x", "y"}, Yes: true, AgentToo: true, Wait: 15 * time.Second}},
		{"search two words -n 3", Options{Verb: Search, Words: "two words", Limit: 3}},
	}
	for _, tt := range tests {
		var got *Options
		cmd := NewCommand(new(app.App), func(_ context.Context, o *Options) error { got = o; return nil })
		quiet(cmd)
		cmd.SetArgs(strings.Fields(tt.args))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%s: %v", tt.args, err)
			continue
		}
		if diff := cmp.Diff(tt.want, *got, cmpopts.IgnoreFields(Options{}, "App"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", tt.args, diff)
		}
	}
	for _, args := range []string{"show", "show a b", "export x --format docx", "export x -o file", "list x", "list -n -1", "list --remote --local", "list --all -n 3", "search", "search ***", "delete", "show x --json --markdown", "delete x --local --agent-too"} {
		cmd := NewCommand(new(app.App), func(context.Context, *Options) error {
			t.Errorf("%s: it was run", args)
			return nil
		})
		quiet(cmd)
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.ExecuteContext(t.Context()); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v", args, err)
		}
	}
	cmd := NewCommand(new(app.App), func(context.Context, *Options) error { return nil })
	quiet(cmd)
	cmd.SetArgs([]string{"show", ""})
	if err := cmd.ExecuteContext(t.Context()); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("an empty id: %v", err)
	}
}

func TestList(t *testing.T) {
	b := newBench(t)
	if out, errs, err := b.run("list"); out != "" || errs != "no sessions\n" || err != nil {
		t.Errorf("empty store: %q, %q, %v", out, errs, err)
	}
	b.put("gemini", "0123456789-a", "First", 2*time.Hour)
	b.put("gemini", "0123456789-b", "Second \x1b[31m\nline", 30*time.Second)
	b.put("claude", "fffff-1-2-3-4-5", "Third", 90*24*time.Hour)
	out, _, err := b.run("list")
	if err != nil {
		t.Fatal(err)
	}
	want := `ID               AGENT   STATE  WHEN        TURNS  DIRECTORY  TITLE
0123456789-b     gemini  idle   now         1      DIR        Second line
0123456789-a     gemini  idle   2h ago      1      DIR        First
fffff-1-2-3-4-5  claude  idle   2026-08-23  1      DIR        Third
`
	dir := b.app.Cwd
	got := strings.ReplaceAll(out, dir, "DIR")
	if normSpace(got) != normSpace(want) {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	b.width = 60
	out, _, err = b.run("list")
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(out) {
		if n := len([]rune(strings.TrimRight(l, "\n"))); n > 60 {
			t.Errorf("line of %d in a terminal of 60: %q", n, l)
		}
	}
	if !strings.Contains(normSpace(out), "fffff-1- claude") || !strings.Contains(out, "0123456789-a") {
		t.Errorf("ids are not as short as can be:\n%s", out)
	}
	b.width = 0
	out, _, err = b.run("list", "-n", "1", "--json")
	if err != nil {
		t.Fatal(err)
	}
	items := itemsOf(t, out)
	if len(items) != 1 {
		t.Fatalf("%s", out)
	}
	if items[0].ID != "0123456789-b" || items[0].From != "stored" || items[0].Turns != 1 || items[0].Updated != "2026-11-21T11:59:30Z" {
		t.Errorf("item %+v", items[0])
	}
	if len(b.asked) > 0 {
		t.Errorf("%v was asked", b.asked)
	}
	other := *b
	other.app.Cwd = filepath.Dir(dir)
	if out, _, err := b.run("list", "--here"); out != "" || err != nil {
		t.Errorf("sessions of another directory: %q, %v", out, err)
	}
}

// itemsOf reads the output of --json: an object for each session, one in each line.
func itemsOf(t *testing.T, out string) (items []Item) {
	t.Helper()
	for l := range strings.Lines(out) {
		var item Item
		if err := json.Unmarshal([]byte(l), &item); err != nil || item.ID == "" {
			t.Fatalf("%q: %v", l, err)
		}
		items = append(items, item)
	}
	return items
}

func normSpace(s string) string {
	var lines []string
	for l := range strings.Lines(s) {
		lines = append(lines, strings.Join(strings.Fields(l), " "))
	}
	return strings.Join(lines, "\n")
}

func TestListRemote(t *testing.T) {
	b := newBench(t)
	b.put("gemini", "both", "", time.Hour)
	b.put("gemini", "stored", "Stored", 3*time.Hour)
	b.put("claude", "other", "Other", time.Hour)
	b.agent("gemini")
	b.remote.sessions = []acp.SessionInfo{
		{SessionID: "both", Title: "By the agent", Cwd: "/x", UpdatedAt: "2026-11-21T11:30:00Z"},
		{SessionID: "far", Title: "Far \x1b]0;x\x07", Cwd: "/y", UpdatedAt: "2026-11-21T10:00:00Z"},
		{SessionID: "far"}, // told twice
	}
	out, _, err := b.run("list")
	if err != nil {
		t.Fatal(err)
	}
	want := `ID AGENT STATE WHEN TURNS FROM DIRECTORY TITLE
both gemini idle 30m ago 1 both ` + b.app.Cwd + ` By the agent
far gemini 2h ago agent /y Far
stored gemini idle 3h ago 1 stored ` + b.app.Cwd + ` Stored`
	if got := normSpace(out); strings.TrimSpace(got) != strings.TrimSpace(normSpace(want)) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if diff := cmp.Diff([]string{"gemini"}, b.asked); diff != "" || !b.remote.closed {
		t.Errorf("asked %v, closed %v", b.asked, b.remote.closed)
	}
	for name, f := range map[string]*fakeAgent{
		"fails":      {err: errors.New("boom")},
		"slow":       {wait: true},
		"cannot":     {err: errors.ErrUnsupported},
		"not at all": nil,
	} {
		code := map[string]exitcode.Code{"fails": exitcode.Failed, "slow": exitcode.Timeout}[name]
		args := []string{"list"}
		if name == "slow" {
			args = append(args, "--wait", "1ms") // the others have time to answer
		}
		if f == nil {
			args = append(args, "--local")
			f = new(fakeAgent)
		}
		b.remote = f
		out, errs, err := b.run(args...)
		if exitcode.Of(err) != code || (err == nil) != (code == 0) || !strings.Contains(out, "stored") || strings.Contains(out, "claude") {
			t.Errorf("%s: %q, %v", name, out, err)
		}
		if told := strings.Count(errs, "\n") == 1; told != (name == "cannot") {
			t.Errorf("%s: %q", name, errs)
		}
	}
}

func TestShowAndExport(t *testing.T) {
	b := newBench(t)
	b.put("gemini", "abcdef", "A title", time.Hour)
	b.put("gemini", "abcxyz", "Another", time.Hour)
	out, _, err := b.run("show", "abcd")
	if err != nil || !strings.Contains(out, "the question") || !strings.Contains(out, "the answer") || strings.Contains(out, "\x1b") {
		t.Errorf("%q, %v", out, err)
	}
	out, _, err = b.run("show", "abcdef", "--json")
	var d export.Document
	if err != nil || json.Unmarshal([]byte(out), &d) != nil || d.Session.ID != "abcdef" {
		t.Errorf("%q, %v", out, err)
	}
	if out, _, err = b.run("show", "abcdef", "--markdown"); err != nil || !strings.HasPrefix(out, "# A title\n") {
		t.Errorf("%q, %v", out, err)
	}
	for id, want := range map[string]error{"abc": store.ErrAmbiguous, "zzz": store.ErrNotFound} {
		_, _, err := b.run("show", id)
		if !errors.Is(err, want) || exitcode.Of(err) != exitcode.Failed || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v", id, err)
		}
	}
	if _, _, err := b.run("show", "abc"); !strings.Contains(fmt.Sprint(err), "abcdef") || !strings.Contains(fmt.Sprint(err), "abcxyz") {
		t.Errorf("the candidates are not named: %v", err)
	}
	_, errs, err := b.run("export", "abcdef", "-o", "talk.html")
	if err != nil || !strings.Contains(errs, "talk.html") {
		t.Errorf("%q, %v", errs, err)
	}
	file := filepath.Join(b.app.Cwd, "talk.html")
	data, err := os.ReadFile(file)
	if err != nil || !bytes.HasPrefix(data, []byte("<!DOCTYPE html>")) {
		t.Errorf("%q, %v", data, err)
	}
	if _, _, err := b.run("export", "abcxyz", "-o", "talk.html"); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("written over: %v", err)
	}
	if _, _, err := b.run("export", "abcxyz", "-o", file, "--force"); err != nil {
		t.Error(err)
	}
	if data, err = os.ReadFile(file); err != nil || !bytes.Contains(data, []byte("Another")) {
		t.Errorf("not written over: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(b.app.Cwd, ".acp*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	if _, _, err := b.run("export", "abcxyz", "-o", "none/talk.md"); err == nil {
		t.Error("no error for a directory that is not there")
	}
	if out, _, err := b.run("export", "abcxyz", "-o", "-", "--format", "text"); err != nil || !strings.HasPrefix(out, "Another\n") {
		t.Errorf("%q, %v", out, err)
	}
}

// TestInterrupted: of a program that was killed in the middle of a turn, list and show say so; of one that
// lives they do not.
func TestInterrupted(t *testing.T) {
	b := newBench(t)
	b.put("alpha", "done", "Done", time.Hour)
	rec := b.store().Record(store.Session{Key: store.Key{Agent: "alpha", ID: "s1"}, Title: "Cut off"}, store.RecordOptions{})
	for _, e := range []store.Event{
		{Kind: journal.KindPrompt, Data: []byte(`{"id":"1","content":{"prompt":[{"type":"text","text":"go"}]}}`)},
		{Kind: journal.KindUpdate, Data: []byte(`{"update":{"sessionUpdate":"state_update","state":"running"}}`)},
		{Kind: journal.KindUpdate, Data: []byte(`{"update":{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"Build","status":"in_progress"}}`)},
	} {
		rec.Append(e)
	}
	for _, interrupted := range []bool{false, true} {
		if interrupted { // the system takes the lock from a process that is killed
			if err := rec.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for _, index := range []bool{true, false} {
			if !index { // a directory in its place
				for _, tail := range []string{"", "-wal", "-shm"} {
					_ = os.RemoveAll(filepath.Join(b.store().Dir(), "index.db"+tail))
				}
				if err := os.Mkdir(filepath.Join(b.store().Dir(), "index.db"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			out, _, err := b.run("list")
			if err != nil || strings.Contains(normSpace(out), "alpha interrupted now") != interrupted || strings.Count(out, "interrupted") > 1 {
				t.Errorf("interrupted %v, index %v: %v\n%s", interrupted, index, err, out)
			}
			if !index {
				if err := os.Remove(filepath.Join(b.store().Dir(), "index.db")); err != nil {
					t.Fatal(err)
				}
			}
		}
		out, _, err := b.run("list", "--json")
		for _, item := range itemsOf(t, out) {
			if want := interrupted && item.ID == "s1"; err != nil || item.Interrupted != want {
				t.Errorf("%s is interrupted: %v, want %v; %v", item.ID, item.Interrupted, want, err)
			}
		}
		out, _, err = b.run("show", "s1")
		if err != nil || strings.Contains(out, "the program ended in the middle") != interrupted {
			t.Errorf("interrupted %v: %v\n%s", interrupted, err, out)
		}
	}
}

func TestResume(t *testing.T) {
	b := newBench(t)
	b.put("gemini", "abcdef", "A title", time.Hour)
	if _, _, err := b.run("resume", "abc"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"gemini/abcdef"}, b.resumed); diff != "" {
		t.Error(diff)
	}
	cmd := NewCommand(b.app, nil)
	quiet(cmd)
	cmd.SetArgs([]string{"resume", "abc"})
	if err := cmd.ExecuteContext(t.Context()); err == nil {
		t.Error("resumed by nothing")
	}
}

func TestDelete(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"one", "two", "three", "four"} {
		b.put("gemini", id, "", time.Hour)
	}
	there := func() string {
		found, err := b.store().List(t.Context(), store.Query{})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(len(found))
	}
	if _, _, err := b.run("delete", "one"); exitcode.Of(err) != exitcode.Usage || there() != "4" {
		t.Errorf("without anybody to ask: %v", err)
	}
	if _, _, err := b.run("delete", "-y", "one", "none"); !errors.Is(err, store.ErrNotFound) || there() != "4" {
		t.Errorf("with one that is not there: %v, %s left", err, there())
	}
	b.app.InTerminal, b.app.ErrTerminal = true, true
	b.app.In = strings.NewReader("\n")
	if _, _, err := b.run("delete", "one"); exitcode.Of(err) != exitcode.Cancelled || there() != "4" {
		t.Errorf("with no as the answer: %v", err)
	}
	b.app.In = strings.NewReader("y\n")
	if _, errs, err := b.run("delete", "one"); err != nil || there() != "3" || !strings.Contains(errs, "Delete this session? [y/N] ") {
		t.Errorf("with yes as the answer: %v, %q", err, errs)
	}
	if len(b.asked) > 0 {
		t.Errorf("%v was asked", b.asked)
	}
	if diff := cmp.Diff([]string{b.app.Cwd + ": the question"}, b.forgot); diff != "" {
		t.Errorf("the history of what was typed: %s", diff)
	}
	if _, _, err := b.run("delete", "-y", "--agent-too", "two"); err != nil || there() != "2" || len(b.remote.deleted) != 1 || !b.remote.closed {
		t.Errorf("at the agent: %v, %+v", err, b.remote)
	}
	b.remote = &fakeAgent{err: errors.New("busy")}
	if _, _, err := b.run("delete", "-y", "--agent-too", "three"); err == nil || there() != "2" {
		t.Errorf("the agent fails: %v, %s left", err, there())
	}
	b.remote = &fakeAgent{err: errors.ErrUnsupported}
	if _, errs, err := b.run("delete", "-y", "--agent-too", "three"); err != nil || there() != "1" || !strings.Contains(errs, "cannot delete") {
		t.Errorf("the agent cannot: %v, %q", err, errs)
	}
}

func TestSearch(t *testing.T) {
	b := newBench(t)
	b.put("gemini", "one", "Needle in title", time.Hour)
	b.put("gemini", "two", "", time.Hour, " with a needle")
	b.put("gemini", "three", "", time.Hour)
	out, _, err := b.run("search", "needle")
	if err != nil || !strings.Contains(out, "one") || !strings.Contains(out, "with a needle") || strings.Contains(out, "three") || strings.Contains(out, "\x1b") {
		t.Errorf("%q, %v", out, err)
	}
	if out, errs, err := b.run("search", "haystack"); out != "" || errs == "" || err != nil {
		t.Errorf("%q, %q, %v", out, errs, err)
	}
	out, _, err = b.run("search", "need", "question", "--json")
	items := itemsOf(t, out)
	if err != nil || len(items) != 2 || items[0].Snippet == "" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestCut: a list that is cut says of how many sessions it is, where a program that reads the list does not take it for one.
func TestCut(t *testing.T) {
	b := newBench(t)
	for i := range 5 {
		b.put("gemini", fmt.Sprint("needle", i), "needle", time.Hour)
	}
	b.put("gemini", "other", "", time.Hour)
	for _, tt := range []struct{ args, says string }{
		{"list -n 2", "2 of 6 sessions; --all lists all of them"},
		{"list -n 2 --json", "2 of 6 sessions; --all lists all of them"},
		{"list -n 6", ""},
		{"list", ""},
		{"list --all", ""},
		{"search needle -n 2", "2 of 5 matches; --all lists all of them"},
		{"search needle -n 5", ""},
	} {
		out, errs, err := b.run(strings.Fields(tt.args)...)
		if err != nil || strings.TrimSpace(errs) != tt.says || strings.Contains(out, " of ") {
			t.Errorf("%s: %q, %q, %v; want %q", tt.args, out, errs, err, tt.says)
		}
	}
}

// TestBrokenStore: what cannot be a store is named, and left alone.
func TestBrokenStore(t *testing.T) {
	b := newBench(t)
	path, err := b.app.StorePath()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("no directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, _ := b.run("list")
	if !strings.Contains(errs, "conversations are not kept: open store "+path) {
		t.Errorf("%q", errs)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "no directory" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestStoreOff(t *testing.T) {
	b := newBench(t)
	b.app.Flags = map[string]any{"store.off": true}
	if _, _, err := b.run("list"); err != nil {
		t.Error(err)
	}
	if _, _, err := b.run("show", "x"); err == nil || !strings.Contains(err.Error(), "turned off") {
		t.Errorf("error %v", err)
	}
}

func TestColumns(t *testing.T) {
	table := [][]string{{"ID", "DIRECTORY", "TITLE"}, {"12345678", "/a/very/long/way/down/to/the/project", "日本語のとても長いタイトルがここにあります"}}
	for width := 1; width < 120; width++ {
		for _, l := range columns(table, width) {
			if n := cells(l); n > width {
				t.Fatalf("%d cells in a terminal of %d: %q", n, width, l)
			}
		}
	}
	if got := columns(table, 60)[1]; !strings.Contains(got, "project") {
		t.Errorf("the end of the directory is not shown: %q", got)
	}
}

func cells(s string) int { return ansi.StringWidth(s) }
