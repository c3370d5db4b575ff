package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// A word is a prompt of the script, by its first word and more where that has
// several tests, and what has to come of it.
type word struct {
	name string
	play func(t *testing.T, p *peer)
	only int // the version that has it, 0 for both
}

// framed is a turn with what belongs to every turn.
func framed(version int, prompt, idle string, between ...string) []string {
	made := ""
	if version == 1 {
		made = "~" // version 1 does not say these things
	}
	list := append([]string{made + "user " + prompt, made + "running"}, between...)
	return append(list, made+idle)
}

// ends reports what is wrong with a turn that should have ended well.
func ends(t *testing.T, o *turn, stop acp.StopReason, updates []string) {
	t.Helper()
	if o.err != nil || o.result == nil || o.result.StopReason != stop {
		t.Errorf("result %+v, error %v, want %s", o.result, o.err, stop)
	}
	if diff := cmp.Diff(updates, o.list); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
}

// simple is a word the agent answers with updates and end_turn; %s in what it
// answers is left to f.
func simple(prompt string, between ...string) word {
	return word{name: prompt, play: func(t *testing.T, p *peer) {
		s := p.open(t)
		o := say(t, s, prompt)
		ends(t, o, acp.StopEndTurn, framed(p.version, prompt, "idle end_turn", between...))
		// The hook is told the same, in the same order.
		if told := p.toldOf(s); !strings.HasSuffix(strings.Join(told, "\n"), strings.Join(o.list, "\n")) {
			t.Errorf("the reply had %q, the hook %q", o.list, told)
		}
	}}
}

// in restricts a word to one version.
func (w word) in(version int) word {
	w.only = version
	return w
}

// stops is a word that ends the turn with a reason.
func stops(reason acp.StopReason) word {
	prompt := "!stop " + string(reason)
	return word{name: prompt, play: func(t *testing.T, p *peer) {
		ends(t, say(t, p.open(t), prompt), reason, framed(p.version, prompt, "idle "+string(reason)))
	}}
}

// refused is a word that is answered with an error.
func refused(prompt string, code int, data string) word {
	return word{name: prompt, play: func(t *testing.T, p *peer) {
		s := p.open(t)
		o := say(t, s, prompt)
		var said *jsonrpc.Error
		if !errors.As(o.err, &said) || said.Code != code || data != "" && string(said.Data) != data {
			t.Errorf("error %v, want code %d, data %s", o.err, code, data)
		}
		var want []string // a prompt of version 2 that is refused has no turn
		if p.version == 1 {
			want = framed(1, prompt, "idle error")
		}
		if diff := cmp.Diff(want, o.list); diff != "" {
			t.Errorf("updates (-want +got):\n%s", diff)
		}
		if o := say(t, s, "still there"); o.said() != "echo:still there" {
			t.Errorf("afterwards %q, %v", o.said(), o.err)
		}
	}}
}

// numbers are the pieces of !chunks and !burst.
func numbers(version, n int) []string {
	var list []string
	for i := range n {
		text := fmt.Sprint("say ", i)
		if version == 2 && i > 0 {
			text = fmt.Sprint("say ,", i)
		}
		list = append(list, text)
	}
	return list
}

func chunks(prompt string, n int) word {
	return word{name: prompt, play: func(t *testing.T, p *peer) {
		ends(t, say(t, p.open(t), prompt), acp.StopEndTurn, framed(p.version, prompt, "idle end_turn", numbers(p.version, n)...))
	}}
}

// raw is a line the agent writes as it is, after which it goes on.
func raw(line string) word {
	prompt := "!raw " + line
	return word{name: prompt, play: func(t *testing.T, p *peer) {
		ends(t, say(t, p.open(t), prompt), acp.StopEndTurn, framed(p.version, prompt, "idle end_turn", "say after-raw"))
	}}
}

var words = []word{
	simple("hello there", "say echo:hello there"),
	chunks("!chunks 50", 50),
	chunks("!burst 500", 500),
	simple("!big 8000000", "say xxx… (8000000 bytes)"),
	simple("!unicode", "say h\u00e9llo \u4e16\u754c \U0001f600 \u2028\u2029 \x00 \"quoted\" \\n"),
	stops(acp.StopEndTurn), stops(acp.StopMaxTokens), stops(acp.StopMaxTurnRequests), stops(acp.StopRefusal), stops(acp.StopCancelled),
	stops("_custom").in(2),
	{"!stop none", stopNone, 2},
	{"!stop error", stopError, 2},
	{"!usage", usage, 0},
	{"!updates", updates, 0},
	simple("!badupdate", `unknown {"sessionUpdate":"totally_unknown_update","foo":1}`, "say after-bad").in(1),
	simple("!badupdate", `unknown {"sessionUpdate":"future_update","x":1}`, "say after-bad").in(2),
	{"!lenient", lenient, 0},
	{"!perm", permission, 0},
	{"!perm, rejected", permissionRejected, 0},
	{"!perm, cancelled", permissionCancelled, 0},
	{"!permcancel", permissionWithdrawn, 1},
	{"!permtool", permissionTool, 2},
	{"!permcustom", permissionCustom, 2},
	{"!read", readFile, 1},
	{"!read, missing", readMissing, 1},
	{"!read, elsewhere", readElsewhere, 1},
	{"!write", writeFile, 1},
	simple("!term echo hi", "say term:0:hi:false").in(1),
	simple("!term false", "say term:1::false").in(1),
	{"!elicit", elicit, 0},
	{"!eliciturl", elicitURL, 0},
	simple("!ext zz", `say ext:{"echoed":{"v":"zz"}}`),
	{"!extnote", extNote, 0},
	simple("!unknown", "say unknown:-32601"),
	simple("!parallel 50", "say parallel:true"),
	refused("!fail", jsonrpc.CodeInternalError, ""),
	refused("!rpcerror", -32042, `{"a":1}`),
	refused("!auth", jsonrpc.CodeAuthRequired, `{"why":"test"}`),
	refused("!reject", jsonrpc.CodeInvalidParams, `{"reason":"rejected"}`).in(2),
	{"!hang", hang, 0},
	{"!hang, withdrawn", hangWithdrawn, 0},
	{"!hold", hold, 2},
	{"!hold, withdrawn", holdWithdrawn, 2},
	{"!tool tcA", toolCancel, 2},
	{"!terminal btA", terminalCancel, 2},
	{"!order", order, 1},
	{"!blocks", blocks, 0},
	{"!customblock", customBlock, 2},
	{"!meta", meta, 0},
	{"!mcp", mcp, 0},
	{"!mcpcancel", mcpCancel, 0},
	raw("this is no JSON"),
	raw("[]"),
	raw(`{"jsonrpc":"2.0","id":4242,"result":{}}`),
	raw(`{"jsonrpc":"2.0","id":"x","error":{"code":1.5}}`),
	raw(`{"jsonrpc":"2.0","method":"nobody/knows","params":{}}`),
	raw(`{"jsonrpc":"2.0","id":77,"method":"fs/nobody_knows"}`),
	raw(""),
}

// The words of the scripts all have tests.
func TestWordsAreComplete(t *testing.T) {
	for version := 1; version <= 2; version++ {
		text, err := os.ReadFile(script("lib/v%dagent.mjs", version))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?:case |cmd === )"(!\w+)"`).FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = true
		}
		if len(found) < 30 {
			t.Errorf("only %d words in the script of version %d", len(found), version)
		}
		for name := range found {
			if !slices.ContainsFunc(words, func(w word) bool {
				first, _, _ := strings.Cut(strings.ReplaceAll(w.name, ",", " "), " ")
				return first == name && (w.only == 0 || w.only == version)
			}) {
				t.Errorf("version %d: %s has no test", version, name)
			}
		}
	}
}

// Our client understands everything agents on the official SDK do.
func TestClientAgainstTS(t *testing.T) {
	need(t)
	for _, tt := range []struct {
		name    string
		version int
		highest int // the client's
		args    []string
	}{
		{"v1_agent", 1, 0, []string{"node", script("v1_agent.mjs")}},
		{"v2_agent", 2, 0, []string{"node", script("v2_agent.mjs")}},
		{"router_agent v1", 1, 1, []string{"node", script("router_agent.mjs")}},
		{"router_agent v2", 2, 0, []string{"node", script("router_agent.mjs")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := dial(t, tt.highest, tt.args...)
			if p.version != tt.version {
				t.Fatalf("version %d, want %d", p.version, tt.version)
			}
			for _, w := range words {
				if w.only == 0 || w.only == p.version {
					t.Run(w.name, func(t *testing.T) { w.play(t, p) })
				}
			}
			for _, w := range verbs {
				t.Run(w.name, func(t *testing.T) { w.play(t, p) })
			}
		})
	}
}

func stopNone(t *testing.T, p *peer) {
	ends(t, say(t, p.open(t), "!stop none"), "", framed(2, "!stop none", "idle"))
}

// stopError is a turn that fails in the middle: the error is that of the reply
// and in its result.
func stopError(t *testing.T, p *peer) {
	o := say(t, p.open(t), "!stop error")
	var said *jsonrpc.Error
	if !errors.As(o.err, &said) || said.Code != -32603 || said.Message != "model down" || string(said.Data) != `{"a":1}` {
		t.Errorf("error %v", o.err)
	}
	want := &acp.Result{StopReason: acp.StopError, Error: &acpv2.Error{Code: -32603, Message: "model down", Data: json.RawMessage(`{"a":1}`)}}
	if diff := cmp.Diff(want, o.result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(framed(2, "!stop error", "idle error"), o.list); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
}

func usage(t *testing.T, p *peer) {
	o := say(t, p.open(t), "!usage")
	ends(t, o, acp.StopEndTurn, framed(p.version, "!usage", "idle end_turn"))
	if u := o.result.Usage; u == nil || u.TotalTokens != 30 || u.InputTokens != 10 || u.OutputTokens != 20 {
		t.Errorf("usage %+v", o.result.Usage)
	}
}

// allUpdates are the updates of !updates, by version.
var allUpdates = [3][]string{
	1: {
		"user+ echo", "think thinking",
		"say <ImageContent>", "say <AudioContent>", "say <ResourceLink>", "say <EmbeddedResource>", "say <EmbeddedResource>",
		"tool name=edit_file title=Edit kind=edit status=pending content=0 locations=1",
		"tool status=in_progress",
		"tool status=completed content=3",
		"plan plan of 1",
		"AvailableCommandsUpdate",
		"ConfigOptionUpdate", // the mode
		"ConfigOptionUpdate",
		"SessionInfoUpdate title=T updatedAt=2026-11-01T00:00:00Z", "SessionInfoUpdate title=null",
		"UsageUpdate 53000/200000", "Notice warning",
		"CompactionUpdate in_progress", "CompactionSummaryChunk", "CompactionUpdate completed",
		"PlanMarkdown p1", "PlanRemoved p1",
		"SubagentUpdate child-1 running", "SessionMessage", "SessionMessageChunk", "SubagentUpdate child-1 idle error",
	},
	2: {
		"user+ c", "think hm", "thought hmm",
		"agent <ImageContent> <AudioContent> <ResourceLink> <EmbeddedResource>", "agent ",
		"tool name=edit title=Edit kind=edit status=pending locations=1 capabilities",
		"ToolCallContentChunk",
		"tool status=paused",
		"tool title=null status=completed content=2 capabilities=null",
		"TerminalUpdate", "TerminalOutputChunk", "TerminalUpdate",
		"plan p1 of 1",
		"AvailableCommandsUpdate",
		"ConfigOptionUpdate",
		"SessionInfoUpdate title=T updatedAt=2026-11-01T00:00:00Z",
		"UsageUpdate 1/2", "Notice warning",
		"CompactionUpdate in_progress", "CompactionSummaryChunk", "CompactionUpdate completed",
		"running, 2 in the background",
		"PlanMarkdown p2", "PlanRemoved p2",
		"SubagentUpdate child-1 StateUnknownUpdate", "SessionMessage", "SessionMessageChunk",
		`unknown {"sessionUpdate":"_vendor_update","payload":{"keep":[1,2]},"_meta":{"a":1}}`,
	},
}

func updates(t *testing.T, p *peer) {
	s := p.open(t)
	idle := "idle end_turn"
	if p.version == 2 {
		idle += ", 0 in the background"
	}
	ends(t, say(t, s, "!updates"), acp.StopEndTurn, framed(p.version, "!updates", idle, allUpdates[p.version]...))
	// What the session remembers of it.
	if title := s.Title(); title != map[int]string{1: "", 2: "T"}[p.version] {
		t.Errorf("title %q", title)
	}
	if u := s.Usage(); u == nil || u.Cost.Or(acp.Cost{}).Currency != "USD" {
		t.Errorf("usage %+v", u)
	}
	if n := len(s.Commands()); n != 2 {
		t.Errorf("%d commands", n)
	}
}

// lenient is what is left of updates that can be read in part. An unknown kind
// of content is kept in version 1, too (S79).
func lenient(t *testing.T, p *peer) {
	o := say(t, p.open(t), "!lenient")
	if p.version == 1 {
		ends(t, o, acp.StopEndTurn, framed(1, "!lenient", "idle end_turn",
			"tool name=null title=L kind=not_a_kind status=pending content=2 locations=0", "plan plan of 1", "say after-lenient"))
		return
	}
	ends(t, o, "", framed(2, "!lenient", "idle", "tool content=1", "say after-lenient"))
}

func order(t *testing.T, p *peer) {
	s := p.open(t)
	for range 20 {
		// Whoever waits for the result has been told before.
		reply := s.Prompt(t.Context(), acp.Text("!order"))
		if _, err := reply.Wait(); err != nil {
			t.Fatal(err)
		}
		told := p.toldOf(s)
		if last := told[max(0, len(told)-2):]; !slices.Equal(last, []string{"say last", "~idle end_turn"}) {
			t.Fatalf("told %q", last)
		}
	}
}

func blocks(t *testing.T, p *peer) {
	ctx, cancel := context.WithTimeout(t.Context(), talkLimit)
	defer cancel()
	o := read(p.open(t).Prompt(ctx, acp.Text("!blocks"),
		&acp.ImageContent{Data: "AAAA", MIMEType: "image/png"},
		&acp.AudioContent{Data: "AAAA", MIMEType: "audio/wav"},
		&acp.ResourceLink{Name: "n", URI: "file:///x"},
		&acp.EmbeddedResource{Resource: &acp.TextResourceContents{URI: "file:///x", Text: "t"}}))
	if o.said() != "text,image,audio,resource_link,resource" || o.err != nil {
		t.Errorf("%q, %v", o.said(), o.err)
	}
}

func customBlock(t *testing.T, p *peer) {
	ctx, cancel := context.WithTimeout(t.Context(), talkLimit)
	defer cancel()
	block := `{"type":"_vendor_block","deep":{"a":[1]}}`
	o := read(p.open(t).Prompt(ctx, acp.Text("!customblock"),
		&acp.UnknownContentBlock{Type: "_vendor_block", Raw: json.RawMessage(block)}))
	if o.said() != block || o.err != nil {
		t.Errorf("%q, %v", o.said(), o.err)
	}
}

func meta(t *testing.T, p *peer) {
	ctx, cancel := context.WithTimeout(t.Context(), talkLimit)
	defer cancel()
	meta := `{"traceparent":"00-x","nested":{"a":[1]}}`
	o := read(p.open(t).PromptRequest(ctx, &acpv2.PromptRequest{
		Prompt: []acp.ContentBlock{acp.Text("!meta")}, Meta: json.RawMessage(meta),
	}))
	if o.said() != meta || o.err != nil {
		t.Errorf("%q, %v", o.said(), o.err)
	}
}
