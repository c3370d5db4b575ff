package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/modeltest"
	scripts "github.com/goacp/acp/cmd/acp/internal/model/script"
)

// A witness is a model that remembers what it was asked.
type witness struct {
	model.Model
	mu       sync.Mutex
	requests []*model.Request
	ctx      context.Context // of the last one
}

func (w *witness) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	w.mu.Lock()
	w.ctx = ctx
	w.requests = append(w.requests, r)
	w.mu.Unlock()
	return w.Model.Generate(ctx, r)
}

// last returns what the model was told last, as text.
func (w *witness) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.requests[len(w.requests)-1]
	return messageText(r.Messages[len(r.Messages)-1])
}

func messageText(m *model.Message) string {
	var b strings.Builder
	var add func(parts []model.Part)
	add = func(parts []model.Part) {
		for _, p := range parts {
			switch p := p.(type) {
			case *model.Text:
				b.WriteString(p.Text + "\n")
			case *model.Image:
				fmt.Fprintf(&b, "(image %s, %d bytes)\n", p.MIMEType, len(p.Data))
			case *model.ToolUse:
				fmt.Fprintf(&b, "[%s %s]\n", p.Name, p.Input)
			case *model.ToolResult:
				if p.Failed {
					b.WriteString("failed: ")
				}
				add(p.Parts)
			}
		}
	}
	add(m.Parts)
	return b.String()
}

// scripted gives the agent a model that answers as a script says.
func scripted(t *testing.T, text string) (*witness, func(*talk)) {
	t.Helper()
	m, err := scripts.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{Model: m}
	return w, func(k *talk) { k.model = w }
}

// strict holds that a conversation can be sent to any provider: it begins with the user,
// each wish for a tool has its one result in the next message, ids are not used twice, and no result comes
// without a wish.
func strict(t *testing.T, messages []*model.Message) {
	t.Helper()
	seen := map[string]bool{}
	var open []string
	for i, m := range messages {
		if i == 0 && m.Role != model.User {
			t.Errorf("the conversation begins with the %s", m.Role)
		}
		if len(m.Parts) == 0 {
			t.Errorf("message %d is empty", i)
		}
		var uses, results []string
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *model.ToolUse:
				if m.Role != model.Assistant || seen[p.ID] {
					t.Errorf("message %d of the %s has the wish %s", i, m.Role, p.ID)
				}
				seen[p.ID] = true
				uses = append(uses, p.ID)
			case *model.ToolResult:
				results = append(results, p.ID)
			}
		}
		if diff := cmp.Diff(open, results); diff != "" {
			t.Errorf("message %d: results (-want +got)\n%s", i, diff)
		}
		open = uses
	}
	if len(open) > 0 {
		t.Errorf("these have no results: %v", open)
	}
}

const fixIt = `
think I look at the file first.
say Let me look.
use read {"path":"main.go"}
---
use search {"pattern":"two"}
---
use plan {"steps":[{"text":"change it","status":"in_progress"}]}
use edit {"path":"main.go","edits":[{"old":"println(1)","new":"println(2)"}]}
---
use edit {"path":"main.go","edits":[{"old":"println(\"two\")","new":"println(\"three\")"}]}
use run {"command":"cat main.go"}
---
say It prints three now.
`

// The model reports its usage at the end of an answer; tools that only read may be running
// by then, so the position of these lines varies. The numbers depend on the length of the
// directory's name.
var usedTokens = regexp.MustCompile(`(?m)^usage: \d+ of.*\n`)

// TestConverse: a conversation with a model, as a client sees it.
func TestConverse(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		w, with := scripted(t, fixIt)
		k := start(t, v, with)
		golden(t, fmt.Sprintf("converse-v%d", v), usedTokens.ReplaceAllString(k.tell("Make it print three."), ""))
		if got, want := k.read("main.go"), "package main\n\nfunc main() {\n\tprintln(\"one\")\n\tprintln(\"three\")\n}\n"; got != want {
			t.Errorf("the file is %q", got)
		}
		var told []string
		for _, r := range w.requests {
			strict(t, r.Messages)
			told = append(told, messageText(r.Messages[len(r.Messages)-1]))
		}
		contains(t, told[0], "Working directory: "+k.cwd, "Date: ", "Make it print three.")
		contains(t, told[1], "package main\n\nfunc main() {")
		contains(t, told[2], "main.go:5: \tprintln(\"two\")")
		contains(t, told[3], "0 of 1 steps are done", "failed: the old text is not in the file. The nearest place is lines 4-4:\n4| \tprintln(\"one\")")
		contains(t, told[4], "Changed `main.go`: line 5.\n2| \n3| func main() {\n4| \tprintln(\"one\")\n5| \tprintln(\"three\")\n6| }\n", "println(\"three\")\n}\nThe command has succeeded.")
		if p := w.requests[0].Prefix; p != w.requests[4].Prefix || p.System != instructions || len(p.Tools) != 9 {
			t.Error("the beginning is not the same each time")
		}
	})
}

// TestFirstRequest: what each conversation begins with is small, with all tools.
func TestFirstRequest(t *testing.T) {
	for _, format := range []model.EditFormat{model.EditReplace, model.EditPatch} {
		w, with := scripted(t, "say hi")
		k := start(t, 2, with, func(k *talk) {
			k.client.Elicit = func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
				return &acp.ElicitationResponse{Action: &acpv2.ElicitationDeclineAction{}}, nil
			}
			i := w.Info()
			i.Edit = format
			w.Model.(*scripts.Model).Is = i
		})
		k.tell("hi")
		p := w.requests[0].Prefix
		var offered []model.Tool
		for _, t := range p.Tools {
			if t.Text != nil { // it is sent in one form or the other
				t = model.Tool{Name: t.Text.Name, Description: t.Text.About + t.Text.Grammar}
			}
			offered = append(offered, t)
		}
		tools, err := json.Marshal(offered)
		if err != nil {
			t.Fatal(err)
		}
		size := len(p.System) + len(tools)
		t.Logf("%d bytes of instructions, %d of tools", len(p.System), len(tools))
		if size > 9000 || len(tools) > 5000 || len(p.Tools) != 10 {
			t.Errorf("%d tools, %d bytes", len(p.Tools), size)
		}
	}
}

// TestJobsAcrossTurns: a command in the background outlives its turn; the model learns of
// its end with the next prompt, and the client knows what runs.
func TestJobsAcrossTurns(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	w, with := scripted(t, `
when Serve
use run {"command":"echo up; cat fifo; exit 4","background":true}
---
when as job 1
say It runs.
---
when has ended
say I see.
`)
	seen, gone := false, make(chan struct{})
	k := start(t, 2, with, func(k *talk) {
		update := k.client.Update
		k.client.Update = func(ctx context.Context, s *acp.ClientSession, u *acp.Update) {
			update(ctx, s, u)
			switch n := len(s.Background()); {
			case n > 0:
				seen = true
			case seen:
				seen = false
				close(gone)
			}
		}
	})
	contains(t, k.tell("/mode full"), "full")
	contains(t, k.tell("/run mkfifo fifo"), "exit 0")
	contains(t, k.tell("Serve."), "It runs.")
	f, err := os.OpenFile(filepath.Join(k.cwd, "fifo"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil { // now it ends
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-t.Context().Done():
	}
	contains(t, k.tell("What now?"), "I see.")
	contains(t, w.last(), "(Job 1 (echo up; cat fifo; exit 4) has ended. The command has failed with exit status 4.)")
}

// TestResumeConversation: a session that is loaded continues with the same messages, and
// what is sent has the same bytes.
func TestResumeConversation(t *testing.T) {
	w, with := scripted(t, fixIt+"---\nsay And <more> & more.")
	k := start(t, 2, with)
	k.tell("Make it print three.")
	was := w.requests[len(w.requests)-1].Messages
	k.reopen()
	k.tell("And now?")
	r := w.requests[len(w.requests)-1]
	strict(t, r.Messages)
	for i, m := range was {
		a, err := m.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Messages[i].MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("message %d was\n%s\nand is\n%s", i, a, b)
		}
	}
	if n := len(was); messageText(r.Messages[n]) != "It prints three now.\n" || messageText(r.Messages[n+1]) != "And now?\n" {
		t.Errorf("it continues with %q, %q", messageText(r.Messages[n]), messageText(r.Messages[n+1]))
	}
}

// TestCutAnywhere cuts the journal of a turn at the end of each line, and in the middle of
// each, as kill -9 does: the session loads, what is sent to the model then is valid, nothing that was
// shown is lost, and the model learns whether its edit was done.
func TestCutAnywhere(t *testing.T) {
	_, with := scripted(t, fixIt)
	k := start(t, 2, with)
	k.tell("Make it print three.")
	id := k.session.ID()
	if err := k.session.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(k.dir, string(id)+suffix))
	if err != nil {
		t.Fatal(err)
	}
	after := k.read("main.go")
	before := strings.Replace(after, "three", "two", 1)
	lines := bytes.SplitAfter(data, []byte("\n"))
	said := map[string]bool{}
	for n := 2; n < len(lines); n++ {
		for _, half := range []bool{false, true} {
			cut := bytes.Join(lines[:n], nil)
			if half {
				cut = append(cut, lines[n][:len(lines[n])/2]...)
			}
			// The edit was done if its result was kept, and perhaps if its intent was.
			for _, text := range []string{before, after, after + "// by somebody else\n"} {
				k.write("main.go", text)
				dir := filepath.Join(t.TempDir(), "s")
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, string(id)+suffix), cut, 0o600); err != nil {
					t.Fatal(err)
				}
				w, with := scripted(t, "always\nsay hm")
				l := &talk{t: t, dir: dir, cwd: k.cwd, client: acp.Client{MaxVersion: 2}}
				with(l)
				l.connect()
				if l.session, err = l.conn.Resume(t.Context(), id, acp.SessionConfig{Cwd: k.cwd}); err != nil {
					t.Fatalf("cut after line %d: %v", n, err)
				}
				l.tell("continue")
				r := w.requests[len(w.requests)-1]
				strict(t, r.Messages)
				var all strings.Builder
				for _, m := range r.Messages {
					all.WriteString(messageText(m))
				}
				for _, say := range []string{"Let me look.", "It prints three now."} {
					if strings.Contains(string(cut), `"text":"`+say) && !strings.Contains(all.String(), say) {
						t.Errorf("cut after line %d: %q was shown, and the model does not know it", n, say)
					}
				}
				for _, s := range []string{"This was done: ", "This was not done: ", "is neither as it was before", "This was not done.", "may have done a part"} {
					said[s] = said[s] || strings.Contains(all.String(), s)
				}
				switch {
				case strings.Contains(all.String(), "This was done: ") && text != after, strings.Contains(all.String(), "This was not done: ") && text != before:
					t.Errorf("cut after line %d: the model is told what is not so:\n%s", n, all.String())
				}
				if got := k.read("main.go"); got != text {
					t.Errorf("cut after line %d: loading has changed the file", n)
				}
			}
		}
	}
	for s, ok := range map[string]bool{"This was done: ": said["This was done: "], "This was not done: ": said["This was not done: "], "is neither": said["is neither as it was before"], "This was not done.": said["This was not done."], "may have done a part": said["may have done a part"]} {
		if !ok {
			t.Errorf("no cut led to %q", s)
		}
	}
}

// TestModelFails: an error of the provider ends the turn with its kind and advice, and the
// conversation continues.
func TestModelFails(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		w, with := scripted(t, "say Half of\nfail overloaded too busy\n---\nsay back again")
		k := start(t, v, with)
		_, err := k.session.Prompt(t.Context(), acp.Text("hi")).Wait()
		if err == nil || !strings.Contains(err.Error(), "script: too busy (overloaded). The provider is overloaded: try again later") {
			t.Errorf("%v", err)
		}
		contains(t, k.tell("hello?"), "back again")
		r := w.requests[len(w.requests)-1]
		strict(t, r.Messages)
		if got := messageText(r.Messages[1]); got != "Half of\n" {
			t.Errorf("the model does not know what it has said: %q", got)
		}
	})
}

// TestBadCalls: what is wrong with a call is said to the model.
func TestBadCalls(t *testing.T) {
	w, with := scripted(t, `
use fly {"to":"the moon"}
use read {"pfad":"main.go"}
use read {"path":5}
use read {"path": a}
use read {"path":"missing.go"}
use read {"path":""}
use read [1]
---
say Sorry.
`)
	k := start(t, 2, with)
	k.tell("Do something.")
	contains(t, w.last(),
		`There is no tool "fly". The tools are: read, search, find, edit, write, run, job, plan, fetch.`,
		`does not fit the schema of read: path is missing: write {"path":"FILE",`,
		"`5`: there is no such file.",
		"The input is not JSON: write it again, with quotes and line ends in its texts escaped.",
		"missing.go",
		"Cannot be found: the path is empty",
	)
	strict(t, w.requests[1].Messages)
}

// TestCommandsBesideModel: commands are carried out as without a model; what is none goes
// to the model.
func TestCommandsBesideModel(t *testing.T) {
	w, with := scripted(t, "always\nsay I heard.")
	k := start(t, 2, with)
	contains(t, k.tell("/read main.go"), "package main")
	if len(w.requests) != 0 {
		t.Error("the model was asked about a command")
	}
	contains(t, k.tell("/unknown thing"), "I heard.")
	contains(t, w.last(), "/unknown thing")
	contains(t, k.tell("/help"), "The language model `script/script` answers you")
	contains(t, k.tell("/usage"), "- Requests to `script/script`: 1\n", "- Tokens read: ", "- Context window: ")
}

// TestPromptParts: what a prompt is made of reaches the model.
func TestPromptParts(t *testing.T) {
	w, with := scripted(t, "always\nsay ok")
	k := start(t, 2, with)
	k.write("AGENTS.md", "Always be kind.")
	k.tell("What is this?",
		&acp.ImageContent{MIMEType: "image/png", Data: modeltest.PixelData},
		&acp.EmbeddedResource{Resource: &acp.BlobResourceContents{URI: "file:///x/y.png", MIMEType: "image/png", Blob: modeltest.PixelData}},
		&acp.ResourceLink{URI: "file://" + filepath.ToSlash(k.cwd) + "/main.go", Name: "main.go"},
		&acp.EmbeddedResource{Resource: &acp.TextResourceContents{URI: "file:///x/y.txt", Text: "why"}},
		&acp.AudioContent{MIMEType: "audio/wav", Data: "AAAA"},
	)
	contains(t, w.last(), "from "+filepath.Join(k.cwd, "AGENTS.md")+":\n\nAlways be kind.", fmt.Sprintf("What is this?\n(image image/png, %[1]d bytes)\n(image image/png, %[1]d bytes)\n", len(modeltest.Pixel().Data)),
		"(The user refers to the file "+filepath.Join(k.cwd, "main.go")+".)", "(The user has attached "+filepath.FromSlash("/x/y.txt")+":)\nwhy", "a recording, `audio/wav`, 3 bytes")
}

// TestSystemPrompt: a client's instructions are appended, or replace the agent's.
func TestSystemPrompt(t *testing.T) {
	for mode, want := range map[acpv2.SystemPromptMode]string{
		acpv2.SystemPromptModeAppend: instructions + "\n\nSpeak Latin.", acpv2.SystemPromptModeOverride: "Speak Latin.",
	} {
		w, with := scripted(t, "say ita")
		k := start(t, 2, with)
		var err error
		k.session, err = k.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: k.cwd, SystemPrompt: &acp.SystemPrompt{Mode: mode, Content: []acp.ContentBlock{acp.Text("Speak Latin.")}}})
		if err != nil {
			t.Fatal(err)
		}
		k.tell("hi")
		if got := w.requests[0].Prefix.System; got != want {
			t.Errorf("%s: %q", mode, got)
		}
	}
}

// TestLimits: a turn ends at its limits, and says so.
func TestLimits(t *testing.T) {
	w, with := scripted(t, "always\nuse read {\"path\":\"main.go\"}\nusage input=1000000 output=0")
	w.Model.(*scripts.Model).Is = model.Info{Provider: "p", ID: "m", Context: 2_000_000, Price: model.Price{Input: 1, Currency: "USD"}}
	k := start(t, 2, with, func(k *talk) { k.limits.Cost = 2.5 })
	res, err := k.session.Prompt(t.Context(), acp.Text("go")).Wait()
	if err != nil || res.StopReason != acp.StopMaxTurnRequests {
		t.Errorf("%+v, %v", res, err)
	}
	contains(t, k.taken(), "usage: 1000000 of 2000000", "this prompt has cost 3.00 USD, which is the limit")
	strict(t, w.requests[len(w.requests)-1].Messages)
}

// TestToolsFollowModel: another model gets the tool for changes that it was trained on; all
// else stays, and what the first model has cached is there when it comes back.
func TestToolsFollowModel(t *testing.T) {
	w, with := scripted(t, "say one\n---\nsay two\n---\nuse edit {\"path\":\"main.go\",\"edits\":[{\"old\":\"one\",\"new\":\"1\"}]}\n---\nsay three\n---\nsay four")
	k := start(t, 2, with)
	trained := func(format model.EditFormat) {
		i := w.Info()
		i.Edit = format
		w.Model.(*scripts.Model).Is = i
	}
	k.tell("/mode auto")
	k.tell("a")
	trained(model.EditPatch)
	k.tell("b")
	k.tell("c") // calls the tool of before, as its own past does
	trained(model.EditReplace)
	k.tell("d")
	names := func(n int) (all []string) {
		for _, t := range w.requests[n].Prefix.Tools {
			all = append(all, t.Name)
		}
		return all
	}
	one, two := names(0), names(1)
	if !slices.Contains(one, "edit") || slices.Contains(one, "patch") || slices.Contains(two, "edit") || !slices.Contains(two, "patch") {
		t.Errorf("the tools are %v and then %v", one, two)
	}
	if w.requests[1].Prefix != w.requests[3].Prefix || w.requests[0].Prefix != w.requests[4].Prefix {
		t.Error("a beginning was made twice")
	}
	if !strings.Contains(k.read("main.go"), "println(\"1\")") {
		t.Error("the tool of before was not found")
	}
}
