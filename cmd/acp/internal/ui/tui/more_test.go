package tui

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

func TestCompose(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go", "package a\n")
	write("with space.txt", "x")
	write("pic.png", "\x89PNG\r\n\x1a\n")
	write("binary.bin", "a\x00b")
	write("long.txt", strings.Repeat("x", maxEmbedded+1))
	all := acp.PromptContent{Image: true, EmbeddedContext: true}
	tests := []struct {
		name, text string
		takes      acp.PromptContent
		want       []string
		remark     string
	}{
		{"text", "hello", all, []string{"text hello"}, ""},
		{"no such file", "mail me @home or a@b.example", all, []string{"text mail me @home or a@b.example"}, ""},
		{"link", "see @a.go.", acp.PromptContent{}, []string{"text see @a.go.", "link a.go"}, ""},
		{"text of a file", "see (@a.go)", all, []string{"text see (@a.go)", "file a.go package a\n"}, ""},
		{"twice", "@a.go @a.go", all, []string{"text @a.go @a.go", "file a.go package a\n"}, ""},
		{"quoted", `see @"with space.txt"!`, all, []string{`text see @"with space.txt"!`, "file with%20space.txt x"}, ""},
		{"picture", "@pic.png", all, []string{"text @pic.png", "image image/png"}, ""},
		{"picture not taken", "@pic.png", acp.PromptContent{}, []string{"text @pic.png", "link pic.png"}, "does not accept pictures"},
		{"binary", "@binary.bin", all, []string{"text @binary.bin", "link binary.bin"}, ""},
		{"long", "@long.txt", all, []string{"text @long.txt", "link long.txt"}, ""},
		{"directory", "@.", all, []string{"text @.", "link " + filepath.Base(dir)}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			blocks, remarks := compose(t.Context(), dir, tt.text, nil, nil, tt.takes)
			var got []string
			for _, b := range blocks {
				switch b := b.(type) {
				case *acpv2.TextContent:
					got = append(got, "text "+b.Text)
				case *acpv2.ResourceLink:
					got = append(got, "link "+b.Name)
				case *acpv2.ImageContent:
					if _, err := base64.StdEncoding.DecodeString(b.Data); err != nil {
						t.Error(err)
					}
					got = append(got, "image "+b.MIMEType)
				case *acpv2.EmbeddedResource:
					r := b.Resource.(*acpv2.TextResourceContents)
					got = append(got, "file "+r.URI[strings.LastIndex(r.URI, "/")+1:]+" "+r.Text)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if s := strings.Join(remarks, "; "); (tt.remark == "") != (s == "") || !strings.Contains(s, tt.remark) {
				t.Errorf("remarks %q, want %q", s, tt.remark)
			}
		})
	}
}

func TestPastedLong(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	long := strings.Repeat("a line\n", 100)
	r.keys("look: ")
	r.send(tea.PasteMsg{Content: long})
	r.wants("look: [#1 pasted text, 100 lines]")
	r.run(r.keys("enter"))
	if len(r.talk.sent()) != 1 {
		t.Fatalf("%d prompts", len(r.talk.sent()))
	}
	if got := r.talk.sent()[0][0].(*acpv2.TextContent).Text; got != "look: "+strings.TrimSpace(long) {
		t.Errorf("sent %d bytes: %.60q", len(got), got)
	}
}

func TestPastedImage(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.send(pastedMsg{image: image{mime: "image/png", data: []byte("x")}})
	r.wants("the agent does not accept pictures")
	r.link.takes.Image = true
	r.send(pastedMsg{image: image{mime: "image/png", data: []byte("xyz")}})
	r.wants("[#1 image, 3 B]")
	r.run(r.keys("enter"))
	if got := r.talk.sent()[0]; len(got) != 2 {
		t.Errorf("%d blocks were sent", len(got))
	}
}

func TestDroppedPath(t *testing.T) {
	tests := []struct {
		text, want string
		ok         bool
	}{
		{"/tmp/a.png", "/tmp/a.png", true},
		{"'/tmp/a b.png' ", "/tmp/a b.png", true},
		{`/tmp/a\ b.jpg`, "/tmp/a b.jpg", true},
		{"file:///tmp/a%20b.webp", "/tmp/a b.webp", true},
		{"/tmp/a.txt", "", false},
		{"a.png", "", false},
		{"/tmp/a.png\n/tmp/b.png", "", false},
	}
	for _, tt := range tests {
		if got, ok := droppedPath(tt.text); got != tt.want || ok != tt.ok {
			t.Errorf("droppedPath(%q) = %q, %v", tt.text, got, ok)
		}
	}
}

func TestCompletion(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.talk.commands = []acp.AvailableCommand{
		&acpv2.Command{Name: "deploy", Description: "put it \x1b[31mout", Input: &acpv2.TextCommandInput{Hint: "WHERE"}},
		&acpv2.Command{Name: "help", Description: "the agent's own"},
	}
	r.keys("/")
	r.wants("▸ /deploy WHERE", "put it out", "/help", "/options")
	r.keys("de", "tab")
	r.wants("› /deploy")
	r.keys("north")
	r.run(r.keys("enter"))
	if got := r.talk.sent()[0][0].(*acpv2.TextContent).Text; got != "/deploy north" {
		t.Errorf("sent %q", got)
	}
	r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopEndTurn}})
	// The agent's names win; ours have a longer one then.
	r.run(r.keys("/help", "enter"))
	if len(r.talk.sent()) != 2 {
		t.Errorf("/help was not sent")
	}
	r.lacks("Keys and commands")
	r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopEndTurn}})
	r.run(r.keys("/acp:help", "enter"))
	r.wants("Keys and commands")
}

func TestFileCompletion(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.keys("see @ma")
	r.send(filesMsg{[]string{"README.md", "cmd/main.go", "a dir/main.png", "ev\x1bil"}})
	r.wants("cmd/main.go", "a dir/main.png", "picture")
	r.lacks("README")
	r.keys("tab")
	s := r.m.input.value()
	if !strings.HasPrefix(s, "see @") || !strings.HasSuffix(s, " ") || strings.Contains(s, "@ma ") {
		t.Errorf("the input is %q", s)
	}
}

func TestHistory(t *testing.T) {
	dir, cwd := t.TempDir(), t.TempDir()
	in := newInput(dir, cwd)
	for i := range 5 {
		cmd := in.remember(fmt.Sprintf("line %d\nand more", i))
		if msg := cmd(); msg != nil {
			t.Fatal(msg)
		}
	}
	if in.remember("line 4\nand more") != nil {
		t.Error("the same line was added twice")
	}
	again := newInput(dir, cwd)
	again.loaded(again.loadHistory().(historyMsg))
	again.set("draft")
	again.back()
	if got := again.value(); got != "line 4\nand more" {
		t.Errorf("back to %q", got)
	}
	again.forth()
	if got := again.value(); got != "draft" {
		t.Errorf("forth to %q", got)
	}
	if st, err := os.Stat(again.history.path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", st.Mode(), err)
	}
	if other := newInput(dir, t.TempDir()); len(readHistory(other.history.path)) != 0 {
		t.Error("another project has the same history")
	}
}

func TestHistoryBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h")
	line := strings.Repeat("x", 1000)
	for i := range maxHistory + 50 {
		if err := appendHistory(path, fmt.Sprint(i, line)); err != nil {
			t.Fatal(err)
		}
	}
	if got := readHistory(path); len(got) != maxHistory || !strings.HasPrefix(got[len(got)-1], fmt.Sprint(maxHistory+49)) {
		t.Errorf("%d lines", len(got))
	}
	if err := os.WriteFile(path, []byte("not json\n\"good\"\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := readHistory(path); !slices.Equal(got, []string{"good"}) {
		t.Errorf("of a broken file: %q", got)
	}
}

func TestOptions(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.keys("ctrl+o")
	r.wants("the agent has no options")
	r.keys("esc")
	r.talk.options = someOptions()
	r.wants("ask", "big")
	r.keys("ctrl+o")
	r.wants("Mode", "● ask", "Model", "small", "Quick")
	r.keys("small")
	r.lacks("● ask")
	r.run(r.keys("enter"))
	if len(r.talk.set) != 1 {
		t.Fatalf("%d options were set", len(r.talk.set))
	}
	if v, ok := r.talk.set[0].(*acpv2.SessionConfigOptionValueID); !ok || v.Value != "small" {
		t.Errorf("set to %v", r.talk.set[0])
	}
	r.run(r.keys("shift+tab"))
	if v, ok := r.talk.set[1].(*acpv2.SessionConfigOptionValueID); !ok || v.Value != "code" {
		t.Errorf("the next mode is %v", r.talk.set[1])
	}
}

func TestSessions(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.run(r.keys("alt+r"))
	r.wants("Sessions in", "an old one", "known to the agent")
	r.run(r.keys("enter"))
	if !slices.Equal(r.link.restored, []acp.SessionID{"s-old"}) {
		t.Errorf("restored %q", r.link.restored)
	}
}

// TestInterruptedSessions: the list of sessions shows which of them have a last turn that was interrupted.
func TestInterruptedSessions(t *testing.T) {
	st, err := store.Open(t.Context(), store.Options{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	r := newRig(t, 80, 24, func(o *Options) {
		o.store = func(context.Context) (*store.Store, error) { return st, nil }
		for title, last := range map[string]store.Event{
			"killed": {Kind: journal.KindUpdate, Data: []byte(`{"sessionUpdate":"state_update","state":"running"}`)},
			"ended":  {Kind: journal.KindEnd, Data: []byte(`{"stopReason":"end_turn"}`)},
		} {
			rec := st.Record(store.Session{Key: store.Key{Agent: o.Agent.Name, ID: title}, Cwd: o.cwd, Title: title}, store.RecordOptions{})
			rec.Append(store.Event{Kind: journal.KindPrompt, Data: []byte(`{"sessionUpdate":"user_message","messageId":"1"}`)}, last)
			if err := rec.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}).start()
	// Not with run, which takes looking at the logs for waiting.
	r.send(r.keys("alt+r")())
	r.wants("(interrupted) killed", "ended")
	r.lacks("(interrupted) ended")
}

// TestSessionSearch: the list of sessions finds what was said, with all agents, and shows it where no
// title matches; runs of acp exec are apart.
func TestSessionSearch(t *testing.T) {
	st, err := store.Open(t.Context(), store.Options{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	r := newRig(t, 80, 24, func(o *Options) {
		o.store = func(context.Context) (*store.Store, error) { return st, nil }
		for _, v := range []store.Session{
			{Key: store.Key{Agent: o.Agent.Name, ID: "1"}, Title: "mine"},
			{Key: store.Key{Agent: "other", ID: "2"}, Title: "theirs"},
			{Key: store.Key{Agent: o.Agent.Name, ID: "3"}, Title: "a run", By: "exec"},
		} {
			v.Cwd = o.cwd
			rec := st.Record(v, store.RecordOptions{})
			rec.Append(store.Event{Kind: journal.KindPrompt, Data: []byte(`{"sessionUpdate":"user_message","messageId":"1","content":[{"type":"text","text":"about giraffes and ` + v.Title + `"}]}`)})
			if err := rec.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}).start()
	r.send(r.keys("alt+r")())
	r.wants("With other agents", "theirs  other · ", "Runs of acp exec", "a run")
	ask := r.keys("giraf")
	if ask == nil {
		t.Fatal("no search")
	}
	r.wants("nothing found")
	p, _ := r.m.overlay.(*picker)
	r.send(r.send(askFoundMsg{p, "giraf"})())
	r.wants("In what was said", "giraffes and mine", "giraffes and theirs", "giraffes and a run")
	if cmd := r.send(askFoundMsg{p, "gi"}); cmd != nil {
		t.Error("words that are gone are searched for")
	}
	r.keys("x")
	r.lacks("In what was said")
}

func TestSubagent(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.keys("ctrl+x")
	r.wants("there are no subagents")
	r.said(&acpv2.SubagentUpdate{SessionID: "child", Title: acpv2.Set("Helper \x1b[1m")})
	child := &fakeTalk{id: "child", conv: transcript.New(transcript.Config{})}
	child.conv.Apply(&acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text("from the child")})
	r.link.children["child"] = child
	r.keys("ctrl+x", "down")
	r.run(r.keys("enter"))
	r.wants("from the child", "subagent's conversation")
	r.lacks("Agent Helper")
	r.keys("esc")
	r.wants("Agent Helper")
}

func TestFollow(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	talkative(r)
	r.wants("message 29")
	r.keys("pgup")
	r.lacks("message 29")
	before := strings.SplitN(r.screen(), "\n", 2)[0]
	r.said(&acpv2.AgentMessageChunk{MessageID: "new", Content: acpv2.Text("the newest")})
	r.wants("↓ new")
	if after := strings.SplitN(r.screen(), "\n", 2)[0]; after != before {
		t.Errorf("the first line moved from %q to %q", before, after)
	}
	r.keys("end")
	r.wants("the newest")
	r.lacks("↓")
}

func TestBell(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	rings := func() bool { return r.m.ring(eventAsk, "x") != nil }
	r.keys("a")
	if rings() {
		t.Error("it rings though the user types")
	}
	r.now = r.now.Add(time.Minute)
	if !rings() { // the terminal may not report its focus
		t.Error("it does not ring though nobody types")
	}
	r.send(tea.FocusMsg{})
	if rings() {
		t.Error("it rings though the user looks")
	}
	r.send(tea.BlurMsg{})
	if !rings() {
		t.Error("it does not ring though the user looks elsewhere")
	}
	r.m.opt.NoBell = true
	if rings() {
		t.Error("it rings though it must not")
	}
}

func TestLogin(t *testing.T) {
	r := newRig(t, 80, 24, nil)
	l := &login{methods: []acp.AuthMethod{
		&acpv2.AuthMethodAgent{MethodID: "a", Name: "By browser"},
		&acpv2.AuthMethodTerminal{MethodID: "t", Name: "By hand", Description: "asks for a key"},
	}, answer: make(chan acp.AuthMethodID, 1)}
	r.send(loginMsg{l})
	r.wants("Log in to", "By browser", "By hand", "in the terminal · asks for a key")
	r.keys("down")
	r.run(r.keys("enter"))
	if id := <-l.answer; id != "t" {
		t.Errorf("chose %q", id)
	}
}

// TestLoginWhole holds that the longest command which is run can be read to its end before it is chosen.
func TestLoginWhole(t *testing.T) {
	r := newRig(t, 80, 24, nil)
	meta := `{"terminal-auth":{"command":"a","args":["` + strings.Repeat("x", 980) + `","the-end"],"env":{"PATH":"/tmp"}}}`
	r.send(loginMsg{&login{methods: []acp.AuthMethod{
		&acpv2.AuthMethodAgent{MethodID: "a", Name: "By hand", Meta: json.RawMessage(meta)},
	}, answer: make(chan acp.AuthMethodID, 1)}})
	r.wants("runs PATH=/tmp a", "the-end")
}

// FuzzKeys has the model draw whatever is typed, at whatever size.
func FuzzKeys(f *testing.F) {
	f.Add("hello /help @a\r\x1b\t", 80, 24)
	f.Add("?\x0f\x12\x06abc\x1b", 20, 5)
	f.Fuzz(func(t *testing.T, text string, w, h int) {
		if len(text) > 200 {
			return
		}
		r := newRig(t, 1+abs(w)%200, 1+abs(h)%60, nil).start()
		r.talk.options = someOptions()
		for _, c := range text {
			switch {
			case c == '\x07': // the editor
			case c < 0x20:
				r.send(tea.KeyPressMsg{Code: c + 0x60, Mod: tea.ModCtrl})
			default:
				r.send(tea.KeyPressMsg{Code: c, Text: string(c)})
			}
			r.screen()
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return max(0, -n)
	}
	return n
}

// TestCompletionTellsMore: that there is more than is shown is said, and where.
func TestCompletionTellsMore(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	var files []string
	for i := range 12 {
		files = append(files, fmt.Sprintf("file%02d", i))
	}
	r.keys("@f")
	r.send(filesMsg{files})
	r.wants("▸ file00", "file07", "↓ 4 more")
	for range 9 {
		r.keys("down")
	}
	r.wants("▸ file09", "↓ 2 more")
	r.keys("up")
	for range 3 {
		r.keys("down")
	}
	r.wants("▸ file11", "↑ 4 more")
	r.lacks("file03", "↓")
	r.keys("ile1")
	r.wants("file11")
	r.lacks("more")
}

// TestTidyEnds: what gives memory back waits for nothing once the program ends.
func TestTidyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		done := false
		go func() { tidy(ctx)(); done = true }()
		synctest.Wait()
		if done {
			t.Error("it does not wait")
		}
		cancel()
		synctest.Wait()
		if !done {
			t.Error("it waits for longer than the program")
		}
	})
}
